/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.h - the same lock for callers without an event loop, from any thread
 *
 * quorlock_sync_client_new() starts a thread, here the loop's thread, that runs a client on an event loop of its own.
 * The other functions hand their work to that loop and, except those that only start something, wait for the answer.
 * They do as the functions without "sync", where no comment says otherwise. The manual explains them:
 * quorlock_sync_client_new(3), and quorlock_sync_candidate_stand(3) for elections.
 *
 * Rules for every function, unless its comment says otherwise:
 *
 * - Threads. Any thread may call a function at any time, but not a signal handler; several threads may use one lock.
 *   Where nothing else is under way, and no callback of yours may be due, a thread that waits for an answer runs the
 *   loop itself meanwhile, for some milliseconds at most, with all signals blocked and without cancelation.
 * - Ownership. A lock, a candidate or an observer belongs to the caller until the caller frees it, before or after the
 *   client is closed. Do not use one that another thread has freed, nor a client that another thread has closed.
 * - Errors. Why a call fails is in its result, or in the last argument, a struct quorlock_error. Once the client is
 *   closed, and in a child of fork(), calls return CLOSED. With NULL calls return INVAL. In both cases functions
 *   that return no status return 0. To free, close or shut down NULL does nothing.
 * - Callbacks, but those for reports, and the log hook run in the loop's thread. Renewals wait meanwhile. In them only
 *   valid_ms, token, fence, start_acquire, start_release, cancel, shutdown, free, set_on_lost, set_credentials,
 *   statistics, metrics and lost_margin_max_ms may be called; calls that would wait return STATE. The function
 *   `credentials` calls quorlock_credentials_set, _refuse or _defer only.
 * - Signals. The loop's thread blocks all signals.
 * - Events. What would call back is an event instead, if quorlock_sync_client_events() was called and there is no
 *   callback.
 */
#ifndef QUORLOCK_SYNC_H
#define QUORLOCK_SYNC_H

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quorlock_sync_client quorlock_sync_client; /* a client and its thread */
typedef struct quorlock_sync_lock quorlock_sync_lock;     /* one lock; reusable */
typedef struct quorlock_sync_candidate quorlock_sync_candidate;
typedef struct quorlock_sync_observer quorlock_sync_observer;

#define QUORLOCK_SYNC_TEXT_SIZE  512
#define QUORLOCK_SYNC_TOKEN_SIZE 128

/* Like struct quorlock_result, without the votes. The caller fills it with zeros and sets size = sizeof once. If size
 * is too small, or a byte that this version does not know is not 0, calls return INVAL and do nothing. */
struct quorlock_sync_result {
    size_t size;
    int status; /* enum quorlock_status */
    uint32_t granted, refused, failed;
    uint32_t rounds;
    uint32_t elapsed_ms;
    uint32_t valid_ms; /* when the result came */
    uint64_t fence;
    char text[QUORLOCK_SYNC_TEXT_SIZE];   /* the result or the error in words, cut if it is long */
    char token[QUORLOCK_SYNC_TOKEN_SIZE]; /* the whole owner token; "": none */
    uint32_t slot;                        /* the permit that the lock holds, or QUORLOCK_SLOT_NONE */
};

typedef void (*quorlock_sync_lost_cb)(quorlock_sync_lock *, const struct quorlock_loss *, void *arg);

/* quorlock_sync_client_new - make a client with a thread of its own. Errors: as quorlock_client_new; also NOMEM if the
 * system has no thread or descriptor left. *ret is untouched then. */
QUORLOCK_API int quorlock_sync_client_new(quorlock_sync_client **ret, const struct quorlock_client_options *options,
                                          struct quorlock_error *error);

/* quorlock_sync_client_shutdown - end waiting acquires and stands in all threads with CLOSED, and let no new one begin.
 * Held locks stay held and renewed, and may be extended and released. Does not wait for other threads. Errors: CLOSED.
 */
QUORLOCK_API int quorlock_sync_client_shutdown(quorlock_sync_client *client);

/* quorlock_sync_client_close - release all locks, wait for the answers for at most one node timeout, and end the
 * thread. Waiting calls in other threads end with CLOSED. No other call may begin. Errors: STATE (in the loop's thread;
 * nothing was done), CLOSED (another thread is closing the client). */
QUORLOCK_API int quorlock_sync_client_close(quorlock_sync_client *client);

QUORLOCK_API int quorlock_sync_client_set_credentials(quorlock_sync_client *client, const char *node, const char *user,
                                                      const char *password, struct quorlock_error *error);

