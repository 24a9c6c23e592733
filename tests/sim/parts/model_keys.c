/* SPDX-License-Identifier: BSD-3-Clause */
/* model_keys.c - commands for keys of any type, and for strings */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "model_own.h"

uint64_t call_now_ms(const struct call *call)
{
    return call->model->wall_us / 1000;
}

static void tell_changed(const struct call *call, const struct entry *entry)
{
    const struct model_events *events = &call->model->events;

    if (events->changed != NULL && entry->db == 0) events->changed(events->arg, entry->key.text, entry->key.length);
}

void call_changed(struct call *call, const struct entry *entry)
{
    tracking_changed(call->model, call->session, entry->key.text, entry->key.length);
    tell_changed(call, entry);
}

void call_remove(struct call *call, struct entry *entry)
{
    store_remove(&call->model->store, entry);
    call_changed(call, entry);
}

/* A replica waits until its master deletes what has expired. */
struct entry *call_key(struct call *call, size_t index)
{
    const struct word *key = &call->words[index];
    struct entry *entry = store_find(&call->model->store, call->session->db, key->text, key->length);

    if (entry == NULL || entry->expires_ms == 0 || call_now_ms(call) <= entry->expires_ms) return entry;
    if (!call->model->manners.replica) call_remove(call, entry);
    return NULL;
}

bool call_key_of(struct call *call, size_t index, enum value_type type, struct entry **ret)
{
    *ret = call_key(call, index);
    if (*ret == NULL || (*ret)->type == type) return true;
    out_error(call->out, ERROR_TYPE);
    return false;
}

struct entry *call_make(struct call *call, size_t index, enum value_type type)
{
    const struct word *key = &call->words[index];

    return store_make(&call->model->store, call->session->db, key->text, key->length, type);
}

static void bulk_of(struct call *call, const struct blob *blob)
{
    out_bulk(call->out, blob->text, blob->length);
}

/* ---- any type ---- */

void run_del(struct call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->n_words; i++) {
        struct entry *entry = call_key(call, i);

        if (entry == NULL) continue;
        call_remove(call, entry);
        n++;
    }
    out_number(call->out, n);
}

void run_exists(struct call *call)
{
    int64_t n = 0;

    for (size_t i = 1; i < call->n_words; i++) n += call_key(call, i) != NULL;
    out_number(call->out, n);
}

static const char *const type_names[] = {[VALUE_STRING] = "string",
                                         [VALUE_HASH] = "hash",
                                         [VALUE_LIST] = "list",
                                         [VALUE_SET] = "set",
                                         [VALUE_ZSET] = "zset"};

void run_type(struct call *call)
{
    const struct entry *entry = call_key(call, 1);

    out_status(call->out, entry != NULL ? type_names[entry->type] : "none");
}

static bool is_scanned(const struct call *call, const struct entry *entry)
{
    char pattern[256], key[256];

    if (entry->db != call->session->db || !word_is(&call->words[7], type_names[entry->type])) return false;
    if (entry->expires_ms != 0 && call_now_ms(call) > entry->expires_ms) return false;
    snprintf(pattern, sizeof(pattern), "%.*s", (int)call->words[3].length, call->words[3].text);
    snprintf(key, sizeof(key), "%.*s", (int)entry->key.length, entry->key.text);
    return fnmatch(pattern, key, 0) == 0;
}

/* As the library asks, and all in one step, in the order in which the keys were made. */
void run_scan(struct call *call)
{
    struct store *store = &call->model->store;
    size_t n = 0;

    if (call->n_words != 8 || !word_is(&call->words[2], "match") || !word_is(&call->words[4], "count") ||
        !word_is(&call->words[6], "type"))
        model_panic("options of", "SCAN", 4);
    LIST_EACH (struct entry, entry, &store->entries, link) n += is_scanned(call, entry);
    out_array(call->out, 2);
    out_bulk_text(call->out, "0");
    out_array(call->out, n);
    LIST_EACH (struct entry, entry, &store->entries, link) {
        if (is_scanned(call, entry)) out_bulk(call->out, entry->key.text, entry->key.length);
    }
}

