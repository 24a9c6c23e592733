/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/conn.h"

#include <assert.h>
#include <errno.h>

#include "base/system.h"

static int watch(struct conn *conn, unsigned events)
{
    return conn->system->loop->watch_set(conn->watch, events);
}

/* False: broken. A short write waits until the socket is writable, which is watched for only then. */
static bool flush(struct conn *conn)
{
    struct system *system = conn->system;
    size_t sent = 0;
    bool stuck;

    while (sent < conn->out.used) {
        ssize_t n = system->ops->send(system, conn->fd, conn->out.data + sent, conn->out.used - sent);

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
    stuck = conn->out.used > 0;
    if (conn->secret && !stuck) {
        bytes_wipe(&conn->out);
        conn->secret = false;
    }
    if (stuck == conn->stuck) return true;
    conn->stuck = stuck;
    if (watch(conn, stuck ? WATCH_READ | WATCH_WRITE : WATCH_READ) == 0) return true;
    conn->error = ENOMEM;
    return false;
}

static void on_ready(void *arg, unsigned events)
{
    struct conn *conn = arg;

    if (conn->connecting)
        conn->ready(conn->arg, CONN_CONNECTED);
    else if ((events & WATCH_WRITE) != 0 && !flush(conn))
        conn->ready(conn->arg, CONN_BROKEN);
    else if ((events & WATCH_READ) != 0)
        conn->ready(conn->arg, CONN_READABLE);
}

static void on_flush(void *arg)
{
    struct conn *conn = arg;
    bool fine;

    if (conn->fd >= 0 && !conn->connecting) conn->ready(conn->arg, CONN_SENDING);
    conn->woken = false;
    if (conn->fd < 0 || conn->connecting) return;
    /* While the socket is full, the new bytes leave behind those that wait. */
    fine = conn->stuck || flush(conn);
    conn->ready(conn->arg, fine ? CONN_SENT : CONN_BROKEN);
}

bool conn_init(struct conn *conn, struct system *system, const struct alloc *alloc,
               void (*ready)(void *, enum conn_ready), void *arg)
{
    *conn = (struct conn){.system = system, .ready = ready, .arg = arg, .fd = -1};
    bytes_init(&conn->out, alloc, CONN_OUT_MAX);
    conn->flusher = system->loop->task_new(system, on_flush, conn);
    return conn->flusher != NULL;
}

void conn_clear(struct conn *conn)
{
    conn_close(conn);
    if (conn->flusher != NULL) conn->system->loop->task_free(conn->flusher);
    conn->flusher = NULL;
    bytes_clear(&conn->out);
}

void conn_close(struct conn *conn)
{
    struct system *system = conn->system;

    if (conn->watch != NULL) system->loop->watch_free(conn->watch);
    conn->watch = NULL;
    if (conn->woken) system->loop->task_stop(conn->flusher);
    conn->woken = conn->stuck = false;
    if (conn->fd >= 0) system->ops->close(system, conn->fd);
    conn->fd = -1;
    bytes_cut(&conn->out, 0);
    if (conn->secret) bytes_wipe(&conn->out);
    conn->secret = false;
}

int conn_open(struct conn *conn, const struct address *address, uint32_t user_timeout_ms)
{
    struct system *system = conn->system;

    assert(conn->fd < 0);
    conn->error = 0;
    conn->connecting = true;
    conn->fd = system->ops->connect(system, address, user_timeout_ms);
    if (conn->fd < 0) return errno;
    conn->watch = system->loop->watch_new(system, conn->fd, on_ready, conn);
    if (conn->watch != NULL && watch(conn, WATCH_WRITE) == 0) return 0;
    conn_close(conn);
    return ENOMEM;
}

int conn_finish(struct conn *conn)
{
    int error = conn->system->ops->finish(conn->system, conn->fd);

    assert(conn->fd >= 0 && conn->connecting);
    if (error == 0 && watch(conn, WATCH_READ) != 0) error = ENOMEM;
    if (error != 0) return error;
    conn->connecting = false;
    if (conn->out.used > 0) conn_wake(conn);
    return 0;
}

ssize_t conn_read(struct conn *conn, void *buffer, size_t size)
{
    assert(conn->fd >= 0);
    for (;;) {
        ssize_t n = conn->system->ops->recv(conn->system, conn->fd, buffer, size);

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
    return conn->fd >= 0 && !conn->connecting && conn->system->ops->has_input(conn->system, conn->fd);
}

void conn_wake(struct conn *conn)
{
    if (conn->woken) return;
    conn->woken = true;
    conn->system->loop->task_run(conn->flusher);
}
