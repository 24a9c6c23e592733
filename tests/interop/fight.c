/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fight.c - one contender among many for one key, with a counter that only the lock protects
 *
 * The counter is a file with one number of COUNTER_DIGITS digits. Whoever is inside reads it, takes HOLD_MS and
 * writes the next number: two at once, and one of the increments is lost.
 *
 * Who that was is told by FILE.trace, which everybody appends to: "enter" before the counter is read and
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

static void fight_try(struct slot *);
static void fight_leave(struct slot *);

static uint64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void wait_ms(struct fight *fight, uint32_t ms)
{
    const struct timeval span = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    if (event_add(fight->timer, &span) != 0) die("no timer");
}

/* One write a line: O_APPEND keeps lines whole. */
static void trace(struct slot *slot, const char *what)
{
    const char *owner = slot->fight.bare ? NULL : quorlock_token(slot->lock);
    struct timespec now;
    char line[256];
    int length;

    clock_gettime(CLOCK_REALTIME, &now);
    length = snprintf(line, sizeof(line), "%lld.%06ld %s %s ours %s\n", (long long)now.tv_sec,
                      now.tv_nsec / 1000, slot->name, what, owner != NULL ? owner : "-");
    if (write(slot->fight.trace, line, (size_t)length) != length) die("the trace cannot be written");
}

static void fight_end(struct slot *slot)
{
    struct fight *fight = &slot->fight;

    close(fight->file);
    close(fight->trace);
    event_free(fight->timer);
    fight->timer = NULL;
    say(slot, "fought %" PRIu32 " %" PRIu32, fight->turns, fight->late);
}

static void fight_enter(struct slot *slot)
{
    struct fight *fight = &slot->fight;
    char text[COUNTER_DIGITS + 1] = "";

    trace(slot, "enter");
    if (pread(fight->file, text, COUNTER_DIGITS, 0) != COUNTER_DIGITS) die("the counter cannot be read");
    fight->counter = strtoull(text, NULL, 10);
    fight->inside = true;
    wait_ms(fight, HOLD_MS);
}

static void fight_write(struct slot *slot)
{
    struct fight *fight = &slot->fight;
    char text[COUNTER_DIGITS + 1];

    fight->inside = false;
    if (!fight->bare && quorlock_valid_ms(slot->lock) == 0) {
        fight->late++;
        trace(slot, "late");
    } else {
        (void)snprintf(text, sizeof(text), "%0*" PRIu64, COUNTER_DIGITS, fight->counter + 1);
        if (pwrite(fight->file, text, COUNTER_DIGITS, 0) != COUNTER_DIGITS) die("the counter cannot be set");
        fight->turns++;
        trace(slot, "leave");
    }
    fight_leave(slot);
}

/* Outside again; the next turn comes after a pause. */
static void fight_pause(struct slot *slot)
{
    if (clock_ms() >= slot->fight.end_ms) {
        fight_end(slot);
    } else {
        wait_ms(&slot->fight, (uint32_t)rand() % (THINK_MS_MAX + 1));
    }
}

static void on_released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    (void)lock;
    (void)result;
    fight_pause(arg);
}

static void fight_leave(struct slot *slot)
{
    if (slot->fight.bare) {
        fight_pause(slot);
    } else if (quorlock_release(slot->lock, on_released, slot) != 0) {
        die("release: %s", quorlock_client_error(slot->client));
    }
}

static void on_acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct slot *slot = arg;

    (void)lock;
    slot->fight.acquiring = false;
    if (result->status == QUORLOCK_OK) {
        event_del(slot->fight.timer);
        fight_enter(slot);
    } else if (result->status == QUORLOCK_CANCELED) {
        fight_end(slot);
    } else {
        die("%s: acquire: %s", slot->name, result->text);
    }
}

static void fight_try(struct slot *slot)
{
    struct fight *fight = &slot->fight;
    uint64_t now_ms = clock_ms();

    if (fight->bare) {
        fight_enter(slot);
        return;
    }
    if (quorlock_acquire(slot->lock, on_acquired, slot) != 0) {
        die("acquire: %s", quorlock_client_error(slot->client));
    }
    fight->acquiring = true;
    /* Nobody waits longer than the fight lasts. */
    wait_ms(fight, fight->end_ms > now_ms ? (uint32_t)(fight->end_ms - now_ms) : 0);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct slot *slot = arg;

    (void)fd;
    (void)what;
    if (slot->fight.acquiring) {
        (void)quorlock_cancel(slot->lock);
    } else if (slot->fight.inside) {
        fight_write(slot);
    } else {
        fight_try(slot);
    }
}

void fight_start(struct slot *slot, const char *key, uint32_t lease_ms, const char *path, uint32_t length_ms)
{
    struct fight *fight = &slot->fight;
    char trace_path[PATH_MAX];

    *fight = (struct fight){.bare = key == NULL, .file = open(path, O_RDWR | O_CLOEXEC)};
    if (fight->file < 0) die("%s cannot be opened", path);
    (void)snprintf(trace_path, sizeof(trace_path), "%s.trace", path);
    fight->trace = open(trace_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fight->trace < 0) die("%s cannot be opened", trace_path);
    fight->timer = evtimer_new(slot->base, on_timer, slot);
    if (fight->timer == NULL) die("no timer");
    fight->end_ms = clock_ms() + length_ms;
    if (key != NULL) slot_lock(slot, key, lease_ms, QUORLOCK_WAIT_FOREVER);
    wait_ms(fight, 0);
}
