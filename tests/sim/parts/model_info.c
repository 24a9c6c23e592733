/* SPDX-License-Identifier: BSD-3-Clause */
/* model_info.c - INFO and CONFIG GET. What the model has no notion of has the value that a fresh server shows. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_own.h"
#include "rng.h"

#define MAXMEMORY "1048576"
#define POLICY    "allkeys-lru"

#define ID_LENGTH 40

/* Hexadecimal digits, and a NUL. */
static void id_text(uint64_t kind, uint64_t number, char ret[ID_LENGTH + 1])
{
    uint64_t base = rng_mix(kind, number), bits = 0;

    for (unsigned i = 0; i < ID_LENGTH; i++, bits <<= 4) {
        if (i % 16 == 0) bits = rng_mix(base, i / 16);
        ret[i] = "0123456789abcdef"[bits >> 60];
    }
    ret[ID_LENGTH] = '\0';
}

__attribute__((format(printf, 2, 3))) static void add(struct out *out, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    out_bytes(out, text, (size_t)vsnprintf(text, sizeof(text), format, args));
    va_end(args);
}

const char *model_version_text(const struct model *model)
{
    if (model->manners.valkey != NULL) return "7.2.4";
    return model->manners.version != NULL ? model->manners.version : MODEL_VERSION;
}

static uint32_t version_number(const char *at)
{
    uint32_t number = 0;

    for (int i = 0; i < 3; i++) {
        char *end;

        number = number << 8 | (uint32_t)strtoul(at, &end, 10);
        at = *end == '.' ? end + 1 : end;
    }
    return number;
}

uint32_t model_version(const struct model *model)
{
    return version_number(model_version_text(model));
}

uint32_t model_valkey(const struct model *model)
{
    return model->manners.valkey != NULL ? version_number(model->manners.valkey) : 0;
}

static void server(struct out *out, const struct model *model)
{
    const struct model_manners *manners = &model->manners;
    char run[ID_LENGTH + 1];

    id_text(1, manners->run, run);
    add(out,
        "# Server\r\nredis_version:%s\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_build_id:0\r\n"
        "redis_mode:%s\r\nos:Linux x86_64\r\narch_bits:64\r\nmonotonic_clock:POSIX clock_gettime\r\n"
        "multiplexing_api:epoll\r\natomicvar_api:c11-builtin\r\ngcc_version:12.2.0\r\nprocess_id:1\r\n"
        "process_supervised:no\r\nrun_id:%s\r\ntcp_port:6379\r\nserver_time_usec:%" PRIu64 "\r\n"
        "uptime_in_seconds:%" PRId64 "\r\nuptime_in_days:0\r\nhz:10\r\nconfigured_hz:10\r\nlru_clock:0\r\n"
        "executable:/usr/bin/redis-server\r\nconfig_file:\r\nio_threads_active:0\r\n",
        model_version_text(model), manners->cluster ? "cluster" : "standalone", run, model->wall_us,
        (int64_t)(model->wall_us / 1000000 - manners->started_us / 1000000));
    if (manners->valkey != NULL) add(out, "server_name:valkey\r\nvalkey_version:%s\r\n", manners->valkey);
}

static void clients(struct out *out, const struct model *model)
{
    size_t n = 0, n_tracking = 0;

    LIST_EACH (struct session, session, &model->sessions, link) {
        n += !session->ends && !session->operator;
        n_tracking += !session->ends && session->tracking;
    }
    add(out,
        "# Clients\r\nconnected_clients:%zu\r\ncluster_connections:0\r\nmaxclients:%u\r\n"
        "client_recent_max_input_buffer:0\r\nclient_recent_max_output_buffer:0\r\nblocked_clients:0\r\n"
        "tracking_clients:%zu\r\nclients_in_timeout_table:0\r\n",
        n, model->manners.max_clients != 0 ? model->manners.max_clients : 10000, n_tracking);
}

static const char *maxmemory(const struct model *model)
{
    return model->manners.full || model->manners.evicts ? MAXMEMORY : "0";
}

