/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/nodes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/login.h"
#include "base/trace.h"
#include "redis/guard_sets.h"
#include "redis/link/link.h"
#include "redis/link/tls.h"

#define STALL_FACTOR 3u
#define STALL_MS_MIN 3000u

/* The tag of a request at its node. */
struct request {
    struct requester *from;
    struct core_tag tag;
};

_Static_assert(sizeof(struct request) <= NODE_TAG_SIZE, "a request's tag has room at the node");

_Static_assert((int)NODE_CONNECTING == (int)QUORLOCK_NODE_STATE_CONNECTING, "states of nodes");
_Static_assert((int)NODE_READY == (int)QUORLOCK_NODE_STATE_READY, "states of nodes");
_Static_assert((int)NODE_QUARANTINED == (int)QUORLOCK_NODE_STATE_QUARANTINED, "states of nodes");
_Static_assert((int)NODE_DOWN == (int)QUORLOCK_NODE_STATE_DOWN, "states of nodes");
_Static_assert((int)FAULT_UNREACHABLE == (int)QUORLOCK_NODE_ERROR_UNREACHABLE, "faults of nodes");
_Static_assert((int)FAULT_TIMEOUT == (int)QUORLOCK_NODE_ERROR_TIMEOUT, "faults of nodes");
_Static_assert((int)FAULT_TEMPORARY == (int)QUORLOCK_NODE_ERROR_TEMPORARY, "faults of nodes");
_Static_assert((int)FAULT_REPLICA == (int)QUORLOCK_NODE_ERROR_REPLICA, "faults of nodes");
_Static_assert((int)FAULT_CLUSTER == (int)QUORLOCK_NODE_ERROR_CLUSTER, "faults of nodes");
_Static_assert((int)FAULT_AUTH == (int)QUORLOCK_NODE_ERROR_AUTH, "faults of nodes");
_Static_assert((int)FAULT_REFUSED == (int)QUORLOCK_NODE_ERROR_REFUSED, "faults of nodes");
_Static_assert((int)FAULT_FOREIGN == (int)QUORLOCK_NODE_ERROR_FOREIGN, "faults of nodes");
_Static_assert((int)FAULT_PROTO == (int)QUORLOCK_NODE_ERROR_PROTO, "faults of nodes");
_Static_assert((int)FAULT_OTHER == (int)QUORLOCK_NODE_ERROR_OTHER, "faults of nodes");
_Static_assert((int)FAULT_LIMIT == (int)QUORLOCK_NODE_ERROR_LIMIT, "faults of nodes");
_Static_assert((int)FAULT_CONFIG == (int)QUORLOCK_NODE_ERROR_CONFIG, "faults of nodes");
_Static_assert((int)FAULT_GUARD == (int)QUORLOCK_NODE_ERROR_GUARD, "faults of nodes");
_Static_assert((int)FAULT_LOGIN == (int)QUORLOCK_NODE_ERROR_LOGIN, "faults of nodes");
_Static_assert((int)FAULTS == QUORLOCK_NODE_ERROR_LOGIN + 1, "each fault has its public name");

/* ---- events of the nodes ---- */

/* Rule 4.8. A server behind two addresses would have two votes, so neither counts. The latest run id is compared, also
 * of a node without a connection, for the two addresses reconnect one after the other. */
static void expel_twins(struct runtime *runtime, uint32_t index)
{
    struct runtime_node *nodes = runtime->nodes;
    struct node *node = nodes[index].node;
    char why[300];

    snprintf(nodes[index].run_id, NODES_RUN_ID_SIZE, "%s", node_run_id(node));
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct node *other = nodes[i].node;

        /* While the client is being made, later nodes do not exist yet. */
        if (i == index || other == NULL || nodes[index].run_id[0] == '\0') continue;
        if (strcmp(nodes[index].run_id, nodes[i].run_id) != 0) continue;
        snprintf(why, sizeof(why), "%s and %s are one server: one server has one vote. List each server once",
                 node_name(node), node_name(other));
        node_expel(other, FAULT_CONFIG, why);
        node_expel(node, FAULT_CONFIG, why);
        return;
    }
}

bool nodes_can_talk(const struct node *node)
{
    return node_takes_requests(node_state_now(node));
}

/* Note the server process and guard that answer. Return true if these are others than before. */
static bool meet(struct runtime *runtime, uint32_t index)
{
    struct runtime_node *at = &runtime->nodes[index];
    uint64_t life = node_life(at->node);

    if (life == at->life) return false;
    at->life = life;
    at->life_us = runtime_now_us(runtime);
    return true;
}

