/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - threads of the sync facade, in an order that the seed draws
 *
 * The client behind the facade lives in the simulated world: three model servers and virtual time, which goes on only
 * while the loop's thread runs. The loop also stalls now and then, so locks are lost. Users in other threads call
 * whatever the header allows, on locks that they share. What is judged:
 *
 * - every call comes to its end, and the loop does not sleep while a job waits for it;
 * - of two locks of one key at most one is valid at any time, read from any thread;
 * - nothing is granted after a shutdown, and every call on a handle ends with CLOSED after the close;
 * - the callback of each started operation runs once, before the close ends; where the client has events, its event
 * comes once, before the last one, and the descriptor is readable while an event waits;
 * - no memory is left, no mutex or condition goes while it is used.
 *
 * The header leaves to callers that they use no handle that another thread frees, and no client that is closed. So a
 * user frees and closes only when the other calls on it wait inside.
 */
#include <inttypes.h>
#include <quorlock/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/sync_loop.h"
#include "outside.h"
#include "parts/machine.h"
#include "parts/net.h"
#include "parts/place_fixture.h"
#include "parts/queue.h"
#include "parts/rng.h"
#include "parts/server.h"
#include "turns.h"

#define MS         UINT64_C(1000)
#define SERVERS    3
#define USERS_MAX  4
#define THREADS    (USERS_MAX + 2) /* the main thread, the loop */
#define OWN_THREAD 1
#define LOCKS      3
#define KEYS       2
#define STEPS_MAX  12
#define STALL_US   (1500 * MS)
#define STEP_US    (100 * MS) /* the loop looks at its queue again after so long at the latest */
#define BOOT_US    UINT64_C(5000000000)
#define WALL_US    UINT64_C(1800000000000000)
#define WAKE_FD    1000
#define EVENTS_FD  1001

/* Each switch of threads costs the address sanitizer some system calls. */
#ifdef __SANITIZE_ADDRESS__
#define RUNS 300
#else
#define RUNS 3000
#endif

/* One lock of the program, which users make anew when one of them has freed it. */
struct shared {
    quorlock_sync_lock *handle;
    const char *key;
    bool changing;       /* it is made or freed: only one thread may use it */
    unsigned n_in_parts; /* threads that wait for it in parts */
};

static struct {
    struct queue queue;
    struct net *net;
    struct machine *machine;
    struct server *servers[SERVERS];
    quorlock_sync_client *sync;
    struct shared locks[LOCKS];
    quorlock_sync_candidate *candidate;
    bool bare; /* there was no handle any more when the close began */
    bool candidate_changing;
    unsigned n_waiting;         /* calls that wait for a grant, or to lead */
    bool shut, closing, closed; /* a shutdown has returned; a close has begun; it has returned */
    unsigned n_started, n_told;
    const void *inside[THREADS]; /* what each thread has called the facade for: the client, a lock, the candidate */
    /* The loop's event. */
    event_callback_fn woken;
    void *woken_arg;
    bool added, turned; /* turned: the machine has let the loop go on */
    bool wake_closed;   /* the descriptor of `counter` */
    uint64_t counter;
    bool has_events, read_all; /* the last event was read */
    uint64_t readable;         /* the counter of EVENTS_FD */
} f;

static uint64_t totals[4]; /* grants, calls that were refused with CLOSED, losses, times that a caller led */

static bool one_in(unsigned n)
{
    return turns_between(1, n) == 1;
}

/* ---- outside.h ---- */

struct event_base *outside_base_new(void)
{
    return (struct event_base *)&f;
}

void outside_base_free(struct event_base *base)
{
    (void)base;
}

struct event *outside_event_new(struct event_base *base, int fd, short what, event_callback_fn cb, void *arg)
{
    (void)base;
    (void)fd;
    (void)what;
    f.woken = cb;
    f.woken_arg = arg;
    return (struct event *)&f;
}

int outside_event_add(struct event *event, const struct timeval *timeout)
{
    (void)event;
    (void)timeout;
    f.added = true;
    return 0;
}

int outside_event_del(struct event *event)
{
    (void)event;
    f.added = false;
    return 0;
}

void outside_event_free(struct event *event)
{
    (void)event;
}

int outside_eventfd(unsigned count, int flags)
{
    (void)flags;
    /* The first one is the wake event's. */
    if (f.woken_arg != NULL) {
        f.readable = count;
        return EVENTS_FD;
    }
    f.counter = count;
    return WAKE_FD;
}

