/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/examine_read.h"

#include <string.h>

#include "redis/wire/errors.h"
#include "redis/wire/info.h"

static const char *const examine_rights[EXAMINE_RIGHTS] = {
    [EXAMINE_INFO] = "INFO",
    [EXAMINE_TIME] = "TIME",
    [EXAMINE_GET] = "GET",
    [EXAMINE_SET] = "SET",
    [EXAMINE_PTTL] = "PTTL",
    [EXAMINE_PEXPIRE] = "PEXPIRE",
    [EXAMINE_DEL] = "DEL",
    [EXAMINE_EVAL] = "EVAL",
    [EXAMINE_EVALSHA] = "EVALSHA",
    [EXAMINE_TYPE] = "TYPE",
    [EXAMINE_PUBLISH] = "PUBLISH",
    [EXAMINE_SETNAME] = "CLIENT SETNAME",
    [EXAMINE_TRACKING] = "CLIENT TRACKING",
    [EXAMINE_CACHING] = "CLIENT CACHING",
    [EXAMINE_HELLO] = "HELLO",
    [EXAMINE_EXISTS] = "EXISTS",
    [EXAMINE_MSETEX] = "MSETEX",
};

const char *examine_right_text(enum examine_right right)
{
    return examine_rights[right];
}

static bool field_number(const char *text, size_t length, const char *field, uint64_t *ret)
{
    char value[EXAMINE_WORD_SIZE];

    return info_field(text, length, field, value, sizeof(value)) && guard_text_number(value, ret);
}

static bool field_u32(const char *text, size_t length, const char *field, uint32_t *ret)
{
    uint64_t number = 0;

    if (!field_number(text, length, field, &number)) return false;
    *ret = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    return true;
}

static void read_server(struct examine_facts *facts, const char *text, size_t length)
{
    struct info_server server;

    if (info_server(text, length, &server, facts->version, sizeof(facts->version))) {
        memcpy(facts->kind, server.kind, strlen(server.kind) + 1);
        facts->too_old = server.too_old;
    }
    info_mode(text, length, facts->mode, sizeof(facts->mode));
    (void)info_field(text, length, "run_id", facts->run_id, sizeof(facts->run_id));
}

static void read_replication(struct examine_facts *facts, const char *text, size_t length)
{
    (void)info_field(text, length, "role", facts->role, sizeof(facts->role));
    if (strcmp(facts->role, "slave") == 0) memcpy(facts->role, "replica", sizeof("replica"));
    (void)info_field(text, length, "master_replid", facts->replid, sizeof(facts->replid));
    (void)field_u32(text, length, "connected_slaves", &facts->replicas);
}

static void read_persistence(struct examine_facts *facts, const char *text, size_t length)
{
    char state[EXAMINE_WORD_SIZE] = "";
    uint32_t enabled = 0;

    facts->has_persistence = field_u32(text, length, "aof_enabled", &enabled);
    facts->aof = enabled != 0;
    (void)info_field(text, length, "aof_last_write_status", state, sizeof(state));
    facts->aof_broken = facts->aof && state[0] != '\0' && strcmp(state, "ok") != 0;
}

void examine_read_info(struct examine_facts *facts, enum examine_section section, const char *text, size_t length)
{
    uint64_t input;

    switch (section) {
    case EXAMINE_SERVER: read_server(facts, text, length); break;
    case EXAMINE_REPLICATION: read_replication(facts, text, length); break;
    case EXAMINE_PERSISTENCE: read_persistence(facts, text, length); break;
    case EXAMINE_MEMORY:
        facts->has_memory = field_number(text, length, "used_memory", &facts->used_memory) &&
                            field_number(text, length, "maxmemory", &facts->maxmemory) &&
                            info_field(text, length, "maxmemory_policy", facts->policy, sizeof(facts->policy));
        break;
    case EXAMINE_CLIENTS:
        facts->has_clients = field_u32(text, length, "connected_clients", &facts->clients) &&
                             field_u32(text, length, "maxclients", &facts->maxclients);
        break;
    case EXAMINE_STATS:
        facts->no_input = field_number(text, length, "total_net_repl_input_bytes", &input) && input == 0;
        break;
    case EXAMINE_COMMANDS: facts->counts_all = length != 0 && memmem(text, length, "resetstat", 9) == NULL; break;
    case EXAMINE_SECTIONS: break;
    }
}

/*
 * Compute the quarantine that a client would find if it connected now: the guard script begins one if the guard names
 * another process, and shortens one that is longer than any lease.
 */
