/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "cli.h"
#include "document.h"
#include "owner.h"
#include "parts.h"
#include "say.h"

/* ---- the line of a key ---- */

/* The answers of the nodes about a key. */
struct answers {
    size_t held, foreign, free;
    const char *holder; /* one holder, and whether there is another one */
    bool several;
    const char *type; /* the type of one foreign value, and whether there is another one */
    bool several_types;
};

static bool is_in_state(const struct shown_node *node, const char *state)
{
    return strcmp(node->state, state) == 0;
}

static struct answers count_answers(const struct shown *report)
{
    struct answers answers = {0};

    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct shown_node *node = &report->nodes[i];

        answers.free += is_in_state(node, "free");
        if (is_in_state(node, "foreign")) {
            answers.foreign++;
            answers.several_types |=
                answers.type != NULL && node->type != NULL && strcmp(answers.type, node->type) != 0;
            if (node->type != NULL) answers.type = node->type;
        } else if (is_in_state(node, "held")) {
            answers.held++;
            answers.several |= answers.holder != NULL && quorlock_owner_equals(answers.holder, node->holder) == 0;
            answers.holder = node->holder;
        }
    }
    return answers;
}

/* cli_report_add_foreign - report values that are no locks of this dialect, and what helps. */
static void cli_report_add_foreign(struct text *text, const struct answers *answers, size_t n_nodes, int dialect)
{
    bool plain = dialect == QUORLOCK_DIALECT_PLAIN;
    const char *type = answers->several_types || answers->type == NULL ? "value of another type" : answers->type;

    text_format(text, "\" is no lock on %zu of %zu nodes: a ", answers->foreign, n_nodes);
    text_add_known(text, type);
    text_format(text, " is there, and no %s", plain ? "string" : "hash");
    if (strcmp(type, plain ? "hash" : "string") == 0)
        text_format(text, ". If that is a lock of %s, give --dialect %s", plain ? "Redisson's" : "the plain dialect",
                    plain ? "redisson" : "plain");
    text_format(text, "\n");
}

/* cli_report_add_taken - report that no owner is on a quorum, although the key is on some nodes. */
static void cli_report_add_taken(struct text *text, const struct answers *answers, const struct shown *report)
{
    if (answers->free >= report->quorum) {
        text_format(text, "\" is held by nobody: no owner is on %u of %zu nodes\n", report->quorum, report->n_nodes);
    } else if (answers->several) {
        text_format(text, "\" is taken on %zu of %zu nodes, by several owners\n", answers->held, report->n_nodes);
    } else {
        text_format(text, "\" is taken on %zu of %zu nodes by ", answers->held, report->n_nodes);
        owner_whole(text, answers->holder);
        text_format(text, ", and free on fewer than %u\n", report->quorum);
    }
}

/* cli_report_add_held - report the owner that is on a quorum. */
static void cli_report_add_held(struct text *text, const struct answers *answers, const struct shown *report)
{
    const char *kept = owner_kept(report->holder);
    size_t here = 0;

    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *holder = report->nodes[i].holder;

        here += holder != NULL && report->holder != NULL && strcmp(holder, report->holder) == 0;
    }
    if (report->holder != NULL) {
        text_format(text, kept != NULL ? "\" is kept after its release by " : "\" is held by ");
        owner_whole(text, kept != NULL ? kept : report->holder);
        text_format(text, " on %zu of %zu nodes, ", here, report->n_nodes);
    } else {
        text_format(text, "\" is held on %zu of %zu nodes by an owner with a name for each, as RedissonRedLock has, ",
                    answers->held, report->n_nodes);
    }
    if (report->valid_ms == UINT32_MAX) {
        text_format(text, "no expiry\n");
    } else {
        text_format(text, "%" PRIu32 " ms left\n", report->valid_ms);
    }
}

/* add_readers - report that the key is held shared on a quorum. */
static void add_readers(struct text *text, const struct parts *parts, const struct shown *report)
{
    text_format(text, "\" is held shared by ");
    if (parts->readers == 0) {
        text_format(text, "readers, of whom none is on %" PRIu32, report->quorum);
    } else {
        text_format(text, "%zu reader%s on %" PRIu32, parts->readers, parts->readers == 1 ? "" : "s, each",
                    report->quorum);
    }
    text_format(text, " of %zu nodes or more, the last for %" PRIu32 " ms\n", report->n_nodes, report->valid_ms);
}

