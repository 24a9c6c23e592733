/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_lead.c - which threads run the loop of the sync facade, and what happens to them meanwhile
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sync_fixture.h"

#define SMALL_STACK ((size_t)64 * 1024)

static int gate[2]; /* the thread that a signal stopped goes on when a byte comes */
static atomic_bool is_stopped;

static void stop_and_say(int number)
{
    char byte;

    (void)number;
    atomic_store(&is_stopped, true);
    while (read(gate[0], &byte, 1) < 0) continue;
}

struct caller {
    pthread_t thread;
    quorlock_sync_lock *free, *taken;
    atomic_bool waits;
    int status;
};

/* After some calls it leads. */
static void *calls_and_waits(void *arg)
{
    struct caller *caller = arg;

    for (int i = 0; i < 20; i++) {
        (void)quorlock_sync_lock_acquire(caller->free, NULL);
        (void)quorlock_sync_lock_release(caller->free, NULL);
    }
    atomic_store(&caller->waits, true);
    caller->status = quorlock_sync_lock_acquire(caller->taken, NULL);
    return NULL;
}

/* A thread that leads blocks all signals, and hands the loop on if its own call takes long. */
BLOCKING_TEST(a_thread_that_a_signal_stops_in_a_call_stops_nobody_else)
{
    const struct sigaction stopping = {.sa_handler = stop_and_say};
    struct sigaction before;
    struct caller caller = {.free = new_lock("free", LONG_LEASE_MS, 0),
                            .taken = new_lock("key", LONG_LEASE_MS, NO_LIMIT)};
    quorlock_sync_lock *held = new_lock("key", LONG_LEASE_MS, 0);
    uint64_t end_us = clock_us() + GENEROUS_US;

    assert_int_equal(pipe(gate), 0);
    assert_int_equal(sigaction(SIGUSR1, &stopping, &before), 0);
    assert_int_equal(quorlock_sync_lock_acquire(held, NULL), QUORLOCK_OK);
    assert_int_equal(pthread_create(&caller.thread, NULL, calls_and_waits, &caller), 0);
    while (!atomic_load(&caller.waits)) assert_true(clock_us() < end_us);
    assert_int_equal(pthread_kill(caller.thread, SIGUSR1), 0);
    while (!atomic_load(&is_stopped)) assert_true(clock_us() < end_us);
    assert_int_equal(quorlock_sync_lock_release(held, NULL), QUORLOCK_OK);
    assert_int_equal(write(gate[1], "", 1), 1);
    assert_int_equal(pthread_join(caller.thread, NULL), 0);
    assert_int_equal(caller.status, QUORLOCK_OK);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    close(gate[0]);
    close(gate[1]);
    quorlock_sync_lock_free(caller.free);
    quorlock_sync_lock_free(caller.taken);
    quorlock_sync_lock_free(held);
}

struct told {
    pthread_t thread;
    atomic_bool called;
};

static void note_thread(struct told *told)
{
    told->thread = pthread_self();
    atomic_store(&told->called, true);
}

static void note_loss(quorlock_sync_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    (void)lock;
    (void)loss;
    note_thread(arg);
}

static void note_end(const struct quorlock_sync_result *result, void *arg)
{
    (void)result;
    note_thread(arg);
}

static void call_until(const struct told *told, quorlock_sync_lock *lock)
{
    uint64_t end_us = clock_us() + GENEROUS_US;

    while (!atomic_load(&told->called)) {
        assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
        assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
        assert_true(clock_us() < end_us);
    }
}

