/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_report.h"

#include <stdlib.h>
#include <string.h>

#include "document.h"

/* ---- slices ---- */

static double per_lock(double all, uint64_t locks)
{
    return locks > 0 ? all / (double)locks : 0;
}

static double seconds(const struct slice *slice)
{
    return (double)(slice->ended_ns - slice->begun_ns) / 1e9;
}

bool bench_report_add(struct bench_report *report, enum bench_kind kind, const struct slice *slice)
{
    if (report->n_slices == report->room) {
        size_t room = report->room > 0 ? 2 * report->room : 64;
        struct bench_figures *slices = realloc(report->slices, room * sizeof(*slices));

        if (slices == NULL) return false;
        report->slices = slices;
        report->room = room;
    }
    report->slices[report->n_slices++] = (struct bench_figures){
        .kind = kind,
        .begun_us = slice->begun_ns / 1000,
        .ended_us = slice->ended_ns / 1000,
        .locks = slice->cycles,
        .locks_per_s = (double)slice->cycles / seconds(slice),
        .p50_us = latencies_us(&slice->acquire, 0.5),
        .p99_us = latencies_us(&slice->acquire, 0.99),
        .client_cpu_us = per_lock((double)slice->cpu_ns / 1000, slice->cycles),
        .server_cpu_us = per_lock(slice->usage.cpu_us, slice->cycles),
    };
    slice_add(&report->all[kind], slice);
    return true;
}

void bench_report_clear(struct bench_report *report)
{
    free(report->slices);
    *report = (struct bench_report){0};
}

/* ---- ratios ---- */

struct ratio {
    size_t n_pairs;           /* 0: not measured */
    double median, low, high; /* low and high: the quartiles of all pairs */
};

