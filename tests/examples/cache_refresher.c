/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_refresher.c - many read a cache that is made of several parts, and now and then one makes it anew
 *
 * usage: cache_refresher read|refresh TIMES DATABASE [NODE...]
 *
 * One process that reads, or that refreshes; start several. A reader reads one part after the other, and must not see
 * parts of two versions. Readers lock the key "cache" shared: any number of them read at a time, on all machines. A
 * refresher locks it exclusively, and writes part by part. While it waits no new reader is let in, and when it is done
 * the readers that waited have their turn: neither waits for ever for the other. With TIMES 0 a reader goes on until
 * its standard input ends. Without nodes there is no lock, and a TIMES that is written once is what `quorlock run
 * --shared cache --` is given to do, see cache_refresher.sh.
 *
 * A refresher that was stopped after its last look at the clock writes nothing late: each part takes no older token
 * than it has seen.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define LEASE_MS 10000
#define PARTS    5

/* Reads all parts; says so where they are of several versions. */
static void read_all(const quorlock_sync_lock *lock, sqlite3 *db)
{
    int64_t first = sql_number(db, "SELECT version FROM part WHERE id = 0");
    bool torn = false;

    for (int part = 1; part < PARTS; part++)
        torn |= sql_number(db, "SELECT version FROM part WHERE id = %d", part) != first;
    if (lock != NULL && quorlock_sync_lock_valid_ms(lock) == 0) {
        say("late version=%" PRId64, first); /* what was read is not used */
    } else {
        say("%s version=%" PRId64, torn ? "torn" : "whole", first);
    }
}

/* Writes all parts anew; false where the lock was lost: the next refresher does it. */
static bool refresh_all(const quorlock_sync_lock *lock, sqlite3 *db, uint64_t fence)
{
    int64_t version = sql_number(db, "SELECT max(version) FROM part") + 1;

    say("refreshes version=%" PRId64, version);
    for (int part = 0; part < PARTS; part++) {
        if (lock != NULL && quorlock_sync_lock_valid_ms(lock) == 0) return false;
        sql_run(db, "UPDATE part SET version = %lld, fence = %lld WHERE id = %d AND fence <= %lld", (long long)version,
                (long long)fence, part, (long long)fence);
        if (sqlite3_changes(db) == 0) return false;
    }
    say("refreshed version=%" PRId64, version);
    return true;
}

/* The token of `quorlock run --fence`; 0 without one. */
static uint64_t fence_around(void)
{
    const char *text = getenv("QUORLOCK_FENCE");

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* True: it is done. */
static bool once(quorlock_sync_lock *lock, sqlite3 *db, bool refreshes)
{
    struct quorlock_sync_result result = {.size = sizeof(result), .fence = fence_around()};
    bool done = true;

    if (lock != NULL && quorlock_sync_lock_acquire(lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
    if (refreshes)
        done = refresh_all(lock, db, result.fence);
    else
        read_all(lock, db);
    if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    return done;
}

static bool input_ended(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *lock = NULL;
    bool refreshes;
    long times;
    sqlite3 *db;

    if (argc < 4) die("usage: cache_refresher read|refresh TIMES DATABASE [NODE...]");
    refreshes = strcmp(argv[1], "refresh") == 0;
    times = strtol(argv[2], NULL, 10);
    db = account_open(argv[3]);
    if (argc > 4) {
        options.shared = refreshes ? 0 : QUORLOCK_SHARED_ALL;
        options.fencing = refreshes;
        client = example_open((const char *const *)argv + 4, (size_t)(argc - 4), 0);
        lock = example_lock(client, "cache", &options);
    }
    for (long n = 0; times == 0 ? !input_ended() : n < times;) n += once(lock, db, refreshes);
    quorlock_sync_lock_free(lock);
    if (client != NULL) quorlock_sync_client_close(client);
    sqlite3_close(db);
    return 0;
}
