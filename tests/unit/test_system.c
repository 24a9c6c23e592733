/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_system.c - a whole client in a world of the test's own
 *
 * Time, random bytes, host names, sockets and the loop are made here; of the library nothing is replaced but
 * the table that it takes them from. Time stands still while something happens and then jumps to what happens
 * next, so an hour passes in some ms, and one seed always makes one trace.
 */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "api/client.h"
#include "base/address.h"
#include "test.h"

#define NODES     3
#define MOMENTS   32
#define NEVER     UINT64_MAX
#define FD_FIRST  100000 /* no descriptors of this process */
#define HOUR_US   3600000000u
#define LEASE_MS  30000u
#define RENEWALS  (HOUR_US / 1000u / (LEASE_MS / 3u))
#define SHA_FRONT "000000000000000000000000000000000000000"
#define INFO      "$40\r\nredis_version:7.2.0\nrole:master\nrun_id:%d\r\n"

/* ---- what happens, in order: timers, tasks, and what the network brings ---- */

struct moment {
    uint64_t at_us, order;
    void (*happen)(void *arg); /* NULL: no moment */
    void *arg;
};

struct watch {
    struct moment *moment;
    unsigned wanted;
    void (*ready)(void *arg, unsigned events);
    void *arg;
};

/* A server, and the one connection to it. */
struct server {
    struct watch watch;
    struct moment *says;
    redisReader *reader;
    char said[4096];
    size_t n_said, n_arrived, n_scripts;
    char owner[128];
    uint64_t until_us;
};

static struct world {
    struct moment moments[MOMENTS];
    uint64_t now_us, order, random;
    bool silent; /* the network carries nothing */
    struct server servers[NODES];
    unsigned n_extended, real_looks; /* at the real clock */
    size_t traced;
    char trace[1 << 18];
} world;

static uint64_t draw(void)
{
    world.random = world.random * 6364136223846793005u + 1442695040888963407u;
    return world.random >> 33;
}

__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    assert_true(world.traced + 512 < sizeof(world.trace));
    world.traced += (size_t)sprintf(world.trace + world.traced, "\n%llu ", (unsigned long long)world.now_us);
    world.traced += (size_t)vsnprintf(world.trace + world.traced, 256, format, args);
    va_end(args);
}

static struct moment *moment_new(void (*happen)(void *), void *arg)
{
    struct moment *moment = world.moments;

    while (moment->happen != NULL) moment++;
    assert_true(moment < world.moments + MOMENTS);
    *moment = (struct moment){NEVER, 0, happen, arg};
    return moment;
}

static void expect(struct moment *moment, uint64_t after_us)
{
    moment->at_us = world.now_us + after_us;
    moment->order = world.order++;
}

static void next(void)
{
    struct moment *next = NULL;

    for (struct moment *at = world.moments; at < world.moments + MOMENTS; at++) {
        bool sooner = next == NULL || at->at_us < next->at_us || (at->at_us == next->at_us && at->order < next->order);

        if (at->happen != NULL && at->at_us != NEVER && sooner) next = at;
    }
    assert_non_null(next);
    world.now_us = next->at_us;
    next->at_us = NEVER;
    next->happen(next->arg);
}

/* ---- the loop ---- */

static struct server *server_of(int fd)
{
    return &world.servers[fd - FD_FIRST];
}

/* One kind at a time, and again as long as there is something, unless the owner has enough. */
static void on_watch(void *arg)
{
    struct server *server = arg;
    unsigned ready = (server->n_arrived > 0 ? WATCH_READ : 0) | (world.silent ? 0 : WATCH_WRITE);

    ready &= server->watch.wanted;
    if (ready == 0) return;
    expect(server->watch.moment, 0);
    server->watch.ready(server->watch.arg, (ready & WATCH_READ) != 0 ? WATCH_READ : WATCH_WRITE);
}

static struct watch *watch_new(struct system *system, int fd, void (*ready)(void *, unsigned), void *arg)
{
    struct server *server = server_of(fd);

    server->watch = (struct watch){moment_new(on_watch, server), 0, ready, arg};
    return &server->watch;
}

static int watch_set(struct watch *watch, unsigned events)
{
    watch->wanted = events;
    expect(watch->moment, 0);
    return 0;
}

static void watch_free(struct watch *watch)
{
    watch->moment->happen = NULL;
}

