/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * totals.h - how often things happened over all runs
 *
 * A fault or an outcome that never happens proves nothing, so the figures are printed, and a long run of the
 * simulator fails where one that must happen did not.
 */
#ifndef QUORLOCK_SIM_TOTALS_H
#define QUORLOCK_SIM_TOTALS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plan.h"

#define TOTALS_MAP(X)                                                                                                  \
    X(GRANTS, "granted")                                                                                               \
    X(HELD_BY_OTHER, "refused, held")                                                                                  \
    X(NOQUORUM, "refused, no quorum")                                                                                  \
    X(TIMEDOUT, "timed out")                                                                                           \
    X(CANCELED, "canceled")                                                                                            \
    X(NOTICES, "notices")                                                                                              \
    X(NOTICES_LOST, "notices lost")                                                                                    \
    X(LISTENING, "subscriptions confirmed")                                                                            \
    X(BEHIND, "begun behind an own lock")                                                                              \
    X(WAKES, "woken by an own lock")                                                                                   \
    X(TURNS, "had their turn")                                                                                         \
    X(TOO_LATE, "grant too late to be reported")                                                                       \
    X(ATTEMPTS_FAILED, "attempts failed")                                                                              \
    X(RENEWED, "renewals")                                                                                             \
    X(RENEW_FAILED, "renewals failed")                                                                                 \
    X(DEGRADED, "degraded")                                                                                            \
    X(WHOLE, "whole again")                                                                                            \
    X(REPAIRED, "repaired")                                                                                            \
    X(EXTENDED, "extended")                                                                                            \
    X(EXTEND_FAILED, "extend failed")                                                                                  \
    X(LOST_EXPIRED, "lost, expired")                                                                                   \
    X(LOST_GONE, "lost, gone")                                                                                         \
    X(LOST_MAX_HOLD, "lost, max hold")                                                                                 \
    X(LOST_CLOCK, "lost, clocks stepped")                                                                              \
    X(LOST_NOT_RENEWED, "lost, not renewed")                                                                           \
    X(RELEASED, "released")                                                                                            \
    X(RELEASED_EXPIRED, "released, had expired")                                                                       \
    X(RELEASE_NOQUORUM, "released, no quorum answered")                                                                \
    X(FREED, "freed")                                                                                                  \
    X(QUIET, "quiet and clean")                                                                                        \
    X(NOSCRIPT, "script was forgotten")                                                                                \
    X(REFUSED, "error replies")                                                                                        \
    X(UNSENT, "not queued")                                                                                            \
    X(TIMEOUTS, "requests timed out")                                                                                  \
    X(SWALLOWED, "late answers swallowed")                                                                             \
    X(STRAYS, "stray answers")                                                                                         \
    X(LATE_EXECUTED, "executed after the connection")                                                                  \
    X(STALLS, "connections stalled")                                                                                   \
    X(READY, "connections ready")                                                                                      \
    X(CONNECT_FAILED, "connections failed")                                                                            \
    X(UNKNOWN, "outcomes unknown")                                                                                     \
    X(PEEKS, "holders looked up")                                                                                      \
    X(MISUSES, "misuses refused")                                                                                      \
    X(BIRTHS, "clients born again")                                                                                    \
    X(GUARD_WRITTEN, "guards written anew")                                                                            \
    X(QUARANTINED, "connections quarantined")                                                                          \
    X(QUARANTINE_ENDED, "quarantines ended")                                                                           \
    X(GUARD_BROKEN, "requests found the guard changed")                                                                \
    X(PROMOTED, "replicas promoted")                                                                                   \
    X(TWINS, "servers found listed twice")                                                                             \
    X(CONFIG, "refused, configuration")                                                                                \
    X(CLOCK_STEPS, "steps of node clocks found")                                                                       \
    X(TOKENS, "granted with a token")                                                                                  \
    X(RAISES, "counters raised")                                                                                       \
    X(WRITES, "writes taken")                                                                                          \
    X(WRITES_REFUSED, "stale writes refused")                                                                          \
    X(OUTSIDE, "runs outside the claim")                                                                               \
    X(OVERLAPS_OUTSIDE, "overlaps, outside")                                                                           \
    X(OTHERS_OUTSIDE, "quorums gone early, outside")                                                                   \
    X(REFUSED_OUTSIDE, "stale writes refused, outside")

enum total {
#define TOTALS_ENUM(name, text) TOTAL_##name,
    TOTALS_MAP(TOTALS_ENUM)
#undef TOTALS_ENUM
        TOTALS
};

struct totals {
    uint64_t runs, steps, events;
    uint64_t of[TOTALS];
    uint64_t faults[FAULT_KINDS];
};

/* totals_outside - an invariant was violated where it is not promised. */
void totals_outside(struct totals *, bool overlap);
void totals_print(const struct totals *, FILE *);
/* totals_print_outside - what happened where nothing was promised, in words. */
void totals_print_outside(const struct totals *, FILE *);
/* totals_complete - did everything happen that must? Names what did not. */
bool totals_complete(const struct totals *, FILE *);

#endif
