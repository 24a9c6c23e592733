/* SPDX-License-Identifier: BSD-3-Clause */
/* test_machine.c - a machine's loop does as libevent's does, and its clocks, memory, names and deaths as machine.h
 * says */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/address.h"
#include "machine.h"
#include "test.h"

#define MS       UINT64_C(1000)
#define SECOND   UINT64_C(1000000)
#define BOOT_US  (100 * SECOND)
#define WALL_US  (1800000000 * SECOND)
#define MACHINES 2

/* What runs notes its letter; some do something more. */
struct noted {
    struct fixture *f;
    char letter;
    void (*more)(struct fixture *);
};

struct fixture {
    struct queue queue;
    struct net *net;
    struct machine *machines[MACHINES], *machine; /* the first */
    struct system *system, at_hand;
    struct watch *watch;
    struct alarm *precise;
    struct timer *plain;
    struct task *task, *other_task;
    int fd;
    char noted[256];
    struct noted notes[8];
    size_t n_notes;
    uint64_t noted_us[8];
    struct conn *conn;
    unsigned turns;
};

static void note(struct fixture *f, char letter)
{
    size_t n = strlen(f->noted);

    assert_true(n + 1 < sizeof(f->noted));
    f->noted[n] = letter;
    if (n < LENGTH(f->noted_us)) f->noted_us[n] = f->queue.now_us;
}

static void on_noted(void *arg)
{
    const struct noted *noted = arg;

    note(noted->f, noted->letter);
    if (noted->more != NULL) noted->more(noted->f);
}

static void *noting(struct fixture *f, char letter, void (*more)(struct fixture *))
{
    assert_true(f->n_notes < LENGTH(f->notes));
    f->notes[f->n_notes] = (struct noted){f, letter, more};
    return &f->notes[f->n_notes++];
}

static void on_ready(void *arg, unsigned events)
{
    struct fixture *f = ((struct noted *)arg)->f;

    assert_true(events == WATCH_READ || events == WATCH_WRITE);
    note(f, events == WATCH_READ ? 'r' : 'w');
    if (((struct noted *)arg)->more != NULL) ((struct noted *)arg)->more(f);
}

static void on_turned(void *arg, struct machine *machine)
{
    ((struct fixture *)arg)->turns++;
}

static void *on_accept(void *server, struct conn *conn)
{
    ((struct fixture *)server)->conn = conn;
    return server;
}

static void on_input(void *session, const void *bytes, size_t size)
{
    note(session, 'i');
}

static void on_gone(void *session)
{
    note(session, 'g');
}

static void boot(struct fixture *f, int i, uint64_t seed)
{
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 0}, {0, BOOT_US, 0}, {0, WALL_US, 0}};
    const struct machine_events events = {.turned = on_turned, .arg = f};

    machine_boot(f->machines[i], (uint32_t)i, seed, skews, &events);
}

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.net = net_new(&f.queue);
    net_reset(f.net, 1, MACHINES, 2);
    for (uint32_t i = 0; i < 2; i++) net_listen(f.net, i, &(struct net_server){on_accept, on_input, on_gone, &f});
    for (int i = 0; i < MACHINES; i++) {
        f.machines[i] = machine_new(&f.queue, f.net);
        boot(&f, i, (uint64_t)i);
    }
    f.machine = f.machines[0];
    f.at_hand = *machine_system(f.machine);
    f.system = &f.at_hand;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    queue_clear(&f->queue);
    for (int i = 0; i < MACHINES; i++) machine_free(f->machines[i]);
    net_free(f->net);
    queue_free(&f->queue);
    return 0;
}

#define MACHINE_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void pass(struct fixture *f, uint64_t us)
{
    uint64_t until_us = f->queue.now_us + us;

    while (queue_next(&f->queue, until_us)) continue;
}

static void open_socket(struct fixture *f, uint32_t server, void (*more)(struct fixture *))
{
    struct address address = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *to = (struct sockaddr_in *)&address.storage;

    to->sin_family = AF_INET;
    to->sin_port = htons(6379);
    to->sin_addr.s_addr = htonl(NET_SUBNET | net_address(f->net, server));
    f->fd = f->system->ops->connect(f->system, &address, 5000);
    assert_true(f->fd >= 0);
    f->watch = f->system->loop.watch_new(f->system->loop.arg, f->fd, on_ready, noting(f, ' ', more));
    pass(f, 10 * MS);
    assert_string_equal(f->noted, "");
}

