/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hot_standby.c - a scheduler that numbers and dispatches jobs, and standbys that take over when it fails
 *
 * usage: hot_standby NAME PAUSE_MS JOBS DATABASE [NODE...]
 *
 * One scheduler. It goes on where the last one stopped, keeps the next number in its memory, and dispatches a job every
 * PAUSE_MS, until there are JOBS. Without nodes it takes itself for the leader: two of them dispatch each job twice.
 *
 *   stand   waits until it leads, and returns with the term: a number that rises with every leader.
 *   term    goes where the jobs go. That takes no job by an older term than it has seen: a leader that was stopped
 *           after its last look at the clock, and is continued when another one leads, dispatches nothing.
 *   valid   is asked before each job. A leader that was deposed stands again: it is a standby now.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "example.h"

#define LEASE_MS 2000

struct scheduler {
    sqlite3 *db;
    const char *name;
    unsigned pause_ms;
    int64_t jobs;
    quorlock_sync_candidate *candidate; /* NULL: without an election */
};

/* False where a newer term was seen. */
static bool claim(sqlite3 *db, uint64_t term)
{
    sql_run(db, "UPDATE reign SET term = %lld WHERE term <= %lld", (long long)term, (long long)term);
    return sqlite3_changes(db) == 1;
}

/* False where this term is not the newest any more. */
static bool dispatch(const struct scheduler *scheduler, int64_t number, uint64_t term)
{
    sql_run(scheduler->db,
            "INSERT INTO jobs (number, scheduler, term) SELECT %lld, %Q, %lld FROM reign WHERE term = %lld",
            (long long)number, scheduler->name, (long long)term, (long long)term);
    return sqlite3_changes(scheduler->db) == 1;
}

static bool leads(const struct scheduler *scheduler)
{
    return scheduler->candidate == NULL || quorlock_sync_candidate_valid_ms(scheduler->candidate) > 0;
}

/* True: all jobs are dispatched. */
static bool lead(const struct scheduler *scheduler, uint64_t term)
{
    int64_t next;

    if (!claim(scheduler->db, term)) return false;
    next = sql_number(scheduler->db, "SELECT max(number) FROM jobs") + 1;
    say("leads term=%" PRIu64 " next=%" PRId64, term, next);
    for (; next <= scheduler->jobs; next++) {
        pause_ms(scheduler->pause_ms);
        if (!leads(scheduler)) {
            say("deposed term=%" PRIu64, term);
            return false;
        }
        if (!dispatch(scheduler, next, term)) {
            say("refused term=%" PRIu64, term);
            return false;
        }
    }
    return true;
}

static void stand_and_lead(struct scheduler *scheduler, const char *const *nodes, size_t n_nodes)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options), .advertise = scheduler->name, .lease_ms = LEASE_MS};
    quorlock_sync_client *client = example_open(nodes, n_nodes, 0);
    uint64_t term = 0;
    struct quorlock_error error;

    if (quorlock_sync_candidate_new(&scheduler->candidate, client, "scheduler", &options, &error) != 0)
        die("%s", error.text);
    while (quorlock_sync_candidate_stand(scheduler->candidate, &term) == 0 && !lead(scheduler, term)) continue;
    /* The standby need not wait for the end of the lease. */
    (void)quorlock_sync_candidate_resign(scheduler->candidate);
    quorlock_sync_candidate_free(scheduler->candidate);
    quorlock_sync_client_close(client);
}

int main(int argc, char **argv)
{
    struct scheduler scheduler = {0};

    if (argc < 5) die("usage: hot_standby NAME PAUSE_MS JOBS DATABASE [NODE...]");
    scheduler.name = argv[1];
    scheduler.pause_ms = (unsigned)strtoul(argv[2], NULL, 10);
    scheduler.jobs = strtoll(argv[3], NULL, 10);
    scheduler.db = account_open(argv[4]);
    if (argc > 5) {
        stand_and_lead(&scheduler, (const char *const *)argv + 5, (size_t)(argc - 5));
    } else {
        (void)lead(&scheduler, 0);
    }
    say("done");
    sqlite3_close(scheduler.db);
    return 0;
}
