/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_election.c - a candidate that leads for a moment, resigns, and stands again; modes.py starts many of them
 *
 * usage: bench_election [--observe] HOLD_US LEASE_MS NODE,NODE,...
 *
 * Connects, says "ready", and reads "NAME BEGIN END" from stdin, times in nanoseconds of CLOCK_MONOTONIC. From BEGIN to
 * END it stands, and after each turn again, a little later, so that another one is elected. Every turn is printed: when
 * it was elected, when it called resign, when that was through, and its term. --observe: it stands for nothing, and
 * prints instead when it was told of which term.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <quorlock/election.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/slice.h"
#include "program.h"

#define LINE_SIZE    256
#define US_MAX       10000000u
#define MS_MAX       30000u
#define NS_PER_US    1000u
#define US_PER_S     1000000u
#define NODES_MAX_NS 20000000000u
#define AGAIN_US     60000u

struct bench {
    struct event_base *base;
    quorlock_client *client;
    quorlock_candidate *candidate;
    struct event *timer; /* its resignation, or when it stands again; of an observer nothing */
    uint32_t hold_us, lease_ms;
    bool observe, stands, over;
    char name[LINE_SIZE];
    uint64_t begin_ns, end_ns;
    uint64_t elected_ns, resigned_ns, term;
};

static void wake_in(struct event *timer, uint64_t us)
{
    struct timeval delay = {.tv_sec = (time_t)(us / US_PER_S), .tv_usec = (suseconds_t)(us % US_PER_S)};

    if (event_add(timer, &delay) != 0) program_fail("no timer");
}

/* ---- callbacks ---- */

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    struct bench *bench = arg;

    (void)candidate;
    bench->elected_ns = slice_now_ns();
    bench->term = term;
    wake_in(bench->timer, bench->hold_us);
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    struct bench *bench = arg;

    (void)candidate;
    (void)loss;
    printf("deposed %" PRIu64 "\n", bench->term);
    bench->term = 0;
    event_del(bench->timer);
}

static void stand(struct bench *bench)
{
    bench->stands = true;
    if (quorlock_candidate_stand(bench->candidate) != 0) program_fail(quorlock_client_error(bench->client));
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
    struct bench *bench = arg;

    (void)fd;
    (void)what;
    if (bench->over) return;
    if (!bench->stands) {
        stand(bench);
        return;
    }
    bench->resigned_ns = slice_now_ns();
    if (quorlock_candidate_resign(bench->candidate) != 0) program_fail(quorlock_client_error(bench->client));
}

static void on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct bench *bench = arg;

    (void)candidate;
    if (status != QUORLOCK_OK && !bench->over) program_fail(text);
    if (bench->term != 0 && !bench->over)
        printf("turn %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", bench->elected_ns, bench->resigned_ns,
               slice_now_ns(), bench->term);
    bench->term = 0;
    bench->stands = false;
    if (bench->over) {
        event_base_loopbreak(bench->base);
    } else {
        wake_in(bench->timer, AGAIN_US);
    }
}

static void on_changed(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    (void)observer;
    (void)arg;
    if (leader->state == QUORLOCK_LEADER_KNOWN) printf("seen %" PRIu64 " %" PRIu64 "\n", slice_now_ns(), leader->term);
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
    struct bench *bench = arg;

    (void)fd;
    (void)what;
    bench->over = true;
    if (!bench->stands) event_base_loopbreak(bench->base);
    /* Where it has resigned already, its end is on its way. */
    if (bench->stands) (void)quorlock_candidate_resign(bench->candidate);
}

/* ---- the order, and what follows ---- */

struct waiting {
    struct event_base *base;
    bool done;
};

static void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct waiting *waiting = arg;

    (void)status;
    waiting->done = report->answered == report->n_nodes;
    event_base_loopbreak(waiting->base);
}

static void await_nodes(struct bench *bench)
{
    struct waiting waiting = {.base = bench->base};
    uint64_t begun_ns = slice_now_ns();

    while (!waiting.done) {
        if (quorlock_client_inspect(bench->client, "warm", on_inspected, &waiting) != 0)
            program_fail(quorlock_client_error(bench->client));
        event_base_dispatch(bench->base);
        if (slice_now_ns() - begun_ns > NODES_MAX_NS) program_fail("not every node answers");
    }
}

/* Without an order, our script has gone. */
static void read_order(struct bench *bench)
{
    char line[LINE_SIZE];
    char *left = NULL;
    const char *name, *begin_ns, *end_ns;

    printf("ready\n");
    fflush(stdout);
    if (fgets(line, sizeof(line), stdin) == NULL) exit(0);
    name = strtok_r(line, " \n", &left);
    begin_ns = strtok_r(NULL, " \n", &left);
    end_ns = strtok_r(NULL, " \n", &left);
    if (end_ns == NULL) program_fail("the order is not NAME BEGIN END");
    memcpy(bench->name, name, strlen(name) + 1);
    bench->begin_ns = strtoull(begin_ns, NULL, 10);
    bench->end_ns = strtoull(end_ns, NULL, 10);
}

static void begin(struct bench *bench)
{
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .elected = on_elected,
                                                       .deposed = on_deposed,
                                                       .ended = on_ended,
                                                       .arg = bench,
                                                       .lease_ms = bench->lease_ms};
    const struct quorlock_observer_options observing = {.size = sizeof(observing), .changed = on_changed, .arg = bench};
    quorlock_observer *observer;
    int status;

    if (bench->observe) {
        status = quorlock_observer_new(&observer, bench->client, bench->name, &observing);
    } else {
        status = quorlock_candidate_new(&bench->candidate, bench->client, bench->name, &options);
    }
    if (status != 0) program_fail(quorlock_client_error(bench->client));
    if (!bench->observe) stand(bench);
}

static void work(struct bench *bench)
{
    struct event *end = event_new(bench->base, -1, 0, on_end, bench);
    uint64_t now_ns = slice_now_ns();
    struct timespec begin_at = {.tv_sec = (time_t)(bench->begin_ns / 1000000000u),
                                .tv_nsec = (long)(bench->begin_ns % 1000000000u)};

    bench->timer = event_new(bench->base, -1, 0, on_time, bench);
    if (end == NULL || bench->timer == NULL) program_fail("no memory");
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin_at, NULL) != 0) continue;
    if (bench->begin_ns > now_ns) now_ns = bench->begin_ns;
    wake_in(end, bench->end_ns > now_ns ? (bench->end_ns - now_ns) / NS_PER_US : 0);
    begin(bench);
    event_base_dispatch(bench->base);
    event_free(end);
    event_free(bench->timer);
}

int main(int argc, char **argv)
{
    struct bench bench = {.observe = argc > 1 && strcmp(argv[1], "--observe") == 0};
    struct quorlock_client_options options = {.guard = QUORLOCK_GUARD_OFF};
    char **words = argv + 1 + bench.observe;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 4 + bench.observe || !program_number(&bench.hold_us, words[0], US_MAX) ||
        !program_number(&bench.lease_ms, words[1], MS_MAX)) {
        fprintf(stderr, "usage: bench_election [--observe] HOLD_US LEASE_MS NODE,NODE,...\n");
        return 64;
    }
    bench.base = program_loop();
    bench.client = program_client(bench.base, words[2], options);
    await_nodes(&bench);
    read_order(&bench);
    work(&bench);
    quorlock_client_close(bench.client, NULL, NULL);
    event_base_dispatch(bench.base);
    event_base_free(bench.base);
    return 0;
}
