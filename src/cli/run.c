/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - quorlock run: a command under a lock
 *
 * WAITING for the grant, then RUNNING the command, then RELEASING. A signal leads from WAITING to RELEASING
 * without starting the command. A loss leads from RUNNING to LOSING: the command's group has until kill_at_ms
 * to end by itself, which is before another client can get the lock. The warden knows that time too, and kills
 * the group when this process cannot.
 */
#include <event2/event.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <unistd.h>

#include "args.h"
#include "child.h"
#include "cli.h"
#include "metrics.h"
#include "notify.h"
#include "report.h"
#include "say.h"
#include "signals.h"
#include "sources.h"
#include "terminal.h"
#include "warden.h"

enum run_state { RUN_WAITING = 0, RUN_RUNNING, RUN_LOSING, RUN_RELEASING };

enum { GRACE_MS_MAX = 5000, GRACE_MS_MIN = 10, KILL_RESERVE_MS_MIN = 10 };
/* While the command runs a line may wait so long: a terminal takes nothing while another process writes to it. */
enum { RUNNING_PATIENCE_MS = 5 };
enum { GROUP_POLL_MS = 10, TERMINAL_POLL_MS = 200 };
/* Two readings of a deadline that did not move differ by no more, unless this process was kept from running. */
enum { DEADLINE_NOISE_US = 2000, READING_US_MAX = 1000, READINGS = 3 };

struct run {
    struct session session;
    const struct settings *settings;
    char *name; /* the keys in messages */
    char *keys; /* one a line */
    quorlock *lock;
    struct signals signals;
    struct child child;
    struct warden warden;
    struct metrics metrics;
    int terminal; /* -1: there is none */
    struct event *signal_event, *timer_event;
    int timer_fd; /* CLOCK_BOOTTIME, absolute: it goes on while the machine sleeps, and is never early */
    enum run_state state;
    uint32_t lease_ms, grace_ms;
    uint64_t asked_us;    /* when the lock was asked for */
    uint64_t kill_at_ms;  /* in LOSING */
    bool killed;          /* in LOSING: SIGKILL was sent */
    int verdict;          /* in LOSING: the exit status to come */
    uint64_t share_at_ms; /* the terminal changes hands then at the earliest */
    bool others_want;     /* others of our process group are stopped because they read the terminal */
    int signal;           /* ended the wait */
    int passed;           /* SIGINT or SIGQUIT, the last one that we sent to the command's group */
    bool passed_typed;    /* it was typed on the terminal */
    int die_of;           /* a signal that was typed on the terminal: we die of it in the end */
    bool die_together;    /* typed while the command had the foreground: our group never got it */
    int status;           /* exit status */
};

static uint64_t now_ms(void)
{
    return warden_now_us() / 1000;
}

static void set_timer(struct run *run, uint64_t at_ms)
{
    struct itimerspec at = {.it_value = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000}};

    timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/*
 * choose_grace_ms - how long before the end of validity the library must report a loss
 *
 * min(5 s, lease/4), and less where a long node timeout leaves less: the library wants renewal + 2 node
 * timeouts + this margin inside lease - drift allowance, and chooses its own node timeout so that this holds.
 */
static uint32_t choose_grace_ms(uint32_t lease_ms, uint32_t node_timeout_ms)
{
    uint64_t grace_ms = lease_ms / 4 < GRACE_MS_MAX ? lease_ms / 4 : GRACE_MS_MAX;

    if (node_timeout_ms > 0) {
        uint64_t allowance_ms = (lease_ms + UINT64_C(99)) / 100 + 2;
        uint64_t busy_ms = lease_ms / 3 + 2 * (uint64_t)node_timeout_ms + allowance_ms + 1;
        uint64_t room_ms = busy_ms < lease_ms ? lease_ms - busy_ms : 0;

        if (grace_ms > room_ms) grace_ms = room_ms;
    }
    /* Too little to end a command in: the library uses its own margin, or refuses the lease. */
    return grace_ms < GRACE_MS_MIN ? 0 : (uint32_t)grace_ms;
}

