/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/raw.h"

#include <event2/event.h>
#include <hiredis/adapters/libevent.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/system.h"
#include "base/system_os.h"
#include "bench/secure.h"
#include "redis/link/tls.h"
#include "redis/link/uri.h"

#define KEY_SIZE      128
#define LEASE_SIZE    16
#define TOKEN_SIZE    41 /* the size of quorlock's tokens */
#define ERROR_SIZE    512
#define TICK_US       50000
#define QUIET_MAX     20 /* ticks without an answer, after which a node is left out */
#define HEX_DIGITS    16
#define BATCH         256 /* keys in one DEL */
#define CLEANINGS_MAX 20
#define INFO_BYTES    64 /* of the two requests for the statistics */

static const char raw_script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
                                 "return 0";
/* The SHA-1 of raw_script. */
static const char sha[] = "6fbe84d1140fd2047394924af9d845b83c070bec";

struct node {
    struct raw *raw;
    struct uri uri;
    redisAsyncContext *context; /* of a plain connection, or NULL */
    struct secure *secure;      /* of a TLS connection, or NULL */
    bool ready;                 /* it has the script */
    bool intrudes;              /* it sent an answer without a request */
    uint64_t answers, answers_seen;
    unsigned quiet;           /* ticks since the last answer, while an answer is missing */
    char error[ERROR_SIZE];   /* why it is not ready */
    struct usage before, now; /* from its INFO */
    bool cleaned;
};

struct slot {
    struct raw *raw;
    size_t waits; /* missing answers */
    uint64_t since_ns;
    bool releasing, failed;
    size_t n_key;
    char key[KEY_SIZE];
    char token[TOKEN_SIZE];
};

struct raw {
    struct event_base *base;
    struct event *tick;
    struct alloc alloc;
    struct system system;
    struct tls *tls; /* NULL: no node needs TLS, or it failed: see tls_error */
    char tls_error[TLS_TEXT_SIZE];
    struct node *nodes;
    size_t n_nodes;
    struct slot *slots;
    uint32_t n_slots;
    /* The loop runs until one of these is 0: slots in a cycle, nodes that are getting ready, other missing answers. */
    size_t busy, greetings, calls;
    uint64_t deleted; /* keys that the last cleaning deleted */
    uint64_t until_ns;
    uint64_t tokens;
    struct slice *slice;
    char lease[LEASE_SIZE];
    bool stopped;
};

/* ---- connections ---- */

static void raw_lose(struct node *node, const char *why)
{
    node->ready = false;
    if (why != NULL) snprintf(node->error, sizeof(node->error), "%s", why);
}

static void raw_on_connected(const redisAsyncContext *context, int status)
{
    struct node *node = context->data;

    if (status == REDIS_OK) return;
    raw_lose(node, context->errstr);
    node->context = NULL;
}

static void on_disconnected(const redisAsyncContext *context, int status)
{
    struct node *node = context->data;

    if (node->intrudes)
        raw_lose(node, "it sent an answer that nobody asked for");
    else
        raw_lose(node, status != REDIS_OK ? context->errstr : "it did not answer in time");
    node->context = NULL;
}

static void on_secure_lost(void *owner, const char *why)
{
    struct node *node = owner;

    raw_lose(node, why);
    node->secure = NULL;
}

static bool is_connected(const struct node *node)
{
    return node->context != NULL || node->secure != NULL;
}

static bool ask_formatted(struct node *node, redisCallbackFn *answer, void *arg, const char *request, size_t length)
{
    if (node->secure != NULL) return secure_ask(node->secure, answer, arg, request, length);
    return redisAsyncFormattedCommand(node->context, answer, arg, request, length) == REDIS_OK;
}

