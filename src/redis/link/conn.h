/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - one stream socket on the loop
 *
 * The owner is notified that something is ready, and then calls. Nothing here calls back from inside a call, so
 * an owner may close or free itself meanwhile.
 *
 * What is appended to the out buffer leaves at the end of the present turn of the loop, all in one write:
 * conn_wake() activates the flush task, which the loop runs behind everything that is active already.
 *
 * Between the buffers and the socket there may be a layer, such as TLS. It greets the peer before anything else is
 * read or written, and may have to write in order to read, or to read in order to write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/protocol.h"
#include "redis/wire/bytes.h"

struct address;
struct link_counts;
struct system;
struct task;
struct watch;

/* The largest command, of 64 keys of 1024 bytes and as many counters, is 136 KiB, with its script 141. */
#define CONN_OUT_MAX ((size_t)4 << 20)

enum conn_ready {
    CONN_CONNECTED, /* call conn_finish(), again and again while it says CONN_LATER */
    CONN_READABLE,  /* call conn_read() */
    CONN_SENDING,   /* append what waited for the end of the turn, and do nothing else */
    CONN_SENT,      /* what was in the out buffer has left, or leaves as soon as the socket takes it */
    CONN_BROKEN,    /* a write failed; there may be something left to read that says why */
};

/*
 * A layer belongs to one connection, which frees it. Each of the others goes on with its work: how many bytes it moved
 * (greet: 1, done); 0, not now: *waits says for what of the socket, WATCH_READ or WATCH_WRITE; -1, the connection
 * ended or failed: as of conn_read. It moves the socket's own bytes by conn_send and conn_receive.
 */
struct conn_layer {
    ssize_t (*greet)(struct conn_layer *, unsigned *waits);
    ssize_t (*read)(struct conn_layer *, void *ret, size_t size, unsigned *waits);
    ssize_t (*write)(struct conn_layer *, const void *bytes, size_t size, unsigned *waits);
    void (*free)(struct conn_layer *);
};

enum conn_progress { CONN_DONE, CONN_LATER, CONN_FAILED };

#define CONN_WHY_SIZE 400

struct conn {
    struct system *system;
    void (*ready)(void *arg, enum conn_ready); /* but for SENDING the last thing that happens in an event */
    void *arg;
    int fd; /* -1: closed */
    bool connecting, greeting, woken;
    bool secret; /* set by the owner: the out buffer holds a password, which is wiped when it has been sent */
    struct conn_layer *layer;            /* NULL: the bytes are the socket's own */
    unsigned writer_waits, reader_waits; /* for what of the socket; 0: there is nothing to write */
    unsigned watched;                    /* what the loop watches for */
    unsigned reads_left;                 /* so often the socket is asked in this event */
    struct watch *watch;
    struct task *flusher;
    struct bytes out;
    struct link_counts *counts; /* set by the owner; or NULL */
    int error;                  /* errno of the failure; 0: the peer closed */
    char why[CONN_WHY_SIZE];    /* the layer's failure in words; "": see error */
    enum fault fault;           /* UNREACHABLE, unless the layer knows better */
};

/* conn_init - the system lives as long. False: out of memory; conn_clear is due all the same. */
bool conn_init(struct conn *, struct system *, const struct alloc *, void (*ready)(void *, enum conn_ready), void *arg);
/* conn_clear - closes and frees; the struct may go. */
void conn_clear(struct conn *);
/* conn_open - begins to connect; CONN_CONNECTED follows from the loop. user_timeout_ms: how long sent bytes may
 * go unacknowledged (TCP_USER_TIMEOUT). The layer, or NULL, is the connection's from here on. Returns 0, or an errno,
 * and then it is closed. */
int conn_open(struct conn *, const struct address *, uint32_t user_timeout_ms, struct conn_layer *);
/* conn_close - at once; nothing becomes ready any more. Closing twice is fine. reset: what the system has not delivered
 * yet is dropped; else it delivers that in order, also after the close. */
void conn_close(struct conn *, bool reset);
/* conn_keep_sending - the system goes on delivering what was sent also where the process ends before conn_close. */
void conn_keep_sending(struct conn *);
/* conn_finish - the outcome of connecting and of the layer's greeting. After CONN_DONE it is read and written;
 * CONN_FAILED: see conn_why. */
enum conn_progress conn_finish(struct conn *);
/* conn_read - bytes read, 0 when there is nothing now, -1 when the connection ended: see conn_why. To be called until
 * it says 0 or -1. conn_allow_reads: before that, so that a talkative peer does not starve the others. */
void conn_allow_reads(struct conn *);
ssize_t conn_read(struct conn *, void *buffer, size_t size);
/* conn_why - why it failed or ended; NULL: the peer closed it. */
const char *conn_why(const struct conn *);
/* conn_has_input - whether conn_read would find something. */
bool conn_has_input(const struct conn *);
/* conn_wake - the out buffer has something to send. */
void conn_wake(struct conn *);

/* conn_send, conn_receive - for the layer: how many bytes the socket took or gave; 0: not now; -1: see error. */
ssize_t conn_send(struct conn *, const void *bytes, size_t size);
ssize_t conn_receive(struct conn *, void *ret, size_t size);
