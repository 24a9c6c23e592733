/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.h - everything that the library takes from outside: time, random bytes, sockets, host names, files, the loop
 *
 * Nothing else in the library asks the system for any of these. Production fills the two tables with the system
 * and libevent (system_libevent.c); a simulator fills them with a world of its own; another event loop needs
 * another struct loop_ops only. All functions belong to the thread that runs the loop, and call nothing back
 * from inside a call. What they make takes its memory from the system's alloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct address;
struct addresses;
struct alloc;
struct lookup;
struct system;
struct task;
struct timer;
struct watch;

/* ---- the loop ---- */

/* Bits. */
#define WATCH_READ  1u
#define WATCH_WRITE 2u

struct loop_ops {
    /* A descriptor: ready() is told what it is ready for, again and again while it is and watch_set wants it
     * (at first nothing). NULL, or -1 from watch_set: out of memory; wanting less never fails. The descriptor
     * stays the caller's, who frees the watch before closing it. */
    struct watch *(*watch_new)(struct system *, int fd, void (*ready)(void *arg, unsigned events), void *arg);
    int (*watch_set)(struct watch *, unsigned events);
    void (*watch_free)(struct watch *);

    /* Fires once, after so many microseconds or a little earlier; setting it again moves it. A precise one runs
     * on the clock of boot_us, not on the time at which the loop last looked. NULL: out of memory or of
     * descriptors; -1: out of memory, which a precise one never is. */
    struct timer *(*timer_new)(struct system *, bool precise, void (*fire)(void *arg), void *arg);
    int (*timer_set)(struct timer *, uint64_t after_us);
    void (*timer_stop)(struct timer *);
    void (*timer_free)(struct timer *);

    /* task_run: run() comes from the loop, behind everything that is active already, and once, however often it
     * was called meanwhile. NULL: out of memory. */
    struct task *(*task_new)(struct system *, void (*run)(void *arg), void *arg);
    void (*task_run)(struct task *);
    void (*task_stop)(struct task *);
    void (*task_free)(struct task *);
};

/* ---- the rest ---- */

struct system_ops {
    /* Time in microseconds: boot_us counts suspend but may be slewed, raw_us is the other way round, wall_us is
     * since 1970. */
    uint64_t (*boot_us)(struct system *);
    uint64_t (*raw_us)(struct system *);
    uint64_t (*wall_us)(struct system *);

    /* Fresh bytes that no other process gets, not even after a fork. 0, or -1: there are none. A machine that
     * has just booted may have none for a while: `wait` waits for them. */
    int (*random)(struct system *, void *ret, size_t size, bool wait);
    /* Zeroed memory that a child of fork() finds zeroed again. NULL: the system has none. */
    void *(*wiped_new)(struct system *, size_t size);
    void (*wiped_free)(struct system *, void *, size_t size);

    /* Nonblocking stream sockets. connect: a descriptor, or -1 with errno; it becomes writable when finish can
     * tell the outcome, 0 or an errno. user_timeout_ms: how long sent bytes may go unacknowledged; 0: as long
     * as the system lets them. send and recv as the system calls, without a signal. has_input: recv would not
     * say EAGAIN, nor fail. */
    int (*connect)(struct system *, const struct address *, uint32_t user_timeout_ms);
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

    /* A number that is another one when the file or the folder at that path changed; 0: none can be looked at.
     * *ret_is_folder, where it is not NULL, is set if one can. */
    uint64_t (*file_stamp)(struct system *, const char *path, bool *ret_is_folder);
};

/* One client's outside. */
struct system {
    const struct system_ops *ops;
    const struct loop_ops *loop;
    const struct alloc *alloc;
    void *arg; /* the tables' own: of system_libevent() the event_base */
};
