/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "core/validity.h"

#define OWNER_SHOWN 8
#define OWNER_SIZE  136 /* 8 characters of 4 bytes, each an escape */
#define MS          1000u
#define WAIT_LOG_US 10000000u /* longest pause between two log lines that tell of a wait, or of failing renewals */

/* A text that is written piece by piece, and cut where the room ends. */
struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void message_add(struct text *text, const char *format, ...)
{
    va_list args;
    int written;

    va_start(args, format);
    written = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (written < 0) return;
    if ((size_t)written >= text->left) written = text->left > 0 ? (int)text->left - 1 : 0;
    text->at += written;
    text->left -= (size_t)written;
}

/* Most results are put together without a format, because a text is made for every operation. */
static inline void message_put(struct text *text, const char *piece, size_t length)
{
    if (length >= text->left) length = text->left > 0 ? text->left - 1 : 0;
    memcpy(text->at, piece, length);
    text->at += length;
    text->left -= length;
    if (text->left > 0) *text->at = '\0';
}

#define PUT(text, literal) message_put((text), (literal), sizeof(literal) - 1)

/* Write a number of nodes: two digits at most. */
static void put_count(struct text *text, size_t count)
{
    const char digits[] = {(char)('0' + (int)(count / 10 % 10)), (char)('0' + (int)(count % 10))};
    bool tens = count >= 10;

    assert(count < 100);
    message_put(text, tens ? digits : digits + 1, tens ? 2 : 1);
}

/* front "name" middle 2 of 3 nodes */
static void put_on_nodes(struct text *text, const char *front, const char *name, const char *middle,
                         const struct quorlock_result *result)
{
    message_put(text, front, strlen(front));
    PUT(text, " \"");
    message_put(text, name, strlen(name));
    PUT(text, "\" ");
    message_put(text, middle, strlen(middle));
    PUT(text, " ");
    put_count(text, result->granted);
    PUT(text, " of ");
    put_count(text, result->n_votes);
    PUT(text, " nodes");
}

const char *message_owner(char *ret, size_t size, const char *owner)
{
    const char *colon = strrchr(owner, ':');
    size_t label = colon != NULL ? (size_t)(colon - owner) + 1 : 0;
    struct text text = {.at = ret, .left = size};

    if (strcmp(owner, HOLDER_READERS) == 0) return "readers";
    if (owner_is_redisson(owner)) {
        snprintf(ret, size, "%.*s%s", OWNER_SHOWN, owner, colon);
        return ret;
    }
    if (*owner == '\0') owner = "\"\""; /* else nothing would be seen of it */
    if (label >= OPTIONS_LABEL_SIZE || !owner_is_plain_text(owner)) label = 0;
    message_add(&text, "%.*s", (int)label, owner);
    owner += label;
    for (int i = 0; i < OWNER_SHOWN && *owner != '\0'; i++) {
        for (size_t step = owner_step(owner); step > 0; step--, owner++) {
            unsigned char byte = (unsigned char)*owner;

            message_add(&text, byte > ' ' && byte < 0x7f ? "%c" : "\\x%02x", byte);
        }
    }
    return ret;
}

static int outcome_of(const struct claim *claim, uint32_t index)
{
    assert(index < claim->all->runtime->n_nodes);
    switch (core_vote(claim->core, index)) {
    case CORE_VOTE_NONE: return QUORLOCK_VOTE_NONE;
    case CORE_VOTE_PENDING: return QUORLOCK_VOTE_PENDING;
    case CORE_VOTE_YES: return QUORLOCK_VOTE_GRANTED;
    case CORE_VOTE_OTHER: return QUORLOCK_VOTE_REFUSED;
    case CORE_VOTE_MISSING:
    case CORE_VOTE_REPAIRED: return QUORLOCK_VOTE_MISSING;
    case CORE_VOTE_FAILED: break;
    }
    if (node_state_now(claim->all->runtime->nodes[index].node) == NODE_QUARANTINED) return QUORLOCK_VOTE_QUARANTINED;
    return QUORLOCK_VOTE_FAILED;
}

