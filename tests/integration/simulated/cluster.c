/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster.c - model servers in place of real ones (cluster.h) */
#include "cluster.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "place.h"

#define WORDS_MAX     512u
#define PORT          6379u
#define HEAR_LIMIT_US 30000000u

_Static_assert(CLUSTER_NODES_MAX <= PLACE_SERVERS_MAX, "each server has a place");

uint64_t clock_us(void)
{
    return place_clock_us();
}

uint64_t wall_us(void)
{
    return place_wall_us();
}

void cluster_pause_us(uint64_t us)
{
    place_sleep(us);
}

static uint32_t index_of(const struct server *server)
{
    return (uint32_t)(server - fixture.cluster.servers);
}

/* ---- who listens ---- */

struct listener {
    struct session *session; /* NULL: closed */
    uint32_t server;
    redisReader *reader;
};

static struct listener listeners[LISTENERS_MAX];

static void on_said(void *arg, const void *bytes, size_t size)
{
    const struct listener *listener = arg;

    assert_int_equal(redisReaderFeed(listener->reader, bytes, size), REDIS_OK);
}

/* What was said next, or NULL: nothing. */
static redisReply *next_said(struct listener *listener)
{
    void *reply = NULL;

    assert_int_equal(redisReaderGetReply(listener->reader, &reply), REDIS_OK);
    return reply;
}

void listener_to(struct listener *listener, const char *command, const char *channel)
{
    redisReply *reply;
    char *bytes = NULL;
    int length = redisFormatCommand(&bytes, "%s %s", command, channel);

    place_say(listener->server, listener->session, bytes, (size_t)length);
    free(bytes);
    reply = next_said(listener);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) fail_msg("no %s", command);
    freeReplyObject(reply);
}

struct listener *server_listen(const struct server *server, const char *channel)
{
    struct listener *listener = listeners;

    while (listener->session != NULL) assert_true(++listener < listeners + LISTENERS_MAX);
    listener->reader = redisReaderCreate();
    listener->server = index_of(server);
    listener->session = place_listen(listener->server, on_said, listener);
    listener_to(listener, "SUBSCRIBE", channel);
    return listener;
}

void listener_next(struct listener *listener, char *ret_channel, char *ret, size_t size)
{
    uint64_t until_us = clock_us() + HEAR_LIMIT_US;
    redisReply *reply = next_said(listener);

    for (; reply == NULL; reply = next_said(listener)) {
        if (clock_us() >= until_us) fail_msg("nothing was heard");
        place_turn(until_us);
    }
    assert_true(reply->elements >= 3);
    if (ret_channel != NULL) snprintf(ret_channel, size, "%s", reply->element[reply->elements - 2]->str);
    snprintf(ret, size, "%s", reply->element[reply->elements - 1]->str);
    freeReplyObject(reply);
}

void listener_close(struct listener *listener)
{
    if (listener->session == NULL) return;
    place_deafen(listener->session);
    redisReaderFree(listener->reader);
    listener->session = NULL;
}

/* ---- life ---- */

void cluster_start(struct cluster *cluster, uint32_t n)
{
    assert_true(n <= CLUSTER_NODES_MAX);
    memset(cluster, 0, sizeof(*cluster));
    for (uint32_t i = 0; i < n; i++) {
        struct server *server = &cluster->servers[i];

        server->port = PORT;
        server->pid = 1;
        snprintf(server->address, sizeof(server->address), "10.0.0.%u:%u", i + 1, PORT);
        cluster->addresses[i] = server->address;
        cluster->n = i + 1;
        place_boot(i, NULL);
    }
}

void cluster_end(struct cluster *cluster)
{
    for (size_t i = 0; i < LISTENERS_MAX; i++) listener_close(&listeners[i]);
    cluster->n = 0;
}

static void launch(struct server *server, bool empty)
{
    assert_int_equal(server->pid, 0);
    assert_null(server->more);
    place_launch(index_of(server), empty, server->password);
    server->pid = 1;
}

void server_start(struct server *server)
{
    launch(server, false);
}

void server_kill(struct server *server)
{
    if (server->pid == 0) return;
    place_crash(index_of(server));
    server->pid = 0;
}

void server_freeze(struct server *server)
{
    assert_int_not_equal(server->pid, 0);
    place_freeze(index_of(server), true);
}

void server_thaw(struct server *server)
{
    assert_int_not_equal(server->pid, 0);
    place_freeze(index_of(server), false);
}

void server_restart(struct server *server)
{
    server_kill(server);
    launch(server, false);
}

void server_wipe(struct server *server)
{
    server_kill(server);
    launch(server, true);
}

/* ---- commands ---- */

/* The words of a command as hiredis splits it: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n". */
static size_t split(char *text, const char *words[WORDS_MAX])
{
    size_t n = (size_t)strtoul(text + 1, &text, 10);

    assert_true(n <= WORDS_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t length = (size_t)strtoul(text + 3, &text, 10);

        words[i] = text + 2;
        text += 2 + length;
        *text = '\0';
    }
    return n;
}

static const char *command(const struct server *server, const char *format, va_list arguments)
{
    const char *words[WORDS_MAX];
    const char *reply;
    char *text = NULL;

    assert_int_not_equal(server->pid, 0);
    assert_true(redisvFormatCommand(&text, format, arguments) > 0);
    reply = place_do(index_of(server), words, split(text, words));
    free(text);
    return reply;
}

static const char *ask(const struct server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *ask(const struct server *server, const char *format, ...)
{
    va_list arguments;
    const char *reply;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    return reply;
}

/* "ERR no such thing": an error begins with a word in capitals, which no reply does that a test asks for so. */
static bool is_error(const char *reply)
{
    size_t n = strspn(reply, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n > 2 && reply[n] == ' ';
}

void server_do(const struct server *server, const char *format, ...)
{
    va_list arguments;
    const char *reply;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    if (is_error(reply)) fail_msg("'%s': %s", format, reply);
}

long long server_ask_number(const struct server *server, const char *format, ...)
{
    va_list arguments;
    const char *reply;
    char *end;
    long long number;

    va_start(arguments, format);
    reply = command(server, format, arguments);
    va_end(arguments);
    number = strtoll(reply, &end, 10);
    if (*reply == '\0' || *end != '\0') fail_msg("'%s': '%s' is no number", format, reply);
    return number;
}

void server_value(const struct server *server, const char *key, char *ret, size_t size)
{
    const char *reply = ask(server, "GET %s", key);

    snprintf(ret, size, "%s", is_error(reply) ? "" : reply);
}

long long server_keys(const struct server *server, const char *prefix)
{
    return place_keys(index_of(server), prefix);
}

long long server_script_calls(const struct server *server)
{
    return place_scripts(index_of(server));
}

long long server_lock_calls(const struct server *server)
{
    return place_sets(index_of(server)) + server_script_calls(server);
}

long long server_clients(const struct server *server)
{
    const char *at = strstr(ask(server, "INFO %s", "clients"), "connected_clients:");

    assert_non_null(at);
    return strtoll(at + strlen("connected_clients:"), NULL, 10) - 1;
}
