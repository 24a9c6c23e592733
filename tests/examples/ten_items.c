/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ten_items.c - a shop with few items and very many buyers, all of them in one process
 *
 * usage: ten_items BUYERS WAIT_MS MOMENT_MS DATABASE [NODE...]
 *
 * Every buyer asks for the lock, looks at the stock, takes a moment to pay, writes the stock that it saw less
 * one and its order, and only after the commit gives the lock back. Without nodes they work without a lock.
 *
 *  - However many wait, the nodes see one of them: those of one process queue behind it, in order of
 *    coming, and cost a few hundred bytes each.
 *  - When the last item is sold, no buyer needs to wait any more: quorlock_lock_cancel() ends the waits at once.
 *  - wait_ms ends the wait of a buyer that was not served by then.
 *  - Every acquire that began has exactly one callback, however it ends.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "example.h"

#define LEASE_MS 2000

struct shop;

struct buyer {
    struct shop *shop;
    quorlock_lock *lock;
    int64_t seen; /* items left when it looked */
    unsigned told;
};

struct shop {
    struct event_base *base;
    quorlock_client *client; /* NULL: sells without a lock */
    sqlite3 *db;
    struct buyer *buyers;
    size_t n_buyers, n_told, n_inside, n_sold;
    size_t n_canceled, n_refused; /* left as the stock was gone; sent home by the wait bound */
    uint32_t latest_ms;           /* told last */
    struct timeval moment;
    size_t bytes_most; /* that the process had allocated */
};

/* ---- memory ---- */

/* Seldom, because malloc looks through its whole heap. */
static void count_bytes(struct shop *shop)
{
    size_t bytes = mallinfo2().uordblks;

    if (bytes > shop->bytes_most) shop->bytes_most = bytes;
}

static long resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    char line[128] = "";
    char *second;

    if (file == NULL || fgets(line, sizeof(line), file) == NULL) die("/proc/self/statm cannot be read");
    fclose(file);
    (void)strtol(line, &second, 10);
    return strtol(second, NULL, 10) * sysconf(_SC_PAGESIZE);
}

/* ---- the stock ---- */

static int64_t stock_read(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    int64_t left;

    if (sqlite3_prepare_v2(db, "SELECT left FROM stock", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        die("stock: %s", sqlite3_errmsg(db));
    }
    left = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return left;
}

/* One transaction; its commit is on disk when this returns. */
static void stock_write(sqlite3 *db, int64_t left)
{
    char sql[160];

    snprintf(sql, sizeof(sql),
             "BEGIN IMMEDIATE; UPDATE stock SET left = %lld; INSERT INTO orders (shop) VALUES (%d); COMMIT",
             (long long)left, (int)getpid());
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) die("stock: %s", sqlite3_errmsg(db));
}

/* ---- buyers ---- */

static void shop_close_if_empty(struct shop *shop)
{
    if (shop->n_told < shop->n_buyers || shop->n_inside > 0) return;
    if (shop->client != NULL) quorlock_client_close(shop->client, NULL, NULL);
    shop->client = NULL;
}

/* Nothing is left: the waiters need not wait. */
static void shop_sold_out(struct shop *shop)
{
    for (size_t i = 0; i < shop->n_buyers; i++) {
        const struct buyer *buyer = &shop->buyers[i];

        if (buyer->told == 0 && buyer->lock != NULL) quorlock_lock_cancel(buyer->lock);
    }
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct buyer *buyer = arg;

    if (result->status == QUORLOCK_ERR_LOST) say("expired");
    quorlock_lock_free(lock);
    buyer->lock = NULL;
    buyer->shop->n_inside--;
    shop_close_if_empty(buyer->shop);
}

static void buyer_leave(struct buyer *buyer)
{
    struct shop *shop = buyer->shop;

    if (buyer->lock == NULL) {
        shop->n_inside--;
    } else if (quorlock_lock_release(buyer->lock, on_released, buyer) != 0) {
        die("%s", quorlock_client_error(shop->client));
    }
}

static void on_paid(evutil_socket_t fd, short what, void *arg)
{
    struct buyer *buyer = arg;
    struct shop *shop = buyer->shop;

    (void)fd;
    (void)what;
    /* Not valid any more: another buyer may be inside, and nothing is written. */
    if (buyer->lock != NULL && quorlock_lock_valid_ms(buyer->lock) == 0) {
        say("too-late");
    } else {
        stock_write(shop->db, buyer->seen - 1);
        shop->n_sold++;
        if (buyer->lock != NULL) say("sold left=%lld", (long long)buyer->seen - 1);
        if (buyer->seen == 1) shop_sold_out(shop);
    }
    buyer_leave(buyer);
}