static const char *why_no_vote(const struct claim *claim, uint32_t index, int outcome)
{
    const struct node *node = claim->all->runtime->nodes[index].node;

    const char *error = answer_read(claim->results[index].answer)->error;

    if (error != NULL) return error;
    if (outcome == QUORLOCK_VOTE_PENDING) return "no answer yet";
    if (outcome != QUORLOCK_VOTE_FAILED && outcome != QUORLOCK_VOTE_QUARANTINED && outcome != QUORLOCK_VOTE_NONE) {
        return NULL;
    }
    if (*node_why(node) != '\0') return node_why(node);
    if (core_debts(claim->core, index) == CORE_DEBTS_MAX) return "too many releases are unanswered";
    if (outcome == QUORLOCK_VOTE_NONE && node_state_now(node) == NODE_READY) return "not asked";
    return "was not ready in time";
}

static const char *why_not_released(const struct claim *claim, uint32_t index)
{
    const struct node *node = claim->all->runtime->nodes[index].node;
    const struct node_result *result = &claim->results[index];
    const struct answer_texts *answer = answer_read(result->answer);

    if (result->released == QUORLOCK_VOTE_PENDING) return "no answer yet";
    if (result->released != QUORLOCK_VOTE_FAILED || answer->release_error != NULL) return answer->release_error;
    return *node_why(node) != '\0' ? node_why(node) : "not reached";
}

void message_votes(const struct claim *claim, bool release, struct message_votes *votes, struct quorlock_result *result)
{
    result->n_votes = claim->all->runtime->n_nodes;
    for (uint32_t i = 0; i < claim->all->runtime->n_nodes; i++) {
        const struct node_result *node = &claim->results[i];
        const struct answer_texts *answer = answer_read(node->answer);
        int outcome = release ? (int)node->released : outcome_of(claim, i);

        votes->each[i] =
            (struct quorlock_vote){.node = node_name(claim->all->runtime->nodes[i].node),
                                   .outcome = outcome,
                                   .latency_us = release ? 0 : node->latency_us,
                                   .error = release ? why_not_released(claim, i) : why_no_vote(claim, i, outcome),
                                   .holder = release ? answer->release_holder : answer->holder,
                                   .ttl_ms = release ? -2 : answer->ttl_ms};
        votes->at[i] = &votes->each[i];
        result->granted += outcome == QUORLOCK_VOTE_GRANTED;
        result->refused += outcome == QUORLOCK_VOTE_REFUSED;
        result->failed += outcome == QUORLOCK_VOTE_FAILED || outcome == QUORLOCK_VOTE_QUARANTINED ||
                          (outcome == QUORLOCK_VOTE_NONE && !release);
    }
    result->votes = votes->at;
    assert(result->granted + result->refused + result->failed <= result->n_votes);
}

void message_keep_texts(const struct claim *claim, struct message_votes *votes)
{
    votes->n_kept = claim->all->runtime->n_nodes;
    for (size_t i = 0; i < votes->n_kept; i++) {
        votes->kept[i] = claim->results[i].answer;
        answer_share(votes->kept[i]);
    }
    assert(votes->n_kept <= QUORLOCK_NODES_MAX);
}

void message_drop_texts(struct message_votes *votes, const struct alloc *alloc)
{
    for (size_t i = 0; i < votes->n_kept; i++) answer_unshare(votes->kept[i], alloc);
    votes->n_kept = 0;
}

static bool fails_like(const struct quorlock_vote *vote, const struct quorlock_vote *other)
{
    return vote->error != NULL && vote->outcome != QUORLOCK_VOTE_GRANTED && other->error != NULL &&
           other->outcome != QUORLOCK_VOTE_GRANTED && strcmp(vote->error, other->error) == 0;
}

/* Nodes with the same error share one mention of it. is_decided: those that have not answered do not matter. */
static void add_failures(struct text *text, const struct quorlock_result *result, bool is_decided)
{
    const struct quorlock_vote *const *votes = result->votes;

    for (size_t i = 0; i < result->n_votes; i++) {
        size_t first = 0;

        if (is_decided && votes[i]->outcome == QUORLOCK_VOTE_PENDING) continue;
        while (first < i && !fails_like(votes[first], votes[i])) first++;
        if (first < i || !fails_like(votes[i], votes[i])) continue;
        PUT(text, "; ");
        message_put(text, votes[i]->node, strlen(votes[i]->node));
        for (size_t k = i + 1; k < result->n_votes; k++) {
            if (fails_like(votes[i], votes[k])) message_add(text, ", %s", votes[k]->node);
        }
        PUT(text, ": ");
        message_put(text, votes[i]->error, strlen(votes[i]->error));
    }
}

