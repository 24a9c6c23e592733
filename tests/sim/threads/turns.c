/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "parts/rng.h"

#define THREADS_MAX 8
#define MUTEXES_MAX 4
#define STACK_SIZE  ((size_t)1024 * 1024)
#define SPURIOUS    64 /* one in so many passes wakes a thread that waits */
#define PASSES_MAX  400000u
#define HELD        200 /* one in so many passes holds the thread back, for so many passes at most: */
#define HELD_MAX    2000

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(...)  (void)0
#define __sanitizer_finish_switch_fiber(...) (void)0
#endif

enum state { READY, LOCKS, WAITS, SLEEPS, JOINS, GONE };

/* A coroutine: the kernel's threads would need its scheduler for each turn, and that of a busy machine is slow. */
struct thread {
    ucontext_t context;
    void *stack, *fake_stack; /* fake: of the address sanitizer */
    enum state state;
    pthread_mutex_t *mutex; /* that it locks, or has to lock after a wait */
    pthread_cond_t *condition;
    const void *word; /* on which it sleeps */
    bool timed;       /* it wakes by itself */
    unsigned joins;
    unsigned held_until; /* this pass; the kernel lets others run */
    void *(*run)(void *);
    void *arg;
};

static struct {
    struct thread threads[THREADS_MAX];
    unsigned n, running;
    const void *main_stack;
    size_t main_size;
    struct {
        pthread_mutex_t *mutex;
        unsigned owner;
    } locked[MUTEXES_MAX];
    struct rng rng;
    uint64_t seed;
    unsigned passes;
    void (*look)(void);
} all;

uint64_t turns_between(uint64_t low, uint64_t high)
{
    return rng_between(&all.rng, low, high);
}

unsigned turns_self(void)
{
    return all.running;
}

bool turns_waits(unsigned thread)
{
    return all.threads[thread].state == WAITS || all.threads[thread].state == SLEEPS;
}

void turns_each(void (*look)(void))
{
    all.look = look;
}

void turns_begin(uint64_t seed)
{
    all.n = 1;
    all.running = 0;
    all.threads[0].state = READY;
    all.threads[0].held_until = 0;
    memset(all.locked, 0, sizeof(all.locked));
    rng_seed(&all.rng, seed, 0);
    all.seed = seed;
    all.passes = 0;
    all.look = NULL;
}

void turns_fail(const char *format, ...)
{
    static const char *const states[] = {
        "may go on", "waits for a mutex", "waits for a condition", "sleeps", "waits for the end of another",
        "has ended"};
    va_list args;

    va_start(args, format);
    (void)printf("seed %" PRIu64 ": ", all.seed);
    (void)vprintf(format, args);
    va_end(args);
    for (unsigned i = 0; i < all.n; i++)
        (void)printf("\n  thread %u %s%s", i, states[all.threads[i].state], i == all.running ? ", and runs" : "");
    (void)printf("\n  replay: sim_threads --runs 1 --seed %" PRIu64 "\n", all.seed);
    (void)fflush(stdout);
    _exit(1);
}

/* ---- whose turn it is ---- */

/* owner_of - return where the owner of that mutex is noted; a free place if nobody has it. */
static unsigned place_of(const pthread_mutex_t *mutex)
{
    unsigned place = MUTEXES_MAX;

    for (unsigned i = 0; i < MUTEXES_MAX; i++) {
        if (all.locked[i].mutex == mutex) return i;
        if (all.locked[i].mutex == NULL) place = i;
    }
    return place;
}

static bool is_locked(const pthread_mutex_t *mutex)
{
    unsigned place = place_of(mutex);

    if (place == MUTEXES_MAX) turns_fail("more mutexes than this program knows");
    return all.locked[place].mutex != NULL;
}

static bool can_run(const struct thread *thread)
{
    switch (thread->state) {
    case READY: return true;
    case LOCKS: return !is_locked(thread->mutex);
    case JOINS: return all.threads[thread->joins].state == GONE;
    case WAITS:
    case SLEEPS:
    case GONE: break;
    }
    return false;
}

static unsigned choose(void)
{
    unsigned can[THREADS_MAX];
    unsigned n = 0, held = all.n, timed = all.n;

    if (++all.passes > PASSES_MAX) turns_fail("no end after so many turns");
    if (rng_one_in(&all.rng, HELD))
        all.threads[all.running].held_until = all.passes + (unsigned)rng_below(&all.rng, HELD_MAX);
    for (unsigned i = 0; i < all.n; i++) {
        if (all.threads[i].state == WAITS && rng_one_in(&all.rng, SPURIOUS)) all.threads[i].state = LOCKS;
        if (all.threads[i].state == SLEEPS && rng_one_in(&all.rng, SPURIOUS)) all.threads[i].state = READY;
        if (all.threads[i].state == SLEEPS && all.threads[i].timed) timed = i;
        if (!can_run(&all.threads[i])) continue;
        if (all.threads[i].held_until > all.passes)
            held = i;
        else
            can[n++] = i;
    }
    if (n == 0 && held < all.n) return held;
    if (n == 0 && timed < all.n) {
        all.threads[timed].state = READY;
        return timed;
    }
    if (n == 0) turns_fail("all threads wait for each other");
    return can[rng_below(&all.rng, n)];
}

/* arrive - note that this thread runs; the sanitizer learns on which stack. */
static void arrive(unsigned self)
{
    const void *stack;
    size_t size;

    __sanitizer_finish_switch_fiber(all.threads[self].fake_stack, &stack, &size);
#ifdef __SANITIZE_ADDRESS__
    /* The first switch of all leaves the main thread's stack. */
    if (all.main_stack == NULL) {
        all.main_stack = stack;
        all.main_size = size;
    }
#else
    (void)stack;
    (void)size;
#endif
}

