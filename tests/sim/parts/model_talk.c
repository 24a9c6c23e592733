/* SPDX-License-Identifier: BSD-3-Clause */
/* model_talk.c - commands about connections: who they are, transactions, notices */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "model_own.h"
#include "rng.h"

/* ---- connections ---- */

static bool is_text(const struct word *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

void run_auth(struct call *call)
{
    const char *password = call->model->manners.password;
    bool names_user = call->n_words == 3;

    if (call->n_words > 3) {
        out_error(call->out, ERROR_SYNTAX);
    } else if (!names_user && password == NULL) {
        out_error(call->out, "ERR AUTH <password> called without any password configured for the default user. Are "
                             "you sure your configuration is correct?");
    } else if ((names_user && !is_text(&call->words[1], "default")) ||
               (password != NULL && !is_text(&call->words[call->n_words - 1], password))) {
        out_error(call->out, "WRONGPASS invalid username-password pair or user is disabled.");
    } else {
        call->session->authed = true;
        out_status(call->out, "OK");
    }
}

/* There is no other user. */
void run_acl_whoami(struct call *call)
{
    out_bulk_text(call->out, "default");
}

void run_ping(struct call *call)
{
    struct word said = call->n_words == 2 ? call->words[1] : (struct word){"", 0};

    if (call->n_words > 2) {
        out_error(call->out, "ERR wrong number of arguments for 'ping' command");
    } else if (call->session->subscriptions.count > 0 && !call->session->resp3) {
        out_array(call->out, 2);
        out_bulk_text(call->out, "pong");
        out_bulk(call->out, said.text, said.length);
    } else if (call->n_words == 2) {
        out_bulk(call->out, said.text, said.length);
    } else {
        out_status(call->out, "PONG");
    }
}

void run_select(struct call *call)
{
    int64_t db;

    if (call->script != NULL) model_panic("in scripts", "SELECT", 6);
    if (!call_number(call, 1, &db)) return;
    if (db < INT32_MIN || db > INT32_MAX) {
        out_error(call->out, "ERR value is out of range, value must between %d and %d", INT32_MIN, INT32_MAX);
        return;
    }
    if (db < 0 || db >= MODEL_DBS) {
        out_error(call->out, "ERR DB index is out of range");
        return;
    }
    call->session->db = (uint32_t)db;
    out_status(call->out, "OK");
}

void run_time(struct call *call)
{
    out_array(call->out, 2);
    out_bulk_number(call->out, (int64_t)(call->model->wall_us / 1000000));
    out_bulk_number(call->out, (int64_t)(call->model->wall_us % 1000000));
}

void run_client_setname(struct call *call)
{
    const struct word *name = &call->words[2];
    struct session *session = call->session;

    for (size_t i = 0; i < name->length; i++) {
        if (name->text[i] < '!' || name->text[i] > '~') {
            out_error(call->out, "ERR Client names cannot contain spaces, newlines or special characters.");
            return;
        }
    }
    if (name->length >= sizeof(session->name)) model_panic("so long names of clients", name->text, name->length);
    memcpy(session->name, name->text, name->length);
    session->name[name->length] = '\0';
    out_status(call->out, "OK");
}

void run_client_getname(struct call *call)
{
    if (call->session->name[0] == '\0')
        out_nil(call->out);
    else
        out_bulk_text(call->out, call->session->name);
}

void run_client_id(struct call *call)
{
    out_number(call->out, (int64_t)call->session->id);
}

void run_hello(struct call *call)
{
    const struct model *model = call->model;
    struct session *session = call->session;
    int64_t version = session->resp3 ? 3 : 2;

    if (call->n_words > 2) model_panic("options of", "HELLO", 5);
    if (call->n_words == 2 && !word_number(&call->words[1], &version)) {
        out_error(call->out, "ERR Protocol version is not an integer or out of range");
        return;
    }
    if (version != 2 && version != 3) {
        out_error(call->out, "NOPROTO unsupported protocol version");
        return;
    }
    if (model->manners.password != NULL && !session->authed) {
        out_error(call->out, "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
                             "AUTH <user> <pass> option can be used to authenticate the client and select the RESP "
                             "protocol version at the same time");
        return;
    }
    session->resp3 = call->out->resp3 = version == 3;
    out_map(call->out, 7);
    out_bulk_text(call->out, "server");
    out_bulk_text(call->out, model->manners.valkey != NULL ? "valkey" : "redis");
    out_bulk_text(call->out, "version");
    out_bulk_text(call->out, model->manners.valkey != NULL ? model->manners.valkey : model_version_text(model));
    out_bulk_text(call->out, "proto");
    out_number(call->out, version);
    out_bulk_text(call->out, "id");
    out_number(call->out, (int64_t)session->id);
    out_bulk_text(call->out, "mode");
    out_bulk_text(call->out, model->manners.cluster ? "cluster" : "standalone");
    out_bulk_text(call->out, "role");
    out_bulk_text(call->out, model->manners.replica ? "replica" : "master");
    out_bulk_text(call->out, "modules");
    out_array(call->out, 0);
}

/* ---- CLIENT KILL ---- */

enum client_type { ANY, NORMAL, PUBSUB, OTHER };

struct kill_filter {
    enum client_type type;
    uint64_t id; /* 0: any */
    bool nowhere, skip_me;
};

static bool kill_type(struct call *call, const struct word *value, struct kill_filter *filter)
{
    static const char *const others[] = {"master", "slave", "replica"};

    if (word_is(value, "normal")) filter->type = NORMAL;
    if (word_is(value, "pubsub")) filter->type = PUBSUB;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (word_is(value, others[i])) filter->type = OTHER;
    }
    if (filter->type != ANY) return true;
    out_error(call->out, "ERR Unknown client type '%.*s'", (int)value->length, value->text);
    return false;
}

