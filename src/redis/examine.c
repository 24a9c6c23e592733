/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/examine.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "redis/dialect/guard.h"
#include "redis/link/link.h"
#include "redis/wire/errors.h"
#include "redis/wire/info.h"

#define EXAMINE_CLOCK_TIMES 4 /* the first round trip takes longer than the others: caches are cold */
#define EXAMINE_ASKS_MAX    40
#define EXAMINE_WORDS_MAX   6

enum ask_kind { ASK_TIME, ASK_INFO, ASK_FSYNC, ASK_IDLE, ASK_USER, ASK_GUARD, ASK_PROBE, ASK_HELLO };

#define NAME   "\1" /* a placeholder for the name that the question is about */
#define NO_SHA "0000000000000000000000000000000000000000"

struct ask {
    enum ask_kind kind;
    enum examine_right right;
    enum examine_name name; /* EXAMINE_NAMES: about no name */
    enum examine_section section;
    const char *words[EXAMINE_WORDS_MAX];
};

static const struct ask ask_hello = {ASK_HELLO, EXAMINE_RIGHTS, EXAMINE_NAMES, EXAMINE_SECTIONS, {"HELLO", "3"}};
static const struct ask ask_time = {ASK_TIME, EXAMINE_TIME, EXAMINE_NAMES, EXAMINE_SECTIONS, {"TIME"}};

/*
 * GET of the guard comes after INFO, which reading the guard needs. The probes (SET and
 * MSETEX with NX and XX, PEXPIRE with a word for a number, a script that does not compile, CACHING without TRACKING,
 * HELLO with a protocol that does not exist) are errors, but only after the server has checked the rights. The lock key
 * is a random one, and its channel has no subscriber.
 */