__attribute__((format(printf, 3, 4))) static bool raw_ask_node(struct node *node, redisCallbackFn *answer,
                                                               const char *format, ...)
{
    char *request = NULL;
    va_list words;
    int length;
    bool asked;

    va_start(words, format);
    length = redisvFormatCommand(&request, format, words);
    va_end(words);
    if (length < 0) return false;
    asked = ask_formatted(node, answer, NULL, request, (size_t)length);
    explicit_bzero(request, (size_t)length); /* may hold a password */
    redisFreeCommand(request);
    return asked;
}

/* raw_check - return whether the node executed the request. The text of an error may repeat a password, so it is not
 * shown.
 */
static bool raw_check(struct node *node, const redisReply *reply)
{
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR) return true;
    if (reply != NULL) raw_lose(node, "it refuses our password, our database or EVAL");
    return false;
}

static void raw_on_greeted(redisAsyncContext *context, void *reply, void *arg)
{
    (void)arg;
    (void)raw_check(context->data, reply);
}

/* count_down - decrement a number that the loop runs for, and end the loop at 0. */
static void count_down(struct raw *raw, size_t *left)
{
    if (--*left == 0) event_base_loopbreak(raw->base);
}

/* run_until_none - run the loop until *left is 0. The loop may also end because another number is 0. */
static void run_until_none(struct raw *raw, const size_t *left)
{
    while (*left > 0)
        if (event_base_dispatch(raw->base) != 0) return;
}

static void on_loaded(redisAsyncContext *context, void *answer, void *arg)
{
    struct node *node = context->data;
    const redisReply *reply = answer;

    (void)arg;
    if (raw_check(node, reply) && reply->type == REDIS_REPLY_INTEGER && node->error[0] == '\0') node->ready = true;
    node->answers++;
    count_down(node->raw, &node->raw->greetings);
}

static void raw_greet(struct node *node)
{
    const struct uri *uri = &node->uri;

    if (uri->password != NULL && uri->user != NULL) {
        (void)raw_ask_node(node, raw_on_greeted, "AUTH %s %s", uri->user, uri->password);
    } else if (uri->password != NULL) {
        (void)raw_ask_node(node, raw_on_greeted, "AUTH %s", uri->password);
    }
    if (uri->db != 0) (void)raw_ask_node(node, raw_on_greeted, "SELECT %u", uri->db);
    /* No key has this token: the request only loads the script. */
    node->raw->greetings += raw_ask_node(node, on_loaded, "EVAL %s 1 %s none", raw_script, node->raw->slots[0].key);
}

/* is_unasked - return whether this is an answer without a request, for which hiredis would end the process. It can
 * handle errors without a request. */
static bool is_unasked(const redisReadTask *task)
{
    struct node *node = task->privdata;
    const redisAsyncContext *context = node->context;

    if (task->parent != NULL || task->type == REDIS_REPLY_ERROR || context == NULL || context->replies.head != NULL)
        return false;
    node->intrudes = true;
    return true;
}

/* The functions of hiredis. */
static redisReplyObjectFunctions made;

static void *make_string(const redisReadTask *task, char *text, size_t length)
{
    return is_unasked(task) ? NULL : made.createString(task, text, length);
}

static void *make_integer(const redisReadTask *task, long long number)
{
    return is_unasked(task) ? NULL : made.createInteger(task, number);
}

static void *make_nil(const redisReadTask *task)
{
    return is_unasked(task) ? NULL : made.createNil(task);
}

#if HIREDIS_MAJOR >= 1
static void *make_array(const redisReadTask *task, size_t n)
#else
static void *make_array(const redisReadTask *task, int n)
#endif
{
    return is_unasked(task) ? NULL : made.createArray(task, n);
}

/* watch_answers - refuse answers without a request. hiredis makes an answer before it looks for the request; if that
 * fails, it ends the connection. */
static void watch_answers(struct node *node)
{
    redisReader *reader = node->context->c.reader;
    static redisReplyObjectFunctions watched;

    made = watched = *reader->fn;
    watched.createString = make_string;
    watched.createInteger = make_integer;
    watched.createNil = make_nil;
    watched.createArray = make_array;
    reader->fn = &watched;
    reader->privdata = node;
}

