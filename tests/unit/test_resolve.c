/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_resolve.c - host names: lookups that come late, fail, or hang, behind a resolver that answers when the test says
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/address.h"
#include "node_fixture.h"
#include "redis/link/link.h"

#define FRONT   "slow-"
#define NO_NAME "there is no such host, or it has no address"

#if defined(__SANITIZE_THREAD__)
static const bool under_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
static const bool under_tsan = true;
#else
static const bool under_tsan = false;
#endif
#else
static const bool under_tsan = false;
#endif

/* ---- the resolver ---- */

/* How lookups of its name go: held back while `holds`. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool holds;
    int result;            /* of those that are let go */
    unsigned begun, ended; /* threads that came here, and that have left */
    bool signals;          /* one of them had a signal that was not blocked */
    char name[32];         /* another one in each test, so that none joins a lookup of the one before */
} resolver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void resolver_set(bool holds, int result)
{
    pthread_mutex_lock(&resolver.mutex);
    resolver.holds = holds;
    resolver.result = result;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.mutex);
}

static void resolver_start(void)
{
    static unsigned n;

    snprintf(resolver.name, sizeof(resolver.name), FRONT "%u.example", n++);
    resolver_set(true, 0);
    resolver.begun = resolver.ended = 0;
}

/* resolver_drain - lets all go, and waits for them. */
static void resolver_drain(void)
{
    resolver_set(false, 0);
    pthread_mutex_lock(&resolver.mutex);
    while (resolver.ended < resolver.begun) pthread_cond_wait(&resolver.changed, &resolver.mutex);
    pthread_mutex_unlock(&resolver.mutex);
}

/* resolver_await - until a lookup came here: on a busy machine its thread starts later than a try ends. */
static void resolver_await(void)
{
    pthread_mutex_lock(&resolver.mutex);
    while (resolver.begun == 0) pthread_cond_wait(&resolver.changed, &resolver.mutex);
    pthread_mutex_unlock(&resolver.mutex);
}

static unsigned resolver_begun(void)
{
    unsigned begun;

    pthread_mutex_lock(&resolver.mutex);
    begun = resolver.begun;
    pthread_mutex_unlock(&resolver.mutex);
    return begun;
}

static int hold(void)
{
    sigset_t blocked;
    int result;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    pthread_mutex_lock(&resolver.mutex);
    resolver.signals |= sigismember(&blocked, SIGTERM) != 1 || sigismember(&blocked, SIGUSR1) != 1;
    resolver.begun++;
    pthread_cond_broadcast(&resolver.changed);
    while (resolver.holds) pthread_cond_wait(&resolver.changed, &resolver.mutex);
    result = resolver.result;
    resolver.ended++;
    pthread_cond_broadcast(&resolver.changed);
    pthread_mutex_unlock(&resolver.mutex);
    return result;
}

/* In place of the system's. "two.example" has two addresses, of which the first refuses, "twice.example" one twice. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    typedef int ask_system(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    bool is_two = strcmp(name, "two.example") == 0;
    bool is_twice = strcmp(name, "twice.example") == 0;
    ask_system *real = NULL;
    int result = 0;

    memcpy(&real, &symbol, sizeof(real));
    if (strncmp(name, FRONT, strlen(FRONT)) == 0) {
        result = hold();
        name = "127.0.0.1";
    }
    if (result == 0) result = real(is_two ? "127.0.0.2" : is_twice ? "127.0.0.1" : name, service, hints, ret);
    if (result == 0 && (is_two || is_twice)) result = real("127.0.0.1", service, hints, &(*ret)->ai_next);
    return result;
}

/* ---- nodes ---- */

static const struct fake_step plain_good[] = {SHAKE, END};

static void start(struct node_fixture *f)
{
    node_fixture_open(f);
    fake_play(f->server, plain_good);
    node_fixture_uri(f, resolver.name, "");
    assert_non_null(node_fixture_new_node(f));
}

/* ---- lookups ---- */

struct told {
    struct event_base *base;
    unsigned n;
    struct addresses addresses;
};

static void on_done(void *arg, const struct addresses *addresses)
{
    struct told *told = arg;

    told->n++;
    told->addresses = *addresses;
    event_base_loopbreak(told->base);
}

static struct lookup *look_up(struct system *system, const char *name, struct told *told)
{
    return system->ops->lookup(system, name, 1234, on_done, told);
}

/* The first of all: glibc gives a later thread the resolver's state of a thread before. */
NODE_TEST(the_zone_of_an_address_is_an_interface)
{
    struct told told = {0};
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&told.addresses.at[0].storage;

    if (fcntl(STDIN_FILENO, F_GETFD) < 0) assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    node_fixture_open(f);
    told.base = f->base;
    assert_non_null(look_up(&f->system, "fe80::1%lo", &told));
    event_base_dispatch(f->base);
    assert_int_equal(told.addresses.n, 1);
    assert_int_equal(v6->sin6_family, AF_INET6);
    assert_int_equal(v6->sin6_scope_id, if_nametoindex("lo"));
    assert_int_equal(ntohs(v6->sin6_port), 1234);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    node_fixture_uri(f, "[fe80::1%none]", "");
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "down unreachable\n");
    assert_contains(f->why, "cannot resolve fe80::1%none: this machine has no such interface");
}

