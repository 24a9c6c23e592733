/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client for cluster/chaos, on the sync calls of this library. quorlock-chaos(7) describes its lines.
 *
 * cc example.c $(pkg-config --cflags --libs quorlock) -o example; cluster/chaos --client ./example
 */
#include <quorlock/sync.h>

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETTING(name) setting("QUORLOCK_CHAOS_" name)
#define LIST_MAX      31

static volatile sig_atomic_t stop;

static void on_term(int number)
{
    stop = number;
}

static char *setting(const char *name)
{
    char *value = getenv(name);

    if (value != NULL) return value;
    (void)fprintf(stderr, "%s is not set: cluster/chaos --client starts this program\n", name);
    exit(64);
}

static size_t list(const char **items, char *text)
{
    char *rest = NULL, *item = strtok_r(text, ",", &rest);
    size_t n = 0;

    for (; item != NULL && n < LIST_MAX; item = strtok_r(NULL, ",", &rest)) items[n++] = item;
    return n;
}

static uint32_t pick_ms(const char *range)
{
    char *rest;
    uint32_t low = (uint32_t)strtoul(range, &rest, 10), high = (uint32_t)strtoul(rest + 1, NULL, 10);

    return low + (uint32_t)rand() % (high - low + 1);
}

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void rest_ms(uint32_t ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* Write one line of the history; return the value of the register, or -1 if it refuses the access. */
__attribute__((format(printf, 3, 4))) static int64_t say(const char *event, const char *key, const char *more, ...)
{
    char answer[128];
    va_list arguments;

    printf("{\"event\":\"%s\",\"key\":\"%s\"", event, key);
    va_start(arguments, more);
    vprintf(more, arguments);
    va_end(arguments);
    if (puts("}") < 0 || fflush(stdout) != 0 || fgets(answer, sizeof(answer), stdin) == NULL) exit(1);
    return strncmp(answer, "ok", 2) == 0 ? strtoll(strrchr(answer, ' '), NULL, 10) : -1;
}

static void work(quorlock_sync_lock *lock, const char *key, uint64_t fence)
{
    uint64_t begun_us = now_us(), until_us = begun_us + pick_ms(SETTING("HOLD_MS")) * UINT64_C(1000);
    uint64_t deadline_us = begun_us + quorlock_sync_lock_valid_ms(lock) * UINT64_C(1000); /* renewal makes it later */
    int64_t value;

    say("granted", key, ",\"deadline_us\":%" PRIu64 ",\"fence\":%" PRIu64, deadline_us, fence);
    value = say("read", key, ",\"fence\":%" PRIu64, fence);
    while (value >= 0 && now_us() < until_us && quorlock_sync_lock_valid_ms(lock) > 0 && stop == 0) {
        value = say("write", key, ",\"fence\":%" PRIu64 ",\"value\":%" PRId64, fence, value + 1);
        rest_ms(10);
    }
    say(quorlock_sync_lock_valid_ms(lock) > 0 ? "released" : "lost", key, "%s", ""); /* before any node hears of it */
}

static void operate(quorlock_sync_client *client, const char *key)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .fencing = *SETTING("FENCE") == '1'};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *lock = NULL;

    options.lease_ms = pick_ms(SETTING("LEASE_MS"));
    options.wait_ms = pick_ms(SETTING("WAIT_MS"));
    if (options.wait_ms == 0) options.wait_ms = QUORLOCK_TRY_ONCE;
    if (quorlock_sync_lock_new(&lock, client, &key, 1, &options, NULL) != 0) exit(1);
    say("invoke", key, "%s", "");
    if (quorlock_sync_lock_acquire(lock, &result) == 0)
        work(lock, key, result.fence);
    else
        say("refused", key, ",\"status\":\"%s\"", quorlock_status_name(result.status));
    (void)quorlock_sync_lock_release(lock, NULL);
    quorlock_sync_lock_free(lock);
}

int main(void)
{
    const char *nodes[LIST_MAX], *keys[LIST_MAX];
    size_t n_nodes = list(nodes, SETTING("NODES")), n_keys = list(keys, SETTING("KEYS"));
    struct quorlock_client_options options = {.size = sizeof(options), .nodes = nodes, .n_nodes = n_nodes};
    quorlock_sync_client *client = NULL;

    options.max_lease_ms = (uint32_t)strtoul(SETTING("MAX_LEASE_MS"), NULL, 10);
    if (n_keys == 0 || quorlock_sync_client_new(&client, &options, NULL) != 0) return 64;
    (void)signal(SIGTERM, on_term);
    srand((unsigned)strtoul(SETTING("SEED"), NULL, 10));
    say("hello", "", ",\"version\":1,\"program\":\"example.c\"");
    for (; stop == 0; rest_ms(pick_ms(SETTING("THINK_MS")))) operate(client, keys[(size_t)rand() % n_keys]);
    return quorlock_sync_client_close(client);
}
