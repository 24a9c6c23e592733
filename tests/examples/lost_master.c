/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost_master.c - a worker that can trust its lock although a server may lose its memory
 *
 * usage: lost_master connection|off DATABASE [NODE...]
 *
 * Takes the lock, reads the account, adds each amount that comes on stdin, and releases the lock when stdin
 * ends. Without nodes it works without a lock. It tries once, names the holder and the nodes without a
 * vote, and then waits for its turn.
 *
 * A server that comes back empty does not remember that it voted: it would vote again, for another owner. The
 * restart guard, a key on the node, shows that it restarted, and its votes do not count until every lock
 * that it may have forgotten is over. The price is that all clients agree on the longest lease (see
 * bootstrap.c).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "example.h"

#define LEASE_MS 3000

struct worker {
    struct event_base *base;
    struct event *input;
    quorlock_client *client; /* NULL: works without a lock */
    quorlock_lock *lock;
    sqlite3 *db;
    int64_t balance;
};

static void worker_acquire(struct worker *, uint32_t wait_ms);

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
    (void)lock;
    say("released status=%s", quorlock_status_name(result->status));
    worker_end(arg);
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct worker *worker = arg;

    say("lost valid_ms=%u: %s", quorlock_lock_valid_ms(lock), loss->text);
    event_del(worker->input);
    if (quorlock_lock_release(lock, on_released, worker) != 0) die("%s", quorlock_client_error(worker->client));
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct worker *worker = arg;
    char line[32] = "";
    ssize_t size = read(fd, line, sizeof(line) - 1);

    (void)what;
    if (size <= 0 && worker->lock == NULL) {
        worker_end(worker);
    } else if (size <= 0) {
        event_del(worker->input);
        if (quorlock_lock_release(worker->lock, on_released, worker) != 0) {
            die("%s", quorlock_client_error(worker->client));
        }
    } else if (worker->lock == NULL || quorlock_lock_valid_ms(worker->lock) > 0) {
        worker->balance += strtoll(line, NULL, 10);
        (void)account_write(worker->db, worker->balance, 0);
        say("written");
    } else {
        say("too-late");
    }
}

static void worker_enter(struct worker *worker)
{
    /* The clock first: however long it takes from here to the next line, the sum is not too late. */
    int64_t until_us = clock_us();

    if (worker->lock != NULL) until_us += (int64_t)quorlock_lock_valid_ms(worker->lock) * 1000;
    worker->balance = account_read(worker->db);
    say("granted until_us=%lld balance=%lld", (long long)until_us, (long long)worker->balance);
    if (event_add(worker->input, NULL) != 0) die("no event for stdin");
}

/* How many nodes had no vote because they may have forgotten one. */
static unsigned quarantined(const struct quorlock_result *result)
{
    unsigned n = 0;

    for (size_t i = 0; i < result->n_votes; i++) n += result->votes[i]->outcome == QUORLOCK_VOTE_QUARANTINED;
    return n;
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct worker *worker = arg;

    if (result->status == QUORLOCK_OK) {
        worker_enter(worker);
        return;
    }
    say("refused status=%s quarantined=%u: %s", quorlock_status_name(result->status), quarantined(result),
        result->text);
    quorlock_lock_free(lock);
    worker_acquire(worker, 0);
}

static void worker_acquire(struct worker *worker, uint32_t wait_ms)
{
    /* No renewal: the job must be done within one lease, or the loss callback comes. */
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = wait_ms, .renew_ms = QUORLOCK_RENEW_NEVER};
    const char *key = "account";

    if (quorlock_lock_new(&worker->lock, worker->client, &key, 1, &options) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
    quorlock_lock_set_on_lost(worker->lock, on_lost, worker);
    if (quorlock_lock_acquire(worker->lock, on_acquired, worker) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
}

int main(int argc, char **argv)
{
    struct worker worker = {0};
    int guard = argc > 1 && strcmp(argv[1], "off") == 0 ? QUORLOCK_GUARD_OFF : QUORLOCK_GUARD_CONNECTION;

    if (argc < 3) die("usage: lost_master connection|off DATABASE [NODE...]");
    worker.base = example_base();
    worker.db = account_open(argv[2]);
    worker.input = event_new(worker.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &worker);
    if (worker.input == NULL) die("no event for stdin");
    if (argc > 3) {
        worker.client = example_client(worker.base, (const char *const *)argv + 3, (size_t)(argc - 3), guard, 0);
        worker_acquire(&worker, QUORLOCK_TRY_ONCE);
    } else {
        worker_enter(&worker);
    }
    event_base_dispatch(worker.base);
    event_free(worker.input);
    event_base_free(worker.base);
    sqlite3_close(worker.db);
    return 0;
}