NODE_TEST(the_loop_is_kept_only_while_a_lookup_is_open)
{
    struct told told = {0};
    struct lookup *lookup;

    node_fixture_open(f);
    fake_free(f->server);
    f->server = NULL;
    told.base = f->base;
    resolver_start();
    lookup = look_up(&f->system, resolver.name, &told);
    assert_non_null(lookup);
    assert_int_equal(event_base_loop(f->base, EVLOOP_NONBLOCK), 0);
    f->system.ops->lookup_cancel(lookup);
    assert_int_equal(event_base_dispatch(f->base), 1);
    assert_non_null(look_up(&f->system, resolver.name, &told));
    resolver_set(false, 0);
    assert_int_equal(event_base_dispatch(f->base), 0);
    assert_int_equal(event_base_dispatch(f->base), 1);
    assert_int_equal(told.n, 1);
    assert_int_equal(told.addresses.n, 1);
    assert_int_equal(ntohs(((const struct sockaddr_in *)&told.addresses.at[0].storage)->sin_port), 1234);
    assert_int_equal(resolver_begun(), 1);
    resolver_drain();
}

/* ---- names ---- */

NODE_TEST(a_name_is_resolved_from_the_loop)
{
    node_fixture_open(f);
    fake_play(f->server, plain_good);
    node_fixture_uri(f, "localhost", "");
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready");

    node_fixture_open(f);
    node_fixture_uri(f, "nobody.invalid", "");
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "down");
    assert_contains(f->trace, "down unreachable\n");
    assert_contains(f->why, "cannot resolve nobody.invalid: ");
}

NODE_TEST(the_second_address_of_a_name_is_tried_when_the_first_refuses)
{
    node_fixture_open(f);
    fake_play(f->server, plain_good);
    node_fixture_uri(f, "two.example", "");
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "ready");
    assert_trace(f, "ready 1\n");

    /* Neither answers: the reason names the last. */
    node_fixture_open(f);
    node_fixture_uri(f, "two.example", "");
    fake_free(f->server);
    f->server = NULL;
    assert_non_null(node_fixture_new_node(f));
    run_until(f, "down");
    assert_contains(f->why, "connect to 127.0.0.1: ");
}

NODE_TEST(a_lookup_that_hangs_is_left_behind_and_joined)
{
    resolver_start();
    for (int i = 0; i < 5; i++) {
        start(f);
        event_base_loop(f->base, EVLOOP_NONBLOCK);
        while (resolver_begun() == 0) event_base_loop(f->base, EVLOOP_NONBLOCK);
        assert_contains(node_why(f->node), "being looked up");
    }
    resolver_set(false, 0);
    run_until(f, "ready 1\n");
    /* But for the present one, each was freed while its lookup went on. */
    assert_int_equal(resolver_begun(), 1);
    resolver_drain();
}

