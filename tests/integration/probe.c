/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

#define PROBE_LIMIT_US 30000000u
#define PROBES_MAX     4

static struct probe probes[PROBES_MAX];

static uint64_t now_us(void *arg)
{
    return clock_us();
}

static void on_node_state(void *arg, uint32_t index, enum node_state state, uint32_t generation, enum fault fault,
                          const char *why)
{
    struct probe *probe = arg;

    probe->state = state;
    probe->fault = fault;
    probe->generation = generation;
    probe->levels++;
    snprintf(probe->why, sizeof(probe->why), "%s", why);
}

static void on_reply(void *arg, uint32_t index, uint32_t generation, const union node_tag *tag,
                     const struct node_reply *reply)
{
    struct answer *answer = tag->about;

    answer->came = true;
    answer->reply = *reply;
    snprintf(answer->holder, sizeof(answer->holder), "%.*s", (int)reply->holder_length,
             reply->holder != NULL ? reply->holder : "");
    snprintf(answer->others, sizeof(answer->others), "%.*s", (int)reply->others_length,
             reply->others != NULL ? reply->others : "");
    snprintf(answer->error, sizeof(answer->error), "%s", reply->error != NULL ? reply->error : "");
}

static void on_log(int level, const char *text, void *arg)
{
    struct probe *probe = arg;
    size_t used = strlen(probe->logged);

    snprintf(probe->logged + used, sizeof(probe->logged) - used, "%d %s\n", level, text);
}

static void close_probes(void)
{
    for (size_t i = 0; i < PROBES_MAX; i++) {
        if (probes[i].is_open) probe_close(&probes[i]);
    }
}

struct probe *probe_open(const char *address)
{
    struct probe *probe = probes;
    char error[TEXT_SIZE];

    while (probe->is_open) assert_true(++probe < probes + PROBES_MAX);
    memset(probe, 0, sizeof(*probe));
    alloc_init(&probe->alloc, NULL);
    probe->system = host_loop_system(&probe->alloc);
    if (uri_parse(&probe->uri, &probe->alloc, address, error, sizeof(error)) != 0) fail_msg("%s", error);
    probe->config = (struct node_config){.link = {.uri = &probe->uri,
                                                  .client_name = "probe",
                                                  .timeout_ms = 20000,
                                                  .connect_ms = 20000,
                                                  .reconnect_min_ms = 5,
                                                  .reconnect_max_ms = 50,
                                                  .now_us = now_us,
                                                  .log = on_log,
                                                  .arg = probe},
                                         .stall_ms = 20000,
                                         .guard = QUORLOCK_GUARD_CONNECTION,
                                         .n_nodes = 3,
                                         .set = "s"};
    probe->is_open = true;
    fixture.at_end = close_probes;
    return probe;
}

void probe_connect(struct probe *probe)
{
    const struct node_events events = {.state = on_node_state, .reply = on_reply, .arg = probe};

    probe->node = node_new(&probe->system, &probe->alloc, &probe->config, &events);
    assert_non_null(probe->node);
}

void probe_close(struct probe *probe)
{
    node_free(probe->node);
    probe->is_open = false;
    uri_clear(&probe->uri, &probe->alloc);
}

static void turn(struct probe *probe, uint64_t since_us, const char *what)
{
    if (clock_us() - since_us > PROBE_LIMIT_US)
        fail_msg("%s did not come; state %d fault %d: %s\n%s", what, (int)probe->state, (int)probe->fault, probe->why,
                 probe->logged);
    fixture_turn(since_us + PROBE_LIMIT_US + 1);
}

void probe_await_after(struct probe *probe, enum node_state state, unsigned levels)
{
    uint64_t since_us = clock_us();

    while (probe->levels <= levels || probe->state != state) turn(probe, since_us, "the state");
}

void probe_await(struct probe *probe, enum node_state state)
{
    probe_await_after(probe, state, 0);
}

void probe_ask_all(struct probe *probe, const struct node_request *requests, struct answer *answers, size_t n)
{
    uint64_t since_us = clock_us();

    for (size_t i = 0; i < n; i++) {
        struct node_request ours = requests[i];

        answers[i].came = false;
        ours.tag.about = &answers[i];
        assert_int_equal(node_send(probe->node, &ours), NODE_SENT);
    }
    for (size_t i = 0; i < n; i++) {
        while (!answers[i].came) turn(probe, since_us, "the reply");
    }
}

struct answer probe_ask(struct probe *probe, const struct node_request *request)
{
    struct answer answer;

    probe_ask_all(probe, request, &answer, 1);
    return answer;
}

struct answer probe_do(struct probe *probe, enum op op, const char *owner)
{
    struct node_request request = {
        .op = op, NODE_KEY("key", 3), .owner = owner, .owner_length = strlen(owner), .lease_ms = 30000};

    return probe_ask(probe, &request);
}

struct answer probe_fenced(struct probe *probe, enum op op, const char *owner, uint64_t fence)
{
    struct node_request request = {.op = op,
                                   NODE_KEY("key", 3),
                                   .owner = owner,
                                   .owner_length = strlen(owner),
                                   .lease_ms = 30000,
                                   .fenced = true,
                                   .fence = fence};

    return probe_ask(probe, &request);
}

struct probe *probe_ready(const char *address, uint32_t guard)
{
    struct probe *probe = probe_open(address);

    probe->config.guard = guard;
    probe_connect(probe);
    probe_await(probe, NODE_READY);
    return probe;
}