static void add_permits(struct text *text, const struct parts *parts)
{
    text_format(text, "\": %zu of %" PRIu32 " permits %s held\n", parts->slots, parts->permits,
                parts->slots == 1 ? "is" : "are");
}

static void add_summary(struct text *text, const char *key, const struct shown *report, const struct parts *parts,
                        int dialect)
{
    struct answers answers = count_answers(report);

    text_format(text, "\"");
    text_add_known(text, key);
    if (report->held && report->holder != NULL && strcmp(report->holder, OWNER_READERS) == 0) {
        add_readers(text, parts, report);
    } else if (report->held) {
        cli_report_add_held(text, &answers, report);
    } else if (report->answered < report->quorum) {
        text_format(text, "\": only %u of %zu nodes answered, %u are needed to tell\n", report->answered,
                    report->n_nodes, report->quorum);
    } else if (answers.foreign > 0) {
        cli_report_add_foreign(text, &answers, report->n_nodes, dialect);
    } else if (answers.held > 0) {
        cli_report_add_taken(text, &answers, report);
    } else if (parts->permits > 0) {
        add_permits(text, parts);
    } else {
        text_format(text, "\" is free\n");
    }
}

int report_status(const struct shown *report)
{
    struct answers answers = count_answers(report);
    struct parts parts = parts_find(report);
    int status = EXIT_HELD;

    if (report->held || (answers.held > 0 && answers.free < report->quorum) ||
        (parts.permits > 0 && parts.slots >= parts.permits)) {
        status = EXIT_OK;
    } else if (answers.foreign > 0) {
        status = EXIT_CONFIG;
    }
    parts_clear(&parts);
    return status;
}

void report_summary(struct text *text, const char *key, const struct shown *report, int dialect)
{
    struct parts parts = parts_find(report);

    add_summary(text, key, report, &parts, dialect);
    parts_table(text, &parts);
    text->failed |= parts.failed;
    parts_clear(&parts);
}

/* ---- the table of the nodes ---- */

enum column { NODE, STATE, HOLDER, LEFT, FENCE, WAITERS, GUARD, FOUND_GUARD, LATENCY, RESULT, ERROR, N_COLUMNS };

/* cli_report_add_guard - report whether the guard lets the node vote; nothing if the guard could not be read. */
static void cli_report_add_guard(struct text *cell, const struct shown_node *node)
{
    int64_t tenths = (node->quarantine_ms + 99) / 100; /* rounded up, so that 0.0 means that it is over */

    if (node->quarantine_ms > 0) {
        text_format(cell, "quarantined %" PRId64 ".%" PRId64 " s", tenths / 10, tenths % 10);
    } else if (node->quarantine_ms == 0) {
        text_format(cell, "ok");
    } else if (is_in_state(node, "free") || is_in_state(node, "held")) {
        text_format(cell, "none");
    }
}

static bool has_reason(const struct shown_node *node, const char *why)
{
    return why != NULL && node->quarantine_why != NULL && strcmp(node->quarantine_why, why) == 0;
}

/* add_quarantines - add a line for each reason of a quarantine. */
static void add_quarantines(struct text *text, const struct shown *report)
{
    for (size_t i = 0; i < report->n_nodes; i++) {
        const char *why = report->nodes[i].quarantine_why;
        size_t first = 0;

        while (first < i && !has_reason(&report->nodes[first], why)) first++;
        if (why == NULL || first < i) continue;
        text_format(text, "quarantined: ");
        for (size_t k = i; k < report->n_nodes; k++) {
            if (!has_reason(&report->nodes[k], why)) continue;
            if (k > i) text_format(text, ", ");
            text_add_known(text, report->nodes[k].node);
        }
        text_format(text, ": %s\n", why);
    }
}

