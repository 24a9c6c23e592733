/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_client.h - one user of the library in a chaos client: it asks for a key, works while it holds it, releases it
 * and begins again
 *
 * Its kind decides how it asks: for a lock (lock_client.c), or as a candidate of an election (candidate_client.c).
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
struct user_kind;

/* What all users of this process share. */
struct chaos {
    struct chaos_options options;
    struct event_base *base;
    struct quorlock_client *client;
    struct user *users;
    const struct user_kind *lock_kind, *candidate_kind;
    uint32_t n_closed; /* users that have ended */
    int stop;          /* SIGTERM came */
    void (*closed)(struct chaos *);
};

#define RANGE(chaos, range)  options_pick(&(chaos)->options.seed, range)
#define ONE_IN(chaos, times) (options_draw(&(chaos)->options.seed) % (times) == 0)

struct user_kind {
    bool endless;              /* it waits without end, until it is canceled */
    int (*ask)(struct user *); /* 0 or a status; after 0 user_granted() or user_refused() follows */
    void (*cancel)(struct user *);
    int (*release)(struct user *); /* after 0 user_given_back() follows */
    void (*lost)(struct user *);
    void (*pass_on)(struct user *); /* sometimes have another handle adopt the lock; NULL: never */
    uint32_t (*valid_ms)(const struct user *);
    uint64_t (*fence)(const struct user *);
    void (*drop)(struct user *); /* free the handle, even one that still holds */
};

enum user_state { USER_IDLE, USER_ASKING, USER_HOLDING, USER_RELEASING, USER_CLOSED };

/* One key of an operation. In the history each key is an operation of its own, and the second key has its own user
 * number. */
struct user_part {
    struct history_subject subject;
    uint64_t next_value;
    bool shared;
    bool may_write; /* the register was read during this hold */
};

#define USER_PARTS_MAX 2

struct user {
    struct chaos *chaos;
    const struct user_kind *kind; /* of the present operation */
    struct user_part parts[USER_PARTS_MAX];
    size_t n_parts;
    size_t next_part; /* the part to work on next */
    enum user_state state;
    struct event *timer;
    uint32_t ticks;      /* ticks in this state; they do not run while the process is stopped */
    uint32_t ticks_dead; /* ticks in USER_HOLDING without validity */
    struct quorlock_lock *lock;
    struct quorlock_candidate *candidate;
    uint32_t lease_ms, wait_ms, permits;
    bool is_passing; /* user_passed_on() follows */
    uint64_t deadline_us, hold_until_us;
};

/* user_begin - start a user; its first operation comes after a while. number: from 0 on. -1: out of memory. */
int user_begin(struct user *user, struct chaos *chaos, uint32_t number);
/* user_tick - called every TICK_MS: end the process if a callback of the library is overdue. */
#define TICK_MS 100
void user_tick(struct user *user);
/* user_stop - end the present operation, because the client ends. */
void user_stop(struct user *user);

/* Called by the kinds. more: additional fields of the line. */
void user_granted(struct user *user, bool was_valid, const char *more);
void user_refused(struct user *user, const char *status, const char *more);
void user_lost(struct user *user, const struct quorlock_loss *loss);
void user_passed_on(struct user *user, bool held); /* whether the new handle holds the lock */
void user_given_back(struct user *user);
void user_asks(struct user *user, const char *more);
void user_plan_cancel(struct user *user); /* cancels some waits, and all that have no end */
void user_give_back(struct user *user);
void user_breach(struct user *user, const char *text);
