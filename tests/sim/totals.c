/* SPDX-License-Identifier: BSD-3-Clause */
#include "totals.h"

#include <inttypes.h>

static const char *const texts[] = {
#define TEXT(name, text) text,
    TOTALS_MAP(TEXT)
#undef TEXT
};

void totals_outside(struct totals *totals, bool overlap)
{
    totals->of[overlap ? TOTAL_OVERLAPS_OUTSIDE : TOTAL_OTHERS_OUTSIDE]++;
}

static void print_row(FILE *out, uint32_t i, const char *text, uint64_t n)
{
    (void)fprintf(out, "  %-50s %12" PRIu64 "%s", text, n, i % 2 == 1 ? "\n" : "");
}

void totals_print(const struct totals *totals, FILE *out)
{
    (void)fprintf(out,
                  "%" PRIu64 " runs, %" PRIu64 " moments, %" PRIu64 " commands, %" PRIu64 " turns of loops, %" PRIu64
                  " calls of the library\n",
                  totals->runs, totals->moments, totals->commands, totals->turns, totals->calls);
    for (uint32_t i = 0; i < TOTALS; i++) print_row(out, i, texts[i], totals->of[i]);
    (void)fputs(TOTALS % 2 == 1 ? "\nfaults\n" : "faults\n", out);
    for (uint32_t i = 0; i < FAULT_KINDS; i++)
        print_row(out, i, plan_fault_text((enum plan_fault_kind)i), totals->faults[i]);
    (void)fputs(FAULT_KINDS % 2 == 1 ? "\nruns with\n" : "runs with\n", out);
    for (uint32_t i = 0; i < FEATURES; i++)
        print_row(out, i, plan_feature_text((enum plan_feature)i), totals->features[i]);
    (void)fputs(FEATURES % 2 == 1 ? "\n" : "", out);
    (void)fprintf(
        out, "at most %" PRIu64 " turns of a loop in a row, and %" PRIu64 " %% of the requests that a run may have\n",
        totals->most_spins, totals->most_requests);
    (void)fprintf(out,
                  "outside of the claim: %" PRIu64 " runs, %" PRIu64 " overlaps; %" PRIu64
                  " stale writes were refused by their tokens (one that is accepted is a violation)\n",
                  totals->of[TOTAL_OUTSIDE], totals->of[TOTAL_OVERLAPS_OUTSIDE], totals->of[TOTAL_REFUSED_OUTSIDE]);
}

static bool happened(const struct totals *totals, const char *text, uint64_t n, FILE *out)
{
    if (n != 0) return true;
    (void)fprintf(out, "sim: \"%s\" never happened in %" PRIu64 " runs: tune the plan\n", text, totals->runs);
    return false;
}

bool totals_complete(const struct totals *totals, FILE *out)
{
    bool complete = true;

    for (uint32_t i = 0; i < TOTALS; i++) complete &= happened(totals, texts[i], totals->of[i], out);
    for (uint32_t i = 0; i < FAULT_KINDS; i++)
        complete &= happened(totals, plan_fault_text((enum plan_fault_kind)i), totals->faults[i], out);
    for (uint32_t i = 0; i < FEATURES; i++)
        complete &= happened(totals, plan_feature_text((enum plan_feature)i), totals->features[i], out);
    return complete;
}
