/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/conn.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

/* A server that vanished while we were silent is noticed after some 20 s. */
#define CONN_KEEP_IDLE_S     10
#define CONN_KEEP_INTERVAL_S 3
#define CONN_KEEP_COUNT      3

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    (void)fd;
    (void)what;
    conn->ready(conn->arg, CONN_READABLE);
}

/* False: broken. A short write waits for EV_WRITE, which is armed only then. */
static bool flush(struct conn *conn)
{
    size_t sent = 0;
    while (sent < conn->out.used) {
        ssize_t n = send(conn->fd, conn->out.data + sent, conn->out.used - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            conn->error = errno;
            return false;
        }
    }
    bytes_shift(&conn->out, sent);
    if (conn->secret && !conn->out.used) {
        bytes_wipe(&conn->out);
        conn->secret = false;
    }
    if (conn->out.used && event_add(conn->writer, NULL) != 0) {
        conn->error = ENOMEM;
        return false;
    }
    return true;
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    (void)fd;
    (void)what;
    if (conn->connecting)
        conn->ready(conn->arg, CONN_CONNECTED);
    else if (!flush(conn))
        conn->ready(conn->arg, CONN_BROKEN);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
    struct conn *conn = arg;
    (void)fd;
    (void)what;
    conn->woken = false;
    if (conn->fd < 0 || conn->connecting) return;
    /* While the writer waits for the socket it will take this along. */
    bool fine = event_pending(conn->writer, EV_WRITE, NULL) || flush(conn);
    conn->ready(conn->arg, fine ? CONN_SENT : CONN_BROKEN);
}

bool conn_init(struct conn *conn, struct event_base *base, const struct alloc *alloc,
               void (*ready)(void *, enum conn_ready), void *arg)
{
    *conn = (struct conn){.base = base, .ready = ready, .arg = arg, .fd = -1};
    bytes_init(&conn->out, alloc, CONN_OUT_MAX);
    conn->flusher = event_new(base, -1, 0, on_flush, conn);
    return conn->flusher != NULL;
}

void conn_clear(struct conn *conn)
{
    conn_close(conn);
    if (conn->flusher != NULL) event_free(conn->flusher);
    conn->flusher = NULL;
    bytes_clear(&conn->out);
}

void conn_close(struct conn *conn)
{
    if (conn->reader != NULL) event_free(conn->reader);
    if (conn->writer != NULL) event_free(conn->writer);
    conn->reader = conn->writer = NULL;
    if (conn->woken) event_del(conn->flusher);
    conn->woken = false;
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
    bytes_cut(&conn->out, 0);
    if (conn->secret) bytes_wipe(&conn->out);
    conn->secret = false;
}

/* None of these is worth failing for: a kernel without one only notices some ends later. */
static void tune(const struct conn *conn, uint32_t user_timeout_ms)
{
    if (conn->family == AF_UNIX) return;
    const int on = 1, idle_s = CONN_KEEP_IDLE_S, interval_s = CONN_KEEP_INTERVAL_S, count = CONN_KEEP_COUNT;
    const unsigned user_ms = user_timeout_ms;
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    if (user_ms) (void)setsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

int conn_open(struct conn *conn, const struct sockaddr *address, socklen_t length, uint32_t user_timeout_ms)
{
    assert(conn->fd < 0);
    int error = 0;
    conn->error = 0;
    conn->family = address->sa_family;
    conn->connecting = true;
    conn->fd = socket(conn->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) return errno;
    tune(conn, user_timeout_ms);
    /* Interrupted, it goes on by itself, as in progress. */
    if (connect(conn->fd, address, length) != 0 && errno != EINPROGRESS && errno != EINTR) {
        error = errno;
        goto done;
    }
    conn->reader = event_new(conn->base, conn->fd, EV_READ | EV_PERSIST, on_readable, conn);
    conn->writer = event_new(conn->base, conn->fd, EV_WRITE, on_writable, conn);
    if (conn->reader == NULL || conn->writer == NULL || event_add(conn->writer, NULL) != 0) error = ENOMEM;
done:
    if (error) conn_close(conn);
    return error;
}

/*
 * A connect to a local port nobody listens on can meet itself when the kernel picks that very port as our own.
 * Such a socket would echo our commands, and keep the server from binding its port.
 */
static bool met_itself(const struct conn *conn)
{
    struct sockaddr_storage here, there;
    memset(&here, 0, sizeof(here));
    memset(&there, 0, sizeof(there));
    socklen_t here_length = sizeof(here), there_length = sizeof(there);
    if (conn->family == AF_UNIX) return false;
    if (getsockname(conn->fd, (struct sockaddr *)&here, &here_length) != 0) return false;
    if (getpeername(conn->fd, (struct sockaddr *)&there, &there_length) != 0) return false;
    return here_length == there_length && memcmp(&here, &there, here_length) == 0;
}

int conn_finish(struct conn *conn)
{
    assert(conn->fd >= 0 && conn->connecting);
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (!error && met_itself(conn)) error = ECONNREFUSED;
    if (!error && event_add(conn->reader, NULL) != 0) error = ENOMEM;
    if (error) return error;
    conn->connecting = false;
    if (conn->out.used) conn_wake(conn);
    return 0;
}

ssize_t conn_read(struct conn *conn, void *buffer, size_t size)
{
    assert(conn->fd >= 0);
    for (;;) {
        ssize_t n = recv(conn->fd, buffer, size, 0);
        if (n > 0) return n;
        if (n == 0) {
            conn->error = 0;
            return -1;
        }
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        conn->error = errno;
        return -1;
    }
}

bool conn_has_input(const struct conn *conn)
{
    char byte;
    return conn->fd >= 0 && !conn->connecting && recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

void conn_wake(struct conn *conn)
{
    if (conn->woken) return;
    conn->woken = true;
    event_active(conn->flusher, EV_TIMEOUT, 0);
}

void conn_secret(struct conn *conn)
{
    conn->secret = true;
}
