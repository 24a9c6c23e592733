/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long_work.c - work that takes longer than the lease
 *
 * usage: long_work WORK_MS DATABASE [NODE...]
 *
 * Takes the lock, reads the account, works for so long, writes the balance that it read plus one, and gives the
 * lock back. Without nodes it works without a lock.
 *
 * The lease is short on purpose: when this process dies, others wait for no longer than that. It is no bound
 * for the work: the library renews the lock on every node, three times in a lease, until it is released. What
 * remains to be done here is to ask before each step, and before the write above all, whether the lock is still
 * held; if not, to drop the work and begin anew.
 */
#include <stdlib.h>

#include "example.h"

#define LEASE_MS 1000
#define STEP_MS  10

/* One step after the other; false: the lock was lost. */
static bool work(const quorlock_sync_lock *lock, unsigned work_ms)
{
    int64_t until_us = clock_us() + (int64_t)work_ms * 1000;

    while (clock_us() < until_us) {
        if (lock != NULL && quorlock_sync_lock_valid_ms(lock) == 0) return false;
        pause_ms(STEP_MS);
    }
    return lock == NULL || quorlock_sync_lock_valid_ms(lock) > 0;
}

int main(int argc, char **argv)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *lock = NULL;
    bool done = false;
    sqlite3 *db;

    if (argc < 3) die("usage: long_work WORK_MS DATABASE [NODE...]");
    db = account_open(argv[2]);
    if (argc > 3) {
        client = example_open((const char *const *)argv + 3, (size_t)(argc - 3), 0);
        lock = example_lock(client, "account", &options);
    }
    while (!done) {
        int64_t balance;

        if (lock != NULL && quorlock_sync_lock_acquire(lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
        balance = sql_number(db, "SELECT balance FROM account");
        say("granted balance=%lld token=%s", (long long)balance, result.token);
        done = work(lock, (unsigned)strtoul(argv[1], NULL, 10));
        if (done) sql_run(db, "UPDATE account SET balance = %lld", (long long)balance + 1);
        say(done ? "written" : "lost");
        if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    }
    quorlock_sync_lock_free(lock);
    if (client != NULL) quorlock_sync_client_close(client);
    sqlite3_close(db);
    return 0;
}
