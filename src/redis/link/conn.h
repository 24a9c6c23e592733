/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - one stream socket on the loop
 *
 * The owner is notified that something is ready, and then calls. No function here runs a callback from inside a call,
 * so an owner may close or free itself meanwhile.
 *
 * All that is appended to the out buffer in one turn of the loop leaves in one write at the end of the turn. For this,
 * conn_wake() activates a flush task, which the loop runs after everything that is active already.
 *
 * A layer, such as TLS, may lie between the buffers and the socket. It makes its handshake before anything else is read
 * or written. It may have to write in order to read, or read in order to write.
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

/* The largest command, with 64 keys of 1024 bytes and as many counters, has 136 KiB; with its script 141. */
#define CONN_OUT_MAX ((size_t)4 << 20)

enum conn_ready {
    CONN_CONNECTED, /* call conn_finish(); CONN_LATER: this comes again */
    CONN_READABLE,  /* call conn_read() */
    CONN_SENDING,   /* append what waited for the end of the turn, and do nothing else */
    CONN_SENT,      /* the out buffer was sent, or leaves as soon as the socket takes it */
    CONN_BROKEN,    /* a write failed; something may be left to read that tells why */
};

/*
 * A layer belongs to one connection, which frees it.
 * greet, read, write - continue the work, and return how many bytes were moved (greet: 1 when it is done). 0: not now;
 * *waits tells whether for WATCH_READ or WATCH_WRITE. -1: the connection ended or failed; see conn_read. They use
 * conn_send and conn_receive for the socket.
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
    void (*ready)(void *arg, enum conn_ready); /* except for SENDING this is the last action of an event */
    void *arg;
    int fd; /* -1: closed */
    bool connecting, greeting, woken;
    bool secret;              /* set by the owner: the out buffer holds a password, which is wiped when it has left */
    struct conn_layer *layer; /* NULL: bytes go to the socket as they are */
    unsigned writer_waits, reader_waits; /* what they wait for, WATCH_READ or WATCH_WRITE; writer 0: nothing to write */
    unsigned watched;                    /* what the loop watches the socket for */
    unsigned reads_left;                 /* how often the socket may still be read in this event */
    struct watch *watch;
    struct task *flusher;
    struct bytes out;
    struct link_counts *counts; /* set by the owner; may be NULL */
    int error;                  /* errno of the failure; 0: the peer closed the connection */
    char why[CONN_WHY_SIZE];    /* the layer's failure as text; "": see error */
    enum fault fault;           /* UNREACHABLE, unless the layer knows better */
};

/* conn_init - initialize; the system must live as long. False: out of memory; call conn_clear even then. */
bool conn_init(struct conn *, struct system *, const struct alloc *, void (*ready)(void *, enum conn_ready), void *arg);
/* conn_clear - close and free all; the struct is not used any more. */
void conn_clear(struct conn *);
/* conn_open - begin to connect; CONN_CONNECTED follows from the loop. user_timeout_ms: how long sent bytes may stay
 * unacknowledged (TCP_USER_TIMEOUT). The layer, or NULL, belongs to the connection from now on. Returns 0, or an errno,
 * and then the connection is closed. */
int conn_open(struct conn *, const struct address *, uint32_t user_timeout_ms, struct conn_layer *);
/* conn_close - close at once; nothing becomes ready any more. Closing twice is fine. reset: drop what the system has
 * not delivered yet; else the system delivers it in order after the close. */
void conn_close(struct conn *, bool reset);
/* conn_keep_sending - let the system deliver what was sent even if the process ends without conn_close. */
void conn_keep_sending(struct conn *);
/* conn_finish - return the outcome of connecting and of the layer's handshake. After CONN_DONE the connection can be
 * used; CONN_FAILED: see conn_why. */
enum conn_progress conn_finish(struct conn *);
/* conn_read - read bytes and return their number; 0: nothing now; -1: the connection ended, see conn_why. Call it until
 * it returns 0 or -1.
 * conn_allow_reads - call this before those reads. It limits their number, so that a talkative peer does not starve
 * others. */
void conn_allow_reads(struct conn *);
ssize_t conn_read(struct conn *, void *buffer, size_t size);
/* conn_why - return why the connection failed or ended; NULL: the peer closed it. */
const char *conn_why(const struct conn *);
/* conn_has_input - return whether conn_read would find something. */
bool conn_has_input(const struct conn *);
/* conn_wake - send the out buffer at the end of this turn. */
void conn_wake(struct conn *);

/* conn_send, conn_receive - for the layer: return how many bytes the socket took or gave; 0: not now; -1: see error. */
ssize_t conn_send(struct conn *, const void *bytes, size_t size);
ssize_t conn_receive(struct conn *, void *ret, size_t size);
