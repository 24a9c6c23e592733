/* SPDX-License-Identifier: BSD-3-Clause */
/* test_adapter.c - an adapter does with its loop what quorlock/loop.h asks for */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.h"
#include "integration/cluster.h"
#include "kind.h"
#include "test.h"

#define MS       UINT64_C(1000)
#define FAR      (MS * 1000 * 3600)
#define SHORTLY  (20 * MS)
#define EARLY_US (2 * MS) /* so much earlier than asked a timer may fire */
#define MANY     300
#define SPINS    500 /* turns in SHORTLY that only a loop that does not sleep makes */

struct fixture;

/* A watch with its descriptor, or a timer, or a task; what it saw, and what it does then. */
struct source {
    struct fixture *f;
    void *handle;
    int fd, peer;
    unsigned calls, events;
    uint32_t order;
    void (*more)(struct source *);
    struct source *other;
};

struct fixture {
    struct quorlock_loop loop;
    struct source *one, *two, *three, sources[3];
    struct source many[3][MANY];
    uint32_t order;
};

static int setup(void **state)
{
    static struct fixture f;
    struct quorlock_loop table;

    memset(&f, 0, sizeof(f));
    loop_kind.open();
    table = loop_kind.table();
    f.loop = guard_begin(&table);
    f.one = &f.sources[0];
    f.two = &f.sources[1];
    f.three = &f.sources[2];
    f.one->other = f.two;
    f.two->other = f.one;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    guard_end();
    loop_kind.close();
    return 0;
}

#define LOOP_TEST(name) TEST_WITH(fixture, name, setup, teardown)
#define UNTIL(condition)                                                                                               \
    while (!(condition)) loop_kind.turn()

/* ---- sources ---- */

static void seen(struct source *source)
{
    source->calls++;
    source->order = ++source->f->order;
    if (source->more != NULL) source->more(source);
}

static void on_ready(void *of, unsigned events)
{
    ((struct source *)of)->events |= events;
    seen(of);
}

static void on_fire(void *of)
{
    seen(of);
}

static void forget(struct source *source)
{
    source->calls = source->events = 0;
    source->order = 0;
}

static void watch_pair(struct fixture *f, struct source *source)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    source->f = f;
    source->fd = fds[0];
    source->peer = fds[1];
    source->handle = f->loop.watch_new(f->loop.arg, source->fd, on_ready, source);
    assert_non_null(source->handle);
}

static void want(struct source *source, unsigned events)
{
    assert_int_equal(source->f->loop.watch_set(source->handle, events), 0);
}

static void send_byte(const struct source *source)
{
    assert_int_equal(write(source->peer, "x", 1), 1);
}

static void unwatch(struct source *source)
{
    source->f->loop.watch_free(source->handle);
    source->handle = NULL;
    close(source->fd);
    if (source->peer >= 0) close(source->peer);
}

static void make_timer(struct fixture *f, struct source *source)
{
    source->f = f;
    source->handle = f->loop.timer_new(f->loop.arg, on_fire, source);
    assert_non_null(source->handle);
}

static void set(struct source *source, uint64_t after_us)
{
    assert_int_equal(source->f->loop.timer_set(source->handle, after_us), 0);
}

static void free_timer(struct source *source)
{
    source->f->loop.timer_free(source->handle);
    source->handle = NULL;
}

static void make_task(struct fixture *f, struct source *source)
{
    source->f = f;
    source->handle = f->loop.task_new(f->loop.arg, on_fire, source);
    assert_non_null(source->handle);
}

static void run(struct source *source)
{
    source->f->loop.task_run(source->handle);
}

static void free_task(struct source *source)
{
    source->f->loop.task_free(source->handle);
    source->handle = NULL;
}

/* Runs the loop for a while in which something might come; returns how many turns it made. */
static unsigned pass(struct fixture *f)
{
    struct source timer = {0};
    unsigned turns = 0;

    make_timer(f, &timer);
    set(&timer, SHORTLY);
    while (timer.calls == 0) {
        loop_kind.turn();
        turns++;
    }
    free_timer(&timer);
    return turns;
}

/* ---- descriptors ---- */

