/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chaos_client.c - one user of the library that keeps an honest history
 *
 * It asks for a lock, works on the protected register while it holds it, gives the lock back, and begins
 * anew, until SIGTERM. It keeps to the protocol that cluster/chaos has for every client, quorlock-chaos(7).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <quorlock/quorlock.h>

#include "history_client.h"
#include "options_client.h"

#ifdef QUORLOCK_MUTANTS
#include "mutants/mutant.h"
#endif

#define TICK_MS       100
#define PATIENCE_MS   15000 /* beyond what the library was given: then a promise is broken */
#define RANGE(range)  ((range).min + (uint32_t)(random_next() % ((range).max - (range).min + 1)))
#define ONE_IN(times) (random_next() % (times) == 0)
#define KEY           me.options.keys[me.key]

enum state { IDLE, ASKING, HOLDING, RELEASING, CLOSING };

static struct {
    struct chaos_options options;
    struct event_base *base;
    struct quorlock_client *client;
    struct event *timer, *tick;
    enum state state;
    int stop;            /* SIGTERM came */
    uint32_t ticks;      /* in this state; they do not run while we are stopped */
    uint32_t ticks_dead; /* holding with no validity left */
    struct quorlock *lock;
    size_t key; /* of this operation */
    uint32_t lease_ms, wait_ms;
    uint64_t deadline_us, hold_until_us;
    uint64_t next_value;
    bool may_write; /* the register was read in this hold */
} me;

/* Choices of a client follow from its seed alone. */
static uint64_t random_next(void)
{
    uint64_t z = (me.options.seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void breach(const char *text)
{
    history_say(history_now_us(), "breach", KEY, ",\"text\":\"%s\"", text);
}

static void turn(enum state state)
{
    me.state = state;
    me.ticks = 0;
    me.ticks_dead = 0;
}

static void timer_set(uint32_t after_ms)
{
    struct timeval wait = {.tv_sec = (time_t)(after_ms / 1000), .tv_usec = (suseconds_t)(after_ms % 1000) * 1000};

    (void)event_add(me.timer, &wait);
}

static void on_closed(void *arg)
{
    (void)arg;
    (void)event_base_loopbreak(me.base);
}

/* Between two operations: the handle goes, and the next operation is due after a while. */
static void rest(void)
{
    quorlock_free(me.lock);
    me.lock = NULL;
    if (me.stop != 0) {
        turn(CLOSING);
        (void)event_del(me.timer);
        if (quorlock_client_close(me.client, on_closed, NULL) != 0) breach("the client cannot be closed");
        return;
    }
    turn(IDLE);
    timer_set(RANGE(me.options.think_ms));
}

static void on_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    (void)arg;
    (void)result;
    if (lock != me.lock || me.state != RELEASING) {
        breach("a release calls back twice, or unasked");
        return;
    }
    rest();
}

/* Gives back what the history has ended already. Now and then the handle is freed without waiting. */
static void give_back(void)
{
    turn(RELEASING);
    if (ONE_IN(5)) {
        rest();
        return;
    }
    if (quorlock_release(me.lock, on_released, NULL) == 0) return;
    breach("a release is refused");
    rest();
}

static void release(void)
{
    /* The window ends before the first node can learn of it. */
    history_say(history_now_us(), "released", KEY, ",\"deadline_us\":%" PRIu64 ",\"fence\":%" PRIu64, me.deadline_us,
                quorlock_fence(me.lock));
    give_back();
}

static void on_lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    (void)arg;
    if (lock != me.lock || me.state != HOLDING) {
        breach("a loss callback without a hold");
        return;
    }
    history_say(history_now_us(), "lost", KEY, ",\"deadline_us\":%" PRIu64 ",\"reason\":%d,\"valid_ms\":%" PRIu32,
                me.deadline_us, loss->reason, loss->remaining_ms);
    if (quorlock_valid_ms(lock) != 0) breach("validity is left after the loss");
    give_back();
}

/* The end of validity as it can be promised now; earlier than the truth by less than a millisecond. */
static uint64_t deadline_read(uint32_t *ret_valid_ms)
{
    uint64_t before_us = history_now_us();

    *ret_valid_ms = quorlock_valid_ms(me.lock);
    return before_us + *ret_valid_ms * UINT64_C(1000);
}

