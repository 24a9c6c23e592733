/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/dialect/guard.h"

#include <quorlock/quorlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/wire/errors.h"
#include "scripts.h"

/* Added to the rest of a quarantine that the server reports, because its clock may run faster than ours. */
#define GUARD_DRIFT_DIVISOR 100u
#define GUARD_DRIFT_US      2000u
/* How soon a client notices that bootstrap has ended a quarantine. */
#define GUARD_RECHECK_US 1000000u

void guard_init(struct guard *guard, uint32_t mode, uint32_t n_nodes, uint32_t max_lease_ms, const char *set,
                bool set_named)
{
    *guard = (struct guard){.mode = mode,
                            .n_nodes = n_nodes,
                            .max_lease_ms = max_lease_ms != 0 ? max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT,
                            .set = set != NULL ? set : "",
                            .set_named = set_named};
}

bool guard_is_on(const struct guard *guard)
{
    return guard->mode == QUORLOCK_GUARD_CONNECTION || guard->mode == QUORLOCK_GUARD_STRICT;
}

void guard_forget(struct guard *guard)
{
    guard->run_id[0] = guard->replid[0] = guard->seen[0] = '\0';
    guard->until_us = guard->recheck_us = 0;
    guard->asked = guard->looks = false;
}

void guard_meet(struct guard *guard, const char *run_id, const char *replid)
{
    snprintf(guard->run_id, sizeof(guard->run_id), "%s", run_id);
    snprintf(guard->replid, sizeof(guard->replid), "%s", replid);
}

/* Sent as text, not as a hash: most connections ask only once. */
static void guard_script(const struct guard *guard, struct bytes *out, const char *text, size_t length,
                         uint32_t n_nodes, uint32_t lease_ms, size_t n_more)
{
    bytes_command(out, 9 + n_more);
    bytes_text(out, "EVAL");
    bytes_word(out, text, length);
    bytes_text(out, "1");
    bytes_text(out, GUARD_KEY);
    bytes_number(out, n_nodes);
    bytes_text(out, guard->set);
    bytes_number(out, lease_ms);
    bytes_text(out, guard->run_id);
    bytes_text(out, guard->replid);
}

static void guard_add_question(const struct guard *guard, struct bytes *out, const char *how)
{
    guard_script(guard, out, script_guard, sizeof(script_guard) - 1, guard->n_nodes, guard->max_lease_ms, 1);
    bytes_text(out, how);
}

void guard_look(struct guard *guard, struct bytes *out)
{
    guard_add_question(guard, out, "look");
    guard->asked = guard->looks = true;
}

void guard_ask(const struct guard *guard, struct bytes *out)
{
    guard_add_question(guard, out, guard->seen[0] != '\0' ? "1" : "0");
}

/* ---- what the server tells by itself ---- */

bool guard_is_in(const struct reply *push)
{
    if (push->n_elements < 2 || !reply_is(&push->elements[0], "invalidate")) return false;
    for (size_t i = 1; i < push->n_elements; i++) {
        const struct reply_item *key = &push->elements[i];

        if (key->type == REPLY_NIL || (key->type == REPLY_STRING && reply_is(key, GUARD_KEY))) return true;
    }
    return false;
}

void guard_track(struct bytes *out)
{
    BYTES_TEXTS(out, "CLIENT", "CACHING", "YES");
}

void guard_compare(struct bytes *out)
{
    guard_track(out);
    BYTES_TEXTS(out, "GET", GUARD_KEY);
}

bool guard_is_kept(const struct guard *guard, const struct reply *reply)
{
    return reply->self.type == REPLY_STRING && reply_is(&reply->self, guard->seen);
}

/* ---- bootstrap ---- */

static void write_guard(const struct guard *guard, struct bytes *out, const struct node_request *request)
{
    uint32_t lease_ms = request->lease_ms != 0 ? request->lease_ms : QUORLOCK_LEASE_MS_DEFAULT;

    guard_script(guard, out, script_bootstrap, sizeof(script_bootstrap) - 1, request->closes ? 0 : guard->n_nodes,
                 lease_ms, 2);
    bytes_text(out, request->force ? "over" : request->ends ? "end" : "new");
    bytes_number(out, request->longest_ms);
}

/*
 * With force, one transaction writes the guard and closes the other connections. A client that was connected before
 * acquires without reading the guard, so one without the other would let two sets of clients be granted the same lock.
 * If a right is missing or the connection ends, neither is done.
 */
