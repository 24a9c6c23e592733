/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the API under random calls, on real servers behind proxies that spoil what these say
 *
 * usage: fuzz_api [--seed S] [--seconds N] [--round R] [--calls N] [--handles N] [--log-calls]
 *
 * Round follows round until the seconds have passed; each has clients, handles and faults of its own, and ends
 * with all clients closed. The same seed makes the same calls with the same arguments, and chooses the same
 * faults; but when replies come is the machine's, so a run is not repeated to the last bit. What is found is
 * printed with seed, round and call: --seed S --round R makes that round alone.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "fuzz.h"
#include "integration/cluster.h"
#include "mangle.h"

#define TICK_US        1000u
#define CALLS_A_TICK   8u
#define CLOSE_LIMIT_US 60000000u

/* Rounds of each kind take turns. */
enum kind { CALM, LINKS, SERVERS, MEMORY, SPOILED, KINDS };
static const char *const kind_names[KINDS] = {"calm", "links", "servers", "memory", "spoiled"};

struct run {
    struct fuzz fuzz;
    struct cluster cluster;
    struct mangle *mangles[FUZZ_NODES];
    char addresses[FUZZ_NODES][32];
    struct event *tick;
    struct draw pace, faults;
    enum kind kind;
    bool frozen[FUZZ_NODES];
    uint32_t calls_left, calls_a_round;
    uint64_t last_us, next_fault_us;
    uint64_t seed, seconds;
    long only_round;
    int reported; /* by bootstrap: 1 and more */
};

static struct run run = {.seed = 1, .seconds = 10, .only_round = -1, .calls_a_round = 2500};

static void end_cluster(void)
{
    cluster_end(&run.cluster);
}

/* ---- faults ---- */

static void hurt_link(struct run *at, uint32_t node)
{
    static const unsigned ways[8] = {0,           0, MANGLE_SPLIT, MANGLE_CUT, MANGLE_LOSE, MANGLE_SPLIT | MANGLE_LOSE,
                                     MANGLE_HOLD, 0};
    uint32_t which = draw_below(&at->faults, 8);

    mangle_set(at->mangles[node], ways[which] | (at->kind == SPOILED ? MANGLE_FLIP : 0));
    if (which == 7) mangle_cut(at->mangles[node]);
    if (which == 0) server_do(&at->cluster.servers[node], "SCRIPT FLUSH");
}

static void thaw(struct run *at, uint32_t node)
{
    if (at->frozen[node]) server_thaw(&at->cluster.servers[node]);
    at->frozen[node] = false;
}

static void hurt_server(struct run *at, uint32_t node)
{
    struct server *server = &at->cluster.servers[node];

    switch (draw_below(&at->faults, 6)) {
    case 0:
        if (server->pid == 0 || at->frozen[node]) break;
        server_freeze(server);
        at->frozen[node] = true;
        break;
    case 1:
        thaw(at, node);
        server_kill(server);
        break;
    case 2:
        thaw(at, node);
        server_wipe(server);
        break;
    default:
        thaw(at, node);
        if (server->pid == 0) server_start(server);
        break;
    }
}

static void hurt(struct run *at, uint64_t now_us)
{
    uint32_t node = draw_below(&at->faults, FUZZ_NODES);

    if (at->kind == CALM || now_us < at->next_fault_us) return;
    at->next_fault_us = now_us + 20000 + draw_below(&at->faults, 200000);
    if (at->kind == SERVERS && draw_once_in(&at->faults, 2)) {
        hurt_server(at, node);
    } else if (!at->frozen[node] && at->cluster.servers[node].pid != 0) {
        hurt_link(at, node);
    }
}

static void heal(struct run *at)
{
    for (uint32_t i = 0; i < FUZZ_NODES; i++) {
        thaw(at, i);
        if (at->cluster.servers[i].pid == 0) server_start(&at->cluster.servers[i]);
        mangle_set(at->mangles[i], 0);
    }
}

