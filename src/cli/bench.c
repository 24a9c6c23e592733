/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - quorlock bench: the cost of locks on the nodes, compared with the same requests without lock logic
 *
 * Short slices of both alternate in one process, so that other load on the machine and the nodes affects both. Each
 * figure of quorlock is divided by that of the next raw slice. The result is the median of these ratios.
 */
#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "bench/load.h"
#include "bench/raw.h"
#include "bench_report.h"
#include "cli.h"
#include "say.h"
#include "settings/credentials.h"
#include "signals.h"

enum { PAIRS_A_SECOND = 2, PREFIX_SIZE = 48, FENCE_PREFIX_SIZE = PREFIX_SIZE + 16 };
#define NS_PER_S 1000000000u

struct bench {
    struct session session;
    struct load *load;
    struct raw *raw;
    struct signals signals;
    struct event *on_locks, *on_raw; /* for signals, on both loops */
    struct bench_report report;
    char locks[PREFIX_SIZE],
        baseline[PREFIX_SIZE]; /* prefixes of the keys; they differ because a slow node may be a slice late */
    int signal;                /* the signal that ended it, or 0 */
    bool typed;
};

/* ---- signals ---- */

static void bench_handle_signals(evutil_socket_t fd, short what, void *arg)
{
    struct bench *bench = arg;
    bool typed = false;

    (void)fd;
    (void)what;
    for (int number; (number = signals_next(&bench->signals, &typed)) != 0;) {
        if (number == SIGTSTP) signals_stop();
        if (bench->signal != 0 || !signals_end_wait(number)) continue;
        bench->signal = number;
        bench->typed = typed;
        if (bench->load != NULL) load_stop(bench->load);
        if (bench->raw != NULL) raw_stop(bench->raw);
    }
}

static struct event *bench_watch(struct bench *bench, struct event_base *base)
{
    struct event *event = event_new(base, bench->signals.fd, EV_READ | EV_PERSIST, bench_handle_signals, bench);

    if (event == NULL || event_add(event, NULL) == 0) return event;
    event_free(event);
    return NULL;
}

static int bench_no_memory(void)
{
    say("out of memory");
    return EXIT_SYSTEM;
}

/* ---- the locks, and the baseline ---- */

static int make_prefixes(struct bench *bench)
{
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        say("the system has no random bytes: %s", strerror(errno));
        return EXIT_SYSTEM;
    }
    snprintf(bench->locks, sizeof(bench->locks), "quorlock-bench:%016llx:l", (unsigned long long)number);
    snprintf(bench->baseline, sizeof(bench->baseline), "quorlock-bench:%016llx:r", (unsigned long long)number);
    return 0;
}

/* open_locks - make the locks: 0, or the exit status after a message. */
static int open_locks(struct bench *bench, const struct settings *settings)
{
    struct load_options options = {
        .prefix = bench->locks,
        .in_flight = settings->values.in_flight,
        .lock = {.size = sizeof(options.lock),
                 .lease_ms = session_lease_ms(settings),
                 .fencing = settings->values.fence != 0},
    };
    int status = load_new(&bench->load, bench->session.base, bench->session.client, &options);

    if (status == QUORLOCK_ERR_NOMEM) return bench_no_memory();
    if (status != 0) return session_check(&bench->session, status);
    bench->on_locks = bench_watch(bench, bench->session.base);
    if (bench->on_locks == NULL) return bench_no_memory();
    status = load_warm(bench->load);
    if (status == 0 || bench->signal != 0) return 0;
    say("%s", load_why(bench->load)[0] != '\0' ? load_why(bench->load) : quorlock_client_error(bench->session.client));
    return session_refused(status);
}

/* connect_raw - connect the baseline, even if no node answers: 0, or the exit status after a message. */
static int connect_raw(struct bench *bench, const struct settings *settings)
{
    struct raw_options options = {
        .nodes = settings->values.nodes,
        .prefix = bench->baseline,
        .in_flight = settings->values.in_flight,
        .lease_ms = session_lease_ms(settings),
        .tls_ca = settings->values.client.tls_ca,
        .tls_cert = settings->values.client.tls_cert,
        .tls_key = settings->values.client.tls_key,
        .tls_name = settings->values.client.tls_name,
    };
    struct credentials credentials;
    char wrong[256];
    int status = credentials_read(&credentials, &settings->values, wrong, sizeof(wrong));

    if (status != 0) say("%s", wrong);
    options.user = credentials.user;
    options.password = credentials.password;
    bench->raw = status == 0 ? raw_new(&options) : NULL;
    credentials_wipe(&credentials);
    if (status != 0) return session_exit(status);
    if (bench->raw != NULL) bench->on_raw = bench_watch(bench, raw_base(bench->raw));
    return bench->on_raw != NULL ? 0 : bench_no_memory();
}

static int open_raw(struct bench *bench, const struct settings *settings)
{
    const char *error = NULL;
    int status = connect_raw(bench, settings);

    if (status != 0) return status;
    for (size_t i = 0; raw_node(bench->raw, i, &error) != NULL; i++)
        if (error != NULL) say("the baseline does not use %s: %s", raw_node(bench->raw, i, &error), error);
    if (raw_ready(bench->raw) > 0) return 0;
    say("no node answers the baseline");
    return EXIT_NO_QUORUM;
}