/* Reads first, writes what follows from it later: the damage of two owners would show. */
static void work(void)
{
    struct history_access access = {.key = KEY, .fence = quorlock_fence(me.lock), .deadline_us = me.deadline_us};

    if (!me.may_write) {
        me.may_write = history_read(&access);
        me.next_value = access.value + 1;
    } else {
        access.value = me.next_value;
        me.may_write = history_write(&access);
        if (me.may_write) me.next_value++;
    }
}

static void step(void)
{
    uint32_t valid_ms;
    uint64_t deadline_us = deadline_read(&valid_ms);

    timer_set(2 + (uint32_t)(random_next() % 30));
    /* The callback of the loss is due. */
    if (valid_ms == 0) return;
    if (deadline_us > me.deadline_us + 5000) {
        me.deadline_us = deadline_us;
        history_say(history_now_us(), "renewed", KEY, ",\"deadline_us\":%" PRIu64, deadline_us);
    }
    if (history_now_us() >= me.hold_until_us)
        release();
    else
        work();
}

static void refused(const char *status, const struct quorlock_result *result)
{
    history_say(history_now_us(), "refused", KEY, ",\"status\":\"%s\",\"yes\":%u,\"no\":%u,\"none\":%u", status,
                result != NULL ? result->granted : 0, result != NULL ? result->refused : 0,
                result != NULL ? result->failed : 0);
    rest();
}

static void on_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    uint32_t valid_ms, hold_ms = RANGE(me.options.hold_ms);
    uint64_t deadline_us;

    (void)arg;
    if (lock != me.lock || me.state != ASKING) {
        breach("an acquire calls back twice, or unasked");
        return;
    }
    if (result->status != QUORLOCK_OK) {
        refused(quorlock_status_name(result->status), result);
        return;
    }
    /* Validity can end between the library's last look and ours; a grant without any validity is another
     * thing, and shows as a deadline that is not after the grant. */
    deadline_us = deadline_read(&valid_ms);
    me.deadline_us = deadline_us;
    if (valid_ms == 0 && result->valid_ms > 0) me.deadline_us += 1;
    history_say(deadline_us - valid_ms * UINT64_C(1000), "granted", KEY,
                ",\"deadline_us\":%" PRIu64 ",\"fence\":%" PRIu64 ",\"lease_ms\":%" PRIu32 ",\"rounds\":%" PRIu32
                ",\"yes\":%u",
                me.deadline_us, result->fence, me.lease_ms, result->rounds, result->granted);
    if (me.options.fencing && result->fence == 0) breach("a fenced grant without a token");
    /* Now and then a job longer than its lease, which lives by renewal. */
    if (ONE_IN(10)) hold_ms += me.lease_ms + me.lease_ms / 2;
    me.hold_until_us = deadline_us - valid_ms * UINT64_C(1000) + hold_ms * UINT64_C(1000);
    me.may_write = false;
    turn(HOLDING);
    if (me.stop != 0)
        release();
    else
        step();
}