/*
 * message_leases - list what is left of the leases that made nodes refuse, shortest first; return their number
 *
 * They are those of `holder`, or all with NULL. INT64_MAX is a lease without expiry, below 0 is one that is not known.
 * Leases of one holder differ if somebody set them by hand.
 */
static size_t message_leases(const struct quorlock_result *result, const char *holder,
                             int64_t left_ms[QUORLOCK_NODES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        int64_t ms = vote->ttl_ms == -1 ? INT64_MAX : vote->ttl_ms;
        size_t at = n;

        if (vote->outcome != QUORLOCK_VOTE_REFUSED) continue;
        if (holder != NULL && (vote->holder == NULL || quorlock_owner_equals(vote->holder, holder) == 0)) continue;
        for (; at > 0 && left_ms[at - 1] > ms; at--) left_ms[at] = left_ms[at - 1];
        left_ms[at] = ms;
        n++;
    }
    return n;
}

/* main_holder - return the foreign owner that is on most nodes, or NULL, and on how many. */
static const char *main_holder(const struct quorlock_result *result, size_t *on)
{
    const char *holder = NULL;
    int64_t left_ms[QUORLOCK_NODES_MAX];

    *on = 0;
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        size_t same;

        if (vote->outcome != QUORLOCK_VOTE_REFUSED || vote->holder == NULL) continue;
        same = message_leases(result, vote->holder, left_ms);
        if (same <= *on) continue;
        holder = vote->holder;
        *on = same;
    }
    return holder;
}

/* add_main_holder - add that owner, if there is one. */
static const char *add_main_holder(struct text *text, const struct quorlock_result *result, size_t *on)
{
    const char *holder = main_holder(result, on);
    char owner[OWNER_SIZE];

    if (holder != NULL) message_add(text, "; held by %s on %zu", message_owner(owner, sizeof(owner), holder), *on);
    return holder;
}

/* How many nodes the holders have, by the latest answer of each node: a waiter asks only one node now and then. */
struct taken {
    size_t nodes;        /* so many have a holder */
    size_t same, others; /* of these: the main holder, or another */
    size_t may_be;       /* may have the main holder: their answers do not say */
    bool asked_all;      /* every node has answered this attempt */
};

static struct taken message_count_taken(const struct quorlock_result *result, const char *holder)
{
    struct taken taken = {.asked_all = true};

    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        bool quoted = vote->outcome == QUORLOCK_VOTE_NONE && vote->holder != NULL;
        bool refused = vote->outcome == QUORLOCK_VOTE_REFUSED || quoted;
        bool same = refused && vote->holder != NULL && quorlock_owner_equals(vote->holder, holder) != 0;

        taken.nodes += refused;
        taken.same += same;
        taken.others += refused && vote->holder != NULL && !same;
        taken.may_be += vote->outcome == QUORLOCK_VOTE_PENDING || (refused && vote->holder == NULL);
        taken.asked_all &= vote->outcome != QUORLOCK_VOTE_NONE && vote->outcome != QUORLOCK_VOTE_PENDING;
    }
    assert(taken.same + taken.others <= taken.nodes && taken.nodes <= result->n_votes);
    return taken;
}

/* message_add_end - add when so many of these leases have ended that a quorum can be free. */
static void message_add_end(struct text *text, const struct quorlock_result *result, uint32_t quorum)
{
    int64_t left_ms[QUORLOCK_NODES_MAX] = {0};
    size_t n = message_leases(result, NULL, left_ms);
    size_t wanted = quorum > result->granted ? quorum - result->granted : 1;

    if (n < wanted || left_ms[0] < 0) return;
    if (left_ms[wanted - 1] == INT64_MAX) {
        message_add(text, "; too many have no expiry");
    } else {
        message_add(text, "; enough of their leases end in %lld ms", (long long)left_ms[wanted - 1]);
    }
}