ssize_t outside_read(int fd, void *ret, size_t size)
{
    uint64_t *counter = fd == EVENTS_FD ? &f.readable : &f.counter;

    memcpy(ret, counter, size);
    *counter = 0;
    return (ssize_t)size;
}

ssize_t outside_write(int fd, const void *bytes, size_t size)
{
    (void)bytes;
    if (fd == WAKE_FD) turns_pass();
    if (fd == WAKE_FD && f.wake_closed) turns_fail("the loop's descriptor is used after its end");
    *(fd == EVENTS_FD ? &f.readable : &f.counter) += 1;
    return (ssize_t)size;
}

int outside_close(int fd)
{
    if (fd != WAKE_FD) return 0;
    f.wake_closed = true;
    totals[3] += f.sync->n_leads;
    if (f.bare && f.sync->n_told != 0) turns_fail("callbacks may run, though there is no handle any more");
    return 0;
}

struct system outside_system(struct event_base *base, const struct alloc *alloc)
{
    (void)base;
    (void)alloc;
    return *machine_system(f.machine);
}

int outside_client_new(quorlock_client **ret, struct event_base *base, const struct quorlock_client_options *options,
                       struct expiry_clock *clock, struct quorlock_error *error)
{
    const struct client_extras extras = {.clock = clock, .memory = machine_allocator(f.machine)};

    (void)base;
    return client_new_on(ret, machine_system(f.machine), options, &extras, error);
}

static void run_woken(void *arg)
{
    (void)arg;
    f.turned = true;
    if (f.added && f.counter > 0) f.woken(WAKE_FD, EV_READ, f.woken_arg);
}

/* pass_time - let the world go on for a moment, and the other threads. */
static void pass_time(void)
{
    (void)queue_next(&f.queue, f.queue.now_us + STEP_US);
    if (one_in(300)) machine_stall(f.machine, turns_between(1, STALL_US), false);
    turns_pass();
}

/* all_wait - return whether all threads but that one are outside of the facade, or wait in it. */
static bool all_wait(unsigned but)
{
    for (unsigned i = 0; i < THREADS; i++)
        if (i != but && f.inside[i] != NULL && !turns_waits(i)) return false;
    return true;
}

/* look_at_sleep - the loop sleeps: whoever has posted a job is still about to wake it. */
static void look_at_sleep(void)
{
    const quorlock_sync_client *sync = f.woken_arg;

    if (f.counter == 0 && atomic_load_explicit(&sync->posted, memory_order_seq_cst) != NULL && all_wait(turns_self()))
        turns_fail("a job waits for the loop, which sleeps");
}

/* The loop of the machine. It goes on when the machine is not stalled, so that a stalled loop runs no jobs. */
int outside_loop(struct event_base *base, int flags)
{
    const quorlock_sync_client *sync = f.woken_arg;
    bool sleeps = (flags & EVLOOP_NONBLOCK) == 0;

    (void)base;
    if (sleeps && sync->ended != NULL) turns_fail("the loop sleeps, and has not woken a thread whose job has ended");
    if (sleeps && sync->taken != NULL) turns_fail("the loop sleeps, and has jobs to run");
    while (f.added && sleeps && f.counter == 0 && sync->ended == NULL && !one_in(8)) {
        look_at_sleep();
        pass_time();
    }
    f.turned = false;
    machine_call(f.machine, run_woken, NULL);
    while (!f.turned) pass_time();
    return 0;
}

int outside_dispatch(struct event_base *base)
{
    (void)base;
    turns_fail("the client was not opened");
}

/* ---- what must hold at any time ---- */

/* judge_leader - somebody leads, or soon does, while jobs wait or are under way. */
static void judge_leader(const quorlock_sync_client *sync)
{
    if (sync->leader == LEADER_NONE && sync->n_taken > 0) turns_fail("jobs are under way, and nobody leads");
    if (sync->leader == LEADER_NONE && sync->posted != NULL && turns_waits(OWN_THREAD) && all_wait(OWN_THREAD))
        turns_fail("jobs wait, and nobody leads");
    if (sync->leader == LEADER_OWN && turns_waits(OWN_THREAD) && all_wait(OWN_THREAD))
        turns_fail("the own thread is to lead, and nobody has told it");
}

