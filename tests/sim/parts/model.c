/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the life of a model and of its sessions; commands as they arrive */
#include "model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_own.h"

#define WORDS_MAX        1048576
#define WORDS_MAX_UNAUTH 10
#define BULK_MAX         536870912
#define BULK_MAX_UNAUTH  16384

struct model_memory {
    struct store store;
};

/* ---- life ---- */

struct model *model_new(void)
{
    struct model *model = model_resized(NULL, sizeof(*model));

    *model = (struct model){0};
    store_init(&model->store);
    script_open();
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL) return;
    LIST_WALK (struct session, session, &model->sessions, link) model_close(session);
    hashtable_free(&model->channels, &model->store.alloc);
    store_free(&model->store);
    out_free(&model->out);
    out_free(&model->script_out);
    out_free(&model->notice);
    out_free(&model->info);
    out_free(&model->told);
    out_free(&model->behind);
    free(model->spare.bytes);
    free(model->knows);
    free(model->words);
    free(model);
    script_close();
}

void model_start(struct model *model, const struct model_manners *manners, bool empty,
                 const struct model_events *events)
{
    assert(model->sessions.count == 0);
    model->manners = *manners;
    model->events = events != NULL ? *events : (struct model_events){0};
    model->last_id = model->n_notices = model->n_lost_notices = model->n_rooms = 0;
    model->n_pushes = model->n_false_pushes = 0;
    if (model->n_knows != 0) memset(model->knows, 0, model->n_knows);
    if (empty) store_clear(&model->store);
}

struct model_manners *model_manners(struct model *model)
{
    return &model->manners;
}

void model_pushes(const struct model *model, uint64_t *ret_pushes, uint64_t *ret_false)
{
    *ret_pushes = model->n_pushes;
    *ret_false = model->n_false_pushes;
}

uint64_t model_lost_notices(const struct model *model)
{
    return model->n_lost_notices;
}

/* ---- sessions ---- */

static size_t count_clients(const struct model *model)
{
    size_t n = 0;

    LIST_EACH (struct session, session, &model->sessions, link) n += !session->ends && !session->operator;
    return n;
}

struct session *model_open(struct model *model, void (*write)(void *arg, const void *bytes, size_t size),
                           void (*hang_up)(void *arg), void *arg)
{
    struct session *session = model_resized(NULL, sizeof(*session));
    uint32_t most = model->manners.max_clients;

    *session = (struct session){.model = model, .write = write, .hang_up = hang_up, .arg = arg, .id = ++model->last_id};
    session->refused = most != 0 && count_clients(model) >= most;
    session->ends = session->refused;
    session->authed = model->manners.password == NULL;
    session->queued_all = ~0u;
    session->in = model->spare;
    session->in.start = session->in.used = session->in.need = 0;
    model->spare = (struct inbox){0};
    list_add(&model->sessions, &session->link);
    return session;
}

void model_close(struct session *session)
{
    struct model *model = session->model;

    session_forget_queue(session);
    session_unsubscribe_all(session);
    session_forget_tracked(session);
    list_remove(&model->sessions, &session->link);
    if (session->in.room > model->spare.room) {
        struct inbox kept = session->in;

        session->in = model->spare;
        model->spare = kept;
    }
    free(session->in.bytes);
    free(session);
}

bool model_has_input(const struct session *session)
{
    return session->in.used > session->in.start;
}

void *model_session_arg(const struct session *session)
{
    return session->arg;
}

/* Nothing of it is executed any more, and it hears nothing; hang_up() comes at the end of the step. */
void session_end(struct session *session)
{
    session->ends = session->model->ending = true;
    session_unsubscribe_all(session);
}

/* The callback may close the session, and so change the list. */
static void hang_up_ended(struct model *model)
{
    if (!model->ending) return;
    model->ending = false;
    LIST_WALK (struct session, session, &model->sessions, link) {
        if (!session->ends || session->told || session->refused) continue;
        session->told = true;
        session->hang_up(session->arg);
    }
}

/* ---- bytes in ---- */

