/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * system.h - everything that the library takes from outside: time, random bytes, sockets, host names, files, the loop
 *
 * Nothing else in the library asks the system for any of these. In production struct system_ops holds the functions of
 * system_os.c, and the loop is libevent or the caller's; the simulator fills both tables with its own world. All
 * functions must be called in the loop's thread, and none runs a callback from inside a call. Objects that struct
 * system_ops makes take their memory from the system's alloc; a loop uses its own.
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

/* Objects that a loop makes. */
struct task;
struct timer;
struct watch;

#define WATCH_READ  QUORLOCK_LOOP_READ
#define WATCH_WRITE QUORLOCK_LOOP_WRITE

struct system_ops {
    /* Time in microseconds. boot_us counts suspend but may be slewed; raw_us cannot be slewed but does not count
     * suspend; wall_us counts from 1970. */
    uint64_t (*boot_us)(struct system *);
    uint64_t (*raw_us)(struct system *);
    uint64_t (*wall_us)(struct system *);

    /* A timer on the clock of boot_us, for loops whose own timers stop during suspend, or count from the time when the
     * loop last read its clock. It fires once, from the loop, after that many microseconds; setting it again moves it.
     * NULL: out of memory or of descriptors. */
    struct alarm *(*alarm_new)(struct system *, void (*fire)(void *arg), void *arg);
    void (*alarm_set)(struct alarm *, uint64_t after_us);
    void (*alarm_free)(struct alarm *);

    /* Random bytes that no other process gets, not even after a fork. Returns 0, or -1 when there are none. A machine
     * that has just booted may have none for a while: with `wait` the call blocks until it has. */
    int (*random)(struct system *, void *ret, size_t size, bool wait);
    /* Zeroed memory that a child of fork() finds zeroed again. NULL: the system has none. */
    void *(*wiped_new)(struct system *, size_t size);
    void (*wiped_free)(struct system *, void *, size_t size);

    /* Nonblocking stream sockets.
     * connect: return a descriptor, or -1 with errno. The descriptor becomes writable when the connection is made or
     * has failed. user_timeout_ms: how long sent bytes may stay unacknowledged; 0: as long as the system allows.
     * finish: return the outcome of connecting, 0 or an errno.
     * send, recv: as the system calls, without SIGPIPE.
     * has_input: return whether recv would return bytes or the end of the stream.
     * keep_sending: deliver what was sent even if the process ends without close; without this call, that end resets
     * the connection.
     * close: deliver what was sent, then close. With reset: deliver nothing more, not even by retransmission. */
    int (*connect)(struct system *, const struct address *, uint32_t user_timeout_ms);
    int (*finish)(struct system *, int fd);
    ssize_t (*send)(struct system *, int fd, const void *bytes, size_t size);
    ssize_t (*recv)(struct system *, int fd, void *ret, size_t size);
    bool (*has_input)(struct system *, int fd);
    void (*keep_sending)(struct system *, int fd);
    void (*close)(struct system *, int fd, bool reset);

    /* Look up the addresses of a host name with the system's resolver. That may take as long as the resolver waits for
     * its name servers; the loop runs on. done() is called once, from the loop; its argument is valid during the call.
     * After done or lookup_cancel the lookup is gone. NULL with errno: it could not begin. */
    struct lookup *(*lookup)(struct system *, const char *name, uint16_t port,
                             void (*done)(void *arg, const struct addresses *), void *arg);
    void (*lookup_cancel)(struct lookup *);

    /* A number that changes when the file or folder at that path changes; 0: it cannot be read. *ret_is_folder is set
     * if it can, unless the pointer is NULL. */
    uint64_t (*file_stamp)(struct system *, const char *path, bool *ret_is_folder);
};

/* The system as one client sees it. */
struct system {
    const struct system_ops *ops;
    struct quorlock_loop loop;
    const struct alloc *alloc;
    void *arg; /* for struct system_ops: see system_os.h */
};