/* reserve_ms_of - how long before the end of validity SIGKILL is sent at the latest. */
static uint32_t reserve_ms_of(const struct run *run)
{
    return run->grace_ms / 10 < KILL_RESERVE_MS_MIN ? KILL_RESERVE_MS_MIN : run->grace_ms / 10;
}

/*
 * kill_deadline_us - when SIGKILL must be sent at the latest, by the clock of warden_now_us; 0: now
 *
 * The clock is read before the validity: a pause in between makes the result too early, never too late.
 */
static uint64_t kill_deadline_us(const struct run *run)
{
    uint32_t valid_ms = 0, reserve_ms = reserve_ms_of(run);
    uint64_t read_us = 0;

    for (int i = 0; i < READINGS; i++) {
        read_us = warden_now_us();
        valid_ms = quorlock_valid_ms(run->lock);
        if (warden_now_us() - read_us <= READING_US_MAX) break;
    }
    return valid_ms > reserve_ms ? read_us + (uint64_t)(valid_ms - reserve_ms) * 1000 : 0;
}

/* update_warden - sends the deadline where a renewal has moved it on, or the loss of a vote back. */
static void update_warden(struct run *run)
{
    uint64_t known_us = run->warden.deadline_us;
    uint64_t deadline_us = kill_deadline_us(run);

    /* At 0 it keeps what it knows: the loss is about to be reported. */
    if (deadline_us > 0 && (deadline_us > known_us || deadline_us + DEADLINE_NOISE_US < known_us))
        warden_tell(&run->warden, deadline_us);
}

/* time_is_up - the command must not be continued then, whether the loss was reported or not. */
static bool time_is_up(const struct run *run)
{
    if (warden_now_us() >= run->warden.deadline_us) return true;
    return run->state == RUN_LOSING ? now_ms() >= run->kill_at_ms : quorlock_valid_ms(run->lock) == 0;
}

static void released(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct run *run = arg;

    (void)lock;
    if (result->status != QUORLOCK_OK) {
        say("released \"%s\" on %zu of %zu nodes only; elsewhere it ends with its lease", run->name,
            report_gone(result), result->n_votes);
        report_votes(result->votes, result->n_votes);
    } else if (run->settings->verbose > 0) {
        report_released(run->name, result);
    }
    /* No loss was reported, yet the lock was gone when the command ended: somebody broke it, or our clock stood
       still. The command may have run beside another one. */
    if (result->expired != 0 && run->child.state == CHILD_ENDED && run->child.exec_errno == 0 &&
        run->status != EXIT_LOST) {
        child_signal(&run->child, SIGKILL); /* what it left behind must not go on without the lock */
        say("lost \"%s\" while the command ran: it was gone when the command ended (%s); its own exit status "
            "would have been %d",
            run->name, result->text, run->child.status);
        run->status = EXIT_LOST;
    }
    session_leave(&run->session);
}

/* is_well - for the supervisor: the loop runs, and what runs under the lock has it. */
static bool is_well(const void *arg)
{
    const struct run *run = arg;

    return run->state != RUN_RUNNING || quorlock_valid_ms(run->lock) > 0;
}

/* finish - releases the lock, if there ever was one, and leaves the loop. */
static void finish(struct run *run, int status)
{
    notify_status("STOPPING=1", "releasing \"%s\"", run->name);
    run->state = RUN_RELEASING;
    run->status = status;
    warden_end(&run->warden);
    say_patience(100);
    if (quorlock_release(run->lock, released, run) != 0) session_leave(&run->session);
}

static void kill_group(struct run *run)
{
    if (!run->killed && !child_signal(&run->child, SIGKILL))
        say("cannot end the command (process group %ld): %s", (long)run->child.pid, strerror(errno));
    run->killed = true;
}

