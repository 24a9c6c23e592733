/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flash_sale.c - very many buyers at once for a small stock, and no item is sold twice
 *
 * usage: flash_sale BUYERS DATABASE [NODE...]
 *
 * One shop with so many buyers, each a thread; start several shops. A buyer takes the lock, looks at the stock
 * and, if any is left, pays, writes the stock that it saw less one together with its order, COMMITs, and only
 * then gives the lock back. Without nodes they buy without a lock.
 *
 * One client serves all threads. Those that wait for the same key form one queue in the process, and only
 * the first of them asks the nodes.
 */
#include <pthread.h>
#include <stdlib.h>

#include "example.h"

#define LEASE_MS 10000
#define PAY_MS   2

struct shop {
    quorlock_sync_client *client; /* NULL: sells without a lock */
    const char *database;
};

/* What was seen is still true: no other buyer was let in. */
static bool still_ours(const quorlock_sync_lock *lock)
{
    return lock == NULL || quorlock_sync_lock_valid_ms(lock) > 0;
}

/* Looks, and buys where it can; false: the lock was lost meanwhile, and nothing was written. */
static bool buy(const quorlock_sync_lock *lock, sqlite3 *db)
{
    int64_t left = sql_number(db, "SELECT left FROM stock");

    if (left == 0) {
        say("sold-out");
        return true;
    }
    say("looked left=%lld", (long long)left);
    pause_ms(PAY_MS);
    if (!still_ours(lock)) return false;
    sql_run(db, "BEGIN IMMEDIATE; UPDATE stock SET left = %lld; INSERT INTO orders DEFAULT VALUES; COMMIT",
            (long long)left - 1);
    say("bought");
    return true;
}

static void *buyer(void *arg)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    const struct shop *shop = arg;
    struct quorlock_sync_result result = {.size = sizeof(result)};
    sqlite3 *db = account_open(shop->database);
    quorlock_sync_lock *lock = shop->client != NULL ? example_lock(shop->client, "stock", &options) : NULL;
    bool served = false;

    while (!served) {
        if (lock != NULL && quorlock_sync_lock_acquire(lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
        served = buy(lock, db);
        if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    }
    quorlock_sync_lock_free(lock);
    sqlite3_close(db);
    return NULL;
}

int main(int argc, char **argv)
{
    struct shop shop = {0};
    size_t n_buyers;
    pthread_t *buyers;

    if (argc < 3) die("usage: flash_sale BUYERS DATABASE [NODE...]");
    n_buyers = (size_t)strtoul(argv[1], NULL, 10);
    buyers = calloc(n_buyers, sizeof(*buyers));
    shop.database = argv[2];
    if (buyers == NULL) die("no buyers");
    if (argc > 3) shop.client = example_open((const char *const *)argv + 3, (size_t)(argc - 3), 0);
    for (size_t i = 0; i < n_buyers; i++) {
        if (pthread_create(&buyers[i], NULL, buyer, &shop) != 0) die("no thread");
    }
    for (size_t i = 0; i < n_buyers; i++) pthread_join(buyers[i], NULL);
    if (shop.client != NULL) quorlock_sync_client_close(shop.client);
    free(buyers);
    return 0;
}