/* message_add_taken - add that several owners have nodes, and that none is known to have a quorum. */
static void message_add_taken(struct text *text, const struct claim *claim, const struct quorlock_result *result,
                              const struct taken *taken, const char *holder)
{
    uint32_t quorum = runtime_quorum(claim->all->runtime);
    char owner[OWNER_SIZE];

    message_add(text, "\"%s\" is taken on %zu of %zu nodes, by ", keylist_name(claim->keylist), taken->nodes,
                result->n_votes);
    if (taken->same + taken->may_be < quorum) {
        message_add(text, "several owners");
    } else {
        message_add(text, "%s and others", message_owner(owner, sizeof(owner), holder));
    }
    if (taken->asked_all) message_add_end(text, result, quorum);
}

/* message_add_holder - add one owner, and for how long it has a quorum, or any node if it has no quorum now. */
static void message_add_holder(struct text *text, const struct claim *claim, const struct quorlock_result *result,
                               const char *holder)
{
    bool waits = strncmp(holder, HOLDER_WAITS, sizeof(HOLDER_WAITS) - 1) == 0, fair = claim->terms->config.fair;
    bool kept = strncmp(holder, HOLDER_KEPT, sizeof(HOLDER_KEPT) - 1) == 0;
    const char *how = !waits ? "held by" : fair ? "kept for a client that waits," : "kept for a writer that waits,";
    char owner[OWNER_SIZE];
    int64_t left_ms[QUORLOCK_NODES_MAX] = {0};
    size_t on = message_leases(result, holder, left_ms);
    size_t quorum = runtime_quorum(claim->all->runtime);
    int64_t until_ms = left_ms[on - (on >= quorum ? quorum : 1)];

    if (waits) holder += sizeof(HOLDER_WAITS) - 1;
    if (kept) {
        holder += sizeof(HOLDER_KEPT) - 1;
        how = "kept after its release by";
    }
    message_add(text, "\"%s\" is %s %s on %zu of %zu nodes", keylist_name(claim->keylist), how,
                message_owner(owner, sizeof(owner), holder), on, result->n_votes);
    if (until_ms == INT64_MAX) {
        message_add(text, ", no expiry");
    } else if (until_ms >= 0) {
        message_add(text, ", %lld ms left", (long long)until_ms);
    }
}

/* No node has answered this attempt yet: return a holder that one named in an earlier attempt. */
static const char *former_holder(const struct quorlock_result *result)
{
    for (size_t i = 0; i < result->n_votes; i++) {
        if (result->votes[i]->outcome == QUORLOCK_VOTE_PENDING && result->votes[i]->holder != NULL) {
            return result->votes[i]->holder;
        }
    }
    return NULL;
}

static void message_add_held(struct text *text, const struct claim *claim, const struct quorlock_result *result)
{
    size_t on;
    const char *holder = main_holder(result, &on);
    const char *former = former_holder(result);
    struct taken taken = {0};
    char owner[OWNER_SIZE];

    if (!keylist_admits(claim->keylist, &claim->terms->config)) {
        message_add(text, "\"%s\" is held by %s of this process", keylist_name(claim->keylist),
                    claim->keylist->permits == 0 ? "another lock" : "as many locks as it has permits, all");
        return;
    }
    if (claim->keylist->permits != 0) {
        message_add(text, "all %u permits are taken; slot %u of ", (unsigned)claim->keylist->permits,
                    core_slot(claim->core));
    }
    if (holder == NULL && result->refused == 0 && former != NULL) {
        message_add(text, "\"%s\" was held by %s when a node answered last", keylist_name(claim->keylist),
                    message_owner(owner, sizeof(owner), former));
        return;
    }
    if (holder == NULL) {
        message_add(text, "\"%s\" is held by somebody else", keylist_name(claim->keylist));
        if (result->refused > 0) message_add(text, " on %u of %zu nodes", result->refused, result->n_votes);
        return;
    }
    taken = message_count_taken(result, holder);
    if (taken.others > 0 && taken.same < runtime_quorum(claim->all->runtime)) {
        message_add_taken(text, claim, result, &taken, holder);
    } else {
        message_add_holder(text, claim, result, holder);
    }
    if (result->granted > 0) message_add(text, "; %u free", result->granted);
}