/* end_command - the lock ends in remaining_ms, and the command must end before. */
static void end_command(struct run *run, uint32_t remaining_ms)
{
    uint32_t budget_ms = remaining_ms < run->grace_ms ? remaining_ms : run->grace_ms;
    uint32_t reserve_ms = reserve_ms_of(run);

    budget_ms = budget_ms > reserve_ms ? budget_ms - reserve_ms : 0;
    notify_status(NULL, "ending the command, for \"%s\" is lost", run->name);
    run->state = RUN_LOSING;
    run->kill_at_ms = now_ms() + budget_ms;
    if (budget_ms > 0) {
        child_signal(&run->child, SIGTERM);
        /* A stopped process would not see it. */
        child_signal(&run->child, SIGCONT);
        set_timer(run, run->kill_at_ms);
        say("ending the command before \"%s\" can be somebody else's: SIGTERM now, SIGKILL in %u ms", run->name,
            budget_ms);
    } else {
        kill_group(run);
        say("ending the command, for \"%s\" may be somebody else's now: SIGKILL", run->name);
    }
}

static void lost(quorlock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct run *run = arg;

    (void)lock;
    if (run->state != RUN_RUNNING && run->state != RUN_LOSING) return;
    run->verdict = EXIT_LOST;
    end_command(run, loss->remaining_ms);
    if (run->settings->verbose > 0) report_votes(loss->votes, loss->n_votes);
}

/* take_terminal - takes the foreground back from the command, for others of our group that want it. */
static bool take_terminal(struct run *run)
{
    bool taken = terminal_take(run->terminal, run->child.pid);

    if (taken && run->others_want) {
        run->others_want = false;
        run->share_at_ms = now_ms() + TERMINAL_POLL_MS;
        kill(0, SIGCONT);
    }
    return taken;
}

/*
 * share_terminal - gives the foreground to what is stopped for reading without it: the command, or our own
 * group
 *
 * Each side has some time to read before the other one gets it. It polls, for no event says that a shell has
 * brought our group into the foreground.
 */
static void share_terminal(struct run *run)
{
    struct child *child = &run->child;
    uint64_t at_ms = now_ms();

    if (at_ms >= run->share_at_ms && run->others_want && take_terminal(run) && run->settings->verbose > 0)
        say_at(LOG_INFO, "another process beside quorlock wants the terminal, and has it now");
    if (at_ms >= run->share_at_ms && child_wants_terminal(child) && !time_is_up(run) &&
        terminal_lend(run->terminal, child->pid)) {
        run->share_at_ms = at_ms + TERMINAL_POLL_MS;
        child_signal(child, SIGCONT);
        if (run->settings->verbose > 0) say_at(LOG_INFO, "the command wants the terminal, and has it now");
    }
    /* In the other states the timer has another use, or the command has ended. */
    if ((run->others_want || child_wants_terminal(child)) && (run->state == RUN_WAITING || run->state == RUN_RUNNING))
        set_timer(run, at_ms + TERMINAL_POLL_MS);
}

/* finish_losing - in LOSING, the command has ended: waits for its group until the time to kill it. */
static void finish_losing(struct run *run)
{
    uint64_t next_ms = now_ms() + GROUP_POLL_MS;

    if (child_group_is_left(&run->child) && !run->killed) {
        if (now_ms() < run->kill_at_ms) {
            set_timer(run, next_ms < run->kill_at_ms ? next_ms : run->kill_at_ms);
            return;
        }
        kill_group(run);
    }
    take_terminal(run);
    say("%s while the command ran; its own exit status would have been %d",
        run->verdict == EXIT_LOST ? "the lock was lost" : "the warden was lost", run->child.status);
    finish(run, run->verdict);
}

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    uint64_t times = 0;

    (void)what;
    if (read(fd, &times, sizeof(times)) < 0) return;
    if (run->state == RUN_WAITING || run->state == RUN_RUNNING) share_terminal(run);
    if (run->state != RUN_LOSING) return;
    if (run->child.state == CHILD_ENDED) {
        finish_losing(run);
    } else if (now_ms() >= run->kill_at_ms) {
        kill_group(run);
    } else {
        set_timer(run, run->kill_at_ms);
    }
}

