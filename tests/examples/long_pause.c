/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * long_pause.c - a worker that may stall for longer than its lease, at any point, and does no harm
 *
 * usage: long_pause [--pause] DATABASE [NODE...]
 *
 * Takes the lock, reads the account, waits for an amount on stdin, writes the sum and releases the lock.
 * Without nodes it works without a lock. Three things make a pause harmless:
 *
 *  - It asks quorlock_lock_valid_ms() before it writes. That covers every pause up to there.
 *  - The lock is fenced, and the account refuses a token older than the newest that it has seen. That covers a
 *    pause between the question and the write, which no lock can see. For this the token must be shown to the
 *    account before the account is read, or a late write could still slip in between.
 *  - After the loss it gives the lock back (which touches no other owner's key) and begins anew.
 *
 * A page fault, a collector or a hypervisor chooses the place of the pause in life; with --pause the process
 * stops itself at the worst place, once.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "example.h"

#define LEASE_MS 2000

struct worker {
    struct event_base *base;
    struct event *input;
    quorlock_client *client; /* NULL: works without a lock */
    quorlock_lock *lock;
    sqlite3 *db;
    bool inside; /* has the lock, and has read the balance */
    bool pause;
    bool done;
    int64_t amount; /* 0: not known yet */
    int64_t balance;
    uint64_t fence;
};

static void worker_begin(struct worker *);

static void worker_end(struct worker *worker)
{
    event_del(worker->input);
    quorlock_lock_free(worker->lock);
    if (worker->client != NULL) quorlock_client_close(worker->client, NULL, NULL);
    worker->lock = NULL;
    worker->client = NULL;
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct worker *worker = arg;

    (void)lock;
    say("released status=%s", quorlock_status_name(result->status));
    if (worker->done) {
        worker_end(worker);
    } else {
        worker_begin(worker);
    }
}

/* Comes before validity ends; after a pause, before anything else that this client tells. */
static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct worker *worker = arg;

    say("lost valid_ms=%u: %s", quorlock_lock_valid_ms(lock), loss->text);
    worker->inside = false;
    if (quorlock_lock_release(lock, on_released, worker) != 0) die("%s", quorlock_client_error(worker->client));
}

static void worker_finish(struct worker *worker)
{
    /* Not valid any more: nothing is done here, for the callback of the loss is due. */
    if (worker->lock != NULL && quorlock_lock_valid_ms(worker->lock) == 0) return;
    say("checked");
    if (worker->pause) {
        worker->pause = false;
        raise(SIGSTOP);
    }
    worker->done = account_write(worker->db, worker->balance + worker->amount, worker->fence);
    say(worker->done ? "written" : "write-refused");
    /* Refused, the lock has a newer owner, and the loop is about to tell us. It reckons its timers from when
     * this callback began, which may be long ago: it is shown the time. */
    if (!worker->done) {
        event_base_update_cache_time(worker->base);
        return;
    }
    if (worker->lock == NULL) {
        worker_end(worker);
    } else if (quorlock_lock_release(worker->lock, on_released, worker) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
}

/* We are inside. The account learns of our token first, and only then do we look at it. */
static void worker_enter(struct worker *worker, const char *owner)
{
    if (worker->lock != NULL && !account_claim(worker->db, worker->fence)) {
        say("claim-refused");
        return;
    }
    worker->balance = account_read(worker->db);
    worker->inside = true;
    say("granted fence=%llu balance=%lld owner=%s", (unsigned long long)worker->fence, (long long)worker->balance,
        owner);
    if (worker->amount != 0) worker_finish(worker);
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct worker *worker = arg;

    (void)lock;
    if (result->status != QUORLOCK_OK) die("no lock: %s", result->text);
    worker->fence = result->fence;
    worker_enter(worker, result->token);
}

static void worker_begin(struct worker *worker)
{
    if (worker->lock == NULL) {
        worker_enter(worker, "nobody");
    } else if (quorlock_lock_acquire(worker->lock, on_acquired, worker) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct worker *worker = arg;
    char line[32] = "";

    (void)what;
    if (read(fd, line, sizeof(line) - 1) <= 0) die("stdin ended before an amount came");
    worker->amount = strtoll(line, NULL, 10);
    event_del(worker->input);
    if (worker->inside) worker_finish(worker);
}

int main(int argc, char **argv)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options),
        .lease_ms = LEASE_MS,
        .fencing = 1,
    };
    const char *key = "account";
    struct worker worker = {.pause = argc > 1 && strcmp(argv[1], "--pause") == 0};
    char **words = argv + 1 + worker.pause;
    size_t n_nodes = (size_t)(argc - 2 - worker.pause);

    if (words[0] == NULL) die("usage: long_pause [--pause] DATABASE [NODE...]");
    worker.base = example_base();
    worker.db = account_open(words[0]);
    worker.input = event_new(worker.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &worker);
    if (worker.input == NULL || event_add(worker.input, NULL) != 0) die("no event for stdin");
    if (n_nodes > 0) {
        worker.client =
            example_client(worker.base, (const char *const *)words + 1, n_nodes, QUORLOCK_GUARD_CONNECTION, 0);
        if (quorlock_lock_new(&worker.lock, worker.client, &key, 1, &options) != 0) {
            die("%s", quorlock_client_error(worker.client));
        }
        quorlock_lock_set_on_lost(worker.lock, on_lost, &worker);
    }
    worker_begin(&worker);
    event_base_dispatch(worker.base);
    event_free(worker.input);
    event_base_free(worker.base);
    sqlite3_close(worker.db);
    return 0;
}
