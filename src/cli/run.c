/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - quorlock run: a command under a lock
 *
 * The states are WAITING for the grant, RUNNING the command, and RELEASING. A signal leads from WAITING to RELEASING
 * without starting the command. While the command runs, the supervisor handles it.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "cli.h"
#include "metrics.h"
#include "notify.h"
#include "owner.h"
#include "report.h"
#include "say.h"
#include "signals.h"
#include "supervise.h"

enum run_state { RUN_WAITING = 0, RUN_RUNNING, RUN_RELEASING };

struct run {
    struct session session;
    const struct settings *settings;
    char *name; /* all keys, for messages */
    char *keys; /* all keys, one a line */
    quorlock_lock *lock;
    struct supervisor supervisor;
    struct metrics metrics;
    enum run_state state;
    uint64_t asked_us;              /* when the acquire was called */
    int signal;                     /* the signal that ended the wait */
    int status;                     /* exit status */
    const char *result;             /* of the run, for its metrics; NULL: what its exit status says */
    char refusal[LAST_RESULT_SIZE]; /* the result of an acquire that failed */
};

static void released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct run *run = arg;

    (void)lock;
    report_released(run->settings, run->name, result);
    /* The lock was gone when the command ended, but no loss was reported: somebody broke it, or our clock had stopped.
       Another command may have run at the same time. */
    if (result->status == QUORLOCK_ERR_LOST && run->supervisor.child.state == CHILD_ENDED &&
        run->supervisor.child.exec_errno == 0 && run->status != EXIT_LOST) {
        child_signal(&run->supervisor.child, SIGKILL); /* its other processes must not go on without the lock */
        say("lost \"%s\" while the command ran: it was gone when the command ended (%s); its own exit status "
            "would have been %d",
            run->name, result->text, run->supervisor.child.status);
        run->status = EXIT_LOST;
        run->result = "lost";
    }
    session_leave(&run->session);
}

/* run_finish - release the lock, if there is one, and leave the loop. */
static void run_finish(struct run *run, int status)
{
    const struct child *child = &run->supervisor.child;
    bool ran = child->state != CHILD_NONE && child->exec_errno == 0;

    notify_status("STOPPING=1", "releasing \"%s\"", run->name);
    run->state = RUN_RELEASING;
    run->status = status;
    say_within(100);
    /* Where the command did not run, another machine may run it: --keep keeps nothing. */
    if ((ran ? quorlock_lock_release : quorlock_lock_undo)(run->lock, released, run) != 0) session_leave(&run->session);
}

static uint32_t run_valid_ms(void *arg)
{
    const struct run *run = arg;

    return quorlock_lock_valid_ms(run->lock);
}

static void lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct run *run = arg;

    (void)lock;
    if (run->supervisor.state == SUPERVISE_IDLE) return;
    if (loss->reason == QUORLOCK_LOSS_MAX_HOLD)
        say("--max-hold of %u ms is over: \"%s\" is not renewed any more", run->settings->max_hold_ms, run->name);
    supervise_lose(&run->supervisor, loss->remaining_ms);
    if (run->settings->verbose > 0) report_votes(loss->votes, loss->n_votes);
}

static void run_command_ended(void *arg, int status)
{
    struct run *run = arg;
    const struct supervisor *supervisor = &run->supervisor;

    run->result = supervisor->verdict == EXIT_LOST ? "lost"
                  : status == 0                    ? "ok"
                  : supervisor->asked_to_end       ? "canceled"
                                                   : "failed";
    run_finish(arg, status);
}

static void end_wait(struct run *run, int number, bool typed)
{
    if (run->signal != 0 || !signals_end_wait(number)) {
        if (number == SIGTSTP) signals_stop();
        return;
    }
    run->signal = number;
    if (typed) run->supervisor.die_of = number;
    /* acquired() comes with CANCELED, or with a grant, which it releases. */
    if (quorlock_lock_cancel(run->lock) != 0) run_finish(run, EXIT_SIGNAL + number);
}

static void run_signaled(void *arg, int number, bool typed)
{
    struct run *run = arg;

    if (run->state == RUN_WAITING) {
        end_wait(run, number, typed);
    } else if (typed && run->status != EXIT_LOST) {
        run->supervisor.die_of = number;
        run->status = EXIT_SIGNAL + number;
    }
}