/* note_typed - shells go on with a loop or a script unless we die of the typed signal, as the command did. */
static void note_typed(struct run *run)
{
    int number = run->child.end_signal;
    bool lent = terminal_has(run->terminal, run->child.pid);

    if ((number != SIGINT && number != SIGQUIT) || (number == run->passed ? !run->passed_typed : !lent)) return;
    run->die_of = number;
    run->die_together = lent;
}

static void ended(struct run *run)
{
    int status = run->child.status;

    if (run->state == RUN_LOSING) {
        finish_losing(run);
        return;
    }
    note_typed(run);
    take_terminal(run);
    if (run->child.exec_errno != 0) {
        say("cannot execute %s: %s", run->settings->command[0], strerror(run->child.exec_errno));
    } else if (time_is_up(run)) {
        /* This process stood still and sees the command's end before the library has reported the loss. What
           the command started must not go on. */
        kill_group(run);
        say("lost \"%s\" while the command ran: its validity is over; its own exit status would have been %d",
            run->name, status);
        status = EXIT_LOST;
    }
    finish(run, status);
}

static void stopped(struct run *run)
{
    if (run->terminal >= 0 && child_wants_terminal(&run->child)) {
        share_terminal(run);
        if (!terminal_has(run->terminal, run->child.pid) && !terminal_has(run->terminal, getpgrp()))
            say_at(LOG_WARNING,
                   "the command is stopped, for it wants the terminal and quorlock is not in the foreground; "
                   "\"%s\" stays locked. It goes on when quorlock is",
                   run->name);
    } else if (take_terminal(run)) {
        say_at(LOG_WARNING,
               "the command is stopped; \"%s\" stays locked. kill -CONT %ld goes on, Ctrl-C ends it, Ctrl-Z stops "
               "the renewal too, and the command ends with the lease",
               run->name, (long)getpid());
    } else {
        say_at(LOG_WARNING, "the command is stopped; \"%s\" stays locked. kill -CONT %ld goes on", run->name,
               (long)getpid());
    }
}

static void check_child(struct run *run)
{
    if ((run->state != RUN_RUNNING && run->state != RUN_LOSING) || !child_update(&run->child)) return;
    if (run->child.state == CHILD_ENDED) {
        ended(run);
    } else if (run->child.state == CHILD_STOPPED && run->state == RUN_RUNNING) {
        stopped(run);
    }
}

/* check_warden - without a warden the command must not run. */
static void check_warden(struct run *run)
{
    uint32_t restarts = run->warden.restarts;

    if (run->state != RUN_RUNNING && run->state != RUN_LOSING) return;
    if (!warden_check(&run->warden)) {
        say("somebody ended the warden, without which the command must not run, and there is no other to "
            "be had: %s",
            strerror(errno));
        run->verdict = run->state == RUN_LOSING ? run->verdict : EXIT_SYSTEM;
        if (run->state == RUN_RUNNING) end_command(run, quorlock_valid_ms(run->lock));
    } else if (restarts != run->warden.restarts) {
        say_at(LOG_WARNING,
               "somebody ended the warden, the process that ends the command in time when quorlock cannot; "
               "there is another one now");
    }
}

/* pass_on - a signal for the command's group. */
static void pass_on(struct run *run, int number, bool typed)
{
    bool stopped = run->child.state == CHILD_STOPPED;

    if (number == SIGINT || number == SIGQUIT) {
        run->passed = number;
        run->passed_typed = typed;
    }
    if (number == SIGCONT) {
        if (time_is_up(run)) return; /* the loss is about to be reported */
        terminal_offer(run->terminal, run->child.pid);
        child_signal(&run->child, SIGCONT);
    } else if (number == SIGTSTP && stopped && run->terminal >= 0) {
        /* The command is stopped, and the warden ends it when the lease ends before SIGCONT. */
        signals_stop();
    } else {
        child_signal(&run->child, number);
        /* So that a stopped command ends now, not when somebody continues it. */
        if (stopped && signals_end_wait(number) && !time_is_up(run)) child_signal(&run->child, SIGCONT);
    }
}