static void close_socket(struct fixture *f)
{
    f->system->loop.watch_free(f->watch);
    f->system->ops->close(f->system, f->fd, false);
}

static void begin_with(struct fixture *f, void (*more)(struct fixture *))
{
    machine_call(f->machine, on_noted, noting(f, '.', more));
}

/* ---- the loop ---- */

static void unwatch(struct fixture *f)
{
    f->system->loop.watch_set(f->watch, 0);
}

MACHINE_TEST(a_descriptor_is_reported_while_it_is_ready_and_wanted)
{
    char byte;

    open_socket(f, 0, NULL);
    net_reply(f->conn, "x", 1);
    pass(f, 10 * MS);
    assert_string_equal(f->noted, "");
    f->system->loop.watch_set(f->watch, WATCH_READ);
    pass(f, MS);
    assert_true(strlen(f->noted) > 20 && strspn(f->noted, "r") == strlen(f->noted));
    assert_int_equal(f->system->ops->recv(f->system, f->fd, &byte, 1), 1);
    memset(f->noted, 0, sizeof(f->noted));
    pass(f, SECOND);
    assert_string_equal(f->noted, "");
    close_socket(f);
}

/* Of both kinds, in any order, each by itself; and none that is not wanted any more. */
MACHINE_TEST(each_kind_is_reported_by_itself)
{
    open_socket(f, 0, NULL);
    net_reply(f->conn, "x", 1);
    f->system->loop.watch_set(f->watch, WATCH_READ | WATCH_WRITE);
    pass(f, MS);
    assert_contains(f->noted, "r");
    assert_contains(f->noted, "w");
    assert_contains(f->noted, "rw");
    assert_contains(f->noted, "wr");
    f->notes[0].more = unwatch;
    memset(f->noted, 0, sizeof(f->noted));
    pass(f, MS);
    assert_int_equal(strlen(f->noted), 1);
    close_socket(f);
}

static void start_all(struct fixture *f)
{
    const struct quorlock_loop *loop = &f->system->loop;

    loop->task_run(f->task);
    loop->timer_set(f->plain, 0);
    f->system->ops->alarm_set(f->precise, 0);
    machine_call(f->machine, on_noted, noting(f, 'c', NULL));
    loop->task_run(f->task);
}

static void run_other(struct fixture *f)
{
    f->system->loop.task_run(f->other_task);
}

static void make_all(struct fixture *f)
{
    const struct quorlock_loop *loop = &f->system->loop;

    f->task = loop->task_new(loop->arg, on_noted, noting(f, 't', run_other));
    f->other_task = loop->task_new(loop->arg, on_noted, noting(f, 'o', NULL));
    f->plain = loop->timer_new(loop->arg, on_noted, noting(f, 'p', run_other));
    f->precise = f->system->ops->alarm_new(f->system, on_noted, noting(f, 'P', run_other));
}

static void free_all(struct fixture *f)
{
    const struct quorlock_loop *loop = &f->system->loop;

    loop->task_free(f->task);
    loop->task_free(f->other_task);
    loop->timer_free(f->plain);
    f->system->ops->alarm_free(f->precise);
    assert_int_equal(machine_blocks(f->machine), 0);
    assert_int_equal(machine_descriptors(f->machine), 0);
}

/* A task runs once, in the turn in which it was asked for, behind what is active; a plain timer behind the rest. */
MACHINE_TEST(a_turn_has_libevents_order)
{
    const struct machine_counts *counts = machine_counted(f->machine);

    make_all(f);
    begin_with(f, start_all);
    pass(f, SECOND);
    assert_memory_equal(f->noted, ".to", 3);
    assert_true(strcmp(f->noted + 3, "cPpo") == 0 || strcmp(f->noted + 3, "Pcpo") == 0);
    assert_int_equal(counts->turns, 2);
    assert_int_equal(f->turns, 2);
    assert_int_equal(counts->callbacks, 7);
    assert_int_equal(counts->spins, 2);
    free_all(f);
}