/* Add for how long the keys stay. */
static void add_kept(struct text *text, const struct claim *claim, const struct core_completion *completion)
{
    uint64_t kept_us = validity_sub(completion->keep_until_us, runtime_now_us(claim->all->runtime));

    if (kept_us == 0 || completion->expired) return;
    message_add(text, "; kept for another %llu ms", (unsigned long long)(kept_us / MS));
}

void message_released(const struct claim *claim, const struct core_completion *completion,
                      const struct quorlock_result *result, char *ret, size_t size)
{
    struct text text = {.at = ret, .left = size};
    size_t pending = 0, on;

    for (size_t i = 0; i < result->n_votes; i++) pending += result->votes[i]->outcome == QUORLOCK_VOTE_PENDING;
    ret[0] = '\0';
    put_on_nodes(&text, "released", keylist_name(claim->keylist), "on", result);
    (void)add_main_holder(&text, result, &on);
    if (result->refused > on) message_add(&text, "; not there any more on %zu", result->refused - on);
    /* A quorum has answered: the others are not waited for. */
    if (pending > 0 && completion->status == CORE_OK && !completion->expired) {
        PUT(&text, "; on its way to ");
        put_count(&text, pending);
        PUT(&text, " more");
    }
    add_kept(&text, claim, completion);
    if (completion->expired) message_add(&text, "; it had expired or was lost before");
    if (completion->status != CORE_OK) add_failures(&text, result, false);
}

static void add_too_few(struct text *text, const struct claim *claim, const struct quorlock_result *result)
{
    message_add(text, "too few nodes can vote on \"%s\": %u of %zu did, %u needed", keylist_name(claim->keylist),
                result->granted + result->refused, result->n_votes, runtime_quorum(claim->all->runtime));
}

/* An adoption failed; or a hold was lost. */
static void message_add_lost(struct text *text, const struct claim *claim, const struct quorlock_result *result)
{
    size_t missing = 0, on;

    message_add(text, "%s: \"%s\"", quorlock_status_text(QUORLOCK_ERR_LOST), keylist_name(claim->keylist));
    if (claim->granted) {
        if (core_loss(claim->core) != CORE_LOSS_NONE) message_add(text, ": %s", message_loss(core_loss(claim->core)));
        return;
    }
    for (size_t i = 0; i < result->n_votes; i++) missing += result->votes[i]->outcome == QUORLOCK_VOTE_MISSING;
    message_add(text, ": its token is gone from %zu of %zu nodes", missing + result->refused, result->n_votes);
    (void)add_main_holder(text, result, &on);
}

void message_verdict(const struct claim *claim, int status, const struct quorlock_result *result, char *ret,
                     size_t size)
{
    struct text text = {.at = ret, .left = size};
    uint32_t quorum = runtime_quorum(claim->all->runtime);
    char front[sizeof("granted slot of 12")] = "granted";

    ret[0] = '\0';
    if (claim->keylist->permits != 0)
        snprintf(front, sizeof(front), "granted slot %u of", core_slot(claim->core) & 63u);
    switch (status) {
    case QUORLOCK_OK: put_on_nodes(&text, front, keylist_name(claim->keylist), "by", result); break;
    case QUORLOCK_ERR_HELD: message_add_held(&text, claim, result); break;
    case QUORLOCK_ERR_NOQUORUM: add_too_few(&text, claim, result); break;
    case QUORLOCK_ERR_TIMEDOUT:
        message_add(&text, "%s; in the last attempt ", quorlock_status_text(status));
        if (result->granted + result->refused >= quorum) {
            message_add_held(&text, claim, result);
        } else {
            add_too_few(&text, claim, result);
        }
        break;
    case QUORLOCK_ERR_LOST: message_add_lost(&text, claim, result); break;
    case QUORLOCK_ERR_INVAL:
        message_add(&text, "the nodes refuse the settings of this client for \"%s\"", keylist_name(claim->keylist));
        break;
    default: message_add(&text, "%s: \"%s\"", quorlock_status_text(status), keylist_name(claim->keylist)); break;
    }
    add_failures(&text, result, status == QUORLOCK_OK || status == QUORLOCK_ERR_LOST);
}

static uint64_t mix(uint64_t hash, const char *text)
{
    return hash_text(hash, text != NULL ? text : "");
}

/* Hash what is in the way, or which nodes do not vote and why. An answer that comes late is no new reason. The lowest
 * bit: the reason is a holder. */
