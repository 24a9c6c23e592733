/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.h - the same lock for callers without an event loop, from any thread
 *
 * quorlock_blocking_open() starts one thread that runs an event_base of its own with a client on it. Every
 * function here hands its work to that thread and waits for the answer, so all of them may be called from any
 * thread at any time, also on one lock by several threads at once.
 *
 * Rules that hold for every function here, unless its comment says otherwise:
 *
 * - The lost callback and the log hook run in the loop's thread and hold it up: they should be short. Renewals wait
 *   meanwhile. In them only valid_ms, cancel, free, statistics and metrics may be called; what would wait for the loop
 *   answers STATE there.
 * - Memory hooks are called from the loop's thread, and from the thread that opens. What the facade itself needs
 *   comes from malloc.
 * - All signals are blocked in the loop's thread.
 * - After fork() the child has no loop: it must not use what its parent opened.
 */
#ifndef QUORLOCK_BLOCKING_H
#define QUORLOCK_BLOCKING_H

#include <quorlock/election.h>
#include <quorlock/quorlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quorlock_blocking quorlock_blocking;           /* a client and its thread */
typedef struct quorlock_blocking_lock quorlock_blocking_lock; /* one lock; reusable */
typedef struct quorlock_blocking_candidate quorlock_blocking_candidate;
typedef struct quorlock_blocking_observer quorlock_blocking_observer;

#define QUORLOCK_BLOCKING_TEXT_SIZE  512
#define QUORLOCK_BLOCKING_TOKEN_SIZE 128

/*
 * As struct quorlock_result, without the votes. It is the caller's: fill it with zeros and set size = sizeof
 * once. A size that is too small, or a non-zero byte behind what this library knows, is INVAL
 * before anything is done, and nothing is written. The library writes no more than size bytes.
 */
struct quorlock_blocking_result {
    size_t size;
    int status; /* enum quorlock_status */
    uint32_t granted, refused, failed;
    uint32_t rounds;
    uint32_t elapsed_ms;
    uint32_t valid_ms; /* when the verdict came */
    int expired;
    uint64_t fence;
    char text[QUORLOCK_BLOCKING_TEXT_SIZE];   /* the verdict or the error in words, cut where it is long */
    char token[QUORLOCK_BLOCKING_TOKEN_SIZE]; /* our owner token, whole; "" where there is none */
    uint32_t slot;                            /* of a lock with permits: which of them it holds; else 0 */
};

typedef void (*quorlock_blocking_lost_cb)(quorlock_blocking_lock *, const struct quorlock_loss *, void *arg);

/* quorlock_blocking_open - a client with a thread of its own. Errors: as quorlock_client_new, with the text in
 * options->error; NOMEM also where the system has no thread or descriptor left; *ret is untouched then. (It
 * looks for five free descriptors first: if another thread takes them meanwhile, libevent ends the process.) */
QUORLOCK_API int quorlock_blocking_open(quorlock_blocking **ret, const struct quorlock_client_options *options);

/* quorlock_blocking_close - releases and frees all locks, ends the thread. Waits for the answers of releases at
 * most one node timeout. Calls that wait in other threads end with CLOSED; none may begin any more. NULL is
 * fine. Errors: STATE in the loop's thread, and nothing was done. */
QUORLOCK_API int quorlock_blocking_close(quorlock_blocking *blocking);

/* quorlock_blocking_new - as quorlock_new; the text of an error goes to error, which may be NULL. Holds nest by
 * the owner in the options and not by the thread: threads that must exclude each other need different owners,
 * or none. */
QUORLOCK_API int quorlock_blocking_new(quorlock_blocking_lock **ret, quorlock_blocking *blocking,
                                       const char *const *keys, size_t n_keys, const struct quorlock_options *options,
                                       char *error, size_t error_size);

/* quorlock_blocking_acquire, _extend, _release - as their namesakes, but return the result's status, and errors
 * of the call itself (BUSY, STATE, INVAL ...) the same way. result may be NULL. */
QUORLOCK_API int quorlock_blocking_acquire(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result);
QUORLOCK_API int quorlock_blocking_extend(quorlock_blocking_lock *lock, uint32_t lease_ms,
                                          struct quorlock_blocking_result *result);