/* ---- measuring ---- */

/* run_locks - run a slice of locks. All of them wait for the same nodes, so only one line about waiting is printed. */
static int run_locks(struct bench *bench, uint64_t span_ns, struct slice *slice)
{
    int status;

    bench->session.waits_left = 1;
    status = session_check(&bench->session, load_run(bench->load, span_ns, slice));
    if (status != 0 || bench->signal != 0 || !load_starves(bench->load)) return status;
    say("no lock is granted any more, so there is nothing to measure; the last result: %s", load_why(bench->load));
    return EXIT_NO_QUORUM;
}

/* bench_measure - run a slice of one kind, and measure the work of the nodes. */
static int bench_measure(struct bench *bench, enum bench_kind kind, uint64_t span_ns)
{
    static struct slice slice;
    int status = 0;

    raw_usage(bench->raw, NULL);
    if (kind == BENCH_RAW) {
        raw_run(bench->raw, span_ns, &slice);
    } else {
        status = run_locks(bench, span_ns, &slice);
    }
    raw_usage(bench->raw, &slice.usage);
    if (status == 0 && bench->signal == 0 && !bench_report_add(&bench->report, kind, &slice))
        status = bench_no_memory();
    return status;
}

static int measure_pairs(struct bench *bench, const struct settings *settings)
{
    uint32_t n_pairs = settings->values.seconds * PAIRS_A_SECOND;
    int status = 0;

    for (uint32_t i = 0; i < 2 * n_pairs && status == 0 && bench->signal == 0; i++) {
        /* In every second pair the other kind is first. */
        enum bench_kind kind = (i + 1) / 2 % 2 == 0 ? BENCH_LOCKS : BENCH_RAW;

        status = bench_measure(bench, kind, NS_PER_S / 2 / PAIRS_A_SECOND);
    }
    return status;
}

/* clean - delete our keys on all nodes that answer. If the bench ended before it connected the baseline, all locks are
 * released, but the counters of fencing tokens stay for days. */
static void clean(struct bench *bench, const struct settings *settings)
{
    char fences[FENCE_PREFIX_SIZE];
    const char *prefixes[] = {bench->locks, bench->baseline, fences};
    const char *error = NULL;
    size_t n_nodes = 0;

    if (bench->raw == NULL && (settings->values.fence == 0 || connect_raw(bench, settings) != 0)) return;
    if (bench->on_raw == NULL) return;
    snprintf(fences, sizeof(fences), "quorlock:fence:%s", bench->locks);
    while (raw_node(bench->raw, n_nodes, &error) != NULL) n_nodes++;
    if (raw_clean(bench->raw, prefixes, settings->values.fence != 0 ? 3 : 2) < n_nodes)
        say("some nodes do not answer: keys that begin with %.*s stay there until their leases end",
            (int)strlen(bench->locks) - 1, bench->locks);
}

static int bench_run(struct bench *bench, const struct settings *settings)
{
    int status = session_open(&bench->session, settings);

    if (status != 0) return status;
    if (!signals_open(&bench->signals)) {
        say("cannot watch signals: %s", strerror(errno));
        status = EXIT_SYSTEM;
    }
    if (status == 0) status = make_prefixes(bench);
    if (status == 0) status = open_locks(bench, settings);
    if (status == 0 && bench->signal == 0) status = open_raw(bench, settings);
    if (status == 0 && bench->signal == 0) status = measure_pairs(bench, settings);
    if (bench->on_locks != NULL) event_free(bench->on_locks);
    session_close(&bench->session);
    if (bench->load != NULL) clean(bench, settings);
    return status;
}

/* bench_finish - print the figures, unless the bench failed or was ended by a signal. */
static int bench_finish(struct bench *bench, const struct settings *settings, int status)
{
    struct text text = {0};

    if (status == 0 && bench->signal != 0) status = EXIT_SIGNAL + bench->signal;
    if (status == 0) {
        if (bench->report.all[BENCH_LOCKS].failed > 0)
            say("some locks failed; the last result: %s", load_why(bench->load));
        if (settings->json) {
            bench_report_json(&text, &bench->report, settings, bench->raw);
        } else {
            bench_report_text(&text, &bench->report, settings, bench->raw);
        }
        status = put(&text);
    }
    return status;
}

int verb_bench(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct bench bench;
    int status;

    bench = (struct bench){.signals.fd = -1};
    status = bench_run(&bench, settings);
    status = bench_finish(&bench, settings, status);
    if (bench.on_raw != NULL) event_free(bench.on_raw);
    raw_free(bench.raw);
    /* If the client was closed, its handles do not exist any more. */
    if (bench.session.closed) load_free(bench.load, true);
    bench_report_clear(&bench.report);
    if (bench.signals.fd >= 0) close(bench.signals.fd);
    if (bench.typed && status == EXIT_SIGNAL + bench.signal) signals_die(bench.signal, false);
    return status;
}
