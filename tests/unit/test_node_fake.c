/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_fake.c - the transport against a server that plays scripts
 *
 * What a node tells is written down line by line; each test says what the story must be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/event.h>

#include <cmocka.h>

#include "fake_server.h"
#include "redis/node.h"
#include "redis/ring.h"
#include "redis/uri.h"

#define LIMIT_S 20

/* Only the transport sends by send(): one call is one write. */
static unsigned n_writes;

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    n_writes++;
    return sendto(fd, data, length, flags, NULL, 0);
}

/* Fails the allocation whose turn it is, and counts what is out. */
struct counted {
    long until_failure, out;
};

struct world {
    struct event_base *base;
    struct fake_server *server;
    struct counted counted;
    struct alloc alloc;
    struct uri uri;
    struct node_config config;
    struct node *node;
    char story[65536];
    size_t told;
    char why[512], error[512]; /* of the latest level and reply */
    char logged[8192];
    char holder[64];
    uint32_t latency_us;
    unsigned n_replies;
    const char *free_at; /* the line at which a callback frees the node */
    void (*on_line)(struct world *, const char *line);
    bool freed;
    unsigned after_free;
};

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

static uint64_t clock_us(void *arg)
{
    struct timespec now;
    (void)arg;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void block_ms(unsigned ms)
{
    uint64_t end_us = clock_us(NULL) + (uint64_t)ms * 1000;
    while (clock_us(NULL) < end_us) continue;
}

static const char *level_name(enum node_level level)
{
    static const char *const names[] = {"connecting", "ready", "down"};
    return names[level];
}

static const char *fault_name(enum node_fault fault)
{
    static const char *const names[] = {"none", "unreachable", "timeout", "temporary", "replica", "cluster",
                                        "auth", "refused",     "foreign", "proto",     "other",   "limit"};
    return names[fault];
}

static const char *outcome_name(enum node_outcome outcome)
{
    static const char *const names[] = {"yes", "other", "missing", "noscript", "error", "unknown"};
    return names[outcome];
}

static void tell(struct world *world, const char *line)
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

static void on_level(void *arg, uint32_t index, enum node_level level, uint32_t generation,
                     enum node_fault fault, const char *why)
{
    struct world *world = arg;
    char line[64];
    assert_int_equal(index, 3);
    assert_int_equal(generation, node_generation(world->node));
    assert_int_equal(level, node_level_now(world->node));
    assert_int_equal(fault, node_fault_now(world->node));
    assert_string_equal(why, node_why(world->node));
    snprintf(world->why, sizeof world->why, "%s", why);
    if (level == NODE_READY)
        snprintf(line, sizeof line, "ready %u", (unsigned)generation);
    else
        snprintf(line, sizeof line, "%s %s", level_name(level), fault_name(fault));
    tell(world, line);
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
    world->latency_us = reply->latency_us;
    if (reply->fault)
        snprintf(line, sizeof line, "%u %s %s", (unsigned)tag->align_number, outcome_name(reply->outcome),
                 fault_name(reply->fault));
    else
        snprintf(line, sizeof line, "%u %s", (unsigned)tag->align_number, outcome_name(reply->outcome));
    tell(world, line);
    if (reply->holder)
        snprintf(world->holder, sizeof world->holder, "%.*s", (int)reply->holder_length, reply->holder);
}

static void on_log(void *arg, int level, const char *text)
{
    struct world *world = arg;
    (void)level;
    if (world->freed) world->after_free++;
    size_t used = strlen(world->logged);
    snprintf(world->logged + used, sizeof world->logged - used, "%s\n", text);
}

static void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    struct event_config *config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    world->base = event_base_new_with_config(config);
    event_config_free(config);
    world->server = fake_new(world->base);
    world->counted.until_failure = -1;
    const struct quorlock_allocator hooks = {counted_allocate, counted_reallocate, counted_release,
                                             &world->counted};
    alloc_init(&world->alloc, &hooks);
    world->config = (struct node_config){.index = 3,
                                         .client_name = "me",
                                         .timeout_ms = 10000,
                                         .stall_ms = 15000,
                                         .reconnect_min_ms = 2,
                                         .reconnect_max_ms = 20,
                                         .now_us = clock_us};
}

