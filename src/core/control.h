/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - safety rules that a test build can break on purpose
 *
 * A rule whose breaking no test notices is not proven. With QUORLOCK_CONTROLS the simulator chooses one rule
 * to break at run time; in every other build BROKEN() is the constant false and nothing of this is left.
 */
#ifndef QUORLOCK_CORE_CONTROL_H
#define QUORLOCK_CORE_CONTROL_H

enum core_control {
    CONTROL_NONE,
    CONTROL_SAME_TOKEN,      /* a retry uses the token of the attempt before */
    CONTROL_NO_SECOND_CHECK, /* a grant is told without looking at the clock again */
    CONTROL_LATE_RENEWAL,    /* a renewal's yes counts though lost_at has passed */
    CONTROL_RESURRECT,       /* a lost lock is held again after a renewal, and repair needs no quorum */
    CONTROL_HALF_QUORUM,     /* Q = N/2 */
    CONTROL_NO_WRITE_BACK,   /* the largest counter is the token, and no node is told */
    CONTROL_NO_BACKOFF,      /* the next attempt follows at once */
    CONTROL_LOST_WAKE,       /* what comes while an attempt is under way, and a confirmation, is no sign */
    CONTROL_NEVER_OVERDUE,   /* an arbiter that does not answer is waited for, and asked first again */
    CONTROL_WAITS_FOR_LATE,  /* an attempt holds on to its votes while a node does not answer */
    CONTROL_STALE_TRIPS,     /* round trips are those of the begin of the connection */
    CONTROL_NO_POLLS,        /* nobody looks now and then: whoever is not woken waits on */
    CONTROL_BELIEVES_ONE,    /* whom the arbiter names is waited for, whatever the others have */
    CONTROL_WAKES_IN_VAIN,   /* a failed attempt wakes others although somebody else holds the lock */
};

#ifdef QUORLOCK_CONTROLS
extern enum core_control core_control;
#define BROKEN(rule) (core_control == (rule))
#else
#define BROKEN(rule) 0
#endif

#endif
