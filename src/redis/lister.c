/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/lister.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/dialect/request.h"
#include "redis/link/link.h"
#include "redis/wire/errors.h"
#include "scripts.h"

enum { CURSOR_SIZE = 24, WHY_SIZE = 640 };

struct lister {
    struct lister_config config;
    struct redis_link link;
    char cursor[CURSOR_SIZE]; /* of the step in flight */
    uint32_t count;
    bool finished; /* done() is called when the link has ended */
    enum fault fault;
    char why[WHY_SIZE];
};

static void lister_finish(struct lister *lister, enum fault fault, const char *why)
{
    lister->finished = true;
    lister->fault = fault;
    snprintf(lister->why, sizeof(lister->why), "%s", why);
    link_end(&lister->link);
}

/* lister_ask - send the script of the next step, as text: the server may forget scripts at any time. */
static void lister_ask(struct lister *lister)
{
    struct bytes *out = &lister->link.conn.out;
    bool prefixed = *lister->config.prefix != '\0';

    bytes_command(out, 6 + prefixed);
    bytes_text(out, "EVAL");
    if (lister->config.redisson)
        bytes_word(out, script_redisson_list, sizeof(script_redisson_list) - 1);
    else
        bytes_word(out, script_list, sizeof(script_list) - 1);
    bytes_text(out, "0");
    bytes_text(out, lister->cursor);
    bytes_text(out, lister->config.pattern);
    bytes_number(out, lister->count);
    if (prefixed) bytes_text(out, lister->config.prefix);
    link_ask(&lister->link);
}

/* ---- answers ---- */

/* take_number - read a number and the blank behind it. The text ends with NUL. */
static bool lister_take_number(const char **at, int64_t least, int64_t most, int64_t *ret)
{
    char *end;

    *ret = strtoll(*at, &end, 10);
    if (end == *at || *end != ' ' || *ret < least) return false;
    if (*ret > most) *ret = most;
    *at = end + 1;
    return true;
}

/* lister_next - read the line at *at, and move *at behind it: false: it is malformed. */
static bool lister_next(const char **at, const char *end, struct lister_key *ret)
{
    int64_t number, ttl_ms, key_length, holder_length;
    const char *p = *at;

    if (strchr("xrsod", *p) == NULL || p[1] != ' ') return false;
    ret->kind = (enum lister_kind)(unsigned char)*p;
    p += 2;
    if (!lister_take_number(&p, 0, UINT32_MAX, &number) || !lister_take_number(&p, -2, NODE_MS_MAX, &ttl_ms) ||
        !lister_take_number(&p, 0, REPLY_BYTES_MAX, &key_length) ||
        !lister_take_number(&p, 0, REPLY_BYTES_MAX, &holder_length))
        return false;
    if (end - p <= key_length + holder_length || p[key_length + holder_length] != '\n') return false;
    ret->number = (uint32_t)number;
    ret->ttl_ms = ttl_ms;
    ret->key = p;
    ret->key_length = (size_t)key_length;
    ret->holder = p + key_length;
    ret->holder_length = (size_t)holder_length;
    *at = p + key_length + holder_length + 1;
    return true;
}

/* on_step - pass on the keys of a step: false: the listing has ended. */
static bool on_step(struct lister *lister, const struct reply_item *cursor, const struct reply_item *text)
{
    const char *at = text->text, *end = at + text->length;
    struct lister_key key;

    while (at < end) {
        if (!lister_next(&at, end, &key)) break;
        if (key.kind != LISTER_DENIED && memchr(key.key, '\0', key.key_length) != NULL) continue; /* not ours */
        if (!lister->config.found(lister->config.arg, &key)) {
            lister_cancel(lister);
            return false;
        }
    }
    if (at == end && cursor->length < CURSOR_SIZE && strspn(cursor->text, "0123456789") == cursor->length) {
        memcpy(lister->cursor, cursor->text, cursor->length + 1);
        return true;
    }
    lister_finish(lister, FAULT_PROTO, "SCAN: a reply that cannot be read");
    return false;
}