static void ask(void)
{
    struct quorlock_options options = {.size = sizeof(options)};
    const char *key;
    int status;

    me.key = (size_t)(random_next() % me.options.n_keys);
    me.lease_ms = RANGE(me.options.lease_ms);
    me.wait_ms = ONE_IN(6) ? 0 : RANGE(me.options.wait_ms);
    options.lease_ms = me.lease_ms;
    options.wait_ms = me.wait_ms;
    options.fencing = me.options.fencing;
    key = me.options.keys[me.key];
    status = quorlock_new(&me.lock, me.client, &key, 1, &options);
    if (status != 0) {
        (void)fprintf(stderr, "chaos_client: no lock: %s\n", quorlock_client_error(me.client));
        exit(1);
    }
    quorlock_on_lost(me.lock, on_lost, NULL);
    turn(ASKING);
    history_say(history_now_us(), "invoke", KEY, ",\"wait_ms\":%" PRIu32 ",\"lease_ms\":%" PRIu32, me.wait_ms,
                me.lease_ms);
    status = quorlock_acquire(me.lock, on_acquired, NULL);
    if (status != 0) {
        refused(quorlock_status_name(status), NULL);
        return;
    }
    /* A user that changes its mind. */
    if (me.wait_ms > 0 && ONE_IN(25)) timer_set((uint32_t)(random_next() % me.wait_ms));
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    switch (me.state) {
    case IDLE: ask(); break;
    case HOLDING: step(); break;
    case ASKING: (void)quorlock_cancel(me.lock); break;
    case RELEASING:
    case CLOSING: break;
    }
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    uint32_t limit_ms = PATIENCE_MS;

    (void)fd;
    (void)what;
    (void)arg;
    me.ticks++;
    if (me.state == IDLE) limit_ms += me.options.think_ms.max;
    if (me.state == ASKING) limit_ms += me.wait_ms;
    if (me.state == HOLDING) {
        limit_ms = UINT32_MAX;
        if (quorlock_valid_ms(me.lock) == 0)
            me.ticks_dead++;
        else
            me.ticks_dead = 0;
        if (me.ticks_dead * TICK_MS > PATIENCE_MS) {
            breach("validity ended long ago without a loss callback");
            exit(2);
        }
    }
    if (me.ticks > limit_ms / TICK_MS) {
        breach(me.state == ASKING      ? "an acquire never calls back"
               : me.state == RELEASING ? "a release never calls back"
                                       : "the client never closes");
        exit(2);
    }
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    if (me.stop != 0) return;
    me.stop = 1;
    switch (me.state) {
    case IDLE: rest(); break;
    case HOLDING: release(); break;
    case ASKING: (void)quorlock_cancel(me.lock); break;
    case RELEASING:
    case CLOSING: break;
    }
}

static void log_line(void *arg, int level, const char *text)
{
    struct timespec now;

    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (me.options.verbose || level >= QUORLOCK_LOG_ERROR)
        (void)fprintf(stderr, "%lld.%06ld %s %d %s\n", (long long)now.tv_sec, now.tv_nsec / 1000, me.options.name,
                      level, text);
}

static int break_rule(const char *rule)
{
#ifdef QUORLOCK_MUTANTS
    if (mutant_choose(rule)) return 0;
    (void)fprintf(stderr, "chaos_client: QUORLOCK_CHAOS_BREAK: '%s' is not a rule that can be broken\n", rule);
#else
    (void)fprintf(stderr, "chaos_client: QUORLOCK_CHAOS_BREAK=%s: only the build for negative controls can do that\n",
                  rule);
#endif
    return -1;
}

static int open_client(void)
{
    struct quorlock_client_options options = {.size = sizeof(options)};
    char error[256] = "";

    options.nodes = (const char *const *)me.options.nodes;
    options.n_nodes = me.options.n_nodes;
    if (strncmp(options.nodes[0], "rediss://", strlen("rediss://")) == 0) {
        options.tls_ca = getenv("QUORLOCK_TLS_CA");
        options.tls_name = getenv("QUORLOCK_TLS_NAME");
    }
    options.guard = me.options.guard;
    options.max_lease_ms = me.options.max_lease_ms;
    options.owner_label = me.options.name;
    options.log = log_line;
    options.error = error;
    options.error_size = sizeof(error);
    if (quorlock_client_new(&me.client, me.base, &options) == 0) return 0;
    (void)fprintf(stderr, "chaos_client: %s\n", error);
    return -1;
}

static int open_loop(void)
{
    struct event_config *config = event_config_new();
    struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    struct event *term;

    if (config == NULL || event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) != 0) return -1;
    me.base = event_base_new_with_config(config);
    event_config_free(config);
    if (me.base == NULL) return -1;
    me.timer = event_new(me.base, -1, 0, on_timer, NULL);
    me.tick = event_new(me.base, -1, EV_PERSIST, on_tick, NULL);
    term = evsignal_new(me.base, SIGTERM, on_term, NULL);
    if (me.timer == NULL || me.tick == NULL || term == NULL) return -1;
    return event_add(me.tick, &tick) == 0 && event_add(term, NULL) == 0 ? 0 : -1;
}

int main(void)
{
    if (options_read(&me.options) != 0) return 64;
    if (me.options.broken_rule != NULL && break_rule(me.options.broken_rule) != 0) return 64;
    if (open_loop() != 0 || open_client() != 0) return 1;
    history_begin("quorlock " QUORLOCK_VERSION);
    timer_set(RANGE(me.options.think_ms));
    (void)event_base_dispatch(me.base);
    return 0;
}