/* Also while a thread calls all the time. */
BLOCKING_TEST(callbacks_run_in_the_clients_thread_whoever_calls)
{
    quorlock_sync_lock *lost = new_lock("key", KEPT_LEASE_MS, 0), *other = new_lock("other", LONG_LEASE_MS, 0);
    struct told end = {0}, loss = {0}, again = {0};

    assert_int_equal(quorlock_sync_lock_start_acquire(lost, note_end, &end), 0);
    call_until(&end, other);
    quorlock_sync_lock_set_on_lost(lost, note_loss, &loss);
    drop_by_hand("key");
    call_until(&loss, other);
    assert_int_equal(pthread_equal(loss.thread, pthread_self()), 0);
    assert_int_equal(pthread_equal(loss.thread, end.thread), 1);
    quorlock_sync_lock_set_on_lost(lost, NULL, NULL);
    (void)quorlock_sync_lock_release(lost, NULL);
    call_until(&loss, other);
    assert_int_equal(quorlock_sync_lock_start_acquire(lost, note_end, &again), 0);
    call_until(&again, other);
    assert_int_equal(pthread_equal(again.thread, end.thread), 1);
    quorlock_sync_lock_free(lost);
    quorlock_sync_lock_free(other);
}

/* ---- who leads has its signals blocked ---- */

struct cycler {
    pthread_t thread;
    atomic_int id;
    atomic_bool over;
    int rounds; /* 0: until it is over */
    bool idle;  /* it runs only when the machine has nothing else to do */
    const char *failure;
};

/* has_blocked - return whether that thread blocks SIGUSR1 now, by the system's own account. */
static bool has_blocked(int id)
{
    char path[64], line[256];
    unsigned long long blocked = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", id);
    file = fopen(path, "r");
    if (file == NULL) return false;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "SigBlk:", 7) == 0) blocked = strtoull(line + 7, NULL, 16);
    }
    fclose(file);
    return (blocked >> (SIGUSR1 - 1) & 1) != 0;
}

static void *cycles(void *arg)
{
    const struct sched_param none = {0};
    struct cycler *cycler = arg;
    quorlock_sync_lock *lock;
    sigset_t blocked;

    if (cycler->idle && pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) != 0)
        cycler->failure = "no such policy";
    lock = new_lock("key", LONG_LEASE_MS, 0);
    atomic_store(&cycler->id, (int)syscall(SYS_gettid));
    for (int i = 0; cycler->rounds > 0 ? i < cycler->rounds : !atomic_load(&cycler->over); i++) {
        if (quorlock_sync_lock_acquire(lock, NULL) != 0 || quorlock_sync_lock_release(lock, NULL) != 0)
            cycler->failure = "a call failed";
    }
    atomic_store(&cycler->over, true);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (sigismember(&blocked, SIGUSR1) != 0) cycler->failure = "a signal is blocked after a call";
    quorlock_sync_lock_free(lock);
    return NULL;
}

BLOCKING_TEST(a_thread_that_calls_alone_leads_with_its_signals_blocked)
{
    struct cycler cycler = {0};
    uint64_t end_us = clock_us() + GENEROUS_US;
    bool led = false;

    assert_int_equal(pthread_create(&cycler.thread, NULL, cycles, &cycler), 0);
    while (!led && clock_us() < end_us) led = atomic_load(&cycler.id) != 0 && has_blocked(atomic_load(&cycler.id));
    atomic_store(&cycler.over, true);
    assert_int_equal(pthread_join(cycler.thread, NULL), 0);
    assert_true(led);
    if (cycler.failure != NULL) fail_msg("%s", cycler.failure);
}

static void expect_no_lead(struct cycler *cycler, size_t stack_size)
{
    pthread_attr_t attributes;
    bool led = false;

    assert_int_equal(pthread_attr_init(&attributes), 0);
    if (stack_size > 0) assert_int_equal(pthread_attr_setstacksize(&attributes, stack_size), 0);
    assert_int_equal(pthread_create(&cycler->thread, &attributes, cycles, cycler), 0);
    while (!atomic_load(&cycler->over)) led |= atomic_load(&cycler->id) != 0 && has_blocked(atomic_load(&cycler->id));
    assert_int_equal(pthread_join(cycler->thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_false(led);
    if (cycler->failure != NULL) fail_msg("%s", cycler->failure);
}

/* The machine may not let it run. */
BLOCKING_TEST(a_thread_that_runs_only_when_the_machine_is_idle_does_not_lead)
{
    expect_no_lead(&(struct cycler){.rounds = 50, .idle = true}, 0);
}

BLOCKING_TEST(a_thread_with_a_small_stack_does_not_lead)
{
    expect_no_lead(&(struct cycler){.rounds = 200}, SMALL_STACK);
}