/* judge_events - the descriptor is readable while an event waits, from the end of the turn on in which it came. */
static void judge_events(const quorlock_sync_client *sync)
{
    const struct sync_events *events = &sync->events;

    if (f.readable > 0 && events->queue.count == 0) turns_fail("the descriptor is readable, and no event waits");
    if (f.readable == 0 && events->queue.count > 0 && (!events->unshown || sync->leader == LEADER_NONE))
        turns_fail("the descriptor is not readable while an event waits");
}

static void judge(void)
{
    if (!f.closing) judge_leader(f.sync);
    for (unsigned key = 0; key < KEYS; key++) {
        unsigned n = 0;

        for (unsigned i = key; i < LOCKS; i += KEYS) {
            if (!f.locks[i].changing && quorlock_sync_lock_valid_ms(f.locks[i].handle) > 0) n++;
        }
        if (n > 1) turns_fail("%u locks of one key are valid", n);
    }
    if (!f.closing && f.sync->events.on) judge_events(f.sync);
}

/* ---- calls ---- */

/* enter - note what this thread calls the facade for, and return what it was before: a callback calls, too. */
static const void *enter(const void *object)
{
    const void *before = f.inside[turns_self()];

    f.inside[turns_self()] = object;
    return before;
}

static void leave(const void *before)
{
    f.inside[turns_self()] = before;
}

/* be_alone - wait until other threads' calls for that object wait inside the facade, so that it may be freed. */
static void be_alone(const void *object)
{
    for (unsigned i = 0; i < THREADS; i++) {
        while (i != turns_self() && f.inside[i] == object && !turns_waits(i)) turns_pass();
    }
}

/* expect - the call began when the client was closed already, or nothing new was to be granted. */
static void expect(const char *call, int status, bool closed, bool granted_no_more)
{
    if (status == QUORLOCK_ERR_CLOSED) totals[1]++;
    if (closed && status != QUORLOCK_ERR_CLOSED)
        turns_fail("%s: %s, though the client was closed before", call, quorlock_status_name(status));
    if (granted_no_more && status == 0) turns_fail("%s: granted after a shutdown", call);
}

/* Callbacks run in the client's own thread. */
static void expect_own_thread(void)
{
    if (turns_self() != OWN_THREAD) turns_fail("a callback runs in the thread of a call");
}

static void on_lost(quorlock_sync_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    expect_own_thread();
    (void)lock;
    (void)loss;
    (void)arg;
    totals[2]++;
}

static void make_lock(struct shared *shared)
{
    const uint32_t waits[] = {QUORLOCK_TRY_ONCE, 500, 0};
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = 1000, .wait_ms = waits[turns_between(0, 2)]};
    bool shut = f.shut;
    const void *before;

    if (f.closing) return;
    before = enter(f.sync);
    shared->changing = true;
    expect("new", quorlock_sync_lock_new(&shared->handle, f.sync, &shared->key, 1, &options, NULL), false, shut);
    shared->changing = false;
    leave(before);
}

/* may_free - return whether no other thread frees it, or waits for it in parts. */
static bool may_free(const struct shared *shared)
{
    return !shared->changing && shared->n_in_parts == 0;
}

static void free_lock(struct shared *shared)
{
    const void *before;

    shared->changing = true;
    be_alone(shared);
    before = enter(shared);
    quorlock_sync_lock_free(shared->handle);
    leave(before);
    shared->handle = NULL;
    shared->changing = false;
}

/* What a callback may do with the lock. */
static void on_told(const struct quorlock_sync_result *result, void *arg)
{
    struct shared *shared = arg;
    const void *before = enter(shared);

    expect_own_thread();
    f.n_told++;
    if (result->status != QUORLOCK_ERR_CLOSED && !shared->changing && shared->handle != NULL) {
        if (quorlock_sync_lock_acquire(shared->handle, NULL) != QUORLOCK_ERR_STATE)
            turns_fail("a call that waits was begun in the loop's thread");
        if (one_in(2)) (void)quorlock_sync_lock_cancel(shared->handle);
        if (may_free(shared) && one_in(4)) free_lock(shared);
    }
    leave(before);
}

static void start(const char *call, struct shared *shared,
                  int (*begin)(quorlock_sync_lock *, quorlock_sync_result_cb, void *))
{
    bool closed = f.closed;
    int status = begin(shared->handle, f.has_events ? NULL : on_told, shared);

    f.n_started += status == 0;
    expect(call, status, closed, false);
}

