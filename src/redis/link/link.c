/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/link.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/system.h"

#define LINK_READ_SIZE 16384
/* More than INFO in a handshake, or the answers to a batch of renewals: without memory the links go on. */
#define LINK_TEXTS_ROOM 8192

/* Each address of a name gets at least this long, or a whole try if that is shorter. A server at the other side of the
 * world answers in this time, however many addresses share the try. */
#define LINK_ADDRESS_MS 1000u

/* The option for the time that was over, in C and Python, and of the command. */
#define LINK_OPTION "(connect_timeout_ms, --connect-timeout)"

static void link_destroy(struct redis_link *link)
{
    conn_clear(&link->conn);
    if (link->timer != NULL) link->system->loop.timer_free(link->timer);
    reply_clear(&link->parser);
    link->events->ended(link->arg);
}

static void link_enter(struct redis_link *link)
{
    link->depth++;
}

static void link_leave(struct redis_link *link)
{
    assert(link->depth > 0);
    link->depth--;
    if (link->depth == 0 && link->dead) link_destroy(link);
}

bool link_is_on(const struct redis_link *link, uint32_t connection)
{
    return !link->dead && link->connection == connection;
}

bool link_is_open(const struct redis_link *link)
{
    return !link->dead && link->step == LINK_OPEN;
}

uint64_t link_now_us(const struct redis_link *link)
{
    return link->config.now_us(link->config.arg);
}

void link_log(struct redis_link *link, int level, const char *format, ...)
{
    char text[LINK_TEXT_SIZE], line[LINK_TEXT_SIZE + 128];
    va_list args;

    if (link->config.log == NULL || link->dead) return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(line, sizeof(line), "%s: %s%s", link->config.uri->name, link->events->log_prefix, text);
    link->config.log(level, line, link->config.arg);
}

/* ---- time ---- */

bool link_arm(struct redis_link *link, uint64_t wake_us)
{
    const struct quorlock_loop *loop = &link->system->loop;
    uint64_t now_us;

    if (link->dead) return true;
    link->timer_us = wake_us;
    if (wake_us == LINK_NEVER) {
        loop->timer_stop(link->timer);
        return true;
    }
    now_us = link_now_us(link);
    if (loop->timer_set(link->timer, wake_us > now_us ? wake_us - now_us : 0) == 0) return true;
    link_log(link, QUORLOCK_LOG_ERROR, "no memory for a timer");
    return false;
}

