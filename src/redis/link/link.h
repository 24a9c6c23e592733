/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the life of one connection to one server
 *
 *   STOPPED <--> PAUSE --> RESOLVE --> CONNECT --> GREET --> LOGIN --> HANDSHAKE --> OPEN
 *                  ^          |           |          |         |           |          |
 *                  +----------+-----------+----------+---------+-----------+----------+  link_drop(): closed(), and a
 *                                                                                        pause
 *
 * A try has config.connect_ms from RESOLVE to OPEN. If a name has several addresses, each gets a share of the time left
 * for CONNECT and GREET, so that a dead address does not use up the time of the next. GREET is the handshake of the
 * layer (TLS). LOGIN waits for user and password, if the program gives them later. A lookup that is not answered within
 * RESOLVE goes on: its answer ends the pause, and the next RESOLVE waits for the same lookup.
 *
 * Node, subscriber and examination embed a link. The link resolves the server's name, tries one address after the
 * other, checks the replies to the handshake, reads, and keeps the one timer. Through a table of callbacks its owner
 * adds questions and receives the replies. Bytes that have come are read before a deadline is judged, because a process
 * that was suspended finds its replies waiting.
 *
 * A callback may end the link, and its owner with it. Then everything that could become ready is closed at once, and
 * ended() is called when no function of the link is left on the stack. So an owner checks link_is_on() after each
 * callback of its own, and after each call that may have run one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/protocol.h"
#include "redis/link/config.h"
#include "redis/link/conn.h"
#include "redis/link/dial.h"
#include "redis/link/handshake.h"
#include "redis/link/retry.h"
#include "redis/wire/reply.h"

#define LINK_NEVER     UINT64_MAX
#define LINK_TEXT_SIZE 640

struct system;
struct timer;

enum link_step {
    LINK_STOPPED,
    LINK_PAUSE,
    LINK_RESOLVE,
    LINK_CONNECT,
    LINK_GREET,
    LINK_LOGIN,
    LINK_HANDSHAKE,
    LINK_OPEN
};

/* The owner's callbacks. Those marked "or NULL" may be missing. */
struct link_events {
    const char *log_prefix; /* follows the server's name in each log line */
    /* Begin the handshake, see handshake.h. A handshake without a step is over at once. */
    void (*connected)(void *arg);
    /* The handshake succeeded: call link_open(), or append more questions and call link_ask(). */
    void (*greeted)(void *arg);
    /* There is something to read: call link_read(). Or NULL, which does just that. */
    void (*readable)(void *arg);
    /* Bytes came; their replies follow. Or NULL. */
    void (*heard)(void *arg);
    /* A reply after those to the handshake. */
    void (*reply)(void *arg, const struct reply *);
    /* What the server says unasked, if the handshake turned tracking on; it may come before greeted(). Or NULL: it
     * never does. */
    void (*push)(void *arg, const struct reply *);
    /* The turn ends: append what waited for that, and do nothing else. Or NULL. */
    void (*sending)(void *arg);
    /* The buffer was sent, or leaves as soon as the socket takes it. Or NULL. */
    void (*sent)(void *arg);
    /* The time of link_arm() has come, or nearly, and the link is OPEN. */
    void (*due)(void *arg);
    /* Return whether to try a server with that fault again only after the longest pause. Or NULL: never. */
    bool (*waits_long)(void *arg, enum fault);
    /* Return whether bytes that were sent and have not arrived would do harm later; then the connection ends with a
     * reset. Or NULL: they never would. */
    bool (*resets)(void *arg);
    /* The connection, or the try, ended; the next try is scheduled already. */
    void (*closed)(void *arg, bool was_open, enum fault, const char *why);
    /* The link is gone: the memory that embeds it may be freed. */
    void (*ended)(void *arg);
};

struct redis_link {
    struct system *system;
    const struct alloc *alloc;
    struct link_config config;
    const struct link_events *events;
    void *arg; /* for the callbacks */

    enum link_step step;
    uint32_t connection; /* the number of this connection; it changes when the connection ends */
    uint32_t depth;      /* calls from the loop on the stack */
    bool dead;
    bool answered; /* the server has sent a whole reply */

    struct timer *timer;
    uint64_t timer_us; /* when it fires; LINK_NEVER: not set */
    bool hurried;      /* it was overdue, and was set to fire at once */
    uint64_t step_us;  /* when the present step, or the pause, ends */
    uint64_t try_us;   /* when the present try ends */
    uint32_t step_ms;  /* how long the present step may last, for its message */
    uint64_t open_us;  /* since when it is OPEN */
    struct link login; /* in config.logins, while the step is LOGIN */
    struct retry retry;
    struct dial dial;
    struct conn conn;
    struct reply_parser parser;
    struct handshake handshake;
};

/* link_init - make a stopped link. The system, the table of events and the allocator must live as long. False: out of
 * memory; call link_end() even then. */
bool link_init(struct redis_link *, struct system *, const struct alloc *, const struct link_config *,
               const struct link_events *, void *arg);
/* link_end - close and free. ended() is called once, now or when no function of the link is on the stack; no other
 * callback runs. */
void link_end(struct redis_link *);
/* link_start - connect from the loop, when the present pause is over. False: no memory for the timer. */
bool link_start(struct redis_link *);
/* link_try_now - end the present pause, if there is one. */
void link_try_now(struct redis_link *);
/* link_log_in - log in: the step is LOGIN, and the uri has the login. The try gets its whole time again. */
void link_log_in(struct redis_link *);
/* link_stop - close at once, without a callback. A pause runs on while the link is stopped. */
void link_stop(struct redis_link *);

/* link_is_on - return whether the link lives and still has that connection. */
bool link_is_on(const struct redis_link *, uint32_t connection);
bool link_is_open(const struct redis_link *);
uint64_t link_now_us(const struct redis_link *);
/* link_open - note that the connection is ready for use. From now on the owner sets the timer. */
void link_open(struct redis_link *);
/* link_ask - send what was appended. The answer must come within config.timeout_ms if the link is OPEN, else before the
 * try ends. If there was no memory to append it, the link is dropped. */
void link_ask(struct redis_link *);
/* link_read - read and handle what has come; see events.readable. */
void link_read(struct redis_link *);
/* link_arm - set the timer, or stop it with LINK_NEVER.
 * link_arm_by - set the timer earlier, if it is later or overdue. */
bool link_arm(struct redis_link *, uint64_t wake_us);
void link_arm_by(struct redis_link *, uint64_t now_us, uint64_t wake_us);
/* link_drop - end the connection, or the try, for that reason. May be called from anywhere; the owner may be gone
 * afterwards. */
void link_drop(struct redis_link *, enum fault, const char *format, ...) __attribute__((format(printf, 3, 4)));
void link_drop_nomem(struct redis_link *);
/* link_drop_late - drop an open link that was to be answered by the end of its step, if that is over; else arm it. */
void link_drop_late(struct redis_link *, enum fault);
void link_log(struct redis_link *, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
