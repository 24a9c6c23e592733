/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - what the replies of our scripts say, and those of SET */
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <string.h>

#include "redis/dialect/dialect.h"
#include "redis/dialect/others.h"
#include "redis/wire/errors.h"

/* Scripts compute in doubles, which lose digits from here on. */
#define COUNTER_END (INT64_C(1) << 53)

static const char *op_name(enum op op, bool by_script)
{
    static const char *const names[] = {
        [OP_ACQUIRE] = "acquire (SET)",    [OP_EXTEND] = "extend (script)",
        [OP_RELEASE] = "release (script)", [OP_PEEK] = "inspect (script)",
        [OP_BREAK] = "break (script)",     [OP_REPAIR] = "repair (SET)",
        [OP_RAISE] = "raise (script)",     [OP_MAY_KILL] = "rehearsal of bootstrap",
        [OP_BOOTSTRAP] = "bootstrap",      [OP_CLIENTS] = "CLIENT LIST",
        [OP_INTEND] = "intent (script)",
    };

    if (by_script && op == OP_ACQUIRE) return "acquire (script)";
    return by_script && op == OP_REPAIR ? "repair (script)" : names[op];
}

/* Our scripts put the type behind WRONGTYPE, and the key if it is not the lock's. The server itself puts a sentence
 * there. */
static void judge_type(const struct reply_item *item, struct node_reply *ret)
{
    static const char ours[] = " quorlock:";
    size_t skip = sizeof("WRONGTYPE ") - 1;
    const char *type = item->text + skip, *end = item->text + item->length, *space;

    if (item->length <= skip || !reply_begins(item, "WRONGTYPE ")) return;
    space = memchr(type, ' ', (size_t)(end - type));
    if (space != NULL && memmem(space, (size_t)(end - space), ours, sizeof(ours) - 1) != space) return;
    ret->type = type;
    ret->type_length = (size_t)((space != NULL ? space : end) - type);
}

/* Describe a foreign key; its name may follow the type. */
static void describe_foreign(const struct reply_item *item, const struct node_reply *reply, char *text,
                             size_t text_size)
{
    const char *end = item->text + item->length, *key = reply->type != NULL ? reply->type + reply->type_length : end;

    if (key == end)
        error_foreign(text, text_size, reply->type, reply->type_length, ERROR_NO_STRING);
    else
        error_foreign_key(text, text_size, reply->type, reply->type_length, key + 1, (size_t)(end - key - 1));
}

static void judge_error(enum op op, bool by_script, const struct reply_item *item, struct node_reply *ret, char *text,
                        size_t text_size)
{
    struct error_class class = error_classify(item->text, item->length);

    ret->fault = class.fault;
    ret->error = text;
    /* An error that is not in the table does not tell whether anything was executed. */
    ret->outcome = class.fault == FAULT_OTHER ? OUTCOME_UNKNOWN : OUTCOME_ERROR;
    if (class.fault == FAULT_FOREIGN)
        judge_type(item, ret);
    else
        error_describe(text, text_size, op_name(op, by_script), item->text, item->length);
}

static int64_t clamp(int64_t number, int64_t most)
{
    return number > most ? most : number;
}

static int64_t clamp_ttl(int64_t ttl_ms)
{
    return ttl_ms < -1 ? -2 : clamp(ttl_ms, NODE_MS_MAX);
}

/* Return the bits of the places that hold a 1. */
static uint64_t read_bits(const struct reply_item *digits)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < digits->length && i < 64; i++)
        if (digits->text[i] == '1') bits |= UINT64_C(1) << i;
    return bits;
}

static uint32_t judge_count(const struct reply_item *item)
{
    return item->integer > 0 ? (uint32_t)clamp(item->integer, UINT32_MAX) : 0;
}

/* Read what follows {holder, ttl, listeners}. For a permit: which slots are free, and the shortest ttl. For several
 * keys: which ones refuse. From a queue, at the end: the turns before ours. */
static void judge_places(const struct reply *reply, struct node_reply *ret)
{
    uint64_t bits = read_bits(&reply->elements[3]);
    size_t n = reply->n_elements;

    if (n >= 6) {
        ret->turns = judge_count(&reply->elements[n - 2]);
        ret->before = judge_count(&reply->elements[n - 1]);
    }
    if (n != 5 && n != 7) {
        ret->refusing = bits;
        return;
    }
    ret->free = bits;
    ret->first_ttl_ms = clamp_ttl(reply->elements[4].integer);
}

