/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elect.c - quorlock elect: a command that runs while this candidate leads
 *
 * When the candidate is elected, the command runs. When it is deposed, the supervisor ends the command before another
 * candidate can lead, and the candidacy goes on. If the command ends by itself, the candidate resigns, and the verb
 * ends; with --restart it pauses and is a candidate again. The candidate always resigns before the verb ends.
 */
#include <quorlock/election.h>

#include <event2/event.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "cli.h"
#include "metrics.h"
#include "notify.h"
#include "say.h"
#include "supervise.h"

/* If a command ran for less than SHORT_RUN_MS, the pause before the next run doubles. */
enum { SHORT_RUN_MS = 10000, PAUSE_MS_MIN = 1000, PAUSE_MS_MAX = 30000 };

struct elect {
    struct session session;
    const struct settings *settings;
    const char *name;
    quorlock_candidate *candidate;
    struct supervisor supervisor;
    struct metrics metrics;
    struct event *pause;
    uint32_t pause_ms;
    uint64_t started_us; /* when the command was started */
    bool leaving;        /* the verb ends when the candidate has resigned */
    bool again;          /* another candidacy begins when the candidate has resigned */
    int status;          /* exit status */
};

static uint32_t elect_valid_ms(void *arg)
{
    const struct elect *elect = arg;

    return quorlock_candidate_valid_ms(elect->candidate);
}

/* elect_leave - resign if there is a candidacy, and leave the loop. */
static void elect_leave(struct elect *elect, int status)
{
    bool resigns = elect->again; /* it has called resign already, so ended() comes */

    notify_status("STOPPING=1", "resigning from \"%s\"", elect->name);
    elect->leaving = true;
    elect->again = false;
    elect->status = status;
    if (!resigns && quorlock_candidate_resign(elect->candidate) != 0) session_leave(&elect->session);
}

/* choose_pause - choose the pause, which grows with each short run of the command. */
static void choose_pause(struct elect *elect, bool was_short)
{
    uint32_t longer_ms = elect->pause_ms < PAUSE_MS_MAX / 2 ? 2 * elect->pause_ms : PAUSE_MS_MAX;

    elect->pause_ms = was_short && elect->pause_ms != 0 ? longer_ms : PAUSE_MS_MIN;
}

/* stand_down - resign, and begin another candidacy after the pause. */
static void stand_down(struct elect *elect)
{
    elect->again = true;
    (void)quorlock_candidate_resign(elect->candidate);
}

/* stand - begin a candidacy; if that fails, print why, and leave. */
static void stand(struct elect *elect)
{
    int failed = session_check(&elect->session, quorlock_candidate_stand(elect->candidate));

    if (failed != 0) {
        elect_leave(elect, failed);
        return;
    }
    notify_status("READY=1", "candidate for \"%s\"", elect->name);
}

/* ---- the command ---- */

/* elect_set_environment - set the variables for the command. */
static bool elect_set_environment(const struct elect *elect, uint64_t term)
{
    static const char *const of_locks[] = {"QUORLOCK_KEYS", "QUORLOCK_OWNER", "QUORLOCK_FENCE", "QUORLOCK_SLOT"};
    char number[24];

    /* The variables of a lock around this command must not look like ours. */
    for (size_t i = 0; i < sizeof(of_locks) / sizeof(of_locks[0]); i++)
        if (unsetenv(of_locks[i]) != 0) return false;
    snprintf(number, sizeof(number), "%" PRIu64, term);
    return setenv("QUORLOCK_KEY", elect->name, 1) == 0 && setenv("QUORLOCK_TERM", number, 1) == 0;
}

/* lead - start the command. If the former one has not ended yet, do nothing: elect_command_ended calls this again. */
static void lead(struct elect *elect)
{
    struct supervisor *supervisor = &elect->supervisor;
    uint64_t term = quorlock_candidate_term(elect->candidate);
    uint64_t deadline_us;

    if (supervisor->state != SUPERVISE_IDLE || term == 0) return;
    /* A signal that was not read yet came before, so the command must not start. */
    supervise_read_signals(supervisor);
    if (elect->leaving) return;
    deadline_us = supervise_deadline_us(supervisor);
    elect->started_us = 0;
    if (deadline_us == 0) {
        choose_pause(elect, true);
        say("elected for \"%s\" too late: the command was not started; candidate again in %u ms", elect->name,
            elect->pause_ms);
        stand_down(elect);
        return;
    }
    if (elect->settings->verbose > 0)
        say_at(LOG_INFO, "elected for \"%s\", term %" PRIu64 ", valid %u ms", elect->name, term, elect_valid_ms(elect));
    elect->started_us = warden_now_us();
    if (!elect_set_environment(elect, term)) {
        say("out of memory");
        elect_leave(elect, EXIT_SYSTEM);
    } else if (!supervise_start(supervisor, deadline_us)) {
        elect_leave(elect, EXIT_SYSTEM);
    }
}

/* restart_later - end the term, and pause before the next candidacy. */
static void restart_later(struct elect *elect, int status)
{
    choose_pause(elect, warden_now_us() - elect->started_us < (uint64_t)SHORT_RUN_MS * 1000);
    say_at(LOG_WARNING, "the command ended with status %d: resigned from \"%s\", candidate again in %u ms", status,
           elect->name, elect->pause_ms);
    notify_status(NULL, "the command ended, pausing before \"%s\"", elect->name);
    stand_down(elect);
}

