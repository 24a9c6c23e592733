/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "fixture.h"

#define TICK_US 2000

static struct event_base *base;
static struct event *tick;

#ifdef QUORLOCK_TEST_LIBUV
#include <quorlock/adapters/libuv.h>

#define CLOSING_TURNS_MAX 10

/* The adapter's functions are called through `guest`, to know when libuv has to look anew. */
static uv_loop_t uv;
static struct quorlock_loop inner, guest;
static struct event *backend, *timer;
static bool on_libuv, in_turn, touched;

/* libuv tells the kernel of what is wanted at the beginning of its next turn. */
static void touch(void)
{
    touched = true;
    if (!in_turn) event_active(timer, EV_TIMEOUT, 0);
}

static void turn(evutil_socket_t fd, short what, void *arg)
{
    struct timeval wait;
    int ms;

    assert_false(in_turn);
    in_turn = true;
    touched = false;
    uv_run(&uv, UV_RUN_NOWAIT);
    in_turn = false;
    /* Without anything to wait for its timeout is 0, too. */
    ms = uv_loop_alive(&uv) != 0 ? uv_backend_timeout(&uv) : -1;
    if (touched || ms == 0) {
        touch();
    } else if (ms > 0) {
        wait = (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
        event_add(timer, &wait);
    } else {
        event_del(timer);
    }
}

static int watch_set(void *watch, unsigned events)
{
    touch();
    return inner.watch_set(watch, events);
}

static int timer_set(void *of, uint64_t after_us)
{
    touch();
    return inner.timer_set(of, after_us);
}

static void task_run(void *task)
{
    touch();
    inner.task_run(task);
}

static void add_events(void)
{
    backend = event_new(base, uv_backend_fd(&uv), EV_READ | EV_PERSIST, turn, NULL);
    timer = event_new(base, -1, 0, turn, NULL);
    assert_non_null(backend);
    assert_non_null(timer);
    event_add(backend, NULL);
}

static void free_events(void)
{
    event_free(backend);
    event_free(timer);
}

static void begin_libuv(void)
{
    const char *wanted = getenv("QUORLOCK_TEST_LOOP");

    on_libuv = wanted != NULL;
    if (!on_libuv) return;
    assert_string_equal(wanted, "libuv");
    assert_int_equal(uv_loop_init(&uv), 0);
    guest = inner = quorlock_loop_libuv(&uv);
    guest.watch_set = watch_set;
    guest.timer_set = timer_set;
    guest.task_run = task_run;
    add_events();
}

static int end_libuv(void)
{
    free_events();
    for (int i = 0; i < CLOSING_TURNS_MAX && uv_loop_alive(&uv) != 0; i++) uv_run(&uv, UV_RUN_NOWAIT);
    return uv_loop_close(&uv) == 0 ? 0 : 1;
}

#else
static const bool on_libuv = false;
static const struct quorlock_loop guest;

static void begin_libuv(void)
{
    /* A test that is to run on it must not pass without it. */
    assert_null(getenv("QUORLOCK_TEST_LOOP"));
}

static int end_libuv(void)
{
    return 0;
}

#endif

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

struct event_base *host_loop_begin(void)
{
    struct event_config *config = event_config_new();

    assert_non_null(config);
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base = event_base_new_with_config(config);
    event_config_free(config);
    assert_non_null(base);
    tick = event_new(base, -1, 0, on_tick, NULL);
    assert_non_null(tick);
    begin_libuv();
    return base;
}

void host_loop_turn(uint64_t until_us)
{
    const struct timeval tick_time = {.tv_usec = TICK_US};

    event_add(tick, &tick_time);
    event_base_loop(base, EVLOOP_ONCE);
    event_del(tick);
}

int host_loop_end(void)
{
    int left = on_libuv ? end_libuv() : 0;

    event_free(tick);
    left += event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);
    event_base_free(base);
    return left;
}

void fixture_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup)
{
    test_add(name, run, setup, fixture_teardown);
}

void fixture_needs_real_servers(void)
{
}

struct system host_loop_system(const struct alloc *alloc)
{
    return on_libuv ? system_os(&guest, alloc) : system_libevent(base, alloc);
}

int host_loop_client(quorlock_client **ret, const struct quorlock_client_options *options,
                     const struct client_extras *extras, struct quorlock_error *error)
{
    const struct system system = host_loop_system(NULL);

    if (extras->memory != NULL || extras->buggify != 0) return client_new_on(ret, &system, options, extras, error);
    return on_libuv ? quorlock_client_new_on_loop(ret, &guest, options, error)
                    : quorlock_client_new(ret, base, options, error);
}
