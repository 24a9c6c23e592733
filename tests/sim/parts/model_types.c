/* SPDX-License-Identifier: BSD-3-Clause */
/* model_types.c - commands for hashes, lists and sets */
#include <stdlib.h>
#include <string.h>

#include "model_own.h"

/* Beyond these a real server keeps a hash in a table, and HSCAN returns it in parts. */
#define SMALL_FIELDS ((size_t)128)
#define SMALL_LENGTH 64
#define SCAN_FIELDS  ((size_t)10)

static void bulk_of(struct call *call, const struct blob *blob)
{
    out_bulk(call->out, blob->text, blob->length);
}

/* What the key holds, made where there is nothing; NULL: it has another type. */
static struct entry *open_entry(struct call *call, enum value_type type)
{
    struct entry *entry;

    if (!call_key_of(call, 1, type, &entry)) return NULL;
    return entry != NULL ? entry : call_make(call, 1, type);
}

/* Where nothing is left the key goes. */
static void shrunk(struct call *call, struct entry *entry)
{
    if (entry->n_items == 0)
        call_remove(call, entry);
    else
        call_changed(call, entry);
}

static size_t find(const struct entry *entry, const struct word *word, size_t step)
{
    return entry_find(entry, word->text, word->length, step);
}

/* ---- hashes ---- */

void run_hset(struct call *call)
{
    struct entry *entry;
    int64_t made = 0;

    if (call->n_words % 2 == 1) {
        out_error(call->out, "ERR wrong number of arguments for 'hset' command");
        return;
    }
    entry = open_entry(call, VALUE_HASH);
    if (entry == NULL) return;
    for (size_t i = 2; i < call->n_words; i += 2) {
        const struct word *field = &call->words[i], *value = &call->words[i + 1];
        size_t at = find(entry, field, 2);

        if (at < entry->n_items) {
            blob_set(&entry->items[at + 1], value->text, value->length);
            continue;
        }
        entry_add(entry, field->text, field->length);
        entry_add(entry, value->text, value->length);
        made++;
    }
    call_changed(call, entry);
    out_number(call->out, made);
}

void run_hget(struct call *call)
{
    struct entry *entry;
    size_t at;

    if (!call_key_of(call, 1, VALUE_HASH, &entry)) return;
    at = entry != NULL ? find(entry, &call->words[2], 2) : 0;
    if (entry == NULL || at == entry->n_items)
        out_nil(call->out);
    else
        bulk_of(call, &entry->items[at + 1]);
}

void run_hexists(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_HASH, &entry))
        out_number(call->out, entry != NULL && find(entry, &call->words[2], 2) < entry->n_items);
}

void run_hlen(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_HASH, &entry))
        out_number(call->out, entry != NULL ? (int64_t)entry->n_items / 2 : 0);
}

void run_hdel(struct call *call)
{
    struct entry *entry;
    int64_t n = 0;

    if (!call_key_of(call, 1, VALUE_HASH, &entry)) return;
    for (size_t i = 2; entry != NULL && i < call->n_words; i++) {
        size_t at = find(entry, &call->words[i], 2);

        if (at == entry->n_items) continue;
        entry_remove(entry, at, 2);
        n++;
    }
    if (n > 0) shrunk(call, entry);
    out_number(call->out, n);
}

static void each_item(struct call *call, const struct entry *entry, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) bulk_of(call, &entry->items[i]);
}

static void items(struct call *call, const struct entry *entry, size_t from, size_t to)
{
    out_array(call->out, to - from);
    each_item(call, entry, from, to);
}

void run_hgetall(struct call *call)
{
    struct entry *entry;

    if (!call_key_of(call, 1, VALUE_HASH, &entry)) return;
    out_map(call->out, entry != NULL ? entry->n_items / 2 : 0);
    if (entry != NULL) each_item(call, entry, 0, entry->n_items);
}

void run_hkeys(struct call *call)
{
    struct entry *entry;

    if (!call_key_of(call, 1, VALUE_HASH, &entry)) return;
    out_array(call->out, entry != NULL ? entry->n_items / 2 : 0);
    for (size_t i = 0; entry != NULL && i < entry->n_items; i += 2) bulk_of(call, &entry->items[i]);
}

