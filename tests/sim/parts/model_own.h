/* SPDX-License-Identifier: BSD-3-Clause */
/* model_own.h - what the model is made of, for the files model*.c only */
#pragma once

#include "base/hashtable.h"
#include "base/list.h"
#include "model.h"
#include "model_store.h"

/* Replies that are being written. */
struct out {
    char *bytes;
    size_t used, room;
    bool resp3; /* of a session that speaks it; not what scripts see */
};

/* Bytes that were received, and not executed yet. */
struct inbox {
    char *bytes;
    size_t start, used, room;
    size_t need; /* before so many there is no whole command */
};

#define MODEL_DBS 16

enum command_flag {
    WRITES = 1,
    DENY_OOM = 2,
    NO_SCRIPT = 4,
    LOADS = 8,  /* also while loading */
    STALE = 16, /* also by a replica without its master */
    NO_AUTH = 32,
    WHEN_BUSY = 64, /* also while a script runs for long */
    IN_PUBSUB = 128,
    UNQUEUED = 256, /* is executed at once between MULTI and EXEC */
    CONTAINER = 512,
};

struct call;

struct command {
    const char *name; /* "client|kill" */
    int arity;        /* words; -n: n at least */
    unsigned flags;
    void (*run)(struct call *);
};

/* A command while it is executed. */
struct call {
    struct model *model;
    struct session *session;
    const struct command *command;
    const struct word *words;
    size_t n_words;
    struct out *out;
    const struct call *script; /* that calls it; NULL: none does */
    bool in_exec;
};

/* Between MULTI and EXEC. */
struct queued {
    struct link link;
    const struct command *command;
    size_t n_words;
    struct word words[];
};

struct session {
    struct link link; /* in its model */
    struct model *model;
    void (*write)(void *arg, const void *bytes, size_t size);
    void (*hang_up)(void *arg);
    void *arg;
    uint64_t id;
    char name[64]; /* by CLIENT SETNAME, cut */
    uint32_t db;
    bool operator; /* may do everything */
    bool authed, refused;
    bool resp3;
    bool tracking, opt_in, no_loop;  /* by CLIENT TRACKING */
    bool caching;                    /* CLIENT CACHING YES was the last command */
    bool ends, told;                 /* the server closes it; hang_up() was called */
    bool multi, dirty;               /* after MULTI; EXEC will fail */
    unsigned queued_any, queued_all; /* flags of some of them, of all of them */
    struct list queued;
    struct list subscriptions;
    struct list tracked; /* keys */
    struct inbox in;
};

/* Who listens to a channel, in the order of coming. */
struct channel {
    struct hashtable_entry hashed;
    struct list subscriptions;
    struct blob name;
};

struct subscription {
    struct link of_session, of_channel;
    struct session *session;
    struct channel *channel;
};

enum info_section {
    INFO_SERVER,
    INFO_CLIENTS,
    INFO_MEMORY,
    INFO_PERSISTENCE,
    INFO_STATS,
    INFO_COMMANDS,
    INFO_REPLICATION,
    INFO_SECTIONS
};

struct model {
    struct model_manners manners;
    struct model_events events;
    uint64_t wall_us; /* while a command is executed */
    uint64_t last_id;
    uint64_t n_notices, n_lost_notices, n_rooms, n_pushes, n_false_pushes;
    size_t n_tracked; /* of all sessions */
    bool ending;      /* of some session, whose hang_up() is due */
    struct store store;
    struct list sessions;
    struct hashtable channels;
    unsigned char *knows; /* of each script, by its number: it is in the script cache */
    size_t n_knows;
    struct out out, script_out, notice, info, told, behind;
    struct word *words;
    size_t room_words;
    struct inbox spare; /* of a session that was closed */
    char text[512];     /* for events.executed */
};

/* model_version - 0x070010 is 7.0.16. model_valkey: that of Valkey, or 0. */
#define MODEL_VERSION_7   0x070000u
#define MODEL_VERSION_7_2 0x070200u
uint32_t model_version(const struct model *);
uint32_t model_valkey(const struct model *);
const char *model_version_text(const struct model *);
/* model_panic - the test asks for what the model does not know. */
_Noreturn void model_panic(const char *what, const char *name, size_t length);
extern const struct alloc *model_alloc(void);
void *model_resized(void *block, size_t size);

/* ---- replies ---- */

void out_bytes(struct out *, const void *bytes, size_t size);
void out_text(struct out *, const char *text);        /* as it is */
void out_status(struct out *, const char *text);      /* +text */
void out_status_line(struct out *, const char *text); /* likewise, on one line whatever it is */
void out_error(struct out *, const char *format, ...) /* -text on one line */
    __attribute__((format(printf, 2, 3)));
void out_number(struct out *, int64_t number);
void out_bulk(struct out *, const char *bytes, size_t length);
void out_bulk_number(struct out *, int64_t number);
void out_bulk_text(struct out *, const char *text);
void out_nil(struct out *);
void out_array(struct out *, size_t n);
void out_push(struct out *, size_t n);                             /* of RESP2: an array */
void out_map(struct out *, size_t n);                              /* of RESP2: an array of names and values */
void out_verbatim(struct out *, const char *bytes, size_t length); /* of RESP2: a bulk string */
void out_decimal(struct out *, int64_t number);                    /* the digits only */
void out_free(struct out *);
/* write_decimal - the digits, and no NUL; returns how many bytes, 20 at most. */
size_t write_decimal(char *ret, int64_t number);

