/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * totals.h - how often things happened over all runs
 *
 * A fault, an outcome or a rare state that never happens proves nothing, so the figures are printed, and a run of the
 * simulator over many seeds fails where one that must happen did not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "plan.h"

#define TOTALS_MAP(X)                                                                                                  \
    X(GRANTS, "granted")                                                                                               \
    X(HELD, "refused, held")                                                                                           \
    X(NOQUORUM, "refused, no quorum")                                                                                  \
    X(TIMEDOUT, "timed out")                                                                                           \
    X(CANCELED, "canceled")                                                                                            \
    X(CLOSED, "ended by a close")                                                                                      \
    X(FOREIGN, "refused, a key that is no lock's")                                                                     \
    X(CONFIG, "refused, configuration")                                                                                \
    X(NOMEM, "refused, no memory")                                                                                     \
    X(ROUNDS, "attempts beyond the first")                                                                             \
    X(NESTED, "holds beside others of an owner")                                                                       \
    X(NESTED_RENEWED, "acquires that renewed first")                                                                   \
    X(NESTED_FAILED, "holds that could not be added")                                                                  \
    X(EXTENDED, "extended")                                                                                            \
    X(EXTEND_FAILED, "extend failed")                                                                                  \
    X(RENEWED, "windows grew")                                                                                         \
    X(LOST_EXPIRED, "lost, expired")                                                                                   \
    X(LOST_GONE, "lost, gone")                                                                                         \
    X(LOST_MAX_HOLD, "lost, max hold")                                                                                 \
    X(LOST_NOT_RENEWED, "lost, not renewed")                                                                           \
    X(LOST_CLOCK, "lost, clocks stepped")                                                                              \
    X(RELEASED, "released")                                                                                            \
    X(RELEASED_EXPIRED, "released, had expired")                                                                       \
    X(RELEASE_NOQUORUM, "released, no quorum answered")                                                                \
    X(REACQUIRED, "acquired with a release in flight")                                                                 \
    X(KEPT, "kept after their release")                                                                                \
    X(KEPT_QUORUM, "kept on a quorum")                                                                                 \
    X(DETACHED, "detached")                                                                                            \
    X(ADOPTED, "adopted")                                                                                              \
    X(FREED, "handles freed")                                                                                          \
    X(FREED_BUSY, "handles freed with an operation in flight")                                                         \
    X(FREED_INSIDE, "handles freed in a callback")                                                                     \
    X(CLOSES, "clients closed")                                                                                        \
    X(CLOSED_INSIDE, "clients closed in a callback")                                                                   \
    X(BURIED, "processes killed, memory given back")                                                                   \
    X(BIRTHS, "processes started again")                                                                               \
    X(MISUSES, "misuses refused")                                                                                      \
    X(CALLS_NOMEM, "calls without memory")                                                                             \
    X(NO_RANDOM, "no random bytes")                                                                                    \
    X(CALLS_NO_RANDOM, "calls without random bytes")                                                                   \
    X(INSPECTED, "inspected")                                                                                          \
    X(EXAMINED, "examined")                                                                                            \
    X(BROKEN, "locks broken")                                                                                          \
    X(BOOTSTRAPPED, "bootstrapped")                                                                                    \
    X(RECONFIGURED, "reconfigured")                                                                                    \
    X(SET_GREW, "sets of nodes that grew")                                                                             \
    X(SET_SHRANK, "sets of nodes that shrank")                                                                         \
    X(SET_REPLACED, "sets with replaced nodes")                                                                        \
    X(BESIDE_OLD, "granted by new nodes beside old clients")                                                           \
    X(SERVER_REPLACED, "servers replaced under their names")                                                           \
    X(SET_RENAMED, "sets renamed")                                                                                     \
    X(LEASE_LONGER, "max_lease made longer")                                                                           \
    X(LEASE_SHORTER, "max_lease made shorter")                                                                         \
    X(FLOODED, "granted in a flood")                                                                                   \
    X(PEER_HELD, "held by a peer")                                                                                     \
    X(TURNS, "had their turn")                                                                                         \
    X(HANDOVERS, "hand-overs in calm")                                                                                 \
    X(NOTICES_LOST, "notices lost")                                                                                    \
    X(TOLD, "changes told by servers")                                                                                 \
    X(TOLD_WRONG, "changes told that were none")                                                                       \
    X(LATE_GRANT, "granted with a loop that was late")                                                                 \
    X(DEGRADED, "held on fewer nodes than all")                                                                        \
    X(REPAIRED, "taken again by its holder")                                                                           \
    X(QUARANTINED, "holder's key taken in quarantine")                                                                 \
    X(GUARD_WRITTEN, "guards written")                                                                                 \
    X(GUARD_VOTING, "guard written during a vote")                                                                     \
    X(QUARANTINE_HOLDING, "quarantines that began while holding")                                                      \
    X(WOKEN_BY_NOTICE, "granted right after another's release")                                                        \
    X(WOKEN_BY_NOBODY, "granted what nobody had released")                                                             \
    X(HANDED_ON, "handed on in a client")                                                                              \
    X(HANDED_ON_LATE, "handed on in a client, by a late loop")                                                         \
    X(HALF_TAKEN, "refused with some keys free")                                                                       \
    X(RELEASED_FULL, "released behind a full connection")                                                              \
    X(CUT_SHORT, "connections ended with answers due")                                                                 \
    X(EXECUTED_LATE, "executed after their connection's end")                                                          \
    X(JUDGED_LATE, "looks long after the faults")                                                                      \
    X(SPLIT, "votes split")                                                                                            \
    X(PEEKS, "holders looked up")                                                                                      \
    X(RAISES, "counters raised")                                                                                       \
    X(BATCHES, "requests that went together")                                                                          \
    X(SUBSCRIBES, "subscriptions")                                                                                     \
    X(STALL_TURN, "stalled within a turn")                                                                             \
    X(TOKENS, "granted with a token")                                                                                  \
    X(WRITES, "writes taken")                                                                                          \
    X(WRITES_REFUSED, "stale writes refused")                                                                          \
    X(PERMITS_ALL, "all permits of a name held at once")                                                               \
    X(READERS_BESIDE, "readers beside others on a server")                                                             \
    X(READS_WRITTEN, "readers inside of what their owner writes")                                                      \
    X(MIXED, "granted in mixed modes")                                                                                 \
    X(INTENTS, "intents on a server changed")                                                                          \
    X(FAIR, "granted in the order of coming")                                                                          \
    X(HOLDERS, "holders beside others reported")                                                                       \
    X(TWO_MINDS, "refused, another number of permits")                                                                 \
    X(ELECTED, "elected")                                                                                              \
    X(DEPOSED, "deposed")                                                                                              \
    X(OBSERVED, "observers told")                                                                                      \
    X(ELECTION_SETTLED, "elections settled")                                                                           \
    X(OUTSIDE, "runs outside the claim")                                                                               \
    X(OVERLAPS_OUTSIDE, "overlaps, outside")                                                                           \
    X(OTHERS_OUTSIDE, "others, outside")                                                                               \
    X(REFUSED_OUTSIDE, "stale writes refused, outside")

enum total {
#define TOTALS_ENUM(name, text) TOTAL_##name,
    TOTALS_MAP(TOTALS_ENUM)
#undef TOTALS_ENUM
        TOTALS
};

struct totals {
    uint64_t runs, moments, commands, turns, calls;
    uint64_t passed_us; /* of true time, in all runs */
    uint64_t of[TOTALS];
    uint64_t faults[FAULT_KINDS];
    uint64_t features[FEATURES];
    uint64_t most_spins;    /* turns of a loop in a row without a pause */
    uint64_t most_requests; /* of a run, in hundredths of what it may have */
};

/* totals_outside - count a violation where the invariant is not promised. */
void totals_outside(struct totals *, bool overlap);
void totals_print(const struct totals *, FILE *);
/* totals_complete - return whether everything has happened that must, and print what has not. */
bool totals_complete(const struct totals *, FILE *);
