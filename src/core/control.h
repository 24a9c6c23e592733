/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - safety rules that a test build can break on purpose
 *
 * A rule is proven only if a test notices when it is broken. With QUORLOCK_CONTROLS the simulator chooses one
 * rule to break at run time; in every other build BROKEN() is the constant false and costs nothing.
 */
#pragma once

enum core_control {
    CONTROL_NONE,
    CONTROL_SAME_TOKEN,      /* a retry uses the token of the attempt before */
    CONTROL_NO_SECOND_CHECK, /* the owner is notified of a grant without a second look at the clock */
    CONTROL_LATE_RENEWAL,    /* a renewal's yes counts though lost_at has passed */
    CONTROL_RESURRECT,       /* a lost lock is held again after a renewal, and repair needs no quorum */
    CONTROL_HALF_QUORUM,     /* Q = N/2 */
    CONTROL_NO_WRITE_BACK,   /* the largest counter is the token, and no node is asked to raise its counter */
    CONTROL_NO_BACKOFF,      /* the next attempt follows at once where another client is in the way */
    CONTROL_LOST_WAKE,       /* notices during an attempt, and confirmed subscriptions, are ignored */
    CONTROL_NEVER_OVERDUE,   /* an arbiter that does not answer is waited for and asked first again */
    CONTROL_WAITS_FOR_LATE,  /* an attempt holds on to its votes while a node does not answer */
    CONTROL_STALE_TRIPS,     /* the RTT stays that of the begin of the connection */
    CONTROL_NO_POLLS,        /* no polls: a waiter that is not woken waits on */
    CONTROL_BELIEVES_ONE,    /* a holder that the arbiter names is waited for, whatever the others have */
    CONTROL_WAKES_IN_VAIN,   /* a failed attempt wakes waiters although another client holds the lock */
};

#ifdef QUORLOCK_CONTROLS
extern enum core_control core_control;
#define BROKEN(rule) (core_control == (rule))
#else
#define BROKEN(rule) 0
#endif