static void say_granted(const struct run *run, const struct quorlock_result *result)
{
    struct text line = {0};

    text_format(&line, "granted \"%s\"", run->name);
    if (run->settings->permits != 0) text_format(&line, " slot %u of %u", result->slot, run->settings->permits);
    text_format(&line, " by %u of %zu nodes in %.1f ms, valid %u ms, owner ", result->granted, result->n_votes,
                (double)(warden_now_us() - run->asked_us) / 1000.0, quorlock_lock_valid_ms(run->lock));
    owner_short(&line, result->token != NULL ? result->token : "");
    if (result->fence != 0) text_format(&line, ", fence %" PRIu64, result->fence);
    say_text(LOG_INFO, &line);
}

/* run_reads - return whether all keys are shared. */
static bool run_reads(const struct settings *settings)
{
    uint64_t all = settings->n_words >= 64 ? UINT64_MAX : (UINT64_C(1) << settings->n_words) - 1;

    return settings->shared == all;
}

/* run_set_number - set a variable, or remove the value of an outer quorlock. */
static bool run_set_number(const char *name, bool is_there, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    return (is_there ? setenv(name, text, 1) : unsetenv(name)) == 0;
}

/* run_set_environment - set the variables for the command. */
static bool run_set_environment(const struct run *run, const char *owner, uint64_t fence, uint32_t slot)
{
    return setenv("QUORLOCK_KEY", run->settings->words[0], 1) == 0 && setenv("QUORLOCK_KEYS", run->keys, 1) == 0 &&
           setenv("QUORLOCK_OWNER", owner, 1) == 0 &&
           run_set_number("QUORLOCK_FENCE", run->settings->values.fence, fence) &&
           run_set_number("QUORLOCK_SLOT", run->settings->permits != 0, slot) && unsetenv("QUORLOCK_TERM") == 0;
}

/* granted - start the command, unless a signal came or the lock is not valid any more. */
static void granted(struct run *run, const struct quorlock_result *result)
{
    const char *owner = quorlock_lock_token(run->lock);
    uint64_t fence = quorlock_lock_fence(run->lock), deadline_us;

    /* A signal that was not read yet came during the wait, so the command must not start. It is too late to cancel, so
       end_wait releases the lock. */
    supervise_read_signals(&run->supervisor);
    if (run->state != RUN_WAITING) return;
    if (run->signal != 0) {
        run_finish(run, EXIT_SIGNAL + run->signal);
        return;
    }
    say_within(SUPERVISE_SAY_MS);
    if (run->settings->verbose > 0) say_granted(run, result);
    deadline_us = supervise_deadline_us(&run->supervisor);
    if (owner == NULL || deadline_us == 0) {
        say("\"%s\" was granted too late: the command was not started", run->name);
        run_finish(run, EXIT_LOST);
        return;
    }
    /* With --fence the command needs a token to start. Readers get the token of the last writer; there may be none. */
    if (run->settings->values.fence != 0 && fence == 0 && !run_reads(run->settings)) {
        say("\"%s\" was granted without a fencing token: the command was not started", run->name);
        run_finish(run, EXIT_NO_QUORUM);
        return;
    }
    run->state = RUN_RUNNING;
    if (!run_set_environment(run, owner, fence, result->slot)) {
        say("out of memory");
        run_finish(run, EXIT_SYSTEM);
    } else if (!supervise_start(&run->supervisor, deadline_us)) {
        run_finish(run, EXIT_SYSTEM);
    }
}

/* run_name_refusal - name the result as the metrics of acquires do: the status in small letters. */
static void run_name_refusal(struct run *run, int status)
{
    snprintf(run->refusal, sizeof(run->refusal), "%s", quorlock_status_name(status));
    for (char *p = run->refusal; *p != '\0'; p++) *p = (char)tolower((unsigned char)*p);
    run->result = run->refusal;
}