QUORLOCK_API uint32_t quorlock_sync_client_lost_margin_max_ms(quorlock_sync_client *client, uint32_t lease_ms,
                                                              uint32_t renew_ms);

/* Holds nest by the owner in the options, not by the thread. */
QUORLOCK_API int quorlock_sync_lock_new(quorlock_sync_lock **ret, quorlock_sync_client *client, const char *const *keys,
                                        size_t n_keys, const struct quorlock_lock_options *options,
                                        struct quorlock_error *error);

/* quorlock_sync_lock_acquire, _extend, _release, _undo, _adopt - return the status of the result, or the error of the
 * call, without distinction. result may be NULL. */
QUORLOCK_API int quorlock_sync_lock_acquire(quorlock_sync_lock *lock, struct quorlock_sync_result *result);
QUORLOCK_API int quorlock_sync_lock_extend(quorlock_sync_lock *lock, uint32_t lease_ms,
                                           struct quorlock_sync_result *result);
QUORLOCK_API int quorlock_sync_lock_release(quorlock_sync_lock *lock, struct quorlock_sync_result *result);
QUORLOCK_API int quorlock_sync_lock_undo(quorlock_sync_lock *lock, struct quorlock_sync_result *result);
QUORLOCK_API int quorlock_sync_lock_adopt(quorlock_sync_lock *lock, const char *token,
                                          struct quorlock_sync_result *result);

/* quorlock_sync_lock_acquire_for - do as quorlock_sync_lock_acquire, but return QUORLOCK_SYNC_WAITS when the thread has
 * slept for about most_ms, or a signal handler has run in it. The acquire goes on: the same call with the same result
 * goes on waiting, and until it returns something else the result must stay. For callers that have signals to handle,
 * such as interpreters. A cancel ends it; the lock must not be freed during such a call, only between two. Errors: as
 * quorlock_sync_lock_acquire; INVAL (result is NULL); BUSY (an acquire with another result goes on). */
#define QUORLOCK_SYNC_WAITS 1
QUORLOCK_API int quorlock_sync_lock_acquire_for(quorlock_sync_lock *lock, uint32_t most_ms,
                                                struct quorlock_sync_result *result);

QUORLOCK_API int quorlock_sync_lock_set_wait_ms(quorlock_sync_lock *lock, uint32_t wait_ms,
                                                struct quorlock_error *error);

/* quorlock_sync_lock_detach - write token, fence and valid_ms to result, which must not be NULL. */
QUORLOCK_API int quorlock_sync_lock_detach(quorlock_sync_lock *lock, struct quorlock_sync_result *result);

/* quorlock_sync_lock_with - acquire the lock of one key, run fn in this thread while it is held and renewed, write what
 * fn returned to *ret, which may be NULL, and release the lock. If the lock is not granted, return its status; fn did
 * not run, and *ret is untouched. If the lock was lost while fn ran, return LOST, whatever fn returned. fn finds a loss
 * by quorlock_sync_lock_valid_ms(), which is 0 then; it must neither release nor free the lock. options may be NULL:
 * the defaults. result may be NULL: it gets the text, after fn that of the release. Other errors: as
 * quorlock_sync_lock_new; INVAL (fn is NULL). */
typedef int (*quorlock_sync_with_cb)(quorlock_sync_lock *, const struct quorlock_sync_result *grant, void *arg);
QUORLOCK_API int quorlock_sync_lock_with(quorlock_sync_client *client, const char *key,
                                         const struct quorlock_lock_options *options, quorlock_sync_with_cb fn,
                                         void *arg, int *ret, struct quorlock_sync_result *result);

/* quorlock_sync_lock_start_acquire, _start_release - start the operation, and return. If they return 0, cb runs once,
 * in the loop's thread, with a result that is valid until cb returns. After a free of the lock its status is CANCELED,
 * after a close of the client CLOSED. Errors: INVAL (lock or cb is NULL), CLOSED, NOMEM; others come as results. */
typedef void (*quorlock_sync_result_cb)(const struct quorlock_sync_result *, void *arg);
QUORLOCK_API int quorlock_sync_lock_start_acquire(quorlock_sync_lock *lock, quorlock_sync_result_cb cb, void *arg);
QUORLOCK_API int quorlock_sync_lock_start_release(quorlock_sync_lock *lock, quorlock_sync_result_cb cb, void *arg);

/* quorlock_sync_lock_cancel - end a waiting or started acquire or extend with CANCELED; STATE: there is none. A held
 * lock stays held. */
QUORLOCK_API int quorlock_sync_lock_cancel(quorlock_sync_lock *lock);

