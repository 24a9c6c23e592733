/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h - one stream socket on the loop
 *
 * The owner is notified that something is ready, and then calls. Nothing here calls back from inside a call, so
 * an owner may close or free itself meanwhile.
 *
 * What is appended to the out buffer leaves at the end of the present turn of the loop, all in one write:
 * conn_wake() activates the flush task, which the loop runs behind everything that is active already.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "redis/wire/bytes.h"

struct address;
struct system;
struct task;
struct watch;

/* The largest command, of 64 keys of 1024 bytes and as many counters, is 136 KiB, with its script 141. */
#define CONN_OUT_MAX ((size_t)4 << 20)

enum conn_ready {
    CONN_CONNECTED, /* call conn_finish() */
    CONN_READABLE,  /* call conn_read() */
    CONN_SENDING,   /* append what waited for the end of the turn, and do nothing else */
    CONN_SENT,      /* what was in the out buffer has left, or leaves as soon as the socket takes it */
    CONN_BROKEN,    /* a write failed; there may be something left to read that says why */
};

struct conn {
    struct system *system;
    void (*ready)(void *arg, enum conn_ready); /* but for SENDING the last thing that happens in an event */
    void *arg;
    int fd; /* -1: closed */
    bool connecting, woken;
    bool secret; /* set by the owner: the out buffer holds a password, which is wiped when it has been sent */
    bool stuck;  /* bytes wait until the socket takes more */
    struct watch *watch;
    struct task *flusher;
    struct bytes out;
    int error; /* errno of the failure; 0: the peer closed */
};

/* conn_init - the system lives as long. False: out of memory; conn_clear is due all the same. */
bool conn_init(struct conn *, struct system *, const struct alloc *, void (*ready)(void *, enum conn_ready), void *arg);
/* conn_clear - closes and frees; the struct may go. */
void conn_clear(struct conn *);
/* conn_open - begins to connect; CONN_CONNECTED follows from the loop. user_timeout_ms: how long sent bytes may
 * go unacknowledged (TCP_USER_TIMEOUT). Returns 0, or an errno, and then it is closed. */
int conn_open(struct conn *, const struct address *, uint32_t user_timeout_ms);
/* conn_close - at once; nothing becomes ready any more. Closing twice is fine. */
void conn_close(struct conn *);
/* conn_finish - the outcome of connecting: 0 or an errno. After 0 the socket is read and written. */
int conn_finish(struct conn *);
/* conn_read - bytes read, 0 when there is nothing now, -1 when the connection ended: see error. */
ssize_t conn_read(struct conn *, void *buffer, size_t size);
/* conn_has_input - whether conn_read would find something. */
bool conn_has_input(const struct conn *);
/* conn_wake - the out buffer has something to send. */
void conn_wake(struct conn *);
