/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * debt.c - the release of an attempt that ended, at every node that may have its key
 *
 * A debt is a release that a node has not answered yet. Chapter 2 of src/protocol.md has the rules, and chapter 10
 * those of keys that are kept after their release.
 *
 * A lock that is detached, and an adoption without a result, leave no debt (rules 11.1 and 11.3). A repair that is
 * still under way then may set a key after another client has adopted the token and released it. That key stays for one
 * lease.
 */
#include "debt.h"

#include <assert.h>
#include <string.h>

#define MS              1000u
#define OWN_NOTICES_MAX 200u
/* Rule 2.6: how long a request may be under way after its connection ended. */
#define LATE_US 60000000u
/* Rule 2.6: a late key with a lease up to this does little harm, so its release is repeated for one lease only. */
#define SHORT_LEASE_US 20000000u

static bool debt_ended(const struct debt *debt, uint64_t now_us)
{
    return debt->state == DEBT_NONE || debt->until_us <= now_us;
}

static struct debt *next_debt(const struct core_node *node, const struct debt *debt)
{
    if (node->more == NULL || debt == node->more + CORE_DEBTS_LENT - 1) return NULL;
    return debt == &node->debt ? node->more : &node->more[debt - node->more + 1];
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration takes none */
#define EACH_DEBT(debt, node) for (struct debt *debt = &(node)->debt; (debt) != NULL; (debt) = next_debt(node, debt))
#define LOOK_AT_EACH_DEBT(debt, node)                                                                                  \
    for (const struct debt *debt = &(node)->debt; (debt) != NULL; (debt) = next_debt(node, debt))
/* NOLINTEND(bugprone-macro-parentheses) */

static void borrow(struct core_lock *lock, struct debt *block)
{
    if (block == NULL) return;
    assert(lock->nodes[0].more == NULL);
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) lock->nodes[i].more = block + (size_t)i * CORE_DEBTS_LENT;
}

/* The node owes a release and may have a key for which it will owe another, or owes several. */
static bool needs_more(const struct core_node *node)
{
    if (node->debt.state != DEBT_NONE && node->key.until_us != 0) return true;
    for (uint32_t i = 0; i < CORE_DEBTS_LENT; i++) {
        if (node->more[i].state != DEBT_NONE) return true;
    }
    return false;
}

void debt_give_back(struct core_lock *lock)
{
    if (lock->nodes[0].more == NULL) return;
    for (const struct core_node *node = lock->nodes; node < CORE_END(lock) && lock->owing != 0; node++) {
        if (needs_more(node)) return;
    }
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) node->more = NULL;
}

/* Most of the time no node owes anything, and nobody looks through the debts. */
static bool may_owe(const struct core_lock *lock, uint32_t index)
{
    return (lock->owing & 1u << index) != 0;
}

uint32_t debt_count(const struct core_node *node)
{
    uint32_t owed = 0;

    LOOK_AT_EACH_DEBT (debt, node) owed += debt->state != DEBT_NONE;
    assert(owed <= CORE_DEBTS_MAX);
    return owed;
}

const struct debt *debt_of(const struct core_node *node, uint64_t attempt)
{
    LOOK_AT_EACH_DEBT (debt, node) {
        if (debt->state != DEBT_NONE && debt->id.number == attempt) return debt;
    }
    return NULL;
}

bool debt_has_token(const struct core_node *node, const struct core_token *token)
{
    LOOK_AT_EACH_DEBT (debt, node) {
        if (debt->state != DEBT_NONE && memcmp(&debt->id.token, token, sizeof(*token)) == 0) return true;
    }
    return false;
}

static void forget_paid(struct core_lock *lock, uint32_t index)
{
    if (debt_count(&lock->nodes[index]) == 0) lock->owing &= ~(1u << index);
}

/* Rule 2.3: a node with CORE_DEBTS_MAX debts has no room. */
static struct debt *free_debt(struct core_node *node, uint64_t now_us)
{
    EACH_DEBT (debt, node) {
        if (debt_ended(debt, now_us)) return debt;
    }
    return NULL;
}

bool debt_has_room(struct core_lock *lock, const struct step *step, struct core_node *node)
{
    if (node->debt.state != DEBT_NONE && node->more == NULL) borrow(lock, step->debts);
    return free_debt(node, step->now_us) != NULL;
}

/* How long the key is kept from now on (rules 10.1 and 10.2), in whole milliseconds. 0: it is not. */
static uint64_t keep_us(const struct debt *debt, uint64_t now_us)
{
    return (validity_sub(debt->keep_until_us, now_us) + MS - 1) / MS * MS;
}