/* add_found_guard - report a guard that bootstrap found: 2|N|set|max_lease|... */
static void add_found_guard(struct text *cell, const char *guard)
{
    const char *fields[5] = {guard};
    size_t n = 1;

    for (; n < 5 && (fields[n] = strchr(fields[n - 1], '|')) != NULL; n++) fields[n]++;
    if (n < 5 || (strncmp(guard, "1|", 2) != 0 && strncmp(guard, "2|", 2) != 0)) {
        text_add_safe(cell, guard, strlen(guard));
        return;
    }
    if (strncmp(fields[1], "0|", 2) == 0) {
        text_format(cell, "of a reconfiguration that was not finished");
        return;
    }
    text_add_safe(cell, fields[1], (size_t)(fields[2] - fields[1]) - 1);
    text_format(cell, " nodes, set ");
    text_add_safe(cell, fields[2], (size_t)(fields[3] - fields[2]) - 1);
    text_format(cell, ", max lease ");
    text_add_safe(cell, fields[3], (size_t)(fields[4] - fields[3]) - 1);
    text_format(cell, " ms");
}

/* add_state - report the state; for a name with permits, how many are held; of what was deleted, what it was. */
static void add_state(struct text *cell, const struct shown_node *node)
{
    if (node->broken) text_format(cell, "was ");
    if (node->permits > 0 && is_in_state(node, "free"))
        text_format(cell, "%zu of %" PRIu32, parts_on_node(node, QUORLOCK_HOLDER_SLOT), node->permits);
    else
        text_format(cell, "%s", owner_kept(node->holder) != NULL ? "kept" : node->state);
}

/* token_of - return the token in a holder, also in that of a kept key. */
static const char *token_of(const char *holder)
{
    const char *kept = owner_kept(holder);

    return kept != NULL ? kept : holder;
}

static void cli_report_add_holder(struct text *cell, const struct shown_node *node)
{
    size_t readers = parts_on_node(node, QUORLOCK_HOLDER_READER);

    if (readers > 0 && strcmp(node->holder, OWNER_READERS) == 0) {
        text_format(cell, "%zu reader%s", readers, readers == 1 ? "" : "s");
        return;
    }
    owner_whole(cell, token_of(node->holder));
    if (node->count > 1) text_format(cell, " (%" PRIu32 " times)", node->count);
}

static void add_result(struct text *cell, const struct shown_node *node)
{
    if (node->broken) text_format(cell, "broken");
    if (node->broken && node->type != NULL) {
        text_format(cell, " (a ");
        text_add_known(cell, node->type);
        text_format(cell, ")");
    }
    text_add_known(cell, node->error);
}

static void cli_report_add_cell(struct text *cell, const void *rows, size_t row, size_t column)
{
    const struct shown_node *node = &((const struct shown_node *)rows)[row];

    switch (column) {
    case NODE: text_add_known(cell, node->node); break;
    case STATE: add_state(cell, node); break;
    case HOLDER:
        if (node->holder != NULL) cli_report_add_holder(cell, node);
        break;
    case LEFT:
        if (node->holder != NULL && node->ttl_ms == -1) text_format(cell, "no expiry");
        if (node->holder != NULL && node->ttl_ms >= 0) text_format(cell, "%" PRId64 " ms", node->ttl_ms);
        break;
    case FENCE:
        if (node->fence != 0) text_format(cell, "%" PRIu64, node->fence);
        break;
    case WAITERS:
        if (node->waiters > 0) text_format(cell, "%" PRId64, node->waiters);
        break;
    case GUARD: cli_report_add_guard(cell, node); break;
    case FOUND_GUARD:
        if (node->holder != NULL) add_found_guard(cell, node->holder);
        break;
    case LATENCY:
        if (node->latency_us != 0) text_format(cell, "%.1f ms", (double)node->latency_us / 1000.0);
        break;
    case RESULT: add_result(cell, node); break;
    default: text_add_known(cell, node->error); break;
    }
}

void report_table(struct text *text, const struct shown *report, enum report_kind kind)
{
    const char *heads[N_COLUMNS] = {[NODE] = "node", [STATE] = "state", [LATENCY] = "latency"};

    for (size_t i = 0; i < report->n_nodes; i++) {
        if (report->nodes[i].fence != 0) heads[FENCE] = "fence";
        if (report->nodes[i].waiters > 0 && kind == REPORT_INSPECT) heads[WAITERS] = "waiting";
        if (report->nodes[i].holder != NULL && kind == REPORT_BOOTSTRAP) heads[FOUND_GUARD] = "guard";
    }
    if (kind != REPORT_BOOTSTRAP) heads[HOLDER] = "holder";
    if (kind != REPORT_BOOTSTRAP) heads[LEFT] = "left";
    if (kind == REPORT_INSPECT) heads[GUARD] = "guard";
    heads[kind == REPORT_BREAK ? RESULT : ERROR] = kind == REPORT_BREAK ? "result" : "error";
    text_add_table(text, heads, N_COLUMNS, cli_report_add_cell, report->nodes, report->n_nodes);
    if (kind == REPORT_INSPECT) add_quarantines(text, report);
}

