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

/* Where the colon of <uuid>:<number> is; 0: no Redisson owner. */
static size_t redisson_colon(const char *owner, size_t length)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (i > 0 && owner[at++] != '-') return 0;
        if (strspn(owner + at, "0123456789abcdef") != parts[i]) return 0;
        at += parts[i];
    }
    size_t digits = owner[at] == ':' ? strspn(owner + at + 1, "0123456789") : 0;
    return digits > 0 && digits <= NUMBER_DIGITS && at + 1 + digits == length ? at : 0;
}

/* char_step - how many bytes at `text` are one character: one that the library escaped as \xNN, or one in
 * UTF-8. */
static size_t char_step(const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t step = 1;
    if (strncmp(text, "\\x", 2) == 0 && strspn(text + 2, digits) >= 2) return 4;
    while (((unsigned char)text[step] & 0xc0) == 0x80) step++;
    return step;
}

/* chars_length - how many bytes the first n characters are. */
static size_t chars_length(const char *text, size_t n)
{
    size_t length = 0;
    while (n-- > 0 && text[length]) length += char_step(text + length);
    return length;
}

const char *render_owner(char *buffer, const char *owner)
{
    if (!*owner) return "\"\""; /* an empty token; else nothing would be seen of it */
    size_t length = strlen(owner);
    size_t colon = redisson_colon(owner, length);
    size_t label = length >= TOKEN_DIGITS ? length - TOKEN_DIGITS : 0;
    if (length < TOKEN_DIGITS || strspn(owner + label, "0123456789abcdef") != TOKEN_DIGITS) label = 0;
    if (label > LABEL_SHOWN) label = LABEL_SHOWN;
    if (colon) {
        snprintf(buffer, RENDER_OWNER_SIZE, "%.*s%s", TOKEN_SHOWN, owner, owner + colon);
    } else if (strncmp(owner, READ_WRITE, strlen(READ_WRITE)) == 0 && length <= LABEL_SHOWN) {
        snprintf(buffer, RENDER_OWNER_SIZE, "%s", owner);
    } else {
        label += chars_length(owner + label, TOKEN_SHOWN);
        snprintf(buffer, RENDER_OWNER_SIZE, "%.*s", (int)label, owner);
    }
    return buffer;
}

/* text_add_holder - a holder as it stands in reports; of a value that is no token the beginning. */
static void text_add_holder(struct text *text, const char *holder)
{
    size_t shown = chars_length(holder, HOLDER_SHOWN);
    if (!*holder) text_format(text, "\"\"");
    text_add_safe(text, holder, shown);
    if (holder[shown]) text_format(text, "...");
}

size_t render_quorum(int policy, size_t n)
{
    return policy == QUORLOCK_ALL ? n : n / 2 + 1;
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

static void text_add_left(struct text *text, int64_t ttl_ms)
{
    if (ttl_ms == -1) text_format(text, "no expiry");
    if (ttl_ms >= 0) text_format(text, "%" PRId64 " ms left", ttl_ms);
}

void render_votes(const struct quorlock_vote *const *votes, size_t n_votes)
{
    for (size_t i = 0; i < n_votes; i++) {
        const struct quorlock_vote *vote = votes[i];
        char owner[RENDER_OWNER_SIZE];
        struct text line = {0};
        bool answered = vote->outcome != QUORLOCK_VOTE_PENDING && vote->outcome != QUORLOCK_VOTE_NONE;
        text_format(&line, "  %s  %s", vote->node, vote_word(vote->error && !answered ? -1 : vote->outcome));
        if (vote->holder && vote->outcome != QUORLOCK_VOTE_GRANTED) {
            text_format(&line, ": held by %s", render_owner(owner, vote->holder));
            if (vote->ttl_ms >= -1) text_format(&line, ", ");
            text_add_left(&line, vote->ttl_ms);
        }
        if (vote->error) text_format(&line, ": %s", vote->error);
        if (!line.failed) say("%.*s", (int)line.length, line.bytes);
        text_clear(&line);
    }
}

/* holder_nodes - on how many nodes `holder` stands in our way. */
static size_t holder_nodes(const struct quorlock_result *result, const char *holder)
{
    size_t nodes = 0;
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        if (vote->outcome == QUORLOCK_VOTE_REFUSED && vote->holder && quorlock_same_owner(vote->holder, holder))
            nodes++;
    }
    return nodes;
}

