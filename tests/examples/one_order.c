/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_order.c - one order a user, however often and wherever the user presses the button
 *
 * usage: one_order REQUESTS FIRST_USER USERS DATABASE [NODE...]
 *
 * One server with so many requests at once, each a thread, of the users FIRST_USER, FIRST_USER + 1 ... in turn;
 * start several. A request looks whether its user has an order, and makes one if not. Without nodes the
 * requests work without a lock.
 *
 * The key carries the user: requests of one user come one after the other, and different users do not wait for
 * one another. One lock for all of them would be right, too, and 200 times as slow for 200 users.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

#define LEASE_MS 10000
#define PAY_MS   100

struct server {
    quorlock_sync_client *client; /* NULL: works without a lock */
    const char *database;
};

struct request {
    const struct server *server;
    pthread_t thread;
    long user;
};

/* False: the lock was lost meanwhile, and nothing was written. */
static bool order(const quorlock_sync_lock *lock, sqlite3 *db, long user)
{
    if (sql_number(db, "SELECT count(*) FROM orders WHERE user = %ld", user) > 0) {
        say("has-one user=%ld", user);
        return true;
    }
    say("inside user=%ld", user);
    pause_ms(PAY_MS);
    if (lock != NULL && quorlock_sync_lock_valid_ms(lock) == 0) return false;
    sql_run(db, "INSERT INTO orders (user) VALUES (%ld)", user);
    say("ordered user=%ld", user);
    return true;
}

static void *request_run(void *arg)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    const struct request *request = arg;
    struct quorlock_sync_result result = {.size = sizeof(result)};
    quorlock_sync_lock *lock = NULL;
    sqlite3 *db = account_open(request->server->database);
    char key[32];
    bool done = false;

    snprintf(key, sizeof(key), "order:%ld", request->user);
    if (request->server->client != NULL) lock = example_lock(request->server->client, key, &options);
    while (!done) {
        if (lock != NULL && quorlock_sync_lock_acquire(lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
        done = order(lock, db, request->user);
        if (lock != NULL) (void)quorlock_sync_lock_release(lock, NULL);
    }
    quorlock_sync_lock_free(lock);
    sqlite3_close(db);
    return NULL;
}

int main(int argc, char **argv)
{
    struct server server = {0};
    struct request *requests;
    long n_requests;

    if (argc < 5) die("usage: one_order REQUESTS FIRST_USER USERS DATABASE [NODE...]");
    n_requests = strtol(argv[1], NULL, 10);
    requests = calloc((size_t)n_requests, sizeof(*requests));
    server.database = argv[4];
    if (requests == NULL) die("no requests");
    if (argc > 5) server.client = example_open((const char *const *)argv + 5, (size_t)(argc - 5), 0);
    for (long i = 0; i < n_requests; i++) {
        requests[i].server = &server;
        requests[i].user = strtol(argv[2], NULL, 10) + i % strtol(argv[3], NULL, 10);
        if (pthread_create(&requests[i].thread, NULL, request_run, &requests[i]) != 0) die("no thread");
    }
    for (long i = 0; i < n_requests; i++) pthread_join(requests[i].thread, NULL);
    if (server.client != NULL) quorlock_sync_client_close(server.client);
    free(requests);
    return 0;
}