static void hand_to(unsigned next)
{
    unsigned self = all.running;
    struct thread *from = &all.threads[self], *to = &all.threads[next];

    all.running = next;
    __sanitizer_start_switch_fiber(from->state == GONE ? NULL : &from->fake_stack,
                                   next == 0 ? all.main_stack : to->stack, next == 0 ? all.main_size : STACK_SIZE);
    swapcontext(&from->context, &to->context);
    arrive(self);
}

void turns_pass(void)
{
    unsigned next;

    if (all.look != NULL) all.look();
    next = choose();
    if (next != all.running) hand_to(next);
}

/* ---- threads ---- */

static void begin(void)
{
    struct thread *self = &all.threads[all.running];

    arrive(all.running);
    (void)self->run(self->arg);
    self->state = GONE;
    hand_to(choose());
}

pthread_t turns_id(void)
{
    return all.running;
}

int turns_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    struct thread *thread = &all.threads[all.n];
    void *stack = thread->stack;

    (void)attributes;
    if (all.n == THREADS_MAX) turns_fail("more threads than this program knows");
    /* The stacks serve all runs. */
    if (stack == NULL) stack = malloc(STACK_SIZE);
    if (stack == NULL) abort();
    *thread = (struct thread){.stack = stack, .state = READY, .run = run, .arg = arg};
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stack;
    thread->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&thread->context, begin, 0);
    *ret = all.n++;
    turns_pass();
    return 0;
}

int turns_join(pthread_t id, void **ret)
{
    struct thread *self = &all.threads[all.running];

    (void)ret;
    self->joins = (unsigned)id;
    self->state = JOINS;
    turns_pass();
    self->state = READY;
    return 0;
}

void turns_end(void)
{
    for (unsigned i = 0; i < THREADS_MAX; i++) free(all.threads[i].stack);
}

/* ---- mutexes and conditions ---- */

/* take - lock the mutex as soon as it is this thread's turn and nobody has it. */
static void take(struct thread *self)
{
    unsigned place;

    turns_pass();
    place = place_of(self->mutex);
    all.locked[place].mutex = self->mutex;
    all.locked[place].owner = all.running;
    self->state = READY;
}

int turns_lock(pthread_mutex_t *mutex)
{
    struct thread *self = &all.threads[all.running];

    if (is_locked(mutex) && all.locked[place_of(mutex)].owner == all.running)
        turns_fail("a thread locks a mutex that it has");
    self->mutex = mutex;
    self->state = LOCKS;
    take(self);
    return 0;
}

int turns_unlock(pthread_mutex_t *mutex)
{
    unsigned place = place_of(mutex);

    if (!is_locked(mutex) || all.locked[place].owner != all.running)
        turns_fail("a thread unlocks a mutex that it does not have");
    all.locked[place].mutex = NULL;
    turns_pass();
    return 0;
}

int turns_destroy_mutex(pthread_mutex_t *mutex)
{
    bool used = is_locked(mutex);

    for (unsigned i = 0; i < all.n; i++)
        used |= (all.threads[i].state == LOCKS || all.threads[i].state == WAITS) && all.threads[i].mutex == mutex;
    if (used) turns_fail("a mutex is destroyed that a thread has or waits for");
    return 0;
}

int turns_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    struct thread *self = &all.threads[all.running];
    unsigned place = place_of(mutex);

    if (!is_locked(mutex) || all.locked[place].owner != all.running)
        turns_fail("a thread waits without the mutex of the condition");
    all.locked[place].mutex = NULL;
    self->mutex = mutex;
    self->condition = condition;
    self->state = WAITS;
    take(self);
    return 0;
}

/* wake - wake so many of the threads that wait for it, beginning with any. */
static void wake(const pthread_cond_t *condition, unsigned n)
{
    unsigned first = (unsigned)rng_below(&all.rng, all.n);

    for (unsigned i = 0; i < all.n && n > 0; i++) {
        struct thread *thread = &all.threads[(first + i) % all.n];

        if (thread->state != WAITS || thread->condition != condition) continue;
        thread->state = LOCKS;
        n--;
    }
}

int turns_signal(pthread_cond_t *condition)
{
    wake(condition, 1);
    turns_pass();
    return 0;
}

int turns_broadcast(pthread_cond_t *condition)
{
    wake(condition, all.n);
    turns_pass();
    return 0;
}

int turns_destroy_condition(pthread_cond_t *condition)
{
    for (unsigned i = 0; i < all.n; i++) {
        if (all.threads[i].state == WAITS && all.threads[i].condition == condition)
            turns_fail("a condition is destroyed that a thread waits for");
    }
    return 0;
}

/* ---- futexes ---- */

static void futex_sleep(const void *word, unsigned value, bool timed)
{
    struct thread *self = &all.threads[all.running];
    unsigned now;

    turns_pass();
    memcpy(&now, word, sizeof(now));
    if (now != value) return;
    self->word = word;
    self->timed = timed;
    self->state = SLEEPS;
    turns_pass();
}

void turns_futex_wait(const void *word, unsigned value)
{
    futex_sleep(word, value, false);
}

void turns_futex_wait_for(const void *word, unsigned value, unsigned most_us)
{
    (void)most_us;
    futex_sleep(word, value, true);
}

void turns_futex_wake(const void *word)
{
    unsigned first;

    turns_pass();
    first = (unsigned)rng_below(&all.rng, all.n);
    for (unsigned i = 0; i < all.n; i++) {
        struct thread *thread = &all.threads[(first + i) % all.n];

        if (thread->state != SLEEPS || thread->word != word) continue;
        thread->state = READY;
        return;
    }
}

bool turns_has_room(void)
{
    return true;
}