/* holder_find - the holder on most nodes, or NULL. */
static const char *holder_find(const struct quorlock_result *result)
{
    const char *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        size_t nodes =
            vote->outcome == QUORLOCK_VOTE_REFUSED && vote->holder ? holder_nodes(result, vote->holder) : 0;
        if (nodes <= most) continue;
        most = nodes;
        found = vote->holder;
    }
    return found;
}

/*
 * holder_left_ms - until `holder` is on fewer than `quorum` nodes, or gone where it is on fewer already
 *
 * -1: never by itself; -2: not known. Its leases on the nodes differ where somebody set them by hand.
 */
static int64_t holder_left_ms(const struct quorlock_result *result, const char *holder, size_t quorum)
{
    size_t nodes = holder_nodes(result, holder);
    size_t rank = nodes >= quorum ? quorum : 1; /* the quorum'th largest, or the largest */
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        size_t longer = 0, same = 0;
        if (vote->outcome != QUORLOCK_VOTE_REFUSED || !vote->holder ||
            !quorlock_same_owner(vote->holder, holder))
            continue;
        for (size_t j = 0; j < result->n_votes; j++) {
            const struct quorlock_vote *other = result->votes[j];
            if (other->outcome != QUORLOCK_VOTE_REFUSED || !other->holder) continue;
            if (!quorlock_same_owner(other->holder, holder)) continue;
            if (other->ttl_ms == vote->ttl_ms) {
                same++;
            } else if (vote->ttl_ms != -1 && (other->ttl_ms == -1 || other->ttl_ms > vote->ttl_ms)) {
                longer++;
            }
        }
        if (longer < rank && rank <= longer + same) return vote->ttl_ms;
    }
    return -2;
}

/*
 * taken_left_ms - until the leases in the way have ended on so many nodes that a quorum is free
 *
 * -1: never by themselves; -2: not known, as long as one node was not asked, or has not told.
 */
static int64_t taken_left_ms(const struct quorlock_result *result, size_t quorum)
{
    size_t wanted = quorum > result->granted ? quorum - result->granted : 1; /* the wanted'th to end */
    int64_t left_ms = -2;
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        size_t shorter = 0, same = 0;
        if (vote->outcome == QUORLOCK_VOTE_PENDING || vote->outcome == QUORLOCK_VOTE_NONE) return -2;
        if (vote->outcome != QUORLOCK_VOTE_REFUSED) continue;
        if (vote->ttl_ms < -1) return -2;
        for (size_t j = 0; j < result->n_votes; j++) {
            const struct quorlock_vote *other = result->votes[j];
            if (other->outcome != QUORLOCK_VOTE_REFUSED) continue;
            same += other->ttl_ms == vote->ttl_ms;
            shorter += other->ttl_ms != -1 && (vote->ttl_ms == -1 || other->ttl_ms < vote->ttl_ms);
        }
        if (shorter < wanted && wanted <= shorter + same) left_ms = vote->ttl_ms;
    }
    return left_ms;
}

/* What is in the way, by the last answer of each node: a waiter asks one of them now and then. */
struct taken {
    size_t nodes;        /* so many have a holder */
    size_t same, others; /* of these: the main holder, or another */
    size_t may_be;       /* may have the main holder and have not told yet */
};

static struct taken taken_count(const struct quorlock_result *result, const char *holder)
{
    struct taken taken = {0};
    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];
        bool refused =
            vote->outcome == QUORLOCK_VOTE_REFUSED || (vote->outcome == QUORLOCK_VOTE_NONE && vote->holder);
        bool same = refused && vote->holder && quorlock_same_owner(vote->holder, holder);
        taken.nodes += refused;
        taken.same += same;
        taken.others += refused && vote->holder && !same;
        taken.may_be += vote->outcome == QUORLOCK_VOTE_PENDING || (refused && !vote->holder);
    }
    return taken;
}

