/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_subscriber.c - a subscriber whose server says anything, at any time
 *
 * The connection is ours: it connects when we say so, and reads what the bytes of the input are, also answers
 * that fit. What the owner does, also inside callbacks, is chosen by bytes too. Whatever comes, each listen
 * that was taken is answered once, or the connection ends, or the owner forgets it.
 */
#include "feed.h"

#include <errno.h>
#include <event2/event.h>

#include "base/system_os.h"
#include "redis/link/conn.h"
#include "redis/link/uri.h"
#include "redis/subscriber.h"

#define CHANNELS  4
#define STEPS_MAX 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    struct feed feed;
    struct event_base *base;
    struct subscriber *subscriber;
    struct conn *conn; /* the one that is open, or opening */
    const char *coming;
    size_t n_coming;
    int failing; /* errno with which the connection ends; -1: the peer closes */
    uint64_t now_us;
    bool inside, open;
    unsigned owed[CHANNELS]; /* listens that were not answered yet */
    unsigned acts;
} world;

/* ---- the connection, instead of conn.c ---- */

bool conn_init(struct conn *conn, struct system *system, const struct alloc *alloc,
               void (*ready)(void *arg, enum conn_ready), void *arg)
{
    *conn = (struct conn){.system = system, .ready = ready, .arg = arg, .fd = -1};
    bytes_init(&conn->out, alloc, CONN_OUT_MAX);
    return true;
}

void conn_clear(struct conn *conn)
{
    conn_close(conn, false);
    bytes_clear(&conn->out);
}

int conn_open(struct conn *conn, const struct address *address, uint32_t user_timeout_ms, struct conn_layer *layer)
{
    (void)address;
    (void)user_timeout_ms;
    (void)layer;
    CHECK(conn->fd == -1 && world.conn == NULL);
    if (feed_byte(&world.feed) % 16 == 15) return ECONNREFUSED;
    conn->fd = 1;
    conn->fault = FAULT_UNREACHABLE;
    conn->connecting = true;
    world.conn = conn;
    return 0;
}

void conn_close(struct conn *conn, bool reset)
{
    (void)reset;
    if (world.conn == conn) world.conn = NULL;
    conn->fd = -1;
    conn->connecting = false;
    bytes_cut(&conn->out, 0);
    world.n_coming = 0;
}

void conn_keep_sending(struct conn *conn)
{
    (void)conn;
}

enum conn_progress conn_finish(struct conn *conn)
{
    conn->connecting = false;
    conn->error = ECONNRESET;
    return feed_byte(&world.feed) % 16 == 15 ? CONN_FAILED : CONN_DONE;
}

void conn_allow_reads(struct conn *conn)
{
    (void)conn;
}

const char *conn_why(const struct conn *conn)
{
    return conn->error != 0 ? strerror(conn->error) : NULL;
}

ssize_t conn_read(struct conn *conn, void *buffer, size_t size)
{
    size_t n = world.n_coming < size ? world.n_coming : size;

    CHECK(world.conn == conn && !conn->connecting);
    if (n == 0 && world.failing == 0) return 0;
    if (n == 0) {
        conn->error = world.failing == -1 ? 0 : world.failing;
        return -1;
    }
    memcpy(buffer, world.coming, n);
    world.coming += n;
    world.n_coming -= n;
    return (ssize_t)n;
}

void conn_wake(struct conn *conn)
{
    CHECK(world.conn == conn && !conn->connecting && conn->out.used > 0);
}

/* Nobody calls these: the server's address asks for no TLS, and only nodes ask for the other. */
bool conn_has_input(const struct conn *conn)
{
    return world.conn == conn && world.n_coming > 0;
}

ssize_t conn_send(struct conn *conn, const void *bytes, size_t size)
{
    (void)conn;
    (void)bytes;
    (void)size;
    return -1;
}

ssize_t conn_receive(struct conn *conn, void *ret, size_t size)
{
    (void)conn;
    (void)ret;
    (void)size;
    return -1;
}

/* ---- the owner ---- */

static const char names[CHANNELS][3] = {"a", "b", "cc", ""};

static int which(const char *channel, size_t length)
{
    for (int i = 0; i < CHANNELS; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], channel, length) == 0) return i;
    }
    return -1;
}

static void owe_nothing(void)
{
    memset(world.owed, 0, sizeof(world.owed));
}

/* What the owner calls; false where the subscriber is gone. */
static void act(uint8_t what)
{
    int channel = what >> 4 & 3;

    if (world.subscriber == NULL || world.acts++ > STEPS_MAX) return;
    world.inside = true;
    switch (what & 7) {
    case 0:
    case 1:
    case 2:
        if (subscriber_listen(world.subscriber, names[channel], strlen(names[channel])) == SUBSCRIBER_ASKED) {
            CHECK(world.open);
            world.owed[channel]++;
        }
        break;
    case 3:
        subscriber_forget(world.subscriber, names[channel], strlen(names[channel]));
        world.owed[channel] = 0;
        break;
    case 4:
        subscriber_stop(world.subscriber);
        world.open = false;
        owe_nothing();
        CHECK(!subscriber_is_open(world.subscriber));
        break;
    case 5: subscriber_start(world.subscriber); break;
    case 6:
        if (what != 0xf6) break;
        subscriber_free(world.subscriber);
        world.subscriber = NULL;
        world.open = false;
        owe_nothing();
        break;
    default: break;
    }
    world.inside = false;
    if (world.subscriber != NULL) CHECK(subscriber_is_open(world.subscriber) == world.open);
}