static void nodes_on_node_state(void *arg, uint32_t index, enum node_state state, uint32_t generation, enum fault fault,
                                const char *why)
{
    struct runtime *runtime = arg;
    bool revived = node_takes_requests(state) && meet(runtime, index);
    bool anew = node_takes_requests(state) && generation > runtime->nodes[index].connections;

    assert(index < runtime->n_nodes);
    /* The generation rises with each connection. */
    assert(generation == 0 || generation >= runtime->nodes[index].connections);
    (void)fault;
    TRACE3(node_state, runtime->nodes[index].uri.name, (int)state, why);
    runtime->node_changes++;
    if (generation != 0) runtime->nodes[index].connections = generation;
    if (anew) runtime->nodes[index].connected_us = runtime_now_us(runtime);
    runtime->logged_in |= node_takes_requests(state);
    if (node_takes_requests(state)) expel_twins(runtime, index);
    LIST_EACH (struct node_observer, observer, &runtime->observers, link) {
        observer->changed(observer, index);
        if (revived && observer->revived != NULL) observer->revived(observer, index);
        if (anew && !revived && observer->reconnected != NULL) observer->reconnected(observer, index);
    }
}

/* Take the node's clock from the reply, and tell whether it has stepped. */
static bool observe_clock(struct runtime *runtime, uint32_t index, const struct core_tag *tag,
                          const struct node_reply *reply)
{
    if (reply->node_time_us == 0) return false;
    return nodeclock_stepped(&runtime->nodes[index].clock, tag->sent_us, runtime_now_us(runtime), reply->node_time_us,
                             runtime->options.drift_ppm, (uint64_t)runtime->options.drift_fixed_ms * 1000u);
}

/* Votes from before the step may have ended early. The key of the reply with the reading was set after the step. */
static void on_clock_step(struct runtime *runtime, uint32_t index, uint64_t before_us)
{
    runtime_log(runtime, QUORLOCK_LOG_ERROR,
                "%s: its clock stepped forward; leases there end early, and earlier votes of it count no more",
                node_name(runtime->nodes[index].node));
    LIST_EACH (struct node_observer, observer, &runtime->observers, link) {
        if (observer->clock_stepped != NULL) observer->clock_stepped(observer, index, before_us);
    }
}

static void count_reply(struct runtime_node *node, const struct node_reply *reply)
{
    assert(reply->fault < FAULTS);
    assert(reply->outcome <= OUTCOME_UNSENT);
    if (reply->outcome < OUTCOME_UNKNOWN) histogram_add(&node->round_trips, reply->latency_us);
    if (reply->fault != FAULT_NONE) node->counts.errors[reply->fault]++;
}

/* The reply is passed on before the clock step that it proves. */
static void nodes_on_reply(void *arg, uint32_t index, uint32_t generation, const union node_tag *tag,
                           const struct node_reply *reply)
{
    struct runtime *runtime = arg;
    struct request request;
    bool stepped;

    memcpy(&request, tag, sizeof(request));
    /* One reply for each request that was sent, from the node that it was sent to. */
    assert(runtime->in_flight > 0);
    assert(request.tag.node == index);
    runtime->in_flight--;
    count_reply(&runtime->nodes[index], reply);
    stepped = observe_clock(runtime, index, &request.tag, reply);
    request.from->reply(request.from, &request.tag, generation, reply);
    if (stepped) on_clock_step(runtime, index, request.tag.sent_us);
    if (!runtime->closing) return;
    if (runtime->in_flight == 0) runtime_run_soon(runtime);
    node_may_end(runtime->nodes[index].node);
}

static void nodes_on_told(void *arg, uint32_t index, const struct node_key *key)
{
    struct runtime *runtime = arg;

    assert(index < runtime->n_nodes);
    LIST_EACH (struct node_observer, observer, &runtime->observers, link) {
        if (observer->told != NULL) observer->told(observer, index, key);
    }
}

static void nodes_on_room(void *arg, uint32_t index)
{
    struct runtime *runtime = arg;

    assert(index < runtime->n_nodes);
    LIST_EACH (struct node_observer, observer, &runtime->observers, link) {
        if (observer->has_room != NULL) observer->has_room(observer, index);
    }
}

