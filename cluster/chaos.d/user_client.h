/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_client.h - one user of the library in a chaos client: it asks, works while it holds, gives back, begins anew
 *
 * How it asks is its kind: by a lock (lock_client.c), or as a candidate of an election (candidate_client.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#include "history_client.h"
#include "options_client.h"

struct user;

/* What all users of this process share. */
struct chaos {
    struct chaos_options options;
    struct event_base *base;
    struct quorlock_client *client;
    struct user *users;
    uint32_t n_closed; /* users that have ended */
    int stop;          /* SIGTERM came */
    void (*closed)(struct chaos *);
};

/* chaos_random - choices of a client follow from its seed alone. */
uint64_t chaos_random(struct chaos *chaos);

#define RANGE(chaos, range)  ((range).min + (uint32_t)(chaos_random(chaos) % ((range).max - (range).min + 1)))
#define ONE_IN(chaos, times) (chaos_random(chaos) % (times) == 0)

struct user_kind {
    int (*ask)(struct user *); /* 0 or a status; user_granted() or user_refused() follows 0 */
    void (*cancel)(struct user *);
    int (*release)(struct user *); /* user_given_back() follows 0 */
    void (*lost)(struct user *);
    uint32_t (*valid_ms)(const struct user *);
    uint64_t (*fence)(const struct user *);
    void (*drop)(struct user *); /* also what was not given back yet */
};

enum user_state { USER_IDLE, USER_ASKING, USER_HOLDING, USER_RELEASING, USER_CLOSED };

/* One key of an operation. In the history each is an operation of its own, and the second one has a user of its own. */
struct user_part {
    struct history_subject subject;
    uint64_t next_value;
    bool shared;
    bool may_write; /* the register was read in this hold */
};

#define USER_PARTS_MAX 2

struct user {
    struct chaos *chaos;
    const struct user_kind *kind; /* of this operation */
    struct user_part parts[USER_PARTS_MAX];
    size_t n_parts;
    size_t next_part; /* to work on */
    enum user_state state;
    struct event *timer;
    uint32_t ticks;      /* in this state; they do not run while we are stopped */
    uint32_t ticks_dead; /* holding with no validity left */
    struct quorlock *lock;
    struct quorlock_candidate *candidate;
    uint32_t lease_ms, wait_ms, permits;
    uint64_t deadline_us, hold_until_us;
};

/* user_begin - its first operation is due after a while. number: from 0 on. -1: no memory. */
int user_begin(struct user *user, struct chaos *chaos, uint32_t number);
/* user_tick - every TICK_MS: is something overdue that the library promised? */
#define TICK_MS 100
void user_tick(struct user *user);
/* user_stop - ends what it does, as the client ends. */
void user_stop(struct user *user);

/* What the kinds tell. more: fields of the line. */
void user_granted(struct user *user, bool was_valid, const char *more);
void user_refused(struct user *user, const char *status, const char *more);
void user_lost(struct user *user, const struct quorlock_loss *loss);
void user_given_back(struct user *user);
void user_asks(struct user *user, const char *more);
void user_patience(struct user *user); /* it cancels where the wait has no end of its own */
void user_give_back(struct user *user);
void user_breach(struct user *user, const char *text);

extern const struct user_kind lock_kind, candidate_kind;

/* observers_begin - one for each election. -1 after a line on stderr. */
int observers_begin(struct chaos *chaos);
void observers_end(void);