static void ttl(struct call *call, bool seconds)
{
    const struct entry *entry = call_key(call, 1);
    int64_t left;

    if (entry == NULL || entry->expires_ms == 0) {
        out_number(call->out, entry == NULL ? -2 : -1);
        return;
    }
    left = (int64_t)(entry->expires_ms - call_now_ms(call));
    out_number(call->out, seconds ? (left + 500) / 1000 : left);
}

void run_ttl(struct call *call)
{
    ttl(call, true);
}

void run_pttl(struct call *call)
{
    ttl(call, false);
}

void run_persist(struct call *call)
{
    struct entry *entry = call_key(call, 1);
    bool done = entry != NULL && entry->expires_ms != 0;

    if (done) {
        entry->expires_ms = 0;
        call_changed(call, entry);
    }
    out_number(call->out, done);
}

/* A time as given, in ms of the server's clock; false: it is too far away. */
static bool to_ms(const struct call *call, int64_t number, bool seconds, bool absolute, int64_t *ret)
{
    int64_t now = absolute ? 0 : (int64_t)call_now_ms(call);

    if (seconds && (number > INT64_MAX / 1000 || number < INT64_MIN / 1000)) return false;
    if (seconds) number *= 1000;
    if (number > INT64_MAX - now) return false;
    *ret = number + now;
    return true;
}

/* GT: a key without an expiry has the latest. */
static bool is_not_later(const struct call *call, const struct entry *entry, int64_t when)
{
    return call->n_words > 3 && (entry->expires_ms == 0 || when <= (int64_t)entry->expires_ms);
}

static void expire(struct call *call, bool seconds, bool absolute)
{
    struct entry *entry;
    int64_t number, when;

    if (call->n_words > 3 && model_version(call->model) < MODEL_VERSION_7) {
        out_error(call->out, "ERR wrong number of arguments for '%s' command", call->command->name);
        return;
    }
    if (call->n_words > 4 || (call->n_words == 4 && !word_is(&call->words[3], "gt")))
        model_panic("options of", call->command->name, strlen(call->command->name));
    if (!call_number(call, 2, &number)) return;
    if (!to_ms(call, number, seconds, absolute, &when)) {
        out_error(call->out, "ERR invalid expire time in '%s' command", call->command->name);
        return;
    }
    entry = call_key(call, 1);
    if (entry == NULL || is_not_later(call, entry, when)) {
        out_number(call->out, 0);
    } else if (when <= (int64_t)call_now_ms(call)) {
        call_remove(call, entry);
        out_number(call->out, 1);
    } else {
        entry->expires_ms = (uint64_t)when;
        call_changed(call, entry);
        out_number(call->out, 1);
    }
}

void run_expire(struct call *call)
{
    expire(call, true, false);
}

void run_pexpire(struct call *call)
{
    expire(call, false, false);
}

void run_expireat(struct call *call)
{
    expire(call, true, true);
}

void run_pexpireat(struct call *call)
{
    expire(call, false, true);
}

static void flush(struct call *call, bool all)
{
    if (call->n_words > 2 ||
        (call->n_words == 2 && !word_is(&call->words[1], "sync") && !word_is(&call->words[1], "async"))) {
        out_error(call->out, ERROR_SYNTAX);
        return;
    }
    LIST_WALK (struct entry, entry, &call->model->store.entries, link) {
        if (!all && entry->db != call->session->db) continue;
        store_remove(&call->model->store, entry);
        tell_changed(call, entry);
    }
    tracking_flushed(call->model, call->session);
    out_status(call->out, "OK");
}

void run_flushall(struct call *call)
{
    flush(call, true);
}

void run_flushdb(struct call *call)
{
    flush(call, false);
}

