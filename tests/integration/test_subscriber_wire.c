/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_subscriber_wire.c - the connection for release notices, on a real server
 */
#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster.h"
#include "redis/link/uri.h"
#include "redis/subscriber.h"

#define LIMIT_US 60000000u
#define STEP_MS  20000
#define SHORT_MS 3000 /* where its passing is the test */

static struct cluster cluster;
static struct event_base *base;

/* What the subscriber told: "open", "closed", "listening C", "refused C", "message C PAYLOAD", a line each. */
struct listener {
    struct alloc alloc;
    struct uri uri;
    struct subscriber_config config;
    struct subscriber *subscriber;
    const char *wants; /* a channel, asked for at each open */
    char story[8192], why[512], logged[8192];
};

static int setup(void **state)
{
    base = event_base_new();
    assert_non_null(base);
    cluster_start(&cluster, 1);
    return 0;
}

static int teardown(void **state)
{
    int added = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);

    cluster_end(&cluster);
    event_base_free(base);
    /* What is stopped leaves nothing on the base. */
    assert_int_equal(added, 0);
    return 0;
}

__attribute__((format(printf, 2, 3))) static void tell(struct listener *listener, const char *format, ...)
{
    size_t used = strlen(listener->story);
    va_list args;

    va_start(args, format);
    vsnprintf(listener->story + used, sizeof(listener->story) - used, format, args);
    va_end(args);
}

static void on_open(void *arg, uint32_t index)
{
    struct listener *listener = arg;

    tell(listener, "open\n");
    if (listener->wants != NULL)
        assert_int_equal(subscriber_listen(listener->subscriber, listener->wants, strlen(listener->wants)), 0);
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    struct listener *listener = arg;

    snprintf(listener->why, sizeof(listener->why), "%s", why);
    tell(listener, "closed\n");
}

static void on_listening(void *arg, uint32_t index, const char *channel, size_t length)
{
    tell(arg, "listening %.*s\n", (int)length, channel);
}

static void on_refused(void *arg, uint32_t index, const char *channel, size_t length, const char *why)
{
    struct listener *listener = arg;

    snprintf(listener->why, sizeof(listener->why), "%s", why);
    tell(listener, "refused %.*s\n", (int)length, channel);
}

static void on_message(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                       size_t payload_length)
{
    tell(arg, "message %.*s %.*s\n", (int)length, channel, (int)payload_length, payload);
}

static void on_log(void *arg, int level, const char *text)
{
    struct listener *listener = arg;
    size_t used = strlen(listener->logged);

    snprintf(listener->logged + used, sizeof(listener->logged) - used, "%d %s\n", level, text);
}

static uint64_t now_us(void *arg)
{
    return clock_us();
}

static void begin(struct listener *listener, const char *address, const char *wants, uint32_t timeout_ms)
{
    const struct subscriber_events events = {on_open,    on_closed, on_listening, on_refused,
                                             on_message, on_log,    listener};
    char error[TEXT_SIZE];

    memset(listener, 0, sizeof(*listener));
    alloc_init(&listener->alloc, NULL);
    if (uri_parse(&listener->uri, &listener->alloc, address, error, sizeof(error)) != 0) fail_msg("%s", error);
    listener->wants = wants;
    listener->config = (struct subscriber_config){.uri = &listener->uri,
                                                  .timeout_ms = timeout_ms,
                                                  .reconnect_min_ms = 5,
                                                  .reconnect_max_ms = 50,
                                                  .now_us = now_us};
    listener->subscriber = subscriber_new(base, &listener->alloc, &listener->config, &events);
    assert_non_null(listener->subscriber);
    subscriber_start(listener->subscriber);
}

static void end(struct listener *listener)
{
    subscriber_free(listener->subscriber);
    uri_clear(&listener->uri, &listener->alloc);
}

/* Runs the loop until the whole story is that. */
static void await_story(struct listener *listener, const char *wanted)
{
    uint64_t since_us = clock_us();

    while (strcmp(listener->story, wanted) != 0) {
        if (clock_us() - since_us > LIMIT_US || strlen(listener->story) > strlen(wanted))
            fail_msg("story:\n%swanted:\n%slog:\n%s", listener->story, wanted, listener->logged);
        event_base_loop(base, EVLOOP_ONCE);
    }
}

static void assert_tells(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" without \"%s\"", text, part);
}

