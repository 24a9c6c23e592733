/* SPDX-License-Identifier: BSD-3-Clause */
/* examine_read.h - what an examined server answered, as facts; no I/O */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/dialect/guard_text.h"

#define EXAMINE_TEXT_SIZE 320
#define EXAMINE_ID_SIZE   64
#define EXAMINE_WORD_SIZE 24
#define EXAMINE_SET_SIZE  GUARD_SET_SIZE

/* The commands of the library, each a bit of refused_rights. */
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
    EXAMINE_TYPE,    /* break only */
    EXAMINE_PUBLISH, /* notifies waiters of a release */
    EXAMINE_SETNAME, /* the name in CLIENT LIST */
    EXAMINE_RIGHTS,
};

/* The kinds of names in those commands, each a bit of refused_names. */
enum examine_name { EXAMINE_LOCK, EXAMINE_GUARD, EXAMINE_FENCE, EXAMINE_CHANNEL, EXAMINE_NAMES };

enum examine_guard_state {
    EXAMINE_GUARD_UNKNOWN = 0, /* could not be read */
    EXAMINE_GUARD_NONE,
    EXAMINE_GUARD_FOREIGN, /* the key has another value than a guard */
    EXAMINE_GUARD_THERE,
};

struct examine_guard {
    enum examine_guard_state state;
    uint32_t n_nodes, max_lease_ms;
    uint32_t longest_ms; /* the longest max_lease that its last quarantine was for */
    char set[EXAMINE_SET_SIZE];
    bool stale;            /* written by another process of the server: the next client quarantines it */
    uint64_t first_ms;     /* of the quarantine of a first contact, which has let no client vote yet; 0: none */
    int64_t quarantine_ms; /* still to come; 0: none */
    enum quarantine_cause cause;
    uint32_t wanted_ms; /* the max lease of that client, where that is the cause */
    uint64_t until_ms;  /* by the server's clock */
};

/* "" and false where it is not known. */
struct examine_facts {
    bool reachable; /* it answers our questions */
    bool nomem;
    bool loopback; /* the connection never leaves this machine */
    bool tls;      /* it is encrypted */
    bool too_old;
    bool has_memory, has_clients, has_clock;
    bool has_persistence, aof, aof_broken;
    char error[EXAMINE_TEXT_SIZE]; /* why it is not reachable */
    char kind[8], version[EXAMINE_WORD_SIZE];
    char mode[EXAMINE_WORD_SIZE], role[EXAMINE_WORD_SIZE];
    char run_id[EXAMINE_ID_SIZE], replid[EXAMINE_ID_SIZE];
    char policy[EXAMINE_WORD_SIZE];
    char appendfsync[EXAMINE_WORD_SIZE]; /* "" also where the right to ask is missing */
    char guard_error[EXAMINE_TEXT_SIZE]; /* why the guard is unknown */
    char write_error[EXAMINE_TEXT_SIZE]; /* why it refuses whatever writes */
    uint32_t latency_us;                 /* the shortest of several */
    uint32_t replicas;
    uint32_t clients, maxclients;
    uint32_t refused_rights, refused_names;
    uint32_t offset_error_us; /* either way */
    int64_t offset_us;        /* its clock minus ours */
    int64_t time_us;          /* its clock when it was asked for it */
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
    EXAMINE_SECTIONS
};

/* examine_read_info - one section of INFO. */
void examine_read_info(struct examine_facts *, enum examine_section, const char *text, size_t length);
/* examine_read_guard - the value of the guard key; run_id, replid and time_us are known by then, if ever. */
void examine_read_guard(struct examine_facts *, const char *text, size_t length);
/* examine_read_time - the server's time, asked for at before_us and received at after_us by our own wall clock;
 * the reading with the shortest round trip is kept. */
void examine_read_time(struct examine_facts *, int64_t server_us, int64_t before_us, int64_t after_us);
/* examine_read_refusal - an error reply to a probe of that right on that name (EXAMINE_NAMES: none). */
void examine_read_refusal(struct examine_facts *, enum examine_right, enum examine_name, const char *text,
                          size_t length);
