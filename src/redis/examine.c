/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/examine.h"

#include <assert.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "redis/dialect/guard.h"
#include "redis/link/conn.h"
#include "redis/link/dial.h"
#include "redis/wire/errors.h"
#include "redis/wire/reply.h"

#define EXAMINE_READ_SIZE   16384
#define EXAMINE_CLOCK_TIMES 4 /* the first way is longer than the others: caches are cold */
#define EXAMINE_ASKS_MAX    40
#define EXAMINE_WORDS_MAX   5

enum ask_kind { ASK_AUTH, ASK_SELECT, ASK_TIME, ASK_INFO, ASK_FSYNC, ASK_GUARD, ASK_PROBE };

/* A word that begins with NAME_MARK stands for a name of this examination: the digit behind it says which. */
#define NAME_MARK    '\1'
#define NAME_LOCK    "\1\60"
#define NAME_GUARD   "\1\61"
#define NAME_FENCE   "\1\62"
#define NAME_CHANNEL "\1\63"

struct ask {
    enum ask_kind kind;
    enum examine_right right;
    enum examine_name name; /* EXAMINE_NAMES: it is about none */
    enum examine_section section;
    const char *words[EXAMINE_WORDS_MAX];
};

static const struct ask ask_auth = {.kind = ASK_AUTH};
static const struct ask ask_select = {.kind = ASK_SELECT};
static const struct ask ask_time = {ASK_TIME, EXAMINE_TIME, EXAMINE_NAMES, EXAMINE_SECTIONS, {"TIME"}};

#define ASK_ABOUT(part, text)                                                                                  \
    {                                                                                                          \
        ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, part,                                                           \
        {                                                                                                      \
            "INFO", text                                                                                       \
        }                                                                                                      \
    }
#define ASK_RIGHT(right, name, ...)                                                                            \
    {                                                                                                          \
        ASK_PROBE, right, name, EXAMINE_SECTIONS,                                                              \
        {                                                                                                      \
            __VA_ARGS__                                                                                        \
        }                                                                                                      \
    }

/*
 * In this order, for the guard is read with the server's run_id at hand. The probes: SET with NX and XX,
 * PEXPIRE with a word for a number and a script that does not compile are errors before they do anything, but
 * not before the server looked whether we may; the lock key is a random one, and nobody subscribes to its
 * channel.
 */