static void world_uri(struct world *world, const char *front, const char *back)
{
    char text[256], error[256];
    snprintf(text, sizeof text, "%s:%u%s", front, (unsigned)fake_port(world->server), back);
    if (uri_parse(&world->uri, &world->alloc, text, error, sizeof error)) fail_msg("%s", error);
    world->config.uri = &world->uri;
}

static struct node *world_node(struct world *world)
{
    const struct node_events events = {on_level, on_reply, on_log, world};
    if (!world->uri.host) world_uri(world, "127.0.0.1", "");
    world->node = node_new(world->base, &world->alloc, &world->config, &events);
    return world->node;
}

static void world_start(struct world *world, const struct fake_step *script)
{
    world_open(world);
    fake_play(world->server, script);
    assert_non_null(world_node(world));
    assert_int_equal(world->told, 0);
    assert_int_equal(node_level_now(world->node), NODE_CONNECTING);
}

static void world_close(struct world *world)
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

/* Runs the loop until the story holds that line. */
static void run_until(struct world *world, const char *line)
{
    bool late = false;
    const struct timeval limit = {LIMIT_S, 0};
    struct event *timer = event_new(world->base, -1, 0, on_limit, &late);
    event_add(timer, &limit);
    while (!late && !until_story(world, line)) event_base_loop(world->base, EVLOOP_ONCE);
    event_free(timer);
    if (late) fail_msg("\"%s\" did not come; story:\n%slog:\n%s", line, world->story, world->logged);
}

/* Runs the loop for some time: only where nothing more may come. */
static void run_on(struct world *world, unsigned ms)
{
    bool late = false;
    const struct timeval limit = {0, (suseconds_t)ms * 1000};
    struct event *timer = event_new(world->base, -1, 0, on_limit, &late);
    event_add(timer, &limit);
    while (!late) event_base_loop(world->base, EVLOOP_ONCE);
    event_free(timer);
}

static int ask(struct world *world, unsigned tag, enum node_op op, uint32_t timeout_ms)
{
    struct node_request request = {.op = op,
                                   .key = "key",
                                   .key_length = 3,
                                   .owner = "owner",
                                   .owner_length = 5,
                                   .lease_ms = 30000,
                                   .timeout_ms = timeout_ms};
    request.tag.align_number = tag;
    return node_send(world->node, &request);
}

static void ask_sent(struct world *world, unsigned tag, enum node_op op, uint32_t timeout_ms)
{
    unsigned told = world->n_replies;
    assert_int_equal(ask(world, tag, op, timeout_ms), NODE_SENT);
    assert_int_equal(world->n_replies, told); /* never from inside the call */
}

static void assert_story(struct world *world, const char *wanted)
{
    if (strcmp(world->story, wanted) != 0)
        fail_msg("story:\n%swanted:\n%slog:\n%s", world->story, wanted, world->logged);
}

static void assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" without \"%s\"", text, part);
}

#define STEP(verb, text)                                                                                       \
    {                                                                                                          \
        verb, 0, text, NULL                                                                                    \
    }
#define SHAKE                                                                                                  \
    {                                                                                                          \
        FAKE_HANDSHAKE, 0, NULL, NULL                                                                          \
    }
#define SHAKE_AS(text, more)                                                                                   \
    {                                                                                                          \
        FAKE_HANDSHAKE, 0, text, more                                                                          \
    }
#define SLEEP(ms)                                                                                              \
    {                                                                                                          \
        FAKE_SLEEP, ms, NULL, NULL                                                                             \
    }
#define CLOSE                                                                                                  \
    {                                                                                                          \
        FAKE_CLOSE, 0, NULL, NULL                                                                              \
    }
#define RESET                                                                                                  \
    {                                                                                                          \
        FAKE_RESET, 0, NULL, NULL                                                                              \
    }
