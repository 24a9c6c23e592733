/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/examine_read.h"

#include <errno.h>
#include <stdlib.h>
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
    [EXAMINE_SCRIPT_LOAD] = "SCRIPT LOAD",
    [EXAMINE_TYPE] = "TYPE",
    [EXAMINE_PUBLISH] = "PUBLISH",
    [EXAMINE_SETNAME] = "CLIENT SETNAME",
};

const char *examine_right_text(enum examine_right right)
{
    return examine_rights[right];
}

/* Decimal digits and nothing else. */
static bool to_number(const char *text, uint64_t *ret)
{
    unsigned long long number;
    char *end = NULL;

    if (*text < '0' || *text > '9') return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *ret = number;
    return true;
}

static bool field_number(const char *text, size_t length, const char *field, uint64_t *ret)
{
    char value[EXAMINE_WORD_SIZE];

    return info_field(text, length, field, value, sizeof(value)) && to_number(value, ret);
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
    case EXAMINE_SECTIONS: break;
    }
}

/* The next part of the guard, up to a bar or the end; NULL when there is none. *at moves behind it. */
static char *next_part(char **at)
{
    char *part = *at, *bar;

    if (part == NULL) return NULL;
    bar = strchr(part, '|');
    if (bar != NULL) *bar = '\0';
    *at = bar != NULL ? bar + 1 : NULL;
    return part;
}

/*
 * What a client would find if it connected now: the guard script begins a quarantine where the guard names
 * another process, and shortens one that is longer than any lease.
 */
static int64_t quarantine_ms(const struct examine_facts *facts, uint64_t till_ms, uint64_t longest_ms)
{
    int64_t now_ms = facts->time_us / 1000;
    int64_t most_ms = (int64_t)facts->guard.max_lease_ms + 1, left_ms;

    if (till_ms > INT64_MAX) till_ms = INT64_MAX;
    left_ms = (int64_t)till_ms > now_ms ? (int64_t)till_ms - now_ms : 0;
    if (left_ms > 0 && longest_ms < UINT32_MAX && (int64_t)longest_ms + 1 > most_ms) most_ms = (int64_t)longest_ms + 1;
    if (facts->guard.stale || left_ms > most_ms) return most_ms;
    return left_ms;
}

void examine_read_guard(struct examine_facts *facts, const char *text, size_t length)
{
    /* 1|N|set|max_lease|run_id|master_replid|quarantine until[|longest max_lease] */
    char copy[512], *at = copy, *part[8] = {NULL};
    uint64_t n_nodes = 0, lease_ms = 0, till_ms = 0, longest_ms = 0;
    size_t n = 0;

    facts->guard.state = EXAMINE_GUARD_FOREIGN;
    if (length >= sizeof(copy) || memchr(text, '\0', length) != NULL) return;
    error_printable(copy, sizeof(copy), text, length);
    while (n < 8 && (part[n] = next_part(&at)) != NULL) n++;
    if (n < 7 || at != NULL || strcmp(part[0], "1") != 0) return;
    if (!to_number(part[1], &n_nodes) || !to_number(part[3], &lease_ms) || !to_number(part[6], &till_ms) ||
        (n == 8 && !to_number(part[7], &longest_ms)))
        return;
    if (n_nodes > UINT32_MAX || lease_ms > UINT32_MAX || longest_ms > UINT32_MAX ||
        strlen(part[2]) >= sizeof(facts->guard.set))
        return;
    facts->guard.state = EXAMINE_GUARD_THERE;
    facts->guard.n_nodes = (uint32_t)n_nodes;
    facts->guard.max_lease_ms = (uint32_t)lease_ms;
    facts->guard.longest_ms = (uint32_t)longest_ms;
    memcpy(facts->guard.set, part[2], strlen(part[2]) + 1);
    facts->guard.stale = (facts->run_id[0] != '\0' && strcmp(facts->run_id, part[4]) != 0) ||
                         (facts->replid[0] != '\0' && strcmp(facts->replid, part[5]) != 0);
    /* What is left of a quarantine is known by the server's clock only. */
    if (facts->has_clock || facts->guard.stale) facts->guard.quarantine_ms = quarantine_ms(facts, till_ms, longest_ms);
}

void examine_read_time(struct examine_facts *facts, int64_t server_us, int64_t before_us, int64_t after_us)
{
    int64_t way_us = after_us - before_us;
    uint32_t error_us;

    /* Our own clock was set back meanwhile, the round trip was absurdly long, or the answer is no time. */
    if (way_us < 0 || way_us > UINT32_MAX || server_us < 0) return;
    facts->time_us = server_us;
    /* The error is half a round trip at most, either way. */
    error_us = (uint32_t)(way_us / 2) + 1;
    if (facts->has_clock && error_us >= facts->offset_error_us) return;
    facts->has_clock = true;
    facts->offset_us = server_us - (before_us + way_us / 2);
    facts->offset_error_us = error_us;
}

static bool begins(const char *text, size_t length, const char *front)
{
    return length >= strlen(front) && memcmp(text, front, strlen(front)) == 0;
}

void examine_read_refusal(struct examine_facts *facts, enum examine_right right, enum examine_name name,
                          const char *text, size_t length)
{
    static const char by_command[] = " run the '";
    /* Removed by rename-command, which comes to the same. */
    bool unknown = begins(text, length, "ERR unknown command");

    /* The server asks its disk, its memory and its replicas before it looks at the arguments. */
    if (right == EXAMINE_SET && name == EXAMINE_LOCK && error_classify(text, length).fault == FAULT_REFUSED)
        error_describe(facts->write_error, sizeof(facts->write_error), "SET", text, length);
    if (!unknown && !begins(text, length, "NOPERM")) return;
    if (unknown || name == EXAMINE_NAMES || memmem(text, length, by_command, sizeof(by_command) - 1) != NULL)
        facts->refused_rights |= 1u << right;
    else
        facts->refused_names |= 1u << name;
}
