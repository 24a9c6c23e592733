/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actions.c - a run as actions of the model of the protocol, for tests/model/traces
 *
 * A line for each action, with the true time in us first. What a server does with a request for a lock:
 *   TIME sets|extends|releases|raises SERVER KEY TOKEN yes|no now|late LEASE_MS ASKED SHOWN
 * ASKED and SHOWN are the number of a raise, and the counter of the reply; late: the client has closed the connection.
 *   TIME guards SERVER REST_MS       a connection reads the guard, or bootstrap writes it, with so long a quarantine
 *   TIME declares SERVER             bootstrap writes a guard without a quarantine
 *   TIME restarts|forgets|ages SERVER   it comes back with its memory, with none, with an older one
 *   TIME granted|renewed|ended|lost|released|crashed|detached|adopted KEY TOKEN UNTIL_US FENCE QUORUM yes|no
 * ended: it says that its validity is over. UNTIL_US is the true time at which the holder's validity ends; yes: its
 * machine stalled before it was told.
 */
#include <inttypes.h>
#include <string.h>

#include "actor.h"
#include "membership.h"
#include "process.h"
#include "trace.h"

#include "actions.h"

/* ---- what the model lacks ---- */

/* Why the whole run is none that the model can do; NULL: it is one. */
static const char *unfit_run(const struct plan *plan)
{
    if (plan->outside) return "faults outside of what is promised";
    if (plan_has(plan, FEATURE_REDISSON)) return "the redisson dialect";
    if (plan->changes) return "another set of nodes";
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].kind == FAULT_RECONFIGURE) return "another set of nodes";
    }
    return NULL;
}

static const char *unfit_actor(const struct plan_actor *actor)
{
    if (__builtin_popcount(actor->keys) > 1) return "lists of keys";
    if (actor->owner != 0) return "owners whose holds nest";
    if (actor->shared != 0) return "shared locks";
    if (actor->options.keep_ms != 0) return "kept locks";
    return actor->options.permits != 0 ? "permits" : NULL;
}

static const char *unfit_key(const struct plan *plan, uint32_t key)
{
    if ((plan->keys_void >> key & 1u) != 0) return "broken locks";
    if (plan_has(plan, FEATURE_PEERS)) return "plain peers";
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];

        if (fault->kind == FAULT_ODD || fault->kind == FAULT_PEER_KEY) return "plain peers";
    }
    for (uint32_t i = 0; i < plan->n_actors; i++) {
        const struct plan_actor *actor = &plan->actors[i];

        if ((actor->keys >> key & 1u) != 0 && unfit_actor(actor) != NULL) return unfit_actor(actor);
    }
    return NULL;
}

void actions_begin(const struct world *world, enum plan_bias bias)
{
    const struct plan *plan = world->plan;
    const char *unfit = unfit_run(plan), *prefix = plan_has(plan, FEATURE_PREFIX) ? "app:" : "";
    bool guards = plan->clients[0].guard != QUORLOCK_GUARD_OFF;
    bool cold = plan_has(plan, FEATURE_COLD) || plan_has(plan, FEATURE_BOOTSTRAP);

    (void)printf("run %" PRIu64 " %u %u %u %u %s %s\n", plan->seed, (unsigned)bias, plan->n_servers, plan->max_lease_ms,
                 plan->drift_ppm, guards ? "guards" : "unguarded", cold ? "cold" : "warm");
    for (uint32_t key = 0; key < plan->n_keys; key++) {
        const char *why = unfit != NULL ? unfit : unfit_key(plan, key);

        (void)printf("key %sk%u %s\n", prefix, key, why != NULL ? why : "fits");
    }
}

void actions_end(const struct world *world)
{
    (void)printf("end %s\n", trace_invariant(world->violation.invariant));
}

/* ---- replies ---- */

/* The front of a reply: as a number, or as text; of an array the first three. */
struct reply {
    char types[3];
    int64_t numbers[3];
    struct word texts[3];
};

static int64_t number_of(const char *at, const char *end)
{
    int64_t number = 0;
    bool negative = at < end && *at == '-';

    for (at += negative; at < end && *at >= '0' && *at <= '9'; at++) number = 10 * number + (*at - '0');
    return negative ? -number : number;
}

