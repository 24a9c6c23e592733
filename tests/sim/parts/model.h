/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - a Redis server's memory and manners: RESP in and out, keys that expire, our Lua scripts, notices
 *
 * It has no clock and no socket: the time by the server's own clock is an argument. tests/sim/differential shows
 * that it answers as real servers do. A command that it does not know it refuses with a panic of the test, not with
 * a reply, so that nothing is proven by an answer that no server gives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;
struct session;

/* The version that the model is compared with. */
#define MODEL_VERSION "7.0.15"

/* What the process is; model_start() takes it, and `manners` may change while it runs. */
struct model_manners {
    uint64_t run, replid;    /* run_id and master_replid are made of these */
    uint32_t repl_input;     /* the bytes that it took from a master */
    const char *version;     /* "6.2.14"; NULL: MODEL_VERSION */
    const char *valkey;      /* "9.1.2", which says that it is Redis 7.2.4; NULL: it is a Redis */
    uint64_t started_us;     /* by its clock then; 0: when the clock's time began */
    bool replica;            /* answers writes with READONLY; role:slave */
    bool master_down;        /* a replica that serves no stale data: MASTERDOWN */
    bool loading;            /* LOADING */
    bool busy;               /* a script runs for long: BUSY */
    bool full;               /* maxmemory is reached: OOM for what needs memory */
    bool misconf;            /* cannot save: MISCONF for writes */
    bool evicts;             /* maxmemory with an evicting policy, as INFO and CONFIG say */
    bool cluster;            /* cluster_enabled:1 */
    bool no_info_in_scripts; /* INFO is not allowed there, by ACL */
    bool no_publish;         /* nor PUBLISH, by ACL: NOPERM */
    const char *password;    /* NULL: none */
    const char *denied;      /* further commands denied by ACL, "TIME SUBSCRIBE"; NULL: none */
    uint32_t max_clients;    /* 0: any number */
    uint32_t lost_permille;  /* of notices: they do not come to who listens */
    uint32_t push_one_in;    /* commands: before one, a tracked key is told as changed, and is not; 0: never */
};

enum model_type { MODEL_NONE, MODEL_STRING, MODEL_HASH, MODEL_OTHER };

/* What stands at a key; valid until the next command. */
struct model_value {
    enum model_type type;
    const char *owner; /* a string's value; of a hash its one field */
    size_t owner_length;
    uint64_t expires_ms; /* by the server's clock; 0: never */
};

/* An argument of a command; it points into what was received. */
struct word {
    const char *text;
    size_t length;
};

struct model_events {
    /* A command has made, changed or deleted that key, or the key was found expired. */
    void (*changed)(void *arg, const char *key, size_t length);
    /* A command was executed; its words as text, cut. For traces and counts: scripts by their name. */
    void (*executed)(void *arg, struct session *, const char *command);
    /* The same behind it, with all words, and with the reply as it is sent; script: its name, or NULL. */
    void (*replied)(void *arg, struct session *, const char *script, const struct word *words, size_t n_words,
                    const struct word *reply);
    void *arg;
};

struct model *model_new(void);
void model_free(struct model *);
/* model_start - start a process, which knows no script; its run_id and replid are in manners. The sessions of the
 * process before must be closed. empty: without the memory of before. */
void model_start(struct model *, const struct model_manners *, bool empty, const struct model_events *);
struct model_manners *model_manners(struct model *);
/* model_lost_notices - return how many notices were lost since the start. */
uint64_t model_lost_notices(const struct model *);
/* model_pushes - return how many changes of keys it has reported since then, and how many of them were none. */
void model_pushes(const struct model *, uint64_t *ret_pushes, uint64_t *ret_false);

/* model_open - open a connection. write() gets replies and notices. hang_up: the server closes the connection (CLIENT
 * KILL, max_clients, a protocol error); call model_close() all the same. */
struct session *model_open(struct model *, void (*write)(void *arg, const void *bytes, size_t size),
                           void (*hang_up)(void *arg), void *arg);
void model_close(struct session *);
/* model_feed - take bytes that have arrived.
 * model_step - execute the first whole command of them at the server's time wall_us. False: there is none. */
void model_feed(struct session *, const void *bytes, size_t size);
bool model_step(struct session *, uint64_t wall_us);
/* model_has_input - return whether bytes are left, which are a whole command or its beginning. */
bool model_has_input(const struct session *);
void *model_session_arg(const struct session *);

/* model_look - read the value of the key at that time of the server. False: there is none.
 * model_each - call the function for every key. */
bool model_look(const struct model *, const char *key, size_t length, uint64_t wall_us, struct model_value *ret);
void model_each(const struct model *, uint64_t wall_us,
                void (*each)(void *arg, const char *key, size_t length, const struct model_value *), void *arg);
/* model_members - call the function for each member of the sorted set at the key, the lowest score first. */
void model_members(const struct model *, const char *key, size_t length, uint64_t wall_us,
                   void (*each)(void *arg, const char *member, size_t length, double score), void *arg);
/* model_expire - delete all expired keys, as a server does in the background ten times a second. Otherwise a key is
 * deleted when a command finds it, and comes back if the clock steps back before that. */
void model_expire(struct model *, uint64_t wall_us);
/* model_save - copy all keys, as to a replica or a file on disk.
 * model_load - replace all keys by a copy; NULL: by none.
 * model_forget - free a copy. */
struct model_memory *model_save(const struct model *);
void model_load(struct model *, const struct model_memory *);
void model_forget(struct model_memory *);
/* model_do - run a command of the operator in a session of its own, as redis-cli does. Return the reply as text. */
const char *model_do(struct model *, uint64_t wall_us, const char *const *words, size_t n_words);
