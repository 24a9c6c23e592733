/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - a client of chaos whose users are threads that share one client of sync.h; each takes locks
 *
 * It follows the protocol of quorlock-chaos(7), as chaos_client does, whose users share an event loop.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <quorlock/sync.h>

#include "history_client.h"
#include "options_client.h"

#define US_IN_MS UINT64_C(1000)

struct user {
    struct history_subject subject;
    pthread_t thread;
    uint64_t seed;
    quorlock_sync_lock *lock;
    uint64_t hold_until_us;
    bool holding, lost; /* protected by `telling` */
};

static struct chaos_options options;
static struct user *users;
static quorlock_sync_client *client;
static atomic_bool stop;
/* For one line of the history at a time. The threads write it, and so does the callback, in the loop's thread. */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void rest_ms(uint32_t ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Return the end of validity as far as it is certain now; 0: there is none left. */
static uint64_t deadline_us(const struct user *user)
{
    uint64_t now_us = history_now_us(), valid_ms = quorlock_sync_lock_valid_ms(user->lock);

    return valid_ms != 0 ? now_us + valid_ms * US_IN_MS : 0;
}

static void on_lost(quorlock_sync_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct user *user = arg;

    (void)lock;
    pthread_mutex_lock(&telling);
    if (user->holding) history_say(history_now_us(), "lost", &user->subject, ",\"reason\":%d", loss->reason);
    user->holding = false;
    user->lost = true;
    pthread_mutex_unlock(&telling);
}

/* The lock may be lost before this thread runs. One in ten holds longer than its lease, which needs renewal. */
static void begin_hold(struct user *user, uint32_t lease_ms, uint64_t fence)
{
    uint64_t hold_ms = options_pick(&user->seed, options.hold_ms), until_us;

    if (options_draw(&user->seed) % 10 == 0) hold_ms += lease_ms + lease_ms / 2;
    pthread_mutex_lock(&telling);
    user->hold_until_us = history_now_us() + hold_ms * US_IN_MS;
    until_us = user->lost ? 0 : deadline_us(user);
    user->holding = until_us != 0;
    if (user->holding)
        history_say(history_now_us(), "granted", &user->subject, ",\"deadline_us\":%" PRIu64 ",\"fence\":%" PRIu64,
                    until_us, fence);
    else
        history_say(history_now_us(), "refused", &user->subject, ",\"status\":\"LATE\"");
    pthread_mutex_unlock(&telling);
}

/* Read the register first, and write the next value later. False: the hold is over. */
static bool step(struct user *user, struct history_access *access, bool writes)
{
    bool ok = false;

    pthread_mutex_lock(&telling);
    access->deadline_us = user->holding && history_now_us() < user->hold_until_us ? deadline_us(user) : 0;
    if (access->deadline_us != 0) ok = writes ? history_write(access) : history_read(access);
    pthread_mutex_unlock(&telling);
    access->value++;
    return ok && !stop;
}

/* The history ends the hold before the first node can learn of the release. */
static void end_hold(struct user *user)
{
    pthread_mutex_lock(&telling);
    if (user->holding) history_say(history_now_us(), "released", &user->subject, "%s", "");
    user->holding = false;
    pthread_mutex_unlock(&telling);
}

/* Return false when the client is closed. */
static bool operate(struct user *user)
{
    struct quorlock_lock_options asked = {
        .size = sizeof(asked), .lease_ms = options_pick(&user->seed, options.lease_ms), .fencing = options.fencing};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct history_access access = {.subject = &user->subject};

    asked.wait_ms = options_pick(&user->seed, options.wait_ms);
    if (asked.wait_ms == 0) asked.wait_ms = QUORLOCK_TRY_ONCE;
    user->subject.key = options.keys[options_draw(&user->seed) % options.n_keys];
    user->lost = false;
    if (quorlock_sync_lock_new(&user->lock, client, &user->subject.key, 1, &asked, NULL) != 0) return false;
    quorlock_sync_lock_set_on_lost(user->lock, on_lost, user);
    pthread_mutex_lock(&telling);
    history_say(history_now_us(), "invoke", &user->subject, "%s", "");
    pthread_mutex_unlock(&telling);
    if (quorlock_sync_lock_acquire(user->lock, &result) == 0) {
        access.fence = result.fence;
        begin_hold(user, asked.lease_ms, result.fence);
        for (bool writes = false; step(user, &access, writes); writes = true)
            rest_ms(2 + (uint32_t)(options_draw(&user->seed) % 30));
        end_hold(user);
        (void)quorlock_sync_lock_release(user->lock, NULL);
    } else {
        pthread_mutex_lock(&telling);
        history_say(history_now_us(), "refused", &user->subject, ",\"status\":\"%s\"",
                    quorlock_status_name(result.status));
        pthread_mutex_unlock(&telling);
    }
    quorlock_sync_lock_free(user->lock);
    return true;
}

static void *life(void *arg)
{
    struct user *user = arg;

    while (!stop && operate(user)) rest_ms(options_pick(&user->seed, options.think_ms));
    return NULL;
}

static void log_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (options.verbose || level >= QUORLOCK_LOG_ERROR) (void)fprintf(stderr, "%s %s\n", options.name, text);
}

static int open_client(void)
{
    struct quorlock_client_options asked = {.size = sizeof(asked)};
    struct quorlock_error error;

    options_of_client(&asked, &options);
    asked.log = log_line;
    if (quorlock_sync_client_new(&client, &asked, &error) == 0) return 0;
    (void)fprintf(stderr, "chaos_threads: %s\n", error.text);
    return -1;
}

int main(void)
{
    sigset_t term;
    int number;

    if (options_read(&options) != 0) return 64;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    users = calloc(options.n_users, sizeof(*users));
    if (users == NULL || pthread_sigmask(SIG_BLOCK, &term, NULL) != 0 || open_client() != 0) return 1;
    history_begin("quorlock " QUORLOCK_VERSION ", threads");
    for (uint32_t i = 0; i < options.n_users; i++) {
        users[i].subject.user = options.n_users > 1 ? i + 1 : 0;
        users[i].seed = options.seed + (uint64_t)i * 1000003;
        if (pthread_create(&users[i].thread, NULL, life, &users[i]) != 0) return 1;
    }
    (void)sigwait(&term, &number);
    stop = true;
    (void)quorlock_sync_client_shutdown(client);
    for (uint32_t i = 0; i < options.n_users; i++) (void)pthread_join(users[i].thread, NULL);
    free(users);
    return quorlock_sync_client_close(client);
}