static void set_again(struct fixture *f)
{
    f->system->loop.timer_set(f->plain, SECOND);
    f->system->ops->alarm_set(f->precise, 2 * SECOND);
}

MACHINE_TEST(a_timer_that_is_set_again_fires_then)
{
    make_all(f);
    f->system->ops->alarm_set(f->precise, 500);
    f->system->loop.timer_set(f->plain, 0);
    begin_with(f, set_again);
    pass(f, 3 * SECOND);
    assert_string_equal(f->noted, ".poPo");
    assert_in_range(f->noted_us[1], SECOND, SECOND + 100);
    assert_in_range(f->noted_us[3], 2 * SECOND, 2 * SECOND + 100);
    free_all(f);
}

/* ---- clocks and stalls ---- */

MACHINE_TEST(timers_follow_the_clock)
{
    make_all(f);
    f->system->ops->alarm_set(f->precise, 10 * SECOND);
    skew_rate(machine_clock(f->machine, MACHINE_BOOT), f->queue.now_us, 1000000); /* twice as fast */
    pass(f, 5 * SECOND + 100);
    assert_string_equal(f->noted, "Po");
    f->system->ops->alarm_set(f->precise, 100 * SECOND);
    skew_step(machine_clock(f->machine, MACHINE_BOOT), f->queue.now_us, (int64_t)(90 * SECOND));
    pass(f, 5 * SECOND + 100);
    assert_string_equal(f->noted, "PoPo");
    assert_int_equal(f->system->ops->boot_us(f->system), BOOT_US + 2 * (f->queue.now_us) + 90 * SECOND);
    assert_int_equal(f->system->ops->wall_us(f->system), WALL_US + f->queue.now_us);
    free_all(f);
}

/* The plain timer does not count the time of a suspend. */
MACHINE_TEST(a_suspended_machine_wakes_late)
{
    make_all(f);
    f->system->loop.timer_set(f->plain, 5 * SECOND);
    f->system->ops->alarm_set(f->precise, 5 * SECOND);
    machine_stall(f->machine, 60 * SECOND, true);
    pass(f, 60 * SECOND - 1);
    assert_string_equal(f->noted, "");
    pass(f, 10);
    assert_string_equal(f->noted, "Po");
    pass(f, 5 * SECOND);
    assert_string_equal(f->noted, "Popo");
    assert_int_equal(f->system->ops->boot_us(f->system) - f->system->ops->raw_us(f->system), 60 * SECOND);
    assert_int_equal(machine_now_us(f->machine), BOOT_US + f->queue.now_us);
    free_all(f);
}

/* The clock does not leap ahead for who looks meanwhile. */
MACHINE_TEST(a_suspended_machine_is_suspended_for_longer)
{
    uint64_t raw_us, meanwhile_us;

    make_all(f);
    raw_us = f->system->ops->raw_us(f->system);
    machine_stall(f->machine, 60 * SECOND, true);
    pass(f, 10 * SECOND);
    meanwhile_us = f->system->ops->raw_us(f->system);
    machine_stall(f->machine, 70 * SECOND, true);
    assert_in_range(f->system->ops->raw_us(f->system), 0, meanwhile_us);
    pass(f, 70 * SECOND);
    assert_int_equal(f->system->ops->raw_us(f->system), raw_us);
    free_all(f);
}

/* No clock loses the same time twice, nor more than it would have shown: none goes back. */
MACHINE_TEST(a_slow_machine_is_suspended_while_it_is_paused)
{
    make_all(f);
    skew_rate(machine_clock(f->machine, MACHINE_BOOT), f->queue.now_us, -500000);
    f->system->loop.timer_set(f->plain, 5 * SECOND);
    machine_pause(f->machine, 60 * SECOND);
    pass(f, 10 * SECOND);
    machine_stall(f->machine, 70 * SECOND, true);
    pass(f, 80 * SECOND - 10);
    assert_string_equal(f->noted, "");
    pass(f, 20);
    assert_string_equal(f->noted, "po");
    free_all(f);
}

