/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_subscriber_wire.c - the connection for release notices, on a real server
 */
#include "fixture.h"
#include "redis/link/uri.h"
#include "redis/subscriber.h"

#define LIMIT_US 60000000u
#define STEP_MS  20000
#define SHORT_MS 2000 /* where its passing is the test */

/* The subscriber's callbacks: "open", "closed", "listening C", "refused C", "message C PAYLOAD", a line each.
 */
struct listener {
    struct alloc alloc;
    struct system system;
    struct uri uri;
    struct subscriber *subscriber;
    const char *wants; /* a channel, asked for at each open */
    char trace[8192], why[512], logged[8192];
};

static struct listener listener;

__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
    size_t used = strlen(listener.trace);

    va_list args;

    va_start(args, format);
    vsnprintf(listener.trace + used, sizeof(listener.trace) - used, format, args);
    va_end(args);
}

static void on_open(void *arg, uint32_t index)
{
    record("open\n");
    if (listener.wants != NULL)
        assert_int_equal(subscriber_listen(listener.subscriber, listener.wants, strlen(listener.wants)), 0);
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    snprintf(listener.why, sizeof(listener.why), "%s", why);
    record("closed\n");
}

static void on_listening(void *arg, uint32_t index, const char *channel, size_t length)
{
    record("listening %.*s\n", (int)length, channel);
}

static void on_refused(void *arg, uint32_t index, const char *channel, size_t length, const char *why)
{
    snprintf(listener.why, sizeof(listener.why), "%s", why);
    record("refused %.*s\n", (int)length, channel);
}

static void on_message(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                       size_t payload_length)
{
    record("message %.*s %.*s\n", (int)length, channel, (int)payload_length, payload);
}

static void on_log(void *arg, int level, const char *text)
{
    size_t used = strlen(listener.logged);

    snprintf(listener.logged + used, sizeof(listener.logged) - used, "%d %s\n", level, text);
}

static uint64_t now_us(void *arg)
{
    return clock_us();
}

static void end(void)
{
    if (listener.subscriber == NULL) return;
    subscriber_free(listener.subscriber);
    uri_clear(&listener.uri, &listener.alloc);
    listener.subscriber = NULL;
}

static void begin(const char *address, const char *wants, uint32_t timeout_ms)
{
    const struct subscriber_events events = {on_open, on_closed, on_listening, on_refused, on_message, NULL, NULL};
    const struct link_config config = {.uri = &listener.uri,
                                       .timeout_ms = timeout_ms,
                                       .connect_ms = 20000,
                                       .reconnect_min_ms = 5,
                                       .reconnect_max_ms = 50,
                                       .now_us = now_us,
                                       .log = on_log};
    char error[TEXT_SIZE];

    memset(&listener, 0, sizeof(listener));
    alloc_init(&listener.alloc, NULL);
    listener.system = host_loop_system(&listener.alloc);
    if (uri_parse(&listener.uri, &listener.alloc, address, error, sizeof(error)) != 0) fail_msg("%s", error);
    listener.wants = wants;
    listener.subscriber = subscriber_new(&listener.system, &listener.alloc, 0, &config, &events);
    assert_non_null(listener.subscriber);
    fixture.at_end = end;
    subscriber_start(listener.subscriber);
}

/* Runs the loop until the whole trace is that. */
static void await_trace(const char *wanted)
{
    uint64_t since_us = clock_us();

    while (strcmp(listener.trace, wanted) != 0) {
        if (clock_us() - since_us > LIMIT_US || strlen(listener.trace) > strlen(wanted))
            fail_msg("trace:\n%swanted:\n%slog:\n%s", listener.trace, wanted, listener.logged);
        event_base_loop(fixture.base, EVLOOP_ONCE);
    }
}

