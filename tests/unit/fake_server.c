/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_server.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "redis/dialect/dialect.h"
#include "scripts.h"

#define FAKE_SCRIPTS_MAX     32
#define FAKE_CONNECTIONS_MAX 64
#define FAKE_INPUT_MAX       (4u << 20)
#define FAKE_COMMAND_SHOWN   256

static const char info_server[] = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:aaaa\r\n";
static const char info_replication[] = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
                                       "master_replid:bbbb\r\n";
static const char info_memory[] = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";

struct fake_connection {
    struct fake_server *server;
    int fd;
    struct event *readable, *next;
    const struct fake_step *step;
    size_t piece; /* of FAKE_PIECES */
    char *input;
    size_t used;
    bool closed;
};

struct fake_server {
    struct event_base *base;
    int fd;
    uint16_t port;
    struct event *acceptable;
    struct fake_step *scripts[FAKE_SCRIPTS_MAX]; /* copies */
    size_t n_scripts, next_script;
    struct fake_connection *connections[FAKE_CONNECTIONS_MAX];
    unsigned n_connections, n_commands;
    char failure[512];
};

static void advance(struct fake_connection *);

static void record_failure(struct fake_server *server, const char *what, const char *detail)
{
    if (server->failure[0] == '\0') snprintf(server->failure, sizeof(server->failure), "%s: %s", what, detail);
}

static void drop(struct fake_connection *connection)
{
    if (connection->closed) return;
    connection->closed = true;
    event_free(connection->readable);
    event_free(connection->next);
    close(connection->fd);
    free(connection->input);
    connection->input = NULL;
}

/* The peer may be gone: that is the test's business, not ours. */
static void put(struct fake_connection *connection, const char *data, size_t length)
{
    while (length != 0 && !connection->closed) {
        ssize_t n = sendto(connection->fd, data, length, MSG_NOSIGNAL, NULL, 0);

        if (n <= 0) return;
        data += n;
        length -= (size_t)n;
    }
}

static void put_text(struct fake_connection *connection, const char *text)
{
    put(connection, text, strlen(text));
}

static void put_bulk(struct fake_connection *connection, const char *text)
{
    char header[32];

    snprintf(header, sizeof(header), "$%zu\r\n", strlen(text));
    put_text(connection, header);
    put_text(connection, text);
    put_text(connection, "\r\n");
}

/* "<kind>number CR LF" at *at; false: not all there. */
static bool number(const struct fake_connection *connection, size_t *at, char kind, size_t *ret)
{
    char *line = connection->input + *at;
    char *end = *at < connection->used ? memchr(line, '\n', connection->used - *at) : NULL;

    if (end == NULL) return false;
    if (*line != kind) record_failure(connection->server, "not a command", "wrong type byte");
    *ret = strtoul(line + 1, NULL, 10);
    *at += (size_t)(end - line) + 1;
    return true;
}

/* Of no dialect. They may be longer: filled up with white space. */
static const struct {
    const char *name, *text;
    size_t length;
} listings[] = {{"list", script_list, sizeof(script_list) - 1},
                {"redisson_list", script_redisson_list, sizeof(script_redisson_list) - 1}};

/* A script of the plain dialect, or a listing, is shown by its name, whole or as a hash; NULL: it is none. */
static const char *script_name(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]); i++) {
        if (length >= listings[i].length && memcmp(word, listings[i].text, listings[i].length) == 0)
            return listings[i].name;
    }
    for (size_t i = 0; i < SCRIPTS; i++) {
        const struct dialect_script *script = &dialect_plain.scripts[i];
        const char *of_that_length = length == DIALECT_SHA_LENGTH ? script->sha : script->text;

        if (length != DIALECT_SHA_LENGTH && length != script->length) continue;
        if (memcmp(word, of_that_length, length) == 0) return script->name;
    }
    return NULL;
}