/* Tell whether the node that asks is new like all others, or was emptied. */
static enum guard_set on_set(void *arg)
{
    const struct runtime *runtime = arg;
    struct guard_sets sets = {0};

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct node *node = runtime->nodes[i].node;
        uint64_t until_us = 0;
        enum guard_set one = node != NULL ? node_guard_set(node, &until_us) : GUARD_SET_UNKNOWN;

        guard_sets_add(&sets, one, until_us / 1000);
    }
    return guard_sets_judge(&sets, runtime->options.max_lease_ms);
}

static void on_log(int level, const char *text, void *arg)
{
    runtime_log(arg, level, "%s", text);
}

/* ---- logins ---- */

static struct runtime_node *node_of(struct runtime *runtime, const struct uri *uri)
{
    struct runtime_node *node = runtime->nodes;

    while (&node->uri != uri) node++;
    assert(node < runtime->nodes + runtime->n_nodes);
    return node;
}

/* Go on with the credentials of before, for there are no new ones. Return false if there are none at all. */
static bool keep_login(struct runtime *runtime, const struct uri *uri, const char *reason, char *why, size_t size)
{
    uint64_t hash = hash_text(HASH_START, reason) | 1u;

    assert(!uri->has_login);
    if (uri->user == NULL && uri->password == NULL) {
        snprintf(why, size, "no credentials yet: %s", reason);
        return false;
    }
    if (hash != runtime->no_news)
        runtime_log(runtime, QUORLOCK_LOG_WARN, "%s: no new credentials, those of before stay in use: %s", uri->name,
                    reason);
    runtime->no_news = hash;
    return true;
}

/* Rule 1.12. */
static bool take_login(struct runtime *runtime, struct uri *uri, const char *user, const char *password)
{
    /* Nothing replaces the credentials of an address. */
    assert(!uri->has_login);
    runtime->no_news = 0;
    if (uri_logs_in_with(uri, user, password)) return true;
    if (uri_log_in(uri, &runtime->alloc, user, password) != 0) return false;
    runtime_log(runtime, QUORLOCK_LOG_INFO, "%s: new credentials", uri->name);
    return true;
}

/* Ask the callback `credentials` for one login. */
static enum link_login ask_for_login(struct runtime *runtime, struct runtime_node *node, char *why, size_t size)
{
    const struct quorlock_client_options *options = &runtime->options;
    quorlock_credentials given = {.user_before = node->uri.user};
    int status = options->credentials(&given, node->uri.name, options->credentials_arg);
    bool deferred = status == 0 && given.deferred, fine = true;

    if (status == 0 && given.given) {
        fine = take_login(runtime, &node->uri, given.user, given.password);
        if (!fine) snprintf(why, size, "out of memory");
    } else if (!deferred) {
        fine = keep_login(runtime, &node->uri, given.why[0] != '\0' ? given.why : "the callback has none", why, size);
    }
    explicit_bzero(&given, sizeof(given));
    if (!fine) return LOGIN_NONE;
    return deferred ? LOGIN_LATER : LOGIN_READY;
}

static enum link_login on_login(void *arg, const struct uri *uri, char *why, size_t size)
{
    struct runtime *runtime = arg;
    struct runtime_node *node = node_of(runtime, uri);

    if (runtime->options.credentials == NULL || uri->has_login) return LOGIN_READY;
    if (!node->has_answer) return ask_for_login(runtime, node, why, size);
    node->has_answer = false;
    return LOGIN_READY;
}

/* The program has set what to log in with at the node. */
static void go_on_with_login(struct runtime *runtime, struct runtime_node *node)
{
    node->has_answer = runtime->options.credentials != NULL;
    LIST_WALK (struct redis_link, link, &runtime->logins, login) {
        if (link->config.uri != &node->uri) continue;
        node->has_answer = false;
        link_log_in(link);
    }
    node_log_in_again(node->node);
}

int nodes_log_in(struct runtime *runtime, const char *name, const char *user, const char *password)
{
    bool used = false;

    if (runtime->options.credentials != NULL && name == NULL)
        return runtime_fail(runtime, QUORLOCK_ERR_STATE,
                            "the callback credentials of this client says what it logs in with");
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct runtime_node *node = &runtime->nodes[i];

        if (node->uri.has_login || (name != NULL && strcmp(name, node->uri.name) != 0)) continue;
        used = true;
        if (!take_login(runtime, &node->uri, user, password)) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
        go_on_with_login(runtime, node);
    }
    if (used) return 0;
    if (name != NULL)
        return runtime_fail(runtime, QUORLOCK_ERR_INVAL,
                            "there is no node %s whose address has neither user nor password", name);
    return runtime_fail(runtime, QUORLOCK_ERR_INVAL,
                        "each node has a user or password in its address, which no other replaces: make a client whose "
                        "addresses have none");
}