static void acquire(struct shared *shared)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    bool closed = f.closed;
    bool no_more = f.shut;
    int status;

    f.n_waiting++;
    if (shared->changing || one_in(2)) {
        status = quorlock_sync_lock_acquire(shared->handle, &result);
    } else {
        shared->n_in_parts++;
        do status = quorlock_sync_lock_acquire_for(shared->handle, (uint32_t)turns_between(0, 20), &result);
        while (status == QUORLOCK_SYNC_WAITS);
        shared->n_in_parts--;
    }
    f.n_waiting--;
    expect("acquire", status, closed, no_more);
    totals[0] += status == 0;
}

static void read_token(const struct shared *shared)
{
    char token[QUORLOCK_SYNC_TOKEN_SIZE] = "";
    bool closed = f.closed;
    int status = quorlock_sync_lock_token(shared->handle, token, sizeof(token));

    expect("token", status, closed, false);
    if ((status == 0) != (token[0] != '\0')) turns_fail("token: %s, \"%s\"", quorlock_status_name(status), token);
}

static void use_lock(struct shared *shared)
{
    bool closed = f.closed;
    const void *before;

    if (shared->changing) return;
    if (shared->handle == NULL) {
        make_lock(shared);
        return;
    }
    before = enter(shared);
    switch (turns_between(0, 12)) {
    case 0:
    case 1:
    case 2: acquire(shared); break;
    case 3: start("start_acquire", shared, quorlock_sync_lock_start_acquire); break;
    case 4: expect("undo", quorlock_sync_lock_undo(shared->handle, NULL), closed, false); break;
    case 5: expect("release", quorlock_sync_lock_release(shared->handle, NULL), closed, false); break;
    case 6: start("start_release", shared, quorlock_sync_lock_start_release); break;
    case 7: expect("extend", quorlock_sync_lock_extend(shared->handle, 0, NULL), closed, false); break;
    case 8: expect("cancel", quorlock_sync_lock_cancel(shared->handle), closed, false); break;
    case 9: quorlock_sync_lock_set_on_lost(shared->handle, f.has_events ? NULL : on_lost, NULL); break;
    case 10: read_token(shared); break;
    case 11:
        if (quorlock_sync_lock_fence(shared->handle) != 0) turns_fail("a lock without fencing has a fencing token");
        break;
    default:
        if (may_free(shared)) free_lock(shared);
    }
    leave(before);
}

static void on_statistics(const struct quorlock_statistics *statistics, void *arg)
{
    expect_own_thread();
    (void)statistics;
    (void)arg;
}

struct asked {
    unsigned thread, calls, unlike; /* unlike: names that are not those of the nodes, or calls in another thread */
};

static void tell(struct asked *asked, size_t n_nodes)
{
    asked->calls++;
    asked->unlike += n_nodes != SERVERS || asked->thread != turns_self();
}

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct asked *asked = arg;

    (void)status;
    /* A question to one node has a report of one. */
    tell(asked, report->n_nodes == 1 ? SERVERS : report->n_nodes);
    for (size_t i = 0; i < report->n_nodes; i++) asked->unlike += strncmp(report->nodes[i]->node, "10.0.0.", 7) != 0;
}

static void on_bootstrapped(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct asked *asked = arg;

    (void)status;
    tell(asked, report->n_nodes);
    for (size_t i = 0; i < report->n_nodes; i++) asked->unlike += strncmp(report->nodes[i]->node, "10.0.0.", 7) != 0;
}

static void on_examination(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct asked *asked = arg;
    size_t n_nodes = 0;

    (void)status;
    for (const char *at = report->facts_json; (at = strstr(at, "\"node\":\"10.0.0.")) != NULL; at++) n_nodes++;
    tell(asked, n_nodes);
    for (size_t i = 0; i < report->n_findings; i++) asked->unlike += strlen(report->findings[i]->text) == 0;
}

/* ask_nodes - ask the nodes something, while other threads go on and may end the client. */
static void ask_nodes(void)
{
    const struct quorlock_bootstrap_options options = {.size = sizeof(options), .despite_clients = 1};
    struct asked asked = {.thread = turns_self()};
    bool shut = f.shut;
    int status;

    switch (turns_between(0, 3)) {
    case 0: status = quorlock_sync_client_inspect(f.sync, "a", on_inspected, &asked); break;
    case 1: status = quorlock_sync_client_inspect_node(f.sync, turns_between(0, 2), "a", on_inspected, &asked); break;
    case 2: status = quorlock_sync_client_bootstrap(f.sync, &options, on_bootstrapped, &asked); break;
    default: status = quorlock_sync_client_doctor(f.sync, on_examination, &asked);
    }
    expect("ask", status, false, shut);
    if (asked.calls > 1 || (asked.calls == 0 && status != QUORLOCK_ERR_CLOSED) || asked.unlike > 0)
        turns_fail("ask: %s, %u calls, %u unlike", quorlock_status_name(status), asked.calls, asked.unlike);
}