/* Takes one whole command off the input: its words, joined by spaces and cut. */
static bool read_command(struct fake_connection *connection, char shown[FAKE_COMMAND_SHOWN])
{
    size_t at = 0, n_words, length, n = 0;
    const char *word, *name;

    if (!number(connection, &at, '*', &n_words)) return false;
    for (size_t i = 0; i < n_words; i++) {
        if (!number(connection, &at, '$', &length)) return false;
        if (at + length + 2 > connection->used) return false;
        if (i != 0 && n + 1 < FAKE_COMMAND_SHOWN) shown[n++] = ' ';
        word = connection->input + at;
        at += length + 2;
        name = script_name(word, length);
        if (name != NULL) length = strlen(word = name);
        for (size_t j = 0; j < length && n + 1 < FAKE_COMMAND_SHOWN; j++) shown[n++] = word[j];
    }
    shown[n] = '\0';
    connection->used -= at;
    memmove(connection->input, connection->input + at, connection->used);
    connection->server->n_commands++;
    return true;
}

static bool begins(const char *text, const char *front)
{
    return strncmp(text, front, strlen(front)) == 0;
}

/* True: the handshake is over. */
static bool answer_handshake(struct fake_connection *connection, const char *command)
{
    const struct fake_step *step = connection->step;

    if (strcmp(command, "INFO server") == 0)
        put_bulk(connection, step->text != NULL ? step->text : info_server);
    else if (strcmp(command, "INFO replication") == 0)
        put_bulk(connection, step->more != NULL ? step->more : info_replication);
    else if (strcmp(command, "INFO memory") == 0)
        put_bulk(connection, info_memory);
    else if (begins(command, "EVAL "))
        put_bulk(connection, ""); /* no right is refused: the last command */
    else
        put_text(connection, "+OK\r\n");
    return begins(command, "EVAL ");
}

static void later(struct fake_connection *connection, unsigned ms)
{
    const struct timeval delay = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    event_add(connection->next, &delay);
}

/* A server without RESP3, where the script does not expect these commands. */
static bool refuse_tracking(struct fake_connection *connection, const char *command)
{
    static const char *const unknown[] = {"HELLO", "CLIENT TRACKING", "CLIENT CACHING"};

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        if (!begins(command, unknown[i]) || begins(command, connection->step->text)) continue;
        put_text(connection, "-ERR unknown command\r\n");
        return true;
    }
    return false;
}

/* One step; false: it waits for something. */
static bool play_step(struct fake_connection *connection)
{
    char command[FAKE_COMMAND_SHOWN];
    const struct fake_step *step = connection->step;

    switch (step->verb) {
    case FAKE_END: return false;
    case FAKE_HANDSHAKE:
        do {
            if (!read_command(connection, command)) return false;
        } while (!answer_handshake(connection, command));
        return true;
    case FAKE_GREETING:
        do {
            if (!read_command(connection, command)) return false;
            put_text(connection, strcmp(command, "PING") == 0 ? "+PONG\r\n" : "+OK\r\n");
        } while (strcmp(command, "PING") != 0);
        return true;
    case FAKE_EXPECT:
        do {
            if (!read_command(connection, command)) return false;
        } while (refuse_tracking(connection, command));
        if (!begins(command, step->text)) record_failure(connection->server, step->text, command);
        return true;
    case FAKE_SEND: put(connection, step->text, step->ms != 0 ? step->ms : strlen(step->text)); return true;
    case FAKE_PIECES:
        if (connection->piece == strlen(step->text)) return true;
        put(connection, step->text + connection->piece++, 1);
        later(connection, 0);
        return false;
    case FAKE_SLEEP:
        if (connection->piece++ != 0) return true;
        later(connection, step->ms);
        return false;
    case FAKE_CLOSE:
        /* One way: with bytes unread, or on their way, a whole close would be a reset. */
        shutdown(connection->fd, SHUT_WR);
        return false;
    case FAKE_RESET: {
        const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        drop(connection);
        return false;
    }
    }
    return false;
}

