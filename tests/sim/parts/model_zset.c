/* SPDX-License-Identifier: BSD-3-Clause */
/* model_zset.c - commands for sorted sets: a member's item, then its score's eight bytes, lowest scores first */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_own.h"

#define DIGITS      64
#define BOUNDS_TEXT "ERR min or max is not a float"

double entry_score(const struct entry *entry, size_t at)
{
    double score;

    memcpy(&score, entry->items[at + 1].text, sizeof(score));
    return score;
}

/* strtod() wants a NUL behind; a text that is too long is no number of ours. False: it is not read to its end. */
static bool to_double(const char *text, size_t length, double *ret)
{
    char copy[DIGITS], *end;

    if (length >= sizeof(copy)) return false;
    if (length != 0) memcpy(copy, text, length);
    copy[length] = '\0';
    errno = 0;
    *ret = strtod(copy, &end);
    return end == copy + length && isnan(*ret) == 0;
}

static bool to_score(struct call *call, size_t index, double *ret)
{
    const struct word *word = &call->words[index];

    if (word->length != 0 && isspace((unsigned char)word->text[0]) == 0 && to_double(word->text, word->length, ret) &&
        (errno != ERANGE || (isinf(*ret) == 0 && *ret != 0)))
        return true;
    out_error(call->out, "ERR value is not a valid float");
    return false;
}

static void out_score(struct out *out, double score)
{
    char text[DIGITS];

    snprintf(text, sizeof(text), "%.17g", score);
    if (out->resp3) {
        out_text(out, ",");
        out_text(out, text);
        out_text(out, "\r\n");
    } else {
        out_bulk_text(out, text);
    }
}

static size_t find(const struct entry *entry, const struct word *word)
{
    return entry_find(entry, word->text, word->length, 2);
}

/* ---- changes ---- */

static bool is_before(const struct entry *entry, size_t at, double score, const struct word *member)
{
    const struct blob *there = &entry->items[at];
    size_t shorter = there->length < member->length ? there->length : member->length;
    int order = shorter != 0 ? memcmp(there->text, member->text, shorter) : 0;

    if (entry_score(entry, at) != score) return entry_score(entry, at) < score;
    return order != 0 ? order < 0 : there->length < member->length;
}

/* A small set, as all of ours are, forgets that a score of 0 was negative. */
static void insert(struct entry *entry, double score, const struct word *member)
{
    size_t at = 0, last = entry->n_items;
    struct blob pair[2];

    if (score == 0) score = 0.0;
    while (at < last && is_before(entry, at, score, member)) at += 2;
    entry_add(entry, member->text, member->length);
    entry_add(entry, (const char *)&score, sizeof(score));
    memcpy(pair, entry->items + last, sizeof(pair));
    memmove(entry->items + at + 2, entry->items + at, (last - at) * sizeof(*pair));
    memcpy(entry->items + at, pair, sizeof(pair));
}

struct zadd_options {
    bool nx, xx, gt, lt, ch;
};

/* Returns where scores and members begin; 0: the error was replied. */
static size_t zadd_options(struct call *call, struct zadd_options *options)
{
    size_t at = 2;

    for (; at < call->n_words; at++) {
        const struct word *word = &call->words[at];

        if (word_is(word, "incr")) model_panic("options of", "ZADD", 4);
        options->nx |= word_is(word, "nx");
        options->xx |= word_is(word, "xx");
        options->gt |= word_is(word, "gt");
        options->lt |= word_is(word, "lt");
        options->ch |= word_is(word, "ch");
        if (!word_is(word, "nx") && !word_is(word, "xx") && !word_is(word, "gt") && !word_is(word, "lt") &&
            !word_is(word, "ch"))
            break;
    }
    if (at == call->n_words || (call->n_words - at) % 2 == 1)
        out_error(call->out, ERROR_SYNTAX);
    else if (options->nx && options->xx)
        out_error(call->out, "ERR XX and NX options at the same time are not compatible");
    else if ((options->gt && options->lt) || (options->nx && (options->gt || options->lt)))
        out_error(call->out, "ERR GT, LT, and/or NX options at the same time are not compatible");
    else
        return at;
    return 0;
}

