/* SPDX-License-Identifier: BSD-3-Clause */
/* elections.h - the candidates and observers of one client: their turns, and their end */
#pragma once

#include <quorlock/election.h>

#include "admin/report.h"
#include "core/election.h"
#include "lock/lock.h"

struct elections {
    struct runtime *runtime;
    struct locks *locks;
    struct admin *admin;
    struct list members;
    struct list due; /* members that want a turn */
    size_t budget;   /* members that are left in this turn */
    struct turn turn;
};

/* A candidate, or an observer. */
struct member {
    struct elections *all;
    struct link in_all, in_due;
    struct backoff_jitter jitter;
    struct waker waker;
    void (*take_turn)(struct member *); /* may run user callbacks; NULL: the member never wants a turn */
    void (*close)(struct member *);     /* the client closes */
    void (*destroy)(struct member *);   /* free the member, even if callbacks are still to run */
};

/* elections_start - start from a zeroed struct, once locks and admin have started. */
void elections_start(struct elections *, struct runtime *, struct locks *, struct admin *);
/* elections_close - close all members. */
void elections_close(struct elections *);
/* elections_stop - free all members. A zeroed struct is fine. */
void elections_stop(struct elections *);
/* elections_check - tell whether a member may be made: 0, or a status with its text. ret: the caller's place for it.
 * what: its name in messages, such as "candidate". */
int elections_check(struct elections *, const void *ret, const char *what);
/* member_join - add a member that is zeroed but for its functions. */
void member_join(struct member *, struct elections *, void (*wake)(struct waker *));
/* member_leave - remove the member. */
void member_leave(struct member *);
/* member_wants_turn - run the member's take_turn soon, from the loop. */
void member_wants_turn(struct member *);