/* ---- strings ---- */

/* The string at the first key, replied; NULL: there is none, or it is no string. */
static struct entry *get(struct call *call)
{
    struct entry *entry;

    if (!call_key_of(call, 1, VALUE_STRING, &entry)) return NULL;
    if (entry != NULL)
        bulk_of(call, &entry->items[0]);
    else
        out_nil(call->out);
    return entry;
}

void run_get(struct call *call)
{
    (void)get(call);
}

void run_mget(struct call *call)
{
    out_array(call->out, call->n_words - 1);
    for (size_t i = 1; i < call->n_words; i++) {
        const struct entry *entry = call_key(call, i);

        if (entry != NULL && entry->type == VALUE_STRING)
            bulk_of(call, &entry->items[0]);
        else
            out_nil(call->out);
    }
}

void run_getdel(struct call *call)
{
    struct entry *entry = get(call);

    if (entry != NULL) call_remove(call, entry);
}

void run_strlen(struct call *call)
{
    struct entry *entry;

    if (call_key_of(call, 1, VALUE_STRING, &entry))
        out_number(call->out, entry != NULL ? (int64_t)entry->items[0].length : 0);
}

/* With bounds from the front, as the library asks. */
void run_getrange(struct call *call)
{
    struct entry *entry;
    int64_t first, last;
    size_t length;

    if (!call_number(call, 2, &first) || !call_number(call, 3, &last)) return;
    if (!call_key_of(call, 1, VALUE_STRING, &entry)) return;
    if (first != 0 || last < 0) model_panic("bounds of", "GETRANGE", 8);
    length = entry != NULL ? entry->items[0].length : 0;
    if (length > (size_t)last + 1) length = (size_t)last + 1;
    out_bulk(call->out, length != 0 ? entry->items[0].text : "", length);
}

/* Instead of whatever stands at the key that the word names. */
static void store_string_at(struct call *call, size_t index, struct entry *entry, const struct word *value,
                            uint64_t expires_ms)
{
    if (entry == NULL)
        entry = call_make(call, index, VALUE_STRING);
    else
        entry_retype(entry, VALUE_STRING);
    entry_add(entry, value->text, value->length);
    entry->expires_ms = expires_ms;
    call_changed(call, entry);
}

static void store_string(struct call *call, struct entry *entry, const struct word *value, uint64_t expires_ms)
{
    store_string_at(call, 1, entry, value, expires_ms);
}

struct set_options {
    bool nx, xx, get, keep_ttl, seconds, absolute;
    size_t time; /* the word that has it; 0: none */
};

/* EX, PX, EXAT or PXAT and its number. */
static bool set_time(struct call *call, struct set_options *options, size_t at)
{
    const struct word *word = &call->words[at];

    if (options->keep_ttl || options->time != 0 || at + 1 == call->n_words) return false;
    options->seconds = word_is(word, "ex") || word_is(word, "exat");
    options->absolute = word_is(word, "exat") || word_is(word, "pxat");
    options->time = at + 1;
    return options->seconds || options->absolute || word_is(word, "px");
}

/* The options from that word on. */
static bool set_options(struct call *call, struct set_options *options, size_t first)
{
    for (size_t i = first; i < call->n_words; i++) {
        const struct word *word = &call->words[i];

        if (word_is(word, "nx") && !options->xx) {
            options->nx = true;
        } else if (word_is(word, "xx") && !options->nx) {
            options->xx = true;
        } else if (word_is(word, "get")) {
            options->get = true;
        } else if (word_is(word, "keepttl") && options->time == 0) {
            options->keep_ttl = true;
        } else if (set_time(call, options, i)) {
            i++;
        } else {
            out_error(call->out, ERROR_SYNTAX);
            return false;
        }
    }
    return true;
}

