/* SPDX-License-Identifier: BSD-3-Clause */
/* test_metrics.c - histograms, and statistics as text */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/metrics.h"
#include "base/histogram.h"
#include "lock/counts.h"
#include "test.h"

#define TEXT_MAX 65536

/* ---- histograms ---- */

TEST(the_bounds_of_buckets_are_those_of_the_manual)
{
    const struct quorlock_histogram view = histogram_view(&(struct histogram){0});
    uint64_t bound_us = 10;

    for (size_t i = 0; i + 1 < view.n_buckets; i++) {
        if (i % 2 == 1) bound_us *= 10;
        assert_int_equal(view.bounds_us[i], i % 2 == 0 ? 3 * bound_us : bound_us);
    }
    assert_int_equal(view.bounds_us[view.n_buckets - 2], 10000000000u);
    assert_true(view.bounds_us[view.n_buckets - 1] == UINT64_MAX);
}

TEST(a_time_is_counted_in_the_first_bucket_that_takes_it)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        struct histogram at = {0}, above = {0};
        const struct quorlock_histogram view = histogram_view(&at);
        uint64_t bound_us = view.bounds_us[i];

        histogram_add(&at, bound_us);
        assert_int_equal(view.buckets[i], 1);
        assert_int_equal(at.count, 1);
        assert_true(at.sum_us == bound_us);
        if (i + 1 == HISTOGRAM_BUCKETS) break;
        histogram_add(&above, bound_us + 1);
        assert_int_equal(above.buckets[i + 1], 1);
        histogram_add(&above, 0);
        assert_int_equal(above.buckets[0], 1);
        assert_int_equal(above.count, 2);
        assert_true(above.sum_us == bound_us + 1);
    }
}

/* ---- text ---- */

/* Statistics in which no two numbers are the same. */
struct sample {
    struct histogram counted[COUNTS_STATUSES + 2];
    struct quorlock_histogram acquires[COUNTS_STATUSES], holds, round_trips;
    const struct quorlock_histogram *at[COUNTS_STATUSES];
    uint64_t losses[COUNTS_LOSSES], errors[QUORLOCK_NODE_ERROR_GUARD + 1];
    struct quorlock_node_statistics nodes[2];
    const struct quorlock_node_statistics *nodes_at[2];
    struct quorlock_statistics statistics;
};

static void fill(struct sample *sample)
{
    memset(sample, 0, sizeof(*sample));
    for (size_t i = 1; i < COUNTS_LOSSES; i++) sample->losses[i] = 40 + i;
    for (size_t i = 1; i < LENGTH(sample->errors); i++) sample->errors[i] = 60 + i;
    histogram_add(&sample->counted[0], 200);
    histogram_add(&sample->counted[0], 2000000);
    histogram_add(&sample->counted[-QUORLOCK_ERR_TIMEDOUT], 5000000);
    histogram_add(&sample->counted[COUNTS_STATUSES], 20000000000);
    histogram_add(&sample->counted[COUNTS_STATUSES + 1], 29);
    for (size_t i = 0; i < COUNTS_STATUSES; i++) {
        sample->acquires[i] = histogram_view(&sample->counted[i]);
        sample->at[i] = &sample->acquires[i];
    }
    sample->holds = histogram_view(&sample->counted[COUNTS_STATUSES]);
    sample->round_trips = histogram_view(&sample->counted[COUNTS_STATUSES + 1]);
    sample->nodes[0] = (struct quorlock_node_statistics){.node = "one:6379",
                                                         .state = QUORLOCK_NODE_STATE_READY,
                                                         .requests = 101,
                                                         .reconnects = 102,
                                                         .bytes_in = 103,
                                                         .bytes_out = UINT64_MAX,
                                                         .errors = sample->errors,
                                                         .n_errors = LENGTH(sample->errors),
                                                         .round_trips = &sample->round_trips};
    sample->nodes[1] = sample->nodes[0];
    sample->nodes[1].node = "unix:///a\"b\\c\nd\xff\xc3\xa4";
    sample->nodes[1].state = QUORLOCK_NODE_STATE_QUARANTINED;
    sample->nodes[1].quarantine_ms = 1234;
    for (size_t i = 0; i < 2; i++) sample->nodes_at[i] = &sample->nodes[i];
    sample->statistics = (struct quorlock_statistics){.size = sizeof(sample->statistics),
                                                      .acquires = sample->at,
                                                      .n_acquires = COUNTS_STATUSES,
                                                      .holds = &sample->holds,
                                                      .losses = sample->losses,
                                                      .n_losses = COUNTS_LOSSES,
                                                      .renewals = 11,
                                                      .renewals_failed = 12,
                                                      .degradations = 13,
                                                      .held = 14,
                                                      .degraded = 15,
                                                      .waiting = 16,
                                                      .in_flight = 17,
                                                      .nodes = sample->nodes_at,
                                                      .n_nodes = 2};
}