/* quorlock_sync_lock_free - as without "sync"; waiting calls on the lock return CANCELED. */
QUORLOCK_API void quorlock_sync_lock_free(quorlock_sync_lock *lock);

/* quorlock_sync_lock_set_on_lost - when it returns, the former callback does not run any more, unless the call came
 * from inside that callback. */
QUORLOCK_API void quorlock_sync_lock_set_on_lost(quorlock_sync_lock *lock, quorlock_sync_lost_cb cb, void *arg);

/* quorlock_sync_lock_valid_ms - read the clock, and return how long the lock is still valid; 0: not held, do not act.
 * It never waits. Call it before each step that must not happen twice. */
QUORLOCK_API uint32_t quorlock_sync_lock_valid_ms(const quorlock_sync_lock *lock);

/* quorlock_sync_lock_token - copy the whole owner token of the present grant to the buffer, for which
 * QUORLOCK_SYNC_TOKEN_SIZE is always enough. It asks the loop, and another thread may release the lock meanwhile: the
 * result of an acquire has the tokens of that grant. Errors, and nothing is written: STATE (not held), INVAL (the
 * buffer is NULL, or too small), CLOSED. */
QUORLOCK_API int quorlock_sync_lock_token(quorlock_sync_lock *lock, char *token, size_t size);
/* quorlock_sync_lock_fence - return the fencing token of the present grant; 0: not held, or without fencing. It asks
 * the loop, too. */
QUORLOCK_API uint64_t quorlock_sync_lock_fence(quorlock_sync_lock *lock);

/* quorlock_sync_client_statistics - call cb with the statistics, in the loop's thread, and return after it. Errors,
 * also of metrics: as without "sync", and CLOSED. */
typedef void (*quorlock_sync_statistics_cb)(const struct quorlock_statistics *, void *arg);
QUORLOCK_API int quorlock_sync_client_statistics(quorlock_sync_client *client, quorlock_sync_statistics_cb cb,
                                                 void *arg);
QUORLOCK_API int quorlock_sync_client_metrics(quorlock_sync_client *client,
                                              const struct quorlock_metrics_options *options, char *buffer, size_t size,
                                              size_t *ret_length);

/* quorlock_sync_client_inspect, _inspect_node, _break, _list, _bootstrap, _doctor - return the status of the report. cb
 * runs before they return, in the calling thread. Errors, without a callback: as without "sync", INVAL (no callback),
 * CLOSED (also after a shutdown), STATE (in the loop's thread). */
QUORLOCK_API int quorlock_sync_client_inspect(quorlock_sync_client *client, const char *key, quorlock_inspect_cb cb,
                                              void *arg);
QUORLOCK_API int quorlock_sync_client_inspect_node(quorlock_sync_client *client, size_t node, const char *key,
                                                   quorlock_inspect_cb cb, void *arg);
QUORLOCK_API int quorlock_sync_client_break(quorlock_sync_client *client, const char *key, const char *owner,
                                            quorlock_break_cb cb, void *arg);
QUORLOCK_API int quorlock_sync_client_list(quorlock_sync_client *client, const char *pattern, quorlock_list_cb cb,
                                           void *arg);
QUORLOCK_API int quorlock_sync_client_bootstrap(quorlock_sync_client *client,
                                                const struct quorlock_bootstrap_options *options,
                                                quorlock_bootstrap_cb cb, void *arg);
QUORLOCK_API int quorlock_sync_client_doctor(quorlock_sync_client *client, quorlock_doctor_cb cb, void *arg);

/* Callbacks of candidates and observers run in the loop's thread; the handle that they get may only be compared. */
QUORLOCK_API int quorlock_sync_candidate_new(quorlock_sync_candidate **ret, quorlock_sync_client *client,
                                             const char *name, const struct quorlock_candidate_options *options,
                                             struct quorlock_error *error);

/* quorlock_sync_candidate_stand - start the candidacy if there is none, and wait until the candidate leads: 0, and the
 * term. Else return why the candidacy ended: CANCELED (another thread resigned or freed it), CLOSED, or the status of
 * `ended`. The callback elected or ended has returned before. */
QUORLOCK_API int quorlock_sync_candidate_stand(quorlock_sync_candidate *candidate, uint64_t *ret_term);

/* quorlock_sync_candidate_resign - end the candidacy, and return the status of its end. Errors: STATE (there is none).
 */
QUORLOCK_API int quorlock_sync_candidate_resign(quorlock_sync_candidate *candidate);

/*
 * quorlock_sync_candidate_free     - as without "sync"; waiting calls return CANCELED
 * quorlock_sync_candidate_valid_ms - never waits
 * quorlock_sync_candidate_term     - likewise. Read it after the validity: if it is still the term that you act for, so
 *                                    is the validity
 */