/* When the key is to expire; 0: never, or as before. */
static bool set_when(struct call *call, const struct set_options *options, int64_t *ret)
{
    int64_t number;

    if (options->time == 0) return true;
    if (!call_number(call, options->time, &number)) return false;
    if (number > 0 && to_ms(call, number, options->seconds, options->absolute, ret)) return true;
    out_error(call->out, "ERR invalid expire time in '%s' command", call->command->name);
    return false;
}

void run_set(struct call *call)
{
    struct set_options options = {0};
    struct entry *entry;
    int64_t when = 0;

    if (!set_options(call, &options, 3) || !set_when(call, &options, &when)) return;
    if (options.get && !call_key_of(call, 1, VALUE_STRING, &entry)) return;
    entry = call_key(call, 1);
    if (options.get) (void)get(call);
    if ((options.nx && entry != NULL) || (options.xx && entry == NULL)) {
        if (!options.get) out_nil(call->out);
        return;
    }
    if (options.keep_ttl && entry != NULL) when = (int64_t)entry->expires_ms;
    store_string(call, entry, &call->words[2], (uint64_t)when);
    if (!options.get) out_status(call->out, "OK");
}

/* All keys or none, of any type before. */
void run_msetex(struct call *call)
{
    struct set_options options = {0};
    int64_t n = 0, when = 0;
    size_t end;

    if (!word_number(&call->words[1], &n) || n <= 0 || n > INT32_MAX) {
        out_error(call->out, "ERR invalid numkeys value");
        return;
    }
    end = 2 + 2 * (size_t)n;
    if (end > call->n_words) model_panic("too few words of", "MSETEX", 6);
    if (!set_options(call, &options, end) || !set_when(call, &options, &when)) return;
    if (options.get) model_panic("options of", "MSETEX", 6);
    for (size_t i = 2; i < end; i += 2) {
        bool there = call_key(call, i) != NULL;

        if ((options.nx && there) || (options.xx && !there)) {
            out_number(call->out, 0);
            return;
        }
    }
    for (size_t i = 2; i < end; i += 2) {
        struct entry *entry = call_key(call, i);

        store_string_at(call, i, entry, &call->words[i + 1],
                        options.keep_ttl && entry != NULL ? entry->expires_ms : (uint64_t)when);
    }
    out_number(call->out, 1);
}

void run_setnx(struct call *call)
{
    bool there = call_key(call, 1) != NULL;

    if (!there) store_string(call, NULL, &call->words[2], 0);
    out_number(call->out, !there);
}

void run_append(struct call *call)
{
    const struct word *more = &call->words[2];
    struct entry *entry;
    struct out joined = {0};

    if (!call_key_of(call, 1, VALUE_STRING, &entry)) return;
    if (entry != NULL) out_bytes(&joined, entry->items[0].text, entry->items[0].length);
    out_bytes(&joined, more->text, more->length);
    store_string(call, entry, &(struct word){joined.bytes, joined.used}, entry != NULL ? entry->expires_ms : 0);
    out_number(call->out, (int64_t)joined.used);
    out_free(&joined);
}

static void add(struct call *call, int64_t by)
{
    struct out text = {0};
    struct entry *entry;
    int64_t number = 0;

    if (!call_key_of(call, 1, VALUE_STRING, &entry)) return;
    if (entry != NULL && !word_number(&(struct word){entry->items[0].text, entry->items[0].length}, &number)) {
        out_error(call->out, ERROR_NUMBER);
    } else if (__builtin_add_overflow(number, by, &number)) {
        out_error(call->out, "ERR increment or decrement would overflow");
    } else {
        out_decimal(&text, number);
        store_string(call, entry, &(struct word){text.bytes, text.used}, entry != NULL ? entry->expires_ms : 0);
        out_number(call->out, number);
    }
    out_free(&text);
}

void run_incr(struct call *call)
{
    add(call, 1);
}

void run_incrby(struct call *call)
{
    int64_t by;

    if (call_number(call, 2, &by)) add(call, by);
}