static void send_release(struct core_lock *lock, struct step *step, uint32_t node, struct debt *debt)
{
    struct core_command *command = core_send(lock, step, node, OP_RELEASE, keep_us(debt, step->now_us));
    const struct attempt_id *id = &debt->id;

    assert(debt->state != DEBT_NONE);
    assert(id->number > 0 && id->number <= lock->id.number);
    debt->sent_generation = lock->nodes[node].generation;
    if (debt->state == DEBT_UNSENT && id->number == lock->release.attempt) {
        lock->release.until_us = validity_add(step->now_us, lock->config->node_timeout_us);
        lock->release.looked_us = 0;
    }
    debt->state = DEBT_OWED;
    debt->again_at_us = CORE_NEVER;
    command->fence = lock->config->reads ? 0 : id->fence;
    command->silent = debt->silent || command->tag.lease_us != 0;
    command->if_deleted = debt->if_deleted;
    command->tag.attempt = id->number;
    command->tag.slot = id->slot;
    command->token = id->token;
    /* Rule 2.4: no timeout, for the answer counts however late it comes. */
    command->timeout_us = 0;
    assert(command->tag.lease_us <= lock->config->lease_us);
}

/* If this process was suspended after it read the clock, the request was sent later than its tag shows: up to now. */
static uint64_t may_be_there_until(const struct core_node *node, uint64_t now_us, uint64_t lease_us)
{
    return core_larger(node->key.until_us, validity_debt_until(now_us, lease_us));
}

static bool is_late(const struct core_lock *lock, const struct core_node *node, uint64_t now_us)
{
    return node->late && now_us < lock->late_until_us;
}

/* Rule 2.6: a release finds what late requests leave if it comes until then. */
static uint64_t late_key_until(const struct core_lock *lock, uint64_t late_until_us)
{
    return lock->lease_us <= SHORT_LEASE_US ? 0 : validity_debt_until(late_until_us, lock->lease_us);
}

/* Rule 2.4. */
static void owe(struct core_lock *lock, struct step *step, uint32_t index, bool silent, bool if_deleted)
{
    struct core_node *node = &lock->nodes[index];
    struct debt *debt = free_debt(node, step->now_us);
    bool repaired = node->key.repair_round != 0;
    uint64_t until_us = may_be_there_until(node, step->now_us, lock->lease_us);

    /* A node is asked only with room for its debt (debt_has_room). */
    assert(debt != NULL);
    assert(node->key.until_us != 0);
    assert(until_us > step->now_us);
    if (is_late(lock, node, step->now_us)) until_us = core_larger(until_us, late_key_until(lock, lock->late_until_us));
    *debt = (struct debt){.id = lock->id,
                          .state = DEBT_OWED,
                          .until_us = until_us,
                          .silent = silent,
                          .if_deleted = if_deleted,
                          .open = node->open,
                          .late = is_late(lock, node, step->now_us),
                          .twice = repaired,
                          .again_at_us = CORE_NEVER};
    if (lock->id.number == lock->release.attempt) debt->keep_until_us = lock->release.keep_until_us;
    debt->twice |= debt->keep_until_us != 0;
    /* An attempt that was not granted has no fencing token. */
    if (lock->phase == CORE_ASKING) debt->id.fence = 0;
    /* Rule 7.6: the node was to choose the slot, and its choice is unknown. */
    if (step->slots != NULL && lock->phase == CORE_ASKING && node->vote != CORE_VOTE_YES &&
        lock->attempt.stage == ATTEMPT_ASKS_ARBITER) {
        debt->id.slot = CORE_SLOT_NONE;
    }
    node->key.until_us = 0;
    node->open = node->late = false;
    lock->owing |= 1u << index;
    if (!core_can_talk(node)) return;
    /* This client receives the notice of the release, too. That notice must not begin an attempt. */
    debt->echoed = lock->phase == CORE_ASKING && !silent && node->vote == CORE_VOTE_YES && node->notices.listening &&
                   node->notices.own < OWN_NOTICES_MAX;
    if (debt->echoed) node->notices.own++;
    send_release(lock, step, index, debt);
}

/* Rules 2.1 and 2.10. The arbiter comes first: waiters ask it as soon as its notice reaches them. */
void debt_end_attempt(struct core_lock *lock, struct step *step, uint32_t wakes)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        uint32_t index = core_arbiter(lock, i);
        struct core_node *node = &lock->nodes[index];
        bool silent = wakes != DEBT_WAKES_ALL && wakes != index;

        if (node->key.until_us != 0) owe(lock, step, index, silent, wakes != DEBT_WAKES_ALL);
        /* No key stays without a debt. */
        assert(node->key.until_us == 0);
    }
}

