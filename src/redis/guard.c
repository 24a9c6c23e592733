/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include <quorlock/quorlock.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "scripts.h"

/* Added to what the server says is left: its clock's rate may differ from ours by so much. */
#define GUARD_DRIFT_DIVISOR 100u
#define GUARD_DRIFT_US      2000u

void guard_init(struct guard *guard, const struct node_config *config)
{
    *guard = (struct guard){.mode = config->guard,
                            .n_nodes = config->n_nodes,
                            .max_lease_ms = config->max_lease_ms,
                            .set = config->set ? config->set : ""};
}

bool guard_is_on(const struct guard *guard)
{
    return guard->mode == QUORLOCK_GUARD_CONNECTION || guard->mode == QUORLOCK_GUARD_STRICT;
}

void guard_forget(struct guard *guard)
{
    guard->run_id[0] = guard->replid[0] = guard->seen[0] = '\0';
    guard->until_us = 0;
    guard->asked = guard->unset = false;
}

void guard_meet(struct guard *guard, const char *run_id, const char *replid)
{
    snprintf(guard->run_id, sizeof guard->run_id, "%s", run_id);
    snprintf(guard->replid, sizeof guard->replid, "%s", replid);
}

/* EVAL and not EVALSHA: once a connection, so it need not be loaded. */
static void guard_script(const struct guard *guard, struct bytes *out, const char *text, size_t length,
                         uint32_t lease_ms, size_t n_more)
{
    bytes_command(out, 9 + n_more);
    bytes_text(out, "EVAL");
    bytes_word(out, text, length);
    bytes_text(out, "1");
    bytes_text(out, GUARD_KEY);
    bytes_number(out, guard->n_nodes);
    bytes_text(out, guard->set);
    bytes_number(out, lease_ms);
    bytes_text(out, guard->run_id);
    bytes_text(out, guard->replid);
}

void guard_ask(const struct guard *guard, struct bytes *out)
{
    guard_script(guard, out, script_guard, sizeof script_guard - 1, guard->max_lease_ms, 1);
    bytes_number(out, guard->told_ms);
}

void guard_bootstrap(const struct guard *guard, struct bytes *out, const struct node_request *request)
{
    uint32_t lease_ms = request->lease_ms ? request->lease_ms : GUARD_LEASE_DEFAULT_MS;
    guard_script(guard, out, script_bootstrap, sizeof script_bootstrap - 1, lease_ms, 1);
    bytes_text(out, request->force ? "1" : "0");
}

