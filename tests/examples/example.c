/* SPDX-License-Identifier: BSD-3-Clause */
#include "example.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BUSY_LIMIT_MS 60000

int64_t clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void pause_ms(unsigned ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

void say(const char *format, ...)
{
    va_list arguments;

    flockfile(stdout);
    printf("%lld ", (long long)clock_us());
    va_start(arguments, format);
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
}

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void on_log(int level, const char *text, void *arg)
{
    (void)arg;
    if (level >= QUORLOCK_LOG_INFO) fprintf(stderr, "quorlock: %s\n", text);
}

struct event_base *example_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0) {
        base = event_base_new_with_config(config);
    }
    if (base == NULL) die("no event loop");
    event_config_free(config);
    return base;
}

quorlock_client *example_client_with(struct event_base *base, const char *const *nodes, size_t n_nodes,
                                     const struct quorlock_client_options *more)
{
    struct quorlock_error error;
    quorlock_client *client = NULL;
    struct quorlock_client_options options = *more;
    const char *max_lease = getenv("EXAMPLE_MAX_LEASE_MS");

    options.size = sizeof(options);
    options.nodes = nodes;
    options.n_nodes = n_nodes;
    /* One name for the set, as clients may reach its nodes under different addresses. */
    options.set_name = "examples";
    if (options.max_lease_ms == 0 && max_lease != NULL) options.max_lease_ms = (uint32_t)strtoul(max_lease, NULL, 10);
    options.log = on_log;
    if (quorlock_client_new(&client, base, &options, &error) != 0) die("%s", error.text);
    return client;
}

quorlock_client *example_client(struct event_base *base, const char *const *nodes, size_t n_nodes, int guard,
                                uint32_t max_lease_ms)
{
    const struct quorlock_client_options more = {.guard = guard, .max_lease_ms = max_lease_ms};

    return example_client_with(base, nodes, n_nodes, &more);
}

quorlock_sync_client *example_open(const char *const *nodes, size_t n_nodes, uint32_t max_lease_ms)
{
    struct quorlock_error error;
    quorlock_sync_client *client = NULL;
    const struct quorlock_client_options options = {
        .size = sizeof(options),
        .nodes = nodes,
        .n_nodes = n_nodes,
        .max_lease_ms = max_lease_ms,
        .set_name = "examples",
        .log = on_log,
    };

    if (quorlock_sync_client_new(&client, &options, &error) != 0) die("%s", error.text);
    return client;
}

quorlock_sync_lock *example_lock(quorlock_sync_client *client, const char *key,
                                 const struct quorlock_lock_options *options)
{
    struct quorlock_error error;
    quorlock_sync_lock *lock = NULL;

    if (quorlock_sync_lock_new(&lock, client, &key, 1, options, &error) != 0) die("%s", error.text);
    return lock;
}

static char *sql_text(const char *format, va_list arguments)
{
    char *sql = sqlite3_vmprintf(format, arguments);

    if (sql == NULL) die("no memory");
    return sql;
}

void sql_run(sqlite3 *db, const char *format, ...)
{
    va_list arguments;
    char *sql;

    va_start(arguments, format);
    sql = sql_text(format, arguments);
    va_end(arguments);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) die("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
}

int64_t sql_number(sqlite3 *db, const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    va_list arguments;
    char *sql;
    int64_t number;

    va_start(arguments, format);
    sql = sql_text(format, arguments);
    va_end(arguments);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW) {
        die("%s: %s", sql, sqlite3_errmsg(db));
    }
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return number;
}

sqlite3 *account_open(const char *path)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(db, BUSY_LIMIT_MS) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) != SQLITE_OK) {
        die("%s: %s", path, sqlite3_errmsg(db));
    }
    return db;
}

int64_t account_read(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    int64_t balance;

    if (sqlite3_prepare_v2(db, "SELECT balance FROM account", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        die("account: %s", sqlite3_errmsg(db));
    }
    balance = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return balance;
}

/* One statement is one transaction: nothing comes between the comparison of the tokens and the change. Tells
 * whether a row was changed. */
static bool account_update(sqlite3 *db, const char *sql, int64_t balance, uint64_t fence)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, (int64_t)fence) != SQLITE_OK ||
        (sqlite3_bind_parameter_count(statement) > 1 && sqlite3_bind_int64(statement, 2, balance) != SQLITE_OK) ||
        sqlite3_step(statement) != SQLITE_DONE) {
        die("account: %s", sqlite3_errmsg(db));
    }
    sqlite3_finalize(statement);
    return sqlite3_changes(db) == 1;
}

bool account_claim(sqlite3 *db, uint64_t fence)
{
    return account_update(db, "UPDATE account SET fence = ?1 WHERE fence < ?1", 0, fence);
}

bool account_write(sqlite3 *db, int64_t balance, uint64_t fence)
{
    return account_update(db, "UPDATE account SET balance = ?2, fence = ?1 WHERE fence <= ?1", balance, fence);
}
