/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/report.h"

#include <assert.h>

static bool admin_report_is_due(const struct report *report)
{
    return report->complete && !report->notified;
}

static size_t count_due(const struct admin *all)
{
    size_t due = 0;

    for (const struct report *report = all->reports; report != NULL; report = report->next) {
        due += admin_report_is_due(report);
    }
    return due;
}

/* ---- the turn ---- */

static void admin_report_begin_turn(struct turn *turn)
{
    struct admin *all = CONTAINER_OF(turn, struct admin, turn);

    all->budget = count_due(all);
}

static bool admin_report_next_in_turn(struct turn *turn)
{
    struct admin *all = CONTAINER_OF(turn, struct admin, turn);

    if (all->budget == 0) return false;
    all->budget--;
    for (struct report *report = all->reports; report != NULL; report = report->next) {
        if (!admin_report_is_due(report)) continue;
        report->notified = true;
        report->notify(report);
        break;
    }
    return true;
}

/* admin_report_end_turn - free the reports whose callbacks have run. */
static void admin_report_end_turn(struct turn *turn)
{
    struct admin *all = CONTAINER_OF(turn, struct admin, turn);
    struct report **at = &all->reports;

    /* If a callback runs the loop, this turn is inside another one, which still uses the list. */
    if (all->runtime->running > 1) return;
    while (*at != NULL) {
        struct report *report = *at;

        if (report->notified && report->in_flight == 0) {
            *at = report->next;
            report->destroy(report);
        } else {
            at = &report->next;
        }
    }
}

static bool admin_report_waits(struct turn *turn, bool closing)
{
    (void)closing;
    return count_due(CONTAINER_OF(turn, struct admin, turn)) > 0;
}

/* ---- nodes ---- */

static void admin_report_on_node_changed(struct node_observer *observer, uint32_t node)
{
    struct admin *all = CONTAINER_OF(observer, struct admin, observer);

    for (struct report *report = all->reports; report != NULL; report = report->next) {
        if (report->node_changed != NULL && !report->complete) report->node_changed(report, node);
    }
}

/* ---- life ---- */

void admin_start(struct admin *all, struct runtime *runtime)
{
    all->runtime = runtime;
    all->turn = (struct turn){.begin = admin_report_begin_turn,
                              .next = admin_report_next_in_turn,
                              .end = admin_report_end_turn,
                              .waits = admin_report_waits};
    all->observer.changed = admin_report_on_node_changed;
    runtime_add_turn(runtime, &all->turn);
    nodes_observe(runtime, &all->observer);
}

void admin_close(struct admin *all)
{
    for (struct report *report = all->reports; report != NULL; report = report->next) {
        if (!report->complete) report->close(report);
    }
}

void admin_stop(struct admin *all)
{
    while (all->reports != NULL) {
        struct report *report = all->reports;

        all->reports = report->next;
        report->destroy(report);
    }
}

int report_check(struct admin *all, bool has_callback)
{
    if (all->runtime->closing) return runtime_fail_plainly(all->runtime, QUORLOCK_ERR_CLOSED);
    if (has_callback) return 0;
    return runtime_fail(all->runtime, QUORLOCK_ERR_INVAL, "the callback is NULL: it is required");
}

void report_begin(struct admin *all, struct report *report)
{
    report->all = all;
    report->next = all->reports;
    all->reports = report;
}

void report_complete(struct report *report)
{
    report->complete = true;
    runtime_run_soon(report->all->runtime);
}

bool report_refuses(enum fault fault)
{
    return fault == FAULT_AUTH || fault == FAULT_LOGIN;
}

int report_lack(size_t refused, size_t asked, size_t needed)
{
    assert(refused <= asked && needed <= asked);
    return refused + needed > asked ? QUORLOCK_ERR_AUTH : QUORLOCK_ERR_NOQUORUM;
}