static bool kill_option(struct call *call, const struct word *name, struct kill_filter *filter)
{
    const struct word *value = name + 1;
    int64_t id;

    if (word_is(name, "type")) return kill_type(call, value, filter);
    if (word_is(name, "id")) {
        if (!word_number(value, &id) || id < 1) {
            out_error(call->out, "ERR client-id should be greater than 0");
            return false;
        }
        filter->id = (uint64_t)id;
        return true;
    }
    if (word_is(name, "addr")) {
        if (!word_is(value, "0.0.0.0:0")) model_panic("the address", value->text, value->length);
        filter->nowhere = true;
        return true;
    }
    if (word_is(name, "laddr") || word_is(name, "user")) model_panic("CLIENT KILL by", name->text, name->length);
    if (word_is(name, "skipme") && (word_is(value, "yes") || word_is(value, "no"))) {
        filter->skip_me = word_is(value, "yes");
        return true;
    }
    out_error(call->out, ERROR_SYNTAX);
    return false;
}

static bool matches(const struct kill_filter *filter, const struct session *session, const struct session *self)
{
    enum client_type type = session->subscriptions.count > 0 ? PUBSUB : NORMAL;

    if (session->ends || session->operator|| filter->nowhere) return false;
    if (filter->type != ANY && filter->type != type) return false;
    if (filter->id != 0 && filter->id != session->id) return false;
    return session != self || !filter->skip_me;
}

void run_client_kill(struct call *call)
{
    struct kill_filter filter = {.type = ANY, .skip_me = true};
    int64_t n = 0;

    if (call->n_words == 3) model_panic("the old form of", "CLIENT KILL", 11);
    for (size_t i = 2; i < call->n_words; i += 2) {
        if (i + 1 == call->n_words) {
            out_error(call->out, ERROR_SYNTAX);
            return;
        }
        if (!kill_option(call, &call->words[i], &filter)) return;
    }
    LIST_EACH (struct session, session, &call->model->sessions, link) {
        if (!matches(&filter, session, call->session)) continue;
        n++;
        session_end(session);
    }
    out_number(call->out, n);
}

/* ---- transactions ---- */

void session_forget_queue(struct session *session)
{
    while (session->queued.count > 0) {
        struct queued *queued = FIRST_OF(&session->queued, struct queued, link);

        list_remove(&session->queued, &queued->link);
        free(queued);
    }
    session->multi = session->dirty = false;
    session->queued_any = 0;
    session->queued_all = ~0u;
}

void run_multi(struct call *call)
{
    if (call->session->multi) {
        out_error(call->out, "ERR MULTI calls can not be nested");
        return;
    }
    call->session->multi = true;
    out_status(call->out, "OK");
}

void run_discard(struct call *call)
{
    if (!call->session->multi) {
        out_error(call->out, "ERR DISCARD without MULTI");
        return;
    }
    session_forget_queue(call->session);
    out_status(call->out, "OK");
}

void run_exec(struct call *call)
{
    struct session *session = call->session;

    if (!session->multi) {
        out_error(call->out, "ERR EXEC without MULTI");
        return;
    }
    if (session->dirty) {
        session_forget_queue(session);
        out_error(call->out, "EXECABORT Transaction discarded because of previous errors.");
        return;
    }
    out_array(call->out, session->queued.count);
    LIST_EACH (struct queued, queued, &session->queued, link) {
        struct call inner = *call;

        inner.command = queued->command;
        inner.words = queued->words;
        inner.n_words = queued->n_words;
        inner.in_exec = true;
        /* Its replies go nowhere once it is to be closed, but what it asked for is done. */
        if (session->ends) inner.out = &call->model->told;
        command_run(&inner);
    }
    session_forget_queue(session);
}

/* ---- notices ---- */

static struct channel *find_channel(const struct model *model, const struct word *name)
{
    uint64_t hash = hash_bytes(HASH_START, name->text, name->length);

    HASHTABLE_EACH_OF (struct channel, channel, &model->channels, hash, hashed) {
        if (blob_is(&channel->name, name->text, name->length)) return channel;
    }
    return NULL;
}

static struct channel *make_channel(struct model *model, const struct word *name)
{
    struct channel *channel = model_resized(NULL, sizeof(*channel));

