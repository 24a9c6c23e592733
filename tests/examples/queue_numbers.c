/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue_numbers.c - several workers hand out numbers, max(position) + 1, without a gap and without a double
 *
 * usage: queue_numbers WORKER STUDENTS DATABASE [NODE...]
 *
 * One worker; start several. For each student it takes the lock, looks at the highest position, writes the next
 * one, and only after the commit gives the lock back. Without nodes it works without a lock.
 *
 * The library's thread renews the lock while this one works, however long the commit takes. Should the lock be
 * lost all the same, nothing is written, and the student is served anew. A process that is stopped between the
 * question and the write needs a fencing token too: see long_pause.c.
 */
#include <stdlib.h>

#include "example.h"

#define LEASE_MS 10000

static void serve(quorlock_sync_lock *lock, sqlite3 *db, const char *worker)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    bool served = false;

    while (!served) {
        int64_t last;

        if (lock != NULL && quorlock_sync_lock_acquire(lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
        last = sql_number(db, "SELECT max(position) FROM queue");
        say("looked last=%lld", (long long)last);
        if (lock == NULL || quorlock_sync_lock_valid_ms(lock) > 0) {
            sql_run(db, "INSERT INTO queue (position, worker) VALUES (%lld, %Q)", (long long)last + 1, worker);
            served = true;
        }
        if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    }
}

int main(int argc, char **argv)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *lock = NULL;
    long students;
    sqlite3 *db;

    if (argc < 4) die("usage: queue_numbers WORKER STUDENTS DATABASE [NODE...]");
    students = strtol(argv[2], NULL, 10);
    db = account_open(argv[3]);
    if (argc > 4) {
        client = example_open((const char *const *)argv + 4, (size_t)(argc - 4), 0);
        lock = example_lock(client, "queue", &options);
    }
    for (long i = 0; i < students; i++) serve(lock, db, argv[1]);
    quorlock_sync_lock_free(lock);
    if (client != NULL) quorlock_sync_client_close(client);
    sqlite3_close(db);
    return 0;
}