static const char *policy(const struct model *model)
{
    return model->manners.evicts ? POLICY : "noeviction";
}

static void memory(struct out *out, const struct model *model)
{
    const char *used = model->manners.full ? "2000000" : "900000";

    add(out,
        "# Memory\r\nused_memory:%s\r\nused_memory_human:1M\r\nused_memory_rss:%s\r\nmaxmemory:%s\r\n"
        "maxmemory_human:%s\r\nmaxmemory_policy:%s\r\nmem_allocator:jemalloc-5.3.0\r\n",
        used, used, maxmemory(model), model->manners.full || model->manners.evicts ? "1.00M" : "0B", policy(model));
}

static void persistence(struct out *out, const struct model *model)
{
    add(out,
        "# Persistence\r\nloading:%d\r\nasync_loading:0\r\nrdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:%s\r\n"
        "aof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\n",
        model->manners.loading, model->manners.misconf ? "err" : "ok");
}

static void replication(struct out *out, const struct model *model)
{
    const struct model_manners *manners = &model->manners;
    char replid[ID_LENGTH + 1];

    id_text(2, manners->replid, replid);
    add(out, "# Replication\r\nrole:%s\r\n", manners->replica ? "slave" : "master");
    if (manners->replica) {
        add(out,
            "master_host:10.0.0.200\r\nmaster_port:6379\r\nmaster_link_status:%s\r\nslave_read_only:1\r\n"
            "slave_priority:100\r\n",
            manners->master_down ? "down" : "up");
    }
    add(out,
        "connected_slaves:0\r\nmaster_failover_state:no-failover\r\nmaster_replid:%s\r\n"
        "master_replid2:0000000000000000000000000000000000000000\r\nmaster_repl_offset:0\r\nsecond_repl_offset:-1\r\n"
        "repl_backlog_active:0\r\nrepl_backlog_size:1048576\r\nrepl_backlog_first_byte_offset:0\r\n"
        "repl_backlog_histlen:0\r\n",
        replid);
}

static void stats(struct out *out, const struct model *model)
{
    add(out, "# Stats\r\ntotal_net_repl_input_bytes:%u\r\n", (unsigned)model->manners.repl_input);
}

/* No test resets them. */
static void commands(struct out *out, const struct model *model)
{
    (void)model;
    add(out, "# Commandstats\r\n");
}

void run_info(struct call *call)
{
    static const struct {
        const char *name;
        void (*write)(struct out *, const struct model *);
    } sections[INFO_SECTIONS] = {[INFO_SERVER] = {"server", server},
                                 [INFO_CLIENTS] = {"clients", clients},
                                 [INFO_MEMORY] = {"memory", memory},
                                 [INFO_PERSISTENCE] = {"persistence", persistence},
                                 [INFO_STATS] = {"stats", stats},
                                 [INFO_COMMANDS] = {"commandstats", commands},
                                 [INFO_REPLICATION] = {"replication", replication}};
    struct out *text = &call->model->info;

    if (call->n_words != 2) model_panic("INFO, but of one section", "", 0);
    text->used = 0;
    for (size_t i = 0; i < INFO_SECTIONS; i++) {
        if (!word_is(&call->words[1], sections[i].name)) continue;
        sections[i].write(text, call->model);
        out_verbatim(call->out, text->bytes, text->used);
        return;
    }
    model_panic("this section of INFO", call->words[1].text, call->words[1].length);
}

void run_config_get(struct call *call)
{
    const struct {
        const char *name, *value;
    } known[] = {{"appendfsync", "everysec"},
                 {"maxmemory", maxmemory(call->model)},
                 {"maxmemory-policy", policy(call->model)},
                 {"timeout", "0"}};

    if (call->n_words != 3) model_panic("CONFIG GET, but of one name", "", 0);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!word_is(&call->words[2], known[i].name)) continue;
        out_map(call->out, 1);
        out_bulk_text(call->out, known[i].name);
        out_bulk_text(call->out, known[i].value);
        return;
    }
    model_panic("this setting", call->words[2].text, call->words[2].length);
}