static void stall_ten_seconds(struct fixture *f)
{
    uint64_t began_us = f->queue.now_us;

    machine_stall(f->machines[0], 10 * SECOND, false);
    assert_int_equal(f->queue.now_us - began_us, 10 * SECOND);
    note(f, 'e');
}

static void stall_inside(struct fixture *f)
{
    machine_stall(f->machines[1], 60 * SECOND, false);
    assert_int_equal(f->queue.now_us, 10 * SECOND);
    note(f, 'b');
}

static void on_late(void *arg)
{
    struct fixture *f = arg;

    machine_call(f->machines[1], on_noted, noting(f, 'a', stall_inside));
}

/* The others go on, also with stalls of their own, which are shortened; its own timer has to wait. */
MACHINE_TEST(a_callback_stands_still_while_the_others_go_on)
{
    struct moment late = {.happen = on_late, .arg = f};

    make_all(f);
    f->system->ops->alarm_set(f->precise, SECOND);
    queue_set(&f->queue, &late, 2 * SECOND);
    begin_with(f, stall_ten_seconds);
    pass(f, 11 * SECOND);
    assert_string_equal(f->noted, ".abePo");
    assert_int_equal(f->noted_us[1], 2 * SECOND);
    assert_in_range(f->noted_us[4], 10 * SECOND, 10 * SECOND + 100);
    free_all(f);
}

static void stall_and_set(struct fixture *f)
{
    machine_stall(f->machine, 3 * SECOND, false);
    f->system->loop.timer_set(f->plain, 5 * SECOND);
    f->system->ops->alarm_set(f->precise, 5 * SECOND);
}

/* It counts from the time at which the loop last looked. */
MACHINE_TEST(a_plain_timer_of_a_long_callback_is_early)
{
    make_all(f);
    begin_with(f, stall_and_set);
    pass(f, 10 * SECOND);
    assert_string_equal(f->noted, ".poPo");
    assert_in_range(f->noted_us[1], 5 * SECOND, 5 * SECOND + 100);
    assert_in_range(f->noted_us[3], 8 * SECOND, 8 * SECOND + 100);
    free_all(f);
}

static void step_back(void *arg)
{
    struct fixture *f = arg;

    skew_step(machine_clock(f->machine, MACHINE_BOOT), f->queue.now_us, -(int64_t)SECOND);
}

MACHINE_TEST(a_step_at_the_very_time_of_a_timer_puts_it_off)
{
    struct moment step = {.happen = step_back, .arg = f};

    make_all(f);
    queue_set(&f->queue, &step, SECOND);
    f->system->ops->alarm_set(f->precise, SECOND);
    pass(f, 2 * SECOND - 1);
    assert_string_equal(f->noted, "");
    pass(f, 10);
    assert_string_equal(f->noted, "Po");
    free_all(f);
}

/* ---- memory ---- */

static int on_fork(void (*act)(struct fixture *), struct fixture *f)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        act(f);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void free_others(struct fixture *f)
{
    const struct alloc_hooks *hooks = machine_allocator(f->machines[1]);
    void *block = hooks->allocate(hooks->arg, 10);

    hooks->release(machine_allocator(f->machines[0])->arg, block);
}

static void free_twice(struct fixture *f)
{
    const struct alloc_hooks *hooks = machine_allocator(f->machine);
    void *block = hooks->allocate(hooks->arg, 10);

    hooks->release(hooks->arg, block);
    hooks->release(hooks->arg, block);
}

static void write_to_freed(struct fixture *f)
{
    const struct alloc_hooks *hooks = machine_allocator(f->machine);
    char *volatile block = hooks->allocate(hooks->arg, 10);

    hooks->release(hooks->arg, block);
    block[9] = 1; /* NOLINT(clang-analyzer-unix.Malloc): that is what must be found */
    machine_free(f->machine);
}

static void use_closed(struct fixture *f)
{
    (void)f->system->ops->send(f->system, f->fd, "x", 1);
}