void run_hincrby(struct call *call)
{
    struct out text = {0};
    struct entry *entry;
    int64_t by, number = 0;
    size_t at;

    if (!call_number(call, 3, &by) || !call_key_of(call, 1, VALUE_HASH, &entry)) return;
    at = entry != NULL ? find(entry, &call->words[2], 2) : 0;
    if (entry != NULL && at < entry->n_items &&
        !word_number(&(struct word){entry->items[at + 1].text, entry->items[at + 1].length}, &number)) {
        out_error(call->out, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(number, by, &number)) {
        out_error(call->out, "ERR increment or decrement would overflow");
        return;
    }
    entry = open_entry(call, VALUE_HASH);
    if (at == entry->n_items) {
        entry_add(entry, call->words[2].text, call->words[2].length);
        entry_add(entry, "", 0);
    }
    out_decimal(&text, number);
    blob_set(&entry->items[at + 1], text.bytes, text.used);
    out_free(&text);
    call_changed(call, entry);
    out_number(call->out, number);
}

static bool is_small(const struct entry *entry)
{
    for (size_t i = 0; i < entry->n_items; i++) {
        if (entry->items[i].length > SMALL_LENGTH) return false;
    }
    return entry->n_items <= 2 * SMALL_FIELDS;
}

void run_hscan(struct call *call)
{
    const struct word *word = &call->words[2];
    struct entry *entry;
    size_t from, to;
    int64_t cursor;

    if (call->n_words > 3) model_panic("options of", "HSCAN", 5);
    if (!word_number(word, &cursor) || cursor < 0) {
        out_error(call->out, "ERR invalid cursor");
        return;
    }
    if (!call_key_of(call, 1, VALUE_HASH, &entry)) return;
    out_array(call->out, 2);
    if (entry == NULL || is_small(entry)) {
        out_bulk_text(call->out, "0");
        if (entry != NULL)
            items(call, entry, 0, entry->n_items);
        else
            out_array(call->out, 0);
        return;
    }
    from = (uint64_t)cursor > entry->n_items / 2 ? entry->n_items : 2 * (size_t)cursor;
    to = entry->n_items - from > 2 * SCAN_FIELDS ? from + 2 * SCAN_FIELDS : entry->n_items;
    out_bulk_number(call->out, to < entry->n_items ? (int64_t)to / 2 : 0);
    items(call, entry, from, to);
}

/* ---- lists ---- */

static void push(struct call *call, bool front)
{
    struct entry *entry = open_entry(call, VALUE_LIST);

    if (entry == NULL) return;
    for (size_t i = 2; i < call->n_words; i++) {
        struct blob last;

        entry_add(entry, call->words[i].text, call->words[i].length);
        if (!front) continue;
        last = entry->items[entry->n_items - 1];
        memmove(entry->items + 1, entry->items, (entry->n_items - 1) * sizeof(last));
        entry->items[0] = last;
    }
    call_changed(call, entry);
    out_number(call->out, (int64_t)entry->n_items);
}

void run_lpush(struct call *call)
{
    push(call, true);
}

void run_rpush(struct call *call)
{
    push(call, false);
}

void run_llen(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_LIST, &entry)) out_number(call->out, entry != NULL ? (int64_t)entry->n_items : 0);
}

void run_lrange(struct call *call)
{
    struct entry *entry;
    int64_t from, to, n;

    if (!call_number(call, 2, &from) || !call_number(call, 3, &to)) return;
    if (!call_key_of(call, 1, VALUE_LIST, &entry)) return;
    n = entry != NULL ? (int64_t)entry->n_items : 0;
    if (from < 0) from = from + n < 0 ? 0 : from + n;
    if (to < 0) to += n;
    if (to >= n) to = n - 1;
    if (entry == NULL || from > to || from >= n)
        out_array(call->out, 0);
    else
        items(call, entry, (size_t)from, (size_t)to + 1);
}

/* ---- sets ---- */

void run_sadd(struct call *call)
{
    struct entry *entry = open_entry(call, VALUE_SET);
    int64_t n = 0;

    if (entry == NULL) return;
    for (size_t i = 2; i < call->n_words; i++) {
        if (find(entry, &call->words[i], 1) < entry->n_items) continue;
        entry_add(entry, call->words[i].text, call->words[i].length);
        n++;
    }
    if (n > 0) call_changed(call, entry);
    out_number(call->out, n);
}

void run_scard(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_SET, &entry)) out_number(call->out, entry != NULL ? (int64_t)entry->n_items : 0);
}
