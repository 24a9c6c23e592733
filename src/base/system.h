/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.h - everything that the library takes from outside: time, random bytes, sockets, host names, files, the loop
 *
 * Nothing else in the library asks the system for any of these. Production fills struct system_ops with the system
 * (system_os.c), and the loop is libevent, or the caller's; a simulator fills both tables with a world of its own. All
 * functions belong to the thread that runs the loop, and call nothing back from inside a call. What struct system_ops
 * makes takes its memory from the system's alloc; a loop has its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <quorlock/loop.h>

struct address;
struct alarm;
struct addresses;
struct alloc;
struct lookup;
struct system;

/* What a loop makes. */
struct task;
struct timer;
struct watch;

#define WATCH_READ  QUORLOCK_LOOP_READ
#define WATCH_WRITE QUORLOCK_LOOP_WRITE

struct system_ops {
    /* Time in microseconds: boot_us counts suspend but may be slewed, raw_us is the other way round, wall_us is
     * since 1970. */
    uint64_t (*boot_us)(struct system *);
    uint64_t (*raw_us)(struct system *);
    uint64_t (*wall_us)(struct system *);

    /* A timer on the clock of boot_us, also where the loop's own timers stop in suspend, or begin at the time at which
     * the loop last looked. It fires once, from the loop, after so many microseconds; setting it again moves it.
     * NULL: out of memory or of descriptors. */
    struct alarm *(*alarm_new)(struct system *, void (*fire)(void *arg), void *arg);
    void (*alarm_set)(struct alarm *, uint64_t after_us);
    void (*alarm_free)(struct alarm *);

    /* Fresh bytes that no other process gets, not even after a fork. 0, or -1: there are none. A machine that
     * has just booted may have none for a while: `wait` waits for them. */
    int (*random)(struct system *, void *ret, size_t size, bool wait);
    /* Zeroed memory that a child of fork() finds zeroed again. NULL: the system has none. */
    void *(*wiped_new)(struct system *, size_t size);
    void (*wiped_free)(struct system *, void *, size_t size);

    /* Nonblocking stream sockets. connect: a descriptor, or -1 with errno; it becomes writable when finish can
     * tell the outcome, 0 or an errno. user_timeout_ms: how long sent bytes may go unacknowledged; 0: as long
     * as the system lets them. send and recv as the system calls, without a signal. has_input: recv would not
     * say EAGAIN, nor fail. close: in order, behind what was sent; or with a reset, so that nothing leaves any more
     * that has not left yet, not by retransmission either. A process that ends without a close resets, but for those
     * that were to keep sending. */
    int (*connect)(struct system *, const struct address *, uint32_t user_timeout_ms);
    int (*finish)(struct system *, int fd);
    ssize_t (*send)(struct system *, int fd, const void *bytes, size_t size);
    ssize_t (*recv)(struct system *, int fd, void *ret, size_t size);
    bool (*has_input)(struct system *, int fd);
    void (*keep_sending)(struct system *, int fd);
    void (*close)(struct system *, int fd, bool reset);

    /* A host name to addresses, as the system's resolver has them now. That may take as long as its name servers
     * let it wait; the loop goes on. done() is called once, from the loop; what it is handed is valid during the
     * call. After done, or after cancel, the lookup is gone. NULL with errno: it could not begin. */
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
    struct quorlock_loop loop;
    const struct alloc *alloc;
    void *arg; /* struct system_ops' own: see system_os.h */
};