static void end_wait(struct run *run, int number, bool typed)
{
    if (run->signal != 0 || !signals_end_wait(number)) {
        if (number == SIGTSTP) signals_stop();
        return;
    }
    run->signal = number;
    if (typed) run->die_of = number;
    /* Then acquired() comes with CANCELED, or with a grant, which it gives back. */
    if (quorlock_cancel(run->lock) != 0) finish(run, EXIT_SIGNAL + number);
}

static void handle_signals(evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    bool typed = false;

    (void)fd;
    (void)what;
    for (int number; (number = signals_next(&run->signals, &typed)) != 0;) {
        if (number == SIGCHLD) {
            check_child(run);
            check_warden(run);
        } else if (number == SIGTTIN || number == SIGTTOU) {
            run->others_want = run->terminal >= 0;
            share_terminal(run);
        } else if (run->state == RUN_WAITING) {
            end_wait(run, number, typed);
        } else if (run->state != RUN_RELEASING) {
            pass_on(run, number, typed);
        } else if (typed && run->status != EXIT_LOST) {
            run->die_of = number;
            run->status = EXIT_SIGNAL + number;
        }
    }
}

static void say_granted(const struct run *run, const struct quorlock_result *result)
{
    struct text line = {0};

    text_format(&line, "granted \"%s\" by %u of %zu nodes in %.1f ms, valid %u ms, owner ", run->name, result->granted,
                result->n_votes, (double)(warden_now_us() - run->asked_us) / 1000.0, quorlock_valid_ms(run->lock));
    report_owner(&line, result->token != NULL ? result->token : "");
    if (result->fence != 0) text_format(&line, ", fence %" PRIu64, result->fence);
    say_text(LOG_INFO, &line);
}

/* set_environment - for the command; nothing else reads it here. */
static bool set_environment(const struct run *run, const char *owner, uint64_t fence)
{
    char number[24];

    snprintf(number, sizeof(number), "%" PRIu64, fence);
    return setenv("QUORLOCK_KEY", run->settings->words[0], 1) == 0 && setenv("QUORLOCK_KEYS", run->keys, 1) == 0 &&
           setenv("QUORLOCK_OWNER", owner, 1) == 0 &&
           (fence != 0 ? setenv("QUORLOCK_FENCE", number, 1) : unsetenv("QUORLOCK_FENCE")) == 0;
}

/* start_command - the warden first; false: no process, said already. */
static bool start_command(struct run *run, const char *owner, uint64_t fence, uint64_t deadline_us)
{
    const char *what = "the command";
    bool started =
        set_environment(run, owner, fence) && child_start(&run->child, run->settings->command, &run->signals);

    if (started) {
        what = "the warden, without which the command must not run";
        started = warden_start(&run->warden, run->child.pid, deadline_us);
        if (!started) child_abandon(&run->child);
    }
    if (!started) {
        say("no process to be had for %s: %s", what, strerror(errno));
        return false;
    }
    terminal_offer(run->terminal, run->child.pid);
    child_go(&run->child);
    notify_status("READY=1", "%s runs under \"%s\"", run->settings->command[0], run->name);
    return true;
}

/* granted - starts the command, unless a signal came meanwhile or the lock is not valid after all. */
static void granted(struct run *run, const struct quorlock_result *result)
{
    const char *owner = quorlock_token(run->lock);
    uint64_t fence = quorlock_fence(run->lock), deadline_us;

    /* A signal that is still unread came during the wait: the command must not start. It is too late to cancel,
       so end_wait gives the lock back. */
    handle_signals(run->signals.fd, EV_READ, run);
    if (run->state != RUN_WAITING) return;
    if (run->signal != 0) {
        finish(run, EXIT_SIGNAL + run->signal);
        return;
    }
    say_patience(RUNNING_PATIENCE_MS);
    if (run->settings->verbose > 0) say_granted(run, result);
    deadline_us = kill_deadline_us(run);
    if (owner == NULL || deadline_us == 0) {
        say("\"%s\" was granted too late: the command was not started", run->name);
        finish(run, EXIT_LOST);
        return;
    }
    /* With --fence the command relies on its token: without one it must not start. */
    if (run->settings->fence && fence == 0) {
        say("\"%s\" was granted without a fencing token: the command was not started", run->name);
        finish(run, EXIT_NO_QUORUM);
        return;
    }
    run->state = RUN_RUNNING;
    if (!start_command(run, owner, fence, deadline_us)) finish(run, EXIT_SYSTEM);
}