static const struct ask ask_rest[] = {
    ASK_ABOUT(EXAMINE_SERVER, "server"),
    ASK_ABOUT(EXAMINE_REPLICATION, "replication"),
    ASK_ABOUT(EXAMINE_MEMORY, "memory"),
    ASK_ABOUT(EXAMINE_PERSISTENCE, "persistence"),
    ASK_ABOUT(EXAMINE_CLIENTS, "clients"),
    {ASK_FSYNC, EXAMINE_RIGHTS, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CONFIG", "GET", "appendfsync"}},
    {ASK_GUARD, EXAMINE_GET, EXAMINE_GUARD, EXAMINE_SECTIONS, {"GET", NAME_GUARD}},
    ASK_RIGHT(EXAMINE_SET, EXAMINE_GUARD, "SET", NAME_GUARD, "-", "NX", "XX"),
    ASK_RIGHT(EXAMINE_GET, EXAMINE_LOCK, "GET", NAME_LOCK),
    ASK_RIGHT(EXAMINE_SET, EXAMINE_LOCK, "SET", NAME_LOCK, "-", "NX", "XX"),
    ASK_RIGHT(EXAMINE_PTTL, EXAMINE_LOCK, "PTTL", NAME_LOCK),
    ASK_RIGHT(EXAMINE_PEXPIRE, EXAMINE_LOCK, "PEXPIRE", NAME_LOCK, "-"),
    ASK_RIGHT(EXAMINE_DEL, EXAMINE_LOCK, "DEL", NAME_LOCK),
    ASK_RIGHT(EXAMINE_TYPE, EXAMINE_LOCK, "TYPE", NAME_LOCK),
    ASK_RIGHT(EXAMINE_GET, EXAMINE_FENCE, "GET", NAME_FENCE),
    ASK_RIGHT(EXAMINE_SET, EXAMINE_FENCE, "SET", NAME_FENCE, "-", "NX", "XX"),
    ASK_RIGHT(EXAMINE_PTTL, EXAMINE_FENCE, "PTTL", NAME_FENCE),
    ASK_RIGHT(EXAMINE_PUBLISH, EXAMINE_CHANNEL, "PUBLISH", NAME_CHANNEL, ""),
    ASK_RIGHT(EXAMINE_EVAL, EXAMINE_LOCK, "EVAL", "(", "1", NAME_LOCK),
    ASK_RIGHT(EXAMINE_EVALSHA, EXAMINE_LOCK, "EVALSHA", "0000000000000000000000000000000000000000", "1",
              NAME_LOCK),
    ASK_RIGHT(EXAMINE_SCRIPT_LOAD, EXAMINE_NAMES, "SCRIPT", "LOAD", "("),
    ASK_RIGHT(EXAMINE_SETNAME, EXAMINE_NAMES, "CLIENT", "SETNAME", "quorlock-doctor"),
};
enum { N_REST = sizeof(ask_rest) / sizeof(ask_rest[0]) };
_Static_assert(N_REST <= EXAMINE_ASKS_MAX, "all questions are in flight at once");

enum examine_state { EXAMINE_NEW, EXAMINE_RESOLVE, EXAMINE_TCP, EXAMINE_HELLO, EXAMINE_CLOCK, EXAMINE_REST };

struct examine {
    struct examine_config config;
    struct examine_facts *facts;
    enum examine_state state;
    struct event *timer;
    uint64_t step_us, end_us; /* deadlines */
    struct dial dial;
    struct conn conn;
    struct reply_parser parser;
    const struct ask *asked[EXAMINE_ASKS_MAX]; /* in flight, in order */
    size_t n_asked, at;
    uint32_t clock_times;
    uint64_t sent_us;
    int64_t sent_wall_us;
    char *names[EXAMINE_NAMES];
};

static uint64_t examine_now(const struct examine *examine)
{
    return examine->config.now_us(examine->config.now_arg);
}

static int64_t wall_us(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void examine_free(struct examine *examine)
{
    const struct alloc *alloc = examine->config.alloc;
    dial_cancel(&examine->dial);
    conn_clear(&examine->conn);
    reply_clear(&examine->parser);
    if (examine->timer != NULL) event_free(examine->timer);
    for (size_t i = 0; i < EXAMINE_NAMES; i++) alloc_free(alloc, examine->names[i]);
    alloc_free(alloc, examine);
}

void examine_cancel(struct examine *examine)
{
    if (examine != NULL) examine_free(examine);
}

/* The last thing that happens in an event: the examination is gone after it. */
static void end(struct examine *examine)
{
    void (*done)(void *) = examine->config.done;
    void *arg = examine->config.arg;
    examine_free(examine);
    done(arg);
}

__attribute__((format(printf, 2, 3))) static void examine_fail(struct examine *examine, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(examine->facts->error, sizeof(examine->facts->error), format, args);
    va_end(args);
    end(examine);
}

static void fail_nomem(struct examine *examine)
{
    examine->facts->nomem = true;
    examine_fail(examine, "out of memory");
}

static void arm(struct examine *examine)
{
    uint64_t now_us = examine_now(examine);
    uint64_t left_us = examine->step_us > now_us ? examine->step_us - now_us : 0;
    struct timeval delay = {.tv_sec = (time_t)(left_us / 1000000u),
                            .tv_usec = (suseconds_t)(left_us % 1000000u)};
    (void)event_add(examine->timer, &delay);
}

static void examine_step(struct examine *examine, enum examine_state state)
{
    examine->state = state;
    examine->step_us = examine_now(examine) + 1000ull * examine->config.timeout_ms;
    if (examine->step_us > examine->end_us) examine->step_us = examine->end_us;
    arm(examine);
}

/* ---- asking ---- */

static void append(struct examine *examine, const struct ask *ask)
{
    struct bytes *out = &examine->conn.out;
    size_t n_words = 0;
    assert(examine->n_asked < EXAMINE_ASKS_MAX);
    examine->asked[examine->n_asked++] = ask;
    while (n_words < EXAMINE_WORDS_MAX && ask->words[n_words] != NULL) n_words++;
    bytes_command(out, n_words);
    for (size_t i = 0; i < n_words; i++) {
        const char *word = ask->words[i];
        bytes_text(out, word[0] == NAME_MARK ? examine->names[word[1] - '0'] : word);
    }
}

static void append_hello(struct examine *examine)
{
    const struct uri *uri = examine->config.uri;
    struct bytes *out = &examine->conn.out;
    if (uri->user != NULL || uri->password != NULL) {
        bytes_command(out, uri->user != NULL ? 3 : 2);
        bytes_text(out, "AUTH");
        if (uri->user != NULL) bytes_text(out, uri->user);
        bytes_text(out, uri->password != NULL ? uri->password : "");
        examine->asked[examine->n_asked++] = &ask_auth;
        conn_secret(&examine->conn);
    }
    if (uri->db) {
        bytes_command(out, 2);
        bytes_text(out, "SELECT");
        bytes_number(out, uri->db);
        examine->asked[examine->n_asked++] = &ask_select;
    }
}

/* What was appended leaves at the end of this turn. */
static bool examine_send(struct examine *examine)
{
    if (examine->conn.out.fault) {
        fail_nomem(examine);
        return false;
    }
    examine->sent_us = examine_now(examine);
    examine->sent_wall_us = wall_us();
    conn_wake(&examine->conn);
    return true;
}

/* All questions of a step are answered: the next step. False: the examination is gone. */
static bool next(struct examine *examine)
{
    examine->n_asked = examine->at = 0;
    if (examine->state == EXAMINE_TCP) {
        examine_step(examine, EXAMINE_HELLO);
        append_hello(examine);
        if (examine->n_asked) return examine_send(examine);
    }
    if (examine->state == EXAMINE_HELLO) examine_step(examine, EXAMINE_CLOCK);
    if (examine->state == EXAMINE_CLOCK && examine->clock_times < EXAMINE_CLOCK_TIMES) {
        examine->clock_times++;
        append(examine, &ask_time);
        return examine_send(examine);
    }
    if (examine->state == EXAMINE_CLOCK) {
        examine_step(examine, EXAMINE_REST);
        for (size_t i = 0; i < N_REST; i++) append(examine, &ask_rest[i]);
        return examine_send(examine);
    }
    /* Something that says OK to everything is no Redis server. */
    if (!examine->facts->kind[0] && !(examine->facts->refused_rights & (1u << EXAMINE_INFO))) {
        examine_fail(examine, "not a Redis server? INFO tells no version");
        return false;
    }
    examine->facts->reachable = true;
    end(examine);
    return false;
}

/* ---- answers ---- */

static bool begins(const struct reply_item *item, const char *front)
{
    size_t n = strlen(front);
    return item->length >= n && memcmp(item->text, front, n) == 0;
}

static void describe(const struct examine *examine, const char *what, const struct reply_item *item, char *ret,
                     size_t size)
{
    if (uri_tells_password(examine->config.uri, item->text, item->length))
        snprintf(ret, size, "%s: refused", what);
    else
        error_describe(ret, size, what, item->text, item->length);
}

/* An error that ends the examination: we are not let in. */
static bool shut_out(const struct ask *ask, const struct reply_item *item)
{
    if (ask->kind == ASK_AUTH || ask->kind == ASK_SELECT) return true;
    return begins(item, "NOAUTH") || begins(item, "DENIED") || begins(item, "ERR max number of clients");
}

/* False: the examination is gone. */
static bool on_error(struct examine *examine, const struct ask *ask, const struct reply_item *item)
{
    struct examine_facts *facts = examine->facts;
    if (shut_out(ask, item)) {
        bool first = ask->kind != ASK_AUTH && ask->kind != ASK_SELECT;
        const char *what = ask->kind == ASK_AUTH ? "AUTH" : ask->kind == ASK_SELECT ? "SELECT" : "connect";
        if (begins(item, "WRONGPASS"))
            snprintf(facts->error, sizeof(facts->error),
                     "WRONGPASS: wrong password, or that user is unknown or disabled");
        else
            describe(examine, first ? "refused" : what, item, facts->error, sizeof(facts->error));
        end(examine);
        return false;
    }
    if (ask->kind == ASK_GUARD)
        describe(examine, "GET " GUARD_KEY, item, facts->guard_error, sizeof(facts->guard_error));
    if (ask->right < EXAMINE_RIGHTS)
        examine_read_refusal(facts, ask->right, ask->name, item->text, item->length);
    return true;
}

static void on_time(struct examine *examine, const struct reply *reply)
{
    uint64_t way_us = examine_now(examine) - examine->sent_us;
    uint32_t latency_us = way_us > UINT32_MAX ? UINT32_MAX : (uint32_t)way_us;
    struct examine_facts *facts = examine->facts;
    if (!facts->latency_us || latency_us < facts->latency_us) facts->latency_us = latency_us ? latency_us : 1;
    if (reply->self.type != REPLY_ARRAY || reply->n_elements != 2) return;
    if (reply->elements[0].type != REPLY_STRING || reply->elements[1].type != REPLY_STRING) return;
    /* Bounded by their digits, so that nothing overflows. */
    if (reply->elements[0].length > 11 || reply->elements[1].length > 6) return;
    int64_t server_us =
        strtoll(reply->elements[0].text, NULL, 10) * 1000000 + strtoll(reply->elements[1].text, NULL, 10);
    examine_read_time(facts, server_us, examine->sent_wall_us, wall_us());
}

static void on_value(struct examine *examine, const struct ask *ask, const struct reply *reply)
{
    struct examine_facts *facts = examine->facts;
    const struct reply_item *self = &reply->self;
    switch (ask->kind) {
    case ASK_INFO:
        if (self->type == REPLY_STRING) examine_read_info(facts, ask->section, self->text, self->length);
        break;
    case ASK_FSYNC:
        if (self->type == REPLY_ARRAY && reply->n_elements == 2 && reply->elements[1].type == REPLY_STRING)
            error_printable(facts->appendfsync, sizeof(facts->appendfsync), reply->elements[1].text,
                            reply->elements[1].length);
        break;
    case ASK_GUARD:
        if (self->type == REPLY_NIL) facts->guard.state = EXAMINE_GUARD_NONE;
        if (self->type == REPLY_STRING) examine_read_guard(facts, self->text, self->length);
        break;
    case ASK_AUTH:
    case ASK_SELECT:
    case ASK_TIME:
    case ASK_PROBE: break;
    }
}

/* False: the examination is gone. */
static bool on_reply(struct examine *examine, const struct reply *reply)
{
    if (examine->at == examine->n_asked) {
        examine_fail(examine, "not a Redis server? It speaks without being asked");
        return false;
    }
    const struct ask *ask = examine->asked[examine->at++];
    if (ask->kind == ASK_TIME) on_time(examine, reply);
    if (reply->self.type != REPLY_ERROR)
        on_value(examine, ask, reply);
    else if (!on_error(examine, ask, &reply->self))
        return false;
    return examine->at < examine->n_asked || next(examine);
}

/* False: the examination is gone. */
static bool take(struct examine *examine, const char *data, size_t length)
{
    const struct reply *reply = NULL;
    const char *why = NULL;
    reply_feed(&examine->parser, data, length);
    for (;;) {
        switch (reply_next(&examine->parser, &reply, &why)) {
        case REPLY_NONE: return true;
        case REPLY_READY:
            if (!on_reply(examine, reply)) return false;
            break;
        case REPLY_NOMEM: fail_nomem(examine); return false;
        case REPLY_BAD: examine_fail(examine, "not a Redis server? %s", why); return false;
        }
    }
}

/* Reads all there is. A server that shuts us out says so first; broken: nothing can be sent any more. */
static void on_readable(struct examine *examine, bool broken)
{
    char buffer[EXAMINE_READ_SIZE];
    int error = examine->conn.error;
    for (;;) {
        ssize_t n = conn_read(&examine->conn, buffer, sizeof(buffer));
        if (n == 0 && !broken) return;
        if (n < 0) error = examine->conn.error;
        if (n <= 0) {
            examine_fail(examine, "connection lost: %s", error ? strerror(error) : "the server closed it");
            return;
        }
        if (!take(examine, buffer, (size_t)n)) return;
    }
}

/* ---- connecting ---- */

static void follow(struct examine *examine, enum dial_result result)
{
    switch (result) {
    case DIAL_RESOLVING: examine_step(examine, EXAMINE_RESOLVE); break;
    case DIAL_CONNECTING: examine_step(examine, EXAMINE_TCP); break;
    case DIAL_FAILED: examine_fail(examine, "%s", examine->dial.why); break;
    case DIAL_NOMEM: fail_nomem(examine); break;
    }
}

static void fail_address(struct examine *examine, const char *problem)
{
    conn_close(&examine->conn);
    dial_blame(&examine->dial, problem);
    follow(examine, dial_next(&examine->dial));
}

static bool stays_here(const struct examine *examine)
{
    const struct sockaddr_storage *storage = dial_address(&examine->dial);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)storage;
    if (storage->ss_family == AF_UNIX) return true;
    if (storage->ss_family == AF_INET) return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return v6->sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void on_connected(struct examine *examine)
{
    int error = conn_finish(&examine->conn);
    if (error) {
        fail_address(examine, strerror(error));
        return;
    }
    if (!reply_open(&examine->parser)) {
        fail_nomem(examine);
        return;
    }
    examine->facts->loopback = stays_here(examine);
    (void)next(examine);
}

static void on_ready(void *arg, enum conn_ready ready)
{
    struct examine *examine = arg;
    if (ready == CONN_CONNECTED)
        on_connected(examine);
    else if (ready != CONN_SENT)
        on_readable(examine, ready == CONN_BROKEN);
}

static void on_resolved(void *arg)
{
    struct examine *examine = arg;
    follow(examine, dial_next(&examine->dial));
}

static void on_deadline(struct examine *examine)
{
    if (examine->state == EXAMINE_TCP && examine_now(examine) < examine->end_us) {
        char problem[64];
        snprintf(problem, sizeof(problem), "no answer within %u ms", (unsigned)examine->config.timeout_ms);
        fail_address(examine, problem);
        return;
    }
    examine_fail(examine, "no answer within %u ms: frozen, cut off, or busy",
                 (unsigned)examine->config.timeout_ms);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct examine *examine = arg;
    (void)fd;
    (void)what;
    if (examine->state == EXAMINE_NEW)
        follow(examine, dial_begin(&examine->dial));
    else if (examine_now(examine) >= examine->step_us)
        on_deadline(examine);
    else
        arm(examine); /* timers come early at times */
}

/* ---- life ---- */

static char *join(const struct alloc *alloc, const char *front, const char *name)
{
    size_t size = strlen(front) + strlen(name) + 1;
    char *text = alloc_zero(alloc, size);
    if (text != NULL) snprintf(text, size, "%s%s", front, name);
    return text;
}

/* The lock key is a random one, so that nobody has it. */
static bool make_names(struct examine *examine)
{
    const struct alloc *alloc = examine->config.alloc;
    unsigned long long number = 0;
    char key[48];
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
        number = examine_now(examine);
    snprintf(key, sizeof(key), "quorlock-doctor-%016llx", number);
    examine->names[EXAMINE_LOCK] = join(alloc, examine->config.key_prefix, key);
    if (examine->names[EXAMINE_LOCK] == NULL) return false;
    examine->names[EXAMINE_GUARD] = join(alloc, "", GUARD_KEY);
    examine->names[EXAMINE_FENCE] = join(alloc, "quorlock:fence:", examine->names[EXAMINE_LOCK]);
    examine->names[EXAMINE_CHANNEL] = join(alloc, "quorlock:released:", examine->names[EXAMINE_LOCK]);
    return examine->names[EXAMINE_GUARD] != NULL && examine->names[EXAMINE_FENCE] != NULL &&
           examine->names[EXAMINE_CHANNEL] != NULL;
}

struct examine *examine_start(const struct examine_config *config, struct examine_facts *facts)
{
    struct examine *examine = alloc_zero(config->alloc, sizeof(*examine));
    if (examine == NULL) return NULL;
    *facts = (struct examine_facts){0};
    examine->config = *config;
    examine->facts = facts;
    reply_init(&examine->parser, config->alloc);
    dial_init(&examine->dial, &examine->conn, config->alloc, config->uri, config->timeout_ms, on_resolved,
              examine);
    bool good = conn_init(&examine->conn, config->base, config->alloc, on_ready, examine);
    examine->timer = event_new(config->base, -1, 0, on_timer, examine);
    examine->end_us = examine_now(examine) + 1000ull * EXAMINE_STEPS * config->timeout_ms;
    if (!good || examine->timer == NULL || !make_names(examine)) {
        examine_free(examine);
        return NULL;
    }
    event_active(examine->timer, EV_TIMEOUT, 0);
    return examine;
}