void model_feed(struct session *session, const void *bytes, size_t size)
{
    struct inbox *in = &session->in;

    if (session->ends || size == 0) return;
    if (in->start > 0) {
        memmove(in->bytes, in->bytes + in->start, in->used - in->start);
        in->used -= in->start;
        in->start = 0;
    }
    if (in->room - in->used < size) {
        in->room = 2 * (in->used + size) + 1024;
        in->bytes = model_resized(in->bytes, in->room);
    }
    memcpy(in->bytes + in->used, bytes, size);
    in->used += size;
}

enum parsed { PARSED_ALL, PARSED_NOTHING, PARSED_MORE, PARSED_BROKEN };

struct parser {
    struct session *session;
    const char *at, *end;
};

static enum parsed broken(struct parser *parser, const char *why)
{
    out_error(&parser->session->model->out, "ERR Protocol error: %s", why);
    return PARSED_BROKEN;
}

/* The number behind the first byte of a line, and on to the next line. */
static enum parsed parse_number(struct parser *parser, int64_t *ret, bool *ret_good)
{
    const char *line = parser->at, *end = memchr(line, '\r', (size_t)(parser->end - line));

    if (end == NULL || end + 1 == parser->end) return PARSED_MORE;
    *ret_good = end > line && word_number(&(struct word){line + 1, (size_t)(end - line - 1)}, ret);
    parser->at = end + 2;
    return PARSED_ALL;
}

static bool is_stranger(const struct session *session)
{
    return session->model->manners.password != NULL && !session->authed && !session->operator;
}

static enum parsed parse_word(struct parser *parser, struct word *ret)
{
    struct inbox *in = &parser->session->in;
    enum parsed parsed;
    int64_t length = 0;
    bool good = false;
    char why[32], kind;

    if (parser->at == parser->end) return PARSED_MORE;
    kind = *parser->at;
    parsed = parse_number(parser, &length, &good);
    if (parsed != PARSED_ALL) return parsed;
    if (kind != '$') {
        snprintf(why, sizeof(why), "expected '$', got '%c'", kind);
        return broken(parser, why);
    }
    if (!good || length < 0 || length > BULK_MAX) return broken(parser, "invalid bulk length");
    if (length > BULK_MAX_UNAUTH && is_stranger(parser->session)) return broken(parser, "unauthenticated bulk length");
    if (parser->end - parser->at < length + 2) {
        in->need = (size_t)(parser->at - in->bytes) + (size_t)length + 2 - in->start;
        return PARSED_MORE;
    }
    *ret = (struct word){parser->at, (size_t)length};
    parser->at += length + 2;
    return PARSED_ALL;
}

static enum parsed parse_count(struct parser *parser, size_t *ret)
{
    enum parsed parsed;
    int64_t n = 0;
    bool good = false;

    if (parser->at == parser->end) return PARSED_MORE;
    if (*parser->at != '*') model_panic("inline commands", parser->at, 1);
    parsed = parse_number(parser, &n, &good);
    if (parsed != PARSED_ALL) return parsed;
    if (!good || n > INT32_MAX) return broken(parser, "invalid multibulk length");
    if (n > WORDS_MAX_UNAUTH && is_stranger(parser->session)) return broken(parser, "unauthenticated multibulk length");
    if (n > WORDS_MAX) model_panic("so many words", "", 0);
    *ret = n > 0 ? (size_t)n : 0;
    return n > 0 ? PARSED_ALL : PARSED_NOTHING;
}

/* One command; its words are the model's. */
static enum parsed parse(struct session *session, size_t *ret_n)
{
    struct model *model = session->model;
    struct inbox *in = &session->in;
    struct parser parser = {.session = session, .at = in->bytes + in->start, .end = in->bytes + in->used};
    enum parsed parsed;

    if (in->used == in->start || in->used - in->start < in->need) return PARSED_MORE;
    in->need = 0;
    parsed = parse_count(&parser, ret_n);
    if (parsed == PARSED_ALL && *ret_n > model->room_words) {
        model->room_words = 2 * *ret_n + 16;
        model->words = model_resized(model->words, model->room_words * sizeof(*model->words));
    }
    for (size_t i = 0; parsed == PARSED_ALL && i < *ret_n; i++) parsed = parse_word(&parser, &model->words[i]);
    if (parsed == PARSED_ALL || parsed == PARSED_NOTHING) in->start = (size_t)(parser.at - in->bytes);
    return parsed;
}