static void act_inside(void)
{
    uint8_t what = feed_byte(&world.feed);

    CHECK(!world.inside);
    if (what >= 128) act(what);
}

static void on_open(void *arg, uint32_t index)
{
    (void)arg;
    CHECK(index == 7 && !world.open);
    world.open = true;
    for (int i = 0; i < CHANNELS; i++) CHECK(world.owed[i] == 0);
    act_inside();
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    (void)arg;
    CHECK(index == 7 && world.open && why[0] != '\0');
    world.open = false;
    owe_nothing();
    act_inside();
}

static void answered(const char *channel, size_t length)
{
    int at = which(channel, length);

    CHECK(at >= 0 && world.open && world.owed[at] > 0);
    world.owed[at]--;
    act_inside();
}

static void on_listening(void *arg, uint32_t index, const char *channel, size_t length)
{
    (void)arg;
    (void)index;
    answered(channel, length);
}

static void on_refused(void *arg, uint32_t index, const char *channel, size_t length, const char *why)
{
    (void)arg;
    (void)index;
    CHECK(why[0] != '\0' && strstr(why, "sesame") == NULL);
    answered(channel, length);
}

static void on_message(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                       size_t payload_length)
{
    size_t sum = 0;

    (void)arg;
    (void)index;
    for (size_t i = 0; i < length; i++) sum += (unsigned char)channel[i];
    for (size_t i = 0; i < payload_length; i++) sum += (unsigned char)payload[i];
    CHECK(sum != SIZE_MAX && world.open);
    act_inside();
}

static void on_log(int level, const char *text, void *arg)
{
    (void)arg;
    (void)level;
    CHECK(!world.inside);
    for (; *text != '\0'; text++) {
        CHECK((unsigned char)*text >= 0x20 && *text != 0x7f);
        CHECK(strncmp(text, "sesame", 6) != 0);
    }
}

static uint64_t now_us(void *arg)
{
    (void)arg;
    return world.now_us;
}

/* ---- the server ---- */

static void say(const char *text, size_t length)
{
    if (world.conn == NULL || world.conn->connecting) return;
    world.coming = text;
    world.n_coming = length;
    world.conn->ready(world.conn->arg, CONN_READABLE);
    world.n_coming = 0;
}

/* An answer that may fit, or a message. */
static void say_well(uint8_t what)
{
    static const char *const formats[6] = {"*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n",
                                           "*3\r\n$11\r\nunsubscribe\r\n$%zu\r\n%s\r\n:0\r\n",
                                           "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
                                           "-NOPERM this user has no permissions %zu %s\r\n",
                                           "*2\r\n$4\r\npong\r\n$0\r\n\r\n",
                                           "+OK\r\n+OK\r\n+PONG\r\n"};
    const char *name = names[what >> 4 & 3];
    char text[128];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int length = snprintf(text, sizeof(text), formats[what % 6], strlen(name), name);
#pragma GCC diagnostic pop

    say(text, (size_t)length);
}

static void end_connection(uint8_t what)
{
    if (world.conn == NULL || world.conn->connecting) return;
    world.failing = (what & 16) != 0 ? -1 : ECONNRESET;
    world.conn->error = (what & 16) != 0 ? 0 : ECONNRESET;
    world.conn->ready(world.conn->arg, (what & 32) != 0 ? CONN_BROKEN : CONN_READABLE);
    world.failing = 0;
}

static void something_happens(void)
{
    uint8_t what = feed_byte(&world.feed);
    size_t length;
    const char *text;

    world.now_us += (uint64_t)what * 1000;
    switch (what & 7) {
    case 0:
    case 1: act(feed_byte(&world.feed)); break;
    case 2:
        text = feed_text(&world.feed, 255, &length);
        say(text, length);
        break;
    case 3:
    case 4: say_well(feed_byte(&world.feed)); break;
    case 5:
        if (world.conn != NULL && world.conn->connecting) world.conn->ready(world.conn->arg, CONN_CONNECTED);
        break;
    case 6:
        if (what >= 128) end_connection(what);
        break;
    default: break;
    }
    /* Timers that are due at once: the begin, and the pause of nothing. */
    event_base_loop(world.base, EVLOOP_NONBLOCK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char host[] = "127.0.0.1", password[] = "sesame", name[] = "127.0.0.1:1";
    const struct uri uri = {.kind = URI_NUMERIC, .host = host, .port = 1, .password = password, .name = name};
    const struct link_config config = {
        .uri = &uri, .timeout_ms = 1000, .connect_ms = 1000, .now_us = now_us, .log = on_log};
    const struct subscriber_events events = {
        .open = on_open, .closed = on_closed, .listening = on_listening, .refused = on_refused, .message = on_message};
    struct event_base *base = world.base;
    struct alloc alloc;
    struct system system;

    memset(&world, 0, sizeof(world));
    world.base = base != NULL ? base : event_base_new();
    world.feed = (struct feed){data, size};
    world.now_us = 1000000;
    alloc_init(&alloc, NULL);
    system = system_libevent(world.base, &alloc);
    world.subscriber = subscriber_new(&system, &alloc, 7, &config, &events);
    CHECK(world.subscriber != NULL);
    subscriber_start(world.subscriber);
    while (world.feed.left > 0) something_happens();
    subscriber_free(world.subscriber);
    event_base_loop(world.base, EVLOOP_NONBLOCK);
    return 0;
}