/* run_refused - print why there is no lock, and choose the exit status. */
static void run_refused(struct run *run, const struct quorlock_result *result)
{
    int status = session_refused(result->status);
    const char *why = quorlock_status_text(result->status);

    if (result->status == QUORLOCK_ERR_INVAL) why = "the nodes refuse the settings of this client";
    if (run->signal != 0) {
        status = EXIT_SIGNAL + run->signal;
    } else if (report_is_held(run->settings, result)) {
        if (!run->settings->quiet) report_held(run->settings, result);
        status = (int)run->settings->held_status;
    } else {
        say("cannot lock \"%s\": %s; %u of %zu nodes voted, %zu are needed", run->name, why,
            result->granted + result->refused, result->n_votes, report_quorum(run->settings, result->n_votes));
        report_votes(result->votes, result->n_votes);
    }
    if (run->signal == 0) run_name_refusal(run, result->status);
    notify_status("STOPPING=1", "no lock on \"%s\"", run->name);
    run->state = RUN_RELEASING;
    run->status = status;
    session_leave(&run->session);
}

static void acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct run *run = arg;

    (void)lock;
    if (result->status == QUORLOCK_OK) {
        granted(run, result);
    } else {
        run_refused(run, result);
    }
}

/* run_ask_library - start the acquire: 0, or the exit status after a message. */
static int run_ask_library(struct run *run)
{
    const struct settings *settings = run->settings;
    uint32_t lease_ms = session_lease_ms(settings);
    struct quorlock_lock_options options = {
        .size = sizeof(options),
        .lease_ms = lease_ms,
        .wait_ms = settings->values.wait_ms,
        .lost_margin_ms = run->supervisor.grace_ms,
        .max_hold_ms = settings->max_hold_ms,
        .fencing = settings->values.fence != 0,
        .shared = settings->shared,
        .permits = settings->permits,
        .keep_ms = settings->keep_ms,
        .fair = settings->fair,
    };
    int status = quorlock_lock_new(&run->lock, run->session.client, settings->words, settings->n_words, &options);
    int failed;

    if (status == 0) {
        quorlock_lock_set_on_lost(run->lock, lost, run);
        run->asked_us = warden_now_us();
        status = quorlock_lock_acquire(run->lock, acquired, run);
    }
    failed = session_check(&run->session, status);
    if (status == QUORLOCK_ERR_INVAL && settings->values.client.max_lease_ms == 0 &&
        lease_ms > QUORLOCK_LEASE_MS_DEFAULT)
        say("such a lease needs a longer max lease on the nodes and at all their clients: "
            "'quorlock bootstrap --reconfigure --max-lease %ums', then --max-lease %ums or "
            "QUORLOCK_MAX_LEASE=%ums",
            lease_ms, lease_ms, lease_ms);
    return failed;
}

/* run_check_dialect - refuse what only the plain dialect has, as the library does, but in terms of the command line. */
static int run_check_dialect(const struct settings *settings)
{
    const char *option = settings->fair           ? "--fair"
                         : settings->keep_ms != 0 ? "--keep"
                         : settings->permits != 0 ? "--permits"
                         : settings->shared != 0  ? "--shared"
                                                  : NULL;

    if (option == NULL || settings->values.client.dialect != QUORLOCK_DIALECT_REDISSON) return 0;
    say("%s: the redisson dialect has no such locks, because those of Redisson have other rules: leave out %s, or use "
        "the plain dialect",
        option, option);
    return EXIT_USAGE;
}

/* run_check_mode - refuse wrong modes, as the library does, but in terms of the command line. */
static int run_check_mode(const struct settings *settings)
{
    if (settings->permits == 0) return 0;
    if (settings->shared != 0) {
        say("--permits and --shared exclude each other: give one of them");
    } else if (settings->n_words > 1) {
        say("--permits needs exactly one key: %zu keys are given", settings->n_words);
    } else {
        return 0;
    }
    return EXIT_USAGE;
}

/* run_check_keep - refuse a keep time that does not fit, as the library does, but in terms of the command line. */
static int run_check_keep(const struct settings *settings)
{
    uint32_t max_lease_ms = session_max_lease_ms(settings);

    if (settings->keep_ms == 0) return 0;
    if (settings->permits != 0 || settings->shared != 0) {
        say("--keep is for exclusive locks without permits: leave --keep out");
    } else if (settings->values.lease_ms > 0 && settings->keep_ms > settings->values.lease_ms) {
        say("--keep of %u ms is longer than --lease of %u ms, which keeps the lock if its owner dies: lengthen the "
            "lease",
            settings->keep_ms, settings->values.lease_ms);
    } else if (settings->keep_ms > max_lease_ms) {
        say("--keep of %u ms is longer than the max lease of %u ms: give --max-lease as the nodes have it (quorlock "
            "doctor shows it), shorten --keep, or lengthen the max lease for all clients of these nodes: 'quorlock "
            "bootstrap --reconfigure --max-lease %ums', then --max-lease %ums or QUORLOCK_MAX_LEASE=%ums",
            settings->keep_ms, max_lease_ms, settings->keep_ms, settings->keep_ms, settings->keep_ms);
    } else {
        return 0;
    }
    return EXIT_USAGE;
}

