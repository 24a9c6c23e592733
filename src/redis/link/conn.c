/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/conn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/system.h"
#include "redis/link/config.h"

#define CONN_READS_MAX 64

/* ---- the socket ---- */

ssize_t conn_send(struct conn *conn, const void *bytes, size_t size)
{
    for (;;) {
        ssize_t n = conn->system->ops->send(conn->system, conn->fd, bytes, size);

        if (n >= 0) {
            if (conn->counts != NULL) conn->counts->bytes_out += (size_t)n;
            return n;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
        if (errno == EINTR) continue;
        conn->error = errno;
        return -1;
    }
}

/* A short read has emptied the socket: another one would only get EAGAIN. */
ssize_t conn_receive(struct conn *conn, void *ret, size_t size)
{
    if (conn->reads_left == 0) return 0;
    conn->reads_left--;
    for (;;) {
        ssize_t n = conn->system->ops->recv(conn->system, conn->fd, ret, size);

        if (n > 0) {
            if (conn->counts != NULL) conn->counts->bytes_in += (size_t)n;
            if ((size_t)n < size) conn->reads_left = 0;
            return n;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
        conn->error = n < 0 ? errno : 0;
        return -1;
    }
}

static bool conn_watch(struct conn *conn, unsigned events)
{
    if (events == conn->watched) return true;
    conn->watched = events;
    if (conn->system->loop.watch_set(conn->watch, events) == 0) return true;
    conn->error = ENOMEM;
    return false;
}

/* A reader that must write first does not watch for input, which would wake it again and again. */
static bool watch_open(struct conn *conn)
{
    return conn_watch(conn, conn->reader_waits | conn->writer_waits);
}

/* ---- events ---- */

static ssize_t conn_write_some(struct conn *conn, const void *bytes, size_t size, unsigned *waits)
{
    *waits = WATCH_WRITE;
    return conn->layer != NULL ? conn->layer->write(conn->layer, bytes, size, waits) : conn_send(conn, bytes, size);
}

/* False: the write failed. Bytes that do not leave now wait until the socket is ready. */
static bool conn_flush(struct conn *conn)
{
    unsigned waits = 0;
    size_t sent = 0;
    ssize_t n = 1;

    while (sent < conn->out.used && n > 0) {
        n = conn_write_some(conn, conn->out.data + sent, conn->out.used - sent, &waits);
        if (n < 0) return false;
        sent += (size_t)n;
    }
    bytes_shift(&conn->out, sent);
    if (conn->secret && conn->out.used == 0) {
        bytes_wipe(&conn->out);
        conn->secret = false;
    }
    conn->writer_waits = conn->out.used > 0 ? waits : 0;
    return watch_open(conn);
}

static void conn_on_ready(void *arg, unsigned events)
{
    struct conn *conn = arg;

    conn_allow_reads(conn);
    if (conn->connecting)
        conn->ready(conn->arg, CONN_CONNECTED);
    else if ((events & conn->writer_waits) != 0 && !conn_flush(conn))
        conn->ready(conn->arg, CONN_BROKEN);
    else if ((events & conn->reader_waits) != 0)
        conn->ready(conn->arg, CONN_READABLE);
}

static void on_flush(void *arg)
{
    struct conn *conn = arg;
    bool fine;

    if (conn->fd >= 0 && !conn->connecting) conn->ready(conn->arg, CONN_SENDING);
    conn->woken = false;
    if (conn->fd < 0 || conn->connecting) return;
    /* If older bytes wait for the socket, the new ones leave behind them. */
    fine = conn->writer_waits != 0 || conn_flush(conn);
    conn->ready(conn->arg, fine ? CONN_SENT : CONN_BROKEN);
}

/* ---- what the owner calls ---- */

bool conn_init(struct conn *conn, struct system *system, const struct alloc *alloc,
               void (*ready)(void *, enum conn_ready), void *arg)
{
    *conn = (struct conn){.system = system, .ready = ready, .arg = arg, .fd = -1};
    bytes_init(&conn->out, alloc, CONN_OUT_MAX);
    conn->flusher = system->loop.task_new(system->loop.arg, on_flush, conn);
    return conn->flusher != NULL;
}

void conn_clear(struct conn *conn)
{
    conn_close(conn, false);
    if (conn->flusher != NULL) conn->system->loop.task_free(conn->flusher);
    conn->flusher = NULL;
    bytes_clear(&conn->out);
}

void conn_close(struct conn *conn, bool reset)
{
    struct system *system = conn->system;

    if (conn->watch != NULL) system->loop.watch_free(conn->watch);
    conn->watch = NULL;
    if (conn->woken) system->loop.task_stop(conn->flusher);
    conn->woken = false;
    if (conn->layer != NULL) conn->layer->free(conn->layer);
    conn->layer = NULL;
    if (conn->fd >= 0) system->ops->close(system, conn->fd, reset);
    conn->fd = -1;
    bytes_cut(&conn->out, 0);
    if (conn->secret) bytes_wipe(&conn->out);
    conn->secret = false;
}

void conn_keep_sending(struct conn *conn)
{
    if (conn->fd >= 0) conn->system->ops->keep_sending(conn->system, conn->fd);
}

int conn_open(struct conn *conn, const struct address *address, uint32_t user_timeout_ms, struct conn_layer *layer)
{
    struct system *system = conn->system;

    assert(conn->fd < 0);
    conn->layer = layer;
    conn->error = 0;
    conn->why[0] = '\0';
    conn->fault = FAULT_UNREACHABLE;
    conn->connecting = true;
    conn->greeting = false;
    conn->watched = conn->writer_waits = 0;
    conn->reader_waits = WATCH_READ;
    conn->fd = system->ops->connect(system, address, user_timeout_ms);
    conn->error = conn->fd < 0 ? errno : ENOMEM;
    if (conn->fd >= 0) conn->watch = system->loop.watch_new(system->loop.arg, conn->fd, conn_on_ready, conn);
    if (conn->watch != NULL && conn_watch(conn, WATCH_WRITE)) return 0;
    conn_close(conn, true);
    return conn->error;
}

static enum conn_progress conn_greet(struct conn *conn)
{
    unsigned waits = 0;
    ssize_t n = conn->layer->greet(conn->layer, &waits);

    if (n > 0) return CONN_DONE;
    return n == 0 && conn_watch(conn, waits) ? CONN_LATER : CONN_FAILED;
}

enum conn_progress conn_finish(struct conn *conn)
{
    enum conn_progress progress = CONN_DONE;

    assert(conn->fd >= 0 && conn->connecting);
    if (!conn->greeting) {
        conn->error = conn->system->ops->finish(conn->system, conn->fd);
        if (conn->error != 0) return CONN_FAILED;
        conn->greeting = conn->layer != NULL;
    }
    if (conn->greeting) progress = conn_greet(conn);
    if (progress != CONN_DONE) return progress;
    if (!watch_open(conn)) return CONN_FAILED;
    conn->connecting = false;
    if (conn->out.used > 0) conn_wake(conn);
    return CONN_DONE;
}

void conn_allow_reads(struct conn *conn)
{
    conn->reads_left = CONN_READS_MAX;
}

ssize_t conn_read(struct conn *conn, void *buffer, size_t size)
{
    unsigned waits = 0;
    ssize_t n;

    assert(conn->fd >= 0);
    if (conn->layer == NULL) return conn_receive(conn, buffer, size);
    n = conn->layer->read(conn->layer, buffer, size, &waits);
    conn->reader_waits = n == 0 ? waits : WATCH_READ;
    return n < 0 || watch_open(conn) ? n : -1;
}

const char *conn_why(const struct conn *conn)
{
    if (conn->why[0] != '\0') return conn->why;
    return conn->error != 0 ? strerror(conn->error) : NULL;
}

bool conn_has_input(const struct conn *conn)
{
    return conn->fd >= 0 && !conn->connecting && conn->system->ops->has_input(conn->system, conn->fd);
}

void conn_wake(struct conn *conn)
{
    if (conn->woken) return;
    conn->woken = true;
    conn->system->loop.task_run(conn->flusher);
}