/* ---- as JSON ---- */

static json_t *cli_report_node_json(const struct shown_node *node, enum report_kind kind)
{
    json_t *object = json_object();

    document_add(&object, "node", document_text(node->node));
    document_add(&object, "state",
                 document_text(node->broken                       ? "broken"
                               : owner_kept(node->holder) != NULL ? "kept"
                                                                  : node->state));
    document_add(&object, "holder", document_text(token_of(node->holder)));
    document_add(&object, "ttl_ms", document_number(node->ttl_ms, -1));
    if (node->type != NULL) document_add(&object, "type", document_text(node->type));
    if (node->count != 0) document_add(&object, "count", document_number(node->count, 0));
    document_add(&object, "latency_us", document_number(node->latency_us, 1));
    document_add(&object, "fence", document_number((int64_t)node->fence, 1));
    document_add(&object, "quarantine_ms", document_number(node->quarantine_ms, 0));
    if (node->quarantine_why != NULL) document_add(&object, "quarantine_why", document_text(node->quarantine_why));
    if (kind == REPORT_INSPECT) document_add(&object, "waiters", document_number(node->waiters, 0));
    document_add(&object, "error", document_text(node->error));
    if (kind == REPORT_BREAK) document_add(&object, "broken", document_truth(node->broken));
    if (node->permits > 0) document_add(&object, "permits", document_number(node->permits, 1));
    if (node->n_holders > 0) document_add(&object, "holders", parts_node_json(node));
    return object;
}

/* is_held_yet - return whether the key is held, also after a break. */
static bool is_held_yet(const struct shown *report)
{
    size_t left = 0;

    for (size_t i = 0; i < report->n_nodes; i++) left += report->nodes[i].holder != NULL && !report->nodes[i].broken;
    return report->held && left >= report->quorum;
}

void report_json(struct text *text, const char *key, const struct shown *report, enum report_kind kind)
{
    bool there = is_held_yet(report), kept = owner_kept(report->holder) != NULL;
    json_t *object = json_object(), *nodes = json_array();
    struct parts parts = parts_find(report);

    for (size_t i = 0; i < report->n_nodes; i++) document_append(&nodes, cli_report_node_json(&report->nodes[i], kind));
    document_add(&object, "key", document_text(key));
    document_add(&object, "quorum", document_number(report->quorum, 0));
    document_add(&object, "held", document_truth(there && !kept));
    if (kept) document_add(&object, "kept", document_truth(there));
    document_add(&object, "holder", document_text(token_of(report->holder)));
    document_add(&object, "valid_ms", document_number(there ? report->valid_ms : 0, 0));
    if (parts.permits > 0) document_add(&object, "permits", document_number(parts.permits, 1));
    if (parts.n > 0) document_add(&object, "holders", parts_json(&parts));
    document_add(&object, "nodes", nodes);
    document_write(text, object);
    text->failed |= parts.failed;
    parts_clear(&parts);
}

/* ---- votes ---- */

enum { REASON_SHORT = 60 };

/* vote_word - return the vote in words. The library has the reason of a missing vote. */
static const char *vote_word(const struct quorlock_vote *vote)
{
    switch (vote->outcome) {
    case QUORLOCK_VOTE_GRANTED: return "granted";
    case QUORLOCK_VOTE_REFUSED: return "refused";
    case QUORLOCK_VOTE_MISSING: return "key is gone";
    case QUORLOCK_VOTE_NONE: return vote->error == NULL ? "not asked" : "no vote";
    default: return "no vote";
    }
}

void report_reason(struct text *line, const char *reason)
{
    enum { KEPT = 8 };
    static char *said[KEPT]; /* the latest reasons */
    static size_t next;
    size_t length = REASON_SHORT;

    for (size_t i = 0; strlen(reason) > REASON_SHORT && i < KEPT; i++) {
        if (said[i] == NULL || strcmp(said[i], reason) != 0) continue;
        while (length > 1 && reason[length] != ' ') length--;
        text_format(line, "%.*s ...", (int)length, reason);
        return;
    }
    if (strlen(reason) > REASON_SHORT) {
        free(said[next]);
        said[next] = strdup(reason);
        next = (next + 1) % KEPT;
    }
    text_format(line, "%s", reason);
}