static struct timer *timer_new(struct system *system, bool precise, void (*fire)(void *), void *arg)
{
    return (struct timer *)moment_new(fire, arg);
}

static int timer_set(struct timer *timer, uint64_t after_us)
{
    expect((struct moment *)timer, after_us);
    return 0;
}

static void timer_stop(struct timer *timer)
{
    ((struct moment *)timer)->at_us = NEVER;
}

static void timer_free(struct timer *timer)
{
    ((struct moment *)timer)->happen = NULL;
}

static struct task *task_new(struct system *system, void (*run)(void *), void *arg)
{
    return (struct task *)moment_new(run, arg);
}

static void task_run(struct task *task)
{
    if (((struct moment *)task)->at_us == NEVER) expect((struct moment *)task, 0);
}

static void task_stop(struct task *task)
{
    ((struct moment *)task)->at_us = NEVER;
}

static void task_free(struct task *task)
{
    ((struct moment *)task)->happen = NULL;
}

/* ---- the servers ---- */

/* SET key owner NX PX lease; EVALSHA sha 1 key 1 owner [lease]: the scripts in the order of their loading. */
static const char *lock(struct server *server, redisReply *const *words, size_t n_words)
{
    bool set = strcmp(words[0]->str, "SET") == 0, release = n_words == 6 && !set;
    const char *owner = words[set ? 2 : 5]->str, *what = set ? "set" : release ? "release" : "extend";
    uint64_t lease_us = release ? 0 : strtoul(words[n_words - 1]->str, NULL, 10) * 1000u;
    bool held = server->until_us > world.now_us, good = set ? !held : held && strcmp(server->owner, owner) == 0;

    assert_true(set || strcmp(words[1]->str, release ? SHA_FRONT "1" : SHA_FRONT "0") == 0);
    record("node %d: %s %.8s: %d", (int)(server - world.servers), what, owner, good);
    if (!good) return set ? "$-1\r\n" : ":0\r\n";
    if (set) snprintf(server->owner, sizeof(server->owner), "%s", owner);
    if (!set && !release) world.n_extended++;
    server->until_us = world.now_us + lease_us;
    return set ? "+OK\r\n" : ":1\r\n";
}

static void serve(struct server *server, redisReply *const *words, size_t n_words)
{
    char *to = server->said + server->n_said;

    assert_true(server->n_said + 64 < sizeof(server->said));
    if (strcmp(words[0]->str, "INFO") == 0)
        sprintf(to, INFO, (int)(server - world.servers));
    else if (strcmp(words[0]->str, "SCRIPT") == 0)
        sprintf(to, "$40\r\n" SHA_FRONT "%zu\r\n", server->n_scripts++);
    else
        sprintf(to, "%s", strcmp(words[0]->str, "CLIENT") == 0 ? "+OK\r\n" : lock(server, words, n_words));
    server->n_said += strlen(to);
    if (server->says->at_us == NEVER) expect(server->says, 500 + draw() % 1000);
}

/* Some of it, cut anywhere. */
static void on_says(void *arg)
{
    struct server *server = arg;

    if (world.silent) return;
    server->n_arrived += 1 + draw() % (server->n_said - server->n_arrived);
    if (server->n_arrived < server->n_said) expect(server->says, draw() % 100);
    expect(server->watch.moment, 0);
}

/* ---- the rest ---- */

/* The port says which server. */
static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    int fd = FD_FIRST + ntohs(((const struct sockaddr_in *)&address->storage)->sin_port) - 1;
    struct server *server = server_of(fd);

    server->reader = redisReaderCreate();
    server->says = moment_new(on_says, server);
    server->n_said = server->n_arrived = server->n_scripts = 0;
    return fd;
}

static int finish_connect(struct system *system, int fd)
{
    return 0;
}

/* Now and then the socket takes nothing, or not all. */
static ssize_t give(struct system *system, int fd, const void *bytes, size_t size)
{
    redisReply *command = NULL;

    errno = EAGAIN;
    if (world.silent || draw() % 4 == 0) return -1;
    if (draw() % 4 == 0) size = 1 + draw() % size;
    redisReaderFeed(server_of(fd)->reader, bytes, size);
    while (redisReaderGetReply(server_of(fd)->reader, (void **)&command) == REDIS_OK && command != NULL) {
        serve(server_of(fd), command->element, command->elements);
        freeReplyObject(command);
    }
    return (ssize_t)size;
}