/* ---- what the layers above call ---- */

void nodes_observe(struct runtime *runtime, struct node_observer *observer)
{
    assert(observer->changed != NULL);
    assert(!list_has(&observer->link));
    list_add(&runtime->observers, &observer->link);
}

int nodes_send(struct runtime *runtime, struct node_request *node_request, struct requester *from,
               const struct core_tag *tag)
{
    struct request request = {.from = from, .tag = *tag};
    int result;

    assert(tag->node < runtime->n_nodes);
    assert(from != NULL && from->reply != NULL);
    memcpy(&node_request->tag, &request, sizeof(request));
    result = node_send(runtime->nodes[tag->node].node, node_request);
    if (result != NODE_SENT) return result;
    runtime->in_flight++;
    runtime->nodes[tag->node].requests++;
    return result;
}

int nodes_parse(struct runtime *runtime, const char *const *uris, struct quorlock_error *error)
{
    struct runtime_node *nodes = runtime->nodes;

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        char wrong[sizeof(error->text)];
        int status;

        if (uris[i] == NULL) return caller_fail(error, QUORLOCK_ERR_INVAL, "nodes[%u] is NULL", i);
        status = uri_parse(&nodes[i].uri, &runtime->alloc, uris[i], wrong, sizeof(wrong));
        /* Named by its place in the list, for the address may contain a password. */
        if (status != 0) return caller_fail(error, status, "node %u: %.480s", i + 1, wrong);
        status = uri_log_in(&nodes[i].uri, &runtime->alloc, runtime->options.user, runtime->options.password);
        if (status != 0) return status;
        for (uint32_t k = 0; k < i; k++) {
            if (!uri_same(&nodes[i].uri, &nodes[k].uri)) continue;
            return caller_fail(error, QUORLOCK_ERR_INVAL,
                               "nodes %u and %u are the same server, %s, given twice: one server has one vote. "
                               "Give each address once",
                               k + 1, i + 1, nodes[i].uri.name);
        }
    }
    return 0;
}

int nodes_open_tls(struct runtime *runtime, struct quorlock_error *error)
{
    const struct quorlock_client_options *options = &runtime->options;
    const struct tls_config config = {options->tls_ca, options->tls_cert, options->tls_key, options->tls_name, on_log,
                                      runtime};
    const struct uri *uri = NULL;
    char why[TLS_TEXT_SIZE];
    int status;

    assert(runtime->tls == NULL);
    for (uint32_t i = 0; i < runtime->n_nodes && uri == NULL; i++)
        if (runtime->nodes[i].uri.tls) uri = &runtime->nodes[i].uri;
    if (uri == NULL && (config.ca != NULL || config.cert != NULL || config.name != NULL)) {
        return caller_fail(
            error, QUORLOCK_ERR_INVAL,
            "there are options for TLS, and no address asks for it: write rediss:// instead of redis://, "
            "or leave out --tls-... (tls_...)");
    }
    if (uri == NULL) return 0;
    status = tls_new(&runtime->tls, &runtime->system, &config, why, sizeof(why));
    return status == 0 ? 0 : caller_fail(error, status, "%.64s: %s", uri->name, why);
}

void nodes_close_tls(struct runtime *runtime)
{
    tls_free(runtime->tls);
}

struct named_address {
    char text[300];
    uint8_t index;
};

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct named_address *)a)->text, ((const struct named_address *)b)->text);
}

void nodes_name_set(struct runtime *runtime)
{
    struct named_address sorted[QUORLOCK_NODES_MAX] = {0};
    uint64_t hash = HASH_START;

    assert(runtime->n_nodes > 0 && runtime->n_nodes <= QUORLOCK_NODES_MAX);
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        const struct uri *uri = &runtime->nodes[i].uri;

        snprintf(sorted[i].text, sizeof(sorted[i].text), "%s:%u", uri->host, (unsigned)uri->port);
        sorted[i].index = runtime->order[i] = (uint8_t)i;
    }
    if (runtime->options.set_name != NULL) {
        snprintf(runtime->set, sizeof(runtime->set), "%s", runtime->options.set_name);
        return;
    }
    qsort(sorted, runtime->n_nodes, sizeof(sorted[0]), by_address);
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        assert(sorted[i].index < runtime->n_nodes);
        runtime->order[i] = sorted[i].index;
        hash = hash_bytes(hash, sorted[i].text, strlen(sorted[i].text));
        hash = hash_bytes(hash, "\n", 1);
    }
    snprintf(runtime->set, sizeof(runtime->set), "%016llx", (unsigned long long)hash);
}