static uint64_t message_reason_of(const struct quorlock_result *result, bool held)
{
    uint64_t hash = HASH_START;
    size_t on;

    if (held) return mix(hash, main_holder(result, &on)) | 1u;
    for (size_t i = 0; i < result->n_votes; i++) {
        hash = mix(hash, result->votes[i]->holder);
        /* The text of a quarantine counts down: that is no new reason. */
        if (result->votes[i]->outcome == QUORLOCK_VOTE_QUARANTINED) hash = mix(hash, "quarantined");
        hash = mix(hash, result->votes[i]->outcome == QUORLOCK_VOTE_FAILED ? result->votes[i]->error : "");
    }
    return hash & ~1ull;
}

/* While one holder follows the other, lines about them become rarer the longer the wait lasts. */
static bool message_is_news(const struct claim *claim, uint64_t reason, uint64_t now_us)
{
    uint64_t quiet_us = now_us - claim->logged_us;
    uint64_t waited_us = now_us - core_begun_us(claim->core);

    assert(now_us >= claim->logged_us);
    if (quiet_us >= WAIT_LOG_US) return true;
    if (reason == claim->logged_reason) return false;
    return (reason & claim->logged_reason & 1u) == 0 || quiet_us >= waited_us / 2;
}

static void log_waiting(struct claim *claim)
{
    struct message_votes votes;
    struct quorlock_result result = {0};
    char text[MESSAGE_SIZE];
    uint64_t now_us = runtime_now_us(claim->all->runtime);
    uint64_t reason;
    bool held;

    message_votes(claim, false, &votes, &result);
    /* The arbiter's refusal decides; the other nodes are not asked then. */
    held = core_wait_verdict(claim->core) == CORE_HELD_BY_OTHER ||
           result.granted + result.refused >= runtime_quorum(claim->all->runtime);
    reason = message_reason_of(&result, held);
    if (!message_is_news(claim, reason, now_us)) return;
    claim->logged_reason = reason;
    claim->logged_us = now_us;
    message_verdict(claim, held ? QUORLOCK_ERR_HELD : QUORLOCK_ERR_NOQUORUM, &result, text, sizeof(text));
    runtime_log(claim->all->runtime, QUORLOCK_LOG_INFO, "waiting for \"%s\": %s", keylist_name(claim->keylist), text);
}

/* A lock near its end is renewed often: a failure for the same reason is no news. */
static bool is_new_failure(struct claim *claim, uint32_t log, const struct quorlock_result *result)
{
    uint64_t now_us = runtime_now_us(claim->all->runtime);
    uint64_t reason = message_reason_of(result, false);

    if ((log & CORE_LOG_DEGRADED) == 0 && !message_is_news(claim, reason, now_us)) return false;
    claim->logged_reason = reason;
    claim->logged_us = now_us;
    return true;
}

static uint32_t count_quarantined(const struct claim *claim)
{
    const struct runtime *runtime = claim->all->runtime;
    uint32_t n = 0;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) n += node_state_now(runtime->nodes[i].node) == NODE_QUARANTINED;
    return n;
}

/* A node that did not renew the lock in this round may still count by its yes of an earlier round, because no answer,
 * or an error, says nothing about the key. That a new lock is not on a node in quarantine is no news: that node has a
 * warning of its own. */
static void log_degraded(struct claim *claim, const struct quorlock_result *result, const char *why)
{
    char silent[sizeof(", 31 did not renew it")] = "";
    uint32_t counted = core_counted(claim->core);
    int level = counted + count_quarantined(claim) < result->n_votes ? QUORLOCK_LOG_WARN : QUORLOCK_LOG_INFO;

    assert(result->failed <= result->n_votes && result->n_votes <= QUORLOCK_NODES_MAX);
    if (result->failed > 0) snprintf(silent, sizeof(silent), ", %u did not renew it", result->failed & 31u);
    runtime_log(claim->all->runtime, level, "degraded \"%s\": held on %u of %zu nodes%s%s",
                keylist_name(claim->keylist), counted, result->n_votes, silent, why);
}

/* A program that locks on one server gets its lock beside ours, and does not notice. */
static bool is_of_another_program(const char *holder)
{
    size_t label;
    struct core_token token;

    if (strncmp(holder, "quorlock:", 9) == 0 || owner_is_redisson(holder)) return false;
    return !owner_read_plain(holder, &label, &token);
}

