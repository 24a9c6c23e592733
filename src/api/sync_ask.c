/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync_ask.c - questions to the nodes, whose reports are read in the thread that asks
 *
 * The loop's thread copies each report, so that renewals do not wait for the callback.
 */
#include <quorlock/sync.h>

#include "api/sync_loop.h"
#include "api/sync_report.h"
#include "base/list.h"

struct report_job {
    struct job job;
    int (*ask)(quorlock_client *, struct report_job *);
    /* What is asked; members that a question does not need are zero. */
    const char *key;   /* or the pattern of a list */
    const char *owner; /* of a break; NULL: any */
    size_t node;       /* of a question to one node */
    const struct quorlock_bootstrap_options *options;
    struct sync_listener listener;
    struct sync_reports reports;
};

/* ---- in the loop's thread ---- */

static void sync_on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    sync_reports_keep_inspect(&asked->reports, status, report);
    sync_done(&asked->job);
}

static void sync_on_broken(int status, const struct quorlock_break_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    sync_reports_keep_break(&asked->reports, status, report);
    sync_done(&asked->job);
}

static void sync_on_listed(int status, const struct quorlock_list_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    sync_reports_keep_list(&asked->reports, status, report);
    if (report->more == 0) sync_done(&asked->job);
}

static void sync_on_bootstrapped(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    sync_reports_keep_bootstrap(&asked->reports, status, report);
    sync_done(&asked->job);
}

static void sync_on_examined(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct report_job *asked = arg;

    asked->job.result.status = status;
    sync_reports_keep_doctor(&asked->reports, status, report);
    sync_done(&asked->job);
}

static int ask_inspect(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_inspect(client, asked->key, sync_on_inspected, asked);
}

static int ask_inspect_node(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_inspect_node(client, asked->node, asked->key, sync_on_inspected, asked);
}

static int ask_break(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_break(client, asked->key, asked->owner, sync_on_broken, asked);
}

static int ask_bootstrap(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_bootstrap(client, asked->options, sync_on_bootstrapped, asked);
}

static int ask_doctor(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_doctor(client, sync_on_examined, asked);
}

static int ask_list(quorlock_client *client, struct report_job *asked)
{
    return quorlock_client_list(client, asked->key, sync_on_listed, asked);
}

static void run_ask(struct job *job)
{
    struct report_job *asked = CONTAINER_OF(job, struct report_job, job);
    int status = sync_refuse_new(job);

    if (status != 0) {
        sync_done(job);
        return;
    }
    status = asked->ask(job->sync->client, asked);
    if (status != 0) sync_fail(job, status);
}

/* ---- in the thread that asks ---- */

static int sync_ask(quorlock_sync_client *sync, struct report_job *asked)
{
    const struct sync_listener *listener = &asked->listener;
    int status;

    if (listener->inspect == NULL && listener->broken == NULL && listener->list == NULL &&
        listener->bootstrap == NULL && listener->doctor == NULL)
        return QUORLOCK_ERR_INVAL;
    asked->job.run = run_ask;
    asked->job.sync = sync;
    status = sync_call(&asked->job);
    return sync_reports_tell(&asked->reports, status, listener);
}

int quorlock_sync_client_inspect(quorlock_sync_client *sync, const char *key, quorlock_inspect_cb cb, void *arg)
{
    struct report_job asked = {.ask = ask_inspect, .key = key, .listener = {.inspect = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}

int quorlock_sync_client_inspect_node(quorlock_sync_client *sync, size_t node, const char *key, quorlock_inspect_cb cb,
                                      void *arg)
{
    struct report_job asked = {
        .ask = ask_inspect_node, .node = node, .key = key, .listener = {.inspect = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}

int quorlock_sync_client_break(quorlock_sync_client *sync, const char *key, const char *owner, quorlock_break_cb cb,
                               void *arg)
{
    struct report_job asked = {.ask = ask_break, .key = key, .owner = owner, .listener = {.broken = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}

int quorlock_sync_client_bootstrap(quorlock_sync_client *sync, const struct quorlock_bootstrap_options *options,
                                   quorlock_bootstrap_cb cb, void *arg)
{
    struct report_job asked = {.ask = ask_bootstrap, .options = options, .listener = {.bootstrap = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}

int quorlock_sync_client_doctor(quorlock_sync_client *sync, quorlock_doctor_cb cb, void *arg)
{
    struct report_job asked = {.ask = ask_doctor, .listener = {.doctor = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}

int quorlock_sync_client_list(quorlock_sync_client *sync, const char *pattern, quorlock_list_cb cb, void *arg)
{
    struct report_job asked = {.ask = ask_list, .key = pattern, .listener = {.list = cb, .arg = arg}};

    return sync_ask(sync, &asked);
}