/* Read the last element of a good reply to peek or break: who else has a part in the name. False: it is no such list.
 */
static bool judge_others(const struct reply_item *item, struct node_reply *ret)
{
    ret->others = item->text;
    ret->others_length = item->length;
    return others_fit(item->text, item->length);
}

/* {holder, ttl}; break: {holder or nil, ttl, type [, others]}; acquire: {holder, ttl, listeners [, which [, first]
 * [, turns, before]]}; release after the guard changed: {holder, ttl, 'GUARD'} */
static bool judge_holder(enum op op, const struct reply *reply, struct node_reply *ret)
{
    const struct reply_item *holder = &reply->elements[0], *third = &reply->elements[2];
    bool acquires = op == OP_ACQUIRE || op == OP_REPAIR;
    bool several = op == OP_BREAK && reply_fits(reply, "niss");
    bool deleted = several || (op == OP_BREAK && reply_fits(reply, "nis"));

    if (several && !judge_others(&reply->elements[3], ret)) return false;
    if (acquires && (reply_fits(reply, "sii") || reply_fits(reply, "siis") || reply_fits(reply, "siisi") ||
                     reply_fits(reply, "siisii") || reply_fits(reply, "siisiii"))) {
        if (third->integer < 0) return false;
        if (reply->n_elements > 3) judge_places(reply, ret);
        ret->count = (uint32_t)clamp(third->integer, UINT32_MAX);
    } else if (op == OP_RELEASE && reply_fits(reply, "sis")) {
        ret->fault = FAULT_GUARD;
    } else if (!deleted && !reply_fits(reply, "si")) {
        return false;
    }
    ret->outcome = op == OP_PEEK || deleted ? OUTCOME_YES : OUTCOME_OTHER;
    ret->ttl_ms = clamp_ttl(reply->elements[1].integer);
    if (holder->type == REPLY_NIL) {
        /* If only others had a part in the name, there was no key. */
        ret->type = several && reply_is(third, "none") ? NULL : third->text;
        ret->type_length = third->length;
    } else {
        ret->holder = holder->text;
        ret->holder_length = holder->length;
        ret->readers = reply_is(holder, HOLDER_READERS);
    }
    return true;
}

/* {holder or nil, ttl, counter, the cause of the guard's quarantine or '' without a guard, its rest [, waiters [,
 * others]]} */
static bool judge_peek(const struct reply *reply, struct node_reply *ret)
{
    const struct reply_item *holder = &reply->elements[0], *numbers = &reply->elements[1], *cause = &numbers[2];

    ret->outcome = holder->type == REPLY_STRING ? OUTCOME_YES : OUTCOME_MISSING;
    if (ret->outcome == OUTCOME_YES) {
        ret->holder = holder->text;
        ret->holder_length = holder->length;
        ret->readers = reply_is(holder, HOLDER_READERS);
        ret->ttl_ms = clamp_ttl(numbers[0].integer);
    }
    ret->fence = numbers[1].integer > 0 ? (uint64_t)numbers[1].integer : 0;
    ret->has_guard = cause->length != 0;
    ret->quarantine_ms = numbers[3].integer > 0 ? clamp(numbers[3].integer, NODE_MS_MAX) : -1;
    if (ret->quarantine_ms > 0) ret->cause = quarantine_cause_read(cause->text, cause->length, &ret->wanted_ms);
    if (reply->n_elements > 5 && numbers[4].integer >= 0) ret->waiters = clamp(numbers[4].integer, UINT32_MAX);
    return reply->n_elements < 7 || judge_others(&reply->elements[6], ret);
}

/* 0: missing; n >= 1: deleted, and n - 1 clients were notified */
static bool judge_release(const struct reply_item *item, struct node_reply *ret)
{
    ret->outcome = item->integer != 0 ? OUTCOME_YES : OUTCOME_MISSING;
    if (item->integer > 1) ret->count = (uint32_t)clamp(item->integer - 1, UINT32_MAX);
    return item->integer >= 0;
}

/* acquire, repair and raise: {1, counter, clock}, with permits {1, counter, clock, slot}; extend: {1, clock}; release:
 * {1 or 0, 'GUARD'} */
