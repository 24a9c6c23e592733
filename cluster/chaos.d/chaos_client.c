/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chaos_client.c - a process with users of the library, whose steps are recorded as a history
 *
 * Each user asks for a lock, works on the protected register while it holds the lock, releases it and begins again,
 * until SIGTERM. The process follows the protocol that cluster/chaos has for every client, quorlock-chaos(7).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "candidate_client.h"
#include "lock_client.h"

#ifdef QUORLOCK_MUTANTS
#include "promises/mutant.h"
#endif

#define CLOSE_MS 15000 /* close is overdue: the library broke a promise */

static struct chaos me;
static uint32_t closing_ticks;

static void on_closed(void *arg)
{
    (void)arg;
    (void)event_base_loopbreak(me.base);
}

/* Called when all users have ended. */
static void close_client(struct chaos *chaos)
{
    closing_ticks = 1;
    observers_end();
    if (quorlock_client_close(chaos->client, on_closed, NULL) != 0)
        user_breach(&chaos->users[0], "the client cannot be closed");
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    for (uint32_t i = 0; i < me.options.n_users; i++) user_tick(&me.users[i]);
    if (closing_ticks == 0 || ++closing_ticks < CLOSE_MS / TICK_MS) return;
    user_breach(&me.users[0], "the client never closes");
    exit(2);
}

static void on_term(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    if (me.stop != 0) return;
    me.stop = 1;
    for (uint32_t i = 0; i < me.options.n_users; i++) user_stop(&me.users[i]);
}

static void log_line(int level, const char *text, void *arg)
{
    struct timespec now;

    (void)arg;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (me.options.verbose || level >= QUORLOCK_LOG_ERROR)
        (void)fprintf(stderr, "%lld.%06ld %s %d %s\n", (long long)now.tv_sec, now.tv_nsec / 1000, me.options.name,
                      level, text);
}

static int break_rule(const char *rule)
{
#ifdef QUORLOCK_MUTANTS
    if (mutant_choose(rule)) return 0;
    (void)fprintf(stderr, "chaos_client: QUORLOCK_CHAOS_BREAK: '%s' is not a rule that can be broken\n", rule);
#else
    (void)fprintf(stderr, "chaos_client: QUORLOCK_CHAOS_BREAK=%s: only the build for negative controls can do that\n",
                  rule);
#endif
    return -1;
}

static int open_client(void)
{
    struct quorlock_client_options options = {.size = sizeof(options)};
    struct quorlock_error error;

    options_of_client(&options, &me.options);
    options.log = log_line;
    if (quorlock_client_new(&me.client, me.base, &options, &error) == 0) return 0;
    (void)fprintf(stderr, "chaos_client: %s\n", error.text);
    return -1;
}

static int open_loop(void)
{
    struct event_config *config = event_config_new();
    struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    struct event *term, *ticks;

    if (config == NULL || event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) != 0) return -1;
    me.base = event_base_new_with_config(config);
    event_config_free(config);
    if (me.base == NULL) return -1;
    ticks = event_new(me.base, -1, EV_PERSIST, on_tick, NULL);
    term = evsignal_new(me.base, SIGTERM, on_term, NULL);
    if (ticks == NULL || term == NULL) return -1;
    return event_add(ticks, &tick) == 0 && event_add(term, NULL) == 0 ? 0 : -1;
}

static int begin_users(void)
{
    me.users = calloc(me.options.n_users, sizeof(*me.users));
    if (me.users == NULL) return -1;
    me.closed = close_client;
    me.lock_kind = &lock_kind;
    me.candidate_kind = &candidate_kind;
    for (uint32_t i = 0; i < me.options.n_users; i++)
        if (user_begin(&me.users[i], &me, i) != 0) return -1;
    return observers_begin(&me);
}

int main(void)
{
    if (options_read(&me.options) != 0) return 64;
    if (me.options.broken_rule != NULL && break_rule(me.options.broken_rule) != 0) return 64;
    if (open_loop() != 0 || open_client() != 0) return 1;
    history_begin("quorlock " QUORLOCK_VERSION);
    if (begin_users() != 0) return 1;
    (void)event_base_dispatch(me.base);
    return 0;
}