/* Rules 11.1 and 11.3. */
void debt_waive(struct core_lock *lock)
{
    for (struct core_node *node = lock->nodes; node < CORE_END(lock); node++) {
        node->key.until_us = 0;
        node->open = node->late = false;
    }
}

/* Rule 2.4: on each new connection. */
void debt_pay(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    if (!core_can_talk(node) || !may_owe(lock, index)) return;
    EACH_DEBT (debt, node) {
        assert(debt->sent_generation <= node->generation || debt->state == DEBT_NONE);
        if (debt_ended(debt, step->now_us) || debt->sent_generation == node->generation) continue;
        /* Rule 2.9: the node may have executed the release that was sent on the connection before. */
        if (debt->sent_generation != 0 && debt->state != DEBT_REFUSED) debt->unclear = true;
        debt->if_deleted = true; /* other nodes have published the release */
        send_release(lock, step, index, debt);
    }
}

void debt_on_room(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];

    assert(index < lock->config->n_nodes);
    EACH_DEBT (debt, node) {
        if (!core_can_talk(node) || debt->state != DEBT_UNSENT || debt_ended(debt, step->now_us)) continue;
        send_release(lock, step, index, debt);
    }
    debt_judge_release(lock, step->now_us);
}

/* The release published nothing, so its notice is not expected any more. */
static void drop_echo(struct core_node *node, struct debt *debt)
{
    if (debt->echoed && node->notices.own > 0) node->notices.own--;
    debt->echoed = false;
}

/* Rule 2.4: again after a pause. */
static void failed(struct core_lock *lock, struct step *step, struct debt *debt)
{
    assert(debt->state == DEBT_OWED || debt->state == DEBT_REFUSED);
    debt->sent_generation = 0;
    debt->again_at_us = validity_add(step->now_us, backoff_debt_us(&lock->jitter, debt->tries++));
}

/* Hand over a debt whose key may still be set by a late request (rule 2.6). */
static void debt_pass_on(const struct core_lock *lock, struct step *step, uint32_t node, const struct debt *debt)
{
    uint64_t for_us = lock->lease_us <= SHORT_LEASE_US ? lock->lease_us : LATE_US;
    uint64_t until_us = core_larger(step->now_us, debt->keep_until_us) + for_us;

    /* A node has one debt of an attempt, so an update needs room for one. */
    assert(step->update->late.until_us == 0);
    step->update->late = (struct core_late){.until_us = until_us,
                                            .gone_us = validity_debt_until(until_us, lock->lease_us),
                                            .from_us = debt->keep_until_us,
                                            .twice = debt->twice,
                                            .fence = lock->config->reads ? 0 : debt->id.fence,
                                            .token = debt->id.token,
                                            .node = (uint8_t)node,
                                            .slot = debt->id.slot};
}

/* Rule 2.7. */
static void deleted(const struct core_lock *lock, struct step *step, uint32_t node, struct debt *debt)
{
    debt->state = DEBT_NONE;
    if (debt->late && debt->twice) debt_pass_on(lock, step, node, debt);
}

/* Rules 2.6 and 2.9: the node did not have our key. Unless an earlier try may have deleted the key, the hold had ended
 * before. */
static void absent(struct core_lock *lock, struct step *step, uint32_t node, struct debt *debt)
{
    debt->state = DEBT_NONE;
    if (debt->id.number == lock->release.attempt && !debt->unclear) lock->release.absent++;
    if (debt->late) debt_pass_on(lock, step, node, debt);
}

static void debt_answered(struct core_lock *lock, struct step *step, const struct core_reply *reply, struct debt *debt)
{
    uint32_t node = reply->tag.node;

    switch (reply->outcome) {
    case OUTCOME_YES: deleted(lock, step, node, debt); break;
    case OUTCOME_OTHER:
    case OUTCOME_MISSING: absent(lock, step, node, debt); break;
    case OUTCOME_UNKNOWN:
        debt->unclear = true;
        failed(lock, step, debt);
        break;
    case OUTCOME_UNSENT:
        debt->sent_generation = 0;
        debt->state = DEBT_UNSENT;
        break;
    case OUTCOME_ERROR:
        if (reply->fault == FAULT_CLASS_FOREIGN) {
            absent(lock, step, node, debt); /* a foreign value is there, not our key */
            break;
        }
        failed(lock, step, debt);
        /* Rule 2.9: rights may come back, but no result waits for that. */
        if (reply->fault != FAULT_CLASS_TEMPORARY) debt->state = DEBT_REFUSED;
        break;
    }
    if (reply->outcome != OUTCOME_YES || reply->listeners == 0) drop_echo(&lock->nodes[node], debt);
}

