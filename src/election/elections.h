/* SPDX-License-Identifier: BSD-3-Clause */
/* elections.h - what the candidates and observers of one client share: when each has its turn, is closed, and is freed
 */
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
    size_t budget;   /* of them, in this turn */
    struct turn turn;
};

/* A candidate, or an observer. */
struct member {
    struct elections *all;
    struct link in_all, in_due;
    struct backoff_jitter jitter;
    struct waker waker;
    void (*take_turn)(struct member *); /* user callbacks may run; NULL: it never wants one */
    void (*close)(struct member *);     /* the client closes */
    void (*destroy)(struct member *);   /* frees it, whatever is owed */
};

/* elections_start - of a zeroed struct, when locks and admin have started. elections_close: closes all members.
 * elections_stop: frees them; of a zeroed struct, too. */
void elections_start(struct elections *, struct runtime *, struct locks *, struct admin *);
void elections_close(struct elections *);
void elections_stop(struct elections *);
/* elections_check - whether a member may be made: 0 or a status, with its text. ret: where the caller wants it; what: a
 * candidate, for messages. */
int elections_check(struct elections *, const void *ret, const char *what);
/* member_join - of a struct with its functions, else zeroed. member_leave: undoes that. */
void member_join(struct member *, struct elections *, void (*wake)(struct waker *));
void member_leave(struct member *);
/* member_wants_turn - soon, from the loop. */
void member_wants_turn(struct member *);