static void read_quarantine(struct examine_facts *facts, const struct guard_text *text)
{
    struct examine_guard *guard = &facts->guard;
    uint64_t now_ms = (uint64_t)(facts->time_us / 1000), till_ms = text->till_ms, wanted_till_ms = text->wanted_till_ms;
    uint64_t most_ms = (uint64_t)guard->max_lease_ms + 1;

    if (till_ms > now_ms && text->longest_ms >= most_ms) most_ms = (uint64_t)text->longest_ms + 1;
    if (guard->stale || till_ms > now_ms + most_ms) till_ms = now_ms + most_ms;
    if (wanted_till_ms > now_ms + text->wanted_ms + 1) wanted_till_ms = now_ms + text->wanted_ms + 1;
    guard->cause = !guard->stale                              ? text->cause
                   : strcmp(facts->run_id, text->run_id) == 0 ? QUARANTINE_REPLICATION
                                                              : QUARANTINE_RESTART;
    guard->first_ms = guard->stale ? 0 : guard_text_first_ms(text, now_ms);
    guard->until_ms = till_ms;
    if (wanted_till_ms > till_ms) {
        guard->cause = QUARANTINE_CLIENT;
        guard->wanted_ms = text->wanted_ms;
        guard->until_ms = wanted_till_ms;
    }
    if (guard->until_ms > now_ms) guard->quarantine_ms = (int64_t)(guard->until_ms - now_ms);
}

/* As the guard script does. Rule 4.15. */
static bool has_own_memory(const struct examine_facts *facts, const struct guard_text *text)
{
    return strcmp(facts->run_id, text->run_id) == 0 && strcmp(facts->role, "master") == 0 && facts->no_input &&
           facts->counts_all;
}

void examine_read_guard(struct examine_facts *facts, const char *value, size_t length)
{
    struct guard_text text;

    facts->guard.state = EXAMINE_GUARD_FOREIGN;
    if (!guard_text_read(value, length, &text)) return;
    facts->guard.state = EXAMINE_GUARD_THERE;
    facts->guard.n_nodes = text.n_nodes;
    facts->guard.max_lease_ms = text.max_lease_ms;
    facts->guard.longest_ms = text.longest_ms;
    memcpy(facts->guard.set, text.set, sizeof(text.set));
    facts->guard.stale =
        (facts->run_id[0] != '\0' && strcmp(facts->run_id, text.run_id) != 0) ||
        (facts->replid[0] != '\0' && strcmp(facts->replid, text.replid) != 0 && !has_own_memory(facts, &text));
    /* The rest of a quarantine can only be computed with the server's clock. */
    if (facts->has_clock || facts->guard.stale) read_quarantine(facts, &text);
}

void examine_read_time(struct examine_facts *facts, int64_t server_us, int64_t before_us, int64_t after_us)
{
    int64_t way_us = after_us - before_us;
    uint32_t error_us;

    /* Our own clock was set back meanwhile, the round trip took absurdly long, or the answer is not a time. */
    if (way_us < 0 || way_us > UINT32_MAX || server_us < 0) return;
    facts->time_us = server_us;
    /* The reading is wrong by half a round trip at most, either way. */
    error_us = (uint32_t)(way_us / 2) + 1;
    if (facts->has_clock && error_us >= facts->offset_error_us) return;
    facts->has_clock = true;
    facts->offset_us = server_us - (before_us + way_us / 2);
    facts->offset_error_us = error_us;
}

static bool examine_read_begins(const char *text, size_t length, const char *front)
{
    return length >= strlen(front) && memcmp(text, front, strlen(front)) == 0;
}

/* Servers before Redis 7 write a capital U. */
bool examine_is_unknown(const char *text, size_t length)
{
    return examine_read_begins(text, length, "ERR unknown command") ||
           examine_read_begins(text, length, "ERR unknown subcommand") ||
           examine_read_begins(text, length, "ERR Unknown subcommand");
}

void examine_read_refusal(struct examine_facts *facts, enum examine_right right, enum examine_name name,
                          const char *text, size_t length)
{
    static const char by_command[] = " run the '", by_database[] = "NOPERM No permissions to access database";
    bool unknown = examine_is_unknown(text, length);

    /* The server checks its disk, memory and replicas before it looks at the arguments. */
    if (right == EXAMINE_SET && name == EXAMINE_LOCK && error_classify(text, length).fault == FAULT_REFUSED)
        error_describe(facts->write_error, sizeof(facts->write_error), "SET", text, length);
    if (right == EXAMINE_EVAL && examine_read_begins(text, length, "ERR Could not find scripting engine"))
        error_describe(facts->no_lua, sizeof(facts->no_lua), "EVAL", text, length);
    if (examine_read_begins(text, length, by_database)) {
        facts->no_database = true;
        return;
    }
    if (!unknown && !examine_read_begins(text, length, "NOPERM")) return;
    if (unknown) facts->unknown_rights |= 1u << right;
    if (unknown && right == EXAMINE_MSETEX) return;
    if (unknown || name == EXAMINE_NAMES || memmem(text, length, by_command, sizeof(by_command) - 1) != NULL)
        facts->refused_rights |= 1u << right;
    else
        facts->refused_names |= 1u << name;
}
