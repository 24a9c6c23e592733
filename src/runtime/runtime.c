/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/runtime.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NODE_TIMEOUT_MS 1000u
#define LOG_LINE_SIZE   1400
#define LOG_LINES_MAX   1000
#define LOG_LINES_KEPT  200 /* of these, for each level above a line's own */

uint64_t runtime_read_us(struct runtime *runtime)
{
    return clock_now_us(&runtime->clock, &runtime->system);
}

uint64_t runtime_now_us(struct runtime *runtime)
{
    return runtime->batch_us != 0 ? runtime->batch_us : runtime_read_us(runtime);
}

uint64_t runtime_clock(void *runtime)
{
    return runtime_now_us(runtime);
}

void runtime_batch(void *arg, bool begins)
{
    struct runtime *runtime = arg;
    uint64_t now_us = begins ? runtime_read_us(runtime) : 0;

    /* The clock does not go back. */
    assert(!begins || now_us >= runtime->batch_us);
    runtime->batch_us = now_us;
}

uint32_t runtime_timeout_ms(const struct runtime *runtime)
{
    return runtime->options.node_timeout_ms != 0 ? runtime->options.node_timeout_ms : NODE_TIMEOUT_MS;
}

uint32_t runtime_quorum(const struct runtime *runtime)
{
    assert(runtime->n_nodes > 0 && runtime->n_nodes <= CORE_NODES_MAX);
    return options_quorum(runtime->options.policy, runtime->n_nodes);
}

int runtime_fail_plainly(struct runtime *runtime, int status)
{
    return runtime_fail(runtime, status, "%s", quorlock_status_text(status));
}

/* ---- the log ---- */

struct log_line {
    struct link link;
    int level;
    char text[];
};

/* A flood of lines of one level leaves room for the levels above: info lines do not displace errors. */
static size_t log_room(int level)
{
    size_t room = LOG_LINES_MAX - (size_t)(QUORLOCK_LOG_ERROR - level) * LOG_LINES_KEPT;

    assert(level <= QUORLOCK_LOG_ERROR);
    assert(room > 0 && room <= LOG_LINES_MAX);
    return room;
}

void runtime_log(struct runtime *runtime, int level, const char *format, ...)
{
    char text[LOG_LINE_SIZE];
    struct log_line *line = NULL;
    va_list args;

    if (runtime->options.log == NULL || level < runtime->log_from) return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (runtime->log_lines.count < log_room(level)) {
        line = alloc_zero(&runtime->alloc, sizeof(*line) + strlen(text) + 1);
    }
    if (line == NULL) {
        runtime->log_lines_dropped++;
        return;
    }
    line->level = level;
    memcpy(line->text, text, strlen(text) + 1);
    list_add(&runtime->log_lines, &line->link);
    runtime_run_soon(runtime);
}

static struct log_line *take_line(struct runtime *runtime)
{
    struct log_line *line = FIRST_OF(&runtime->log_lines, struct log_line, link);

    assert((line == NULL) == (runtime->log_lines.count == 0));
    if (line != NULL) list_remove(&runtime->log_lines, &line->link);
    return line;
}

/* Pass one line to the log hook. Return true if the hook was called. */
static bool pass_on_line(struct runtime *runtime)
{
    size_t dropped = runtime->log_lines_dropped;
    struct log_line *line;

    if (runtime->log_budget == 0 || runtime->log_lines.count == 0) return false;
    runtime->log_budget--;
    line = take_line(runtime);
    /* User code runs from the loop, outside of batches. */
    assert(runtime->running > 0);
    runtime_batch(runtime, false);
    runtime->options.log(line->level, line->text, runtime->options.log_arg);
    alloc_free(&runtime->alloc, line);
    if (dropped == 0 || runtime->log_lines.count > 0) return true;
    runtime->log_lines_dropped = 0;
    runtime_log(runtime, QUORLOCK_LOG_WARN, "%zu lines of the log were dropped: too many at once, or no memory",
                dropped);
    return true;
}

/* ---- deadlines ---- */

static bool is_wanted(const struct runtime *runtime, bool closing)
{
    if (runtime->log_lines.count > 0) return true;
    LIST_EACH (struct turn, turn, &runtime->turns, link) {
        if (turn->waits(turn, closing)) return true;
    }
    return false;
}

/* Arm the alarm for the earliest deadline, or for the next turn if callbacks wait for it. */
static void arm(struct runtime *runtime)
{
    uint64_t at_us = wheel_next_us(&runtime->deadlines);
    uint64_t now_us;
    uint64_t left_us = 0;

    /* Each run of the turns arms the alarm at its end. */
    assert(runtime->running == 0);
    /* Work that must be done before the end has deadlines of its own. Until then close_until_us ends nothing; if it has
     * passed, because the process was suspended, the alarm would fire again and again. */
    if (runtime->closing && runtime->close_until_us < at_us && !is_wanted(runtime, true)) {
        at_us = runtime->close_until_us;
    }
    if (is_wanted(runtime, false)) at_us = 0;
    /* The alarm fires sooner, and is armed again then. */
    if (at_us >= runtime->armed_us) return;
    assert(runtime->alarm != NULL);
    runtime->armed_us = at_us;
    if (at_us > 0) {
        now_us = runtime_read_us(runtime);
        left_us = at_us > now_us ? at_us - now_us : 0;
    }
    runtime->system.ops->alarm_set(runtime->alarm, left_us);
}