SERVER_TEST(test_notices)
{
    const struct server *server = SERVER(0);
    const char *const addresses[] = {server->address, server->unix_address};

    for (size_t i = 0; i < 2; i++) {
        begin(addresses[i], "c", STEP_MS);
        await_trace("open\nlistening c\n");
        assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
        assert_int_equal(server_ask_number(server, "PUBLISH d one"), 0);
        assert_int_equal(server_ask_number(server, "PUBLISH c two"), 1);
        await_trace("open\nlistening c\nmessage c one\nmessage c two\n");
        listener.trace[0] = '\0';

        /* In order: a confirmed channel is subscribed, a forgotten one is not. */
        subscriber_forget(listener.subscriber, "c", 1);
        assert_int_equal(subscriber_listen(listener.subscriber, "d", 1), SUBSCRIBER_ASKED);
        await_trace("listening d\n");
        assert_int_equal(server_ask_number(server, "PUBLISH c three"), 0);
        assert_int_equal(server_ask_number(server, "PUBLISH d three"), 1);
        await_trace("listening d\nmessage d three\n");

        subscriber_stop(listener.subscriber);
        subscriber_start(listener.subscriber);
        await_trace("listening d\nmessage d three\nopen\nlistening c\n");
        assert_int_equal(server_ask_number(server, "PUBLISH d four"), 0);
        end();
    }
}

SERVER_TEST(test_cut)
{
    struct server *server = SERVER(0);

    begin(server->address, "c", STEP_MS);
    await_trace("open\nlistening c\n");
    server_do(server, "CLIENT KILL TYPE pubsub");
    await_trace("open\nlistening c\nclosed\nopen\nlistening c\n");
    listener.trace[0] = '\0';
    assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
    await_trace("message c one\n");

    server_restart(server);
    await_trace("message c one\nclosed\nopen\nlistening c\n");
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
        event_base_loop(fixture.base, EVLOOP_ONCE);
    }
}

/* Only our PING ends the connection of a frozen server; a quiet one that answers is kept. */
SERVER_TEST(test_frozen)
{
    struct server *server = SERVER(0);

    begin(server->address, "c", SHORT_MS);
    await_trace("open\nlistening c\n");
    await_ping(server);
    await_trace("open\nlistening c\n");

    server_freeze(server);
    await_trace("open\nlistening c\nclosed\n");
    assert_contains(listener.why, "no answer within 2000 ms");
    server_thaw(server);
    await_trace("open\nlistening c\nclosed\nopen\nlistening c\n");
}

SERVER_TEST(test_rights)
{
    const struct server *server = SERVER(0);
    char address[2 * TEXT_SIZE];
    uint64_t since_us;

    server_do(server, "ACL SETUSER deaf on >sesame ~* +@all resetchannels &open");
    server_do(server, "ACL SETUSER least on >sesame resetchannels &c +subscribe +unsubscribe");
    snprintf(address, sizeof(address), "redis://deaf:sesame@%s", server->address);
    begin(address, "c", STEP_MS);
    await_trace("open\nrefused c\n");
    assert_contains(listener.why, "SUBSCRIBE: NOPERM");
    assert_contains(listener.logged, "give this user the right by ACL SETUSER");
    /* The connection still serves the channels that are allowed. */
    assert_int_equal(subscriber_listen(listener.subscriber, "open", 4), SUBSCRIBER_ASKED);
    await_trace("open\nrefused c\nlistening open\n");
    /* The server disconnects a user that loses the right. */
    server_do(server, "ACL SETUSER deaf resetchannels");
    await_trace("open\nrefused c\nlistening open\nclosed\nopen\nrefused c\n");
    end();

    /* Neither CLIENT SETNAME nor PING is needed. */
    snprintf(address, sizeof(address), "redis://least:sesame@%s", server->address);
    begin(address, "c", SHORT_MS);
    await_trace("open\nlistening c\n");
    since_us = clock_us();
    while (clock_us() - since_us < SHORT_MS * 1100ull) event_base_loop(fixture.base, EVLOOP_ONCE);
    assert_int_equal(server_ask_number(server, "PUBLISH c one"), 1);
    await_trace("open\nlistening c\nmessage c one\n");
    end();

    snprintf(address, sizeof(address), "redis://least:wrong@%s", server->address);
    begin(address, "c", STEP_MS);
    while (strstr(listener.logged, "WRONGPASS") == NULL) event_base_loop(fixture.base, EVLOOP_ONCE);
    assert_string_equal(listener.trace, "");
    server_do(server, "ACL SETUSER least >wrong");
    await_trace("open\nlistening c\n");
}

/* Replicas accept subscribers while they load or have no master. */
SERVER_TEST(test_replica)
{
    const struct server *server = SERVER(0);

    server_do(server, "CONFIG SET replica-serve-stale-data no");
    server_do(server, "REPLICAOF 127.0.0.1 1");
    begin(server->address, "c", STEP_MS);
    await_trace("open\nlistening c\n");
}
