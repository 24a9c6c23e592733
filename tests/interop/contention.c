/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contention.c - one contender among many for one key, with a counter that only the lock protects
 *
 * The counter is a file with one number of COUNTER_DIGITS digits. A contender inside reads it, takes HOLD_MS
 * and writes the next number: of two at once, one of the increments is lost.
 *
 * FILE.trace shows which contenders these were; each one appends to it: "enter" before the counter is read and
 * "leave" after it is written, before the lock is given back; "late" where it was not, for the grant was over.
 * So the order of its lines is an order of events.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ours.h"

#define COUNTER_DIGITS 12
#define HOLD_MS        2
#define THINK_MS_MAX   40 /* between two turns, at random */

static void try_acquire(struct slot *);
static void leave(struct slot *);

static uint64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wait_ms(struct contention *contention, uint32_t ms)
{
    const struct timeval span = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    if (event_add(contention->timer, &span) != 0) die("no timer");
}

/* One write a line: O_APPEND keeps lines whole. */
static void trace(struct slot *slot, const char *what)
{
    const char *owner = slot->contention.bare ? NULL : quorlock_lock_token(slot->lock);
    struct timespec now;
    char line[256];
    int length;

    clock_gettime(CLOCK_REALTIME, &now);
    length = snprintf(line, sizeof(line), "%lld.%06ld %s %s ours %s\n", (long long)now.tv_sec, now.tv_nsec / 1000,
                      slot->name, what, owner != NULL ? owner : "-");
    if (write(slot->contention.trace, line, (size_t)length) != length) die("the trace cannot be written");
}

static void end(struct slot *slot)
{
    struct contention *contention = &slot->contention;

    close(contention->file);
    close(contention->trace);
    event_free(contention->timer);
    contention->timer = NULL;
    say(slot, "contended %" PRIu32 " %" PRIu32, contention->turns, contention->late);
}

static void enter(struct slot *slot)
{
    struct contention *contention = &slot->contention;
    char text[COUNTER_DIGITS + 1] = "";

    trace(slot, "enter");
    if (pread(contention->file, text, COUNTER_DIGITS, 0) != COUNTER_DIGITS) die("the counter cannot be read");
    contention->counter = strtoull(text, NULL, 10);
    contention->inside = true;
    wait_ms(contention, HOLD_MS);
}

static void write_counter(struct slot *slot)
{
    struct contention *contention = &slot->contention;
    char text[COUNTER_DIGITS + 1];

    contention->inside = false;
    if (!contention->bare && quorlock_lock_valid_ms(slot->lock) == 0) {
        contention->late++;
        trace(slot, "late");
    } else {
        (void)snprintf(text, sizeof(text), "%0*" PRIu64, COUNTER_DIGITS, contention->counter + 1);
        if (pwrite(contention->file, text, COUNTER_DIGITS, 0) != COUNTER_DIGITS) die("the counter cannot be set");
        contention->turns++;
        trace(slot, "leave");
    }
    leave(slot);
}

/* Outside again; the next turn comes after a pause. */
static void pause_turn(struct slot *slot)
{
    if (clock_ms() >= slot->contention.end_ms) {
        end(slot);
    } else {
        wait_ms(&slot->contention, (uint32_t)rand() % (THINK_MS_MAX + 1));
    }
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    pause_turn(arg);
}

static void leave(struct slot *slot)
{
    if (slot->contention.bare) {
        pause_turn(slot);
    } else if (quorlock_lock_release(slot->lock, on_released, slot) != 0) {
        die("release: %s", quorlock_client_error(slot->client));
    }
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct slot *slot = arg;

    slot->contention.acquiring = false;
    if (result->status == QUORLOCK_OK) {
        event_del(slot->contention.timer);
        enter(slot);
    } else if (result->status == QUORLOCK_ERR_CANCELED) {
        end(slot);
    } else {
        die("%s: acquire: %s", slot->name, result->text);
    }
}

static void try_acquire(struct slot *slot)
{
    struct contention *contention = &slot->contention;
    uint64_t now_ms = clock_ms();

    if (contention->bare) {
        enter(slot);
        return;
    }
    if (quorlock_lock_acquire(slot->lock, on_acquired, slot) != 0) {
        die("acquire: %s", quorlock_client_error(slot->client));
    }
    contention->acquiring = true;
    /* No contender waits longer than the test lasts. */
    wait_ms(contention, contention->end_ms > now_ms ? (uint32_t)(contention->end_ms - now_ms) : 0);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct slot *slot = arg;

    if (slot->contention.acquiring) {
        (void)quorlock_lock_cancel(slot->lock);
    } else if (slot->contention.inside) {
        write_counter(slot);
    } else {
        try_acquire(slot);
    }
}

void contention_start(struct slot *slot, const char *key, uint32_t lease_ms, const char *path, uint32_t length_ms)
{
    struct contention *contention = &slot->contention;
    char trace_path[PATH_MAX];

    *contention = (struct contention){.bare = key == NULL, .file = open(path, O_RDWR | O_CLOEXEC)};
    if (contention->file < 0) die("%s cannot be opened", path);
    (void)snprintf(trace_path, sizeof(trace_path), "%s.trace", path);
    contention->trace = open(trace_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (contention->trace < 0) die("%s cannot be opened", trace_path);
    contention->timer = evtimer_new(slot->base, on_timer, slot);
    if (contention->timer == NULL) die("no timer");
    contention->end_ms = clock_ms() + length_ms;
    if (key != NULL) slot_lock(slot, key, lease_ms, 0);
    wait_ms(contention, 0);
}
