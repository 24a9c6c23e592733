/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace.h"

#include <inttypes.h>
#include <stdarg.h>

const char *trace_invariant(enum invariant invariant)
{
    static const char *const names[INVARIANTS] = {
        [INVARIANT_NONE] = "none",
        [I1_EXCLUSION] = "I1 (two reported validities of one key overlap)",
        [I2_UNIQUE] = "I2 (two grants have one token)",
        [I3_RISES] = "I3 (a token does not rise in real time)",
        [I4_ORDER] = "I4 (tokens do not rise in the order in which a node was taken)",
        [I5_QUORUM_HOLDS] = "I5 (reported validity outlives the quorum)",
        [I6_TOLD_ONCE] = "I6 (held after loss, or not told exactly once)",
        [I7_FOREIGN_VOTE] = "I7 (a vote that was none counts)",
        [I8_LEFT_BEHIND] = "I8 (a key is left behind)",
        [I9_LIVENESS] = "I9 (a live majority, and no lock is granted)",
        [I10_FORGOTTEN] = "I10 (an operation is forgotten)",
        [I11_OWN_LOAD] = "I11 (a lock is lost, and nothing failed)",
        [I12_PERMITS] = "I12 (more hold a permit than the name has)",
        [I13_READERS] = "I13 (a writer beside a reader)",
        [I14_GIVEN_UP] = "I14 (a key of an ended attempt stays on a node)",
        [I15_ORDER_OF_COMING] = "I15 (a fair lock is granted before another that came earlier)",
        [I16_ONE_LEADER] = "I16 (two may act as the leader)",
        [I17_TERMS_RISE] = "I17 (an election goes back in terms)",
        [I18_KEPT] = "I18 (a kept key is granted, or stays too short or too long a time)",
        [SERVERS_KEEP] = "K (a lock is lost by what its servers outlive)",
        [STALE_WRITE] = "W (a stale write is accepted)",
        [REQUEST_STORM] = "S (too many requests)",
        [UNEXPLAINED] = "R (a result that nothing explains)",
        [LEAK] = "M (memory, descriptors or a count are left)",
        [CRASH] = "X (the process crashes)",
    };

    return names[invariant];
}

const char *trace_promise(enum promise_kind kind)
{
    static const char *const names[PROMISES] = {"acquire", "extend",  "release",   "inspect",
                                                "break",   "examine", "bootstrap", "close"};

    return names[kind];
}

void trace_line(const struct world *world, const char *format, ...)
{
    va_list arguments;

    (void)printf("[%8" PRIu64 ".%03" PRIu64 "] ", world_now(world) / 1000, world_now(world) % 1000);
    va_start(arguments, format);
    /* A file of two programs is looked at twice in one run; the second time va_start is overlooked. */
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    (void)putchar('\n');
}