    *channel = (struct channel){.hashed.hash = hash_bytes(HASH_START, name->text, name->length)};
    blob_set(&channel->name, name->text, name->length);
    if (hashtable_reserve(&model->channels, &model->store.alloc) != 0) abort();
    hashtable_add(&model->channels, &channel->hashed);
    return channel;
}

static struct subscription *find_subscription(const struct session *session, const struct word *name)
{
    LIST_EACH (struct subscription, subscription, &session->subscriptions, of_session) {
        if (blob_is(&subscription->channel->name, name->text, name->length)) return subscription;
    }
    return NULL;
}

static void subscribe(struct session *session, const struct word *name)
{
    struct channel *channel = find_channel(session->model, name);
    struct subscription *subscription = model_resized(NULL, sizeof(*subscription));

    if (channel == NULL) channel = make_channel(session->model, name);
    *subscription = (struct subscription){.session = session, .channel = channel};
    list_add(&session->subscriptions, &subscription->of_session);
    list_add(&channel->subscriptions, &subscription->of_channel);
}

static void unsubscribe(struct session *session, struct subscription *subscription)
{
    struct channel *channel = subscription->channel;

    list_remove(&session->subscriptions, &subscription->of_session);
    list_remove(&channel->subscriptions, &subscription->of_channel);
    free(subscription);
    if (channel->subscriptions.count > 0) return;
    hashtable_remove(&session->model->channels, &channel->hashed);
    free(channel->name.text);
    free(channel);
}

void session_unsubscribe_all(struct session *session)
{
    while (session->subscriptions.count > 0)
        unsubscribe(session, FIRST_OF(&session->subscriptions, struct subscription, of_session));
}

void run_subscribe(struct call *call)
{
    for (size_t i = 1; i < call->n_words; i++) {
        const struct word *name = &call->words[i];

        if (find_subscription(call->session, name) == NULL) subscribe(call->session, name);
        out_push(call->out, 3);
        out_bulk_text(call->out, "subscribe");
        out_bulk(call->out, name->text, name->length);
        out_number(call->out, (int64_t)call->session->subscriptions.count);
    }
}

static void unsubscribed(struct call *call, const struct word *name)
{
    out_push(call->out, 3);
    out_bulk_text(call->out, "unsubscribe");
    if (name != NULL)
        out_bulk(call->out, name->text, name->length);
    else
        out_nil(call->out);
    out_number(call->out, (int64_t)call->session->subscriptions.count);
}

void run_unsubscribe(struct call *call)
{
    struct session *session = call->session;
    struct subscription *subscription;
    struct blob name = {0};

    if (call->n_words == 1 && session->subscriptions.count == 0) unsubscribed(call, NULL);
    while (call->n_words == 1 && session->subscriptions.count > 0) {
        subscription = FIRST_OF(&session->subscriptions, struct subscription, of_session);
        blob_set(&name, subscription->channel->name.text, subscription->channel->name.length);
        unsubscribe(session, subscription);
        unsubscribed(call, &(struct word){name.text, name.length});
    }
    free(name.text);
    for (size_t i = 1; i < call->n_words; i++) {
        subscription = find_subscription(session, &call->words[i]);
        if (subscription != NULL) unsubscribe(session, subscription);
        unsubscribed(call, &call->words[i]);
    }
}

static bool is_lost(struct model *model)
{
    uint32_t permille = model->manners.lost_permille;
    bool lost = permille != 0 && rng_mix(model->manners.run, ++model->n_notices) % 1000 < permille;

    model->n_lost_notices += lost;
    return lost;
}

void run_publish(struct call *call)
{
    const struct channel *channel = find_channel(call->model, &call->words[1]);
    struct out *out = &call->model->notice;

    if (channel == NULL) {
        out_number(call->out, 0);
        return;
    }
    out->used = 0;
    out_array(out, 3);
    out_bulk_text(out, "message");
    for (size_t i = 1; i <= 2; i++) out_bulk(out, call->words[i].text, call->words[i].length);
    LIST_EACH (struct subscription, to, &channel->subscriptions, of_channel) {
        if (is_lost(call->model)) continue;
        out->bytes[0] = to->session->resp3 ? '>' : '*';
        /* Of its own notices a client hears between its replies. */
        if (to->session == call->session)
            out_bytes(&call->model->out, out->bytes, out->used);
        else
            to->session->write(to->session->arg, out->bytes, out->used);
    }
    out_number(call->out, (int64_t)channel->subscriptions.count);
}

/* Nobody subscribes by a pattern here. */
void run_pubsub_numpat(struct call *call)
{
    out_number(call->out, 0);
}

void run_pubsub_numsub(struct call *call)
{
    out_array(call->out, 2 * (call->n_words - 2));
    for (size_t i = 2; i < call->n_words; i++) {
        const struct channel *channel = find_channel(call->model, &call->words[i]);

        out_bulk(call->out, call->words[i].text, call->words[i].length);
        out_number(call->out, channel != NULL ? (int64_t)channel->subscriptions.count : 0);
    }
}
