/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * example.h - what the examples share, so that each of them shows its own matter only: a loop and a client as
 * they should be made, and the thing that the lock protects
 *
 * The protected thing is an account in a SQLite file, table account(id, balance, fence) with one row. Every
 * worker reads the balance, takes its time, and writes back the sum: two at once, and one of the sums is lost.
 * Some protect other tables in such a file.
 *
 * Some live on an event loop; those that follow one thing after the other use sync.h, from several threads.
 */
#ifndef EXAMPLES_EXAMPLE_H
#define EXAMPLES_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <quorlock/sync.h>
#include <sqlite3.h>

/* All of these end the process with a line on stderr where they cannot do their work. */

/* example_base - a loop whose timers are exact to less than a millisecond */
struct event_base *example_base(void);

/* example_client - a client of these nodes, guard as in enum quorlock_guard; the library's log goes to stderr.
 * max_lease_ms 0: EXAMPLE_MAX_LEASE_MS of the environment, which all programs on these nodes share. */
quorlock_client *example_client(struct event_base *base, const char *const *nodes, size_t n_nodes, int guard,
                                uint32_t max_lease_ms);

/* example_client_with - the same with more options: policy, dialect, guard ... */
quorlock_client *example_client_with(struct event_base *base, const char *const *nodes, size_t n_nodes,
                                     const struct quorlock_client_options *more);

/* example_open - a client for callers without a loop, from any thread; max_lease_ms 0: the default of 30 s */
quorlock_sync_client *example_open(const char *const *nodes, size_t n_nodes, uint32_t max_lease_ms);

/* example_lock - a lock of one key on it */
quorlock_sync_lock *example_lock(quorlock_sync_client *client, const char *key,
                                 const struct quorlock_lock_options *options);

/* sql_run - one or more statements, formatted as by sqlite3_mprintf: a text is written %Q. sql_number - the
 * first column of the first row that they give, 0 for NULL. */
void sql_run(sqlite3 *db, const char *format, ...);
int64_t sql_number(sqlite3 *db, const char *format, ...);

/* account_open - the file as a database should be opened for work by many: WAL, and patient with others */
sqlite3 *account_open(const char *path);
int64_t account_read(sqlite3 *db);

/* account_claim - shows the account a new fencing token; false where it has seen one as new or newer. From then
 * on it refuses the writes of all who were granted the lock before. */
bool account_claim(sqlite3 *db, uint64_t fence);

/* account_write - false where the account has seen a newer token than this */
bool account_write(sqlite3 *db, int64_t balance, uint64_t fence);

/* clock_us - microseconds since the machine started, in which lease and validity are reckoned */
int64_t clock_us(void);

/* pause_ms - stall for that time */
void pause_ms(unsigned ms);

/* say - one line on stdout, behind clock_us(); from any thread */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
