/* SPDX-License-Identifier: BSD-3-Clause */
#include "node_fixture.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t clock_us(void *arg)
{
    struct timespec now;

    (void)arg;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void block_ms(unsigned ms)
{
    uint64_t end_us = clock_us(NULL) + (uint64_t)ms * 1000;

    while (clock_us(NULL) < end_us) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static const char *state_name(enum node_state state)
{
    static const char *const names[] = {"connecting", "ready", "quarantined", "down"};

    return names[state];
}

static const char *fault_name(enum fault fault)
{
    static const char *const names[] = {"none",    "unreachable", "timeout", "temporary", "replica",
                                        "cluster", "auth",        "refused", "foreign",   "proto",
                                        "other",   "limit",       "config",  "guard",     "login"};

    return names[fault];
}

static const char *outcome_name(enum outcome outcome)
{
    static const char *const names[] = {"yes", "other", "missing", "error", "unknown"};

    return names[outcome];
}

void node_fixture_trace(struct node_fixture *f, const char *line)
{
    size_t room = sizeof(f->trace) - f->trace_length;

    if (f->freed) f->after_free++;
    assert_true(strlen(line) + 2 < room);
    f->trace_length += (size_t)snprintf(f->trace + f->trace_length, room, "%s\n", line);
    if (f->free_at != NULL && strcmp(line, f->free_at) == 0) {
        f->freed = true;
        node_free(f->node);
        f->node = NULL;
    } else if (f->on_line != NULL) {
        f->on_line(f, line);
    }
}

static void on_node_state(void *arg, uint32_t index, enum node_state state, uint32_t generation, enum fault fault,
                          const char *why)
{
    struct node_fixture *f = arg;
    char line[64];

    assert_int_equal(index, 3);
    assert_int_equal(generation, node_generation(f->node));
    assert_int_equal(state, node_state_now(f->node));
    assert_int_equal(fault, node_fault_now(f->node));
    /* A quarantine counts down. */
    if (state != NODE_QUARANTINED) assert_string_equal(why, node_why(f->node));
    snprintf(f->why, sizeof(f->why), "%s", why);
    if (state == NODE_READY)
        snprintf(line, sizeof(line), "ready %u", (unsigned)generation);
    else if (state == NODE_QUARANTINED)
        snprintf(line, sizeof(line), "quarantined %u", (unsigned)generation);
    else
        snprintf(line, sizeof(line), "%s %s", state_name(state), fault_name(fault));
    node_fixture_trace(f, line);
    /* A callback that freed the node may still look at what it was handed. */
    assert_true(strlen(why) < sizeof(f->why));
}

static void on_reply(void *arg, uint32_t index, uint32_t generation, const union node_tag *tag,
                     const struct node_reply *reply)
{
    struct node_fixture *f = arg;
    char line[64];

    assert_int_equal(index, 3);
    assert_true(generation > 0);
    f->n_replies++;
    snprintf(f->error, sizeof(f->error), "%s", reply->error != NULL ? reply->error : "");
    snprintf(f->type, sizeof(f->type), "%.*s", (int)reply->type_length, reply->type != NULL ? reply->type : "");
    f->latency_us = reply->latency_us;
    f->watched = reply->watched;
    if (reply->fault != 0)
        snprintf(line, sizeof(line), "%u %s %s", (unsigned)tag->align_number, outcome_name(reply->outcome),
                 fault_name(reply->fault));
    else
        snprintf(line, sizeof(line), "%u %s", (unsigned)tag->align_number, outcome_name(reply->outcome));
    node_fixture_trace(f, line);
    if (reply->holder != NULL) snprintf(f->holder, sizeof(f->holder), "%.*s", (int)reply->holder_length, reply->holder);
}

void node_fixture_log(int level, const char *text, void *arg)
{
    struct node_fixture *f = arg;
    size_t used = strlen(f->logged);

    if (strstr(text, "down: ") != NULL) f->down_level = level;
    if (f->freed) f->after_free++;
    snprintf(f->logged + used, sizeof(f->logged) - used, "%s\n", text);
}

static void close_all(struct node_fixture *f)
{
    char failure[512] = "";

    if (f->base == NULL) return;
    node_free(f->node);
    subscriber_free(f->subscriber);
    f->freed = true;
    if (f->server != NULL && fake_failure(f->server) != NULL)
        snprintf(failure, sizeof(failure), "%s", fake_failure(f->server));
    /* Before the loop turns again: the texts of its scripts may have been the test's, which has returned. */
    if (f->server != NULL) fake_free(f->server);
    uri_clear(&f->uri, &f->alloc);
    event_base_free(f->base);
    f->base = NULL;
    if (failure[0] != '\0') fail_msg("%s", failure);
    assert_int_equal(f->counted.out, 0);
    assert_int_equal(f->after_free, 0);
}

int node_fixture_setup(void **state)
{
    static struct node_fixture f;

    f.base = NULL;
    *state = &f;
    return 0;
}

int node_fixture_teardown(void **state)
{
    close_all(*state);
    return 0;
}

void node_fixture_open(struct node_fixture *f)
{
    struct event_config *config = event_config_new();
    const struct alloc_hooks hooks = counted_hooks(&f->counted);

    close_all(f);
    memset(f, 0, sizeof(*f));
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    f->base = event_base_new_with_config(config);
    event_config_free(config);
    f->server = fake_new(f->base);
    f->counted.until_failure = -1;
    alloc_init(&f->alloc, &hooks);
    f->system = system_libevent(f->base, &f->alloc);
    f->config = (struct node_config){.index = 3,
                                     .link = {.client_name = "me",
                                              .timeout_ms = 10000,
                                              .connect_ms = 10000,
                                              .reconnect_min_ms = 2,
                                              .reconnect_max_ms = 20,
                                              .now_us = clock_us,
                                              .log = node_fixture_log,
                                              .arg = f},
                                     .stall_ms = 60000};
}

void node_fixture_uri(struct node_fixture *f, const char *front, const char *back)
{
    char text[256], error[256];

    snprintf(text, sizeof(text), "%s:%u%s", front, (unsigned)fake_port(f->server), back);
    if (uri_parse(&f->uri, &f->alloc, text, error, sizeof(error)) != 0) fail_msg("%s", error);
    f->config.link.uri = &f->uri;
}

static void on_told(void *arg, uint32_t index, const struct node_key *key)
{
    const struct node_fixture *f = arg;
    char line[64];

    assert_int_equal(index, f->config.index);
    snprintf(line, sizeof(line), "told %.*s", (int)key->length, key->text);
    node_fixture_trace(arg, line);
}

struct node *node_fixture_new_node(struct node_fixture *f)
{
    const struct node_events events = {.state = on_node_state, .reply = on_reply, .told = on_told, .arg = f};

    if (f->uri.host == NULL) node_fixture_uri(f, "127.0.0.1", "");
    f->node = node_new(&f->system, &f->alloc, &f->config, &events);
    return f->node;
}

void node_fixture_start(struct node_fixture *f, const struct fake_step *script)
{
    node_fixture_open(f);
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
    assert_int_equal(f->trace_length, 0);
    assert_int_equal(node_state_now(f->node), NODE_CONNECTING);
}

void node_fixture_ready(struct node_fixture *f, const struct fake_step *script)
{
    node_fixture_start(f, script);
    run_until(f, "ready");
}

static bool trace_holds(struct node_fixture *f, const char *line)
{
    return strstr(f->trace, line) != NULL;
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(bool *)arg = true;
}

void run_until(struct node_fixture *f, const char *line)
{
    bool late = false;
    const struct timeval limit = {LIMIT_S, 0};
    struct event *timer = event_new(f->base, -1, 0, on_limit, &late);

    event_add(timer, &limit);
    while (!late && !trace_holds(f, line)) event_base_loop(f->base, EVLOOP_ONCE);
    event_free(timer);
    /* The log first: cmocka cuts long texts. */
    if (late) fail_msg("\"%s\" did not come; log:\n%strace:\n%s", line, f->logged, f->trace);
}

void run_on(struct node_fixture *f, unsigned ms)
{
    bool late = false;
    const struct timeval limit = {0, (suseconds_t)ms * 1000};
    struct event *timer = event_new(f->base, -1, 0, on_limit, &late);

    event_add(timer, &limit);
    while (!late) event_base_loop(f->base, EVLOOP_ONCE);
    event_free(timer);
}

int ask(struct node_fixture *f, unsigned tag, enum op op, uint32_t timeout_ms)
{
    struct node_request request = {
        .op = op, NODE_KEY("key", 3), .owner = "owner", .owner_length = 5, .lease_ms = 30000, .timeout_ms = timeout_ms};

    request.tag.align_number = tag;
    return node_send(f->node, &request);
}

void ask_sent(struct node_fixture *f, unsigned tag, enum op op, uint32_t timeout_ms)
{
    unsigned before = f->n_replies;

    assert_int_equal(ask(f, tag, op, timeout_ms), NODE_SENT);
    assert_int_equal(f->n_replies, before); /* never from inside the call */
}

void assert_trace(struct node_fixture *f, const char *wanted)
{
    if (strcmp(f->trace, wanted) != 0) fail_msg("trace:\n%swanted:\n%slog:\n%s", f->trace, wanted, f->logged);
}
