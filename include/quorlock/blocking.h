/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blocking.h - the same lock for callers without an event loop, from any thread
 *
 * quorlock_blocking_open() starts one thread that runs an event_base of its own with a client on it. Every
 * function here hands its work to that thread and, but for those that start something, waits for the answer, so all of
 * them may be called from any thread at any time, also on one lock by several threads at once.
 *
 * Rules that hold for every function here, unless its comment says otherwise:
 *
 * - A handle (of a lock, a candidate or an observer) is the caller's until the caller frees it, before the client is
 *   closed or after. Once its client is closed every call on it is an error, CLOSED, and it is still freed. No call may
 *   use a handle that another thread has freed, nor a client that another thread has closed: a program that ends calls
 *   shutdown, joins the threads that use the client, and closes it.
 * - NULL for a handle or a client is INVAL, and 0 of valid_ms; to free, close or shut down NULL does nothing.
 * - Callbacks and the log hook run in the loop's thread and hold it up: they should be short. Renewals wait
 *   meanwhile. In them only valid_ms, start_acquire, start_release, cancel, stop, shutdown, free, set_credentials,
 *   statistics and metrics may be called; what would wait for the loop answers STATE there. In a callback credentials
 *   nothing may be called.
 * - Memory hooks are called from the loop's thread, and from the thread that opens. What the facade itself needs
 *   comes from malloc.
 * - All signals are blocked in the loop's thread.
 * - After fork() the child has no loop: there every call on what its parent opened is CLOSED, with a text that says
 *   so, and valid_ms is 0. To free and to close give back the facade's memory, and touch neither the parent's locks nor
 *   its connections. The rest of that memory, and the descriptors, stay until the child ends or executes a program. The
 *   child opens a client of its own.
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

/* quorlock_blocking_shutdown - ends what waits, so that the threads that use the client can come to their end. Acquires
 * and stands in other threads end with CLOSED. From now on nothing new begins: acquire, stand, and what makes a lock, a
 * candidate or an observer are CLOSED. What is held is held and renewed as before, and extended, released and resigned
 * as before, until it is given back or the client is closed; a leader that is deposed stands no more. Does not wait for
 * the other threads. Errors: CLOSED. */
QUORLOCK_API int quorlock_blocking_shutdown(quorlock_blocking *blocking);

/* quorlock_blocking_close - releases all locks and ends the thread. Waits for the answers of releases at most one node
 * timeout. Calls that wait in other threads end with CLOSED; none may begin any more. Handles stay until they are
 * freed. Errors: STATE in the loop's thread, and nothing was done; CLOSED, another thread is closing it. */
QUORLOCK_API int quorlock_blocking_close(quorlock_blocking *blocking);

/* quorlock_blocking_set_credentials - as quorlock_client_set_credentials. */
QUORLOCK_API int quorlock_blocking_set_credentials(quorlock_blocking *blocking, const char *user, const char *password);

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

/* quorlock_blocking_start_acquire, _start_release - the same without a thread that waits, for callers with a loop of
 * their own: cb runs once, in the loop's thread, with the result; after a free of the lock with CANCELED, and after a
 * close of the client, before that returns, with CLOSED. The result is the library's, and gone when cb returns. Where
 * the call itself is an error cb does not run: INVAL, lock or cb is NULL; CLOSED; NOMEM. All others come as results. */
typedef void (*quorlock_blocking_cb)(const struct quorlock_blocking_result *, void *arg);
QUORLOCK_API int quorlock_blocking_start_acquire(quorlock_blocking_lock *lock, quorlock_blocking_cb cb, void *arg);
QUORLOCK_API int quorlock_blocking_start_release(quorlock_blocking_lock *lock, quorlock_blocking_cb cb, void *arg);

/* quorlock_blocking_cancel - ends an acquire or extend that another thread waits for, or that was started: its result
 * is CANCELED. Errors: STATE, none is under way, and one that begins now is not canceled. quorlock_blocking_stop: ends
 * an acquire likewise, and every later one on this handle, before it asks a node, so it does not matter which comes
 * first. What is held stays held. Nothing undoes a stop. */
QUORLOCK_API int quorlock_blocking_cancel(quorlock_blocking_lock *lock);
QUORLOCK_API int quorlock_blocking_stop(quorlock_blocking_lock *lock);

/* quorlock_blocking_free - as quorlock_free; a thread that waits on this lock returns CANCELED. The handle is
 * dead at once. */
QUORLOCK_API void quorlock_blocking_free(quorlock_blocking_lock *lock);

/* quorlock_blocking_on_lost - as quorlock_on_lost. When it returns, the callback that was set before does not
 * run any more, unless it was called from inside it. */
QUORLOCK_API void quorlock_blocking_on_lost(quorlock_blocking_lock *lock, quorlock_blocking_lost_cb cb, void *arg);

/* quorlock_blocking_valid_ms - validity left, by the clocks read now; 0: not held, do not act. It waits for no thread,
 * and is never more than what the loop's thread knows, however late that runs: it may be asked before each step. */
QUORLOCK_API uint32_t quorlock_blocking_valid_ms(const quorlock_blocking_lock *lock);

/* quorlock_blocking_statistics - as quorlock_client_statistics: cb reads them in the loop's thread, and has returned
 * when this returns. quorlock_blocking_metrics: as quorlock_client_metrics. Errors, besides theirs: CLOSED. */
typedef void (*quorlock_blocking_statistics_cb)(const struct quorlock_statistics *, void *arg);
QUORLOCK_API int quorlock_blocking_statistics(quorlock_blocking *blocking, quorlock_blocking_statistics_cb cb,
                                              void *arg);
QUORLOCK_API int quorlock_blocking_metrics(quorlock_blocking *blocking, const struct quorlock_metrics_options *options,
                                           char *buffer, size_t size, size_t *ret_length);

/* quorlock_blocking_inspect, quorlock_blocking_break - as quorlock_inspect and quorlock_break: cb reads the report in
 * the loop's thread, where it is the library's and gone when cb returns; cb has returned when these return the same
 * status. Errors, besides theirs: INVAL, cb is NULL; CLOSED, also after a shutdown; STATE in the loop's thread. Where
 * the call itself is an error cb does not run. */
QUORLOCK_API int quorlock_blocking_inspect(quorlock_blocking *blocking, const char *key, quorlock_report_cb cb,
                                           void *arg);
QUORLOCK_API int quorlock_blocking_break(quorlock_blocking *blocking, const char *key, quorlock_report_cb cb,
                                         void *arg);

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

/* quorlock_blocking_candidate_free - as its namesake; calls that wait return CANCELED.
 * quorlock_blocking_candidate_valid_ms - as quorlock_blocking_valid_ms, of who leads. */
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
