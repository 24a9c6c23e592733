/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * election.h - candidates, one of which leads, and observers of who leads
 *
 * An election has a name, which is a key on the nodes. Its leader holds a lock on that key, and the fencing token of
 * the lock is the leader's term, which rises with every leader. The rules of quorlock.h hold here too. Elections need
 * the plain dialect. The manual explains them: quorlock_candidate_new(3) and quorlock_observer_new(3).
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

/* The candidate leads now, in that term. */
typedef void (*quorlock_elected_cb)(quorlock_candidate *, uint64_t term, void *arg);
/* The candidate must stop to act as the leader within loss->remaining_ms. */
typedef void (*quorlock_deposed_cb)(quorlock_candidate *, const struct quorlock_loss *loss, void *arg);
/* The candidacy has ended. status: 0 (resigned), NOQUORUM (resigned; others may have to wait for the end of the lease),
 * LOST (resigned; another one may have led before), CLOSED, or why it cannot lead: AUTH, FOREIGN, PROTO, INVAL. */
typedef void (*quorlock_ended_cb)(quorlock_candidate *, int status, const char *text, void *arg);

struct quorlock_candidate_options {
    size_t size;
    const char *advertise;       /* text for observers; default the client's owner_label */
    quorlock_elected_cb elected; /* each may be NULL */
    quorlock_deposed_cb deposed;
    quorlock_ended_cb ended;
    void *arg;
    uint32_t lease_ms, renew_ms, lost_margin_ms, fence_ttl_ms; /* as in struct quorlock_lock_options */
};

/* quorlock_candidate_options_init, quorlock_observer_options_init - as quorlock_client_options_init. */
QUORLOCK_API void quorlock_candidate_options_init(struct quorlock_candidate_options *options, size_t size);

/* quorlock_candidate_new - make a candidate of the election `name`; its candidacy has not begun. Errors: INVAL (the
 * name, the advertised text, a lease), UNSUPPORTED (the redisson dialect), NOMEM, CLOSED; *ret is untouched then. */
QUORLOCK_API int quorlock_candidate_new(quorlock_candidate **ret, quorlock_client *client, const char *name,
                                        const struct quorlock_candidate_options *options);

/* quorlock_candidate_stand - start the candidacy. `elected` comes when the candidate leads; if renewal fails `deposed`
 * comes, before another one can lead, and the candidacy goes on after a pause. `ended` comes once, as the last
 * callback. Errors: STATE (begun already, or the system has no random bytes), NOMEM, CLOSED. */
QUORLOCK_API int quorlock_candidate_stand(quorlock_candidate *candidate);

/* quorlock_candidate_resign - end the candidacy; a leader does not lead any more from this call on. `ended` follows.
 * Errors: STATE (no candidacy), CLOSED, INVAL (NULL). */
QUORLOCK_API int quorlock_candidate_resign(quorlock_candidate *candidate);

/* quorlock_candidate_free - resign in the background, and free. No callback comes any more. NULL is permitted. */
QUORLOCK_API void quorlock_candidate_free(quorlock_candidate *candidate);

/*
 * quorlock_candidate_valid_ms - read the clock, and return how long the candidate still leads; 0: do not act
 * quorlock_candidate_term     - return the term; 0: it does not lead
 */
QUORLOCK_API uint32_t quorlock_candidate_valid_ms(const quorlock_candidate *candidate);
QUORLOCK_API uint64_t quorlock_candidate_term(const quorlock_candidate *candidate);

enum quorlock_leader_state {
    QUORLOCK_LEADER_UNKNOWN = 0, /* too few nodes answer, or their answers show a change of leaders */
    QUORLOCK_LEADER_NONE = 1,    /* nobody leads */
    QUORLOCK_LEADER_KNOWN = 2,
};

/* Who led when the nodes were asked. The leader may be deposed by now: see quorlock_observer_new(3). */
struct quorlock_leader {
    int state;         /* enum quorlock_leader_state */
    uint64_t term;     /* of the leader; else the last one that was reported; 0: none yet */
    const char *text;  /* what the leader advertises, control characters as \xNN; NULL: no leader */
    const char *owner; /* its whole owner token; NULL: no leader */
    uint32_t valid_ms; /* what was left of its lease, by the nodes' clocks */
};

typedef void (*quorlock_leader_cb)(quorlock_observer *, const struct quorlock_leader *, void *arg);

struct quorlock_observer_options {
    size_t size;
    quorlock_leader_cb changed; /* required */
    void *arg;
    uint32_t poll_ms; /* longest time between two polls, 10 to 3600000; default 1000 */
};

QUORLOCK_API void quorlock_observer_options_init(struct quorlock_observer_options *options, size_t size);

/* quorlock_observer_new - report who leads, now and at every change, until the observer is freed. Terms never fall.
 * Errors: INVAL (the name, no callback, poll_ms), UNSUPPORTED (the redisson dialect), NOMEM, CLOSED; *ret is untouched
 * then. */
QUORLOCK_API int quorlock_observer_new(quorlock_observer **ret, quorlock_client *client, const char *name,
                                       const struct quorlock_observer_options *options);

/* quorlock_observer_free - end and free it. No callback comes any more. NULL is permitted. */
QUORLOCK_API void quorlock_observer_free(quorlock_observer *observer);

#ifdef __cplusplus
}
#endif
#endif
