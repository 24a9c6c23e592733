/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an examination: two nodes accept the connection and never answer. */
#include <arpa/inet.h>
#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/client.h"
#include "base/system_os.h"
#include "test.h"

#define EXAMINE_TEST(name) TEST_WITH(examine_fixture, name, setup, teardown)

struct examine_fixture {
    struct event_base *base;
    quorlock_client *client;
    int listeners[2];
    char addresses[2][32];
    int reports, status, closed;
    bool close_inside;
    struct counted counted;
};

static void on_closed(void *arg)
{
    struct examine_fixture *f = arg;

    f->closed++;
    event_base_loopbreak(f->base);
}

static void on_examined(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct examine_fixture *f = arg;

    assert_int_equal(f->closed, 0);
    f->reports++;
    f->status = status;
    if (status == 0) {
        assert_true(report->n_findings >= 3);
        assert_string_equal(report->findings[0]->code, "no-quorum");
        assert_contains(report->facts_json, "\"reachable\":false,\"error\":\"");
    } else {
        assert_int_equal(report->n_findings, 0);
    }
    if (f->close_inside) assert_int_equal(quorlock_client_close(f->client, on_closed, f), 0);
    event_base_loopbreak(f->base);
}

static int setup(void **state)
{
    static struct examine_fixture fixture;
    struct examine_fixture *f = &fixture;
    const struct alloc_hooks hooks = counted_hooks(&f->counted);
    const char *uris[2] = {f->addresses[0], f->addresses[1]};
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = uris,
                                              .n_nodes = 2,
                                              .guard = QUORLOCK_GUARD_OFF,
                                              .node_timeout_ms = 200,
                                              .connect_timeout_ms = 200};
    const struct client_extras extras = {.memory = &hooks};
    struct system system;

    memset(f, 0, sizeof(*f));
    f->counted = (struct counted){.until_failure = -1, .for_good = true};
    *state = f;
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t length = sizeof(address);

        f->listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(f->listeners[i], (struct sockaddr *)&address, length) != 0) return -1;
        if (listen(f->listeners[i], 16) != 0) return -1;
        if (getsockname(f->listeners[i], (struct sockaddr *)&address, &length) != 0) return -1;
        snprintf(f->addresses[i], sizeof(f->addresses[i]), "127.0.0.1:%d", ntohs(address.sin_port));
    }
    f->base = event_base_new();
    if (f->base == NULL) return -1;
    system = system_libevent(f->base, NULL);
    return client_new_on(&f->client, &system, &options, &extras, NULL);
}

static int teardown(void **state)
{
    struct examine_fixture *f = *state;

    f->counted.until_failure = -1;
    if (f->closed == 0) {
        if (!f->close_inside && quorlock_client_close(f->client, on_closed, f) != 0) return -1;
        while (f->closed == 0) event_base_dispatch(f->base);
    }
    event_base_free(f->base);
    close(f->listeners[0]);
    close(f->listeners[1]);
    return f->counted.out != 0;
}

EXAMINE_TEST(silent_nodes_are_reported)
{
    assert_int_equal(quorlock_client_doctor(f->client, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_client_doctor(f->client, on_examined, f), 0);
    assert_int_equal(f->reports, 0);
    event_base_dispatch(f->base);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->status, 0);
}

EXAMINE_TEST(closing_ends_an_examination_first)
{
    assert_int_equal(quorlock_client_doctor(f->client, on_examined, f), 0);
    assert_int_equal(quorlock_client_doctor(f->client, on_examined, f), 0);
    assert_int_equal(quorlock_client_close(f->client, on_closed, f), 0);
    assert_int_equal(quorlock_client_doctor(f->client, on_examined, f), QUORLOCK_ERR_CLOSED);
    while (f->closed == 0) event_base_dispatch(f->base);
    assert_int_equal(f->reports, 2);
    assert_int_equal(f->status, QUORLOCK_ERR_CLOSED);
}

EXAMINE_TEST(the_callback_may_close_the_client)
{
    f->close_inside = true;
    assert_int_equal(quorlock_client_doctor(f->client, on_examined, f), 0);
    while (f->closed == 0) event_base_dispatch(f->base);
    assert_int_equal(f->reports, 1);
    assert_int_equal(f->status, 0);
}

/* Whatever allocation fails: no start, or one callback; and nothing leaks (the teardown counts). */
EXAMINE_TEST(memory_may_run_out)
{
    int refused = 0;

    for (long limit = 0; limit < 60; limit++) {
        int status;

        f->reports = 0;
        f->counted.until_failure = limit;
        status = quorlock_client_doctor(f->client, on_examined, f);
        if (status != 0) {
            assert_int_equal(status, QUORLOCK_ERR_NOMEM);
            refused++;
            continue;
        }
        if (limit > 25) f->counted.until_failure = -1;
        while (f->reports == 0) event_base_dispatch(f->base);
        assert_true(f->status == 0 || f->status == QUORLOCK_ERR_NOMEM);
        if (limit > 25) break;
    }
    assert_true(refused > 5);
}
