/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the life of one connection to one server
 *
 *   STOPPED <--> PAUSE --> RESOLVE --> CONNECT --> GREET --> HANDSHAKE --> OPEN
 *                  ^          |           |          |           |          |
 *                  +----------+-----------+----------+-----------+----------+  link_drop(): closed(), and a pause
 *
 * A try has config.connect_ms from RESOLVE to OPEN. Where a name has several addresses each has its share of what is
 * left for CONNECT and GREET, so that a dead one does not keep the next from its turn.
 * GREET is the layer's part of the connection. A lookup that has no answer within RESOLVE goes on: the pause ends when
 * its answer comes, and the next RESOLVE waits for the same lookup.
 *
 * Node, subscriber and examination embed a link. It resolves the server's name, tries one address after the
 * other, judges the replies to the handshake, reads, and keeps the one timer. By a table of callbacks its owner
 * says what to ask and learns what was answered. What has come is read before a deadline is judged, because a
 * process that was stopped finds its replies waiting.
 *
 * A callback may end the link, and its owner with it. Then everything that could become ready is closed at
 * once, and ended() follows when no function of the link is left on the stack. So after each callback of its
 * own, and after each call that may have made one, an owner asks link_is_on() before it goes on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
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

enum link_step { LINK_STOPPED, LINK_PAUSE, LINK_RESOLVE, LINK_CONNECT, LINK_GREET, LINK_HANDSHAKE, LINK_OPEN };

/* What the owner is called for. Those marked "or NULL" may be missing. */
struct link_events {
    const char *topic; /* follows the server's name in each line of the log */
    /* Begins the handshake: see handshake.h. One without a step is over at once. */
    void (*connected)(void *arg);
    /* The handshake went well: link_open(), or more to ask first, then link_ask(). */
    void (*greeted)(void *arg);
    /* There is something to read: link_read(), or NULL for just that. */
    void (*readable)(void *arg);
    /* Bytes came; the replies in them follow. Or NULL. */
    void (*heard)(void *arg);
    /* A reply behind those to the handshake. */
    void (*reply)(void *arg, const struct reply *);
    /* The turn ends: append what waited for that, and do nothing else. Or NULL. */
    void (*sending)(void *arg);
    /* What was appended has left, or leaves as soon as the socket takes it. Or NULL. */
    void (*sent)(void *arg);
    /* OPEN, and the time of link_arm() has come, or nearly. */
    void (*due)(void *arg);
    /* Whether a server with that fault is tried again only after the longest pause. Or NULL: none is. */
    bool (*waits_long)(void *arg, enum fault);
    /* Whether the end of the connection drops what was sent and has not arrived, for it would do harm later. Or NULL:
     * it never would. */
    bool (*resets)(void *arg);
    /* The connection, or the try, ended; the next try is planned already. */
    void (*closed)(void *arg, bool was_open, enum fault, const char *why);
    /* The link is gone: the memory it is embedded in may go. */
    void (*ended)(void *arg);
};

struct redis_link {
    struct system *system;
    const struct alloc *alloc;
    struct link_config config;
    const struct link_events *events;
    void *arg; /* of the events */

    enum link_step step;
    uint32_t connection; /* counts all of them, to see that one ended meanwhile */
    uint32_t depth;      /* entries from the loop on the stack */
    bool dead;
    bool answered; /* the server has given a whole reply */

    struct timer *timer;
    uint64_t timer_us; /* what it is armed for; LINK_NEVER: nothing */
    bool hurried;      /* it was overdue, and fires at once */
    uint64_t step_us;  /* when the present step ends, or the pause */
    uint64_t try_us;   /* when the present try ends */
    uint32_t step_ms;  /* how long the present step may last, for its text */
    uint64_t open_us;  /* since when it is OPEN */
    struct retry retry;
    struct dial dial;
    struct conn conn;
    struct reply_parser parser;
    struct handshake handshake;
};

/* link_init - a stopped link; the system, the table of events and what alloc points to are kept by the owner.
 * False: out of memory, and link_end() is due all the same. */
bool link_init(struct redis_link *, struct system *, const struct alloc *, const struct link_config *,
               const struct link_events *, void *arg);
/* link_end - closes and frees; ended() is called once, now or when the stack allows it, and nothing else. */
void link_end(struct redis_link *);
/* link_start - connects from the loop, when the present pause is over. False: no memory for the timer. */
bool link_start(struct redis_link *);
/* link_try_now - ends the present pause, where there is one. */
void link_try_now(struct redis_link *);
/* link_stop - closes at once, without a callback. A pause goes on while it is stopped. */
void link_stop(struct redis_link *);

/* link_is_on - the link lives and still has that connection. */
bool link_is_on(const struct redis_link *, uint32_t connection);
bool link_is_open(const struct redis_link *);
uint64_t link_now_us(const struct redis_link *);
/* link_open - the connection is ready for use. The timer is the owner's from here on. */
void link_open(struct redis_link *);
/* link_ask - sends what was appended. The answer must come within config.timeout_ms where the link is OPEN, else before
 * the try ends. Drops the link where there was no memory to append it. */
void link_ask(struct redis_link *);
/* link_read - reads and handles what has come: as events.readable. */
void link_read(struct redis_link *);
/* link_arm - sets the timer, or stops it by LINK_NEVER; link_arm_by moves it nearer where it is later, or
 * overdue. */
bool link_arm(struct redis_link *, uint64_t wake_us);
void link_arm_by(struct redis_link *, uint64_t now_us, uint64_t wake_us);
/* link_drop - ends the connection, or the try, for that reason. May be called from anywhere; the owner may be
 * gone afterwards. */
void link_drop(struct redis_link *, enum fault, const char *format, ...) __attribute__((format(printf, 3, 4)));
void link_drop_nomem(struct redis_link *);
void link_log(struct redis_link *, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