#define END                                                                                                    \
    {                                                                                                          \
        FAKE_END, 0, NULL, NULL                                                                                \
    }
#define EXPECT(text) STEP(FAKE_EXPECT, text)
#define SEND(text)   STEP(FAKE_SEND, text)

static const struct fake_step plain_good[] = {SHAKE, END};
static const struct fake_step shut[] = {CLOSE};

/* ---- handshake ---- */

static void test_handshake_words(void **state)
{
    static const struct fake_step script[] = {EXPECT("AUTH bob se same"),
                                              SEND("+OK\r\n"),
                                              EXPECT("SELECT 2"),
                                              SEND("+OK\r\n"),
                                              EXPECT("CLIENT SETNAME me"),
                                              SEND("+OK\r\n"),
                                              SHAKE,
                                              END};
    struct world world;
    (void)state;
    world_open(&world);
    world_uri(&world, "redis://bob:se%20same@127.0.0.1", "/2");
    fake_play(world.server, script);
    assert_non_null(world_node(&world));
    unsigned before = n_writes;
    run_until(&world, "ready 1");
    assert_int_equal(n_writes - before, 1);
    assert_int_equal(fake_commands(world.server), 9);
    assert_story(&world, "ready 1\n");
    assert_string_equal(node_why(world.node), "");
    assert_true(node_srtt_us(world.node) > 0);
    assert_holds(world.logged, "Redis 7.0.15");
    world_close(&world);
}

struct refusal {
    struct fake_step script[12];
    const char *story, *why;
};

static const struct refusal refusals[] = {
    {{SEND("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), CLOSE},
     "down proto\n",
     "HTTP/1.1 400 Bad"},
    {{SEND("\x15\x03\x03"), END}, "down proto\n", "TLS"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesame?\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesam"), END}, "down proto\n", "not a Redis server"},
    {{SEND("SSH-2.0-OpenSSH_9\r\n"), END}, "down proto\n", "SSH-2.0"},
    {{SEND("-ERR max number of clients reached\r\n"), CLOSE}, "down refused\n", "maxclients"},
    {{SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE}, "down refused\n", "protected mode"},
    {{EXPECT("AUTH"), SEND("-WRONGPASS invalid username-password pair\r\n"), END},
     "down auth\n",
     "user \"bob\""},
    {{EXPECT("AUTH"), SEND("-ERR AUTH <password> called without any password configured\r\n"), END},
     "down auth\n",
     "no password"},
    {{EXPECT("AUTH"), SEND("-ERR unknown command 'AUTH', with args beginning with: 'bob' 'sesame'\r\n"), END},
     "down auth\n",
     "AUTH"},
    {{EXPECT("AUTH"), SEND("-ERR sesame is not what I want\r\n"), END}, "down auth\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("-LOADING sesame\r\n"), END}, "down temporary\n", "AUTH"},
    {{EXPECT("AUTH"), SEND(":1\r\n"), END}, "down proto\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), EXPECT("SELECT"), SEND("-ERR DB index is out of range\r\n"), END},
     "down other\n",
     "SELECT: ERR DB index"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOPERM this user\r\n"), END}, "down auth\n", "INFO: NOPERM"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n"), END},
     "down auth\n",
     "redis://USER:PASSWORD@"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$5\r\nhello\r\n"), END}, "down proto\n", "redis_version"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n+hello\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$99999999999\r\n"), END}, "down proto\n", "too large"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n*100000000\r\n"), END}, "down proto\n", "malformed"},
    {{SHAKE_AS("redis_version:6.0.16\r\n", NULL), END}, "down proto\n", "Redis 6.0.16 is too old: Redis 6.2"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:7.1.9\r\n", NULL), END},
     "down proto\n",
     "Valkey 7.1.9 is too old: Valkey 7.2"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:cluster\r\n", NULL), END},
     "down cluster\n",
     "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nserver_mode:cluster\r\n", NULL), END},
     "down cluster\n",
     "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:sentinel\r\n", NULL), END}, "down proto\n", "Sentinel"},
    {{SHAKE_AS(NULL, "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:6379\r\n"), END},
     "down replica\n",
     "replica of 10.0.0.9:6379"},
    {{SHAKE_AS(NULL, "roles:master\r\n"), END}, "down proto\n", "role"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), CLOSE},
     "down unreachable\n",
     "closed the connection during the handshake"},
    {{EXPECT("AUTH"), RESET}, "down unreachable\n", "during the handshake"},
};