struct link_config nodes_link(struct runtime *runtime, uint32_t node)
{
    assert(node < runtime->n_nodes);
    return (struct link_config){.uri = &runtime->nodes[node].uri,
                                .tls = runtime->tls,
                                .timeout_ms = runtime_timeout_ms(runtime),
                                .connect_ms = runtime->options.connect_timeout_ms,
                                .reconnect_min_ms = runtime->options.reconnect_min_ms,
                                .reconnect_max_ms = runtime->options.reconnect_max_ms,
                                .now_us = runtime_clock,
                                .batch = runtime_batch,
                                .log = on_log,
                                .login = on_login,
                                .logins = &runtime->logins,
                                .arg = runtime,
                                .counts = &runtime->nodes[node].counts};
}

int nodes_start(struct runtime *runtime)
{
    const struct quorlock_client_options *options = &runtime->options;
    struct node_events events = {.state = nodes_on_node_state,
                                 .reply = nodes_on_reply,
                                 .set = on_set,
                                 .told = nodes_on_told,
                                 .room = nodes_on_room,
                                 .arg = runtime};
    uint32_t stall_ms = STALL_FACTOR * runtime_timeout_ms(runtime);

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct node_config config = {.index = i,
                                     .link = nodes_link(runtime, i),
                                     .stall_ms = stall_ms > STALL_MS_MIN ? stall_ms : STALL_MS_MIN,
                                     .dialect = (uint32_t)options->dialect,
                                     .guard = (uint32_t)options->guard,
                                     .n_nodes = runtime->n_nodes,
                                     .set = runtime->set,
                                     .set_named = options->set_name != NULL,
                                     .max_lease_ms = options->max_lease_ms,
                                     .allow_eviction = options->allow_eviction != 0};

        assert(runtime->nodes[i].node == NULL);
        config.link.client_name = options->guard == QUORLOCK_GUARD_OFF ? NODE_CLIENT_UNGUARDED : NODE_CLIENT_NAME;
        runtime->nodes[i].node = node_new(&runtime->system, &runtime->alloc, &config, &events);
        if (runtime->nodes[i].node == NULL) return -1;
    }
    return 0;
}

void nodes_may_end(struct runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->n_nodes; i++) node_may_end(runtime->nodes[i].node);
}

void nodes_stop(struct runtime *runtime)
{
    for (uint32_t i = 0; i < runtime->n_nodes && runtime->nodes != NULL; i++) {
        node_free(runtime->nodes[i].node);
        uri_clear(&runtime->nodes[i].uri, &runtime->alloc);
    }
}

/* ---- statistics ---- */

/* Not 0 as long as the node's votes are ignored. */
static uint64_t quarantine_ms(const struct node *node, uint64_t now_us)
{
    uint64_t until_us = node_quarantined_until_us(node);

    return until_us == 0 ? 0 : 1 + (until_us > now_us ? until_us - now_us : 0) / 1000;
}

struct quorlock_node_statistics nodes_statistics(struct runtime *runtime, uint32_t index)
{
    const struct runtime_node *at = &runtime->nodes[index];
    const struct node *node = at->node;
    enum node_state state = node_state_now(node);

    assert(index < runtime->n_nodes);
    return (struct quorlock_node_statistics){.node = node_name(node),
                                             .state = (int)state,
                                             .why = state == NODE_READY ? NULL : node_why(node),
                                             .quarantine_ms = quarantine_ms(node, runtime_now_us(runtime)),
                                             .round_trip_us = node_srtt_us(node),
                                             .in_flight = (uint32_t)node_in_flight(node),
                                             .requests = at->requests,
                                             .reconnects = at->connections > 0 ? at->connections - 1 : 0,
                                             .bytes_in = at->counts.bytes_in,
                                             .bytes_out = at->counts.bytes_out,
                                             .errors = at->counts.errors,
                                             .n_errors = FAULTS};
}