static void dial_secure(struct node *node)
{
    struct raw *raw = node->raw;

    if (raw->tls == NULL)
        raw_lose(node, raw->tls_error);
    else
        node->secure = secure_open(&raw->system, raw->tls, &node->uri, on_secure_lost, node);
    if (node->secure != NULL) raw_greet(node);
}

static void dial_plain(struct node *node)
{
    const struct uri *uri = &node->uri;

    node->context = uri->kind == URI_UNIX ? redisAsyncConnectUnix(uri->host) : redisAsyncConnect(uri->host, uri->port);
    if (node->context == NULL || node->context->err != 0) {
        raw_lose(node, node->context != NULL ? node->context->errstr : "out of memory");
        if (node->context != NULL) redisAsyncFree(node->context);
        node->context = NULL;
        return;
    }
    node->context->data = node;
    watch_answers(node);
    redisLibeventAttach(node->context, node->raw->base);
    redisAsyncSetConnectCallback(node->context, raw_on_connected);
    redisAsyncSetDisconnectCallback(node->context, on_disconnected);
    raw_greet(node);
}

static void dial(struct node *node)
{
    node->error[0] = '\0';
    node->intrudes = false;
    node->quiet = 0;
    if (node->uri.tls)
        dial_secure(node);
    else
        dial_plain(node);
}

/* raw_hang_up - end the connection. The callbacks of requests in flight run now, without a reply. */
static void raw_hang_up(struct node *node)
{
    redisAsyncContext *context = node->context;
    struct secure *secure = node->secure;

    raw_lose(node, node->error[0] == '\0' ? "it did not answer in time" : NULL);
    node->context = NULL;
    node->secure = NULL;
    if (context != NULL) redisAsyncFree(context);
    if (secure != NULL) secure_close(secure);
}

/* raw_on_tick - leave out nodes that do not answer, so that the loop ends. */
static void raw_on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct raw *raw = arg;

    (void)fd;
    (void)what;
    for (size_t i = 0; i < raw->n_nodes; i++) {
        struct node *node = &raw->nodes[i];
        bool is_owed = node->secure != NULL ? secure_owes(node->secure)
                                            : node->context != NULL && node->context->replies.head != NULL;

        node->quiet = is_owed && node->answers == node->answers_seen ? node->quiet + 1 : 0;
        node->answers_seen = node->answers;
        if (node->quiet > QUIET_MAX) raw_hang_up(node);
    }
}

static void dial_all(struct raw *raw)
{
    for (size_t i = 0; i < raw->n_nodes; i++)
        if (!is_connected(&raw->nodes[i])) dial(&raw->nodes[i]);
}

/* ---- life ---- */

static bool raw_add_node(struct raw *raw, const struct raw_options *options, const char *address)
{
    struct node *nodes = realloc(raw->nodes, (raw->n_nodes + 1) * sizeof(*nodes));
    char error[ERROR_SIZE];

    if (nodes == NULL) return false;
    raw->nodes = nodes;
    nodes[raw->n_nodes] = (struct node){.raw = raw};
    if (uri_parse(&nodes[raw->n_nodes].uri, &raw->alloc, address, error, sizeof(error)) != 0) return false;
    return uri_log_in(&nodes[raw->n_nodes++].uri, &raw->alloc, options->user, options->password) == 0;
}

static bool add_nodes(struct raw *raw, const struct raw_options *options)
{
    char *list = strdup(options->nodes), *rest = list;
    bool added = list != NULL;

    for (const char *address; added && (address = strsep(&rest, ",")) != NULL;)
        added = raw_add_node(raw, options, address);
    if (list != NULL) explicit_bzero(list, strlen(options->nodes)); /* may hold passwords */
    free(list);
    return added;
}