static bool judge_done(enum op op, const struct reply *reply, struct node_reply *ret)
{
    const struct reply_item *items = reply->elements;
    bool acquires = op == OP_ACQUIRE || op == OP_REPAIR, counts = acquires || op == OP_RAISE;
    bool slotted = acquires && reply_fits(reply, "iiii");
    int64_t counter = counts ? items[1].integer : 0, clock_us = items[counts ? 2 : 1].integer;

    if (op == OP_RELEASE) {
        ret->fault = FAULT_GUARD;
        return reply_fits(reply, "is") && judge_release(&items[0], ret);
    }
    if ((!counts && op != OP_EXTEND) || (!slotted && !reply_fits(reply, counts ? "iii" : "ii"))) return false;
    if (slotted && (items[3].integer < 0 || items[3].integer >= QUORLOCK_PERMITS_MAX)) return false;
    if (slotted) ret->slot = (uint8_t)items[3].integer;
    if (items[0].integer != 1 || counter < 0 || counter >= COUNTER_END || clock_us < 0) return false;
    ret->outcome = OUTCOME_YES;
    ret->fence = (uint64_t)counter;
    ret->node_time_us = (uint64_t)clock_us;
    return true;
}

/* Count the lines of CLIENT LIST that have the name of a client with a guard. */
static bool judge_clients(const struct reply_item *list, struct node_reply *ret)
{
    static const char name[] = " name=" NODE_CLIENT_NAME " ";

    if (list->type != REPLY_STRING) return false;
    ret->outcome = OUTCOME_YES;
    for (const char *at = list->text; (at = strstr(at, name)) != NULL; at += sizeof(name) - 1) ret->count++;
    return true;
}

/* False: the reply does not fit the request. */
static bool judge_value(enum op op, bool by_script, const struct reply *reply, struct node_reply *ret, char *text,
                        size_t text_size)
{
    const struct reply_item *self = &reply->self;

    if (op == OP_CLIENTS) return judge_clients(self, ret);
    if (op == OP_BOOTSTRAP || op == OP_MAY_KILL) return guard_judge_bootstrap(op, reply, ret, text, text_size);
    /* Scripts return neither of these. */
    if (op == OP_ACQUIRE && !by_script && (self->type == REPLY_NIL || self->type == REPLY_STATUS)) {
        ret->outcome = self->type == REPLY_NIL ? OUTCOME_OTHER : OUTCOME_YES;
        return self->type == REPLY_NIL || reply_is(self, "OK");
    }
    if (self->type == REPLY_ARRAY) {
        if (reply->n_elements == 0) return false;
        if (op == OP_PEEK &&
            (reply_fits(reply, "niisi") || reply_fits(reply, "niisii") || reply_fits(reply, "niisiis")))
            return judge_peek(reply, ret);
        if (reply->elements[0].type == REPLY_INTEGER) return judge_done(op, reply, ret);
        return judge_holder(op, reply, ret);
    }
    if (self->type != REPLY_INTEGER || op == OP_ACQUIRE || op == OP_REPAIR) return false;
    if (op == OP_RELEASE) return judge_release(self, ret);
    ret->outcome = self->integer != 0 ? OUTCOME_YES : OUTCOME_MISSING;
    /* 1 and how many came before */
    if (op == OP_INTEND && self->integer > 1) ret->before = (uint32_t)clamp(self->integer - 1, UINT32_MAX);
    return self->integer == 0 || (self->integer == 1 && op == OP_EXTEND) || (self->integer >= 1 && op == OP_INTEND);
}

void dialect_judge_reply(enum op op, bool by_script, const struct reply *reply, struct node_reply *ret, char *text,
                         size_t text_size)
{
    *ret = (struct node_reply){.ttl_ms = -2, .quarantine_ms = -1, .waiters = -1};
    if (reply->self.type == REPLY_ERROR) {
        judge_error(op, by_script, &reply->self, ret, text, text_size);
        if (ret->fault == FAULT_FOREIGN) describe_foreign(&reply->self, ret, text, text_size);
        return;
    }
    if (judge_value(op, by_script, reply, ret, text, text_size)) {
        if (ret->fault == FAULT_GUARD) snprintf(text, text_size, "%s: " GUARD_CHANGED, op_name(op, by_script));
        return;
    }
    snprintf(text, text_size, "%s: a reply that does not fit the request: something between us and the server?",
             op_name(op, by_script));
    *ret = (struct node_reply){.outcome = OUTCOME_ERROR,
                               .fault = FAULT_PROTO,
                               .error = text,
                               .ttl_ms = -2,
                               .quarantine_ms = -1,
                               .waiters = -1};
}