void guard_disconnect_others(struct bytes *out)
{
    static const char *const words[] = {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"};
    bytes_command(out, sizeof words / sizeof words[0]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) bytes_text(out, words[i]);
}

static bool guard_is(const struct reply_item *item, const char *word)
{
    return item->type == REPLY_STRING && item->length == strlen(word) &&
           memcmp(item->text, word, item->length) == 0;
}

static enum guard_verdict guard_misfit(struct guard *guard)
{
    guard->fault = NODE_FAULT_PROTO;
    snprintf(guard->why, sizeof guard->why,
             "restart guard: a reply that does not fit the request: something between us and the server?");
    return GUARD_FAILED;
}

static enum guard_verdict guard_refused(struct guard *guard, const struct reply_item *error)
{
    enum node_fault fault = error_classify(error->text, error->length).fault;
    guard->fault = fault == NODE_FAULT_OTHER ? NODE_FAULT_GUARD : fault;
    error_describe(guard->why, sizeof guard->why, "restart guard (key " GUARD_KEY ")", error->text,
                   error->length);
    return GUARD_FAILED;
}

/* {'conflict', N, set, max_lease} or {'conflict', guard} */
static enum guard_verdict guard_conflict(struct guard *guard, const struct reply *reply)
{
    const struct reply_item *n = &reply->elements[1], *set = &reply->elements[2], *lease = &reply->elements[3];
    char theirs[200], their_n[12], their_lease[16], our_lease[24] = "any max_lease";
    for (size_t i = 1; i < reply->n_elements; i++)
        if (reply->elements[i].type != REPLY_STRING) return guard_misfit(guard);
    if (reply->n_elements != 2 && reply->n_elements != 4) return guard_misfit(guard);
    guard->fault = NODE_FAULT_CONFIG;
    if (reply->n_elements == 2) {
        error_printable(theirs, sizeof theirs, n->text, n->length);
        snprintf(guard->why, sizeof guard->why,
                 "the restart guard at " GUARD_KEY " has a format that this version does not know: \"%s\": "
                 "use one version of quorlock, or delete that key",
                 theirs);
        return GUARD_FAILED;
    }
    if (guard->max_lease_ms)
        snprintf(our_lease, sizeof our_lease, "max_lease %u ms", (unsigned)guard->max_lease_ms);
    snprintf(guard->why, sizeof guard->why,
             "set up otherwise: its guard says %s nodes, set %s, max_lease %s ms; this client says %u nodes, "
             "set %s, %s: give all clients the same, or change it by 'quorlock bootstrap --reconfigure'",
             error_printable(their_n, sizeof their_n, n->text, n->length),
             error_printable(theirs, sizeof theirs, set->text, set->length),
             error_printable(their_lease, sizeof their_lease, lease->text, lease->length),
             (unsigned)guard->n_nodes, guard->set, our_lease);
    return GUARD_FAILED;
}

/* Quarantined without end, until somebody says the max_lease; who did so meanwhile is heard at once. */
static enum guard_verdict guard_not_set(struct guard *guard, uint64_t now_us)
{
    guard->unset = true;
    guard->reason = GUARD_UNSET;
    guard->until_us = guard->told_ms ? now_us : UINT64_MAX;
    return GUARD_QUARANTINED;
}

enum guard_verdict guard_judge(struct guard *guard, const struct reply *reply, uint64_t now_us)
{
    const struct reply_item *why = &reply->elements[0], *left = &reply->elements[1],
                            *lease = &reply->elements[2], *text = &reply->elements[3];
    guard->asked = guard->unset = false;
    if (reply->self.type == REPLY_ERROR) return guard_refused(guard, &reply->self);
    if (reply->self.type != REPLY_ARRAY || !reply->n_elements) return guard_misfit(guard);
    if (guard_is(why, "conflict")) return guard_conflict(guard, reply);
    if (guard_is(why, "unset")) return guard_not_set(guard, now_us);
    if (reply->n_elements != 4 || left->type != REPLY_INTEGER || lease->type != REPLY_INTEGER ||
        text->type != REPLY_STRING || !text->length || text->length >= sizeof guard->seen ||
        strlen(text->text) != text->length)
        return guard_misfit(guard);
    if (left->integer < 0 || left->integer > UINT32_MAX || lease->integer < 1 || lease->integer > UINT32_MAX)
        return guard_misfit(guard);
    bool same = strcmp(guard->seen, text->text) == 0;
    if (guard_is(why, "new"))
        guard->reason = GUARD_NEW;
    else if (guard_is(why, "lost"))
        guard->reason = GUARD_LOST;
    else if (!same)
        guard->reason = GUARD_KEPT;
    memcpy(guard->seen, text->text, text->length + 1);
    guard->lease_ms = guard->told_ms = (uint32_t)lease->integer;
    guard->until_us = 0;
    if (!left->integer) return GUARD_CLEAR;
    uint64_t left_us = (uint64_t)left->integer * 1000;
    guard->until_us = now_us + left_us + left_us / GUARD_DRIFT_DIVISOR + GUARD_DRIFT_US;
    return GUARD_QUARANTINED;
}

void guard_describe(const struct guard *guard, uint64_t now_us, char *ret, size_t size)
{
    static const char *const reasons[] = {
        [GUARD_KEPT] = "it restarted, or is new, and may have lost its memory",
        [GUARD_NEW] =
            ("no guard yet: first contact waits one max_lease; 'quorlock bootstrap' before it declares "
             "that no lock is held"),
        [GUARD_LOST] = "it restarted and may have lost its memory",
    };
    if (guard->reason == GUARD_UNSET) {
        snprintf(
            ret, size,
            "quarantined: no guard yet, and too few other nodes answer to tell the max_lease: give it to the "
            "client, or mend them");
        return;
    }
    uint64_t left_us = guard->until_us > now_us ? guard->until_us - now_us : 0;
    /* Rounded up, so that 0.0 is told only when it is over. */
    uint64_t tenths = (left_us + 99999) / 100000;
    snprintf(ret, size, "quarantined for %llu.%llu s more: %s", (unsigned long long)(tenths / 10),
             (unsigned long long)(tenths % 10), reasons[guard->reason]);
}