/* held_add_taken - several owners, and none that is known to be on a quorum. */
static void held_add_taken(struct text *line, const struct quorlock_result *result, const char *holder,
                           size_t quorum)
{
    char owner[RENDER_OWNER_SIZE];
    struct taken taken = taken_count(result, holder);
    int64_t left_ms = taken_left_ms(result, quorum);
    text_format(line, "taken on %zu of %zu nodes, by ", taken.nodes, result->n_votes);
    if (taken.same + taken.may_be < quorum) {
        text_format(line, "no one owner");
    } else {
        text_format(line, "%s and others", render_owner(owner, holder));
    }
    if (left_ms >= 0) text_format(line, "; enough of their leases end in %" PRId64 " ms", left_ms);
    if (left_ms == -1)
        text_format(line, "; too many have no expiry: only their holders or \"quorlock break\" end them");
}

static void held_add_holder(struct text *line, const struct quorlock_result *result, const char *holder,
                            size_t quorum)
{
    char owner[RENDER_OWNER_SIZE];
    int64_t left_ms = holder_left_ms(result, holder, quorum);
    text_format(line, "held by %s on %zu of %zu nodes", render_owner(owner, holder),
                holder_nodes(result, holder), result->n_votes);
    if (left_ms >= -1) text_format(line, ", ");
    text_add_left(line, left_ms);
    if (left_ms == -1) text_format(line, ": only its holder or \"quorlock break\" ends it");
}

void render_held(const char *key, const struct quorlock_result *result, size_t quorum)
{
    const char *holder = holder_find(result);
    struct text line = {0};
    struct taken taken = {0};
    if (holder) taken = taken_count(result, holder);
    text_format(&line, "\"%s\" is ", key);
    if (!holder) {
        text_format(&line, "held by somebody else on %u of %zu nodes", result->refused, result->n_votes);
    } else if (taken.others && taken.same < quorum) {
        held_add_taken(&line, result, holder, quorum);
    } else {
        held_add_holder(&line, result, holder, quorum);
    }
    if (!line.failed) say("%.*s", (int)line.length, line.bytes);
    text_clear(&line);
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

/* What stands at the key on the nodes. */
struct census {
    size_t held, foreign, free;
    const char *holder; /* of those that hold it one, and whether there is another */
    bool several;
    const char *type; /* of those that are foreign one that is known, and whether there is another */
    bool several_types;
};

static struct census census_take(const struct quorlock_report *report)
{
    struct census census = {0};
    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_node_report *node = report->nodes[i];
        if (strcmp(node->state, "free") == 0) {
            census.free++;
        } else if (strcmp(node->state, "foreign") == 0) {
            census.foreign++;
            census.several_types |= census.type && node->type && strcmp(census.type, node->type) != 0;
            if (node->type) census.type = node->type;
        } else if (strcmp(node->state, "held") == 0) {
            census.held++;
            census.several |= census.holder && !quorlock_same_owner(census.holder, node->holder);
            census.holder = node->holder;
        }
    }
    return census;
}

/* summary_add_foreign - there are values that are no locks of this dialect: what they are, and how to see more.
 */
static void summary_add_foreign(struct text *text, const struct census *census, size_t n_nodes, int dialect)
{
    bool plain = dialect == QUORLOCK_DIALECT_PLAIN;
    const char *type = census->several_types || !census->type ? "value of another type" : census->type;
    text_format(text, "\" is no lock on %zu of %zu nodes: a ", census->foreign, n_nodes);
    text_add_safe(text, type, strlen(type));
    text_format(text, " is there, and no %s", plain ? "string" : "hash");
    if (strcmp(type, plain ? "hash" : "string") == 0)
        text_format(text, ". If that is a lock of %s, give --dialect %s",
                    plain ? "Redisson's" : "the plain dialect", plain ? "redisson" : "plain");
    text_format(text, "\n");
}