static char text[TEXT_MAX];

static void write_as(const struct sample *sample, int format, const char *label_name)
{
    const struct quorlock_metrics_options options = {
        .size = sizeof(options), .format = format, .label_name = label_name, .label_value = "a b"};
    size_t length = metrics_write(&sample->statistics, &options, text, sizeof(text));

    assert_int_equal(length, strlen(text));
}

static void has_lines(const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char line[256];

        snprintf(line, sizeof(line), "\n%s\n", lines[i]);
        if (strstr(text, line) == NULL) fail_msg("no line '%s' in\n%s", lines[i], text);
    }
}

static const char *const lines[] = {
    "quorlock_acquire_duration_seconds_bucket{result=\"ok\",le=\"0.0001\"} 0",
    "quorlock_acquire_duration_seconds_bucket{result=\"ok\",le=\"0.0003\"} 1",
    "quorlock_acquire_duration_seconds_bucket{result=\"ok\",le=\"1.0\"} 1",
    "quorlock_acquire_duration_seconds_bucket{result=\"ok\",le=\"3.0\"} 2",
    "quorlock_acquire_duration_seconds_bucket{result=\"ok\",le=\"+Inf\"} 2",
    "quorlock_acquire_duration_seconds_count{result=\"ok\"} 2",
    "quorlock_acquire_duration_seconds_sum{result=\"ok\"} 2.000200",
    "quorlock_acquire_duration_seconds_sum{result=\"timedout\"} 5.000000",
    "quorlock_hold_duration_seconds_bucket{le=\"10000.0\"} 0",
    "quorlock_hold_duration_seconds_bucket{le=\"+Inf\"} 1",
    "quorlock_hold_duration_seconds_sum 20000.000000",
    "quorlock_losses_total{reason=\"expired\"} 41",
    "quorlock_losses_total{reason=\"gone\"} 42",
    "quorlock_losses_total{reason=\"max_hold\"} 43",
    "quorlock_losses_total{reason=\"not_renewed\"} 44",
    "quorlock_losses_total{reason=\"clock\"} 45",
    "quorlock_renewals_total{result=\"ok\"} 11",
    "quorlock_renewals_total{result=\"noquorum\"} 12",
    "quorlock_degradations_total 13",
    "quorlock_held 14",
    "quorlock_degraded 15",
    "quorlock_waiting 16",
    "quorlock_requests_in_flight 17",
    "quorlock_node_up{node=\"one:6379\"} 1",
    "quorlock_node_requests_total{node=\"one:6379\"} 101",
    "quorlock_node_reconnects_total{node=\"one:6379\"} 102",
    "quorlock_node_received_bytes_total{node=\"one:6379\"} 103",
    "quorlock_node_sent_bytes_total{node=\"one:6379\"} 18446744073709551615",
    "quorlock_node_quarantine_seconds{node=\"one:6379\"} 0.000000",
    "quorlock_node_quarantine_seconds{node=\"unix:///a\\\"b\\\\c\\nd\\\\xff\xc3\xa4\"} 1.234000",
    "quorlock_node_round_trip_seconds_bucket{node=\"one:6379\",le=\"0.00003\"} 1",
    "quorlock_node_errors_total{node=\"one:6379\",class=\"unreachable\"} 61",
    "quorlock_node_errors_total{node=\"one:6379\",class=\"guard\"} 73",
};

TEST(each_number_has_its_line)
{
    struct sample sample;

    fill(&sample);
    for (int format = QUORLOCK_METRICS_OPENMETRICS; format <= QUORLOCK_METRICS_PROMETHEUS; format++) {
        write_as(&sample, format, NULL);
        has_lines(lines, LENGTH(lines));
    }
    assert_null(strstr(text, "result=\"held\""));
}

TEST(a_node_is_up_while_it_takes_requests)
{
    struct sample sample;
    static const struct {
        int state;
        const char *up;
    } states[] = {{QUORLOCK_NODE_STATE_CONNECTING, "0"},
                  {QUORLOCK_NODE_STATE_READY, "1"},
                  {QUORLOCK_NODE_STATE_QUARANTINED, "1"},
                  {QUORLOCK_NODE_STATE_DOWN, "0"}};

    fill(&sample);
    for (size_t i = 0; i < LENGTH(states); i++) {
        char line[64];

        sample.nodes[0].state = states[i].state;
        write_as(&sample, QUORLOCK_METRICS_OPENMETRICS, NULL);
        snprintf(line, sizeof(line), "quorlock_node_up{node=\"one:6379\"} %s\n", states[i].up);
        assert_contains(text, line);
    }
}