LOOP_TEST(a_descriptor_is_reported_while_it_is_ready_and_wanted)
{
    char byte;

    watch_pair(f, f->one);
    send_byte(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    want(f->one, QUORLOCK_LOOP_READ);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_READ);
    want(f->one, 0);
    forget(f->one);
    assert_true(pass(f) < SPINS);
    assert_int_equal(f->one->calls, 0);
    want(f->one, QUORLOCK_LOOP_READ);
    UNTIL(f->one->calls >= 1);
    assert_int_equal(read(f->one->fd, &byte, 1), 1);
    forget(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    unwatch(f->one);
}

LOOP_TEST(each_kind_of_readiness_is_told)
{
    static char bytes[65536];

    watch_pair(f, f->one);
    send_byte(f->one);
    want(f->one, QUORLOCK_LOOP_READ | QUORLOCK_LOOP_WRITE);
    UNTIL(f->one->events == (QUORLOCK_LOOP_READ | QUORLOCK_LOOP_WRITE));
    want(f->one, QUORLOCK_LOOP_WRITE);
    forget(f->one);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_WRITE);
    while (write(f->one->fd, bytes, sizeof(bytes)) > 0) continue;
    forget(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    while (read(f->one->peer, bytes, sizeof(bytes)) > 0) continue;
    UNTIL(f->one->calls >= 1);
    unwatch(f->one);
}

LOOP_TEST(a_hang_up_is_whatever_is_wanted)
{
    watch_pair(f, f->one);
    close(f->one->peer);
    f->one->peer = -1;
    want(f->one, QUORLOCK_LOOP_READ);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_READ);
    want(f->one, QUORLOCK_LOOP_WRITE);
    forget(f->one);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_WRITE);
    want(f->one, 0);
    forget(f->one);
    /* Nor does the loop spin because of it. */
    assert_true(pass(f) < SPINS);
    assert_int_equal(f->one->calls, 0);
    unwatch(f->one);
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static void connect_to(struct fixture *f, struct source *source, const struct sockaddr_in *address)
{
    source->f = f;
    source->peer = -1;
    source->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(source->fd, (const struct sockaddr *)address, sizeof(*address)), -1);
    assert_int_equal(errno, EINPROGRESS);
    source->handle = f->loop.watch_new(f->loop.arg, source->fd, on_ready, source);
    assert_non_null(source->handle);
}

/* The error of a socket, once, as SO_ERROR has it. */
static int error_of(const struct source *source)
{
    int error = 0;
    socklen_t length = sizeof(error);

    assert_int_equal(getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    return error;
}

LOOP_TEST(an_error_is_whatever_is_wanted)
{
    struct sockaddr_in address;
    int closed = listen_on(&address); /* it does not listen yet */

    connect_to(f, f->one, &address);
    want(f->one, QUORLOCK_LOOP_WRITE);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_WRITE);
    assert_int_equal(error_of(f->one), ECONNREFUSED);
    unwatch(f->one);
    close(closed);
}