static void use_client(void)
{
    const void *before;

    if (f.closing) return;
    before = enter(f.sync);
    if (one_in(4) && quorlock_sync_client_shutdown(f.sync) == 0)
        f.shut = true;
    else if (one_in(2))
        ask_nodes();
    else
        (void)quorlock_sync_client_statistics(f.sync, on_statistics, NULL);
    leave(before);
}

static void free_candidate(void)
{
    const void *before;

    f.candidate_changing = true;
    be_alone(&f.candidate);
    before = enter(&f.candidate);
    quorlock_sync_candidate_free(f.candidate);
    leave(before);
    f.candidate = NULL;
    f.candidate_changing = false;
}

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    (void)candidate;
    (void)term;
    (void)arg;
    expect_own_thread();
    if (!f.candidate_changing && f.candidate != NULL && one_in(6)) free_candidate();
}

static void make_candidate(void)
{
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .elected = f.has_events ? NULL : on_elected};
    bool shut = f.shut;
    const void *before;

    if (f.closing) return;
    before = enter(f.sync);
    f.candidate_changing = true;
    expect("candidate_new", quorlock_sync_candidate_new(&f.candidate, f.sync, "election", &options, NULL), false, shut);
    f.candidate_changing = false;
    leave(before);
}

static void stand(void)
{
    bool closed = f.closed;
    bool shut = f.shut;
    uint64_t term;
    int status;

    f.n_waiting++;
    status = quorlock_sync_candidate_stand(f.candidate, &term);
    f.n_waiting--;
    expect("stand", status, closed, shut);
}

static void use_candidate(void)
{
    bool closed = f.closed;
    const void *before;

    if (f.candidate_changing) return;
    if (f.candidate == NULL) {
        make_candidate();
        return;
    }
    before = enter(&f.candidate);
    switch (turns_between(0, 5)) {
    case 0:
        if (!f.candidate_changing) free_candidate();
        break;
    case 1: expect("resign", quorlock_sync_candidate_resign(f.candidate), closed, false); break;
    default: stand();
    }
    leave(before);
}

/* read_events - take some events, or all up to the last one. */
static void read_events(uint64_t most)
{
    struct quorlock_event event = {.size = sizeof(event)};
    const void *before;

    if (!f.has_events || f.read_all || (f.closing && !f.closed)) return;
    before = enter(f.sync);
    for (; most > 0; most--) {
        if (quorlock_sync_client_next_event(f.sync, &event) != 0) turns_fail("the events cannot be read");
        f.n_told += event.type == QUORLOCK_EVENT_ACQUIRE_ENDED || event.type == QUORLOCK_EVENT_RELEASE_ENDED;
        totals[2] += event.type == QUORLOCK_EVENT_LOST;
        f.read_all = event.type == QUORLOCK_EVENT_CLOSED;
        if (f.read_all || event.type == QUORLOCK_EVENT_NONE) break;
    }
    leave(before);
}

static void *user(void *arg)
{
    for (uint64_t steps = turns_between(1, STEPS_MAX); steps > 0; steps--) {
        for (uint64_t passes = turns_between(0, 40); passes > 0; passes--) turns_pass();
        if (!f.closing && one_in(4)) read_events(turns_between(1, 5));
        if (one_in(20))
            use_client();
        else if (one_in(8))
            use_candidate();
        else
            use_lock(&f.locks[turns_between(0, LOCKS - 1)]);
    }
    return arg;
}

/* ---- a run ---- */

static void make_world(uint64_t seed)
{
    const struct skew skews[MACHINE_CLOCKS] = {{0, BOOT_US, 10}, {0, BOOT_US, -20}, {0, WALL_US, 0}};
    const struct skew wall = {0, WALL_US, 0};
    const struct model_events model_events = {0};
    const struct machine_events machine_events = {0};

    queue_clear(&f.queue);
    net_reset(f.net, seed, 1, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++) server_boot(f.servers[i], i, rng_mix(seed, 100 + i), &wall, &model_events);
    machine_boot(f.machine, 0, rng_mix(seed, 200), skews, &machine_events);
    f.counter = f.readable = 0;
    f.woken_arg = NULL;
    f.has_events = f.read_all = false;
    f.added = f.wake_closed = f.shut = f.closing = f.closed = false;
    f.candidate_changing = false;
    f.n_started = f.n_told = f.n_waiting = 0;
    memset(f.inside, 0, sizeof(f.inside));
}