static void test_notices(void **state)
{
    const struct server *server = &cluster.servers[0];
    const char *const addresses[] = {server->address, server->unix_address};

    for (size_t i = 0; i < 2; i++) {
        struct listener listener;

        begin(&listener, addresses[i], "c", STEP_MS);
        await_story(&listener, "open\nlistening c\n");
        assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
        assert_int_equal(server_ask_number(server, "PUBLISH d one"), 0);
        assert_int_equal(server_ask_number(server, "PUBLISH c two"), 1);
        await_story(&listener, "open\nlistening c\nmessage c one\nmessage c two\n");
        listener.story[0] = '\0';

        /* In order: what is confirmed is certain, what is forgotten is gone. */
        subscriber_forget(listener.subscriber, "c", 1);
        assert_int_equal(subscriber_listen(listener.subscriber, "d", 1), SUBSCRIBER_ASKED);
        await_story(&listener, "listening d\n");
        assert_int_equal(server_ask_number(server, "PUBLISH c three"), 0);
        assert_int_equal(server_ask_number(server, "PUBLISH d three"), 1);
        await_story(&listener, "listening d\nmessage d three\n");

        subscriber_stop(listener.subscriber);
        subscriber_start(listener.subscriber);
        await_story(&listener, "listening d\nmessage d three\nopen\nlistening c\n");
        assert_int_equal(server_ask_number(server, "PUBLISH d four"), 0);
        end(&listener);
    }
}

static void test_cut(void **state)
{
    struct server *server = &cluster.servers[0];
    struct listener listener;

    begin(&listener, server->address, "c", STEP_MS);
    await_story(&listener, "open\nlistening c\n");
    server_do(server, "CLIENT KILL TYPE pubsub");
    await_story(&listener, "open\nlistening c\nclosed\nopen\nlistening c\n");
    listener.story[0] = '\0';
    assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
    await_story(&listener, "message c one\n");

    server_restart(server);
    await_story(&listener, "message c one\nclosed\nopen\nlistening c\n");
    end(&listener);
}

static long long count_pings(const struct server *server)
{
    static const char script[] =
        "local n = string.match(redis.call('INFO', 'commandstats'), 'cmdstat_ping:calls=(%d+)') "
        "return tonumber(n or 0)";

    return server_ask_number(server, "EVAL %s 0", script);
}

/* Runs the loop until the server got one more PING. */
static void await_ping(const struct server *server)
{
    uint64_t since_us = clock_us();
    long long before = count_pings(server);

    while (count_pings(server) == before) {
        if (clock_us() - since_us > LIMIT_US) fail_msg("no PING");
        event_base_loop(base, EVLOOP_ONCE);
    }
}

/* Nothing ends the connection of a frozen server but our own PING; a quiet one that lives is kept. */
static void test_frozen(void **state)
{
    struct server *server = &cluster.servers[0];
    struct listener listener;

    begin(&listener, server->address, "c", SHORT_MS);
    await_story(&listener, "open\nlistening c\n");
    await_ping(server);
    await_story(&listener, "open\nlistening c\n");

    server_freeze(server);
    await_story(&listener, "open\nlistening c\nclosed\n");
    assert_tells(listener.why, "no answer within 3000 ms");
    server_thaw(server);
    await_story(&listener, "open\nlistening c\nclosed\nopen\nlistening c\n");
    end(&listener);
}

static void test_rights(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct listener listener;
    char address[2 * TEXT_SIZE];

    server_do(server, "ACL SETUSER deaf on >sesame ~* +@all resetchannels &open");
    server_do(server, "ACL SETUSER least on >sesame resetchannels &c +subscribe +unsubscribe");
    snprintf(address, sizeof(address), "redis://deaf:sesame@%s", server->address);
    begin(&listener, address, "c", STEP_MS);
    await_story(&listener, "open\nrefused c\n");
    assert_tells(listener.why, "SUBSCRIBE: NOPERM");
    assert_tells(listener.logged, "give this user the right by ACL SETUSER");
    /* The connection is of use for what is allowed. */
    assert_int_equal(subscriber_listen(listener.subscriber, "open", 4), SUBSCRIBER_ASKED);
    await_story(&listener, "open\nrefused c\nlistening open\n");
    /* Whom the right is taken from, the server throws out. */
    server_do(server, "ACL SETUSER deaf resetchannels");
    await_story(&listener, "open\nrefused c\nlistening open\nclosed\nopen\nrefused c\n");
    end(&listener);

    /* Neither CLIENT SETNAME nor PING is needed. */
    snprintf(address, sizeof(address), "redis://least:sesame@%s", server->address);
    begin(&listener, address, "c", SHORT_MS);
    await_story(&listener, "open\nlistening c\n");
    uint64_t since_us = clock_us();
    while (clock_us() - since_us < SHORT_MS * 1100ull) event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
    await_story(&listener, "open\nlistening c\nmessage c one\n");
    end(&listener);

    snprintf(address, sizeof(address), "redis://least:wrong@%s", server->address);
    begin(&listener, address, "c", STEP_MS);
    while (strstr(listener.logged, "WRONGPASS") == NULL) event_base_loop(base, EVLOOP_ONCE);
    assert_string_equal(listener.story, "");
    server_do(server, "ACL SETUSER least >wrong");
    await_story(&listener, "open\nlistening c\n");
    end(&listener);
}

/* Replicas publish what their master does, and take subscribers while they load or have no master. */
static void test_replica(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct listener listener;

    server_do(server, "CONFIG SET replica-serve-stale-data no");
    server_do(server, "REPLICAOF 127.0.0.1 1");
    begin(&listener, server->address, "c", STEP_MS);
    await_story(&listener, "open\nlistening c\n");
    end(&listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_notices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_frozen, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replica, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
