/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/secure.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "base/system.h"
#include "redis/link/config.h"
#include "redis/link/conn.h"
#include "redis/link/dial.h"

#define READ_SIZE 16384

static const char secure_no_memory[] = "out of memory";

/* A request in flight. */
struct question {
    struct question *next;
    redisCallbackFn *answer;
    void *arg;
};

struct secure {
    redisAsyncContext context; /* only `data` is used: the owner */
    void (*lost)(void *owner, const char *why);
    struct conn conn;
    struct dial dial;
    redisReader *reader;
    struct question *first, **end;
    struct bytes early; /* requests before it was connected; each address that is tried gets them */
    bool connected;
};

/* ---- the end ---- */

static void secure_give(struct secure *secure, redisReply *reply)
{
    struct question *question = secure->first;

    secure->first = question->next;
    if (secure->first == NULL) secure->end = &secure->first;
    question->answer(&secure->context, reply, question->arg);
    free(question);
}

void secure_close(struct secure *secure)
{
    dial_cancel(&secure->dial);
    conn_clear(&secure->conn);
    while (secure->first != NULL) secure_give(secure, NULL);
    if (secure->reader != NULL) redisReaderFree(secure->reader);
    bytes_clear(&secure->early);
    free(secure);
}

static void secure_lose(struct secure *secure, const char *why)
{
    secure->lost(secure->context.data, why != NULL ? why : "the server closed the connection");
    secure_close(secure);
}

/* ---- connecting ---- */

/* failure - return why connecting failed; NULL: it goes on. */
static const char *failure(const struct secure *secure, enum dial_result result)
{
    return result == DIAL_FAILED ? secure->dial.why : NULL;
}

static void secure_follow(struct secure *secure, enum dial_result result)
{
    const char *why = failure(secure, result);

    if (why != NULL) secure_lose(secure, why);
}

static void secure_on_resolved(void *arg)
{
    struct secure *secure = arg;

    secure_follow(secure, dial_next(&secure->dial));
}

static void send_early(struct secure *secure)
{
    secure->connected = true;
    secure->conn.secret = true; /* it may hold a password */
    bytes_append(&secure->conn.out, secure->early.data, secure->early.used);
    bytes_clear(&secure->early);
    if (secure->conn.out.fault != BYTES_FINE)
        secure_lose(secure, secure_no_memory);
    else
        conn_wake(&secure->conn);
}

static void secure_fail_address(struct secure *secure)
{
    const char *why = conn_why(&secure->conn);

    dial_blame(&secure->dial, secure->conn.fault, why != NULL ? why : "the server closed the connection");
    conn_close(&secure->conn, false);
    secure_follow(secure, dial_next(&secure->dial));
}

static void secure_on_connected(struct secure *secure)
{
    switch (conn_finish(&secure->conn)) {
    case CONN_DONE: send_early(secure); break;
    case CONN_LATER: break;
    case CONN_FAILED: secure_fail_address(secure); break;
    }
}

/* ---- reading ---- */

/* take_answers - hand out all answers that are there; false: the bytes are no answer. */
static bool take_answers(struct secure *secure)
{
    void *reply = NULL;

    while (redisReaderGetReply(secure->reader, &reply) == REDIS_OK) {
        if (reply == NULL) return true;
        if (secure->first != NULL) secure_give(secure, reply);
        freeReplyObject(reply);
    }
    return false;
}

static void secure_on_readable(struct secure *secure)
{
    char buffer[READ_SIZE];
    ssize_t n;

    while ((n = conn_read(&secure->conn, buffer, sizeof(buffer))) > 0) {
        if (redisReaderFeed(secure->reader, buffer, (size_t)n) == REDIS_OK && take_answers(secure)) continue;
        secure_lose(secure, "its answers are not those of Redis");
        return;
    }
    if (n < 0) secure_lose(secure, conn_why(&secure->conn));
}

static void secure_on_conn(void *arg, enum conn_ready ready)
{
    struct secure *secure = arg;

    switch (ready) {
    case CONN_CONNECTED: secure_on_connected(secure); break;
    case CONN_READABLE: secure_on_readable(secure); break;
    case CONN_BROKEN: secure_lose(secure, conn_why(&secure->conn)); break;
    case CONN_SENDING:
    case CONN_SENT: break;
    }
}

/* ---- what the owner calls ---- */

struct secure *secure_open(struct system *system, struct tls *tls, const struct uri *uri,
                           void (*lost)(void *owner, const char *why), void *owner)
{
    struct link_config config = {.uri = uri, .tls = tls};
    struct secure *secure = calloc(1, sizeof(*secure));
    const char *why = secure_no_memory;
    bool made;

    if (secure == NULL) {
        lost(owner, why);
        return NULL;
    }
    secure->context.data = owner;
    secure->lost = lost;
    secure->end = &secure->first;
    bytes_init(&secure->early, system->alloc, CONN_OUT_MAX);
    made = conn_init(&secure->conn, system, system->alloc, secure_on_conn, secure);
    dial_init(&secure->dial, &secure->conn, &config, secure_on_resolved, secure);
    secure->reader = redisReaderCreate();
    if (made && secure->reader != NULL) why = failure(secure, dial_begin(&secure->dial));
    if (why == NULL) return secure;
    secure_lose(secure, why);
    return NULL;
}

bool secure_ask(struct secure *secure, redisCallbackFn *answer, void *arg, const char *request, size_t length)
{
    struct bytes *out = secure->connected ? &secure->conn.out : &secure->early;
    struct question *question = malloc(sizeof(*question));
    size_t used = out->used;

    if (question == NULL) return false;
    bytes_append(out, request, length);
    if (out->fault != BYTES_FINE) {
        bytes_cut(out, used);
        free(question);
        return false;
    }
    *question = (struct question){.answer = answer, .arg = arg};
    *secure->end = question;
    secure->end = &question->next;
    if (secure->connected) conn_wake(&secure->conn);
    return true;
}

bool secure_owes(const struct secure *secure)
{
    return secure->first != NULL;
}
