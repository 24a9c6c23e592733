/* SPDX-License-Identifier: BSD-3-Clause */
/* examine_read.h - turn the answers of an examined server into facts; no I/O */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/guard_text.h"

#define EXAMINE_TEXT_SIZE 320
#define EXAMINE_ID_SIZE   64
#define EXAMINE_WORD_SIZE 24
#define EXAMINE_SET_SIZE  GUARD_SET_SIZE

/* The commands that the library uses; each is a bit of refused_rights. */
enum examine_right {
    EXAMINE_INFO,
    EXAMINE_TIME,
    EXAMINE_GET,
    EXAMINE_SET,
    EXAMINE_PTTL,
    EXAMINE_PEXPIRE,
    EXAMINE_DEL,
    EXAMINE_EVAL,
    EXAMINE_EVALSHA,
    EXAMINE_TYPE,     /* only for break */
    EXAMINE_PUBLISH,  /* notifies waiters of a release */
    EXAMINE_SETNAME,  /* the name in CLIENT LIST */
    EXAMINE_TRACKING, /* the server tells of a change of the guard */
    EXAMINE_CACHING,  /* the same */
    EXAMINE_HELLO,    /* the same: the server can tell in RESP3 only */
    EXAMINE_EXISTS,   /* the server tells the holder of a change of its key */
    EXAMINE_MSETEX,   /* several locks at once; not refused by a server that does not have it */
    EXAMINE_RIGHTS,
};

/* The kinds of names in these commands; each is a bit of refused_names. */
enum examine_name { EXAMINE_LOCK, EXAMINE_GUARD, EXAMINE_FENCE, EXAMINE_CHANNEL, EXAMINE_NAMES };

enum examine_guard_state {
    EXAMINE_GUARD_UNKNOWN = 0, /* could not be read */
    EXAMINE_GUARD_NONE,
    EXAMINE_GUARD_FOREIGN, /* the value of the key is not a guard */
    EXAMINE_GUARD_THERE,
};

struct examine_guard {
    enum examine_guard_state state;
    uint32_t n_nodes, max_lease_ms;
    uint32_t longest_ms; /* the longest max_lease that its last quarantine covers */
    char set[EXAMINE_SET_SIZE];
    bool stale;            /* another process of the server wrote it: the next client quarantines the node */
    uint64_t first_ms;     /* the rest of the quarantine of a first contact, during which no vote is counted; 0: none */
    int64_t quarantine_ms; /* the rest of the quarantine; 0: none */
    enum quarantine_cause cause;
    uint32_t wanted_ms; /* the max lease of the refused client, if that is the cause */
    uint64_t until_ms;  /* the end of the quarantine by the server's clock */
};

/* Facts that are not known are "", 0 and false. */
struct examine_facts {
    bool reachable; /* it answered our questions */
    bool nomem;
    bool loopback; /* the connection stays on this machine */
    bool tls;      /* the connection is encrypted */
    bool too_old;
    bool has_memory, has_clients, has_clock;
    bool has_persistence, aof, aof_broken;
    bool no_config;                /* it has no command CONFIG: renamed or removed */
    char error[EXAMINE_TEXT_SIZE]; /* why it is not reachable */
    char kind[8], version[EXAMINE_WORD_SIZE];
    char other[EXAMINE_WORD_SIZE]; /* what HELLO says it is, if neither Redis nor Valkey */
    char mode[EXAMINE_WORD_SIZE], role[EXAMINE_WORD_SIZE];
    char run_id[EXAMINE_ID_SIZE], replid[EXAMINE_ID_SIZE];
    char user[EXAMINE_ID_SIZE]; /* of our connection: a certificate may be one, too */
    char policy[EXAMINE_WORD_SIZE];
    char appendfsync[EXAMINE_WORD_SIZE]; /* also "" if the user may not ask */
    char idle_s[EXAMINE_WORD_SIZE];      /* timeout, after which it ends a quiet connection, likewise */
    bool no_input, counts_all;           /* it took no data from another server, by a counter; that was never reset */
    char guard_error[EXAMINE_TEXT_SIZE]; /* why the guard is unknown */
    char write_error[EXAMINE_TEXT_SIZE]; /* why it refuses all writes */
    char no_lua[EXAMINE_TEXT_SIZE];      /* why it runs no script */
    bool no_database;                    /* the user may not use the database of the address */
    uint32_t latency_us;                 /* the shortest of several round trips */
    uint32_t replicas;
    uint32_t clients, maxclients;
    uint32_t refused_rights, refused_names;
    uint32_t unknown_rights;  /* commands that it does not have, or not by this name; all but MSETEX are refused, too */
    uint32_t offset_error_us; /* how far offset_us may be wrong, either way */
    int64_t offset_us;        /* its clock minus ours */
    int64_t time_us;          /* its clock at the latest reading */
    uint64_t used_memory, maxmemory;
    struct examine_guard guard;
};

const char *examine_right_text(enum examine_right);

enum examine_section {
    EXAMINE_SERVER,
    EXAMINE_REPLICATION,
    EXAMINE_MEMORY,
    EXAMINE_PERSISTENCE,
    EXAMINE_CLIENTS,
    EXAMINE_STATS,
    EXAMINE_COMMANDS,
    EXAMINE_SECTIONS
};

/* examine_read_info - read one section of INFO. */
void examine_read_info(struct examine_facts *, enum examine_section, const char *text, size_t length);
/* examine_read_guard - read the value of the guard key. INFO and the time must have been read before, if the
 * server tells them. */
void examine_read_guard(struct examine_facts *, const char *text, size_t length);
/* examine_read_time - read the server's time, asked for at before_us and received at after_us of our wall clock. The
 * reading with the shortest round trip is kept. */
void examine_read_time(struct examine_facts *, int64_t server_us, int64_t before_us, int64_t after_us);
/* examine_is_unknown - return whether the error reply reports a command or subcommand that the server does not have. */
bool examine_is_unknown(const char *text, size_t length);
/* examine_read_refusal - read an error reply to a probe of that right on that name (EXAMINE_NAMES: no name). */
void examine_read_refusal(struct examine_facts *, enum examine_right, enum examine_name, const char *text,
                          size_t length);