QUORLOCK_API void quorlock_sync_candidate_free(quorlock_sync_candidate *candidate);
QUORLOCK_API uint32_t quorlock_sync_candidate_valid_ms(const quorlock_sync_candidate *candidate);
QUORLOCK_API uint64_t quorlock_sync_candidate_term(const quorlock_sync_candidate *candidate);

/* quorlock_sync_observer_free - after it the callback does not run any more, unless the call came from inside it. */
QUORLOCK_API int quorlock_sync_observer_new(quorlock_sync_observer **ret, quorlock_sync_client *client,
                                            const char *name, const struct quorlock_observer_options *options,
                                            struct quorlock_error *error);
QUORLOCK_API void quorlock_sync_observer_free(quorlock_sync_observer *observer);

/* ---- events, for callers that want no callback from the loop's thread ---- */

#define QUORLOCK_EVENT_TEXT_SIZE 1400

enum quorlock_event_type {
    QUORLOCK_EVENT_NONE = 0,       /* no event waits */
    QUORLOCK_EVENT_CLOSED,         /* the client is closed: the last event */
    QUORLOCK_EVENT_LOG,            /* a line of the log: level, text, n_dropped */
    QUORLOCK_EVENT_LOST,           /* a lock was lost: reason, text, remaining_ms */
    QUORLOCK_EVENT_ACQUIRE_ENDED,  /* an acquire that was started has ended: status and the result */
    QUORLOCK_EVENT_RELEASE_ENDED,  /* a release that was started has ended, likewise */
    QUORLOCK_EVENT_ELECTED,        /* a candidate leads: term */
    QUORLOCK_EVENT_DEPOSED,        /* it does not lead any more: term, reason, text, remaining_ms */
    QUORLOCK_EVENT_RESIGNED,       /* its candidacy has ended: status, text */
    QUORLOCK_EVENT_LEADER_CHANGED, /* an observer's news: state, term, text, token, valid_ms */
    QUORLOCK_EVENT_LOGIN,          /* a login waits for set_credentials (quorlock_credentials_defer): text, the node */
};

/* Like struct quorlock_sync_result for the caller: zeros, and size = sizeof once. Members that the type does not
 * name are 0, but slot is QUORLOCK_SLOT_NONE. */
struct quorlock_event {
    size_t size;
    int type;           /* enum quorlock_event_type */
    int status;         /* enum quorlock_status */
    const void *handle; /* the lock, candidate or observer, to compare only: another thread may have freed it */
    void *arg;          /* what the caller gave in the place of the callback's argument */
    uint64_t fence, term;
    uint32_t granted, refused, failed, rounds, elapsed_ms, valid_ms, slot; /* as in a result */
    uint32_t remaining_ms;                                                 /* as in struct quorlock_loss */
    int reason;                                                            /* enum quorlock_loss_reason */
    int level;                                                             /* enum quorlock_log_level */
    int state;                                                             /* enum quorlock_leader_state */
    uint64_t n_dropped; /* lines of the log that were dropped before this one, because nobody read the events */
    char text[QUORLOCK_EVENT_TEXT_SIZE];
    char token[QUORLOCK_SYNC_TOKEN_SIZE]; /* the owner token of a result; the leader's; "": none */
};

/* quorlock_sync_client_events - begin to queue events, and write a descriptor that is readable while an event waits.
 * Call it before the first lock, candidate or observer is made. From then on callbacks may be NULL, also those that are
 * required otherwise, and their argument goes to the event. The log is in the events if options.log is NULL. The
 * descriptor belongs to the library. Errors: INVAL (NULL), STATE (there are handles, or in the loop's thread), CLOSED,
 * NOMEM. */
QUORLOCK_API int quorlock_sync_client_events(quorlock_sync_client *client, int *ret_fd);

/* quorlock_sync_client_next_event - take the oldest event, without waiting; its type is QUORLOCK_EVENT_NONE if there is
 * none. Nothing waits for who does not read: of each kind a handle has one event, the latest, and lines of the log are
 * dropped. After a close of the client, in any thread, read until QUORLOCK_EVENT_CLOSED: that ends the descriptor, and
 * the client must not be used any more. Any thread. Errors: INVAL (NULL, the size), STATE (no events), CLOSED (in a
 * child of fork()). */
QUORLOCK_API int quorlock_sync_client_next_event(quorlock_sync_client *client, struct quorlock_event *event);

#ifdef __cplusplus
}
#endif
#endif
