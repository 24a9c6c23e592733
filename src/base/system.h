/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.h - everything that the library takes from outside: time, random bytes, sockets, host names, the loop
 *
 * Nothing else in the library asks the system for any of these. Production fills the two tables with the system
 * and libevent (system_libevent.c); a simulator fills them with a world of its own; another event loop needs
 * another struct loop_ops only. All functions belong to the thread that runs the loop, and call nothing back
 * from inside a call.
 */
#ifndef QUORLOCK_BASE_SYSTEM_H
#define QUORLOCK_BASE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define ADDRESSES_MAX 8

struct event_base;
struct lookup;
struct system;
struct task;
struct timer;
struct watch;

/* ---- the loop ---- */

enum watch_events { WATCH_READ = 1, WATCH_WRITE = 2 };

struct loop_ops {
    /* A descriptor: ready() is told what it is ready for, as long as watch_set wants it (bits of enum
     * watch_events; 0: nothing). NULL, or -1 from watch_set: out of memory. The descriptor stays the caller's,
     * who frees the watch before closing it. */
    struct watch *(*watch_new)(struct system *, int fd, void (*ready)(void *arg, unsigned events), void *arg);
    int (*watch_set)(struct watch *, unsigned events);
    void (*watch_free)(struct watch *);

    /* One shot: fires once, some time after so many microseconds, or a little early; setting it again moves it.
     * A precise one runs on the clock of boot_us, not on the time at which the loop last looked. NULL: out of
     * memory or descriptors; -1: out of memory. */
    struct timer *(*timer_new)(struct system *, bool precise, void (*fire)(void *arg), void *arg);
    int (*timer_set)(struct timer *, uint64_t after_us);
    void (*timer_stop)(struct timer *);
    void (*timer_free)(struct timer *);

    /* Runs once from the loop, behind all that is active already, each time that task_run was called before;
     * calling it twice runs it once. NULL: out of memory. */
    struct task *(*task_new)(struct system *, void (*run)(void *arg), void *arg);
    void (*task_run)(struct task *);
    void (*task_stop)(struct task *);
    void (*task_free)(struct task *);
};

/* ---- the rest ---- */

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

struct addresses {
    size_t n; /* 0: failed, see why */
    struct address at[ADDRESSES_MAX];
    const char *why;
};

struct system_ops {
    /* Time in microseconds: boot_us counts suspend but may be slewed, raw_us is the other way round, wall_us is
     * since 1970. */
    uint64_t (*boot_us)(struct system *);
    uint64_t (*raw_us)(struct system *);
    uint64_t (*wall_us)(struct system *);

    /* Fresh bytes that no other process gets, not even after a fork. 0, or -1: there are none. */
    int (*random)(struct system *, void *ret, size_t size);

    /* Nonblocking stream sockets. connect: a descriptor, or -1 with errno; it becomes writable when finish can
     * tell the outcome, 0 or an errno. user_timeout_ms: how long sent bytes may go unacknowledged. send and
     * recv as the system calls, without a signal. */
    int (*connect)(struct system *, const struct sockaddr *, socklen_t, uint32_t user_timeout_ms);
    int (*finish)(struct system *, int fd);
    ssize_t (*send)(struct system *, int fd, const void *bytes, size_t size);
    ssize_t (*recv)(struct system *, int fd, void *ret, size_t size);
    bool (*has_input)(struct system *, int fd);
    void (*close)(struct system *, int fd);

    /* A host name to addresses. done() is called once, from the loop; what it is handed is valid during the
     * call. After done, or after cancel, the lookup is gone. NULL: out of memory. */
    struct lookup *(*lookup)(struct system *, const char *name, uint16_t port,
                             void (*done)(void *arg, const struct addresses *), void *arg);
    void (*lookup_cancel)(struct lookup *);
};

/* One client's outside. */
struct system {
    const struct system_ops *ops;
    const struct loop_ops *loop;
    struct event_base *base; /* of system_libevent() */
};

/* system_libevent - the system itself, with that base as the loop. The base stays the caller's. */
struct system system_libevent(struct event_base *);

#endif