/* refused - says why there is no lock, and how the command ends. */
static void refused(struct run *run, const struct quorlock_result *result)
{
    size_t quorum = run->settings->policy == QUORLOCK_ALL ? result->n_votes : result->n_votes / 2 + 1;
    bool enough_votes = (size_t)result->granted + result->refused >= quorum;
    int status = session_exit(result->status);
    const char *why = quorlock_status_text(result->status);

    /* The command line was right, but the nodes are set up for other clients. */
    if (result->status == QUORLOCK_INVAL) {
        status = EXIT_NO_QUORUM;
        why = "the nodes refuse how this client is set up";
    }
    if (run->signal != 0) {
        status = EXIT_SIGNAL + run->signal;
    } else if (result->status == QUORLOCK_HELD || (result->status == QUORLOCK_TIMEDOUT && enough_votes)) {
        report_held(run->name, result, quorum);
        status = (int)run->settings->held_status;
    } else {
        say("cannot lock \"%s\": %s; %u of %zu nodes voted, %zu are needed", run->name, why,
            result->granted + result->refused, result->n_votes, quorum);
        report_votes(result->votes, result->n_votes);
    }
    notify_status("STOPPING=1", "no lock on \"%s\"", run->name);
    run->state = RUN_RELEASING;
    run->status = status;
    session_leave(&run->session);
}

static void acquired(quorlock *lock, const struct quorlock_result *result, void *arg)
{
    struct run *run = arg;

    (void)lock;
    if (result->status == QUORLOCK_OK) {
        granted(run, result);
    } else {
        refused(run, result);
    }
}

/* watch - signals, the timer and the supervisor, on the session's loop. */
static bool watch(struct run *run)
{
    if (!signals_open(&run->signals)) return false;
    run->terminal = terminal_open();
    run->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (run->timer_fd < 0) return false;
    run->signal_event = event_new(run->session.base, run->signals.fd, EV_READ | EV_PERSIST, handle_signals, run);
    run->timer_event = event_new(run->session.base, run->timer_fd, EV_READ | EV_PERSIST, timer_fired, run);
    return run->signal_event != NULL && run->timer_event != NULL && event_add(run->signal_event, NULL) == 0 &&
           event_add(run->timer_event, NULL) == 0 && notify_open(run->session.base, is_well, run);
}

static void unwatch(struct run *run)
{
    if (run->signal_event != NULL) event_free(run->signal_event);
    if (run->timer_event != NULL) event_free(run->timer_event);
    notify_close();
    if (run->signals.fd >= 0) close(run->signals.fd);
    if (run->timer_fd >= 0) close(run->timer_fd);
    if (run->terminal >= 0) close(run->terminal);
}

/* ask - 0, or the exit status after saying what the library does not accept, with the remedy if there is one.
 */
static int ask(struct run *run)
{
    const struct settings *settings = run->settings;
    struct quorlock_options options = {
        .size = sizeof(options),
        .lease_ms = run->lease_ms,
        .wait_ms = settings->wait_ms,
        .lost_margin_ms = run->grace_ms,
        .fencing = settings->fence,
    };
    int status = quorlock_new(&run->lock, run->session.client, settings->words, settings->n_words, &options);
    int failed;

    if (status == 0) {
        quorlock_on_lost(run->lock, lost, run);
        run->asked_us = warden_now_us();
        status = quorlock_acquire(run->lock, acquired, run);
    }
    failed = session_check(&run->session, status);
    if (status == QUORLOCK_INVAL && settings->max_lease_ms == 0 && run->lease_ms > 30000)
        say("a lease so long needs another max lease on the nodes and at all their clients: "
            "'quorlock bootstrap --reconfigure --max-lease %ums', then --max-lease %ums or "
            "QUORLOCK_MAX_LEASE=%ums",
            run->lease_ms, run->lease_ms, run->lease_ms);
    return failed;
}