LOOP_TEST(a_reset_is_told_until_the_end)
{
    const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in address;
    int listener = listen_on(&address), peer;
    char byte;

    assert_int_equal(listen(listener, 1), 0);
    connect_to(f, f->one, &address);
    want(f->one, QUORLOCK_LOOP_WRITE);
    UNTIL(f->one->calls >= 1);
    assert_int_equal(error_of(f->one), 0);
    peer = accept(listener, NULL, NULL);
    want(f->one, QUORLOCK_LOOP_READ);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(peer);
    forget(f->one);
    UNTIL(f->one->calls >= 3);
    assert_int_equal(f->one->events, QUORLOCK_LOOP_READ);
    assert_int_equal(read(f->one->fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
    unwatch(f->one);
    close(listener);
}

/* The number of the descriptor is that of another one at once, as after a connection that ends and begins again. */
static void watch_anew(struct source *source)
{
    int fds[2], fd = source->fd;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    unwatch(source);
    assert_int_equal(dup3(fds[0], fd, O_CLOEXEC), fd);
    close(fds[0]);
    source->more = NULL;
    *source->other = (struct source){.f = source->f, .fd = fd, .peer = fds[1]};
    source->other->handle = source->f->loop.watch_new(source->f->loop.arg, fd, on_ready, source->other);
    assert_non_null(source->other->handle);
    want(source->other, QUORLOCK_LOOP_READ);
}

LOOP_TEST(a_descriptor_ends_and_comes_back_inside_its_own_callback)
{
    watch_pair(f, f->one);
    send_byte(f->one);
    f->one->more = watch_anew;
    want(f->one, QUORLOCK_LOOP_READ | QUORLOCK_LOOP_WRITE);
    UNTIL(f->one->calls >= 1);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    assert_int_equal(f->two->calls, 0);
    send_byte(f->two);
    UNTIL(f->two->calls >= 3);
    assert_int_equal(f->two->events, QUORLOCK_LOOP_READ);
    unwatch(f->two);
}

static void unwatch_other(struct source *source)
{
    if (source->other->handle != NULL) unwatch(source->other);
}

static void do_not_want_other(struct source *source)
{
    if (source->other->calls == 0) want(source->other, 0);
}

static void two_ready(struct fixture *f, void (*more)(struct source *))
{
    for (struct source *source = f->one; source <= f->two; source++) {
        watch_pair(f, source);
        send_byte(source);
        source->more = more;
        want(source, QUORLOCK_LOOP_READ);
    }
    UNTIL(f->one->calls + f->two->calls > 0);
    pass(f);
    assert_true((f->one->calls == 0) != (f->two->calls == 0));
}

/* Both are ready in the same turn. */
LOOP_TEST(a_descriptor_ends_inside_the_callback_of_another)
{
    two_ready(f, unwatch_other);
    unwatch(f->one->handle != NULL ? f->one : f->two);
}

LOOP_TEST(a_descriptor_is_not_wanted_since_the_callback_of_another)
{
    two_ready(f, do_not_want_other);
    unwatch(f->one);
    unwatch(f->two);
}

/* ---- timers ---- */

LOOP_TEST(a_timer_fires_once_and_not_early)
{
    uint64_t since_us = clock_us();

    make_timer(f, f->one);
    set(f->one, SHORTLY);
    UNTIL(f->one->calls > 0);
    assert_true(clock_us() - since_us >= SHORTLY - EARLY_US);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    set(f->one, 0);
    UNTIL(f->one->calls == 2);
    free_timer(f->one);
}

LOOP_TEST(a_timer_can_be_moved_and_stopped)
{
    make_timer(f, f->one);
    set(f->one, MS);
    set(f->one, FAR);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    set(f->one, MS);
    UNTIL(f->one->calls == 1);
    set(f->one, MS);
    f->loop.timer_stop(f->one->handle);
    f->loop.timer_stop(f->one->handle);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    set(f->one, MS);
    UNTIL(f->one->calls == 2);
    set(f->one, MS);
    free_timer(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 2);
}

static void set_again(struct source *source)
{
    set(source, 0);
}

/* Nor does one that is set again and again keep the loop from its descriptors. */
LOOP_TEST(a_timer_is_set_inside_its_own_callback)
{
    watch_pair(f, f->two);
    send_byte(f->two);
    make_timer(f, f->one);
    f->one->more = set_again;
    set(f->one, 0);
    want(f->two, QUORLOCK_LOOP_READ);
    UNTIL(f->one->calls >= 3 && f->two->calls >= 3);
    f->one->more = free_timer;
    UNTIL(f->one->handle == NULL);
    forget(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    unwatch(f->two);
}

static void free_other_timer(struct source *source)
{
    if (source->other->handle != NULL && source->other->calls == 0) free_timer(source->other);
}

static void stop_other_timer(struct source *source)
{
    if (source->other->calls == 0) source->f->loop.timer_stop(source->other->handle);
}

static void move_other_timer(struct source *source)
{
    if (source->other->calls == 0) set(source->other, FAR);
}

static void two_timers_due(struct fixture *f, void (*more)(struct source *))
{
    uint64_t due_us = clock_us() + 10 * MS;

    for (struct source *source = f->one; source <= f->two; source++) {
        forget(source);
        make_timer(f, source);
        source->more = more;
        set(source, MS);
    }
    while (clock_us() < due_us) continue;
    UNTIL(f->one->calls + f->two->calls > 0);
    pass(f);
    assert_int_equal(f->one->calls + f->two->calls, 1);
    for (struct source *source = f->one; source <= f->two; source++) {
        if (source->handle != NULL) free_timer(source);
    }
}

LOOP_TEST(a_timer_that_is_due_changes_inside_the_callback_of_another)
{
    two_timers_due(f, free_other_timer);
    two_timers_due(f, stop_other_timer);
    two_timers_due(f, move_other_timer);
}

/* ---- tasks ---- */

LOOP_TEST(a_task_runs_once_however_often_it_is_asked_for)
{
    make_task(f, f->one);
    pass(f);
    assert_int_equal(f->one->calls, 0);
    for (unsigned i = 0; i < 3; i++) run(f->one);
    UNTIL(f->one->calls > 0);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    run(f->one);
    f->loop.task_stop(f->one->handle);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    run(f->one);
    f->loop.task_stop(f->one->handle);
    run(f->one);
    UNTIL(f->one->calls == 2);
    pass(f);
    assert_int_equal(f->one->calls, 2);
    run(f->one);
    free_task(f->one);
    pass(f);
    assert_int_equal(f->one->calls, 2);
}

static void stop_and_run_other(struct source *source)
{
    source->f->loop.task_stop(source->other->handle);
    run(source->other);
    run(source->other);
}

static void stop_other_task(struct source *source)
{
    if (source->other->calls == 0) source->f->loop.task_stop(source->other->handle);
}

static void free_other_task(struct source *source)
{
    if (source->other->handle != NULL && source->other->calls == 0) free_task(source->other);
}

static void two_tasks(struct fixture *f, void (*more)(struct source *))
{
    forget(f->one);
    forget(f->two);
    f->one->more = f->two->more = more;
    run(f->one);
    run(f->two);
    UNTIL(f->one->calls + f->two->calls > 0);
    pass(f);
    assert_int_equal(f->one->calls + f->two->calls, 1);
}

LOOP_TEST(a_task_changes_inside_the_callback_of_another)
{
    make_task(f, f->one);
    make_task(f, f->two);
    f->one->more = stop_and_run_other;
    run(f->one);
    UNTIL(f->two->calls > 0);
    pass(f);
    assert_int_equal(f->one->calls, 1);
    assert_int_equal(f->two->calls, 1);
    two_tasks(f, stop_other_task);
    two_tasks(f, free_other_task);
    free_task(f->one->handle != NULL ? f->one : f->two);
}

static void run_again(struct source *source)
{
    if (source->calls < 3) run(source);
}

LOOP_TEST(a_task_is_run_inside_its_own_callback)
{
    make_task(f, f->one);
    f->one->more = run_again;
    run(f->one);
    UNTIL(f->one->calls == 3);
    pass(f);
    assert_int_equal(f->one->calls, 3);
    f->one->more = free_task;
    run(f->one);
    UNTIL(f->one->handle == NULL);
}

static void run_third(struct source *source)
{
    run(source->f->three);
    want(source, 0);
}

/* ---- many ---- */

LOOP_TEST(many_of_each)
{
    bool all = false;

    for (unsigned i = 0; i < MANY; i++) {
        watch_pair(f, &f->many[0][i]);
        make_timer(f, &f->many[1][i]);
        make_task(f, &f->many[2][i]);
        send_byte(&f->many[0][i]);
        want(&f->many[0][i], QUORLOCK_LOOP_READ);
        set(&f->many[1][i], (uint64_t)i * 100);
        run(&f->many[2][i]);
    }
    assert_int_equal(guard_live(), 3 * MANY);
    while (!all) {
        loop_kind.turn();
        all = true;
        for (unsigned i = 0; i < 3 * MANY; i++) all = all && f->many[i / MANY][i % MANY].calls > 0;
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(f->many[1][i].calls, 1);
        assert_int_equal(f->many[2][i].calls, 1);
        unwatch(&f->many[0][i]);
        free_timer(&f->many[1][i]);
        free_task(&f->many[2][i]);
    }
    assert_int_equal(guard_live(), 0);
}

/* What is ready in one turn comes before the tasks that it asks for, so that what it sends leaves together. */
LOOP_TEST(a_task_comes_behind_what_is_ready)
{
    make_task(f, f->three);
    for (unsigned i = 0; i < MANY / 10; i++) {
        watch_pair(f, &f->many[0][i]);
        send_byte(&f->many[0][i]);
        f->many[0][i].more = run_third;
        want(&f->many[0][i], QUORLOCK_LOOP_READ);
    }
    UNTIL(f->three->calls > 0);
    pass(f);
    assert_int_equal(f->three->calls, 1);
    for (unsigned i = 0; i < MANY / 10; i++) unwatch(&f->many[0][i]);
    free_task(f->three);
}