NODE_TEST(a_lookup_that_cannot_begin_is_told_and_tried_again)
{
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    resolver_start();
    resolver_set(false, 0);
    start(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    run_until(f, "down limit\n");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_contains(f->why, ".example: Too many open files");
    run_until(f, "ready 1\n");
    resolver_drain();
}

/* ---- links: a lookup that is longer than a try ---- */

/* One that asks nothing: it is open when it is connected. */
struct caller {
    struct redis_link link;
    struct link_counts counts;
    bool open, ended;
    uint32_t share_ms; /* the time that the address had which was reached */
    char why[LINK_TEXT_SIZE];
};

static void on_connected(void *arg)
{
    struct caller *caller = arg;

    caller->share_ms = caller->link.step_ms;
}

static void on_greeted(void *arg)
{
    struct caller *caller = arg;

    link_open(&caller->link);
    caller->open = true;
}

static void on_closed(void *arg, bool was_open, enum fault fault, const char *why)
{
    struct caller *caller = arg;

    (void)was_open;
    assert_int_equal(fault, FAULT_UNREACHABLE);
    snprintf(caller->why, sizeof(caller->why), "%s", why);
}

static void on_ended(void *arg)
{
    struct caller *caller = arg;

    caller->ended = true;
}

static const struct link_events caller_events = {
    .log_prefix = "", .connected = on_connected, .greeted = on_greeted, .closed = on_closed, .ended = on_ended};

/* caller_wait - until so many tries have failed, or it is open. */
static void caller_wait(struct node_fixture *f, const struct caller *caller, unsigned failed)
{
    uint64_t end_us = clock_us(NULL) + LIMIT_S * 1000000ull;

    while (!caller->open && caller->counts.errors[FAULT_UNREACHABLE] < failed) {
        run_on(f, 1);
        if (clock_us(NULL) > end_us) fail_msg("nothing came behind: %s", caller->why);
    }
}

/* caller_start - the first tries fail while the resolver is silent; for the next one there is time. */
static void caller_start(struct node_fixture *f, struct caller *caller, uint32_t pause_ms, unsigned failed)
{
    static const struct fake_step silent[] = {END};

    *caller = (struct caller){.open = false};
    node_fixture_open(f);
    resolver_start();
    fake_play(f->server, silent);
    node_fixture_uri(f, resolver.name, "");
    f->config.link.connect_ms = 20;
    f->config.link.reconnect_min_ms = f->config.link.reconnect_max_ms = pause_ms;
    f->config.link.counts = &caller->counts;
    assert_true(link_init(&caller->link, &f->system, &f->alloc, &f->config.link, &caller_events, caller));
    assert_true(link_start(&caller->link));
    caller_wait(f, caller, failed);
    resolver_await();
    assert_contains(caller->why, "cannot resolve slow-");
    assert_contains(caller->why, ".example: no answer within 20 ms yet");
    caller->link.config.connect_ms = LIMIT_S * 1000;
}

static void caller_end(struct caller *caller)
{
    link_end(&caller->link);
    assert_true(caller->ended);
    assert_int_equal(resolver_begun(), 1);
    assert_false(resolver.signals);
    resolver_drain();
}

NODE_TEST(a_late_answer_is_used_and_no_lookup_begins_anew)
{
    static const struct {
        uint32_t pause_ms;
        unsigned failed;
    } rows[] = {{1, 4}, {3600 * 1000, 1}}; /* of the second the answer ends the pause */
    struct caller caller;

    for (size_t i = 0; i < LENGTH(rows); i++) {
        caller_start(f, &caller, rows[i].pause_ms, rows[i].failed);
        resolver_set(false, 0);
        caller_wait(f, &caller, rows[i].failed + 1);
        assert_true(caller.open);
        assert_int_equal(caller.counts.errors[FAULT_UNREACHABLE], rows[i].failed);
        caller_end(&caller);
    }
}

NODE_TEST(the_addresses_of_a_name_share_the_time_of_a_try)
{
    static const struct {
        uint32_t connect_ms, share_ms_min, share_ms_max;
    } rows[] = {{1000 * LIMIT_S, 1000, 500 * LIMIT_S}, {1500, 1000, 1000}, {900, 900, 900}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct caller caller = {.open = false};

        node_fixture_open(f);
        fake_play(f->server, (const struct fake_step[]){END});
        node_fixture_uri(f, "twice.example", "");
        f->config.link.connect_ms = rows[i].connect_ms;
        f->config.link.counts = &caller.counts;
        assert_true(link_init(&caller.link, &f->system, &f->alloc, &f->config.link, &caller_events, &caller));
        assert_true(link_start(&caller.link));
        caller_wait(f, &caller, UINT_MAX);
        assert_in_range(caller.share_ms, rows[i].share_ms_min, rows[i].share_ms_max);
        link_end(&caller.link);
        assert_true(caller.ended);
    }
}

NODE_TEST(a_late_failure_is_told)
{
    static const struct {
        int result;
        const char *why;
    } rows[] = {{EAI_NONAME, NO_NAME}, {EAI_AGAIN, "no name server answers"}, {EAI_FAIL, "Non-recoverable failure"}};
    struct caller caller;

    for (size_t i = 0; i < LENGTH(rows); i++) {
        caller_start(f, &caller, 3600 * 1000, 1);
        resolver_set(false, rows[i].result);
        caller_wait(f, &caller, 2);
        assert_contains(caller.why, rows[i].why);
        caller_end(&caller);
    }
}

NODE_TEST(a_link_that_ends_or_stops_waits_for_no_lookup)
{
    struct caller caller;

    caller_start(f, &caller, 3600 * 1000, 1);
    link_stop(&caller.link);
    resolver_set(false, 0);
    run_on(f, 20);
    assert_false(caller.open);
    caller_end(&caller);
    caller_start(f, &caller, 1, 1);
    caller_end(&caller);
}

/* In the child the threads of its parent are not there: it begins its own. */
__attribute__((noreturn)) static void look_up_in_child(void)
{
    struct told told = {.base = event_base_new()};
    struct alloc alloc;
    struct system system;

    alarm(LIMIT_S);
    alloc_init(&alloc, NULL);
    system = system_libevent(told.base, &alloc);
    pthread_mutex_init(&resolver.mutex, NULL);
    pthread_cond_init(&resolver.changed, NULL);
    resolver.holds = false;
    if (look_up(&system, resolver.name, &told) == NULL) _exit(1);
    event_base_dispatch(told.base);
    if (told.addresses.n != 1) _exit(2);
    /* At an exit valgrind would miss what the threads of the parent had. */
    (void)execlp("true", "true", (char *)NULL);
    _exit(3);
}

NODE_TEST(a_child_of_fork_looks_up_by_itself)
{
    int status = -1;
    pid_t pid;

    if (under_tsan) skip(); /* it knows no threads of a child */
    resolver_start();
    start(f);
    while (resolver_begun() == 0) event_base_loop(f->base, EVLOOP_NONBLOCK);
    pid = fork();
    if (pid == 0) look_up_in_child();
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    resolver_set(false, 0);
    run_until(f, "ready 1\n");
    resolver_drain();
}
