/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_pool.c - several machines share a few GPUs: each job has one of them for itself
 *
 * usage: gpu_pool WORKER JOBS GPUS DATABASE [NODE...]
 *        gpu_pool job WORKER DATABASE
 *
 * One worker; start several. Each job takes one of GPUS permits of the name "gpu". The slot that comes with it, 0 to
 * GPUS - 1, is the number of the GPU, and nobody else has that one. So nothing has to be looked up, and nothing to be
 * cleaned up after a worker that died: its slot comes back with its lease. Without nodes a worker takes the first
 * GPU that looks idle. The second form is one job under `quorlock run --permits`, see gpu_pool.sh.
 *
 * Tokens rise slot by slot: each GPU remembers the newest that it has seen, and takes no job with an older one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define LEASE_MS 10000

/* One job on that GPU. False: a newer holder of the slot was there already. */
static bool train(sqlite3 *db, const char *worker, uint32_t gpu, uint64_t fence)
{
    sql_run(
        db,
        "UPDATE gpu SET busy = busy + 1, worst = max(worst, busy + 1), fence = %lld WHERE id = %u AND fence <= %lld",
        (long long)fence, gpu, (long long)fence);
    if (sqlite3_changes(db) == 0) {
        say("refused gpu=%u", gpu);
        return false;
    }
    say("trains gpu=%u", gpu);
    sql_run(db, "INSERT INTO job (gpu, worker) VALUES (%u, %Q); UPDATE gpu SET busy = busy - 1 WHERE id = %u", gpu,
            worker, gpu);
    return true;
}

/* What a worker does that looks for an idle GPU, and has no lock. */
static void without(sqlite3 *db, const char *worker)
{
    uint32_t gpu = (uint32_t)sql_number(db, "SELECT id FROM gpu ORDER BY busy, id LIMIT 1");

    say("looked gpu=%u", gpu);
    (void)train(db, worker, gpu, 0);
}

static void with(quorlock_sync_lock *permit, sqlite3 *db, const char *worker)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    bool done = false;

    while (!done) {
        if (quorlock_sync_lock_acquire(permit, &result) != QUORLOCK_OK) die("no permit: %s", result.text);
        say("granted gpu=%u", result.slot);
        done = quorlock_sync_lock_valid_ms(permit) > 0 && train(db, worker, result.slot, result.fence);
        (void)quorlock_sync_lock_release(permit, NULL);
    }
}

static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);

    if (text == NULL) die("%s is not set: this is for quorlock run --permits K --fence", name);
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS, .fencing = 1};
    quorlock_sync_client *client = NULL;
    quorlock_sync_lock *permit = NULL;
    bool done = true;
    sqlite3 *db;

    if (argc == 4 && strcmp(argv[1], "job") == 0) {
        db = account_open(argv[3]);
        done = train(db, argv[2], (uint32_t)number_of("QUORLOCK_SLOT"), number_of("QUORLOCK_FENCE"));
        sqlite3_close(db);
        return done ? 0 : 1;
    }
    if (argc < 5) die("usage: gpu_pool WORKER JOBS GPUS DATABASE [NODE...]");
    db = account_open(argv[4]);
    if (argc > 5) {
        options.permits = (uint32_t)strtoul(argv[3], NULL, 10); /* the same for all workers */
        client = example_open((const char *const *)argv + 5, (size_t)(argc - 5), 0);
        permit = example_lock(client, "gpu", &options);
    }
    for (long jobs = strtol(argv[2], NULL, 10); jobs > 0; jobs--) {
        if (permit != NULL)
            with(permit, db, argv[1]);
        else
            without(db, argv[1]);
    }
    quorlock_sync_lock_free(permit);
    if (client != NULL) quorlock_sync_client_close(client);
    sqlite3_close(db);
    return 0;
}