static int bench_report_compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static double quantile(const double *sorted, size_t n, double share)
{
    double place = share * (double)(n - 1);
    size_t below = (size_t)place;

    if (below + 1 >= n) return sorted[n - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double figure_at(const struct bench_figures *figures, size_t offset)
{
    double figure;

    memcpy(&figure, (const char *)figures + offset, sizeof(figure));
    return figure;
}

/* ratio_of - divide the figure at that offset, quorlock's by the raw one, in each pair. */
static struct ratio ratio_of(const struct bench_report *report, size_t offset)
{
    double *ratios = calloc(report->n_slices + 1, sizeof(*ratios));
    struct ratio ratio = {0};
    size_t n = 0;

    for (size_t i = 0; ratios != NULL && i + 1 < report->n_slices; i += 2) {
        const struct bench_figures *one = &report->slices[i], *other = &report->slices[i + 1];
        const struct bench_figures *locks = one->kind == BENCH_LOCKS ? one : other;
        const struct bench_figures *raw = one->kind == BENCH_LOCKS ? other : one;
        double above = figure_at(locks, offset), below = figure_at(raw, offset);

        if (locks->locks > 0 && raw->locks > 0 && below > 0) ratios[n++] = above / below;
    }
    if (n > 0) {
        qsort(ratios, n, sizeof(*ratios), bench_report_compare);
        ratio = (struct ratio){n, quantile(ratios, n, 0.5), quantile(ratios, n, 0.25), quantile(ratios, n, 0.75)};
    }
    free(ratios);
    return ratio;
}

/* The ratios: names, and the offset of the figure. */
#define FIGURE(name) offsetof(struct bench_figures, name)
static const struct {
    const char *name, *words;
    size_t offset;
} ratios[] = {
    {"throughput", "locks/s", FIGURE(locks_per_s)},
    {"latency_p50", "p50", FIGURE(p50_us)},
    {"latency_p99", "p99", FIGURE(p99_us)},
    {"client_cpu", "client CPU", FIGURE(client_cpu_us)},
    {"server_cpu", "server CPU", FIGURE(server_cpu_us)},
};
enum { N_RATIOS = sizeof(ratios) / sizeof(ratios[0]) };

/* ---- text ---- */

enum {
    COLUMN_NAME,
    COLUMN_RATE,
    COLUMN_P50,
    COLUMN_P99,
    COLUMN_P999,
    COLUMN_RELEASE,
    COLUMN_CLIENT,
    COLUMN_SERVER,
    COLUMN_COMMANDS,
    COLUMN_BYTES,
    COLUMN_FAILED,
    N_COLUMNS
};

static void bench_report_add_cell(struct text *text, const void *rows, size_t row, size_t column)
{
    static const char *const names[BENCH_KINDS] = {"quorlock", "raw"};
    const struct slice *all = (const struct slice *)rows + row;

    switch (column) {
    case COLUMN_NAME: text_format(text, "%s", names[row]); break;
    case COLUMN_RATE: text_format(text, "%.0f", (double)all->cycles / seconds(all)); break;
    case COLUMN_P50: text_format(text, "%.1f", latencies_us(&all->acquire, 0.5)); break;
    case COLUMN_P99: text_format(text, "%.1f", latencies_us(&all->acquire, 0.99)); break;
    case COLUMN_P999: text_format(text, "%.1f", latencies_us(&all->acquire, 0.999)); break;
    case COLUMN_RELEASE: text_format(text, "%.1f", latencies_us(&all->release, 0.5)); break;
    case COLUMN_CLIENT: text_format(text, "%.2f", per_lock((double)all->cpu_ns / 1000, all->cycles)); break;
    case COLUMN_SERVER: text_format(text, "%.2f", per_lock(all->usage.cpu_us, all->cycles)); break;
    case COLUMN_COMMANDS: text_format(text, "%.1f", per_lock((double)all->usage.commands, all->cycles)); break;
    case COLUMN_BYTES: text_format(text, "%.0f", per_lock((double)all->usage.bytes, all->cycles)); break;
    default: text_format(text, "%llu", (unsigned long long)all->failed);
    }
}

void bench_report_text(struct text *text, const struct bench_report *report, const struct settings *settings,
                       const struct raw *raw)
{
    static const char *const heads[N_COLUMNS] = {"",         "locks/s", "p50 us",     "p99 us",
                                                 "p99.9 us", "release", "client CPU", "server CPU",
                                                 "commands", "bytes",   "failed"};

    text_format(text, "%u in flight, %zu nodes, %zu pairs of slices\n", settings->values.in_flight, raw_ready(raw),
                report->n_slices / 2);
    if (raw_tls(raw) > 0)
        text_format(text, "%zu nodes over TLS, where raw uses quorlock's connections\n", raw_tls(raw));
    text_add_table(text, heads, N_COLUMNS, bench_report_add_cell, report->all, BENCH_KINDS);
    text_format(text, "quorlock / raw, the median of all pairs (and the middle half of them):\n");
    for (size_t i = 0; i < N_RATIOS; i++) {
        struct ratio ratio = ratio_of(report, ratios[i].offset);
        size_t start = text->length;

        text_format(text, "  %s", ratios[i].words);
        text_pad(text, start, 14);
        if (ratio.n_pairs > 0)
            text_format(text, "%.2f (%.2f to %.2f)\n", ratio.median, ratio.low, ratio.high);
        else
            text_format(text, "not measured\n");
    }
}

/* ---- JSON ---- */

/* real - return a number with three digits behind the point; it is never negative. */
static json_t *real(double number)
{
    return json_real((double)(int64_t)(number * 1000 + 0.5) / 1000);
}

static json_t *latency_json(const struct latencies *latencies)
{
    json_t *object = json_object();

    document_add(&object, "p50", real(latencies_us(latencies, 0.5)));
    document_add(&object, "p99", real(latencies_us(latencies, 0.99)));
    document_add(&object, "p999", real(latencies_us(latencies, 0.999)));
    return object;
}

/* add_figures - add the figures of one kind over all its slices. */
static void add_figures(json_t **object, const struct slice *all)
{
    document_add(object, "locks_per_s", real((double)all->cycles / seconds(all)));
    document_add(object, "latency_us", latency_json(&all->acquire));
    document_add(object, "release_latency_us", latency_json(&all->release));
    document_add(object, "client_cpu_us_per_lock", real(per_lock((double)all->cpu_ns / 1000, all->cycles)));
    document_add(object, "server_cpu_us_per_lock", real(per_lock(all->usage.cpu_us, all->cycles)));
    document_add(object, "server_commands_per_lock", real(per_lock((double)all->usage.commands, all->cycles)));
    document_add(object, "server_bytes_per_lock", real(per_lock((double)all->usage.bytes, all->cycles)));
    document_add(object, "locks", document_number((int64_t)all->cycles, 0));
    document_add(object, "failed", document_number((int64_t)all->failed, 0));
}

static json_t *spread_json(const struct ratio *ratio)
{
    json_t *array = ratio->n_pairs > 0 ? json_array() : json_null();

    if (ratio->n_pairs == 0) return array;
    document_append(&array, real(ratio->low));
    document_append(&array, real(ratio->high));
    return array;
}

static void add_ratios(json_t **object, const struct bench_report *report)
{
    json_t *medians = json_object(), *spreads = json_object();

    for (size_t i = 0; i < N_RATIOS; i++) {
        struct ratio ratio = ratio_of(report, ratios[i].offset);

        document_add(&medians, ratios[i].name, ratio.n_pairs > 0 ? real(ratio.median) : json_null());
        document_add(&spreads, ratios[i].name, spread_json(&ratio));
    }
    document_add(object, "ratio_to_raw", medians);
    document_add(object, "ratio_to_raw_quartiles", spreads);
}

static json_t *slice_json(const struct bench_figures *figures)
{
    json_t *object = json_object();

    document_add(&object, "of", document_text(figures->kind == BENCH_LOCKS ? "quorlock" : "raw"));
    document_add(&object, "begun_us", document_number((int64_t)figures->begun_us, 0));
    document_add(&object, "ended_us", document_number((int64_t)figures->ended_us, 0));
    document_add(&object, "locks", document_number((int64_t)figures->locks, 0));
    document_add(&object, "locks_per_s", real(figures->locks_per_s));
    document_add(&object, "p50_us", real(figures->p50_us));
    document_add(&object, "p99_us", real(figures->p99_us));
    document_add(&object, "client_cpu_us_per_lock", real(figures->client_cpu_us));
    document_add(&object, "server_cpu_us_per_lock", real(figures->server_cpu_us));
    return object;
}

static json_t *nodes_json(const struct raw *raw)
{
    json_t *array = json_array();
    const char *name, *error = NULL;

    for (size_t i = 0; (name = raw_node(raw, i, &error)) != NULL; i++) document_append(&array, document_text(name));
    return array;
}

void bench_report_json(struct text *text, const struct bench_report *report, const struct settings *settings,
                       const struct raw *raw)
{
    json_t *object = json_object(), *baseline = json_object(), *slices = json_array();

    add_figures(&object, &report->all[BENCH_LOCKS]);
    add_ratios(&object, report);
    add_figures(&baseline, &report->all[BENCH_RAW]);
    document_add(&baseline, "nodes", document_number((int64_t)raw_ready(raw), 0));
    document_add(&baseline, "tls", document_number((int64_t)raw_tls(raw), 0));
    document_add(&object, "raw", baseline);
    document_add(&object, "in_flight", document_number(settings->values.in_flight, 0));
    document_add(&object, "nodes", nodes_json(raw));
    for (size_t i = 0; i < report->n_slices; i++) document_append(&slices, slice_json(&report->slices[i]));
    document_add(&object, "slices", slices);
    document_write(text, object);
}
