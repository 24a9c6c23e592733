/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.h - the slices of a benchmark, their ratios, and both as text and as JSON */
#pragma once

#include "bench/raw.h"
#include "bench/slice.h"
#include "cli.h"
#include "settings/text.h"

enum bench_kind { BENCH_LOCKS, BENCH_RAW, BENCH_KINDS };

/* The figures of a slice. */
struct bench_figures {
    enum bench_kind kind;
    uint64_t begun_us, ended_us; /* CLOCK_MONOTONIC */
    uint64_t locks;
    double locks_per_s, p50_us, p99_us, client_cpu_us, server_cpu_us; /* the last two for each lock */
};

struct bench_report {
    struct slice all[BENCH_KINDS];
    struct bench_figures *slices; /* in their order */
    size_t n_slices, room;
};

/* bench_report_add - add a slice; false: out of memory. */
bool bench_report_add(struct bench_report *report, enum bench_kind kind, const struct slice *slice);
void bench_report_clear(struct bench_report *report);
void bench_report_text(struct text *text, const struct bench_report *report, const struct settings *settings,
                       const struct raw *raw);
/* bench_report_json - add a line of JSON; quorlock(1) describes its fields. */
void bench_report_json(struct text *text, const struct bench_report *report, const struct settings *settings,
                       const struct raw *raw);