static const struct ask examine_ask_rest[] = {
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_SERVER, {"INFO", "server"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_REPLICATION, {"INFO", "replication"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_MEMORY, {"INFO", "memory"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_PERSISTENCE, {"INFO", "persistence"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_CLIENTS, {"INFO", "clients"}},
    {ASK_FSYNC, EXAMINE_RIGHTS, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CONFIG", "GET", "appendfsync"}},
    {ASK_IDLE, EXAMINE_RIGHTS, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CONFIG", "GET", "timeout"}},
    {ASK_USER, EXAMINE_RIGHTS, EXAMINE_NAMES, EXAMINE_SECTIONS, {"ACL", "WHOAMI"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_STATS, {"INFO", "stats"}},
    {ASK_INFO, EXAMINE_INFO, EXAMINE_NAMES, EXAMINE_COMMANDS, {"INFO", "commandstats"}},
    {ASK_GUARD, EXAMINE_GET, EXAMINE_GUARD, EXAMINE_SECTIONS, {"GET", GUARD_KEY}},
    {ASK_PROBE, EXAMINE_SET, EXAMINE_GUARD, EXAMINE_SECTIONS, {"SET", GUARD_KEY, "-", "NX", "XX"}},
    {ASK_PROBE, EXAMINE_GET, EXAMINE_LOCK, EXAMINE_SECTIONS, {"GET", NAME}},
    {ASK_PROBE, EXAMINE_SET, EXAMINE_LOCK, EXAMINE_SECTIONS, {"SET", NAME, "-", "NX", "XX"}},
    {ASK_PROBE, EXAMINE_PTTL, EXAMINE_LOCK, EXAMINE_SECTIONS, {"PTTL", NAME}},
    {ASK_PROBE, EXAMINE_PEXPIRE, EXAMINE_LOCK, EXAMINE_SECTIONS, {"PEXPIRE", NAME, "-"}},
    {ASK_PROBE, EXAMINE_DEL, EXAMINE_LOCK, EXAMINE_SECTIONS, {"DEL", NAME}},
    {ASK_PROBE, EXAMINE_TYPE, EXAMINE_LOCK, EXAMINE_SECTIONS, {"TYPE", NAME}},
    {ASK_PROBE, EXAMINE_GET, EXAMINE_FENCE, EXAMINE_SECTIONS, {"GET", NAME}},
    {ASK_PROBE, EXAMINE_SET, EXAMINE_FENCE, EXAMINE_SECTIONS, {"SET", NAME, "-", "NX", "XX"}},
    {ASK_PROBE, EXAMINE_PTTL, EXAMINE_FENCE, EXAMINE_SECTIONS, {"PTTL", NAME}},
    {ASK_PROBE, EXAMINE_PUBLISH, EXAMINE_CHANNEL, EXAMINE_SECTIONS, {"PUBLISH", NAME, ""}},
    {ASK_PROBE, EXAMINE_EVAL, EXAMINE_LOCK, EXAMINE_SECTIONS, {"EVAL", "(", "1", NAME}},
    {ASK_PROBE, EXAMINE_EVALSHA, EXAMINE_LOCK, EXAMINE_SECTIONS, {"EVALSHA", NO_SHA, "1", NAME}},
    {ASK_PROBE, EXAMINE_SETNAME, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CLIENT", "SETNAME", "quorlock-doctor"}},
    {ASK_PROBE, EXAMINE_TRACKING, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CLIENT", "TRACKING", "OFF"}},
    {ASK_PROBE, EXAMINE_CACHING, EXAMINE_NAMES, EXAMINE_SECTIONS, {"CLIENT", "CACHING", "YES"}},
    {ASK_PROBE, EXAMINE_HELLO, EXAMINE_NAMES, EXAMINE_SECTIONS, {"HELLO", "0"}},
    {ASK_PROBE, EXAMINE_EXISTS, EXAMINE_LOCK, EXAMINE_SECTIONS, {"EXISTS", NAME}},
    {ASK_PROBE, EXAMINE_MSETEX, EXAMINE_LOCK, EXAMINE_SECTIONS, {"MSETEX", "1", NAME, "-", "NX", "XX"}},
};
enum { N_INFO = EXAMINE_SECTIONS }; /* the first of them */
enum { N_REST = sizeof(examine_ask_rest) / sizeof(examine_ask_rest[0]) };
_Static_assert(N_REST <= EXAMINE_ASKS_MAX, "all questions are in flight at once");

struct examine {
    struct examine_config config;
    struct examine_facts *facts;
    struct redis_link link;
    bool finished;                             /* done() is called when the link has ended */
    const struct ask *asked[EXAMINE_ASKS_MAX]; /* the questions in flight, in order */
    size_t n_asked, at;
    uint32_t clock_times;
    uint64_t sent_us;
    int64_t sent_wall_us;
    const char *lacks;          /* what shows that it is no server of ours; its answer to HELLO is awaited */
    char *names[EXAMINE_NAMES]; /* except the guard's, which is always the same */
};

static int64_t examine_wall_us(const struct examine *examine)
{
    struct system *system = examine->config.system;

    return (int64_t)system->ops->wall_us(system);
}

static void examine_finish(struct examine *examine)
{
    examine->finished = true;
    link_end(&examine->link);
}

/* ---- asking ---- */

static void append(struct examine *examine, const struct ask *ask)
{
    struct bytes *out = &examine->link.conn.out;
    size_t n_words = 0;

    assert(examine->n_asked < EXAMINE_ASKS_MAX);
    examine->asked[examine->n_asked++] = ask;
    while (n_words < EXAMINE_WORDS_MAX && ask->words[n_words] != NULL) n_words++;
    bytes_command(out, n_words);
    for (size_t i = 0; i < n_words; i++) {
        const char *word = ask->words[i];

        bytes_text(out, word[0] == NAME[0] ? examine->names[ask->name] : word);
    }
}

/* Send what was appended, at the end of this turn. */
static void ask_server(struct examine *examine)
{
    examine->sent_us = link_now_us(&examine->link);
    examine->sent_wall_us = examine_wall_us(examine);
    link_ask(&examine->link);
}

/* As a handshake does. A server that replies OK to everything is none, either. */
static const char *lack_of(const struct examine_facts *facts)
{
    if ((facts->refused_rights & (1u << EXAMINE_INFO)) != 0)
        return (facts->unknown_rights & (1u << EXAMINE_INFO)) != 0 ? "no INFO" : NULL;
    if (facts->kind[0] == '\0') return "INFO has no redis_version";
    if (facts->run_id[0] == '\0') return "INFO has no run_id";
    if (strcmp(facts->mode, "sentinel") == 0 || strcmp(facts->role, "replica") == 0) return NULL;
    if (facts->role[0] == '\0') return "INFO has no role";
    return facts->replid[0] == '\0' ? "INFO has no master_replid" : NULL;
}

static void examine_judge(struct examine *examine)
{
    const char *other = examine->facts->other;

    /* The command may have another name on a real server. */
    if (examine->lacks != NULL && (other[0] != '\0' || (examine->facts->refused_rights & (1u << EXAMINE_INFO)) == 0)) {
        link_drop(&examine->link, FAULT_PROTO, "not a Redis server%s%s: %s", other[0] != '\0' ? ", but " : "", other,
                  examine->lacks);
        return;
    }
    examine->facts->reachable = true;
    examine_finish(examine);
}

/* All questions are answered; send the next: the clock several times, one after the other, then all others together. */
static void examine_next(struct examine *examine)
{
    bool was_rest = examine->n_asked == N_REST, was_hello = examine->lacks != NULL;

    examine->n_asked = examine->at = 0;
    if (examine->clock_times < EXAMINE_CLOCK_TIMES) {
        examine->clock_times++;
        append(examine, &ask_time);
        ask_server(examine);
    } else if (!was_rest && !was_hello) {
        for (size_t i = 0; i < N_REST; i++) append(examine, &examine_ask_rest[i]);
        ask_server(examine);
    } else if (was_rest && (examine->lacks = lack_of(examine->facts)) != NULL) {
        append(examine, &ask_hello);
        ask_server(examine);
    } else {
        examine_judge(examine);
    }
}

/* ---- answers ---- */

/* Whether the error ends the examination, because the server accepts no command of ours. */
static bool shut_out(const struct reply_item *item)
{
    return reply_begins(item, "NOAUTH") || reply_begins(item, "DENIED") ||
           reply_begins(item, "ERR max number of clients");
}

static void examine_on_error(struct examine *examine, const struct ask *ask, const struct reply_item *item)
{
    struct examine_facts *facts = examine->facts;

    if (ask->kind == ASK_GUARD)
        handshake_describe(examine->config.link.uri, "GET " GUARD_KEY, item, facts->guard_error,
                           sizeof(facts->guard_error));
    if (ask->kind == ASK_FSYNC) facts->no_config = examine_is_unknown(item->text, item->length);
    if (ask->right < EXAMINE_RIGHTS) examine_read_refusal(facts, ask->right, ask->name, item->text, item->length);
}

static void examine_on_time(struct examine *examine, const struct reply *reply)
{
    uint64_t way_us = link_now_us(&examine->link) - examine->sent_us;
    uint32_t latency_us = way_us > UINT32_MAX ? UINT32_MAX : (uint32_t)way_us;
    struct examine_facts *facts = examine->facts;
    int64_t server_us;

    if (facts->latency_us == 0 || latency_us < facts->latency_us) facts->latency_us = latency_us != 0 ? latency_us : 1;
    if (!reply_fits(reply, "ss")) return;
    /* So few digits cannot overflow. */
    if (reply->elements[0].length > 11 || reply->elements[1].length > 6) return;
    server_us = strtoll(reply->elements[0].text, NULL, 10) * 1000000 + strtoll(reply->elements[1].text, NULL, 10);
    examine_read_time(facts, server_us, examine->sent_wall_us, examine_wall_us(examine));
}

static void examine_on_setting(const struct reply *reply, char ret[EXAMINE_WORD_SIZE])
{
    const struct reply_item *value = &reply->elements[1];

    if (reply_fits(reply, "ss")) error_printable(ret, EXAMINE_WORD_SIZE, value->text, value->length);
}

static void on_value(struct examine *examine, const struct ask *ask, const struct reply *reply)
{
    struct examine_facts *facts = examine->facts;
    const struct reply_item *self = &reply->self;

    switch (ask->kind) {
    case ASK_INFO:
        if (self->type == REPLY_STRING) examine_read_info(facts, ask->section, self->text, self->length);
        break;
    case ASK_FSYNC: examine_on_setting(reply, facts->appendfsync); break;
    case ASK_IDLE: examine_on_setting(reply, facts->idle_s); break;
    case ASK_USER:
        if (self->type == REPLY_STRING) error_printable(facts->user, sizeof(facts->user), self->text, self->length);
        break;
    case ASK_GUARD:
        if (self->type == REPLY_NIL) facts->guard.state = EXAMINE_GUARD_NONE;
        if (self->type == REPLY_STRING) examine_read_guard(facts, self->text, self->length);
        break;
    case ASK_HELLO: info_other(reply, facts->other, sizeof(facts->other)); break;
    case ASK_TIME:
    case ASK_PROBE: break;
    }
}

static void examine_on_reply(void *arg, const struct reply *reply)
{
    struct examine *examine = arg;
    const struct ask *ask;
    char why[EXAMINE_TEXT_SIZE];

    if (examine->at == examine->n_asked) {
        link_drop(&examine->link, FAULT_PROTO, "not a Redis server? It sends replies without being asked");
        return;
    }
    ask = examine->asked[examine->at++];
    if (ask->kind == ASK_TIME) examine_on_time(examine, reply);
    if (reply->self.type != REPLY_ERROR) {
        on_value(examine, ask, reply);
    } else if (shut_out(&reply->self)) {
        handshake_describe(examine->config.link.uri, "refused", &reply->self, why, sizeof(why));
        link_drop(&examine->link, FAULT_AUTH, "%s", why);
        return;
    } else {
        examine_on_error(examine, ask, &reply->self);
    }
    if (examine->at == examine->n_asked) examine_next(examine);
}

/* ---- the connection ---- */

static bool stays_here(const struct examine *examine)
{
    const struct sockaddr_storage *storage = dial_address(&examine->link.dial);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)storage;

    if (storage->ss_family == AF_UNIX) return true;
    if (storage->ss_family == AF_INET) return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) != 0) return v6->sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void examine_on_connected(void *arg)
{
    struct examine *examine = arg;
    struct redis_link *link = &examine->link;

    examine->facts->loopback = stays_here(examine);
    examine->facts->tls = examine->config.link.uri->tls;
    handshake_knock(&link->handshake, &link->conn.out, examine->config.link.uri);
}

static void examine_on_greeted(void *arg)
{
    struct examine *examine = arg;

    link_open(&examine->link);
    examine_next(examine);
}

static void examine_on_due(void *arg)
{
    struct examine *examine = arg;
    struct redis_link *link = &examine->link;
    const struct handshake *shake = &link->handshake;
    bool writes = examine->n_asked == N_REST && examine->asked[examine->at]->kind == ASK_PROBE;
    bool runs = examine->clock_times > 1 || shake->steps[shake->n_steps - 1] != HANDSHAKE_KNOCK;

    /* It has answered all that only reads, and the next is a write; or it has refused what was no command at all. */
    if ((writes || !runs) && link_now_us(link) >= link->step_us)
        link_drop(link, FAULT_UNREACHABLE, "it answers %s within %u ms: paused by CLIENT PAUSE?",
                  writes ? "INFO, but no write" : "errors, but no command", (unsigned)link->config.timeout_ms);
    else
        link_drop_late(link, FAULT_UNREACHABLE);
}

/* An examination does not try a second time. */
static void examine_on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct examine *examine = arg;

    (void)was_open;
    examine->facts->nomem = fault == FAULT_LIMIT;
    /* No server of ours answers with what cannot be read. */
    if (fault == FAULT_PROTO && examine->n_asked == N_REST && examine->at > N_INFO)
        examine->lacks = lack_of(examine->facts);
    if (examine->lacks != NULL && examine->facts->other[0] == '\0') {
        snprintf(examine->facts->error, sizeof(examine->facts->error), "not a Redis server: %s", examine->lacks);
        examine_finish(examine);
        return;
    }
    snprintf(examine->facts->error, sizeof(examine->facts->error), "%s", why);
    examine_finish(examine);
}

static void examine_on_ended(void *arg)
{
    struct examine *examine = arg;
    const struct examine_config config = examine->config;
    bool finished = examine->finished;

    for (size_t i = 0; i < EXAMINE_NAMES; i++) alloc_free(config.alloc, examine->names[i]);
    alloc_free(config.alloc, examine);
    if (finished) config.done(config.arg);
}

/* ---- life ---- */

static const struct link_events examine_link_events = {
    .connected = examine_on_connected,
    .greeted = examine_on_greeted,
    .reply = examine_on_reply,
    .due = examine_on_due,
    .closed = examine_on_closed,
    .ended = examine_on_ended,
};

/* The lock key is random, so that it does not exist. */
static bool make_names(struct examine *examine)
{
    static const struct {
        enum examine_name name;
        const char *text;
    } fronts[] = {{EXAMINE_LOCK, ""}, {EXAMINE_FENCE, "quorlock:fence:"}, {EXAMINE_CHANNEL, "quorlock:released:"}};
    const struct alloc *alloc = examine->config.alloc;
    struct system *system = examine->config.system;
    unsigned long long number = 0;
    size_t length;
    char name[64];

    if (system->ops->random(system, &number, sizeof(number), false) != 0) number = link_now_us(&examine->link);
    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
        snprintf(name, sizeof(name), "%squorlock-doctor-%016llx", fronts[i].text, number);
        examine->names[fronts[i].name] = alloc_joined(alloc, examine->config.key_prefix, name, &length);
        if (examine->names[fronts[i].name] == NULL) return false;
    }
    return true;
}

struct examine *examine_start(const struct examine_config *config, struct examine_facts *facts)
{
    struct link_config link = config->link;
    struct examine *examine = alloc_zero(config->alloc, sizeof(*examine));

    if (examine == NULL) return NULL;
    link.log = NULL;
    link.user_timeout_ms = link.timeout_ms;
    link.steps_end_us = link.now_us(link.arg) + 1000ull * (link.connect_ms + EXAMINE_QUESTIONS * link.timeout_ms);
    *facts = (struct examine_facts){0};
    examine->config = *config;
    examine->facts = facts;
    if (link_init(&examine->link, config->system, config->alloc, &link, &examine_link_events, examine) &&
        make_names(examine) && link_start(&examine->link))
        return examine;
    link_end(&examine->link);
    return NULL;
}

void examine_cancel(struct examine *examine)
{
    if (examine != NULL) link_end(&examine->link);
}