static void open_all(void)
{
    static const char *const nodes[SERVERS] = {"10.0.0.1", "10.0.0.2", "10.0.0.3"};
    static const char *const keys[KEYS] = {"a", "b"};
    const struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = SERVERS, .guard = QUORLOCK_GUARD_OFF};
    const void *before;
    int fd;

    if (quorlock_sync_client_new(&f.sync, &options, NULL) != 0) turns_fail("the client does not open");
    before = enter(f.sync);
    f.has_events = one_in(2);
    if (f.has_events && quorlock_sync_client_events(f.sync, &fd) != 0) turns_fail("there are no events");
    leave(before);
    for (unsigned i = 0; i < LOCKS; i++) {
        f.locks[i] = (struct shared){.key = keys[i % KEYS]};
        make_lock(&f.locks[i]);
    }
    make_candidate();
}

static void cancel(struct shared *shared)
{
    const void *before = enter(shared);

    (void)quorlock_sync_lock_cancel(shared->handle);
    leave(before);
}

static void free_all(void)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        if (f.closed && quorlock_sync_lock_valid_ms(f.locks[i].handle) != 0)
            turns_fail("a lock is valid after the close");
        while (!may_free(&f.locks[i])) {
            if (!f.locks[i].changing) cancel(&f.locks[i]);
            turns_pass();
        }
        free_lock(&f.locks[i]);
    }
    while (f.candidate_changing) turns_pass();
    free_candidate();
}

/* A shutdown ends what waits, without a close. Without handles the end of the client is that of its memory. */
static void close_all(void)
{
    const void *before = enter(f.sync);

    if (one_in(3) && quorlock_sync_client_shutdown(f.sync) == 0) f.shut = true;
    leave(before);
    while (f.shut && f.n_waiting > 0) turns_pass();
    f.closing = true;
    if (one_in(3)) free_all();
    be_alone(f.sync);
    (void)enter(f.sync);
    f.bare = f.sync->n_users == (f.sync->events.on ? 2u : 1u);
    if (quorlock_sync_client_close(f.sync) != 0) turns_fail("the client does not close");
    leave(before);
    f.closed = true;
}

static void run(uint64_t seed)
{
    pthread_t users[USERS_MAX];
    unsigned n_users;

    make_world(seed);
    turns_begin(seed);
    open_all();
    turns_each(judge);
    n_users = (unsigned)turns_between(1, USERS_MAX);
    for (unsigned i = 0; i < n_users; i++) (void)turns_create(&users[i], NULL, user, NULL);
    for (uint64_t passes = turns_between(0, 3000); passes > 0; passes--) turns_pass();
    close_all();
    for (unsigned i = 0; i < n_users; i++) (void)turns_join(users[i], NULL);
    turns_each(NULL);
    read_events(UINT64_MAX);
    if (f.has_events && !f.read_all) turns_fail("the last event does not come");
    free_all();
    if (f.n_started != f.n_told) turns_fail("%u operations were started, %u ended", f.n_started, f.n_told);
    if (machine_blocks(f.machine) != 0) turns_fail("%zu blocks of memory are left", machine_blocks(f.machine));
}

int main(int argc, char **argv)
{
    uint64_t runs = RUNS;
    uint64_t seed = 1;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0)
            runs = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else
            return 64;
    }
    place_make(&f.queue, &f.net, &f.machine, f.servers, SERVERS);
    for (uint64_t i = 0; i < runs; i++) run(seed + i);
    turns_end();
    place_free(&f.queue, f.net, f.machine, f.servers, SERVERS);
    (void)printf("%" PRIu64 " runs from seed %" PRIu64 ": %" PRIu64 " grants, %" PRIu64 " calls after the end, %" PRIu64
                 " losses, callers led %" PRIu64 " times; each call came to its end\n",
                 runs, seed, totals[0], totals[1], totals[2], totals[3]);
    /* A run in which nothing happens shows nothing. */
    return runs < RUNS || (totals[0] > 0 && totals[1] > 0 && totals[2] > 0 && totals[3] > 0) ? 0 : 1;
}