static bool add_slots(struct raw *raw, const struct raw_options *options)
{
    raw->slots = calloc(options->in_flight, sizeof(*raw->slots));
    if (raw->slots == NULL) return false;
    raw->n_slots = options->in_flight;
    for (uint32_t i = 0; i < raw->n_slots; i++) {
        struct slot *slot = &raw->slots[i];

        slot->raw = raw;
        slot->n_key = (size_t)snprintf(slot->key, sizeof(slot->key), "%s%u", options->prefix, i);
        memset(slot->token, '0', sizeof(slot->token) - 1);
    }
    return true;
}

static bool add_loop(struct raw *raw)
{
    struct event_config *config = event_config_new();
    struct timeval tick = {.tv_usec = TICK_US};

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
        raw->base = event_base_new_with_config(config);
    if (config != NULL) event_config_free(config);
    if (raw->base != NULL) raw->tick = event_new(raw->base, -1, EV_PERSIST, raw_on_tick, raw);
    return raw->tick != NULL && event_add(raw->tick, &tick) == 0;
}

/* open_tls - set up TLS if a node needs it. If that fails, each such node gets the error. */
static void open_tls(struct raw *raw, const struct raw_options *options)
{
    struct tls_config config = {
        .ca = options->tls_ca, .cert = options->tls_cert, .key = options->tls_key, .name = options->tls_name};

    raw->system = system_libevent(raw->base, &raw->alloc);
    if (raw_tls(raw) > 0) (void)tls_new(&raw->tls, &raw->system, &config, raw->tls_error, sizeof(raw->tls_error));
}

struct raw *raw_new(const struct raw_options *options)
{
    struct raw *raw = calloc(1, sizeof(*raw));

    if (raw == NULL) return NULL;
    alloc_init(&raw->alloc, NULL);
    snprintf(raw->lease, sizeof(raw->lease), "%u", options->lease_ms);
    if (!add_loop(raw) || !add_nodes(raw, options) || !add_slots(raw, options)) {
        raw_free(raw);
        return NULL;
    }
    open_tls(raw, options);
    dial_all(raw);
    run_until_none(raw, &raw->greetings);
    return raw;
}

void raw_free(struct raw *raw)
{
    if (raw == NULL) return;
    raw->stopped = true;
    for (size_t i = 0; i < raw->n_nodes; i++) {
        if (is_connected(&raw->nodes[i])) raw_hang_up(&raw->nodes[i]);
        uri_clear(&raw->nodes[i].uri, &raw->alloc);
    }
    tls_free(raw->tls);
    if (raw->tick != NULL) event_free(raw->tick);
    if (raw->base != NULL) event_base_free(raw->base);
    free(raw->nodes);
    free(raw->slots);
    free(raw);
}

struct event_base *raw_base(const struct raw *raw)
{
    return raw->base;
}

size_t raw_ready(const struct raw *raw)
{
    size_t n = 0;

    for (size_t i = 0; i < raw->n_nodes; i++) n += raw->nodes[i].ready;
    return n;
}

size_t raw_tls(const struct raw *raw)
{
    size_t n = 0;

    for (size_t i = 0; i < raw->n_nodes; i++) n += raw->nodes[i].uri.tls;
    return n;
}

const char *raw_node(const struct raw *raw, size_t i, const char **ret_error)
{
    if (i >= raw->n_nodes) return NULL;
    *ret_error = raw->nodes[i].ready ? NULL : raw->nodes[i].error;
    return raw->nodes[i].uri.name;
}

/* ---- cycles ---- */

static void raw_ask(struct slot *slot);

/* renew_token - write a token of its own for each cycle. */
static void renew_token(struct slot *slot)
{
    uint64_t number = ++slot->raw->tokens;

    for (size_t i = 0; i < HEX_DIGITS; i++, number >>= 4) slot->token[i] = "0123456789abcdef"[number & 15];
}