TEST(the_two_formats_differ_in_what_stands_above_the_samples)
{
    struct sample sample;
    size_t length;

    fill(&sample);
    write_as(&sample, QUORLOCK_METRICS_OPENMETRICS, NULL);
    length = strlen(text);
    assert_string_equal(text + length - strlen("\n# EOF\n"), "\n# EOF\n");
    assert_contains(text, "# TYPE quorlock_losses counter\n");
    assert_contains(text, "# UNIT quorlock_node_sent_bytes bytes\n");
    assert_contains(text, "# HELP quorlock_losses ");
    write_as(&sample, QUORLOCK_METRICS_PROMETHEUS, NULL);
    assert_null(strstr(text, "# EOF"));
    assert_null(strstr(text, "# UNIT"));
    assert_contains(text, "# TYPE quorlock_losses_total counter\n");
    assert_contains(text, "# HELP quorlock_node_sent_bytes_total ");
    assert_contains(text, "# TYPE quorlock_held gauge\n");
}

TEST(the_callers_label_is_on_every_sample)
{
    struct sample sample;

    fill(&sample);
    write_as(&sample, QUORLOCK_METRICS_OPENMETRICS, "job_1");
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] != '#') assert_contains(line, "{job_1=\"a b\"");
    }
}

TEST(a_text_is_cut_where_the_room_ends)
{
    const struct quorlock_metrics_options options = {.size = sizeof(options)};
    struct sample sample;
    size_t length;
    char cut[200];

    fill(&sample);
    write_as(&sample, QUORLOCK_METRICS_OPENMETRICS, NULL);
    length = strlen(text);
    for (size_t size = 0; size < sizeof(cut); size++) {
        memset(cut, 'x', sizeof(cut));
        assert_int_equal(metrics_write(&sample.statistics, &options, size == 0 ? NULL : cut, size), length);
        if (size > 0) assert_memory_equal(cut, text, size - 1);
        if (size > 0) assert_int_equal(cut[size - 1], '\0');
        assert_int_equal(cut[size], 'x');
    }
}

/* ---- options ---- */

#define KNOWN .size = sizeof(struct quorlock_metrics_options)
static const struct {
    struct quorlock_metrics_options options;
    const char *said; /* NULL: accepted */
} given[] = {
    {{KNOWN}, NULL},
    {{KNOWN, .format = QUORLOCK_METRICS_PROMETHEUS}, NULL},
    {{KNOWN, .format = 2}, "format is 2"},
    {{KNOWN, .format = -1}, "format is -1"},
    {{KNOWN, .label_name = "a"}, "label_value is NULL"},
    {{KNOWN, .label_value = "a"}, "label_name is NULL"},
    {{KNOWN, .label_name = "", .label_value = "a"}, "label_name is \"\""},
    {{KNOWN, .label_name = "1a", .label_value = "a"}, "label_name is \"1a\""},
    {{KNOWN, .label_name = "a-b", .label_value = "a"}, "label_name is \"a-b\""},
    {{KNOWN, .label_name = "a:b", .label_value = "a"}, "label_name is \"a:b\""},
    {{KNOWN, .label_name = "node", .label_value = "a"}, "label_name is \"node\""},
    {{KNOWN, .label_name = "le", .label_value = "a"}, "label_name is \"le\""},
    {{KNOWN, .label_name = "__name__", .label_value = "a"}, "label_name is \"__name__\""},
    {{KNOWN, .label_name = "_a1", .label_value = ""}, NULL},
    {{.size = 4}, "size is 4"},
};

TEST(options_of_metrics_are_checked_one_by_one)
{
    struct quorlock_metrics_options ret;
    struct quorlock_error error;
    char name[66] = {0}, value[1026] = {0};

    memset(name, 'a', sizeof(name) - 1);
    memset(value, 'a', sizeof(value) - 1);
    for (size_t i = 0; i < LENGTH(given); i++) {
        int status = metrics_options(&ret, &given[i].options, &error);

        assert_int_equal(status, given[i].said == NULL ? 0 : QUORLOCK_ERR_INVAL);
        if (given[i].said != NULL) assert_contains(error.text, given[i].said);
    }
    assert_int_equal(metrics_options(&ret, NULL, &error), 0);
    assert_int_equal(ret.format, QUORLOCK_METRICS_OPENMETRICS);
    assert_int_equal(metrics_options(&ret,
                                     &(struct quorlock_metrics_options){KNOWN, .label_name = name, .label_value = "a"},
                                     &error),
                     QUORLOCK_ERR_INVAL);
    assert_int_equal(metrics_options(&ret,
                                     &(struct quorlock_metrics_options){KNOWN, .label_name = "a", .label_value = value},
                                     &error),
                     QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "1025");
}
