/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheduled_job.c - a job that several replicas are to start at the same tick, and one of them does
 *
 * usage: scheduled_job lock|keep|tick REPLICA WORK_MS DATABASE [NODE...]
 *        scheduled_job job lock|keep|tick TICK REPLICA WORK_MS DATABASE
 *
 * One replica. Each line on stdin is a tick that its clock shows, by its number (time(NULL) / 60 for each
 * minute). Without nodes it works without a lock. The second form is the job alone, for scheduled_job.sh.
 *
 *   lock   tries once to get the lock, which is renewed while the job runs; a replica that does not get it says
 *          so and goes. The lock keeps two from running at the same time, and that is all: a replica whose
 *          clock is so slow that it starts when the others are done finds the lock free, and runs the job
 *          again.
 *   keep   the same, but nobody gets the lock for KEEP_MS after it was taken, although the job takes less time. So
 *          clocks may be so far apart. The next tick must be further away.
 *   tick   the job itself remembers, where it writes its results, for which tick it ran last: a replica that
 *          comes with that one, or an older one, learns that it was run, and goes. So it does no harm to be
 *          late, and all can wait for the lock. The tick's number is the fence.
 *
 * Claimed first, a tick is run at most once: if the job dies in the middle, the next one is the next tick's. A
 * job that must be done at least once claims its tick in the transaction that writes the result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "example.h"

#define LEASE_MS 10000
#define KEEP_MS  4000

struct job {
    sqlite3 *db;
    const char *replica;
    unsigned work_ms;
    bool by_tick, keeps;
};

/* False where this tick, or a later one, was claimed before. */
static bool tick_claim(sqlite3 *db, long long tick)
{
    sql_run(db, "UPDATE job SET tick = %lld WHERE tick < %lld", tick, tick);
    return sqlite3_changes(db) == 1;
}

static void job_run(const struct job *job, const quorlock_sync_lock *lock, long long tick)
{
    if (job->by_tick && !tick_claim(job->db, tick)) {
        say("was-run tick=%lld", tick);
        return;
    }
    pause_ms(job->work_ms);
    if (lock != NULL && quorlock_sync_lock_valid_ms(lock) == 0) {
        say("lost tick=%lld", tick);
        return;
    }
    sql_run(job->db, "INSERT INTO runs (tick, replica) VALUES (%lld, %Q)", tick, job->replica);
    say("ran tick=%lld", tick);
}

static void fire(const struct job *job, quorlock_sync_lock *lock, long long tick)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};

    if (lock != NULL) (void)quorlock_sync_lock_acquire(lock, &result);
    if (result.status == QUORLOCK_ERR_HELD) {
        say("another-runs tick=%lld: %s", tick, result.text);
    } else if (result.status != QUORLOCK_OK) {
        say("no-lock tick=%lld: %s", tick, result.text);
    } else {
        job_run(job, lock, tick);
        if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    }
}

static void replica_run(const struct job *job, const char *const *nodes, size_t n_nodes)
{
    const struct quorlock_lock_options options = {.size = sizeof(options),
                                                  .lease_ms = LEASE_MS,
                                                  .wait_ms = job->by_tick ? 0 : QUORLOCK_TRY_ONCE,
                                                  .keep_ms = job->keeps ? KEEP_MS : 0};
    quorlock_sync_client *client = n_nodes > 0 ? example_open(nodes, n_nodes, 0) : NULL;
    quorlock_sync_lock *lock = n_nodes > 0 ? example_lock(client, "job", &options) : NULL;
    char line[32];

    while (fgets(line, sizeof(line), stdin) != NULL) fire(job, lock, strtoll(line, NULL, 10));
    quorlock_sync_lock_free(lock);
    if (client != NULL) quorlock_sync_client_close(client);
}

int main(int argc, char **argv)
{
    bool alone = argc == 7 && strcmp(argv[1], "job") == 0;
    char **words = argv + 1 + alone;
    struct job job = {0};

    if (argc < 5) die("usage: scheduled_job lock|keep|tick REPLICA WORK_MS DATABASE [NODE...]");
    job.by_tick = strcmp(words[0], "tick") == 0;
    job.keeps = strcmp(words[0], "keep") == 0;
    job.replica = words[1 + alone];
    job.work_ms = (unsigned)strtoul(words[2 + alone], NULL, 10);
    job.db = account_open(words[3 + alone]);
    if (alone) {
        job_run(&job, NULL, strtoll(words[1], NULL, 10));
    } else {
        replica_run(&job, (const char *const *)words + 4, (size_t)(argc - 5));
    }
    sqlite3_close(job.db);
    return 0;
}