/* ---- the loop ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct run *at = arg;
    uint64_t now_us = clock_us();

    fuzz_check(&at->fuzz, now_us - at->last_us);
    at->last_us = now_us;
    if (at->calls_left == 0) return;
    for (uint32_t n = draw_below(&at->pace, CALLS_A_TICK); n > 0 && at->calls_left > 0; n--) {
        at->calls_left--;
        fuzz_call(&at->fuzz);
    }
    hurt(at, now_us);
}

static void on_bootstrapped(int status, const struct quorlock_report *report, void *arg)
{
    struct run *at = arg;

    if (status != 0) fuzz_fail(&at->fuzz, "bootstrap: %s", quorlock_status_name(status));
    at->reported++;
}

static void on_closed(void *arg)
{
    ((struct run *)arg)->reported++;
}

/* The servers are as new: empty, with a guard. */
static void bootstrap(struct run *at)
{
    struct quorlock_client_options options = {.size = sizeof(options),
                                              .nodes = at->fuzz.nodes,
                                              .n_nodes = FUZZ_NODES,
                                              .guard = QUORLOCK_GUARD_OFF,
                                              .max_lease_ms = FUZZ_LEASE_MAX_MS,
                                              .node_timeout_ms = 20000,
                                              .set_name = "fuzz"};
    struct quorlock_bootstrap_options how = {.size = sizeof(how)};
    quorlock_client *client = NULL;

    for (uint32_t i = 0; i < FUZZ_NODES; i++) server_do(&at->cluster.servers[i], "FLUSHALL");
    at->reported = 0;
    if (quorlock_client_new(&client, at->fuzz.base, &options) != 0) fuzz_fail(&at->fuzz, "no client");
    if (quorlock_bootstrap(client, &how, on_bootstrapped, at) != 0) fuzz_fail(&at->fuzz, "no bootstrap");
    while (at->reported < 1) event_base_loop(at->fuzz.base, EVLOOP_ONCE);
    if (quorlock_client_close(client, on_closed, at) != 0) fuzz_fail(&at->fuzz, "no close");
    while (at->reported < 2) event_base_loop(at->fuzz.base, EVLOOP_ONCE);
}

/* Nothing of ours outlives its lease; and where nothing went wrong, not the close. */
static void check_rest(const struct run *at)
{
    static const char script[] =
        "local n = 0 for _, k in ipairs(redis.call('keys', ARGV[1])) do local t = redis.call('pttl', k) "
        "if t == -1 or t > tonumber(ARGV[2]) then return redis.error_reply('ERR ' .. k .. ' lives for ' .. t) "
        "end "
        "n = n + 1 end return n";
    char pattern[32];

    snprintf(pattern, sizeof(pattern), "r%u:*", at->fuzz.round);
    for (uint32_t i = 0; i < FUZZ_NODES; i++) {
        while (!mangle_is_idle(at->mangles[i])) event_base_loop(at->fuzz.base, EVLOOP_ONCE);
        /* Behind what came before on other connections. */
        for (int n = 0; n < 3; n++) server_do(&at->cluster.servers[i], "PING");
    }
    for (uint32_t i = 0; i < FUZZ_NODES; i++) {
        long long left =
            server_ask_number(&at->cluster.servers[i], "EVAL %s 0 %s %u", script, pattern, FUZZ_LEASE_MAX_MS);

        if (at->kind == CALM && !at->fuzz.troubled && left > 0)
            fuzz_fail(&at->fuzz, "%lld keys are left on node %u", left, i);
    }
}

static void await(struct run *at, bool (*done)(const struct fuzz *), const char *what)
{
    uint64_t begun_us = at->fuzz.alive_us;

    while (!done(&at->fuzz)) {
        event_base_loop(at->fuzz.base, EVLOOP_ONCE);
        if (at->fuzz.alive_us > begun_us + CLOSE_LIMIT_US) fuzz_fail(&at->fuzz, "%s", what);
    }
}

static void run_round(struct run *at, uint32_t round)
{
    struct fuzz *fuzz = &at->fuzz;

    at->kind = (enum kind)(round % KINDS);
    at->pace = draw_of(at->seed + round, 0xaace);
    at->faults = draw_of(at->seed + round, 0xfa17);
    bootstrap(at);
    fuzz->spoiled = at->kind == SPOILED;
    fuzz->breaks = at->kind != CALM;
    fuzz->fail_once_in = at->kind == MEMORY ? 100 : 0;
    fuzz->dialect = round / KINDS % 2 == 0 ? QUORLOCK_DIALECT_PLAIN : QUORLOCK_DIALECT_REDISSON;
    fuzz_begin_round(fuzz, round);
    at->calls_left = at->calls_a_round;
    while (at->calls_left > 0) event_base_loop(fuzz->base, EVLOOP_ONCE);
    heal(at);
    /* Else what is held is given back by the close. */
    if (round / 2 % 2 == 0) {
        fuzz_free_all(fuzz);
        await(at, fuzz_is_quiet, "what was freed does not come to an end");
    }
    fuzz_close_all(fuzz);
    await(at, fuzz_is_closed, "the clients do not close");
    fuzz_end_round(fuzz);
    check_rest(at);
}