MACHINE_TEST(memory_is_counted_and_poisoned_and_its_own)
{
    const struct alloc_hooks *hooks = machine_allocator(f->machine);
    unsigned char *block = hooks->allocate(hooks->arg, 10), *moved;

    assert_int_equal(block[9], 0xa5);
    memset(block, 7, 10);
    moved = hooks->reallocate(hooks->arg, block, 20);
    assert_ptr_not_equal(moved, block);
    assert_int_equal(moved[9], 7);
    assert_int_equal(moved[10], 0xa5);
    assert_int_equal(machine_blocks(f->machine), 1);
    hooks->release(hooks->arg, moved);
    assert_int_equal(machine_blocks(f->machine), 0);
    assert_int_equal(machine_counted(f->machine)->allocations, 2);
    assert_int_equal(on_fork(free_others, f), SIGABRT);
    /* A sanitizer exits. */
    assert_int_not_equal(on_fork(free_twice, f), 0);
    assert_int_not_equal(on_fork(write_to_freed, f), 0);
}

MACHINE_TEST(descriptors_are_limited_and_must_be_open)
{
    open_socket(f, 0, NULL);
    machine_limit_descriptors(f->machine, 1);
    assert_int_equal(machine_descriptors(f->machine), 1);
    assert_null(f->system->ops->alarm_new(f->system, on_noted, NULL));
    close_socket(f);
    machine_limit_descriptors(f->machine, 0);
    assert_int_equal(f->system->ops->connect(f->system, &(struct address){.length = 1}, 0), -1);
    assert_int_equal(errno, EMFILE);
    assert_int_equal(on_fork(use_closed, f), SIGABRT);
}

/* ---- names ---- */

static void on_resolved(void *arg, const struct addresses *answer)
{
    struct fixture *f = arg;

    if (answer->n == 0) {
        note(f, '-');
        assert_string_equal(answer->why, "no such host");
        return;
    }
    note(f, (char)('0' + ntohl(((const struct sockaddr_in *)&answer->at[0].storage)->sin_addr.s_addr) % 256));
    assert_int_equal(ntohs(((const struct sockaddr_in *)&answer->at[0].storage)->sin_port), 1234);
}

MACHINE_TEST(a_host_name_is_where_the_server_is)
{
    const struct system_ops *ops = f->system->ops;
    struct lookup *lookup;

    assert_non_null(ops->lookup(f->system, "node1", 1234, on_resolved, f));
    assert_string_equal(f->noted, "");
    pass(f, SECOND);
    assert_string_equal(f->noted, "2");
    net_move(f->net, 1);
    machine_names(f->machine, NEVER, false);
    lookup = ops->lookup(f->system, "node1", 1234, on_resolved, f);
    assert_non_null(ops->lookup(f->system, "node1", 1234, on_resolved, f));
    pass(f, 1000 * SECOND);
    assert_string_equal(f->noted, "2");
    ops->lookup_cancel(lookup);
    machine_names(f->machine, 10 * MS, false);
    pass(f, SECOND);
    assert_string_equal(f->noted, "23");
    machine_names(f->machine, 10 * MS, true);
    assert_non_null(ops->lookup(f->system, "node1", 1234, on_resolved, f));
    pass(f, SECOND);
    assert_string_equal(f->noted, "23-");
    assert_int_equal(machine_blocks(f->machine), 0);
}

/* ---- death ---- */

static void close_nothing(void *arg)
{
    (void)arg;
}

static void close_fd(void *arg)
{
    close_socket(arg);
}

MACHINE_TEST(servers_do_not_hear_of_a_host_that_vanished)
{
    open_socket(f, 0, NULL);
    machine_kill(f->machine, true);
    assert_int_equal(machine_bury(f->machine, close_fd, f), 0);
    pass(f, 100 * SECOND);
    assert_string_equal(f->noted, "");
}

MACHINE_TEST(a_burial_counts_what_is_left)
{
    const struct alloc_hooks *hooks = machine_allocator(f->machine);

    assert_non_null(hooks->allocate(hooks->arg, 10));
    assert_non_null(hooks->allocate(hooks->arg, 20));
    begin_with(f, NULL);
    machine_kill(f->machine, true);
    assert_int_equal(machine_bury(f->machine, close_nothing, NULL), 2);
    assert_int_equal(machine_blocks(f->machine), 0);
    /* Nor has its user another turn, also not in its next life. */
    boot(f, 0, 6);
    pass(f, SECOND);
    assert_string_equal(f->noted, "");
}
