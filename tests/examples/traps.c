/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traps.c - four ways to make a lock of one's own with Redis that look right and are wrong, and the right one
 *
 * usage: traps two-commands|blind-delete|early-release|fixed-lease|right DATABASE NODE...
 *
 * Takes the lock, reads the account, adds an amount, gives the lock back. Each wrong way shows one thing; all
 * use the first node only, as one server alone is enough to show what is wrong:
 *
 *   two-commands   SETNX and then EXPIRE: a process that dies in between leaves a key that never ends
 *   blind-delete   deletes the key without looking whose it is: after one's own lease it is another's
 *   early-release  gives the lock back before the COMMIT: the next one reads what was before it
 *   fixed-lease    trusts that the work takes less than the lease, and neither renews nor asks
 *   right          the library
 *
 * Before each step it waits for a line on stdin, so that one can look, or kill it. The line before the write is
 * the amount.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "example.h"

#define LEASE_MS 2000
#define KEY      "account"
#define POLL_MS  10

struct worker {
    const char *way;
    sqlite3 *db;
    redisContext *redis; /* the wrong ways */
    char token[32];
    quorlock_blocking *client; /* the right one */
    quorlock_blocking_lock *lock;
};

static int64_t await_line(void)
{
    char line[32];

    if (fgets(line, sizeof(line), stdin) == NULL) die("stdin ended before the work was done");
    return strtoll(line, NULL, 10);
}

/* True where the answer is OK, or a number above 0. */
static bool redis_says_yes(struct worker *worker, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;
    bool yes;

    va_start(arguments, format);
    reply = redisvCommand(worker->redis, format, arguments);
    va_end(arguments);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) die("no answer from the node");
    yes = reply->type == REDIS_REPLY_INTEGER ? reply->integer > 0 : reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return yes;
}

/* ---- the four wrong ways ---- */

static void wrong_lock(struct worker *worker)
{
    if (strcmp(worker->way, "two-commands") != 0) {
        while (!redis_says_yes(worker, "SET " KEY " %s NX PX %d", worker->token, LEASE_MS)) pause_ms(POLL_MS);
        return;
    }
    while (!redis_says_yes(worker, "SETNX " KEY " %s", worker->token)) {
        say("taken-by-another");
        pause_ms(POLL_MS);
    }
    say("between");
    (void)await_line();
    (void)redis_says_yes(worker, "PEXPIRE " KEY " %d", LEASE_MS);
}

static void wrong_unlock(struct worker *worker)
{
    static const char *const compare_and_delete =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    bool deleted;

    if (strcmp(worker->way, "blind-delete") == 0) {
        deleted = redis_says_yes(worker, "DEL " KEY);
    } else {
        deleted = redis_says_yes(worker, "EVAL %s 1 " KEY " %s", compare_and_delete, worker->token);
    }
    say("released deleted=%d", deleted);
}

static void wrong_way(struct worker *worker)
{
    int64_t balance;

    wrong_lock(worker);
    balance = sql_number(worker->db, "SELECT balance FROM account");
    say("granted balance=%lld", (long long)balance);
    balance += await_line();
    sql_run(worker->db, "BEGIN IMMEDIATE; UPDATE account SET balance = %lld", (long long)balance);
    if (strcmp(worker->way, "early-release") == 0) {
        wrong_unlock(worker);
        (void)await_line();
        sql_run(worker->db, "COMMIT");
        say("written");
    } else {
        sql_run(worker->db, "COMMIT");
        say("written");
        (void)await_line();
        wrong_unlock(worker);
    }
}

/* ---- the right one ---- */

static void right_way(struct worker *worker)
{
    struct quorlock_blocking_result result = {.size = sizeof(result)};
    int64_t balance;

    if (quorlock_blocking_acquire(worker->lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
    balance = sql_number(worker->db, "SELECT balance FROM account");
    say("granted balance=%lld", (long long)balance);
    balance += await_line();
    if (quorlock_blocking_valid_ms(worker->lock) > 0) {
        sql_run(worker->db, "BEGIN IMMEDIATE; UPDATE account SET balance = %lld; COMMIT", (long long)balance);
        say("written");
    } else {
        say("lost");
    }
    (void)await_line();
    (void)quorlock_blocking_release(worker->lock, &result);
    say("released expired=%d", result.expired);
}

int main(int argc, char **argv)
{
    const struct quorlock_options options = {
        .size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = QUORLOCK_WAIT_FOREVER};
    struct worker worker = {0};

    if (argc < 4 || strchr(argv[3], ':') == NULL) die("usage: traps WAY DATABASE NODE...");
    worker.way = argv[1];
    worker.db = account_open(argv[2]);
    if (strcmp(worker.way, "right") == 0) {
        worker.client = example_open((const char *const *)argv + 3, (size_t)(argc - 3), 0);
        worker.lock = example_lock(worker.client, KEY, &options);
        right_way(&worker);
        quorlock_blocking_free(worker.lock);
        quorlock_blocking_close(worker.client);
    } else {
        snprintf(worker.token, sizeof(worker.token), "worker %d", (int)getpid());
        worker.redis = redisConnect("127.0.0.1", (int)strtol(strchr(argv[3], ':') + 1, NULL, 10));
        if (worker.redis == NULL || worker.redis->err != 0) die("%s: no connection", argv[3]);
        wrong_way(&worker);
        redisFree(worker.redis);
    }
    sqlite3_close(worker.db);
    return 0;
}