void link_arm_by(struct redis_link *link, uint64_t now_us, uint64_t wake_us)
{
    if (wake_us < link->timer_us) {
        (void)link_arm(link, wake_us);
    } else if (link->timer_us < now_us && !link->hurried) {
        /* The loop's timers do not count the time during which the machine is suspended, so this one would fire late by
         * that time. It is hurried only once, so that a busy loop does not postpone it for ever. */
        link->hurried = true;
        (void)link_arm(link, now_us);
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Return the present address's share of the try. */
static uint64_t share_us(const struct redis_link *link, uint64_t left_us)
{
    uint64_t whole_ms = link->config.connect_ms;
    uint64_t least_ms = whole_ms < LINK_ADDRESS_MS ? whole_ms : LINK_ADDRESS_MS;

    return larger(left_us / (1 + dial_left(&link->dial)), least_ms * 1000);
}

static void begin_step(struct redis_link *link, enum link_step step)
{
    uint64_t now_us = link_now_us(link);
    uint64_t end_us = link->config.steps_end_us;

    if (link->step == LINK_PAUSE) link->try_us = now_us + larger(link->config.connect_ms, 1) * 1000;
    link->step = step;
    switch (step) {
    case LINK_OPEN: link->step_us = now_us + larger(link->config.timeout_ms, 1) * 1000; break;
    case LINK_CONNECT:
        link->step_us = now_us + share_us(link, link->try_us > now_us ? link->try_us - now_us : 0);
        link->try_us = larger(link->try_us, link->step_us);
        break;
    default: link->step_us = link->try_us; break;
    }
    link->step_ms = step == LINK_CONNECT ? (uint32_t)((link->step_us - now_us) / 1000) : link->config.connect_ms;
    if (end_us != 0 && link->step_us > end_us) link->step_us = end_us;
    (void)link_arm(link, link->step_us);
}

/* ---- the end of a connection ---- */

static void leave_logins(struct redis_link *link)
{
    if (link->login.back != NULL) list_remove(link->config.logins, &link->login);
}

/* Rule 2.5. After an ordinary close the system goes on delivering what was sent, so an unanswered request might be
 * executed after those of the next connection. If that would do harm, the connection is reset. */
static void link_hang_up(struct redis_link *link)
{
    conn_close(&link->conn, link->events->resets != NULL && link->events->resets(link->arg));
    link->connection++;
    leave_logins(link);
}

void link_drop(struct redis_link *link, enum fault fault, const char *format, ...)
{
    bool was_open = link->step == LINK_OPEN;
    bool waits_long = link->events->waits_long != NULL && link->events->waits_long(link->arg, fault);
    uint64_t now_us = link_now_us(link);
    uint64_t lasted_us = was_open ? now_us - link->open_us : 0;
    char why[LINK_TEXT_SIZE];
    va_list args;

    link_enter(link);
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    if (link->step == LINK_HANDSHAKE && link->handshake.doubted)
        handshake_still_doubted(&link->handshake, &fault, why, sizeof(why));
    link_hang_up(link);
    if (link->config.counts != NULL) link->config.counts->errors[fault]++;
    link->step = LINK_PAUSE;
    link->step_us = now_us + retry_pause_us(&link->retry, lasted_us, waits_long);
    (void)link_arm(link, link->step_us);
    link->events->closed(link->arg, was_open, fault, why);
    link_leave(link);
}

void link_drop_nomem(struct redis_link *link)
{
    link_drop(link, FAULT_LIMIT, "out of memory");
}

void link_drop_late(struct redis_link *link, enum fault fault)
{
    if (link_now_us(link) < link->step_us)
        (void)link_arm(link, link->step_us);
    else
        link_drop(link, fault, "no answer within %u ms: frozen, paused, cut off, or busy",
                  (unsigned)link->config.timeout_ms);
}

/* A TLS port closes the connection without a reply to commands in plain text. */
static void drop_lost(struct redis_link *link)
{
    const struct uri *uri = link->config.uri;
    bool greeting = link->step == LINK_HANDSHAKE;
    const char *where = greeting ? " during the handshake" : "";
    const char *hint = greeting && !link->answered && !uri->tls && uri->kind != URI_UNIX
                           ? "; if that is its tls-port, write rediss://"
                           : "";
    const char *why = conn_why(&link->conn);

    if (why != NULL)
        link_drop(link, link->conn.fault, "connection lost%s: %s%s", where, why, hint);
    else
        link_drop(link, FAULT_UNREACHABLE, "the server closed the connection%s%s", where, hint);
}

static void drop_malformed(struct redis_link *link, const char *reason)
{
    char why[LINK_TEXT_SIZE];

    handshake_malformed(&link->handshake, !link->answered, reason, why, sizeof(why));
    link_drop(link, FAULT_PROTO, "%s", why);
}

/* ---- connecting ---- */

void link_ask(struct redis_link *link)
{
    if (link->conn.out.fault != BYTES_FINE) {
        link_drop_nomem(link);
        return;
    }
    conn_wake(&link->conn);
    begin_step(link, link->step);
}

static void begin_handshake(struct redis_link *link)
{
    reply_open(&link->parser);
    reply_keep_room(&link->parser, LINK_TEXTS_ROOM, LINK_READ_SIZE);
    link->step = LINK_HANDSHAKE;
    link->answered = false;
    link->events->connected(link->arg);
    if (link->handshake.n_steps == 0) {
        link->events->greeted(link->arg);
        return;
    }
    link->conn.secret = true;
    link_ask(link);
}

static void begin_login(struct redis_link *link)
{
    enum link_login login = LOGIN_READY;
    char why[LINK_TEXT_SIZE];

    if (link->config.login != NULL) login = link->config.login(link->config.arg, link->config.uri, why, sizeof(why));
    switch (login) {
    case LOGIN_READY: begin_handshake(link); break;
    case LOGIN_NONE: link_drop(link, FAULT_TEMPORARY, "%s", why); break;
    case LOGIN_LATER:
        list_add(link->config.logins, &link->login);
        begin_step(link, LINK_LOGIN);
        break;
    }
}

static void link_follow(struct redis_link *link, enum dial_result result)
{
    switch (result) {
    case DIAL_RESOLVING: begin_step(link, LINK_RESOLVE); break;
    case DIAL_CONNECTING: begin_step(link, LINK_CONNECT); break;
    case DIAL_FAILED: link_drop(link, link->dial.fault, "%s", link->dial.why); break;
    }
}

/* Try the next address. */
static void link_fail_address(struct redis_link *link, enum fault fault, const char *problem)
{
    dial_blame(&link->dial, fault, problem);
    conn_close(&link->conn, true);
    link_follow(link, dial_next(&link->dial));
}

/* An answer that came too late for its try, during the pause, begins the next try. */
static void link_on_resolved(void *arg)
{
    struct redis_link *link = arg;

    link_enter(link);
    link_follow(link, dial_next(&link->dial));
    link_leave(link);
}

static void link_on_connected(struct redis_link *link)
{
    const char *why;

    switch (conn_finish(&link->conn)) {
    case CONN_DONE: begin_login(link); break;
    case CONN_LATER: link->step = LINK_GREET; break;
    case CONN_FAILED:
        why = conn_why(&link->conn);
        link_fail_address(link, link->conn.fault, why != NULL ? why : "the server closed the connection");
        break;
    }
}

void link_open(struct redis_link *link)
{
    link->step = LINK_OPEN;
    link->open_us = link_now_us(link);
}

/* ---- reading ---- */

static void link_on_reply(struct redis_link *link, const struct reply *reply)
{
    struct handshake *shake = &link->handshake;

    link->answered = true;
    if (reply->self.type == REPLY_PUSH) {
        if (shake->tracks && link->events->push != NULL)
            link->events->push(link->arg, reply);
        else
            link_drop(link, FAULT_PROTO, "a push that nobody asked for");
        return;
    }
    if (shake->at == shake->n_steps) {
        link->events->reply(link->arg, reply);
        return;
    }
    switch (handshake_reply(shake, reply)) {
    case HANDSHAKE_MORE: break;
    case HANDSHAKE_FAILED: link_drop(link, shake->fault, "%s", shake->why); break;
    case HANDSHAKE_DONE: link->events->greeted(link->arg); break;
    }
}

/* Handle all whole replies in these bytes. Afterwards the connection, or the owner, may be gone. */
static void handle_replies(struct redis_link *link, const char *data, size_t length)
{
    uint32_t connection = link->connection;

    if (link->events->heard != NULL) link->events->heard(link->arg);
    handshake_hear(&link->handshake, data, length);
    reply_feed(&link->parser, data, length);
    do {
        const struct reply *reply = NULL;
        const char *why = NULL;

        switch (reply_next(&link->parser, &reply, &why)) {
        case REPLY_NONE: return;
        case REPLY_BAD: drop_malformed(link, why); return;
        case REPLY_NOMEM: link_drop_nomem(link); return;
        case REPLY_READY: break;
        }
        link_on_reply(link, reply);
    } while (link_is_on(link, connection));
}

/* The clock is read once for all these replies. It is read now, so not before any of them came. */
static void feed(struct redis_link *link, const char *data, size_t length)
{
    void (*batch)(void *, bool) = link->config.batch;
    void *arg = link->config.arg;

    if (batch != NULL) batch(arg, true);
    handle_replies(link, data, length);
    if (batch != NULL) batch(arg, false);
}

void link_read(struct redis_link *link)
{
    uint32_t connection = link->connection;
    char buffer[LINK_READ_SIZE];

    conn_allow_reads(&link->conn);
    do {
        ssize_t n = conn_read(&link->conn, buffer, sizeof(buffer));

        if (n == 0) return;
        if (n < 0) {
            drop_lost(link);
            return;
        }
        if (link->step == LINK_LOGIN) {
            link_drop(link, FAULT_TEMPORARY,
                      "it spoke before the login: it has as many clients as it may have, or is no Redis "
                      "server");
            return;
        }
        feed(link, buffer, (size_t)n);
    } while (link_is_on(link, connection));
}

static void link_on_readable(struct redis_link *link)
{
    if (link->events->readable != NULL)
        link->events->readable(link->arg);
    else
        link_read(link);
}

/* ---- what the loop calls ---- */

static void on_step_end(struct redis_link *link)
{
    unsigned ms = link->step_ms;
    bool some = link->answered;
    char why[LINK_TEXT_SIZE];

    switch (link->step) {
    case LINK_STOPPED:
    case LINK_OPEN: break;
    case LINK_PAUSE: link_follow(link, dial_begin(&link->dial)); break;
    case LINK_RESOLVE:
        link_drop(link, FAULT_UNREACHABLE, "cannot resolve %s: no answer within %u ms yet " LINK_OPTION,
                  link->config.uri->host, ms);
        break;
    case LINK_CONNECT:
        snprintf(why, sizeof(why), "no answer within %u ms " LINK_OPTION, ms);
        link_fail_address(link, FAULT_UNREACHABLE, why);
        break;
    case LINK_GREET:
        snprintf(why, sizeof(why),
                 "TLS: no answer to the handshake within %u ms " LINK_OPTION
                 ": frozen, or no TLS on this port: then write redis://",
                 ms);
        link_fail_address(link, FAULT_UNREACHABLE, why);
        break;
    case LINK_LOGIN:
        link_drop(link, FAULT_TEMPORARY, "the program gave no credentials within %u ms " LINK_OPTION, ms);
        break;
    case LINK_HANDSHAKE:
        link_drop(link, FAULT_UNREACHABLE, "no %sanswer to the handshake within %u ms " LINK_OPTION ": %s",
                  some ? "whole " : "", ms,
                  some ? "paused by CLIENT PAUSE, or frozen" : "frozen, paused by CLIENT PAUSE, or not a Redis server");
        break;
    }
}

/* Rule 1.8. */
static void link_on_timer(void *arg)
{
    struct redis_link *link = arg;
    uint32_t connection = link->connection;

    link_enter(link);
    link->hurried = false;
    link->timer_us = LINK_NEVER;
    if (link->step == LINK_OPEN || link->step == LINK_HANDSHAKE) link_on_readable(link);
    /* If the connection ended meanwhile, the timer has been set again. A timer may also fire early. */
    if (link_is_on(link, connection)) {
        if (link->step == LINK_OPEN)
            link->events->due(link->arg);
        else if (link_now_us(link) < link->step_us)
            (void)link_arm(link, link->step_us);
        else
            on_step_end(link);
    }
    link_leave(link);
}

static void link_on_conn(void *arg, enum conn_ready ready)
{
    struct redis_link *link = arg;
    uint32_t connection = link->connection;

    link_enter(link);
    switch (ready) {
    case CONN_CONNECTED: link_on_connected(link); break;
    case CONN_READABLE: link_on_readable(link); break;
    case CONN_SENDING:
        if (link->events->sending != NULL) link->events->sending(link->arg);
        break;
    case CONN_SENT:
        if (link->events->sent != NULL) link->events->sent(link->arg);
        break;
    case CONN_BROKEN:
        link_on_readable(link);
        if (link_is_on(link, connection)) drop_lost(link);
        break;
    }
    link_leave(link);
}

/* ---- what the owner calls ---- */

bool link_init(struct redis_link *link, struct system *system, const struct alloc *alloc,
               const struct link_config *config, const struct link_events *events, void *arg)
{
    bool fine;

    *link = (struct redis_link){
        .system = system, .alloc = alloc, .config = *config, .events = events, .arg = arg, .timer_us = LINK_NEVER};
    /* If the kernel gave up a connection that is being made, it would do so before the end of the try, and for a reason
     * of its own. */
    if (link->config.user_timeout_ms <= config->connect_ms) link->config.user_timeout_ms = config->connect_ms + 1000;
    reply_init(&link->parser, alloc);
    retry_init(&link->retry, system, config->reconnect_min_ms, config->reconnect_max_ms,
               hash_text(link_now_us(link), config->uri->name));
    dial_init(&link->dial, &link->conn, &link->config, link_on_resolved, link);
    fine = conn_init(&link->conn, system, alloc, link_on_conn, link);
    link->conn.counts = config->counts;
    link->timer = system->loop.timer_new(system->loop.arg, link_on_timer, link);
    return fine && link->timer != NULL;
}

void link_end(struct redis_link *link)
{
    if (link->dead) return;
    link_hang_up(link);
    dial_cancel(&link->dial);
    link->dead = true;
    if (link->timer != NULL) link->system->loop.timer_stop(link->timer);
    /* If functions of the link are still on the stack, the last of them frees the memory. */
    if (link->depth == 0) link_destroy(link);
}

bool link_start(struct redis_link *link)
{
    link->step = LINK_PAUSE;
    return link_arm(link, link->step_us);
}

void link_try_now(struct redis_link *link)
{
    if (link->step != LINK_PAUSE) return;
    link->step_us = link_now_us(link);
    (void)link_arm(link, link->step_us);
}

void link_log_in(struct redis_link *link)
{
    assert(link->step == LINK_LOGIN);
    link_enter(link);
    leave_logins(link);
    link->try_us = link_now_us(link) + larger(link->config.connect_ms, 1) * 1000;
    begin_handshake(link);
    link_leave(link);
}

void link_stop(struct redis_link *link)
{
    /* Unless this ends a pause, the next try may begin at once. */
    if (link->step != LINK_PAUSE) link->step_us = 0;
    link_hang_up(link);
    dial_cancel(&link->dial);
    link->step = LINK_STOPPED;
    (void)link_arm(link, LINK_NEVER);
}