void runtime_start_waker(struct runtime *runtime, struct waker *waker, void (*wake)(struct waker *))
{
    uint16_t kind = 0;

    assert(wake != NULL);
    while (runtime->wakes[kind] != wake && runtime->wakes[kind] != NULL) kind++;
    assert(kind < RUNTIME_WAKES_MAX);
    runtime->wakes[kind] = wake;
    waker->entry = (struct wheel_entry){.at_us = UINT64_MAX, .kind = kind};
}

void runtime_stop_waker(struct waker *waker)
{
    wheel_remove(&waker->entry);
    assert(waker->entry.from == NULL);
    waker->entry.at_us = UINT64_MAX;
}

void runtime_wake_at(struct runtime *runtime, struct waker *waker, uint64_t at_us)
{
    uint64_t before_us = wheel_next_us(&runtime->deadlines);

    assert(waker->entry.kind < RUNTIME_WAKES_MAX && runtime->wakes[waker->entry.kind] != NULL);
    wheel_set(&runtime->deadlines, &waker->entry, at_us);
    /* An alarm that fires too early is armed again, so only a nearer deadline moves it. */
    if (at_us < before_us && runtime->running == 0) arm(runtime);
}

/* Serve the deadlines that have passed, and leave a batch open whose time is after all of them. */
static void wake_due(struct runtime *runtime)
{
    struct wheel_entry *entry;
    bool woke = false;

    assert(runtime->running > 0);
    runtime_batch(runtime, true);
    while ((entry = wheel_take(&runtime->deadlines, runtime->batch_us)) != NULL) {
        runtime->wakes[entry->kind](CONTAINER_OF(entry, struct waker, entry));
        woke = true;
    }
    if (woke) runtime_batch(runtime, true);
}

/* ---- turns ---- */

void runtime_add_turn(struct runtime *runtime, struct turn *turn)
{
    assert(turn->begin != NULL && turn->next != NULL && turn->end != NULL && turn->waits != NULL);
    assert(!list_has(&turn->link));
    list_add(&runtime->turns, &turn->link);
}

void runtime_run_soon(struct runtime *runtime)
{
    if (runtime->running == 0 && runtime->at_top != NULL) runtime->system.loop.task_run(runtime->at_top);
}

static bool may_end(struct runtime *runtime)
{
    if (!runtime->closing || runtime->running > 0 || is_wanted(runtime, true)) return false;
    return runtime->in_flight == 0 || runtime_now_us(runtime) >= runtime->close_until_us;
}

/* Run one user callback, which ends the batch. Return false if none is left in this turn. Log lines come before the
 * callbacks that they explain. */
static bool run_next(struct runtime *runtime)
{
    if (pass_on_line(runtime)) return true;
    LIST_EACH (struct turn, turn, &runtime->turns, link) {
        if (turn->next(turn)) return true;
    }
    return false;
}

/* Run the callbacks that are due now. Callbacks that become due meanwhile wait for the next turn, so that a caller that
 * answers each failure with a new try does not keep the loop from its sockets. */
static void runtime_run(void *arg)
{
    struct runtime *runtime = arg;

    runtime->running++;
    wake_due(runtime);
    runtime->log_budget = LOG_LINES_MAX;
    LIST_EACH (struct turn, turn, &runtime->turns, link) turn->begin(turn);
    do {
        wake_due(runtime);
    } while (run_next(runtime));
    LIST_EACH (struct turn, turn, &runtime->turns, link) turn->end(turn);
    runtime_batch(runtime, false);
    assert(runtime->running > 0);
    runtime->running--;
    if (runtime->running > 0) return;
    if (may_end(runtime)) {
        assert(runtime->log_lines.count == 0);
        runtime->ended(runtime->ended_arg);
        return;
    }
    arm(runtime);
}

static void runtime_on_alarm(void *arg)
{
    struct runtime *runtime = arg;

    runtime->armed_us = UINT64_MAX;
    runtime_run(runtime);
}

/* The alarm is the system's, for a timer of the loop might report a loss late after a long callback. */
int runtime_start(struct runtime *runtime)
{
    struct system *system = &runtime->system;

    assert(runtime->alarm == NULL && runtime->at_top == NULL);
    assert(runtime->turns.count == 0 && runtime->running == 0);
    wheel_start(&runtime->deadlines, runtime_read_us(runtime));
    runtime->armed_us = UINT64_MAX;
    runtime->alarm = system->ops->alarm_new(system, runtime_on_alarm, runtime);
    runtime->at_top = system->loop.task_new(system->loop.arg, runtime_run, runtime);
    return runtime->alarm != NULL && runtime->at_top != NULL ? 0 : -1;
}

void runtime_stop(struct runtime *runtime)
{
    struct log_line *line;

    assert(runtime->running == 0);
    while ((line = take_line(runtime)) != NULL) alloc_free(&runtime->alloc, line);
    random_clear(&runtime->random, &runtime->system);
    if (runtime->alarm != NULL) runtime->system.ops->alarm_free(runtime->alarm);
    if (runtime->at_top != NULL) runtime->system.loop.task_free(runtime->at_top);
}

void runtime_extend_close(struct runtime *runtime)
{
    runtime->close_until_us = runtime_now_us(runtime) + runtime_timeout_ms(runtime) * 1000ull;
}

void runtime_close(struct runtime *runtime, void (*ended)(void *arg), void *arg)
{
    assert(!runtime->closing);
    assert(ended != NULL);
    runtime->closing = true;
    runtime->ended = ended;
    runtime->ended_arg = arg;
    runtime_extend_close(runtime);
    if (runtime->running > 0) return;
    arm(runtime);
    runtime_run_soon(runtime);
}