/* Another owner's key makes the lock one node weaker; without an expiry it does so until somebody takes it away. */
static void add_other_owner(struct text *text, const struct quorlock_result *result)
{
    int64_t left_ms[QUORLOCK_NODES_MAX];
    size_t n, on;
    const char *holder = add_main_holder(text, result, &on);

    if (holder == NULL) return;
    n = message_leases(result, holder, left_ms);
    if (n > 0 && left_ms[n - 1] == INT64_MAX) PUT(text, ", no expiry");
    if (is_of_another_program(holder)) PUT(text, ", by another program: see quorlock-interop(7)");
}

/* No other line of the log reports nodes that refuse renewals and work well otherwise. */
static void log_renewal(struct claim *claim, uint32_t log, const struct quorlock_result *result)
{
    struct runtime *runtime = claim->all->runtime;
    const char *name = keylist_name(claim->keylist);
    unsigned long long valid_ms = core_valid_us(claim->core, runtime_now_us(runtime)) / MS;
    char why[MESSAGE_SIZE] = "";
    struct text text = {.at = why, .left = sizeof(why)};

    if ((log & CORE_LOG_RENEWED) != 0) {
        runtime_log(runtime, QUORLOCK_LOG_DEBUG, "renewed \"%s\" on %u of %zu nodes so far, valid %llu ms", name,
                    result->granted, result->n_votes, valid_ms);
    }
    if ((log & (CORE_LOG_RENEW_FAILED | CORE_LOG_DEGRADED)) == 0) return;
    add_failures(&text, result, false);
    add_other_owner(&text, result);
    if ((log & CORE_LOG_RENEW_FAILED) != 0 && is_new_failure(claim, log, result)) {
        runtime_log(runtime, QUORLOCK_LOG_WARN, "renewal of \"%s\" reached %u of %zu nodes; valid %llu ms more%s", name,
                    result->granted, result->n_votes, valid_ms, why);
    }
    if ((log & CORE_LOG_DEGRADED) != 0) log_degraded(claim, result, why);
}

void message_log(struct claim *claim, uint32_t log)
{
    struct runtime *runtime = claim->all->runtime;
    const char *name = keylist_name(claim->keylist);
    struct message_votes votes;
    struct quorlock_result result = {0};

    if (runtime->options.log == NULL) return;
    if ((log & CORE_LOG_ATTEMPT_FAILED) != 0 && core_phase_now(claim->core) == CORE_WAITING &&
        claim->terms->config.holder.wait_us != 0) {
        log_waiting(claim);
    }
    message_votes(claim, false, &votes, &result);
    log_renewal(claim, log, &result);
    if ((log & CORE_LOG_REPAIRED) != 0) {
        runtime_log(runtime, QUORLOCK_LOG_INFO, "repaired \"%s\" on a node that had lost it", name);
    }
    if ((log & CORE_LOG_WHOLE) != 0) {
        runtime_log(runtime, QUORLOCK_LOG_INFO, "whole again \"%s\": held on all %zu nodes", name, result.n_votes);
    }
}

const char *message_loss(enum core_loss loss)
{
    static const char *const texts[] = {
        [CORE_LOSS_NONE] = "",
        [CORE_LOSS_EXPIRED] = "renewal did not reach a quorum in time",
        [CORE_LOSS_GONE] = "the key is gone from so many nodes that a quorum is out of reach",
        [CORE_LOSS_MAX_HOLD] = "max_hold_ms is over",
        [CORE_LOSS_NOT_RENEWED] = "the lease ends and renewal is off",
        [CORE_LOSS_CLOCK] = "the clocks of a quorum advanced faster than ours: this machine was suspended",
    };

    assert((size_t)loss < sizeof(texts) / sizeof(texts[0]));
    return texts[loss];
}

void message_log_loss(struct claim *claim)
{
    assert(core_phase_now(claim->core) == CORE_LOST);
    runtime_log(claim->all->runtime, QUORLOCK_LOG_ERROR, "lost \"%s\": %s; %u ms of validity left",
                keylist_name(claim->keylist), message_loss(core_loss(claim->core)), claim_remaining_ms(claim));
}
