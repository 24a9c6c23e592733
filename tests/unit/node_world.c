/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <cmocka.h>

#include "node_world.h"

static void *counted_allocate(void *arg, size_t size)
{
    struct counted *counted = arg;
    if (counted->until_failure-- == 0) return NULL;
    counted->out++;
    return malloc(size);
}

static void *counted_reallocate(void *arg, void *block, size_t size)
{
    struct counted *counted = arg;
    if (counted->until_failure-- == 0) return NULL;
    if (!block) counted->out++;
    return realloc(block, size);
}

static void counted_release(void *arg, void *block)
{
    struct counted *counted = arg;
    counted->out--;
    free(block);
}

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
    while (clock_us(NULL) < end_us) continue;
}

static const char *level_name(enum node_state state)
{
    static const char *const names[] = {"connecting", "ready", "quarantined", "down"};
    return names[state];
}

static const char *fault_name(enum node_fault fault)
{
    static const char *const names[] = {"none",    "unreachable", "timeout", "temporary", "replica",
                                        "cluster", "auth",        "refused", "foreign",   "proto",
                                        "other",   "limit",       "config",  "guard"};
    return names[fault];
}

static const char *outcome_name(enum node_outcome outcome)
{
    static const char *const names[] = {"yes", "other", "missing", "noscript", "error", "unknown"};
    return names[outcome];
}

void world_tell(struct world *world, const char *line)
{
    if (world->freed) world->after_free++;
    size_t room = sizeof world->story - world->told;
    assert_true(strlen(line) + 2 < room);
    world->told += (size_t)snprintf(world->story + world->told, room, "%s\n", line);
    if (world->free_at && strcmp(line, world->free_at) == 0) {
        world->freed = true;
        node_free(world->node);
        world->node = NULL;
    } else if (world->on_line) {
        world->on_line(world, line);
    }
}

static void on_node_state(void *arg, uint32_t index, enum node_state state, uint32_t generation,
                          enum node_fault fault, const char *why)
{
    struct world *world = arg;
    char line[64];
    assert_int_equal(index, 3);
    assert_int_equal(generation, node_generation(world->node));
    assert_int_equal(state, node_state_now(world->node));
    assert_int_equal(fault, node_fault_now(world->node));
    /* A quarantine counts down. */
    if (state != NODE_QUARANTINED) assert_string_equal(why, node_why(world->node));
    snprintf(world->why, sizeof world->why, "%s", why);
    if (state == NODE_READY)
        snprintf(line, sizeof line, "ready %u", (unsigned)generation);
    else if (state == NODE_QUARANTINED)
        snprintf(line, sizeof line, "quarantined %u", (unsigned)generation);
    else
        snprintf(line, sizeof line, "%s %s", level_name(state), fault_name(fault));
    world_tell(world, line);
    /* A callback that freed the node may still look at what it was handed. */
    assert_true(strlen(why) < sizeof world->why);
}

static void on_reply(void *arg, uint32_t index, uint32_t generation, const union node_tag *tag,
                     const struct node_reply *reply)
{
    struct world *world = arg;
    char line[64];
    assert_int_equal(index, 3);
    assert_true(generation > 0);
    world->n_replies++;
    snprintf(world->error, sizeof world->error, "%s", reply->error ? reply->error : "");
    snprintf(world->type, sizeof world->type, "%.*s", (int)reply->type_length, reply->type ? reply->type : "");
    world->latency_us = reply->latency_us;
    if (reply->fault)
        snprintf(line, sizeof line, "%u %s %s", (unsigned)tag->align_number, outcome_name(reply->outcome),
                 fault_name(reply->fault));
    else
        snprintf(line, sizeof line, "%u %s", (unsigned)tag->align_number, outcome_name(reply->outcome));
    world_tell(world, line);
    if (reply->holder)
        snprintf(world->holder, sizeof world->holder, "%.*s", (int)reply->holder_length, reply->holder);
}

void world_log(void *arg, int level, const char *text)
{
    struct world *world = arg;
    (void)level;
    if (world->freed) world->after_free++;
    size_t used = strlen(world->logged);
    snprintf(world->logged + used, sizeof world->logged - used, "%s\n", text);
}

