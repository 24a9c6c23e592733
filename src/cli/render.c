/* SPDX-License-Identifier: BSD-3-Clause */
#include "render.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "say.h"

enum { TOKEN_DIGITS = 40, TOKEN_SHOWN = 8, LABEL_SHOWN = 64, NUMBER_DIGITS = 19, HOLDER_SHOWN = 128 };

/* What the library calls a read-write lock of Redisson, before its mode. */
#define READ_WRITE "RReadWriteLock:"

static const char hex_digits[] = "0123456789abcdef";

/* redisson_colon - where the colon of <uuid>:<number> is; 0: no Redisson owner. */
static size_t redisson_colon(const char *owner, size_t length)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    size_t at = 0, digits;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (i > 0 && owner[at++] != '-') return 0;
        if (strspn(owner + at, hex_digits) != parts[i]) return 0;
        at += parts[i];
    }
    digits = owner[at] == ':' ? strspn(owner + at + 1, "0123456789") : 0;
    return digits > 0 && digits <= NUMBER_DIGITS && at + 1 + digits == length ? at : 0;
}

/* chars_length - bytes of the first n characters: in UTF-8, or escaped by the library as \xNN. */
static size_t chars_length(const char *text, size_t n)
{
    size_t length = 0;

    for (; n > 0 && text[length] != '\0'; n--) {
        bool escaped = strncmp(text + length, "\\x", 2) == 0 && strspn(text + length + 2, hex_digits) >= 2;

        length += escaped ? 4 : 1;
        while (!escaped && ((unsigned char)text[length] & 0xc0) == 0x80) length++;
    }
    return length;
}

const char *render_owner(char *buffer, const char *owner)
{
    size_t length = strlen(owner);
    size_t colon = redisson_colon(owner, length);
    size_t label = length >= TOKEN_DIGITS ? length - TOKEN_DIGITS : 0;

    if (length == 0) return "\"\""; /* an empty token; else nothing would be seen of it */
    if (length < TOKEN_DIGITS || strspn(owner + label, hex_digits) != TOKEN_DIGITS) label = 0;
    if (label > LABEL_SHOWN) label = LABEL_SHOWN;
    if (colon != 0) {
        snprintf(buffer, RENDER_OWNER_SIZE, "%.*s%s", TOKEN_SHOWN, owner, owner + colon);
    } else if (strncmp(owner, READ_WRITE, strlen(READ_WRITE)) == 0 && length <= LABEL_SHOWN) {
        snprintf(buffer, RENDER_OWNER_SIZE, "%s", owner);
    } else {
        label += chars_length(owner + label, TOKEN_SHOWN);
        snprintf(buffer, RENDER_OWNER_SIZE, "%.*s", (int)label, owner);
    }
    return buffer;
}

void render_holder(struct text *text, const char *holder)
{
    size_t length = chars_length(holder, HOLDER_SHOWN);

    if (length == 0) text_format(text, "\"\"");
    text_add_safe(text, holder, length);
    if (holder[length] != '\0') text_format(text, "...");
}

static const char *vote_word(int outcome)
{
    switch (outcome) {
    case QUORLOCK_VOTE_GRANTED: return "granted";
    case QUORLOCK_VOTE_REFUSED: return "refused";
    case QUORLOCK_VOTE_MISSING: return "key is gone";
    case QUORLOCK_VOTE_PENDING: return "no answer yet";
    case QUORLOCK_VOTE_NONE: return "not asked";
    default: return "no vote";
    }
}

static void add_left(struct text *text, int64_t left_ms)
{
    if (left_ms == -1) text_format(text, ", no expiry");
    if (left_ms >= 0) text_format(text, ", %" PRId64 " ms left", left_ms);
}

void render_votes(const struct quorlock_vote *const *votes, size_t n_votes)
{
    for (size_t i = 0; i < n_votes; i++) {
        const struct quorlock_vote *vote = votes[i];
        bool answered = vote->outcome != QUORLOCK_VOTE_PENDING && vote->outcome != QUORLOCK_VOTE_NONE;
        char owner[RENDER_OWNER_SIZE];
        struct text line = {0};

        text_format(&line, "  %s  %s", vote->node,
                    vote_word(vote->error != NULL && !answered ? -1 : vote->outcome));
        if (vote->holder != NULL && vote->outcome != QUORLOCK_VOTE_GRANTED) {
            text_format(&line, ": held by %s", render_owner(owner, vote->holder));
            add_left(&line, vote->ttl_ms);
        }
        if (vote->error != NULL) text_format(&line, ": %s", vote->error);
        say_text(&line);
    }
}

/* is_in_the_way - whether the node refused because of that holder; NULL: of any. */
static bool is_in_the_way(const struct quorlock_vote *vote, const char *holder)
{
    if (vote->outcome != QUORLOCK_VOTE_REFUSED) return false;
    return holder == NULL || (vote->holder != NULL && quorlock_same_owner(vote->holder, holder));
}