static void lister_refused(struct lister *lister, const struct reply_item *error)
{
    enum fault fault = error_classify(error->text, error->length).fault;
    char why[WHY_SIZE], text[WHY_SIZE / 2];

    if (fault == FAULT_AUTH)
        snprintf(why, sizeof(why),
                 "SCAN of the keys: %s (the user needs the rights %s to list locks: 'quorlock doctor --acl USER --ls' "
                 "prints them)",
                 error_printable(text, sizeof(text), error->text, error->length),
                 lister->config.redisson ? "+info +eval +scan +hlen +hkeys +hget +pttl"
                                         : "+info +eval +scan +getrange +get +pttl +zcount +time");
    else
        handshake_describe(lister->config.link.uri, "SCAN of the keys", error, why, sizeof(why));
    lister_finish(lister, fault, why);
}

static void lister_on_reply(void *arg, const struct reply *reply)
{
    struct lister *lister = arg;
    const struct reply_item *self = &reply->self;

    if (self->type == REPLY_ERROR) {
        lister_refused(lister, self);
    } else if (!reply_fits(reply, "ss")) {
        lister_finish(lister, FAULT_PROTO, "SCAN: a reply that cannot be read");
    } else if (reply->elements[0].length > 0) {
        if (!on_step(lister, &reply->elements[0], &reply->elements[1])) return;
        lister->count = LISTER_COUNT;
        if (strcmp(lister->cursor, "0") == 0)
            lister_finish(lister, FAULT_NONE, "");
        else
            lister_ask(lister);
    } else if (lister->count > 1) {
        /* The reply would be too long: ask for fewer keys, from the same place on. */
        lister->count = lister->count > 4 ? lister->count / 4 : 1;
        lister_ask(lister);
    } else {
        lister_finish(lister, FAULT_LIMIT, "SCAN: the server returns too many keys at once");
    }
}

/* ---- the connection ---- */

static void lister_on_connected(void *arg)
{
    struct lister *lister = arg;

    handshake_look(&lister->link.handshake, &lister->link.conn.out, lister->config.link.uri);
}

static void lister_on_greeted(void *arg)
{
    struct lister *lister = arg;

    link_open(&lister->link);
    lister_ask(lister);
}

static void lister_on_due(void *arg)
{
    struct lister *lister = arg;

    link_drop_late(&lister->link, FAULT_TIMEOUT);
}

/* A listing does not begin anew on another connection. */
static void lister_on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    (void)was_open;
    lister_finish(arg, fault, why);
}

static void lister_on_ended(void *arg)
{
    struct lister *lister = arg;

    if (lister->finished) lister->config.done(lister->config.arg, lister->fault, lister->why);
    alloc_free(lister->config.alloc, lister);
}

/* ---- life ---- */

static const struct link_events lister_link_events = {
    .connected = lister_on_connected,
    .greeted = lister_on_greeted,
    .reply = lister_on_reply,
    .due = lister_on_due,
    .closed = lister_on_closed,
    .ended = lister_on_ended,
};

struct lister *lister_start(const struct lister_config *config)
{
    struct link_config link = config->link;
    struct lister *lister = alloc_zero(config->alloc, sizeof(*lister));

    if (lister == NULL) return NULL;
    link.log = NULL;
    link.user_timeout_ms = link.timeout_ms;
    lister->config = *config;
    lister->count = LISTER_COUNT;
    lister->cursor[0] = '0';
    if (link_init(&lister->link, config->system, config->alloc, &link, &lister_link_events, lister) &&
        link_start(&lister->link))
        return lister;
    link_end(&lister->link);
    return NULL;
}

void lister_cancel(struct lister *lister)
{
    if (lister != NULL) link_end(&lister->link);
}
