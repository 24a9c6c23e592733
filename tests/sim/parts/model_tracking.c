/* SPDX-License-Identifier: BSD-3-Clause */
/* model_tracking.c - CLIENT TRACKING: a session hears once of each key that it has read and that then changes */
#include <stdlib.h>
#include <string.h>

#include "model_own.h"
#include "rng.h"

/* A key of any database: servers do not tell them apart here. */
struct tracked {
    struct link link;
    struct blob key;
};

static struct tracked *find(const struct session *session, const char *key, size_t length)
{
    LIST_EACH (struct tracked, tracked, &session->tracked, link) {
        if (blob_is(&tracked->key, key, length)) return tracked;
    }
    return NULL;
}

static void forget(struct session *session, struct tracked *tracked)
{
    list_remove(&session->tracked, &tracked->link);
    session->model->n_tracked--;
    free(tracked->key.text);
    free(tracked);
}

void session_forget_tracked(struct session *session)
{
    while (session->tracked.count > 0) forget(session, FIRST_OF(&session->tracked, struct tracked, link));
}

static void remember(struct session *session, const struct word *key)
{
    struct tracked *tracked;

    if (find(session, key->text, key->length) != NULL) return;
    tracked = model_resized(NULL, sizeof(*tracked));
    *tracked = (struct tracked){0};
    blob_set(&tracked->key, key->text, key->length);
    list_add(&session->tracked, &tracked->link);
    session->model->n_tracked++;
}

/* key: NULL: of all keys. What a session did itself it hears behind the reply, if it speaks RESP3 then. */
static void push(struct session *session, const struct session *by, const char *key, size_t length)
{
    struct out *out = session == by ? &session->model->behind : &session->model->notice;

    if (!session->tracking || session->ends) return;
    if (session == by && session->no_loop && key != NULL) return;
    if (session != by && !session->resp3) return;
    if (session != by) out->used = 0;
    out_text(out, ">2\r\n");
    out_bulk_text(out, "invalidate");
    if (key != NULL) {
        out_array(out, 1);
        out_bulk(out, key, length);
    } else {
        out_text(out, "_\r\n");
    }
    session->model->n_pushes++;
    if (session != by) session->write(session->arg, out->bytes, out->used);
}

void tracking_changed(struct model *model, const struct session *by, const char *key, size_t length)
{
    if (model->n_tracked == 0) return;
    LIST_EACH (struct session, session, &model->sessions, link) {
        struct tracked *tracked = find(session, key, length);

        if (tracked == NULL) continue;
        push(session, by, key, length);
        forget(session, tracked);
    }
}

void tracking_flushed(struct model *model, const struct session *by)
{
    LIST_EACH (struct session, session, &model->sessions, link) {
        session_forget_tracked(session);
        push(session, by, NULL, 0);
    }
}

/* Of scripts the keys that they were given: what they read in fact counts from 7.2 on. */
void tracking_read(const struct call *call)
{
    struct session *session = call->session;
    bool reads = call->command->flags == 0; /* those have keys, and change nothing */
    size_t first = 1, n = 1;

    if (!reads || !session->tracking || (session->opt_in && !session->caching)) return;
    if (call->script != NULL && model_version(call->model) < MODEL_VERSION_7_2) {
        int64_t n_keys = 0;

        call = call->script;
        (void)word_number(&call->words[2], &n_keys);
        first = 3;
        n = (size_t)n_keys;
    } else if (call->command->run == run_mget || call->command->run == run_exists) {
        n = call->n_words - 1;
    }
    for (size_t i = 0; i < n; i++) remember(session, &call->words[first + i]);
}

/* Others have keys tracked, too: a table that is full makes room, and says of a key that it may have changed. */
void tracking_make_room(struct model *model)
{
    uint64_t drawn, skipped;

    if (model->n_tracked == 0 || model->manners.push_one_in == 0) return;
    drawn = rng_mix(~model->manners.run, ++model->n_rooms);
    if (drawn % model->manners.push_one_in != 0) return;
    skipped = drawn / model->manners.push_one_in % model->n_tracked;
    model->n_false_pushes++;
    LIST_EACH (struct session, session, &model->sessions, link) {
        LIST_EACH (struct tracked, tracked, &session->tracked, link) {
            struct blob key = {0};

            if (skipped-- > 0) continue;
            blob_set(&key, tracked->key.text, tracked->key.length);
            tracking_changed(model, NULL, key.text, key.length);
            free(key.text);
            return;
        }
    }
}

void run_client_tracking(struct call *call)
{
    struct session *session = call->session;
    bool on = word_is(&call->words[2], "on"), opt_in = false, no_loop = false;

    for (size_t i = 3; i < call->n_words; i++) {
        const struct word *word = &call->words[i];

        if (word_is(word, "bcast") || word_is(word, "optout") || word_is(word, "redirect") || word_is(word, "prefix"))
            model_panic("CLIENT TRACKING with", word->text, word->length);
        opt_in |= word_is(word, "optin");
        no_loop |= word_is(word, "noloop");
        if (word_is(word, "optin") || word_is(word, "noloop")) continue;
        out_error(call->out, ERROR_SYNTAX);
        return;
    }
    if (!on && !word_is(&call->words[2], "off")) {
        out_error(call->out, ERROR_SYNTAX);
        return;
    }
    /* What it has read before stays remembered. */
    session->tracking = on;
    session->opt_in = on && opt_in;
    session->no_loop = on && no_loop;
    session->caching = on && session->caching;
    out_status(call->out, "OK");
}

void run_client_caching(struct call *call)
{
    struct session *session = call->session;

    if (!session->tracking) {
        out_error(call->out, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
                             "OPTOUT mode enabled");
    } else if (word_is(&call->words[2], "no")) {
        out_error(call->out, "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    } else if (!word_is(&call->words[2], "yes")) {
        out_error(call->out, ERROR_SYNTAX);
    } else if (!session->opt_in) {
        out_error(call->out, "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    } else {
        session->caching = true;
        out_status(call->out, "OK");
    }
}