static void report(const struct run *at)
{
    const struct fuzz_counts *counts = &at->fuzz.counts;

    printf("%llu calls, %llu refused, %llu callbacks, %llu grants, %llu losses, %llu freed, %llu closed, %llu "
           "allocations failed\n",
           (unsigned long long)counts->calls, (unsigned long long)counts->refused,
           (unsigned long long)counts->callbacks, (unsigned long long)counts->grants,
           (unsigned long long)counts->losses, (unsigned long long)counts->frees, (unsigned long long)counts->closes,
           (unsigned long long)counts->failed_allocations);
    for (int status = 0; status < 16; status++) {
        if (counts->statuses[status] == 0) continue;
        printf("  %s %llu\n", quorlock_status_name(-status), (unsigned long long)counts->statuses[status]);
    }
}

static void begin(struct run *at)
{
    const struct timeval tick = {.tv_usec = TICK_US};
    struct event_config *config = event_config_new();

    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    at->fuzz.base = event_base_new_with_config(config);
    event_config_free(config);
    at->fuzz.seed = at->seed;
    if (at->fuzz.base == NULL) fuzz_fail(&at->fuzz, "no event base");
    atexit(end_cluster);
    cluster_start(&at->cluster, FUZZ_NODES);
    for (uint32_t i = 0; i < FUZZ_NODES; i++) {
        at->mangles[i] = mangle_new(at->fuzz.base, at->cluster.servers[i].port, at->seed);
        if (at->mangles[i] == NULL) fuzz_fail(&at->fuzz, "no proxy");
        snprintf(at->addresses[i], sizeof(at->addresses[i]), "127.0.0.1:%u", mangle_port(at->mangles[i]));
        at->fuzz.nodes[i] = at->addresses[i];
    }
    at->tick = event_new(at->fuzz.base, -1, EV_PERSIST, on_tick, at);
    if (at->tick == NULL) fuzz_fail(&at->fuzz, "no timer");
    event_add(at->tick, &tick);
    at->last_us = clock_us();
}

static void end(struct run *at)
{
    event_free(at->tick);
    for (uint32_t i = 0; i < FUZZ_NODES; i++) mangle_free(at->mangles[i]);
    free(at->fuzz.slots);
    event_base_free(at->fuzz.base);
}

static int usage(void)
{
    fprintf(stderr, "usage: fuzz_api [--seed S] [--seconds N] [--round R] [--calls N] [--handles N] "
                    "[--log-calls]\n");
    return 64;
}

static int read_options(struct run *at, int argc, char **argv)
{
    at->fuzz.n_slots = 300;
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        unsigned long long number = i + 1 < argc ? strtoull(argv[i + 1], &end, 10) : 0;

        if (strcmp(argv[i], "--log-calls") == 0) {
            at->fuzz.log_calls = true;
            continue;
        }
        if (end == NULL || end == argv[i + 1] || *end != '\0') return usage();
        if (strcmp(argv[i], "--seed") == 0) {
            at->seed = number;
        } else if (strcmp(argv[i], "--seconds") == 0) {
            at->seconds = number;
        } else if (strcmp(argv[i], "--round") == 0) {
            at->only_round = (long)number;
        } else if (strcmp(argv[i], "--calls") == 0) {
            at->calls_a_round = (uint32_t)number;
        } else if (strcmp(argv[i], "--handles") == 0 && number > 0) {
            at->fuzz.n_slots = (uint32_t)number;
        } else {
            return usage();
        }
        i++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t until_us;
    int status = read_options(&run, argc, argv);

    if (status != 0) return status;
    /* The proxies write by libevent, which does not keep it away; the library does. */
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    begin(&run);
    until_us = clock_us() + run.seconds * 1000000u;
    for (uint32_t round = 0; clock_us() < until_us || round < KINDS; round++) {
        if (run.only_round >= 0 && round != (uint32_t)run.only_round) {
            if (round > (uint32_t)run.only_round) break;
            continue;
        }
        run_round(&run, round);
        printf("round %u (%s): %llu grants so far%s\n", round, kind_names[run.kind],
               (unsigned long long)run.fuzz.counts.grants,
               run.kind == CALM && run.fuzz.troubled ? "; the machine was too busy to judge what is left" : "");
    }
    report(&run);
    end(&run);
    if (run.fuzz.counts.grants == 0 || run.fuzz.counts.callbacks == 0) fuzz_fail(&run.fuzz, "nothing happened");
    return 0;
}