/* raw_step - all answers are there: begin the release, or the next cycle. */
static void raw_step(struct slot *slot)
{
    struct raw *raw = slot->raw;
    uint64_t now_ns = slice_now_ns();

    if (!slot->failed)
        latencies_add(slot->releasing ? &raw->slice->release : &raw->slice->acquire, now_ns - slot->since_ns);
    slot->since_ns = now_ns;
    slot->releasing = !slot->releasing;
    if (!slot->releasing) {
        raw->slice->cycles += !slot->failed;
        raw->slice->failed += slot->failed;
        if (now_ns >= raw->until_ns || raw->stopped) {
            count_down(raw, &raw->busy);
            return;
        }
        slot->failed = false;
    }
    raw_ask(slot);
}

static void on_answer(redisAsyncContext *context, void *answer, void *arg)
{
    const redisReply *reply = answer;
    struct slot *slot = arg;

    ((struct node *)context->data)->answers++;
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL) slot->failed = true;
    if (--slot->waits == 0) raw_step(slot);
}

/* raw_send_all - send one request to all ready nodes; format it once. */
static void raw_send_all(struct slot *slot, int n_words, const char **words, const size_t *lengths)
{
    struct raw *raw = slot->raw;
    char *request = NULL;
    size_t length = 0;

    for (size_t i = 0; i < raw->n_nodes; i++) {
        struct node *node = &raw->nodes[i];

        if (!node->ready) continue;
        if (request == NULL) length = (size_t)redisFormatCommandArgv(&request, n_words, words, lengths);
        if (ask_formatted(node, on_answer, slot, request, length))
            slot->waits++;
        else
            slot->failed = true;
    }
    redisFreeCommand(request);
}

static void raw_ask(struct slot *slot)
{
    struct raw *raw = slot->raw;

    if (slot->releasing) {
        const char *words[] = {"EVALSHA", sha, "1", slot->key, slot->token};
        size_t lengths[] = {7, sizeof(sha) - 1, 1, slot->n_key, TOKEN_SIZE - 1};

        raw_send_all(slot, 5, words, lengths);
    } else {
        const char *words[] = {"SET", slot->key, slot->token, "NX", "PX", raw->lease};
        size_t lengths[] = {3, slot->n_key, TOKEN_SIZE - 1, 2, 2, strlen(raw->lease)};

        renew_token(slot);
        raw_send_all(slot, 6, words, lengths);
    }
    if (slot->waits == 0) count_down(raw, &raw->busy);
}

void raw_run(struct raw *raw, uint64_t span_ns, struct slice *slice)
{
    dial_all(raw);
    slice_begin(slice);
    raw->slice = slice;
    raw->until_ns = slice->begun_ns + span_ns;
    raw->busy = raw->n_slots;
    for (uint32_t i = 0; i < raw->n_slots; i++) {
        struct slot *slot = &raw->slots[i];

        slot->releasing = slot->failed = false;
        slot->since_ns = slice_now_ns();
        raw_ask(slot);
    }
    run_until_none(raw, &raw->busy);
    slice_end(slice);
    raw->slice = NULL;
}

void raw_stop(struct raw *raw)
{
    raw->stopped = true;
}

/* ---- the nodes' statistics ---- */

/* raw_field - return the number behind "NAME:" in an INFO; 0: there is none. */
static double raw_field(const char *info, const char *name)
{
    const char *at = strstr(info, name);

    return at != NULL ? strtod(at + strlen(name), NULL) : 0;
}

static void on_info(redisAsyncContext *context, void *answer, void *arg)
{
    struct node *node = context->data;
    const redisReply *reply = answer;

    (void)arg;
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        node->now.cpu_us += 1e6 * (raw_field(reply->str, "used_cpu_sys:") + raw_field(reply->str, "used_cpu_user:"));
        node->now.commands += (uint64_t)raw_field(reply->str, "total_commands_processed:");
        node->now.bytes += (uint64_t)raw_field(reply->str, "total_net_input_bytes:");
        node->now.bytes += (uint64_t)raw_field(reply->str, "total_net_output_bytes:");
        /* The request for statistics itself adds these. */
        node->before.commands++;
        node->before.bytes += reply->len + INFO_BYTES / 2;
    }
    node->answers++;
    count_down(node->raw, &node->raw->calls);
}