/*
 * leases_left - what is left of the leases in the way, shortest first; how many they are
 *
 * INT64_MAX: no expiry; below 0: not known. Leases of one holder differ where somebody set them by hand.
 */
static size_t leases_left(const struct quorlock_result *result, const char *holder,
                          int64_t left_ms[QUORLOCK_NODES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        int64_t ms = vote->ttl_ms == -1 ? INT64_MAX : vote->ttl_ms;
        size_t at = n;

        if (!is_in_the_way(vote, holder)) continue;
        for (; at > 0 && left_ms[at - 1] > ms; at--) left_ms[at] = left_ms[at - 1];
        left_ms[at] = ms;
        n++;
    }
    return n;
}

/* What is in the way, by the last answer of each node: a waiter asks one of them now and then. */
struct taken {
    const char *holder;  /* the one on most nodes; NULL: no node named one */
    size_t nodes;        /* so many have a holder */
    size_t same, others; /* of these: the main holder, or another */
    size_t may_be;       /* may have the main holder and have not answered yet */
    bool asked_all;      /* every node was asked, and has answered */
};

static struct taken count_taken(const struct quorlock_result *result)
{
    struct taken taken = {.asked_all = true};
    int64_t left_ms[QUORLOCK_NODES_MAX];
    size_t most = 0;

    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        size_t nodes =
            vote->holder != NULL && is_in_the_way(vote, NULL) ? leases_left(result, vote->holder, left_ms) : 0;

        if (nodes > most) taken.holder = vote->holder;
        if (nodes > most) most = nodes;
    }
    for (size_t i = 0; i < result->n_votes && taken.holder != NULL; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        bool idle = vote->outcome == QUORLOCK_VOTE_NONE, pending = vote->outcome == QUORLOCK_VOTE_PENDING;
        bool refused = vote->outcome == QUORLOCK_VOTE_REFUSED || (idle && vote->holder != NULL);
        bool same = refused && vote->holder != NULL && quorlock_same_owner(vote->holder, taken.holder);

        taken.nodes += refused;
        taken.same += same;
        taken.others += refused && vote->holder != NULL && !same;
        taken.may_be += pending || (refused && vote->holder == NULL);
        taken.asked_all &= !idle && !pending;
    }
    return taken;
}

/* add_several - several owners, and none that is known to be on a quorum. */
static void add_several(struct text *line, const struct quorlock_result *result, const struct taken *taken,
                        size_t quorum)
{
    char owner[RENDER_OWNER_SIZE];
    int64_t left_ms[QUORLOCK_NODES_MAX];
    size_t n = leases_left(result, NULL, left_ms);
    size_t wanted = quorum > result->granted ? quorum - result->granted : 1; /* so many must end */

    text_format(line, "taken on %zu of %zu nodes, by ", taken->nodes, result->n_votes);
    if (taken->same + taken->may_be < quorum) {
        text_format(line, "no one owner");
    } else {
        text_format(line, "%s and others", render_owner(owner, taken->holder));
    }
    if (!taken->asked_all || n < wanted || left_ms[0] < 0) return;
    if (left_ms[wanted - 1] == INT64_MAX) {
        text_format(line, "; too many have no expiry: only their holders or \"quorlock break\" end them");
    } else {
        text_format(line, "; enough of their leases end in %" PRId64 " ms", left_ms[wanted - 1]);
    }
}

/* add_single - one owner, and how long it is on a quorum, or on any node where it is on fewer already. */
static void add_single(struct text *line, const struct quorlock_result *result, const char *holder,
                       size_t quorum)
{
    char owner[RENDER_OWNER_SIZE];
    int64_t left_ms[QUORLOCK_NODES_MAX] = {0};
    size_t n = leases_left(result, holder, left_ms);
    int64_t until_ms = left_ms[n - (n >= quorum ? quorum : 1)];

    text_format(line, "held by %s on %zu of %zu nodes", render_owner(owner, holder), n, result->n_votes);
    add_left(line, until_ms == INT64_MAX ? -1 : until_ms);
    if (until_ms == INT64_MAX) text_format(line, ": only its holder or \"quorlock break\" ends it");
}

void render_held(const char *key, const struct quorlock_result *result, size_t quorum)
{
    struct taken taken = count_taken(result);
    struct text line = {0};

    text_format(&line, "\"%s\" is ", key);
    if (taken.holder == NULL) {
        text_format(&line, "held by somebody else on %u of %zu nodes", result->refused, result->n_votes);
    } else if (taken.others > 0 && taken.same < quorum) {
        add_several(&line, result, &taken, quorum);
    } else {
        add_single(&line, result, taken.holder, quorum);
    }
    say_text(&line);
}

size_t render_gone(const struct quorlock_result *result)
{
    size_t gone = 0;

    for (size_t i = 0; i < result->n_votes; i++) {
        int outcome = result->votes[i]->outcome;

        gone += outcome != QUORLOCK_VOTE_PENDING && outcome != QUORLOCK_VOTE_FAILED &&
                outcome != QUORLOCK_VOTE_QUARANTINED;
    }
    return gone;
}