enum added { ADDED_NOTHING, ADDED_MEMBER, ADDED_SCORE };

static enum added add(struct entry *entry, const struct zadd_options *options, double score, const struct word *member)
{
    size_t at = find(entry, member);
    double before;

    if (at == entry->n_items) {
        if (options->xx) return ADDED_NOTHING;
        insert(entry, score, member);
        return ADDED_MEMBER;
    }
    before = entry_score(entry, at);
    if (options->nx || score == before || (options->gt && score < before) || (options->lt && score > before))
        return ADDED_NOTHING;
    entry_remove(entry, at, 2);
    insert(entry, score, member);
    return ADDED_SCORE;
}

void run_zadd(struct call *call)
{
    struct zadd_options options = {0};
    size_t at = zadd_options(call, &options);
    int64_t n_members = 0, n_scores = 0;
    struct entry *entry;
    double score = 0;

    if (at == 0) return;
    for (size_t i = at; i < call->n_words; i += 2) {
        if (!to_score(call, i, &score)) return;
    }
    if (!call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    if (entry == NULL && !options.xx) entry = call_make(call, 1, VALUE_ZSET);
    for (; entry != NULL && at < call->n_words; at += 2) {
        enum added added;

        (void)to_score(call, at, &score);
        added = add(entry, &options, score, &call->words[at + 1]);
        n_members += added == ADDED_MEMBER;
        n_scores += added == ADDED_SCORE;
    }
    if (n_members + n_scores > 0) call_changed(call, entry);
    out_number(call->out, n_members + (options.ch ? n_scores : 0));
}

/* Where nothing is left the key goes. */
static void removed(struct call *call, struct entry *entry, int64_t n)
{
    out_number(call->out, n);
    if (n == 0) return;
    if (entry->n_items == 0)
        call_remove(call, entry);
    else
        call_changed(call, entry);
}

void run_zrem(struct call *call)
{
    struct entry *entry;
    int64_t n = 0;

    if (!call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    for (size_t i = 2; entry != NULL && i < call->n_words; i++) {
        size_t at = find(entry, &call->words[i]);

        if (at == entry->n_items) continue;
        entry_remove(entry, at, 2);
        n++;
    }
    removed(call, entry, n);
}

/* ---- bounds ---- */

struct bounds {
    double least, most;
    bool over_least, under_most; /* without the bound itself */
};

static bool to_bound(const struct word *word, double *ret, bool *ret_without)
{
    size_t front = word->length > 0 && word->text[0] == '(' ? 1 : 0;

    *ret_without = front == 1;
    return memchr(word->text, '\0', word->length) == NULL && to_double(word->text + front, word->length - front, ret);
}

static bool to_bounds(struct call *call, bool reversed, struct bounds *ret)
{
    if (to_bound(&call->words[reversed ? 3 : 2], &ret->least, &ret->over_least) &&
        to_bound(&call->words[reversed ? 2 : 3], &ret->most, &ret->under_most))
        return true;
    out_error(call->out, BOUNDS_TEXT);
    return false;
}

static bool is_within(const struct bounds *bounds, double score)
{
    return (bounds->over_least ? score > bounds->least : score >= bounds->least) &&
           (bounds->under_most ? score < bounds->most : score <= bounds->most);
}

void run_zremrangebyscore(struct call *call)
{
    struct bounds bounds;
    struct entry *entry;
    int64_t n = 0;

    if (!to_bounds(call, false, &bounds) || !call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    for (size_t at = 0; entry != NULL && at < entry->n_items;) {
        if (is_within(&bounds, entry_score(entry, at))) {
            entry_remove(entry, at, 2);
            n++;
        } else {
            at += 2;
        }
    }
    removed(call, entry, n);
}

/* ---- questions ---- */

void run_zscore(struct call *call)
{
    struct entry *entry;
    size_t at;

    if (!call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    at = entry != NULL ? find(entry, &call->words[2]) : 0;
    if (entry == NULL || at == entry->n_items)
        out_nil(call->out);
    else
        out_score(call->out, entry_score(entry, at));
}

void run_zcard(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_ZSET, &entry))
        out_number(call->out, entry != NULL ? (int64_t)entry->n_items / 2 : 0);
}

void run_zcount(struct call *call)
{
    struct bounds bounds;
    struct entry *entry;
    int64_t n = 0;

    if (!to_bounds(call, false, &bounds) || !call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    for (size_t at = 0; entry != NULL && at < entry->n_items; at += 2) n += is_within(&bounds, entry_score(entry, at));
    out_number(call->out, n);
}

struct range {
    bool by_score, reversed, scores, limited;
    int64_t offset, count; /* count < 0: all */
    int64_t from, to;      /* by rank */
    struct bounds bounds;
};

/* plain: ZRANGE, which has all options; else ZRANGEBYSCORE. */
static bool range_options(struct call *call, bool plain, struct range *range)
{
    *range = (struct range){.by_score = !plain, .count = -1};
    for (size_t i = 4; i < call->n_words; i++) {
        const struct word *word = &call->words[i];

        if (plain && word_is(word, "bylex")) model_panic("options of", "ZRANGE", 6);
        if (word_is(word, "withscores")) {
            range->scores = true;
        } else if (plain && word_is(word, "byscore")) {
            range->by_score = true;
        } else if (plain && word_is(word, "rev")) {
            range->reversed = true;
        } else if (word_is(word, "limit") && i + 2 < call->n_words) {
            if (!call_number(call, i + 1, &range->offset) || !call_number(call, i + 2, &range->count)) return false;
            range->limited = true;
            i += 2;
        } else {
            out_error(call->out, ERROR_SYNTAX);
            return false;
        }
    }
    if (!range->limited || range->count == -1 || range->by_score) return true;
    out_error(call->out, "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return false;
}

/* Which of so many ranks are asked for; false: none. */
static bool ranks(struct range *range, int64_t n)
{
    if (range->from < 0) range->from = range->from + n < 0 ? 0 : range->from + n;
    if (range->to < 0) range->to += n;
    if (range->to >= n) range->to = n - 1;
    return range->from <= range->to && range->from < n;
}

/* The items of the range into `at`, in its order; returns how many. */
static size_t choose(const struct entry *entry, struct range *range, size_t *at)
{
    size_t n = entry->n_items / 2, chosen = 0;
    bool any = range->by_score || ranks(range, (int64_t)n);
    int64_t skip = range->offset, left = range->count;

    for (size_t i = 0; any && i < n; i++) {
        size_t item = 2 * (range->reversed ? n - 1 - i : i);

        if (range->by_score ? !is_within(&range->bounds, entry_score(entry, item))
                            : (int64_t)i < range->from || (int64_t)i > range->to)
            continue;
        /* One that is below 0 skips all. */
        if (range->by_score && skip != 0) {
            skip -= skip > 0;
            continue;
        }
        if (range->by_score && left == 0) break;
        left -= left > 0;
        at[chosen++] = item;
    }
    return chosen;
}

static void reply_range(struct call *call, bool plain)
{
    struct range range;
    struct entry *entry;
    size_t n = 0, *at;
    bool pairs;

    if (!range_options(call, plain, &range)) return;
    if (range.by_score ? !to_bounds(call, range.reversed, &range.bounds)
                       : !call_number(call, 2, &range.from) || !call_number(call, 3, &range.to))
        return;
    if (!call_key_of(call, 1, VALUE_ZSET, &entry)) return;
    at = model_resized(NULL, (entry != NULL ? entry->n_items + 1 : 1) * sizeof(*at));
    if (entry != NULL) n = choose(entry, &range, at);
    pairs = range.scores && call->out->resp3;
    out_array(call->out, range.scores && !pairs ? 2 * n : n);
    for (size_t i = 0; i < n; i++) {
        if (pairs) out_array(call->out, 2);
        out_bulk(call->out, entry->items[at[i]].text, entry->items[at[i]].length);
        if (range.scores) out_score(call->out, entry_score(entry, at[i]));
    }
    free(at);
}

void run_zrange(struct call *call)
{
    reply_range(call, true);
}

void run_zrangebyscore(struct call *call)
{
    reply_range(call, false);
}