/* summary_add_taken - there are locks, and no owner is on a quorum. */
static void summary_add_taken(struct text *text, const struct census *census,
                              const struct quorlock_report *report)
{
    if (census->free >= report->quorum) {
        text_format(text, "\" is held by nobody: no owner is on %u of %zu nodes\n", report->quorum,
                    report->n_nodes);
    } else if (census->several) {
        text_format(text, "\" is taken on %zu of %zu nodes, by no one owner\n", census->held, report->n_nodes);
    } else {
        text_format(text, "\" is taken on %zu of %zu nodes by ", census->held, report->n_nodes);
        text_add_holder(text, census->holder);
        text_format(text, ", and free on fewer than %u\n", report->quorum);
    }
}

/* summary_add_held - one owner is on a quorum. */
static void summary_add_held(struct text *text, const struct census *census,
                             const struct quorlock_report *report)
{
    size_t here = 0;
    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *holder = report->nodes[i]->holder;
        here += holder && report->holder && strcmp(holder, report->holder) == 0;
    }
    if (report->holder) {
        text_format(text, "\" is held by ");
        text_add_holder(text, report->holder);
        text_format(text, " on %zu of %zu nodes, ", here, report->n_nodes);
    } else {
        text_format(text,
                    "\" is held on %zu of %zu nodes by an owner with a name for each, as RedissonRedLock has, ",
                    census->held, report->n_nodes);
    }
    if (report->valid_ms == UINT32_MAX) {
        text_format(text, "no expiry\n");
    } else {
        text_format(text, "%" PRIu32 " ms left\n", report->valid_ms);
    }
}

void render_summary(struct text *text, const char *key, const struct quorlock_report *report, int dialect)
{
    struct census census = census_take(report);
    text_format(text, "\"");
    text_add_safe(text, key, strlen(key));
    if (report->held) {
        summary_add_held(text, &census, report);
    } else if (report->answered < report->quorum) {
        text_format(text, "\": only %u of %zu nodes answered, %u are needed to tell\n", report->answered,
                    report->n_nodes, report->quorum);
    } else if (census.foreign) {
        summary_add_foreign(text, &census, report->n_nodes, dialect);
    } else if (census.held) {
        summary_add_taken(text, &census, report);
    } else {
        text_format(text, "\" is free\n");
    }
}

/* ---- the table of the nodes ---- */

enum column {
    COLUMN_NODE,
    COLUMN_STATE,
    COLUMN_HOLDER,
    COLUMN_LEFT,
    COLUMN_FENCE,
    COLUMN_GUARD,
    COLUMN_LATENCY,
    COLUMN_LAST
};
enum { COLUMNS = COLUMN_LAST + 1 };

static void cell_add_latency(struct text *cell, const struct quorlock_node_report *node)
{
    if (node->latency_us) text_format(cell, "%.1f ms", (double)node->latency_us / 1000.0);
}

/* Whether the node may vote, as far as its guard says; nothing where nobody could look. */
static void cell_add_guard(struct text *cell, const struct quorlock_node_report *node)
{
    bool seen = strcmp(node->state, "free") == 0 || strcmp(node->state, "held") == 0;
    int64_t tenths = (node->quarantine_ms + 99) / 100; /* rounded up: 0.0 is not told before it is over */
    if (node->quarantine_ms > 0)
        text_format(cell, "quarantined %" PRId64 ".%" PRId64 " s", tenths / 10, tenths % 10);
    else if (node->quarantine_ms == 0)
        text_format(cell, "ok");
    else if (seen)
        text_format(cell, "none");
}

/* A guard as bootstrap found it: 1|N|set|max_lease|... */
static void cell_add_found_guard(struct text *cell, const char *guard)
{
    const char *fields[5] = {guard};
    size_t n = 1;
    for (; n < 5 && (fields[n] = strchr(fields[n - 1], '|')) != NULL; n++) fields[n]++;
    if (n < 5 || strncmp(guard, "1|", 2) != 0) {
        text_add_safe(cell, guard, strlen(guard));
        return;
    }
    if (strncmp(fields[1], "0|", 2) == 0) {
        text_format(cell, "of a reconfigure that was not finished");
        return;
    }
    text_add_safe(cell, fields[1], (size_t)(fields[2] - fields[1]) - 1);
    text_format(cell, " nodes, set ");
    text_add_safe(cell, fields[2], (size_t)(fields[3] - fields[2]) - 1);
    text_format(cell, ", max lease ");
    text_add_safe(cell, fields[3], (size_t)(fields[4] - fields[3]) - 1);
    text_format(cell, " ms");
}