void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    world->base = event_base_new_with_config(config);
    event_config_free(config);
    world->server = fake_new(world->base);
    world->counted.until_failure = -1;
    const struct quorlock_allocator hooks = {sizeof(hooks), counted_allocate, counted_reallocate,
                                             counted_release, &world->counted};
    alloc_init(&world->alloc, &hooks);
    world->config = (struct node_config){.index = 3,
                                         .client_name = "me",
                                         .timeout_ms = 10000,
                                         .stall_ms = 15000,
                                         .reconnect_min_ms = 2,
                                         .reconnect_max_ms = 20,
                                         .now_us = clock_us};
}

void world_uri(struct world *world, const char *front, const char *back)
{
    char text[256], error[256];
    snprintf(text, sizeof text, "%s:%u%s", front, (unsigned)fake_port(world->server), back);
    if (uri_parse(&world->uri, &world->alloc, text, error, sizeof error)) fail_msg("%s", error);
    world->config.uri = &world->uri;
}

struct node *world_node(struct world *world)
{
    const struct node_events events = {
        .state = on_node_state, .reply = on_reply, .log = world_log, .arg = world};
    if (!world->uri.host) world_uri(world, "127.0.0.1", "");
    world->node = node_new(world->base, &world->alloc, &world->config, &events);
    return world->node;
}

void world_start(struct world *world, const struct fake_step *script)
{
    world_open(world);
    fake_play(world->server, script);
    assert_non_null(world_node(world));
    assert_int_equal(world->told, 0);
    assert_int_equal(node_state_now(world->node), NODE_CONNECTING);
}

void world_close(struct world *world)
{
    node_free(world->node);
    /* What evdns still owes comes now. */
    event_base_loop(world->base, EVLOOP_NONBLOCK);
    if (fake_failure(world->server)) fail_msg("%s", fake_failure(world->server));
    fake_free(world->server);
    uri_clear(&world->uri, &world->alloc);
    event_base_free(world->base);
    assert_int_equal(world->counted.out, 0);
    assert_int_equal(world->after_free, 0);
}

static bool until_story(struct world *world, const char *line)
{
    return strstr(world->story, line) != NULL;
}

static void on_limit(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    *(bool *)arg = true;
}

void run_until(struct world *world, const char *line)
{
    bool late = false;
    const struct timeval limit = {LIMIT_S, 0};
    struct event *timer = event_new(world->base, -1, 0, on_limit, &late);
    event_add(timer, &limit);
    while (!late && !until_story(world, line)) event_base_loop(world->base, EVLOOP_ONCE);
    event_free(timer);
    if (late) fail_msg("\"%s\" did not come; story:\n%slog:\n%s", line, world->story, world->logged);
}

void run_on(struct world *world, unsigned ms)
{
    bool late = false;
    const struct timeval limit = {0, (suseconds_t)ms * 1000};
    struct event *timer = event_new(world->base, -1, 0, on_limit, &late);
    event_add(timer, &limit);
    while (!late) event_base_loop(world->base, EVLOOP_ONCE);
    event_free(timer);
}

int ask(struct world *world, unsigned tag, enum node_op op, uint32_t timeout_ms)
{
    struct node_request request = {.op = op,
                                   NODE_KEY("key", 3),
                                   .owner = "owner",
                                   .owner_length = 5,
                                   .lease_ms = 30000,
                                   .timeout_ms = timeout_ms};
    request.tag.align_number = tag;
    return node_send(world->node, &request);
}

void ask_sent(struct world *world, unsigned tag, enum node_op op, uint32_t timeout_ms)
{
    unsigned told = world->n_replies;
    assert_int_equal(ask(world, tag, op, timeout_ms), NODE_SENT);
    assert_int_equal(world->n_replies, told); /* never from inside the call */
}

void assert_story(struct world *world, const char *wanted)
{
    if (strcmp(world->story, wanted) != 0)
        fail_msg("story:\n%swanted:\n%slog:\n%s", world->story, wanted, world->logged);
}

void assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" without \"%s\"", text, part);
}
