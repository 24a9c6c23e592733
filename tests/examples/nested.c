/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested.c - a function that locks the account calls another one that locks it, too
 *
 * usage: nested majority|all plain|redisson OWNER|- DATABASE NODE...
 *
 * deposit() may be called by anybody, so it takes the lock itself. close_day() does some work on the same
 * account and calls deposit() in the middle of it, with the lock in its hands. Both name the same owner, so the
 * second acquire succeeds at once and counts, and the last release gives the lock back. An event loop has no
 * threads to tell callers apart by: the owner is a name of yours, one for each piece of work that must keep the
 * others out, as a request's number. With - there is no owner, and deposit() waits for close_day(), which waits
 * for deposit().
 *
 * Before each of its three steps it waits for a line on stdin, for a look at the servers.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "example.h"

#define LEASE_MS        2000
#define DEPOSIT_WAIT_MS 500
#define DEPOSIT         5
#define BONUS           1

struct worker;
typedef void (*then_fn)(struct worker *);

struct worker {
    struct event *input;
    then_fn next; /* with the next line of stdin */
    quorlock_client *client;
    const char *owner;
    sqlite3 *db;
    quorlock_lock *day;       /* close_day()'s hold */
    quorlock_lock *depositor; /* deposit()'s */
    then_fn deposited;
    int64_t balance; /* as the day began with it */
};

static void await_line(struct worker *worker, then_fn next)
{
    worker->next = next;
    if (event_add(worker->input, NULL) != 0) die("no event for stdin");
}

static void on_input(evutil_socket_t fd, short what, void *arg)
{
    struct worker *worker = arg;
    char byte;

    (void)what;
    do {
        if (read(fd, &byte, 1) != 1) die("stdin ended before the work was done");
    } while (byte != '\n');
    worker->next(worker);
}

/* Comes before validity ends, to every hold. */
static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct worker *worker = arg;

    say("lost hold=%s valid_ms=%u: %s", lock == worker->day ? "day" : "deposit", quorlock_lock_valid_ms(lock),
        loss->text);
}

/* Takes the account's lock for this owner; its first hold or one more. */
static quorlock_lock *account_lock(struct worker *worker, uint32_t wait_ms, quorlock_lock_cb acquired)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = wait_ms, .owner = worker->owner};
    const char *key = "account";
    quorlock_lock *lock;

    if (quorlock_lock_new(&lock, worker->client, &key, 1, &options) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
    quorlock_lock_set_on_lost(lock, on_lost, worker);
    if (quorlock_lock_acquire(lock, acquired, worker) != 0) die("%s", quorlock_client_error(worker->client));
    return lock;
}

/* Not valid any more: nothing is written, for another owner may have the account by now. */
static void account_add(struct worker *worker, const quorlock_lock *lock, int64_t amount)
{
    if (quorlock_lock_valid_ms(lock) == 0) {
        say("too-late");
    } else {
        (void)account_write(worker->db, account_read(worker->db) + amount, 0);
    }
}

/* ---- the inner function ---- */

static void deposit_end(struct worker *worker)
{
    quorlock_lock_free(worker->depositor);
    worker->depositor = NULL;
    worker->deposited(worker);
}

static void on_deposit_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    (void)lock;
    say("inner-released status=%s", quorlock_status_name(result->status));
    deposit_end(arg);
}

static void deposit_make(struct worker *worker)
{
    account_add(worker, worker->depositor, DEPOSIT);
    if (quorlock_lock_release(worker->depositor, on_deposit_released, worker) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
}

static void on_deposit_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct worker *worker = arg;

    (void)lock;
    if (result->status != QUORLOCK_OK) {
        say("inner-refused status=%s waited_ms=%u: %s", quorlock_status_name(result->status), result->elapsed_ms,
            result->text);
        deposit_end(worker);
        return;
    }
    say("inner-granted owner=%s waited_ms=%u", result->token, result->elapsed_ms);
    await_line(worker, deposit_make);
}

static void deposit(struct worker *worker, then_fn deposited)
{
    worker->deposited = deposited;
    worker->depositor = account_lock(worker, DEPOSIT_WAIT_MS, on_deposit_acquired);
}

/* ---- the outer function ---- */

static void on_day_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct worker *worker = arg;

    say("outer-released status=%s", quorlock_status_name(result->status));
    quorlock_lock_free(lock);
    quorlock_client_close(worker->client, NULL, NULL);
}

static void day_finish(struct worker *worker)
{
    if (quorlock_lock_valid_ms(worker->day) > 0 && account_read(worker->db) != worker->balance + DEPOSIT) {
        say("not-deposited balance=%lld", (long long)account_read(worker->db));
    }
    account_add(worker, worker->day, BONUS);
    if (quorlock_lock_release(worker->day, on_day_released, worker) != 0) {
        die("%s", quorlock_client_error(worker->client));
    }
}

static void day_deposited(struct worker *worker)
{
    await_line(worker, day_finish);
}

static void day_deposit(struct worker *worker)
{
    worker->balance = account_read(worker->db);
    deposit(worker, day_deposited);
}

static void on_day_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    (void)lock;
    if (result->status != QUORLOCK_OK) die("no lock: %s", result->text);
    say("outer-granted owner=%s", result->token);
    await_line(arg, day_deposit);
}

static void close_day(struct worker *worker)
{
    worker->day = account_lock(worker, 0, on_day_acquired);
}

int main(int argc, char **argv)
{
    struct worker worker = {0};
    struct quorlock_client_options more = {0};
    struct event_base *base = example_base();

    if (argc < 6) die("usage: nested majority|all plain|redisson OWNER|- DATABASE NODE...");
    more.policy = strcmp(argv[1], "all") == 0 ? QUORLOCK_POLICY_ALL : QUORLOCK_POLICY_MAJORITY;
    more.dialect = strcmp(argv[2], "redisson") == 0 ? QUORLOCK_DIALECT_REDISSON : QUORLOCK_DIALECT_PLAIN;
    if (strcmp(argv[3], "-") != 0) worker.owner = argv[3];
    worker.db = account_open(argv[4]);
    worker.client = example_client_with(base, (const char *const *)argv + 5, (size_t)(argc - 5), &more);
    worker.input = event_new(base, STDIN_FILENO, EV_READ, on_input, &worker);
    if (worker.input == NULL) die("no event for stdin");
    close_day(&worker);
    say("waiting");
    event_base_dispatch(base);
    event_free(worker.input);
    event_base_free(base);
    sqlite3_close(worker.db);
    return 0;
}
