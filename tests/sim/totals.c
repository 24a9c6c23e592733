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

void totals_print(const struct totals *totals, FILE *out)
{
    (void)fprintf(out, "%" PRIu64 " runs, %" PRIu64 " events, %" PRIu64 " steps of the core\n", totals->runs,
                  totals->events, totals->steps);
    for (uint32_t i = 0; i < TOTALS; i++)
        (void)fprintf(out, "  %-32s %12" PRIu64 "%s", texts[i], totals->of[i], i % 2 == 1 ? "\n" : "   ");
    (void)fputs(TOTALS % 2 == 1 ? "\nfaults\n" : "faults\n", out);
    for (uint32_t i = 0; i < FAULT_KINDS; i++) {
        (void)fprintf(out, "  %-48s %12" PRIu64 "\n", plan_fault_text((enum plan_fault_kind)i), totals->faults[i]);
    }
}

void totals_print_outside(const struct totals *totals, FILE *out)
{
    const uint64_t *of = totals->of;

    (void)fprintf(out,
                  "outside of the claim: %" PRIu64 " runs, %" PRIu64 " overlaps; %" PRIu64
                  " stale writes were refused by their tokens (one that is accepted is a violation)\n",
                  of[TOTAL_OUTSIDE], of[TOTAL_OVERLAPS_OUTSIDE], of[TOTAL_REFUSED_OUTSIDE]);
}

bool totals_complete(const struct totals *totals, FILE *out)
{
    bool complete = true;

    for (uint32_t i = 0; i < TOTALS + FAULT_KINDS; i++) {
        bool is_fault = i >= TOTALS;

        if ((is_fault ? totals->faults[i - TOTALS] : totals->of[i]) != 0) continue;
        (void)fprintf(out, "sim: \"%s\" never happened in %" PRIu64 " runs: tune the plan\n",
                      is_fault ? plan_fault_text((enum plan_fault_kind)(i - TOTALS)) : texts[i], totals->runs);
        complete = false;
    }
    return complete;
}