void guard_bootstrap(const struct guard *guard, struct bytes *out, const struct node_request *request)
{
    bool write = request->op == OP_BOOTSTRAP;

    if (write && !request->force) {
        write_guard(guard, out, request);
        return;
    }
    BYTES_TEXTS(out, "MULTI");
    if (write) {
        write_guard(guard, out, request);
        BYTES_TEXTS(out, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    } else {
        /* No client connects from that address, so this kills none and only tests the right. */
        BYTES_TEXTS(out, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", "ADDR", "0.0.0.0:0");
    }
    BYTES_TEXTS(out, "EXEC");
}

uint8_t guard_parts(const struct node_request *request)
{
    if (request->op == OP_MAY_KILL) return GUARD_PARTS - 1;
    return request->op == OP_BOOTSTRAP && request->force ? GUARD_PARTS : 0;
}

/* 'written:' or 'guarded:', and the guard that is stored now. */
static bool guard_judge_written(const struct reply_item *item, struct node_reply *ret)
{
    size_t front = sizeof("written:") - 1;
    bool written = reply_begins(item, "written:");

    if (item->type != REPLY_STRING || (!written && !reply_begins(item, "guarded:"))) return false;
    ret->outcome = written ? OUTCOME_YES : OUTCOME_OTHER;
    ret->holder = item->text + front;
    ret->holder_length = item->length - front;
    return true;
}

static void judge_refused(const struct reply_item *item, enum outcome outcome, const char *what, struct node_reply *ret,
                          char *text, size_t size)
{
    ret->outcome = outcome;
    ret->fault = error_classify(item->text, item->length).fault;
    ret->error = text;
    error_describe(text, size, what, item->text, item->length);
}

bool guard_judge_bootstrap(enum op op, const struct reply *reply, struct node_reply *ret, char *text, size_t size)
{
    const struct reply_item *first = &reply->elements[0], *last = &reply->elements[op == OP_BOOTSTRAP];

    if (reply->self.type != REPLY_ARRAY) return op == OP_BOOTSTRAP && guard_judge_written(&reply->self, ret);
    if (reply->n_elements != (op == OP_BOOTSTRAP ? 2 : 1)) return false;
    if (op == OP_BOOTSTRAP && first->type == REPLY_ERROR) {
        judge_refused(first, OUTCOME_ERROR, "bootstrap", ret, text, size);
        return true;
    }
    if (op == OP_BOOTSTRAP && !guard_judge_written(first, ret)) return false;
    if (last->type == REPLY_ERROR) {
        /* The guard is written, but the old connections still exist. */
        judge_refused(last, op == OP_BOOTSTRAP ? OUTCOME_UNKNOWN : OUTCOME_ERROR, "CLIENT KILL", ret, text, size);
        return true;
    }
    if (op == OP_MAY_KILL) ret->outcome = OUTCOME_YES;
    return last->type == REPLY_INTEGER;
}

/* ---- its reply ---- */

static enum guard_verdict guard_misfit(struct guard *guard)
{
    guard->fault = FAULT_PROTO;
    snprintf(guard->why, sizeof(guard->why),
             "restart guard: a reply that does not fit the request: something between us and the server?");
    return GUARD_FAILED;
}

static enum guard_verdict guard_refused(struct guard *guard, const struct reply_item *error)
{
    enum fault fault = error_classify(error->text, error->length).fault;

    if (fault == FAULT_FOREIGN) {
        /* The same fault as for a guard of an unknown format. FAULT_FOREIGN would blame the lock's key. */
        guard->fault = FAULT_CONFIG;
        (void)snprintf(guard->why, sizeof(guard->why), "restart guard: " GUARD_FOREIGN);
        return GUARD_FAILED;
    }
    guard->fault = fault == FAULT_OTHER ? FAULT_GUARD : fault;
    error_describe(guard->why, sizeof(guard->why), "restart guard (key " GUARD_KEY ")", error->text, error->length);
    return GUARD_FAILED;
}

/* Whether it is the hash of addresses that stands in for a name. */
static bool guard_is_hash(const char *set)
{
    return strlen(set) == 16 && strspn(set, "0123456789abcdef") == 16;
}

__attribute__((format(printf, 2, 3))) static void guard_add(struct guard *guard, const char *format, ...)
{
    size_t used = strlen(guard->why);
    va_list args;

    va_start(args, format);
    vsnprintf(guard->why + used, sizeof(guard->why) - used, format, args);
    va_end(args);
}

/* Append both remedies in a form that can be typed: options for this client, or a command that changes the nodes. */
static void advise(struct guard *guard, const char *their_n, const char *their_set, uint64_t their_ms)
{
    char length[24];
    const char *between = "";

    guard_add(guard, ": give all clients the same (here ");
    if (their_ms != guard->max_lease_ms) {
        guard_length(length, sizeof(length), their_ms);
        guard_add(guard, "--max-lease %s or QUORLOCK_MAX_LEASE=%s", length, length);
        between = "; ";
    }
    if (strcmp(their_set, guard->set) != 0) {
        if (guard_is_hash(their_set))
            guard_add(guard, "%sthe same addresses%s", between, guard->set_named ? " without --set-name" : "");
        else
            guard_add(guard, "%s--set-name %.64s", between, their_set);
        between = "; ";
    }
    if (strtoul(their_n, NULL, 10) != guard->n_nodes) guard_add(guard, "%sall %s nodes", between, their_n);
    guard_add(guard, "), or change the nodes by 'quorlock bootstrap --reconfigure --max-lease %s%s%s'",
              guard_length(length, sizeof(length), guard->max_lease_ms), guard->set_named ? " --set-name " : "",
              guard->set_named ? guard->set : "");
}

/* Two different hashes mean nothing to a reader, so explain where they come from. */
static void explain_addresses(struct guard *guard)
{
    char length[24];

    snprintf(
        guard->why, sizeof(guard->why),
        "set up differently: clients write the addresses in different ways (as localhost and 127.0.0.1), or another "
        "server is among them. Write them alike in all clients; or name the set, by 'quorlock bootstrap "
        "--reconfigure --max-lease %s --set-name NAME' once, and --set-name NAME in all clients",
        guard_length(length, sizeof(length), guard->max_lease_ms));
}

static void add_setup(struct guard *guard, const char *whose, const char *n, const char *set, const char *lease_ms)
{
    bool named = !guard_is_hash(set);

    guard_add(guard, "%s says %s nodes, %s%.64s, max lease %s ms", whose, n, named ? "set " : "a set without name",
              named ? set : "", lease_ms);
}

/* Write what the guard says, what this client says, and how to make them agree. */
static void explain(struct guard *guard, const char *their_n, const char *their_set, const char *their_lease)
{
    char our_n[12], our_lease[12];

    snprintf(our_n, sizeof(our_n), "%u", (unsigned)guard->n_nodes);
    snprintf(our_lease, sizeof(our_lease), "%u", (unsigned)guard->max_lease_ms);
    if (strcmp(their_n, our_n) == 0 && strcmp(their_lease, our_lease) == 0 && guard_is_hash(their_set) &&
        guard_is_hash(guard->set)) {
        explain_addresses(guard);
        return;
    }
    snprintf(guard->why, sizeof(guard->why), "set up differently: ");
    add_setup(guard, "its guard", their_n, their_set, their_lease);
    add_setup(guard, "; this client", our_n, guard->set, our_lease);
    advise(guard, their_n, their_set, strtoull(their_lease, NULL, 10));
}

/* {'conflict', N, set, max_lease} or {'conflict', guard} */
static enum guard_verdict conflict(struct guard *guard, const struct reply *reply)
{
    const struct reply_item *n = &reply->elements[1], *set = &reply->elements[2], *lease = &reply->elements[3];
    char theirs[200], their_n[12], their_lease[16];

    if (!reply_fits(reply, "ss") && !reply_fits(reply, "ssss")) return guard_misfit(guard);
    guard->fault = FAULT_CONFIG;
    if (reply->n_elements == 2) {
        error_printable(theirs, sizeof(theirs), n->text, n->length);
        snprintf(guard->why, sizeof(guard->why),
                 "the restart guard at " GUARD_KEY " has a format that this version does not know: \"%s\": "
                 "use one version of quorlock, or delete that key",
                 theirs);
        return GUARD_FAILED;
    }
    error_printable(their_n, sizeof(their_n), n->text, n->length);
    if (strcmp(their_n, "0") == 0) {
        /* A fault that ends as soon as the command continues, so waiting clients keep waiting. */
        guard->fault = FAULT_GUARD;
        snprintf(
            guard->why, sizeof(guard->why),
            "its guard admits no client, because a 'quorlock bootstrap --reconfigure' was not finished: repeat that "
            "command until it exits with 0");
        return GUARD_FAILED;
    }
    error_printable(theirs, sizeof(theirs), set->text, set->length);
    error_printable(their_lease, sizeof(their_lease), lease->text, lease->length);
    explain(guard, their_n, theirs, their_lease);
    return GUARD_FAILED;
}

/* The server changed its role, so the INFO of this connection is outdated. If this client wrote the guard, it and a
 * client that knows better would replace each other's guard for ever; so guard.lua wrote nothing. */
static enum guard_verdict outdated(struct guard *guard)
{
    guard->fault = FAULT_GUARD;
    (void)snprintf(guard->why, sizeof(guard->why),
                   "its guard names another process of the server than INFO on this connection did");
    return GUARD_FAILED;
}

/* Set the quarantine of the guard that was read; left_ms: its rest. */
static void set_quarantine(struct guard *guard, uint64_t left_ms, uint64_t now_us)
{
    uint64_t left_us = left_ms * 1000, first_ms = 0;
    struct guard_text text;
    bool known = guard_text_read(guard->seen, strlen(guard->seen), &text), ends_early;

    guard->until_us = guard->recheck_us = 0;
    guard->set_seen = GUARD_SET_OLDER;
    guard->cause = known ? guard_text_cause(&text) : QUARANTINE_UNKNOWN;
    guard->wanted_ms = text.wanted_ms;
    guard->end_ms = known ? guard_text_end_ms(&text) : 0;
    guard->voted |= left_ms == 0;
    if (left_ms == 0) return;
    if (known && guard->end_ms > left_ms) first_ms = guard_text_first_ms(&text, guard->end_ms - left_ms);
    /* A guard that allowed votes is gone, whatever the new one says. */
    if (first_ms != 0 && !guard->voted) guard->set_seen = GUARD_SET_FIRST;
    guard->first_until_us = now_us + first_ms * 1000;
    guard->until_us = now_us + left_us + left_us / GUARD_DRIFT_DIVISOR + GUARD_DRIFT_US;
    ends_early = guard->cause == QUARANTINE_FIRST || guard->cause == QUARANTINE_CLIENT;
    guard_recheck_at(guard, ends_early && left_us > GUARD_RECHECK_US ? now_us + GUARD_RECHECK_US : guard->until_us);
}

/* Rule 4.5. */
enum guard_verdict guard_judge(struct guard *guard, const struct reply *reply, uint64_t now_us)
{
    const struct reply_item *why = &reply->elements[0], *left = &reply->elements[1], *lease = &reply->elements[2],
                            *text = &reply->elements[3];
    bool looked = guard->looks;

    guard->asked = guard->looks = false;
    if (reply->self.type == REPLY_ERROR) return guard_refused(guard, &reply->self);
    if (reply->self.type != REPLY_ARRAY || reply->n_elements == 0) return guard_misfit(guard);
    if (looked && reply->n_elements == 1 && reply_is(why, "ask")) return GUARD_ASK;
    if (reply_is(why, "conflict")) return conflict(guard, reply);
    if (!reply_fits(reply, "siis") || text->length == 0 || text->length >= sizeof(guard->seen) ||
        strlen(text->text) != text->length)
        return guard_misfit(guard);
    if (left->integer < 0 || left->integer > UINT32_MAX || lease->integer < 1 || lease->integer > UINT32_MAX)
        return guard_misfit(guard);
    if (reply_is(why, "lost") && guard->seen[0] != '\0') return outdated(guard);
    memcpy(guard->seen, text->text, text->length + 1);
    set_quarantine(guard, (uint64_t)left->integer, now_us);
    return left->integer == 0 ? GUARD_CLEAR : GUARD_QUARANTINED;
}

void guard_recheck_at(struct guard *guard, uint64_t us)
{
    guard->recheck_us = us;
}

void guard_describe(const struct guard *guard, enum guard_set set, uint64_t now_us, char *ret, size_t size)
{
    uint64_t left_us = guard->until_us > now_us ? guard->until_us - now_us : 0;
    /* Rounded up, so that 0.0 means that it has ended. */
    uint64_t tenths = (left_us + 99999) / 100000;
    char why[GUARD_WHY_SIZE];

    /* No text proposes to a client that may hold a lock to declare that there is none. */
    if (guard->voted) set = GUARD_SET_LOST;
    quarantine_describe(why, sizeof(why), guard->cause, guard->wanted_ms, guard->end_ms, set);
    snprintf(ret, size, "quarantined for %llu.%llu s more: %s", (unsigned long long)(tenths / 10),
             (unsigned long long)(tenths % 10), why);
}