/* ---- execution ---- */

static size_t add_text(char *ret, size_t size, size_t used, const char *text, size_t length)
{
    if (used > 0 && used < size) ret[used++] = ' ';
    if (length > size - used) length = size - used;
    if (length > 0) memcpy(ret + used, text, length);
    return used + length;
}

/* As a trace shows it: a script by its name, and no number of keys behind it. */
static void tell_executed(struct session *session, const struct word *words, size_t n_words)
{
    struct model *model = session->model;
    size_t size = sizeof(model->text) - 1, used = 0, i = 0;
    bool script = n_words > 2 && (word_is(&words[0], "evalsha") || word_is(&words[0], "eval"));
    const char *name = NULL;

    if (model->events.executed == NULL) return;
    if (script) name = script_name(&words[1]);
    if (name != NULL) {
        used = add_text(model->text, size, 0, name, strlen(name));
        i = 3;
    }
    for (; i < n_words && used < size; i++) {
        name = i > 0 && words[i].length > 256 ? script_name(&words[i]) : NULL;
        if (name != NULL)
            used = add_text(model->text, size, used, name, strlen(name));
        else
            used = add_text(model->text, size, used, words[i].text, words[i].length < 80 ? words[i].length : 80);
    }
    model->text[used] = '\0';
    model->events.executed(model->events.arg, session, model->text);
}

static void tell_replied(struct session *session, const struct word *words, size_t n_words)
{
    const struct model_events *events = &session->model->events;
    bool script = n_words > 2 && (word_is(&words[0], "evalsha") || word_is(&words[0], "eval"));
    const struct word reply = {session->model->out.bytes, session->model->out.used};

    if (events->replied == NULL) return;
    events->replied(events->arg, session, script ? script_name(&words[1]) : NULL, words, n_words, &reply);
}

static void send_out(const struct session *session, struct out *out)
{
    if (out->used != 0) session->write(session->arg, out->bytes, out->used);
    out->used = 0;
}

static void send_reply(const struct session *session)
{
    struct model *model = session->model;

    if (!session->resp3 || session->ends) model->behind.used = 0;
    send_out(session, &model->out);
    send_out(session, &model->behind);
}

static bool turn_away(struct session *session)
{
    if (session->told) return false;
    session->told = true;
    out_error(&session->model->out, "ERR max number of clients reached");
    send_reply(session);
    session->hang_up(session->arg);
    return true;
}

bool model_step(struct session *session, uint64_t wall_us)
{
    struct model *model = session->model;
    enum parsed parsed = PARSED_NOTHING;
    size_t n_words = 0;

    if (session->refused) return turn_away(session);
    if (session->ends) return false;
    model->wall_us = wall_us;
    model->out.used = 0;
    while (parsed == PARSED_NOTHING) parsed = parse(session, &n_words);
    if (parsed == PARSED_MORE) return false;
    if (parsed == PARSED_BROKEN) {
        session_end(session);
    } else {
        tracking_make_room(model);
        tell_executed(session, model->words, n_words);
        command_execute(session, model->words, n_words, &model->out);
        tell_replied(session, model->words, n_words);
    }
    send_reply(session);
    hang_up_ended(model);
    return true;
}

/* ---- from outside ---- */

static void to_value(const struct entry *entry, struct model_value *ret)
{
    const struct blob *owner = entry->n_items > 0 ? &entry->items[0] : NULL;

    *ret = (struct model_value){.type = MODEL_OTHER, .expires_ms = entry->expires_ms};
    if (entry->type == VALUE_STRING) ret->type = MODEL_STRING;
    if (entry->type == VALUE_HASH) ret->type = MODEL_HASH;
    if (ret->type == MODEL_OTHER || owner == NULL) return;
    ret->owner = owner->text;
    ret->owner_length = owner->length;
}

static bool is_there(const struct entry *entry, uint64_t wall_us)
{
    return entry->expires_ms == 0 || wall_us / 1000 <= entry->expires_ms;
}

