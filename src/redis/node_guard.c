/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/node_guard.h"

#include "base/hash.h"

#define NODE_GUARD_RETRY_US 10000 /* try again after this when there was no room to read the guard */

/* Read the guard again, because the server told of a change. If another such question is in flight, its answer came
 * after this push, and so after the change. */
static void compare_guard(struct node_guard *guard)
{
    if (guard->comparing || !link_is_open(guard->link)) return;
    guard->comparing = outbox_ask_guard(guard->out, true, link_now_us(guard->link));
    if (!guard->comparing) link_drop(guard->link, FAULT_GUARD, "no room to read the guard again");
}

/* Rule 4.1. */
void node_guard_begin(struct node_guard *guard)
{
    guard_forget(&guard->key);
    guard->doubted = guard->comparing = false;
    if (guard_is_on(&guard->key)) guard_look(&guard->key, &guard->link->conn.out);
}

bool node_guard_meet(struct node_guard *guard)
{
    const struct handshake *shake = &guard->link->handshake;

    guard_meet(&guard->key, shake->run_id, shake->replid);
    return !guard_is_on(&guard->key);
}

void node_guard_on_open(struct node_guard *guard)
{
    if (guard->doubted) compare_guard(guard);
}

enum node_guard_news node_guard_on_reply(struct node_guard *guard, const struct reply *raw, uint64_t now_us)
{
    struct guard *key = &guard->key;
    uint64_t until_us = key->until_us, end_ms = key->end_ms;

    switch (guard_judge(key, raw, now_us)) {
    case GUARD_FAILED: link_drop(guard->link, key->fault, "%s", key->why); return NODE_GUARD_NONE;
    case GUARD_ASK:
        guard_ask(key, &guard->link->conn.out);
        key->asked = true;
        link_ask(guard->link);
        return NODE_GUARD_NONE;
    case GUARD_CLEAR:
    case GUARD_QUARANTINED: break;
    }
    return until_us > now_us && key->until_us != 0 && key->end_ms == end_ms ? NODE_GUARD_SAME : NODE_GUARD_READ;
}

/* Rule 4.9. Only another change can come between the push and this reply. */
void node_guard_on_compared(struct node_guard *guard, const struct reply *raw)
{
    guard->comparing = false;
    if (guard_is_kept(&guard->key, raw))
        guard->doubted = false;
    else
        link_drop(guard->link, FAULT_GUARD, GUARD_CHANGED);
}

/* Rule 4.9. Never a verdict: a server whose table of such keys is full tells of changes that were none. */
bool node_guard_on_push(struct node_guard *guard, const struct reply *push)
{
    if (!guard_is_in(push)) return false;
    guard->doubted = true;
    compare_guard(guard);
    return true;
}

/* Rule 4.9. A server that lost its memory gives its vote by SET. Its scripts compare the guard themselves. */
bool node_guard_doubts(const struct node_guard *guard, const struct inflight_request *entry,
                       const struct node_reply *reply)
{
    return guard->doubted && !entry->by_script && entry->op == OP_ACQUIRE && reply->outcome == OUTCOME_YES;
}

uint64_t node_guard_wake_us(const struct node_guard *guard)
{
    return guard->key.recheck_us != 0 && !guard->key.asked ? guard->key.recheck_us : LINK_NEVER;
}

/* Rule 4.4. */
void node_guard_on_due(struct node_guard *guard, uint64_t now_us)
{
    if (now_us < node_guard_wake_us(guard)) return;
    if (outbox_ask_guard(guard->out, false, now_us))
        guard->key.asked = true;
    else
        guard_recheck_at(&guard->key, now_us + NODE_GUARD_RETRY_US);
}

uint64_t node_guard_life(const struct node_guard *guard)
{
    const struct guard *key = &guard->key;

    return hash_text(hash_text(hash_text(HASH_START, key->run_id), key->replid), key->seen);
}