static void cell_add(struct text *cell, const struct quorlock_node_report *node, enum column column,
                     enum render_table about)
{
    switch (column) {
    case COLUMN_NODE: text_add_safe(cell, node->node, strlen(node->node)); break;
    case COLUMN_STATE: text_format(cell, "%s", node->state); break;
    case COLUMN_HOLDER:
        if (node->holder) text_add_holder(cell, node->holder);
        if (node->holder && node->count > 1) text_format(cell, " (%" PRIu32 " times)", node->count);
        break;
    case COLUMN_LEFT:
        if (node->holder && node->ttl_ms == -1) text_format(cell, "no expiry");
        if (node->holder && node->ttl_ms >= 0) text_format(cell, "%" PRId64 " ms", node->ttl_ms);
        break;
    case COLUMN_FENCE:
        if (node->fence) text_format(cell, "%" PRIu64, node->fence);
        break;
    case COLUMN_GUARD:
        if (about != RENDER_BOOTSTRAP) {
            cell_add_guard(cell, node);
        } else if (node->holder) {
            cell_add_found_guard(cell, node->holder);
        }
        break;
    case COLUMN_LATENCY: cell_add_latency(cell, node); break;
    case COLUMN_LAST:
        if (about == RENDER_BREAK && node->broken) text_format(cell, "broken");
        if (about == RENDER_BREAK && node->broken && node->type) {
            text_format(cell, " (a ");
            text_add_safe(cell, node->type, strlen(node->type));
            text_format(cell, ")");
        }
        if (node->error) text_add_safe(cell, node->error, strlen(node->error));
        break;
    }
}

/* Without the holder, bootstrap; without a fence where no node has one; break looks at no guard. */
static bool column_is_shown(enum column column, const struct quorlock_report *report, enum render_table about)
{
    bool wanted = true;
    if (column == COLUMN_HOLDER || column == COLUMN_LEFT) return about != RENDER_BOOTSTRAP;
    if (column == COLUMN_FENCE) {
        wanted = false;
        for (size_t i = 0; i < report->n_nodes; i++) wanted |= report->nodes[i]->fence != 0;
    } else if (column == COLUMN_GUARD && about == RENDER_BOOTSTRAP) {
        wanted = false;
        for (size_t i = 0; i < report->n_nodes; i++) wanted |= report->nodes[i]->holder != NULL;
    } else if (column == COLUMN_GUARD) {
        wanted = about == RENDER_INSPECT;
    }
    return wanted;
}

void render_table(struct text *text, const struct quorlock_report *report, enum render_table about)
{
    const char *heads[COLUMNS] = {"node",  "state", "holder",  "left",
                                  "fence", "guard", "latency", about == RENDER_BREAK ? "result" : "error"};
    size_t widths[COLUMNS] = {0};
    for (int column = 0; column < COLUMNS; column++) {
        if (!column_is_shown((enum column)column, report, about)) continue;
        widths[column] = strlen(heads[column]);
        for (size_t i = 0; i < report->n_nodes; i++) {
            struct text cell = {0};
            cell_add(&cell, report->nodes[i], (enum column)column, about);
            size_t width = text_columns(&cell, 0);
            if (width > widths[column]) widths[column] = width;
            text_clear(&cell);
        }
    }
    for (size_t i = 0; i <= report->n_nodes; i++) {
        size_t line = text->length;
        for (int column = 0; column < COLUMNS; column++) {
            size_t start = text->length;
            if (widths[column] == 0) continue;
            if (i == 0) {
                text_format(text, "%s", heads[column]);
            } else {
                cell_add(text, report->nodes[i - 1], (enum column)column, about);
            }
            if (column + 1 < COLUMNS) text_pad(text, start, widths[column] + 2);
        }
        while (text->length > line && text->bytes[text->length - 1] == ' ') text->length--;
        text_add(text, "\n", 1);
    }
}