static void buyer_enter(struct buyer *buyer)
{
    struct shop *shop = buyer->shop;

    shop->n_inside++;
    buyer->seen = stock_read(shop->db);
    if (buyer->seen > 0) {
        if (event_base_once(shop->base, -1, EV_TIMEOUT, on_paid, buyer, &shop->moment) != 0) die("no timer");
        return;
    }
    /* Others, elsewhere, bought the rest. */
    shop_sold_out(shop);
    buyer_leave(buyer);
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct buyer *buyer = arg;
    struct shop *shop = buyer->shop;

    if (++buyer->told > 1) die("buyer %zu was told twice", (size_t)(buyer - shop->buyers));
    if (shop->n_told++ % 256 == 0) count_bytes(shop);
    if (result->elapsed_ms > shop->latest_ms) shop->latest_ms = result->elapsed_ms;
    if (result->status == QUORLOCK_OK) {
        buyer_enter(buyer);
        return;
    }
    if (result->status == QUORLOCK_ERR_CANCELED) {
        shop->n_canceled++;
    } else if (result->status == QUORLOCK_ERR_HELD || result->status == QUORLOCK_ERR_TIMEDOUT) {
        shop->n_refused++;
    } else {
        die("no lock: %s", result->text);
    }
    quorlock_lock_free(lock);
    buyer->lock = NULL;
    shop_close_if_empty(shop);
}

static void buyer_queue(struct buyer *buyer, uint32_t wait_ms)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS, .wait_ms = wait_ms};
    quorlock_client *client = buyer->shop->client;
    const char *key = "stock";

    if (quorlock_lock_new(&buyer->lock, client, &key, 1, &options) != 0 ||
        quorlock_lock_acquire(buyer->lock, on_acquired, buyer) != 0) {
        die("%s", quorlock_client_error(client));
    }
}

/* ---- the shop ---- */

static void shop_open(struct shop *shop, const char *const *nodes, size_t n_nodes, uint32_t wait_ms)
{
    const size_t n = shop->n_buyers;
    long resident = resident_bytes();
    size_t bytes;

    if (n_nodes > 0) shop->client = example_client(shop->base, nodes, n_nodes, QUORLOCK_GUARD_DEFAULT, 0);
    bytes = shop->bytes_most = mallinfo2().uordblks;
    for (size_t i = 0; i < n; i++) {
        shop->buyers[i].shop = shop;
        if (n_nodes > 0) {
            buyer_queue(&shop->buyers[i], wait_ms);
        } else {
            buyer_enter(&shop->buyers[i]);
        }
    }
    count_bytes(shop);
    say("waiting buyers=%zu bytes_each=%zu resident_each=%ld", n, (shop->bytes_most - bytes) / n,
        (resident_bytes() - resident) / (long)n);
    event_base_dispatch(shop->base);
    say("closed told=%zu sold=%zu canceled=%zu refused=%zu latest_ms=%u bytes_each_most=%zu", shop->n_told,
        shop->n_sold, shop->n_canceled, shop->n_refused, shop->latest_ms, (shop->bytes_most - bytes) / n);
}

int main(int argc, char **argv)
{
    struct shop shop = {0};
    uint32_t moment_ms;

    if (argc < 5) die("usage: ten_items BUYERS WAIT_MS MOMENT_MS DATABASE [NODE...]");
    shop.n_buyers = (size_t)strtoul(argv[1], NULL, 10);
    moment_ms = (uint32_t)strtoul(argv[3], NULL, 10);
    shop.moment = (struct timeval){.tv_sec = moment_ms / 1000, .tv_usec = (long)(moment_ms % 1000) * 1000};
    shop.base = example_base();
    shop.db = account_open(argv[4]);
    shop.buyers = calloc(shop.n_buyers, sizeof(struct buyer));
    if (shop.n_buyers == 0 || shop.buyers == NULL) die("no buyers");
    shop_open(&shop, (const char *const *)argv + 5, (size_t)(argc - 5), (uint32_t)strtoul(argv[2], NULL, 10));
    free(shop.buyers);
    event_base_free(shop.base);
    sqlite3_close(shop.db);
    return 0;
}