static void cli_report_add_left(struct text *text, int64_t left_ms)
{
    if (left_ms == -1) text_format(text, ", no expiry");
    if (left_ms >= 0) text_format(text, ", %" PRId64 " ms left", left_ms);
}

static void add_vote(struct text *line, const struct quorlock_vote *vote)
{
    text_format(line, "  %s", vote_word(vote));
    if (vote->holder != NULL && vote->outcome != QUORLOCK_VOTE_GRANTED) {
        text_format(line, owner_kept(vote->holder) != NULL ? ": kept after its release by " : ": held by ");
        owner_short(line, token_of(vote->holder));
        cli_report_add_left(line, vote->ttl_ms);
    }
    if (vote->error != NULL) text_format(line, ": %s", vote->error);
}

/* cli_report_share - return whether two nodes share a line: their reasons are long and equal. Quarantines count down on
 * each node, so they do not. */
static bool cli_report_share(const struct quorlock_vote *one, const struct quorlock_vote *other)
{
    return one->outcome == QUORLOCK_VOTE_FAILED && other->outcome == QUORLOCK_VOTE_FAILED && one->error != NULL &&
           other->error != NULL && strlen(one->error) > REASON_SHORT && strcmp(one->error, other->error) == 0;
}

void report_votes(const struct quorlock_vote *const *votes, size_t n_votes)
{
    for (size_t i = 0; i < n_votes; i++) {
        struct text line = {0};
        size_t first = 0;

        while (first < i && !cli_report_share(votes[first], votes[i])) first++;
        if (first < i) continue;
        text_format(&line, "  %s", votes[i]->node);
        for (size_t k = i + 1; k < n_votes; k++)
            if (cli_report_share(votes[i], votes[k])) text_format(&line, ", %s", votes[k]->node);
        add_vote(&line, votes[i]);
        say_text(LOG_ERR, &line);
    }
}

void report_held(const struct settings *settings, const struct quorlock_result *result)
{
    struct text line = {0};
    const char *parent = "";
    bool stays = false;

    for (size_t i = 0; i < result->n_votes; i++) {
        const struct quorlock_vote *vote = result->votes[i];

        if (vote->outcome != QUORLOCK_VOTE_REFUSED) continue;
        stays |= vote->ttl_ms == -1;
        if (vote->holder != NULL && *parent == '\0') parent = owner_parent(settings, vote->holder);
    }
    text_format(&line, "%s", result->text);
    if (stays) text_format(&line, "; only its owner or \"quorlock break\" releases a lock without expiry");
    text_format(&line, "%s", parent);
    say_text(LOG_ERR, &line);
}

size_t report_quorum(const struct settings *settings, size_t n_nodes)
{
    return settings->values.client.policy == QUORLOCK_POLICY_ALL ? n_nodes : n_nodes / 2 + 1;
}

bool report_is_held(const struct settings *settings, const struct quorlock_result *result)
{
    bool enough_votes = (size_t)result->granted + result->refused >= report_quorum(settings, result->n_votes);

    return result->status == QUORLOCK_ERR_HELD || (result->status == QUORLOCK_ERR_TIMEDOUT && enough_votes);
}

/* Return on how many nodes the key is certainly gone after a release. */
static size_t report_gone(const struct quorlock_result *result)
{
    size_t gone = 0;

    for (size_t i = 0; i < result->n_votes; i++) {
        int outcome = result->votes[i]->outcome;

        gone +=
            outcome != QUORLOCK_VOTE_PENDING && outcome != QUORLOCK_VOTE_FAILED && outcome != QUORLOCK_VOTE_QUARANTINED;
    }
    return gone;
}

void report_released(const struct settings *settings, const char *name, const struct quorlock_result *result)
{
    if (result->status != QUORLOCK_OK && result->status != QUORLOCK_ERR_LOST) {
        say("released \"%s\" on %zu of %zu nodes only; elsewhere it ends with its lease", name, report_gone(result),
            result->n_votes);
        report_votes(result->votes, result->n_votes);
    } else if (settings->verbose > 0) {
        say_at(LOG_INFO, "%s", result->text);
    }
}