/* add_usage - add the node's work between two requests for statistics. If its counters began anew, add nothing. */
static void add_usage(struct usage *usage, const struct node *node)
{
    const struct usage *since = &node->before;

    if (node->now.commands < since->commands || node->now.bytes < since->bytes) return;
    usage->cpu_us += node->now.cpu_us - since->cpu_us;
    usage->commands += node->now.commands - since->commands;
    usage->bytes += node->now.bytes - since->bytes;
}

void raw_usage(struct raw *raw, struct usage *usage)
{
    for (size_t i = 0; i < raw->n_nodes; i++) {
        struct node *node = &raw->nodes[i];

        node->before = node->now;
        node->now = (struct usage){0};
        if (!node->ready) continue;
        raw->calls += raw_ask_node(node, on_info, "INFO cpu");
        raw->calls += raw_ask_node(node, on_info, "INFO stats");
    }
    run_until_none(raw, &raw->calls);
    for (size_t i = 0; i < raw->n_nodes && usage != NULL; i++)
        if (raw->nodes[i].ready) add_usage(usage, &raw->nodes[i]);
}

/* ---- cleaning up ---- */

static void on_deleted(redisAsyncContext *context, void *answer, void *arg)
{
    struct node *node = context->data;
    const redisReply *reply = answer;

    (void)arg;
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
        node->cleaned = false;
    else
        node->raw->deleted += (uint64_t)reply->integer;
    node->answers++;
    count_down(node->raw, &node->raw->calls);
}

/* delete_some - delete the keys of n slots. */
static void delete_some(struct raw *raw, const char *prefix, uint32_t first, uint32_t n)
{
    char keys[BATCH][KEY_SIZE];
    const char *words[BATCH + 1] = {"DEL"};
    size_t lengths[BATCH + 1] = {3};
    char *request = NULL;
    long long length; /* the type of hiredis 1.x */

    for (uint32_t i = 0; i < n; i++) {
        lengths[i + 1] = (size_t)snprintf(keys[i], KEY_SIZE, "%s%u", prefix, first + i);
        words[i + 1] = keys[i];
    }
    length = redisFormatCommandArgv(&request, (int)n + 1, words, lengths);
    for (size_t i = 0; i < raw->n_nodes && length > 0; i++) {
        struct node *node = &raw->nodes[i];

        if (!node->cleaned) continue;
        node->cleaned = ask_formatted(node, on_deleted, NULL, request, (size_t)length);
        raw->calls += node->cleaned;
    }
    redisFreeCommand(request);
}

static void delete_all(struct raw *raw, const char *const *prefixes, size_t n_prefixes)
{
    raw->deleted = 0;
    for (size_t k = 0; k < n_prefixes; k++)
        for (uint32_t i = 0; i < raw->n_slots; i += BATCH)
            delete_some(raw, prefixes[k], i, raw->n_slots - i < BATCH ? raw->n_slots - i : BATCH);
    run_until_none(raw, &raw->calls);
}

size_t raw_clean(struct raw *raw, const char *const *prefixes, size_t n_prefixes)
{
    size_t cleaned = 0;

    dial_all(raw);
    run_until_none(raw, &raw->greetings);
    for (size_t i = 0; i < raw->n_nodes; i++) raw->nodes[i].cleaned = raw->nodes[i].ready;
    /* A slow server may not have read all requests of another connection, which may set a key again. It reads from its
     * connections in turn, so repeat until no key is found: then it has read all of them. */
    raw->deleted = 1;
    for (int i = 0; i < CLEANINGS_MAX && raw->deleted > 0; i++) delete_all(raw, prefixes, n_prefixes);
    for (size_t i = 0; i < raw->n_nodes; i++) cleaned += raw->nodes[i].cleaned;
    return cleaned;
}