/* Reads one value into place i, an array's elements from i on; returns what is behind it. */
static const char *read_reply(const char *at, const char *end, struct reply *ret, size_t i)
{
    const char *line = memchr(at, '\r', (size_t)(end - at));
    char type = *at;
    int64_t number;

    if (line == NULL || line + 2 > end) return end;
    number = number_of(at + 1, line);
    if (i < 3) {
        ret->types[i] = type == '$' && number < 0 ? '_' : type;
        ret->numbers[i] = number;
    }
    at = line + 2;
    if (type == '$' && number >= 0) {
        if (number + 2 > end - at) return end;
        if (i < 3) ret->texts[i] = (struct word){at, (size_t)number};
        if (i < 3) ret->numbers[i] = number_of(at, at + number);
        at += number + 2;
    }
    for (; type == '*' && number > 0 && at < end; number--, i++) at = read_reply(at, end, ret, i);
    return at;
}

/* ---- servers ---- */

static bool is(const struct word *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

/* What it was asked: of the keys the first, and the words behind them. */
struct asked {
    const struct site *site;
    struct session *session;
    const struct word *keys, *words;
    size_t n_keys, n_words;
};

static struct word word_at(const struct asked *asked, size_t i)
{
    return i < asked->n_words ? asked->words[i] : (struct word){"", 0};
}

static int64_t number_at(const struct asked *asked, size_t i)
{
    struct word word = word_at(asked, i);

    return number_of(word.text, word.text + word.length);
}

/* NULL: it was not executed. */
static const char *answer_of(char verb, const struct reply *reply)
{
    bool holder = reply->types[0] == '$';

    if (verb == 'S') return reply->types[0] == '+' ? "yes" : reply->types[0] == '_' ? "no" : NULL;
    if (reply->types[0] != ':') return holder ? "no" : NULL;
    return reply->numbers[0] > 0 ? "yes" : "no";
}

/* verb: a letter of combined.lua; or S a plain SET, w a raise. */
static void print_request(const struct asked *asked, char verb, size_t i, struct word token, int64_t lease_ms,
                          int64_t number, const struct reply *reply)
{
    const char *answer = answer_of(verb, reply);
    const struct word *key = &asked->keys[i];
    const char *name = verb == 'S' || verb == 'a' ? "sets"
                       : verb == 'e'              ? "extends"
                       : verb == 'w'              ? "raises"
                                                  : "releases";
    bool counts = verb == 'a' || verb == 'w';

    if (answer == NULL || world_key_index(asked->site->world, key->text, key->length) == NOBODY) return;
    (void)printf("%" PRIu64 " %s %u %.*s %.*s %s %s %" PRId64 " %" PRId64 " %" PRId64 "\n",
                 world_now(asked->site->world), name, asked->site->index, (int)key->length, key->text,
                 (int)token.length, token.text, answer, server_is_deserted(asked->session) ? "late" : "now", lease_ms,
                 number, counts ? reply->numbers[1] : 0);
}

static void combined(const struct asked *asked, const struct word *text)
{
    size_t n = (size_t)number_at(asked, 0);
    struct word letters = word_at(asked, 1);
    const char *at = text->text, *end = text->text + text->length;

    for (size_t i = 0; i < n && i < letters.length && i < asked->n_keys && at < end; i++) {
        struct reply reply = {0};

        at = read_reply(at, end, &reply, 0);
        print_request(asked, letters.text[i], i, word_at(asked, 8 + i), number_at(asked, 2), 0, &reply);
    }
}

/* Of a bootstrap. */
static bool is_written(const struct reply *reply)
{
    return reply->texts[0].length > 8 && memcmp(reply->texts[0].text, "written:", 8) == 0;
}

/* Of a fair acquire: the queue refuses, and the key may be free. */
static bool is_queued(const struct reply *reply)
{
    const struct word *holder = &reply->texts[0];

    return holder->length > 15 && memcmp(holder->text, "quorlock:waits:", 15) == 0;
}

static void script_replied(const struct asked *asked, const char *script, const struct reply *reply)
{
    const struct site *site = asked->site;
    struct word owner = word_at(asked, 1), how = word_at(asked, 5);
    unsigned long long now_us = world_now(site->world);

    if (strcmp(script, "acquire") == 0 || (strcmp(script, "fair_acquire") == 0 && !is_queued(reply))) {
        print_request(asked, 'a', 0, owner, number_at(asked, 2), 0, reply);
    } else if (strcmp(script, "extend") == 0) {
        print_request(asked, 'e', 0, owner, number_at(asked, 2), 0, reply);
    } else if (strcmp(script, "release") == 0) {
        print_request(asked, 'r', 0, owner, 0, 0, reply);
    } else if (strcmp(script, "raise") == 0) {
        print_request(asked, 'w', 0, owner, 0, number_at(asked, 4), reply);
    } else if (strcmp(script, "combined") == 0 && reply->types[0] == '$') {
        combined(asked, &reply->texts[0]);
    } else if (strcmp(script, "guard") == 0) {
        struct word connected = word_at(asked, 5);
        bool read = is(&reply->texts[0], "kept") || is(&reply->texts[0], "new");

        /* Else it must connect again. */
        if (is(&reply->texts[0], "lost") && !is(&connected, "1")) read = true;
        if (read) (void)printf("%llu guards %u %lld\n", now_us, site->index, (long long)reply->numbers[1]);
    } else if (strcmp(script, "bootstrap") == 0 && is(&how, "new") && is_written(reply)) {
        (void)printf("%llu declares %u\n", now_us, site->index);
    }
}

/* A guard with a quarantine is written in a transaction, which also ends other connections. */
static void transaction_replied(const struct asked *asked, const struct reply *reply)
{
    const struct world *world = asked->site->world;
    const struct word *guard = &reply->texts[0];

    if (!is_written(reply) || memmem(guard->text, guard->length, "|reconfigure|", 13) == NULL) return;
    /* It waits at least for the leases of the max_lease that it writes. */
    (void)printf("%" PRIu64 " guards %u %u\n", world_now(world), asked->site->index, world->plan->max_lease_ms);
}

void actions_replied(void *arg, struct session *session, const char *script, const struct word *words, size_t n_words,
                     const struct word *text)
{
    struct asked asked = {.site = arg, .session = session};
    struct reply reply = {0};

    if (text->length == 0 || asked.site->world->over) return;
    (void)read_reply(text->text, text->text + text->length, &reply, 0);
    if (script != NULL) {
        asked.n_keys = (size_t)number_of(words[2].text, words[2].text + words[2].length);
        if (n_words < 3 + asked.n_keys) return;
        asked.keys = words + 3;
        asked.words = asked.keys + asked.n_keys;
        asked.n_words = n_words - 3 - asked.n_keys;
        script_replied(&asked, script, &reply);
    } else if (n_words == 1 && is(&words[0], "EXEC")) {
        transaction_replied(&asked, &reply);
    } else if (n_words == 6 && is(&words[0], "SET") && is(&words[3], "NX") && is(&words[4], "PX")) {
        asked.keys = words + 1;
        print_request(&asked, 'S', 0, words[2], number_of(words[5].text, words[5].text + words[5].length), 0, &reply);
    }
}

void actions_server(const struct site *site, const char *what)
{
    if (site->world->actions) (void)printf("%" PRIu64 " %s %u\n", world_now(site->world), what, site->index);
}

/* ---- holders ---- */

void actions_holder(struct actor *actor, const char *what)
{
    struct world *world = actor->world;
    struct process *process = actor_process(actor);

    if (!world->actions || world->over || what == NULL) return;
    (void)printf("%" PRIu64 " %s %s %s %" PRIu64 " %" PRIu64 " %u %s\n", world_now(world), what,
                 world_full_key(world, (uint32_t)__builtin_ctz(actor->plan->keys)), actor->window.token,
                 process_true_us(process, actor->window.until_us), actor->window.fence,
                 membership_quorum(world, actor->plan->client), process->stood_in_turn ? "yes" : "no");
}
