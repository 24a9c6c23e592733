/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an examination: nodes take the connection and say nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <sys/socket.h>
#include <unistd.h>

static struct event_base *base;
static quorlock_client *client;
static int listeners[2];
static char addresses[2][32];
static int told, told_status, told_closed;
static bool close_inside;
static long allocations_left; /* below zero: no limit */

static void *allocate(void *arg, size_t size)
{
    (void)arg;
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return malloc(size);
}

static void *reallocate(void *arg, void *block, size_t size)
{
    (void)arg;
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return realloc(block, size);
}

static void release(void *arg, void *block)
{
    (void)arg;
    free(block);
}

static void on_closed(void *arg)
{
    (void)arg;
    told_closed++;
    event_base_loopbreak(base);
}

static void on_examined(int status, const struct quorlock_examination *report, void *arg)
{
    assert_ptr_equal(arg, &told);
    assert_int_equal(report->n_nodes, 2);
    assert_int_equal(told_closed, 0);
    told++;
    told_status = status;
    if (status == 0) {
        assert_true(report->n_findings >= 3);
        assert_string_equal(report->findings[0]->code, "no-quorum");
        assert_false(report->nodes[0]->reachable);
        assert_non_null(report->nodes[0]->error);
    } else {
        assert_int_equal(report->n_findings, 0);
    }
    if (close_inside) assert_int_equal(quorlock_client_close(client, on_closed, NULL), 0);
    event_base_loopbreak(base);
}

static int setup(void **state)
{
    static const struct quorlock_allocator hooks = {sizeof(hooks), allocate, reallocate, release, NULL};
    const char *uris[2] = {addresses[0], addresses[1]};
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = uris,
                                              .n_nodes = 2,
                                              .guard = QUORLOCK_GUARD_OFF,
                                              .node_timeout_ms = 200,
                                              .allocator = &hooks};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t length = sizeof(address);

        listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listeners[i], (struct sockaddr *)&address, length) != 0 || listen(listeners[i], 16) != 0)
            return -1;
        if (getsockname(listeners[i], (struct sockaddr *)&address, &length) != 0) return -1;
        snprintf(addresses[i], sizeof(addresses[i]), "127.0.0.1:%d", ntohs(address.sin_port));
    }
    told = told_closed = 0;
    close_inside = false;
    allocations_left = -1;
    base = event_base_new();
    return base == NULL ? -1 : quorlock_client_new(&client, base, &options);
}

static int teardown(void **state)
{
    (void)state;
    if (told_closed == 0) {
        if (!close_inside && quorlock_client_close(client, on_closed, NULL) != 0) return -1;
        while (told_closed == 0) event_base_dispatch(base);
    }
    event_base_free(base);
    close(listeners[0]);
    close(listeners[1]);
    return 0;
}

static void silent_nodes_are_reported(void **state)
{
    (void)state;
    assert_int_equal(quorlock_examine(client, NULL, NULL), QUORLOCK_INVAL);
    assert_int_equal(quorlock_examine(client, on_examined, &told), 0);
    assert_int_equal(told, 0);
    event_base_dispatch(base);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, 0);
}

static void closing_ends_an_examination_first(void **state)
{
    (void)state;
    assert_int_equal(quorlock_examine(client, on_examined, &told), 0);
    assert_int_equal(quorlock_examine(client, on_examined, &told), 0);
    assert_int_equal(quorlock_client_close(client, on_closed, NULL), 0);
    assert_int_equal(quorlock_examine(client, on_examined, &told), QUORLOCK_CLOSED);
    while (told_closed == 0) event_base_dispatch(base);
    assert_int_equal(told, 2);
    assert_int_equal(told_status, QUORLOCK_CLOSED);
}

static void the_callback_may_close_the_client(void **state)
{
    (void)state;
    close_inside = true;
    assert_int_equal(quorlock_examine(client, on_examined, &told), 0);
    while (told_closed == 0) event_base_dispatch(base);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, 0);
}

/* Whatever allocation fails: no start, or one callback; and nothing leaks (the sanitizers look). */
static void memory_may_run_out(void **state)
{
    int refused = 0;

    (void)state;
    for (long limit = 0; limit < 60; limit++) {
        int status;

        told = 0;
        allocations_left = limit;
        status = quorlock_examine(client, on_examined, &told);
        if (status != 0) {
            assert_int_equal(status, QUORLOCK_NOMEM);
            refused++;
        } else {
            if (limit > 25) allocations_left = -1;
            while (told == 0) event_base_dispatch(base);
            assert_true(told_status == 0 || told_status == QUORLOCK_NOMEM);
            if (limit > 25) break;
        }
    }
    allocations_left = -1;
    assert_true(refused > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(silent_nodes_are_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_ends_an_examination_first, setup, teardown),
        cmocka_unit_test_setup_teardown(the_callback_may_close_the_client, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_may_run_out, setup, teardown),
    };

    return cmocka_run_group_tests_name("examination", tests, NULL, NULL);
}