void debt_on_reply(struct core_lock *lock, struct step *step, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];

    EACH_DEBT (debt, node) {
        if (debt->state == DEBT_NONE || debt->id.number != reply->tag.attempt) continue;
        if (debt->sent_generation != reply->generation) continue; /* rule 2.4: sent again on a newer connection */
        assert(may_owe(lock, reply->tag.node));
        debt_answered(lock, step, reply, debt);
    }
    forget_paid(lock, reply->tag.node);
    debt_judge_release(lock, step->now_us);
}

/* Rules 2.6 and 10.3. */
void debt_on_set_answered(struct core_lock *lock, const struct core_reply *reply)
{
    struct core_node *node = &lock->nodes[reply->tag.node];
    bool unsent = reply->outcome == OUTCOME_UNSENT && reply->tag.op == OP_ACQUIRE;

    if ((reply->outcome >= OUTCOME_UNKNOWN && !unsent) || reply->generation != node->generation) return;
    if (reply->tag.attempt == lock->id.number) {
        bool repaired = node->key.repair_round != 0;

        /* Rule 3.9: the answer to an extend from before a repair proves nothing about the repair. */
        if (reply->tag.op != OP_EXTEND || reply->tag.round > node->key.repair_round) node->open = false;
        if (reply->tag.op == OP_EXTEND && reply->outcome == OUTCOME_YES && !repaired &&
            lock->config->holder.keep_us == 0)
            node->late = false;
    }
    if (!may_owe(lock, reply->tag.node) || reply->tag.op == OP_EXTEND) return;
    EACH_DEBT (debt, node) {
        if (debt->state != DEBT_NONE && debt->id.number == reply->tag.attempt) debt->open = false;
    }
}

/* Rule 2.6. */
void debt_on_connection_ended(struct core_lock *lock, uint32_t index, uint64_t now_us)
{
    struct core_node *node = &lock->nodes[index];
    uint64_t late_until_us = validity_add(now_us, LATE_US);

    assert(index < lock->config->n_nodes);
    if (node->open) {
        node->open = false;
        node->late = true;
        lock->late_until_us = late_until_us;
    }
    if (!may_owe(lock, index)) return;
    EACH_DEBT (debt, node) {
        if (!debt->open) continue;
        debt->open = false;
        debt->late = true;
        debt->until_us = core_larger(debt->until_us, late_key_until(lock, late_until_us));
    }
}

bool debt_may_come_late(const struct core_lock *lock, const struct core_node *node, uint64_t now_us)
{
    return node->open || is_late(lock, node, now_us);
}

/* Rule 2.8. */
bool debt_hurry(struct core_lock *lock, struct step *step, uint32_t index)
{
    struct core_node *node = &lock->nodes[index];
    bool sent = false;

    if (!may_owe(lock, index) || !core_can_talk(node)) return false;
    EACH_DEBT (debt, node) {
        if (debt_ended(debt, step->now_us) || debt->again_at_us == CORE_NEVER) continue;
        send_release(lock, step, index, debt);
        sent = true;
    }
    return sent;
}

static bool debt_is_due(const struct core_node *node, const struct debt *debt, uint64_t now_us)
{
    return debt->state != DEBT_NONE && core_can_talk(node) && debt->again_at_us <= now_us;
}

/* Rule 2.4. A step has room for n_nodes releases beside an attempt that ends and one that begins. The others stay due.
 */
void debt_on_timer(struct core_lock *lock, struct step *step)
{
    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        struct core_node *node = &lock->nodes[i];

        if (!may_owe(lock, i)) continue;
        EACH_DEBT (debt, node) {
            if (debt_ended(debt, step->now_us)) {
                drop_echo(node, debt);
                debt->state = DEBT_NONE;
            } else if (debt_is_due(node, debt, step->now_us) && step->update->n_commands < lock->config->n_nodes) {
                send_release(lock, step, i, debt);
            }
        }
        forget_paid(lock, i);
    }
}

/* Rule 2.4. */
uint64_t debt_deadline(const struct core_lock *lock)
{
    uint64_t first_us = CORE_NEVER;

    for (uint32_t i = 0; lock->owing >> i != 0; i++) {
        if (!may_owe(lock, i)) continue;
        LOOK_AT_EACH_DEBT (debt, &lock->nodes[i]) {
            if (debt->state != DEBT_NONE) first_us = core_smaller(first_us, debt->until_us);
            if (debt_is_due(&lock->nodes[i], debt, first_us)) first_us = debt->again_at_us;
        }
    }
    return first_us;
}

