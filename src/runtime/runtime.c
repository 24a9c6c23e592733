/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/foresee.h"

#define NODE_TIMEOUT_MS 1000u
#define LOG_LINE_SIZE   1400
#define LOG_LINES_MAX   1000

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

    runtime->batch_us = begins ? runtime_read_us(runtime) : 0;
}

uint32_t runtime_timeout_ms(const struct runtime *runtime)
{
    return runtime->options.node_timeout_ms != 0 ? runtime->options.node_timeout_ms : NODE_TIMEOUT_MS;
}

uint32_t runtime_quorum(const struct runtime *runtime)
{
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

void runtime_log(struct runtime *runtime, int level, const char *format, ...)
{
    char text[LOG_LINE_SIZE];
    struct log_line *line = NULL;
    va_list args;

    if (runtime->options.log == NULL) return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (runtime->log_lines.count < LOG_LINES_MAX) {
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

    if (line != NULL) list_remove(&runtime->log_lines, &line->link);
    return line;
}

/* True: the hook was called. */
static bool pass_on_line(struct runtime *runtime)
{
    size_t dropped = runtime->log_lines_dropped;
    struct log_line *line;

    if (runtime->log_budget == 0 || runtime->log_lines.count == 0) return false;
    runtime->log_budget--;
    line = take_line(runtime);
    runtime_batch(runtime, false);
    runtime->options.log(runtime->options.log_arg, line->level, line->text);
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

static struct heap *heap_of(struct runtime *runtime, const struct waker *waker)
{
    return &runtime->deadlines[waker->heap].heap;
}

/* The heap with the earliest deadline. */
static struct heap *earliest(struct runtime *runtime)
{
    struct heap *earliest = &runtime->deadlines[0].heap;

    for (int i = 1; i < RUNTIME_HEAPS; i++) {
        struct heap *heap = &runtime->deadlines[i].heap;

        if (heap_first_us(heap) < heap_first_us(earliest)) earliest = heap;
    }
    return earliest;
}

/* For the earliest deadline, or for the next turn where callbacks were put off to it. */
static void arm(struct runtime *runtime)
{
    uint64_t at_us = heap_first_us(earliest(runtime));
    uint64_t now_us;
    uint64_t left_us = 0;

    /* What must happen before the end has deadlines of its own: until then the time to close, which may have passed
     * while the process stood still, ends nothing, and would fire again and again. */
    if (runtime->closing && runtime->close_until_us < at_us && !is_wanted(runtime, true)) {
        at_us = runtime->close_until_us;
    }
    if (is_wanted(runtime, false)) at_us = 0;
    /* It fires sooner, and is armed again then. */
    if (at_us >= runtime->armed_us) return;
    runtime->armed_us = at_us;
    if (at_us > 0) {
        now_us = runtime_read_us(runtime);
        left_us = at_us > now_us ? at_us - now_us : 0;
    }
    runtime->system.ops->alarm_set(runtime->alarm, left_us);
}

void runtime_start_waker(struct runtime *runtime, struct waker *waker, enum runtime_heap heap,
                         void (*wake)(struct waker *))
{
    waker->entry.index = HEAP_OUT;
    waker->at_us = UINT64_MAX;
    waker->heap = (uint16_t)heap;
    waker->kind = 0;
    while (runtime->wakes[waker->kind] != wake && runtime->wakes[waker->kind] != NULL) waker->kind++;
    runtime->wakes[waker->kind] = wake;
}

void runtime_stop_waker(struct runtime *runtime, struct waker *waker)
{
    heap_set(heap_of(runtime, waker), &waker->entry, UINT64_MAX);
}

int runtime_reserve_waker(struct runtime *runtime, struct waker *waker, enum runtime_heap heap,
                          void (*wake)(struct waker *))
{
    size_t *n_wakers = &runtime->deadlines[heap].n_wakers;

    runtime_start_waker(runtime, waker, heap, wake);
    if (heap_reserve(heap_of(runtime, waker), &runtime->alloc, *n_wakers + 1) != 0) return -1;
    ++*n_wakers;
    return 0;
}

void runtime_return_waker(struct runtime *runtime, struct waker *waker)
{
    runtime_stop_waker(runtime, waker);
    runtime_return_room(runtime, (enum runtime_heap)waker->heap, 1);
}

void runtime_return_room(struct runtime *runtime, enum runtime_heap heap, size_t n_wakers)
{
    runtime->deadlines[heap].n_wakers -= n_wakers;
}

void runtime_wake_at(struct runtime *runtime, struct waker *waker, uint64_t at_us)
{
    struct heap *heap = heap_of(runtime, waker);
    uint64_t before_us;

    waker->at_us = at_us;
    if (at_us == UINT64_MAX || (waker->entry.index != HEAP_OUT && heap_time_us(heap, &waker->entry) <= at_us)) return;
    before_us = heap_first_us(earliest(runtime));
    heap_set(heap, &waker->entry, at_us);
    /* A timer that fires too early is armed again: only a nearer deadline needs it now. */
    if (at_us < before_us && runtime->running == 0) arm(runtime);
}

/* A batch begins, and stays: the last reading is behind all that was due. */
static void wake_due(struct runtime *runtime)
{
    bool woke = false;

    runtime_batch(runtime, true);
    for (;;) {
        struct heap *heap = earliest(runtime);
        struct waker *waker = CONTAINER_OF(heap_first(heap), struct waker, entry);
        bool due;

        if (heap_first_us(heap) > runtime->batch_us) break;
        due = waker->at_us <= runtime->batch_us;
        /* Out first: it puts itself in again with its next deadline. */
        heap_set(heap, &waker->entry, due ? UINT64_MAX : waker->at_us);
        if (!due) continue;
        if (waker->heap == RUNTIME_HANDLES)
            foresee(CONTAINER_OF(heap_first(heap), struct waker, entry), RUNTIME_FORESEEN);
        waker->at_us = UINT64_MAX;
        runtime->wakes[waker->kind](waker);
        woke = true;
    }
    if (woke) runtime_batch(runtime, true);
}

/* ---- turns ---- */

void runtime_add_turn(struct runtime *runtime, struct turn *turn)
{
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

/* One callback, which ends the batch; false: none is left in this turn. Log lines come before the callbacks that they
 * explain. */
static bool run_next(struct runtime *runtime)
{
    if (pass_on_line(runtime)) return true;
    LIST_EACH (struct turn, turn, &runtime->turns, link) {
        if (turn->next(turn)) return true;
    }
    return false;
}

/* Runs the callbacks that are due now. Those that they bring about wait for the next turn, so that a caller
 * that answers each failure with a new try does not keep the loop from its sockets. */
static void run(void *arg)
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
    runtime->running--;
    if (runtime->running > 0) return;
    if (may_end(runtime)) {
        runtime->ended(runtime->ended_arg);
        return;
    }
    arm(runtime);
}

static void on_alarm(void *arg)
{
    struct runtime *runtime = arg;

    runtime->armed_us = UINT64_MAX;
    run(runtime);
}

/* A timer of the loop might report a loss late, after a long callback or a pause. */
int runtime_start(struct runtime *runtime)
{
    struct system *system = &runtime->system;

    runtime->armed_us = UINT64_MAX;
    runtime->alarm = system->ops->alarm_new(system, on_alarm, runtime);
    runtime->at_top = system->loop.task_new(system->loop.arg, run, runtime);
    return runtime->alarm != NULL && runtime->at_top != NULL ? 0 : -1;
}

void runtime_stop(struct runtime *runtime)
{
    struct log_line *line;

    while ((line = take_line(runtime)) != NULL) alloc_free(&runtime->alloc, line);
    for (int i = 0; i < RUNTIME_HEAPS; i++) heap_clear(&runtime->deadlines[i].heap, &runtime->alloc);
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
    runtime->closing = true;
    runtime->ended = ended;
    runtime->ended_arg = arg;
    runtime_extend_close(runtime);
    if (runtime->running > 0) return;
    arm(runtime);
    runtime_run_soon(runtime);
}