bool model_look(const struct model *model, const char *key, size_t length, uint64_t wall_us, struct model_value *ret)
{
    const struct entry *entry = store_find(&model->store, 0, key, length);

    *ret = (struct model_value){0};
    if (entry == NULL || !is_there(entry, wall_us)) return false;
    to_value(entry, ret);
    return true;
}

void model_each(const struct model *model, uint64_t wall_us,
                void (*each)(void *arg, const char *key, size_t length, const struct model_value *), void *arg)
{
    LIST_EACH (struct entry, entry, &model->store.entries, link) {
        struct model_value value;

        if (entry->db != 0 || !is_there(entry, wall_us)) continue;
        to_value(entry, &value);
        each(arg, entry->key.text, entry->key.length, &value);
    }
}

void model_members(const struct model *model, const char *key, size_t length, uint64_t wall_us,
                   void (*each)(void *arg, const char *member, size_t length, double score), void *arg)
{
    const struct entry *entry = store_find(&model->store, 0, key, length);

    if (entry == NULL || !is_there(entry, wall_us) || entry->type != VALUE_ZSET) return;
    for (size_t i = 0; i < entry->n_items; i += 2)
        each(arg, entry->items[i].text, entry->items[i].length, entry_score(entry, i));
}

void model_expire(struct model *model, uint64_t wall_us)
{
    if (model->manners.replica) return;
    LIST_WALK (struct entry, entry, &model->store.entries, link) {
        if (is_there(entry, wall_us)) continue;
        store_remove(&model->store, entry);
        tracking_changed(model, NULL, entry->key.text, entry->key.length);
        if (model->events.changed != NULL && entry->db == 0)
            model->events.changed(model->events.arg, entry->key.text, entry->key.length);
    }
}

struct model_memory *model_save(const struct model *model)
{
    struct model_memory *memory = model_resized(NULL, sizeof(*memory));

    store_init(&memory->store);
    store_copy(&memory->store, &model->store);
    return memory;
}

void model_load(struct model *model, const struct model_memory *memory)
{
    if (memory != NULL)
        store_copy(&model->store, &memory->store);
    else
        store_clear(&model->store);
}

void model_forget(struct model_memory *memory)
{
    if (memory == NULL) return;
    store_free(&memory->store);
    free(memory);
}

/* ---- the operator ---- */

static void ignore_bytes(void *arg, const void *bytes, size_t size)
{
    (void)arg;
    (void)bytes;
    (void)size;
}

static void ignore_end(void *arg)
{
    (void)arg;
}

/* One reply as redis-cli shows it to a pipe: an array's elements on a line each. Returns what is behind it. */
static const char *show(struct out *text, const char *at)
{
    long long n = strtoll(at + 1, NULL, 10);
    const char *behind = strchr(at, '\r') + 2;

    if (*at == '*') {
        for (long long i = 0; i < n; i++) {
            if (i > 0) out_bytes(text, "\n", 1);
            behind = show(text, behind);
        }
    } else if (*at == '$' && n >= 0) {
        out_bytes(text, behind, (size_t)n);
        behind += n + 2;
    } else if (*at != '$') {
        out_bytes(text, at + 1, (size_t)(behind - at - 3));
    }
    return behind;
}

const char *model_do(struct model *model, uint64_t wall_us, const char *const *words, size_t n_words)
{
    struct session *session = model_open(model, ignore_bytes, ignore_end, NULL);

    session->operator= session->authed = true;
    session->refused = session->ends = false;
    model->last_id--;
    model->wall_us = wall_us;
    model->out.used = model->told.used = 0;
    if (n_words > model->room_words) {
        model->room_words = 2 * n_words + 16;
        model->words = model_resized(model->words, model->room_words * sizeof(*model->words));
    }
    for (size_t i = 0; i < n_words; i++) model->words[i] = (struct word){words[i], strlen(words[i])};
    command_execute(session, model->words, n_words, &model->out);
    out_bytes(&model->out, "", 1);
    (void)show(&model->told, model->out.bytes);
    out_bytes(&model->told, "", 1);
    model->out.used = model->told.used = 0;
    hang_up_ended(model);
    model_close(session);
    return model->told.bytes;
}