/* ---- words ---- */

bool word_is(const struct word *, const char *lower); /* in any case */
/* word_number - as Redis reads whole numbers: nothing but the number. */
bool word_number(const struct word *, int64_t *ret);
/* call_number - likewise; else the usual error was replied. */
bool call_number(struct call *, size_t index, int64_t *ret);

/* ---- keys ---- */

uint64_t call_now_ms(const struct call *);
/* call_key - what stands at the key that the word names; NULL: nothing, or it has expired. */
struct entry *call_key(struct call *, size_t index);
/* call_key_of - likewise; false: it has another type, and the error was replied. */
bool call_key_of(struct call *, size_t index, enum value_type, struct entry **ret);
struct entry *call_make(struct call *, size_t index, enum value_type);
void call_changed(struct call *, const struct entry *);
void call_remove(struct call *, struct entry *);

/* entry_score - of the sorted set's member that is the item `at`. */
double entry_score(const struct entry *, size_t at);

/* ---- execution ---- */

/* command_find - NULL: no such command; the reply was written. A subcommand is found by its first two words. */
const struct command *command_find(const struct model *, const struct word *words, size_t n_words, struct out *);
bool command_takes(const struct command *, size_t n_words);
bool command_denied(const struct call *);
void command_run(struct call *);
/* command_execute - the whole of it: what forbids it now, MULTI, or its reply. */
void command_execute(struct session *, const struct word *words, size_t n_words, struct out *);
void session_end(struct session *);
void session_forget_queue(struct session *);
void session_unsubscribe_all(struct session *);
void session_forget_tracked(struct session *);

#define ERROR_SYNTAX   "ERR syntax error"
#define ERROR_NUMBER   "ERR value is not an integer or out of range"
#define ERROR_TYPE     "WRONGTYPE Operation against a key holding the wrong kind of value"
#define ERROR_OOM      "OOM command not allowed when used memory > 'maxmemory'."
#define ERROR_READONLY "READONLY You can't write against a read only replica."
#define ERROR_STALE    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
#define ERROR_MISCONF                                                                                                  \
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "  \
    "may modify the data set are disabled, because this instance is configured to report errors during writes if RDB " \
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "  \
    "error."

/* ---- tracking ---- */

/* tracking_changed - sessions that have read the key hear of it. by: whose command did it; NULL: nobody's. */
void tracking_changed(struct model *, const struct session *by, const char *key, size_t length);
void tracking_flushed(struct model *, const struct session *by);
/* tracking_read - the command was executed. */
void tracking_read(const struct call *);
/* tracking_make_room - before a command. */
void tracking_make_room(struct model *);

/* ---- scripts ---- */

void script_open(void); /* a model more that uses this thread's Lua; script_close: one less */
void script_close(void);
/* script_name - what our sources call it; NULL: none of ours. By its text, or by its hash. */
const char *script_name(const struct word *text_or_sha);

/* The commands, by file. */
void run_get(struct call *), run_mget(struct call *), run_set(struct call *), run_setnx(struct call *),
    run_getdel(struct call *), run_msetex(struct call *);
void run_strlen(struct call *), run_getrange(struct call *), run_append(struct call *);
void run_incr(struct call *), run_incrby(struct call *);
void run_del(struct call *), run_exists(struct call *), run_type(struct call *);
void run_ttl(struct call *), run_pttl(struct call *), run_persist(struct call *);
void run_expire(struct call *), run_pexpire(struct call *), run_expireat(struct call *), run_pexpireat(struct call *);
void run_flushall(struct call *), run_flushdb(struct call *), run_scan(struct call *);

void run_hset(struct call *), run_hget(struct call *), run_hdel(struct call *), run_hexists(struct call *);
void run_hgetall(struct call *), run_hkeys(struct call *), run_hlen(struct call *);
void run_hincrby(struct call *), run_hscan(struct call *);
void run_lpush(struct call *), run_rpush(struct call *), run_lrange(struct call *), run_llen(struct call *);
void run_sadd(struct call *), run_scard(struct call *);

void run_zadd(struct call *), run_zrem(struct call *), run_zremrangebyscore(struct call *);
void run_zscore(struct call *), run_zcard(struct call *), run_zcount(struct call *);
void run_zrange(struct call *), run_zrangebyscore(struct call *);

void run_auth(struct call *), run_ping(struct call *), run_select(struct call *), run_time(struct call *);
void run_acl_whoami(struct call *);
void run_client_setname(struct call *), run_client_getname(struct call *), run_client_id(struct call *);
void run_client_kill(struct call *), run_client_tracking(struct call *), run_client_caching(struct call *);
void run_hello(struct call *);
void run_multi(struct call *), run_exec(struct call *), run_discard(struct call *);
void run_subscribe(struct call *), run_unsubscribe(struct call *), run_publish(struct call *);
void run_pubsub_numpat(struct call *), run_pubsub_numsub(struct call *);

void run_info(struct call *), run_config_get(struct call *);

void run_eval(struct call *), run_evalsha(struct call *);
void run_script_load(struct call *), run_script_exists(struct call *), run_script_flush(struct call *);
