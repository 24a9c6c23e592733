/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election.h - candidates, one of which leads, and observers, which are told who does
 *
 * An election has a name, which is a key of the nodes like that of any lock. Its leader is the holder of a lock on that
 * key, and its term is the lock's fencing token: a number that rises with every leader, by which what a leader writes
 * to can refuse one that was deposed. Terms rise; they do not count one by one. Every candidate of an election must be
 * one of these: what holds the key as a lock without fencing keeps candidates out, and is no leader.
 *
 * The rules of quorlock.h hold here, too. Elections are made with clients of the plain dialect.
 */
#ifndef QUORLOCK_ELECTION_H
#define QUORLOCK_ELECTION_H

#include <quorlock/quorlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quorlock_candidate quorlock_candidate;
typedef struct quorlock_observer quorlock_observer;

#define QUORLOCK_ADVERTISE_LENGTH_MAX 64

/* It leads now, by that term. */
typedef void (*quorlock_elected_cb)(quorlock_candidate *, uint64_t term, void *arg);
/* It leads no more from loss->remaining_ms on, and must have stopped to act as the leader by then. */
typedef void (*quorlock_deposed_cb)(quorlock_candidate *, const struct quorlock_loss *loss, void *arg);
/* It stands no more. status: 0, it has resigned; NOQUORUM, likewise, but so few nodes answered that others may have to
 * wait for the end of its lease; LOST, likewise, but the answers show that it led no more when it did, though it was
 * not deposed: its lock was broken, or its clock stood still, and another one may have led; CLOSED; or why it cannot
 * stand: AUTH, FOREIGN, PROTO, INVAL, as an acquire says. */
typedef void (*quorlock_ended_cb)(quorlock_candidate *, int status, const char *text, void *arg);

struct quorlock_candidate_options {
    size_t size;
    const char *advertise;       /* what observers read of it while it leads, such as its address: 1 to
                                    QUORLOCK_ADVERTISE_LENGTH_MAX printable characters without space; default the
                                    client's owner_label */
    quorlock_elected_cb elected; /* each may be NULL */
    quorlock_deposed_cb deposed;
    quorlock_ended_cb ended;
    void *arg;
    uint32_t lease_ms, renew_ms, lost_margin_ms, fence_ttl_ms; /* as in struct quorlock_options. Deposed comes
                                    lost_margin_ms before validity ends: as long as it takes to stop */
};

/*
 * quorlock_candidate_new - a candidate of the election of that name, which does not stand yet
 *
 * A client may have many candidates, also of one election. A candidate has no owner, so that its lock nests with no
 * other one. Errors: INVAL (the name, as a key; the advertised text; leases that are no good), UNSUPPORTED (the
 * redisson dialect, whose locks have no fencing tokens), NOMEM, CLOSED.
 */
QUORLOCK_API int quorlock_candidate_new(quorlock_candidate **ret, quorlock_client *client, const char *name,
                                        const struct quorlock_candidate_options *options);

/*
 * quorlock_stand - from now on it is elected when nobody leads, until it resigns
 *
 * elected comes when it leads. Then its lease is renewed, and where that fails deposed comes, as quorlock_on_lost
 * promises: before another one can lead. After that it stands again by itself, not before loss->remaining_ms are over,
 * and after a pause: 50 to 100 ms where it has led for four leases, else longer with each time in a row, up to one
 * lease. ended comes once for each call that returned 0, as the last callback of it, unless the candidate is freed.
 * Errors: STATE (it stands already; or the system has no random bytes), NOMEM, CLOSED.
 */
QUORLOCK_API int quorlock_stand(quorlock_candidate *candidate);

/*
 * quorlock_resign - stands no more; ended follows
 *
 * A leader leads no more with this call: it gives its lock back, and a candidate that waits is notified, and is elected
 * within a few round trips. One that was deposed, and has stopped its work sooner than it had to, hands over in the
 * same way. Errors: STATE (it does not stand, or has resigned), CLOSED, INVAL (candidate is NULL).
 */
QUORLOCK_API int quorlock_resign(quorlock_candidate *candidate);

/* quorlock_candidate_free - resigns in the background and frees; no callback of it comes any more. NULL is fine. */
QUORLOCK_API void quorlock_candidate_free(quorlock_candidate *candidate);

/* quorlock_candidate_valid_ms - for how long it still leads at least, by the clock read now; 0: it does not, do not
 * act. quorlock_candidate_term: the term by which it leads; 0: it does not. */
QUORLOCK_API uint32_t quorlock_candidate_valid_ms(const quorlock_candidate *candidate);
QUORLOCK_API uint64_t quorlock_candidate_term(const quorlock_candidate *candidate);

enum quorlock_leader_state {
    QUORLOCK_LEADER_UNKNOWN = 0, /* too few nodes answer, or what they show is between two leaders */
    QUORLOCK_LEADER_NONE = 1,    /* nobody leads */
    QUORLOCK_LEADER_KNOWN = 2,
};

/* Who led when the nodes were asked. It may be deposed by the time this is read: only what the leader writes to can
 * tell, by the term. */
struct quorlock_leader {
    int state;         /* enum quorlock_leader_state */
    uint64_t term;     /* of the leader; without one, of the last one that this observer was told of; 0: of none yet */
    const char *text;  /* what the leader advertises, control characters as \xNN; NULL without a leader */
    const char *owner; /* its owner token, whole, as quorlock_inspect shows it; NULL without a leader */
    uint32_t valid_ms; /* what was left of its lease, by the nodes' clocks; it renews it */
};

typedef void (*quorlock_leader_cb)(quorlock_observer *, const struct quorlock_leader *, void *arg);

struct quorlock_observer_options {
    size_t size;
    quorlock_leader_cb changed; /* needed */
    void *arg;
    uint32_t poll_ms; /* at most between two looks where nothing happens, 10 to 3600000; default 1000 */
};

/*
 * quorlock_observe - is told who leads, now and whenever that changes, until it is freed
 *
 * The first callback comes when the nodes have answered, and in any case. Observers look when nodes notify them of a
 * release, when the leader's lease ends, shortly after a change, and else every poll_ms. Leaders that led between two
 * looks are not told. A term is never older than one told before, and has one leader. An observer needs only the right
 * to read the key, its counter, and to subscribe. It does not write on the nodes, except that its client may make
 * guards: QUORLOCK_GUARD_OFF is enough for a client that only observes.
 * Errors: INVAL (the name, as a key; changed is NULL; poll_ms), UNSUPPORTED (the redisson dialect), NOMEM, CLOSED.
 */
QUORLOCK_API int quorlock_observe(quorlock_observer **ret, quorlock_client *client, const char *name,
                                  const struct quorlock_observer_options *options);

/* quorlock_observer_free - no callback of it comes any more. NULL is fine. */
QUORLOCK_API void quorlock_observer_free(quorlock_observer *observer);

#ifdef __cplusplus
}
#endif
#endif