/* Rule 2.3. */
bool debt_waits(const struct core_node *node)
{
    LOOK_AT_EACH_DEBT (debt, node) {
        if (debt->state == DEBT_UNSENT) return true;
    }
    return false;
}

struct release_tally {
    uint32_t clear;  /* nodes without our key */
    uint32_t coming; /* nodes that can still answer on their present connection */
    uint32_t queued; /* of these, nodes that answer other requests, but had no room for the release yet */
};

static struct release_tally count_release(const struct core_lock *lock)
{
    struct release_tally tally = {0};

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) {
        const struct core_node *node = &lock->nodes[i];
        const struct debt *debt = may_owe(lock, i) ? debt_of(node, lock->release.attempt) : NULL;

        if (debt == NULL) {
            tally.clear++;
        } else if (core_can_talk(node) && debt->state != DEBT_REFUSED) {
            tally.coming += debt->state == DEBT_UNSENT || debt->sent_generation == node->generation ||
                            debt->again_at_us != CORE_NEVER;
            tally.queued += debt->state == DEBT_UNSENT && !node->doubt.overdue;
        }
    }
    assert(tally.clear + tally.coming <= lock->config->n_nodes);
    assert(tally.queued <= tally.coming);
    return tally;
}

static void end_release(struct core_lock *lock, bool clear)
{
    assert(lock->release.attempt != 0 && lock->release.attempt <= lock->id.number);
    /* Rule 2.9: a hold that had expired or was lost is over, even if a node still has its key. */
    core_notify(lock, CORE_NOTIFY_RELEASED, clear || lock->release.expired ? CORE_OK : CORE_NOQUORUM);
    lock->release.attempt = 0;
}

void debt_end_release(struct core_lock *lock)
{
    if (lock->release.attempt != 0) end_release(lock, count_release(lock).clear >= lock->config->quorum);
}

/* Answers are read for this long after the end of a release was first found near. */
static uint64_t last_wait_us(const struct core_lock *lock)
{
    return lock->config->node_timeout_us / 4;
}

/* Rule 1.8: if the process was suspended during the time to answer, the answers may be there unread, or the releases
 * may not even have been sent. So the time ends only a while after its end was first found near. */
static bool answers_are_late(struct core_lock *lock, uint64_t now_us)
{
    uint64_t look_at_us = validity_sub(lock->release.until_us, last_wait_us(lock));

    assert(lock->release.attempt != 0);
    assert(lock->release.looked_us <= now_us);
    if (now_us < look_at_us) return false;
    if (lock->release.looked_us == 0) lock->release.looked_us = now_us;
    return now_us >= lock->release.until_us && now_us >= lock->release.looked_us + last_wait_us(lock);
}

/* Rule 2.9: the hold had expired before if so many nodes lacked our key that no quorum had it. Fewer nodes may have
 * restarted, or never had the key. Answers that decide this are waited for, for one node timeout. */
void debt_judge_release(struct core_lock *lock, uint64_t now_us)
{
    uint32_t quorum = lock->config->quorum;
    uint32_t spare = lock->config->n_nodes - quorum;
    struct release_tally tally;
    bool late;

    if (lock->release.attempt == 0) return;
    tally = count_release(lock);
    late = answers_are_late(lock, now_us);
    if (lock->release.absent > spare) lock->release.expired = true;
    if (tally.clear >= quorum) {
        bool open = !lock->release.expired && lock->release.absent + tally.coming > spare;

        if (late || !open) end_release(lock, true);
    } else if (tally.clear + tally.coming < quorum || (tally.queued == 0 && late)) {
        end_release(lock, false);
    }
}

/* Rule 2.9: the time to answer does not run while a release waits for room, unless a quorum has answered. */
static bool waits_for_room(const struct core_lock *lock)
{
    struct release_tally tally = count_release(lock);

    return tally.queued > 0 && tally.clear < lock->config->quorum;
}

/* Rule 2.9. */
uint64_t debt_release_deadline(const struct core_lock *lock)
{
    uint64_t looked_us = lock->release.looked_us;

    if (lock->release.attempt == 0 || waits_for_room(lock)) return CORE_NEVER;
    if (looked_us == 0) return validity_sub(lock->release.until_us, last_wait_us(lock));
    return core_larger(lock->release.until_us, looked_us + last_wait_us(lock));
}