static void elect_command_ended(void *arg, int status)
{
    struct elect *elect = arg;
    const struct supervisor *supervisor = &elect->supervisor;
    bool may_go_on = supervisor->die_of == 0 && !supervisor->asked_to_end && supervisor->child.exec_errno == 0;

    if (elect->leaving) return;
    if (may_go_on && supervisor->verdict == EXIT_LOST) {
        /* The candidacy goes on by itself. The candidate may lead again already. */
        notify_status(NULL, "candidate for \"%s\" again", elect->name);
        lead(elect);
    } else if (may_go_on && supervisor->verdict == 0 && elect->settings->restart) {
        restart_later(elect, status);
    } else {
        elect_leave(elect, status);
    }
}

static void elect_signaled(void *arg, int number, bool typed)
{
    struct elect *elect = arg;

    if (!signals_end_wait(number)) {
        if (number == SIGTSTP && !elect->leaving) signals_stop();
        return;
    }
    if (elect->leaving && (!typed || elect->status == EXIT_LOST)) return;
    if (typed) elect->supervisor.die_of = number;
    if (elect->leaving) {
        elect->status = EXIT_SIGNAL + number;
    } else {
        elect_leave(elect, EXIT_SIGNAL + number);
    }
}

/* ---- events of the candidate ---- */

static void elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    (void)candidate;
    (void)term;
    lead(arg);
}

static void deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    struct elect *elect = arg;

    (void)candidate;
    say_at(LOG_WARNING, "deposed from \"%s\": %s", elect->name, loss->text);
    supervise_lose(&elect->supervisor, loss->remaining_ms);
}

/* lost_unseen - report that the candidate did not lead any more when the command ended, although it was not deposed.
 * Another command may have run at the same time. */
static void lost_unseen(struct elect *elect, const char *text)
{
    struct child *child = &elect->supervisor.child;

    if (child->state != CHILD_ENDED || child->exec_errno != 0 || elect->started_us == 0) return;
    child_signal(child, SIGKILL); /* its other processes must not go on without the lock */
    say("lost \"%s\" while the command ran: it was gone when the command ended (%s); its own exit status would have "
        "been %d",
        elect->name, text, child->status);
    if (elect->leaving) elect->status = EXIT_LOST;
}

static void elect_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct elect *elect = arg;
    struct timeval pause = session_span(elect->pause_ms);

    (void)candidate;
    if (status == QUORLOCK_ERR_LOST) lost_unseen(elect, text);
    if (elect->again) {
        elect->again = false;
        if (evtimer_add(elect->pause, &pause) != 0) elect_leave(elect, EXIT_SYSTEM);
        return;
    }
    if (!elect->leaving) {
        say("cannot be a candidate for \"%s\": %s", elect->name, text);
        elect->status = session_refused(status);
    } else if ((status != QUORLOCK_OK && status != QUORLOCK_ERR_LOST) || elect->settings->verbose > 0) {
        say_at(status != QUORLOCK_OK ? LOG_ERR : LOG_INFO, "resigned from \"%s\": %s", elect->name, text);
    }
    session_leave(&elect->session);
}

static void elect_on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    struct elect *elect = arg;

    (void)fd;
    (void)what;
    if (!elect->leaving) stand(elect);
}

/* ---- life ---- */

/* make_candidate - make the candidate: 0, or the exit status after a message. */
static int make_candidate(struct elect *elect)
{
    const struct quorlock_candidate_options options = {
        .size = sizeof(options),
        .advertise = elect->settings->advertise,
        .elected = elected,
        .deposed = deposed,
        .ended = elect_ended,
        .arg = elect,
        .lease_ms = session_lease_ms(elect->settings),
        .lost_margin_ms = elect->supervisor.grace_ms,
    };

    elect->pause = evtimer_new(elect->session.base, elect_on_pause_over, elect);
    if (elect->pause == NULL) {
        say("out of memory");
        return EXIT_SYSTEM;
    }
    return session_check(&elect->session,
                         quorlock_candidate_new(&elect->candidate, elect->session.client, elect->name, &options));
}

static int stand_and_run(struct elect *elect)
{
    struct supervisor *supervisor = &elect->supervisor;
    int status = session_open(&elect->session, elect->settings);

    if (status != 0) return status;
    sources_forget(elect->settings->sources, &elect->settings->values);
    supervisor->name = elect->name;
    supervisor->valid_ms = elect_valid_ms;
    supervisor->ended = elect_command_ended;
    supervisor->signaled = elect_signaled;
    supervisor->arg = elect;
    status = supervise_open(supervisor, &elect->session);
    if (status == 0) status = make_candidate(elect);
    if (status == 0) {
        say_within(SUPERVISE_SAY_MS);
        status =
            metrics_start(&elect->metrics, elect->session.base, elect->session.client, elect->settings->metrics_file);
    }
    if (status == 0) {
        stand(elect);
        status = supervise_loop(supervisor);
    }
    if (status == 0) status = elect->status;
    supervise_close(supervisor);
    metrics_end(&elect->metrics, last_result(status), status);
    if (elect->pause != NULL) event_free(elect->pause);
    session_close(&elect->session);
    return status;
}

static int elect_check_settings(const struct settings *settings)
{
    if (settings->n_words != 1) {
        say("elect takes one name, and not %zu: quorlock elect [OPTIONS] NAME -- CMD ARGS...; for a name that begins "
            "with - write --key NAME",
            settings->n_words);
        return EXIT_USAGE;
    }
    return supervise_check(settings, "elect");
}

int verb_elect(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct elect elect;
    int status = elect_check_settings(settings);

    if (status != 0) return status;
    elect = (struct elect){.settings = settings, .name = settings->words[0]};
    supervise_init(&elect.supervisor);
    status = stand_and_run(&elect);
    supervise_die(&elect.supervisor, status);
    return status;
}