static int check_settings(const struct settings *settings)
{
    if (settings->n_words == 0) {
        say("no key: give quorlock run KEY... -- CMD ARGS...; a key that begins with - is given by --key KEY");
    } else if (settings->command == NULL) {
        say("no command: write -- between the keys and the command: quorlock run %s -- CMD ARGS...",
            settings->words[0]);
    } else if (settings->command[0] == NULL) {
        say("no command behind --: give quorlock run %s -- CMD ARGS...", settings->words[0]);
    } else if (settings->max_lease_ms > 0 && settings->lease_ms > settings->max_lease_ms) {
        say("--lease of %u ms is longer than --max-lease (QUORLOCK_MAX_LEASE) of %u ms: shorten the one, or "
            "lengthen the other for all clients of these nodes",
            settings->lease_ms, settings->max_lease_ms);
    } else {
        return 0;
    }
    return EXIT_USAGE;
}

/* choose_lease_ms - as the library chooses, for the grace depends on it. */
static uint32_t choose_lease_ms(const struct settings *settings)
{
    if (settings->lease_ms > 0) return settings->lease_ms;
    return settings->max_lease_ms > 0 && settings->max_lease_ms < 30000 ? settings->max_lease_ms : 30000;
}

/* hold_and_run - takes the lock, runs the command, gives the lock back. */
static int hold_and_run(struct run *run)
{
    int status;

    run->lease_ms = choose_lease_ms(run->settings);
    run->grace_ms = choose_grace_ms(run->lease_ms, run->settings->node_timeout_ms);
    status = session_open(&run->session, run->settings);
    if (status != 0) return status;
    sources_forget(run->settings);
    if (!watch(run)) {
        say("cannot watch signals and time: %s", strerror(errno));
        status = EXIT_SYSTEM;
    } else {
        status = metrics_start(&run->metrics, run->session.base, run->session.client, run->settings->metrics_file);
        if (status == 0) status = ask(run);
        /* In each turn a renewal may have been answered. */
        while (status == 0 && event_base_got_break(run->session.base) == 0) {
            if (event_base_loop(run->session.base, EVLOOP_ONCE) != 0) {
                say("the event loop failed");
                status = EXIT_SYSTEM;
            }
            if (run->state == RUN_RUNNING) update_warden(run);
        }
        if (status == 0) status = run->status;
    }
    /* Only after the loop failed: no command runs without a lock. */
    if (run->state == RUN_RUNNING || run->state == RUN_LOSING) kill_group(run);
    warden_end(&run->warden);
    child_forget(&run->child);
    unwatch(run);
    metrics_end(&run->metrics);
    session_close(&run->session);
    return status;
}

int verb_run(const struct settings *settings)
{
    /* Static: a frozen node may refer to it until the process ends. */
    static struct run run;
    int status = check_settings(settings);

    if (status != 0) return status;
    run = (struct run){.settings = settings, .signals.fd = -1, .timer_fd = -1, .child.fd = -1, .terminal = -1};
    run.name = text_joined(settings->words, settings->n_words, ", ");
    run.keys = text_joined(settings->words, settings->n_words, "\n");
    status = EXIT_SYSTEM;
    if (run.name != NULL && run.keys != NULL) {
        status = hold_and_run(&run);
    } else {
        say("out of memory");
    }
    free(run.name);
    free(run.keys);
    if (run.die_of != 0 && status == EXIT_SIGNAL + run.die_of) signals_die(run.die_of, run.die_together);
    return status;
}