static ssize_t take(struct system *system, int fd, void *ret, size_t size)
{
    struct server *server = server_of(fd);

    if (size > server->n_arrived) size = server->n_arrived;
    errno = EAGAIN;
    memcpy(ret, server->said, size);
    memmove(server->said, server->said + size, server->n_said -= size);
    server->n_arrived -= size;
    return size > 0 ? (ssize_t)size : -1;
}

static bool has_input(struct system *system, int fd)
{
    return server_of(fd)->n_arrived > 0;
}

static void end(struct system *system, int fd)
{
    server_of(fd)->says->happen = NULL;
    redisReaderFree(server_of(fd)->reader);
}

static uint64_t elapsed_us(struct system *system)
{
    return world.now_us;
}

static int draw_bytes(struct system *system, void *ret, size_t size, bool wait)
{
    for (size_t i = 0; i < size; i++) ((unsigned char *)ret)[i] = (unsigned char)draw();
    return 0;
}

/* In place of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    world.real_looks++;
    return (int)syscall(SYS_clock_gettime, id, ret);
}

/* ---- a life ---- */

static void on_result(quorlock *held, const struct quorlock_result *result, void *arg)
{
    record("%s: %s, %u granted, valid for %u ms", (const char *)arg, quorlock_status_name(result->status),
           result->granted, result->valid_ms);
}

/* Before it is lost: a quorum of nodes has the key for longer than is told. */
static void on_lost(quorlock *held, const struct quorlock_loss *loss, void *arg)
{
    unsigned n = 0;

    for (int i = 0; i < NODES; i++) n += world.servers[i].until_us > world.now_us + loss->remaining_ms * UINT64_C(1000);
    assert_int_equal(loss->reason, QUORLOCK_LOST_EXPIRED);
    assert_true(loss->remaining_ms > 0 && n > NODES / 2);
    record("lost, %u ms left", loss->remaining_ms);
}

static void on_closed(void *arg)
{
    record("closed");
}

static void until(const char *line)
{
    while (strstr(world.trace, line) == NULL) next();
}

static void live(uint64_t seed)
{
    static const struct system_ops ops = {elapsed_us, elapsed_us, elapsed_us, draw_bytes, begin_connect, finish_connect,
                                          give,       take,       has_input,  end,        NULL,          NULL};
    static const struct loop_ops loop = {watch_new,  watch_set, watch_free, timer_new, timer_set, timer_stop,
                                         timer_free, task_new,  task_run,   task_stop, task_free};
    const struct system system = {.ops = &ops, .loop = &loop};
    const char *const nodes[NODES] = {"10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3"}, *const key = "key";
    const struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = NODES, .guard = QUORLOCK_GUARD_OFF};
    const struct quorlock_options lease = {.size = sizeof(lease), .lease_ms = LEASE_MS, .wait_ms = 5000};

    quorlock_client *client;
    quorlock *held;

    world = (struct world){.random = seed, .now_us = 1000000};
    assert_int_equal(client_new_on(&client, &system, &options), 0);
    assert_int_equal(quorlock_new(&held, client, &key, 1, &lease), 0);
    quorlock_on_lost(held, on_lost, NULL);
    /* One hold ends well, */
    assert_int_equal(quorlock_acquire(held, on_result, "first"), 0);
    until("first: OK");
    while (world.now_us < HOUR_US) next();
    assert_true(quorlock_valid_ms(held) > LEASE_MS / 2);
    assert_in_range(world.n_extended, NODES * (RENEWALS - 2), NODES * (RENEWALS + 2));
    assert_int_equal(quorlock_release(held, on_result, "its end"), 0);
    until("its end: OK");
    /* the next in silence. */
    assert_int_equal(quorlock_acquire(held, on_result, "second"), 0);
    until("second: OK");
    while (world.n_extended < NODES * (RENEWALS + 10)) next();
    world.silent = true;
    until("lost");
    assert_int_equal(quorlock_client_close(client, on_closed, NULL), 0);
    until("closed");
    for (int i = 0; i < MOMENTS; i++) assert_null(world.moments[i].happen);
    assert_int_equal(world.real_looks, 0);
}

TEST(one_seed_makes_one_trace)
{
    static struct world first;

    live(1);
    first = world;
    live(1);
    assert_string_equal(world.trace, first.trace);
    live(2);
    assert_string_not_equal(world.trace, first.trace);
}