static void advance(struct fake_connection *connection)
{
    while (!connection->closed && play_step(connection)) {
        connection->step++;
        connection->piece = 0;
    }
}

static void on_next(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    advance(arg);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct fake_connection *connection = arg;
    ssize_t n = recv((int)fd, connection->input + connection->used, FAKE_INPUT_MAX - connection->used, 0);
    enum fake_verb verb = connection->step->verb;

    (void)what;
    if (n <= 0) {
        drop(connection);
        return;
    }
    connection->used += (size_t)n;
    if (verb == FAKE_HANDSHAKE || verb == FAKE_GREETING || verb == FAKE_EXPECT) advance(connection);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    static const struct fake_step silence[] = {{FAKE_END, 0, NULL, NULL}};
    struct fake_server *server = arg;
    int accepted = accept4((int)fd, NULL, NULL, SOCK_CLOEXEC);
    struct fake_connection *connection;

    (void)what;
    if (accepted < 0) return;
    if (server->n_connections == FAKE_CONNECTIONS_MAX) {
        record_failure(server, "accept", "too many connections");
        close(accepted);
        return;
    }
    connection = calloc(1, sizeof(*connection));
    server->connections[server->n_connections++] = connection;
    connection->server = server;
    connection->fd = accepted;
    /* Each send, and each piece, is a packet. */
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    connection->input = malloc(FAKE_INPUT_MAX);
    connection->step = server->next_script < server->n_scripts ? server->scripts[server->next_script++] : silence;
    connection->readable = event_new(server->base, accepted, EV_READ | EV_PERSIST, on_readable, connection);
    connection->next = event_new(server->base, -1, 0, on_next, connection);
    event_add(connection->readable, NULL);
    advance(connection);
}

struct fake_server *fake_new(struct event_base *base)
{
    struct fake_server *server = calloc(1, sizeof(*server));
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    const int small = 4096;

    server->base = base;
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Small, so that a peer that writes much meets EAGAIN. */
    setsockopt(server->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    if (bind(server->fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(server->fd, 16) != 0 ||
        getsockname(server->fd, (struct sockaddr *)&address, &length) != 0)
        record_failure(server, "listen", "no port");
    server->port = ntohs(address.sin_port);
    server->acceptable = event_new(base, server->fd, EV_READ | EV_PERSIST, on_acceptable, server);
    event_add(server->acceptable, NULL);
    return server;
}

void fake_free(struct fake_server *server)
{
    for (unsigned i = 0; i < server->n_connections; i++) {
        drop(server->connections[i]);
        free(server->connections[i]);
    }
    for (size_t i = 0; i < server->n_scripts; i++) free(server->scripts[i]);
    event_free(server->acceptable);
    close(server->fd);
    free(server);
}

uint16_t fake_port(const struct fake_server *server)
{
    return server->port;
}

void fake_play(struct fake_server *server, const struct fake_step *script)
{
    size_t n = 0;

    if (server->n_scripts == FAKE_SCRIPTS_MAX) {
        record_failure(server, "play", "too many scripts");
        return;
    }
    while (script[n].verb != FAKE_END && script[n].verb != FAKE_CLOSE && script[n].verb != FAKE_RESET) n++;
    server->scripts[server->n_scripts] = malloc((n + 1) * sizeof(*script));
    memcpy(server->scripts[server->n_scripts++], script, (n + 1) * sizeof(*script));
}

void fake_write(struct fake_server *server, const char *text)
{
    if (server->n_connections != 0) put_text(server->connections[server->n_connections - 1], text);
}

unsigned fake_connections(const struct fake_server *server)
{
    return server->n_connections;
}

unsigned fake_commands(const struct fake_server *server)
{
    return server->n_commands;
}

const char *fake_failure(const struct fake_server *server)
{
    return server->failure[0] != '\0' ? server->failure : NULL;
}