QUORLOCK_API int quorlock_blocking_release(quorlock_blocking_lock *lock, struct quorlock_blocking_result *result);

/* quorlock_blocking_cancel - ends an acquire or extend that another thread waits for: it returns CANCELED. */
QUORLOCK_API int quorlock_blocking_cancel(quorlock_blocking_lock *lock);

/* quorlock_blocking_free - as quorlock_free; a thread that waits on this lock returns CANCELED. The handle is
 * dead at once. NULL is fine. */
QUORLOCK_API void quorlock_blocking_free(quorlock_blocking_lock *lock);

/* quorlock_blocking_on_lost - as quorlock_on_lost. When it returns, the callback that was set before does not
 * run any more, unless it was called from inside it. */
QUORLOCK_API void quorlock_blocking_on_lost(quorlock_blocking_lock *lock, quorlock_blocking_lost_cb cb, void *arg);

/* quorlock_blocking_valid_ms - validity left when the loop's thread read the clock; 0: not held, do not act. */
QUORLOCK_API uint32_t quorlock_blocking_valid_ms(const quorlock_blocking_lock *lock);

/* quorlock_blocking_statistics - as quorlock_client_statistics: cb reads them in the loop's thread, and has returned
 * when this returns. quorlock_blocking_metrics: as quorlock_client_metrics. Errors, besides theirs: CLOSED. */
typedef void (*quorlock_blocking_statistics_cb)(const struct quorlock_statistics *, void *arg);
QUORLOCK_API int quorlock_blocking_statistics(quorlock_blocking *blocking, quorlock_blocking_statistics_cb cb,
                                              void *arg);
QUORLOCK_API int quorlock_blocking_metrics(quorlock_blocking *blocking, const struct quorlock_metrics_options *options,
                                           char *buffer, size_t size, size_t *ret_length);

/* quorlock_blocking_candidate_new - as quorlock_candidate_new; the text of an error goes to error, which may be NULL.
 * The callbacks in the options run in the loop's thread, and the candidate that they are handed is only a name there.
 */
QUORLOCK_API int quorlock_blocking_candidate_new(quorlock_blocking_candidate **ret, quorlock_blocking *blocking,
                                                 const char *name, const struct quorlock_candidate_options *options,
                                                 char *error, size_t error_size);

/* quorlock_blocking_stand - stands, where it does not yet, and returns when it leads: 0, and the term. Called again by
 * a leader it returns at once, and by one that was deposed when it leads again. Else it returns why it stands no more:
 * CANCELED, because another thread resigned or freed it; CLOSED; or what the ended callback says. The elected or ended
 * callback in the options has returned by then; so it has when quorlock_blocking_resign returns. */
QUORLOCK_API int quorlock_blocking_stand(quorlock_blocking_candidate *candidate, uint64_t *ret_term);

/* quorlock_blocking_resign - as quorlock_resign, and returns the status of its end. Errors: STATE, it does not stand.
 */
QUORLOCK_API int quorlock_blocking_resign(quorlock_blocking_candidate *candidate);

/* quorlock_blocking_candidate_free, _valid_ms - as their namesakes; calls that wait return CANCELED. */
QUORLOCK_API void quorlock_blocking_candidate_free(quorlock_blocking_candidate *candidate);
QUORLOCK_API uint32_t quorlock_blocking_candidate_valid_ms(quorlock_blocking_candidate *candidate);

/* quorlock_blocking_observe - as quorlock_observe: the callback runs in the loop's thread, and the observer that it is
 * handed is only a name there. quorlock_blocking_observer_free: when it returns, the callback does not run any more,
 * unless it was called from inside it. */
QUORLOCK_API int quorlock_blocking_observe(quorlock_blocking_observer **ret, quorlock_blocking *blocking,
                                           const char *name, const struct quorlock_observer_options *options,
                                           char *error, size_t error_size);
QUORLOCK_API void quorlock_blocking_observer_free(quorlock_blocking_observer *observer);

#ifdef __cplusplus
}
#endif
#endif