/* check_lines - refuse a key with a newline: the command gets its keys one a line, and would read two. */
static int check_lines(const struct settings *settings)
{
    for (size_t i = 0; i < settings->n_words; i++) {
        if (strchr(settings->words[i], '\n') == NULL) continue;
        say("the key \"%s\" has a newline, but QUORLOCK_KEYS has one key a line: give a key without a newline",
            settings->words[i]);
        return EXIT_USAGE;
    }
    return 0;
}

/* run_check_hold - refuse a longest hold that the first lease would exceed. */
static int run_check_hold(const struct settings *settings)
{
    uint32_t lease_ms = session_lease_ms(settings);

    if (settings->max_hold_ms == 0 || settings->max_hold_ms >= lease_ms) return 0;
    say("--max-hold of %u ms is shorter than the lease of %u ms, for which the lock is held in any case: give a longer "
        "one, or a shorter --lease",
        settings->max_hold_ms, lease_ms);
    return EXIT_USAGE;
}

static int run_check_settings(const struct settings *settings)
{
    if (settings->n_words == 0) {
        say("no key: give quorlock run KEY... -- CMD ARGS...; for a key that begins with - write --key KEY");
        return EXIT_USAGE;
    }
    if (check_lines(settings) != 0 || run_check_dialect(settings) != 0) return EXIT_USAGE;
    if (run_check_keep(settings) != 0 || run_check_hold(settings) != 0) return EXIT_USAGE;
    return run_check_mode(settings) != 0 ? EXIT_USAGE : supervise_check(settings, "run");
}

/* hold_and_run - acquire the lock, run the command, and release the lock. */
static int hold_and_run(struct run *run)
{
    struct supervisor *supervisor = &run->supervisor;
    int status = session_open(&run->session, run->settings);

    if (status != 0) return status;
    sources_forget(run->settings->sources, &run->settings->values);
    supervisor->name = run->name;
    supervisor->valid_ms = run_valid_ms;
    supervisor->ended = run_command_ended;
    supervisor->signaled = run_signaled;
    supervisor->arg = run;
    status = supervise_open(supervisor, &run->session);
    if (status == 0)
        status = metrics_start(&run->metrics, run->session.base, run->session.client, run->settings->metrics_file);
    if (status == 0) status = run_ask_library(run);
    if (status == 0) status = supervise_loop(supervisor);
    if (status == 0) status = run->status;
    supervise_close(supervisor);
    metrics_end(&run->metrics, run->result != NULL ? run->result : last_result(status), status);
    session_close(&run->session);
    return status;
}

static int compare_words(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* run_name_keys - join the keys for messages, in the order of the library's messages; NULL: out of memory. */
static char *run_name_keys(const struct settings *settings)
{
    const char **words = calloc(settings->n_words, sizeof(*words));
    char *name = NULL;

    if (words != NULL) {
        memcpy(words, settings->words, settings->n_words * sizeof(*words));
        qsort(words, settings->n_words, sizeof(*words), compare_words);
        name = text_joined(words, settings->n_words, ", ");
    }
    free(words);
    return name;
}

int verb_run(const struct settings *settings)
{
    /* It is static because callbacks for a frozen node may refer to it until the process ends. */
    static struct run run;
    int status = run_check_settings(settings);

    if (status != 0) return status;
    run = (struct run){.settings = settings};
    supervise_init(&run.supervisor);
    run.name = run_name_keys(settings);
    run.keys = text_joined(settings->words, settings->n_words, "\n");
    status = EXIT_SYSTEM;
    if (run.name != NULL && run.keys != NULL) {
        status = hold_and_run(&run);
    } else {
        say("out of memory");
    }
    free(run.name);
    free(run.keys);
    supervise_die(&run.supervisor, status);
    return status;
}