static void test_handshake_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];
        struct world world;
        world_open(&world);
        /* It goes on trying, and the second time all is well. */
        fake_play(world.server, refusal->script);
        fake_play(world.server, plain_good);
        world_uri(&world, "redis://bob:sesame@127.0.0.1", "/1");
        assert_non_null(world_node(&world));
        run_until(&world, "down");
        assert_story(&world, refusal->story);
        assert_holds(world.why, refusal->why);
        assert_int_equal(ask(&world, 1, NODE_PEEK, 0), NODE_NOT_READY);
        run_until(&world, "ready 1");
        if (strstr(world.why, "sesame") || strstr(world.logged, "sesame"))
            fail_msg("a password: %s", world.logged);
        world_close(&world);
    }
}

static void test_handshake_loading(void **state)
{
    static const struct fake_step script[] = {EXPECT("CLIENT"),
                                              SEND("-NOPERM this name is only for show\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$21\r\nredis_version:7.0.0\r\n\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$11\r\nrole:master\r\n"),
                                              EXPECT("SCRIPT"),
                                              SEND("-LOADING Redis is loading the dataset in memory\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, script);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    assert_story(&world, "down temporary\nready 1\n"); /* told once, though it failed twice */
    assert_int_equal(fake_connections(world.server), 3);
    world_close(&world);
}

static void test_handshake_silence(void **state)
{
    static const struct fake_step script[] = {END};
    struct world world;
    (void)state;
    world_open(&world);
    world.config.timeout_ms = 30;
    fake_play(world.server, script);
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    assert_story(&world, "down unreachable\n");
    assert_holds(world.why, "no answer to the handshake within 30 ms");
    world_close(&world);
}

static void test_refused_port(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    world_uri(&world, "127.0.0.1", "");
    fake_free(world.server);
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    run_on(&world, 50); /* tries again and again, and tells it once */
    assert_story(&world, "down unreachable\n");
    assert_holds(world.why, "refused");
    world.server = fake_new(world.base);
    world_close(&world);
}

/* ---- requests ---- */

static void test_requests(void **state)
{
    static const struct fake_step script[] = {
        SHAKE,
        EXPECT("SET key owner NX PX 30000"),
        SEND("+OK\r\n"),
        EXPECT("EVALSHA aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 key owner 30000"),
        SEND(":0\r\n"),
        EXPECT("EVALSHA bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb 1 key owner"),
        SEND("*2\r\n$3\r\nbob\r\n:7\r\n"),
        EXPECT("EVALSHA cccccccccccccccccccccccccccccccccccccccc 1 key"),
        SEND("-WRONGTYPE x\r\n"),
        EXPECT("EVALSHA dddddddddddddddddddddddddddddddddddddddd 1 key"),
        SEND("*3\r\n$-1\r\n:-1\r\n$4\r\nhash\r\n"),
        END};
    /* The scripts come in the order in which the node loads them: extend, release, peek, break. */
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    unsigned before = n_writes;
    ask_sent(&world, 1, NODE_ACQUIRE, 10000);
    ask_sent(&world, 2, NODE_EXTEND, 0);
    ask_sent(&world, 3, NODE_RELEASE, 10000);
    ask_sent(&world, 4, NODE_PEEK, 0);
    ask_sent(&world, 5, NODE_BREAK, 0);
    run_until(&world, "5 yes");
    assert_int_equal(n_writes - before, 1); /* one turn, one write */
    assert_story(&world, "ready 1\n1 yes\n2 missing\n3 other\n4 error foreign\n5 yes\n");
    assert_string_equal(world.error, "a hash");
    assert_string_equal(world.holder, "bob");
    assert_true(world.latency_us > 0 && world.latency_us < LIMIT_S * 1000000);
    world_close(&world);
}

static void test_pieces(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              EXPECT("EVALSHA"),
                                              SLEEP(5),
                                              STEP(FAKE_PIECES, "+OK\r\n*2\r\n$3\r\nbob\r\n:123\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    ask_sent(&world, 2, NODE_PEEK, 0);
    run_until(&world, "2 yes");
    assert_story(&world, "ready 1\n1 yes\n2 yes\n");
    assert_string_equal(world.holder, "bob");
    world_close(&world);
}

static void ask_whole(struct world *world, const char *line)
{
    if (strcmp(line, "1 noscript") != 0) return;
    struct node_request request = {.op = NODE_RELEASE,
                                   .whole_script = true,
                                   .key = "key",
                                   .key_length = 3,
                                   .owner = "owner",
                                   .owner_length = 5};
    request.tag.align_number = 2;
    assert_int_equal(node_send(world->node, &request), NODE_SENT);
}

static void test_noscript(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("EVALSHA bbbb"),
                                              SEND("-NOSCRIPT No matching script.\r\n"),
                                              EXPECT("EVAL local holder"),
                                              SEND(":1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    world.on_line = ask_whole;
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_RELEASE, 0);
    run_until(&world, "2 yes");
    assert_story(&world, "ready 1\n1 noscript\n2 yes\n");
    world_close(&world);
}

struct changed {
    const char *reply, *story;
};

/* The server is not what it was: the reply is told, the rest is unknown, the connection is made anew. */
static void test_server_changed(void **state)
{
    static const struct changed rows[] = {
        {"-LOADING Redis is loading\r\n",
         "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {"-READONLY You can't write\r\n",
         "ready 1\n1 error replica\n2 unknown unreachable\nconnecting replica\n"},
        {"-MASTERDOWN Link\r\n", "ready 1\n1 error temporary\n2 unknown unreachable\nconnecting temporary\n"},
        {":17\r\n", "ready 1\n1 error proto\n2 unknown unreachable\nconnecting proto\n"},
        {">1\r\n+push\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
        {"$536870912\r\n", "ready 1\n1 unknown unreachable\n2 unknown unreachable\nconnecting proto\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND(rows[i].reply), END};
        struct world world;
        world_start(&world, script);
        fake_play(world.server, plain_good);
        run_until(&world, "ready");
        ask_sent(&world, 1, NODE_ACQUIRE, 0);
        ask_sent(&world, 2, NODE_PEEK, 0);
        run_until(&world, "connecting");
        assert_story(&world, rows[i].story);
        assert_int_equal(ask(&world, 3, NODE_PEEK, 0), NODE_NOT_READY);
        run_until(&world, "ready 2");
        world_close(&world);
    }
}

/* Refused by right or memory: the connection is as good as before. */
static void test_plain_refusals(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              SEND("-NOPERM no rights for SET\r\n"),
                                              EXPECT("SET"),
                                              SEND("-OOM command not allowed\r\n"),
                                              EXPECT("SET"),
                                              SEND("-NOAUTH Authentication required.\r\n"),
                                              EXPECT("SET"),
                                              SEND("-ERR whatever\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= 5; i++) ask_sent(&world, i, NODE_ACQUIRE, 0);
    run_until(&world, "5 other");
    assert_story(&world, "ready 1\n1 error auth\n2 error refused\n3 error auth\n4 unknown other\n5 other\n");
    world_close(&world);
}

static void test_unsolicited(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\nconnecting proto\nready 2\n");
    assert_holds(world.logged, "nobody asked for");
    world_close(&world);
}

/* The surplus reply must not become the answer to a request that was only queued meanwhile. */
static void ask_more(struct world *world, const char *line)
{
    if (strcmp(line, "1 yes") == 0) assert_int_equal(ask(world, 2, NODE_ACQUIRE, 0), NODE_SENT);
}

static void test_unsolicited_before_request(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, plain_good);
    world.on_line = ask_more;
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\n2 unknown unreachable\nconnecting proto\nready 2\n");
    world_close(&world);
}

static void test_closed_in_the_middle(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n+O"), CLOSE};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, shut);
    fake_play(world.server, shut);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= 3; i++) ask_sent(&world, i, NODE_ACQUIRE, 0);
    run_until(&world, "ready 2");
    assert_story(&world, "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\n"
                         "connecting unreachable\ndown unreachable\nready 2\n");
    assert_int_equal(fake_connections(world.server), 4);
    world_close(&world);
}

/* ---- deadlines ---- */

/* No answer in time: unknown, at once. The late answer is swallowed, and the next one is for the next request.
 */
static void test_tombstone(void **state)
{
    static const struct fake_step script[] = {SHAKE,
                                              EXPECT("SET"),
                                              EXPECT("EVALSHA"),
                                              SEND("+OK\r\n"),
                                              STEP(FAKE_PIECES, "*2\r\n$3\r\nbob\r\n:9\r\n"),
                                              EXPECT("SET"),
                                              SEND("$-1\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    uint32_t srtt_us = node_srtt_us(world.node);
    ask_sent(&world, 1, NODE_ACQUIRE, 20);
    run_until(&world, "1 unknown");
    assert_holds(world.error, "within 20 ms");
    assert_true(world.latency_us >= 20000);
    assert_int_equal(node_srtt_us(world.node), srtt_us); /* no answer, no measure */
    ask_sent(&world, 2, NODE_PEEK, 0);
    run_until(&world, "2 yes");
    ask_sent(&world, 3, NODE_ACQUIRE, 0);
    run_until(&world, "3 other");
    assert_story(&world, "ready 1\n1 unknown timeout\n2 yes\n3 other\n");
    world_close(&world);
}

/* Each request has a deadline of its own, not in the order of sending. */
static void test_deadline_order(void **state)
{
    struct world world;
    (void)state;
    world_start(&world, plain_good);
    run_until(&world, "ready");
    ask_sent(&world, 1, NODE_ACQUIRE, 120);
    ask_sent(&world, 2, NODE_ACQUIRE, 20);
    ask_sent(&world, 3, NODE_ACQUIRE, 0);
    ask_sent(&world, 4, NODE_ACQUIRE, 60);
    run_until(&world, "1 unknown");
    assert_story(&world, "ready 1\n2 unknown timeout\n4 unknown timeout\n1 unknown timeout\n");
    world_close(&world);
}

static void test_stall(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    world.config.stall_ms = 60;
    fake_play(world.server, plain_good);
    fake_play(world.server, plain_good);
    assert_non_null(world_node(&world));
    run_until(&world, "ready");
    run_on(&world, 100); /* idle is not stalled */
    assert_story(&world, "ready 1\n");
    ask_sent(&world, 1, NODE_ACQUIRE, 20);
    ask_sent(&world, 2, NODE_RELEASE, 0);
    run_until(&world, "ready 2");
    assert_story(&world,
                 "ready 1\n1 unknown timeout\n2 unknown unreachable\nconnecting unreachable\nready 2\n");
    assert_holds(world.error, "no answer for 60 ms");
    world_close(&world);
}

static void on_block(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    block_ms(150);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    fake_write(((struct world *)arg)->server, "+OK\r\n");
}

/*
 * A loop that stood still finds the deadline passed and the reply just there, in one and the same turn, behind
 * the poll: the timer must look at the socket before it judges.
 */
static void test_read_before_judging(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), END};
    struct world world;
    (void)state;
    world_start(&world, script);
    run_until(&world, "ready");
    struct event *blocker = event_new(world.base, -1, 0, on_block, NULL);
    struct event *writer = event_new(world.base, -1, 0, on_write, &world);
    const struct timeval block_at = {0, 10000}, write_at = {0, 20000};
    ask_sent(&world, 1, NODE_ACQUIRE, 60);
    event_add(blocker, &block_at);
    event_add(writer, &write_at);
    run_until(&world, "1 ");
    assert_story(&world, "ready 1\n1 yes\n");
    assert_true(world.latency_us >= 60000);
    event_free(blocker);
    event_free(writer);
    world_close(&world);
}

/* ---- bounds ---- */

static void test_ring_full(void **state)
{
    struct world world;
    (void)state;
    world_start(&world, plain_good);
    run_until(&world, "ready");
    for (unsigned i = 1; i <= RING_MAX; i++) ask_sent(&world, i, NODE_RELEASE, 0);
    assert_int_equal(ask(&world, 0, NODE_RELEASE, 0), NODE_FULL);
    run_on(&world, 20);
    assert_int_equal(ask(&world, 0, NODE_RELEASE, 0), NODE_FULL);
    fake_write(world.server, ":1\r\n");
    run_until(&world, "1 yes");
    ask_sent(&world, RING_MAX + 1, NODE_RELEASE, 0);
    fake_write(world.server, "?\r\n");
    run_until(&world, "connecting");
    assert_int_equal(world.n_replies, RING_MAX + 1);
    assert_holds(world.story, "1024 unknown unreachable\n1025 unknown unreachable\nconnecting proto\n");
    world_close(&world);
}

/* More than the sockets take at once: what is left follows when there is room, in order and whole. */
static void test_large_output(void **state)
{
    static char key[8192];
    struct fake_step script[2 * 100 + 2] = {SHAKE};
    struct world world;
    unsigned n_sent = 0;
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        script[1 + 2 * i] = (struct fake_step)EXPECT("SET kkkkkkkkkkkkkkkk");
        script[2 + 2 * i] = (struct fake_step)SEND("+OK\r\n");
    }
    memset(key, 'k', sizeof key);
    world_start(&world, script);
    run_until(&world, "ready");
    struct node_request request = {
        .op = NODE_ACQUIRE, .key = key, .key_length = sizeof key, .owner = "o", .owner_length = 1};
    int result = NODE_SENT;
    while (result == NODE_SENT) {
        request.tag.align_number = n_sent + 1;
        result = node_send(world.node, &request);
        if (result == NODE_SENT) n_sent++;
    }
    assert_int_equal(result, NODE_FULL); /* a megabyte waits */
    assert_in_range(n_sent, 101, RING_MAX - 1);
    run_until(&world, "\n100 yes\n");
    assert_int_equal(world.n_replies, 100);
    world_close(&world);
}

/* ---- the end ---- */

struct free_row {
    const char *free_at, *story;
    struct fake_step script[8];
    uint32_t timeout_ms;
};

static void ask_three(struct world *world, const char *line)
{
    if (strcmp(line, "ready 1") != 0) return;
    for (unsigned i = 1; i <= 3; i++) assert_int_equal(ask(world, i, NODE_ACQUIRE, i == 1 ? 20 : 0), NODE_SENT);
}

static void test_free_in_callback(void **state)
{
    static const struct free_row rows[] = {
        {"ready 1", "ready 1\n", {SHAKE, END}, 0},
        {"1 yes", "ready 1\n1 yes\n", {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), END}, 0},
        {"3 yes",
         "ready 1\n1 yes\n2 yes\n3 yes\n",
         {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), CLOSE},
         0},
        {"1 error replica",
         "ready 1\n1 error replica\n",
         {SHAKE, EXPECT("SET"), SEND("-READONLY x\r\n+OK\r\n"), END},
         0},
        {"1 error proto", "ready 1\n1 error proto\n", {SHAKE, EXPECT("SET"), SEND(":1\r\n+OK\r\n"), END}, 0},
        {"2 unknown unreachable",
         "ready 1\n1 unknown unreachable\n2 unknown unreachable\n",
         {SHAKE, EXPECT("SET"), CLOSE},
         0},
        {"1 unknown timeout", "ready 1\n1 unknown timeout\n", {SHAKE, END}, 20},
        {"connecting unreachable",
         "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\nconnecting unreachable\n",
         {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), CLOSE},
         0},
        {"down unreachable", "down unreachable\n", {CLOSE}, 0},
        {"down proto", "down proto\n", {SEND("?"), END}, 0},
        {"down auth", "down auth\n", {EXPECT("CLIENT"), SEND("-NOAUTH x\r\n+OK\r\n"), END}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world world;
        world_start(&world, rows[i].script);
        world.free_at = rows[i].free_at;
        world.on_line = ask_three;
        run_until(&world, rows[i].free_at);
        assert_null(world.node);
        run_on(&world, 10);
        assert_story(&world, rows[i].story);
        world_close(&world);
    }
}

static void test_free_any_time(void **state)
{
    (void)state;
    /* After so many turns of the loop, wherever it stands then. */
    for (int turns = 0; turns < 12; turns++) {
        struct world world;
        world_start(&world, plain_good);
        for (int i = 0; i < turns; i++) event_base_loop(world.base, EVLOOP_NONBLOCK);
        if (node_level_now(world.node) == NODE_READY) ask_sent(&world, 1, NODE_PEEK, 0);
        node_free(world.node);
        world.node = NULL;
        world.freed = true;
        run_on(&world, 2);
        world_close(&world);
    }
    node_free(NULL);
}

/* By the hosts file, or the name server: either way from the loop, and freed at any time. */
static void test_names(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    fake_play(world.server, plain_good);
    world_uri(&world, "localhost", "");
    assert_non_null(world_node(&world));
    run_until(&world, "ready");
    world_close(&world);

    for (int turns = 0; turns < 3; turns++) {
        world_open(&world);
        world_uri(&world, "nobody.invalid", "");
        assert_non_null(world_node(&world));
        for (int i = 0; i < turns; i++) event_base_loop(world.base, EVLOOP_NONBLOCK);
        world_close(&world);
    }

    world_open(&world);
    world.config.timeout_ms = 200;
    world_uri(&world, "nobody.invalid", "");
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    assert_holds(world.story, "down unreachable\n");
    assert_holds(world.why, "nobody.invalid");
    world_close(&world);
}

/* Each allocation of a whole life fails once: no crash, no leak, and in the end it works. */
static void test_out_of_memory(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), END};
    bool failed = true;
    long n = 0;
    (void)state;
    for (; failed; n++) {
        struct world world;
        assert_true(n < 100);
        world_open(&world);
        for (int i = 0; i < 4; i++) fake_play(world.server, script);
        world_uri(&world, n % 2 ? "localhost" : "127.0.0.1", "");
        world.counted.until_failure = n / 2;
        if (world_node(&world)) {
            run_until(&world, "ready");
            int result = ask(&world, 1, NODE_ACQUIRE, 0);
            if (result == NODE_NOMEM) result = ask(&world, 1, NODE_ACQUIRE, 0);
            assert_int_equal(result, NODE_SENT);
            run_until(&world, "1 yes");
        }
        failed = world.counted.until_failure < 0;
        world_close(&world);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_words),
        cmocka_unit_test(test_handshake_refused),
        cmocka_unit_test(test_handshake_loading),
        cmocka_unit_test(test_handshake_silence),
        cmocka_unit_test(test_refused_port),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_noscript),
        cmocka_unit_test(test_server_changed),
        cmocka_unit_test(test_plain_refusals),
        cmocka_unit_test(test_unsolicited),
        cmocka_unit_test(test_unsolicited_before_request),
        cmocka_unit_test(test_closed_in_the_middle),
        cmocka_unit_test(test_tombstone),
        cmocka_unit_test(test_deadline_order),
        cmocka_unit_test(test_stall),
        cmocka_unit_test(test_read_before_judging),
        cmocka_unit_test(test_ring_full),
        cmocka_unit_test(test_large_output),
        cmocka_unit_test(test_free_in_callback),
        cmocka_unit_test(test_free_any_time),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("node against a scripted server", tests, NULL, NULL);
}
