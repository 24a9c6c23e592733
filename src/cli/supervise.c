/* SPDX-License-Identifier: BSD-3-Clause */
#include "supervise.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <unistd.h>

#include "cli.h"
#include "notify.h"
#include "say.h"
#include "terminal.h"

enum { GRACE_MS_MAX = 5000, GRACE_MS_MIN = 10, KILL_RESERVE_MS_MIN = 10 };
enum { GROUP_POLL_MS = 10, GROUP_POLL_MS_MAX = 200, TERMINAL_POLL_MS = 200 };
/* Two readings of the same deadline differ by at most DEADLINE_NOISE_US, unless this process did not get the CPU. */
enum { DEADLINE_NOISE_US = 2000, READING_US_MAX = 1000, READINGS = 3 };

/* ---- checks of the settings ---- */

int supervise_check_lease(const struct settings *settings)
{
    if (settings->values.client.max_lease_ms == 0 || settings->values.lease_ms <= settings->values.client.max_lease_ms)
        return 0;
    say("--lease of %u ms is longer than --max-lease (QUORLOCK_MAX_LEASE) of %u ms: give --max-lease as the nodes have "
        "it (quorlock doctor shows it), or shorten the lease",
        settings->values.lease_ms, settings->values.client.max_lease_ms);
    return EXIT_USAGE;
}

/* check_contain - check that the command can be contained: 0, or EXIT_USAGE after a message. */
static int check_contain(const struct settings *settings)
{
    if (settings->contain == CONTAIN_NO || settings->group != GROUP_LEAVE) return contain_check(settings->contain);
    say("--contain %s and --group leave exclude each other: what is contained does not outlive the lock. Give one of "
        "them",
        settings->contain == CONTAIN_PID ? "pid" : "cgroup");
    return EXIT_USAGE;
}

int supervise_check(const struct settings *settings, const char *verb)
{
    if (settings->command == NULL) {
        say("no command: write -- before it: quorlock %s %s -- CMD ARGS...", verb, settings->words[0]);
    } else if (settings->command[0] == NULL) {
        say("no command behind --: give quorlock %s %s -- CMD ARGS...", verb, settings->words[0]);
    } else if (supervise_check_lease(settings) != 0) {
        return EXIT_USAGE;
    } else if (session_lease_ms(settings) < LEASE_MS_MIN) {
        say("--max-lease (QUORLOCK_MAX_LEASE) of %u ms is too short to run a command under a lock: the nodes need at "
            "least %u ms",
            settings->values.client.max_lease_ms, LEASE_MS_MIN);
    } else {
        return check_contain(settings);
    }
    return EXIT_USAGE;
}

/* ---- time ---- */

static uint64_t now_ms(void)
{
    return warden_now_us() / 1000;
}

static void set_timer(struct supervisor *supervisor, uint64_t at_ms)
{
    struct itimerspec at = {.it_value = {(time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000}};

    timerfd_settime(supervisor->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* choose_grace_ms - choose how long before the end of validity a loss is reported: min(5 s, lease/4), or as long as the
 * library has room for, if that is less. */
static uint32_t choose_grace_ms(const quorlock_client *client, uint32_t lease_ms)
{
    uint32_t most_ms = quorlock_client_lost_margin_max_ms(client, lease_ms, 0);
    uint32_t grace_ms = lease_ms / 4 < GRACE_MS_MAX ? lease_ms / 4 : GRACE_MS_MAX;

    if (grace_ms > most_ms) grace_ms = most_ms;
    /* This is too short to end a command: the library uses its own margin, or refuses the lease. */
    return grace_ms < GRACE_MS_MIN ? 0 : grace_ms;
}

/* reserve_ms_of - return how long before the end of validity SIGKILL is sent at the latest. */
static uint32_t reserve_ms_of(const struct supervisor *supervisor)
{
    return supervisor->grace_ms / 10 < KILL_RESERVE_MS_MIN ? KILL_RESERVE_MS_MIN : supervisor->grace_ms / 10;
}

/* Read the clock before the validity: a pause between them makes the result too early, never too late. */
uint64_t supervise_deadline_us(const struct supervisor *supervisor)
{
    uint32_t valid_ms = 0, reserve_ms = reserve_ms_of(supervisor);
    uint64_t read_us = 0;

    for (int i = 0; i < READINGS; i++) {
        read_us = warden_now_us();
        valid_ms = supervisor->valid_ms(supervisor->arg);
        if (warden_now_us() - read_us <= READING_US_MAX) break;
    }
    return valid_ms > reserve_ms ? read_us + (uint64_t)(valid_ms - reserve_ms) * 1000 : 0;
}

/* update_warden - send the deadline if a renewal has moved it forward, or the loss of a vote backward. */
static void update_warden(struct supervisor *supervisor)
{
    uint64_t known_us = supervisor->warden.deadline_us;
    uint64_t deadline_us = supervise_deadline_us(supervisor);

    /* At 0 the warden keeps its deadline: the library is about to report the loss. */
    if (deadline_us > 0 && (deadline_us > known_us || deadline_us + DEADLINE_NOISE_US < known_us))
        warden_tell(&supervisor->warden, deadline_us);
}

/* time_is_up - return whether the command must not run any more, whether the loss was reported or not. */
static bool time_is_up(const struct supervisor *supervisor)
{
    if (warden_now_us() >= supervisor->warden.deadline_us) return true;
    return supervisor->state == SUPERVISE_LOSING ? now_ms() >= supervisor->kill_at_ms
                                                 : supervisor->valid_ms(supervisor->arg) == 0;
}

/* supervise_done - end the warden, which does not kill processes that the command left, end what contains the command,
 * and call ended(). */
static void supervise_done(struct supervisor *supervisor, int status)
{
    supervisor->state = SUPERVISE_IDLE;
    warden_end(&supervisor->warden);
    contain_end(&supervisor->child.contain);
    supervisor->ended(supervisor->arg, status);
}

static void kill_group(struct supervisor *supervisor)
{
    if (!supervisor->killed && !child_kill(&supervisor->child))
        say("cannot end the command (process group %ld): %s", (long)supervisor->child.pid, strerror(errno));
    supervisor->killed = true;
}

static void end_command(struct supervisor *supervisor, uint32_t remaining_ms, int verdict)
{
    uint32_t budget_ms = remaining_ms < supervisor->grace_ms ? remaining_ms : supervisor->grace_ms;
    uint32_t reserve_ms = reserve_ms_of(supervisor);

    budget_ms = budget_ms > reserve_ms ? budget_ms - reserve_ms : 0;
    notify_status(NULL, "ending the command: \"%s\" is lost", supervisor->name);
    supervisor->state = SUPERVISE_LOSING;
    supervisor->verdict = verdict;
    supervisor->kill_at_ms = now_ms() + budget_ms;
    if (budget_ms > 0) {
        child_ask_to_end(&supervisor->child);
        set_timer(supervisor, supervisor->kill_at_ms);
        say("ending the command, because somebody else may get \"%s\" soon: SIGTERM now, SIGKILL in %u ms",
            supervisor->name, budget_ms);
    } else {
        kill_group(supervisor);
        say("ending the command, because somebody else may have \"%s\" now: SIGKILL", supervisor->name);
    }
    /* If the command had ended before, no SIGCHLD comes. */
    if (supervisor->child.state == CHILD_ENDED) set_timer(supervisor, now_ms() + GROUP_POLL_MS);
}

void supervise_lose(struct supervisor *supervisor, uint32_t remaining_ms)
{
    if (supervisor->state != SUPERVISE_IDLE) end_command(supervisor, remaining_ms, EXIT_LOST);
}

/* take_terminal - take the foreground back from the command, and continue others of our group that want it. */
static bool take_terminal(struct supervisor *supervisor)
{
    bool taken = terminal_take(supervisor->terminal, supervisor->child.pid);

    if (taken && supervisor->others_want) {
        supervisor->others_want = false;
        supervisor->share_at_ms = now_ms() + TERMINAL_POLL_MS;
        kill(0, SIGCONT);
    }
    return taken;
}

/*
 * share_terminal - give the foreground to the command or to our group, whichever is stopped because it read the
 * terminal
 *
 * Each side may read for some time before the other one gets the foreground. This polls, because there is no event when
 * a shell brings our group into the foreground.
 */
static void share_terminal(struct supervisor *supervisor)
{
    struct child *child = &supervisor->child;
    uint64_t at_ms = now_ms();

    if (at_ms >= supervisor->share_at_ms && supervisor->others_want && take_terminal(supervisor) &&
        supervisor->verbose > 0)
        say_at(LOG_INFO, "another process of quorlock's group gets the terminal");
    if (at_ms >= supervisor->share_at_ms && child_wants_terminal(child) && !time_is_up(supervisor) &&
        terminal_lend(supervisor->terminal, child->pid)) {
        supervisor->share_at_ms = at_ms + TERMINAL_POLL_MS;
        child_signal(child, SIGCONT);
        if (supervisor->verbose > 0) say_at(LOG_INFO, "the command gets the terminal");
    }
    /* In the other states the timer has another use. */
    if ((supervisor->others_want || child_wants_terminal(child)) && supervisor->state == SUPERVISE_RUNNING)
        set_timer(supervisor, at_ms + TERMINAL_POLL_MS);
}

/* finish_losing - in LOSING, when the command has ended: wait for its group, and kill the group at kill_at_ms. */
static void finish_losing(struct supervisor *supervisor)
{
    uint64_t next_ms = now_ms() + GROUP_POLL_MS;

    if (child_group_is_left(&supervisor->child) && !supervisor->killed) {
        if (now_ms() < supervisor->kill_at_ms) {
            set_timer(supervisor, next_ms < supervisor->kill_at_ms ? next_ms : supervisor->kill_at_ms);
            return;
        }
        kill_group(supervisor);
    }
    take_terminal(supervisor);
    say("%s while the command ran; its own exit status would have been %d",
        supervisor->verdict == EXIT_LOST ? "the lock was lost" : "the warden was lost", supervisor->child.status);
    supervise_done(supervisor, supervisor->verdict);
}

/* watch_group - in GROUP: poll the command's group, which still runs under the lock. */
static void watch_group(struct supervisor *supervisor)
{
    uint64_t next_ms = now_ms() + supervisor->poll_ms;

    if (!child_group_is_left(&supervisor->child)) {
        supervise_done(supervisor, supervisor->child.status);
        return;
    }
    if (now_ms() >= supervisor->kill_at_ms) kill_group(supervisor);
    if (!supervisor->killed && next_ms > supervisor->kill_at_ms) next_ms = supervisor->kill_at_ms;
    supervisor->poll_ms = supervisor->poll_ms * 2 < GROUP_POLL_MS_MAX ? supervisor->poll_ms * 2 : GROUP_POLL_MS_MAX;
    set_timer(supervisor, next_ms);
}

/* keep_group - the command has ended: keep the lock for the rest of its group; false: that is not needed. */
static bool keep_group(struct supervisor *supervisor)
{
    int rule = supervisor->group_rule, number = supervisor->child.end_signal;
    bool contained = supervisor->contain != CONTAIN_NO;
    const char *which = contained ? "that it started" : "of its group";

    /* A command that was killed has not decided that its children go on; one that is contained cannot. */
    if (rule == GROUP_AUTO) rule = contained || number != 0 ? GROUP_END : GROUP_LEAVE;
    if (rule == GROUP_LEAVE || !child_group_is_left(&supervisor->child)) return false;
    supervisor->state = SUPERVISE_GROUP;
    supervisor->poll_ms = GROUP_POLL_MS;
    supervisor->kill_at_ms = UINT64_MAX;
    if (rule == GROUP_END) {
        supervisor->kill_at_ms = now_ms() + GRACE_MS_MAX;
        child_ask_to_end(&supervisor->child);
        say_at(LOG_WARNING,
               "the command has ended, but processes %s run: SIGTERM now, SIGKILL in %d ms; \"%s\" stays locked until "
               "they have ended",
               which, GRACE_MS_MAX, supervisor->name);
    } else {
        say_at(LOG_INFO, "the command has ended; \"%s\" stays locked until the other processes %s have ended",
               supervisor->name, which);
    }
    notify_status(NULL, "waiting for the rest of the command's process group");
    watch_group(supervisor);
    return true;
}

static void timer_fired(evutil_socket_t fd, short what, void *arg)
{
    struct supervisor *supervisor = arg;
    uint64_t times = 0;

    (void)what;
    if (read(fd, &times, sizeof(times)) < 0) return;
    if (supervisor->state == SUPERVISE_GROUP) {
        watch_group(supervisor);
        return;
    }
    if (supervisor->state != SUPERVISE_LOSING) {
        share_terminal(supervisor);
        return;
    }
    if (supervisor->child.state == CHILD_ENDED) {
        finish_losing(supervisor);
    } else if (now_ms() >= supervisor->kill_at_ms) {
        kill_group(supervisor);
    } else {
        set_timer(supervisor, supervisor->kill_at_ms);
    }
}

/* signal_bit - return the bit of a signal; 0: it has none. */
static uint64_t signal_bit(int number)
{
    return number >= 1 && number <= 64 ? UINT64_C(1) << (number - 1) : 0;
}

/* note_typed - remember a typed signal that ended the command. We must die of it too, or a shell would go on with its
 * loop or script. */
static void note_typed(struct supervisor *supervisor)
{
    int number = supervisor->child.end_signal;
    bool lent = terminal_has(supervisor->terminal, supervisor->child.pid);

    if ((number != SIGINT && number != SIGQUIT) || (number == supervisor->passed ? !supervisor->passed_typed : !lent))
        return;
    supervisor->die_of = number;
    supervisor->die_together = lent;
}

static void supervise_ended(struct supervisor *supervisor)
{
    int status = supervisor->child.status;

    supervisor->asked_to_end |= (supervisor->sent & signal_bit(supervisor->child.end_signal)) != 0;
    if (supervisor->state == SUPERVISE_LOSING) {
        finish_losing(supervisor);
        return;
    }
    note_typed(supervisor);
    take_terminal(supervisor);
    if (supervisor->child.exec_errno != 0) {
        child_say_why(&supervisor->child, supervisor->command[0]);
    } else if (time_is_up(supervisor)) {
        /* This process was stalled, and notices the command's end before the library reports the loss. Processes that
           the command started must not go on. */
        kill_group(supervisor);
        say("lost \"%s\" while the command ran: its validity is over; the command's exit status would have been %d",
            supervisor->name, status);
        status = supervisor->verdict = EXIT_LOST;
    } else if (keep_group(supervisor)) {
        return;
    }
    supervise_done(supervisor, status);
}

static void stopped(struct supervisor *supervisor)
{
    if (supervisor->terminal >= 0 && child_wants_terminal(&supervisor->child)) {
        share_terminal(supervisor);
        if (!terminal_has(supervisor->terminal, supervisor->child.pid) &&
            !terminal_has(supervisor->terminal, getpgrp()))
            say_at(LOG_WARNING,
                   "the command is stopped, because it needs the terminal and quorlock is in the background; "
                   "\"%s\" stays locked. The command goes on when quorlock is in the foreground",
                   supervisor->name);
    } else if (take_terminal(supervisor)) {
        say_at(LOG_WARNING,
               "the command is stopped; \"%s\" stays locked. kill -CONT %ld continues it, Ctrl-C ends it; Ctrl-Z stops "
               "the renewal too, and then the command ends with the lease",
               supervisor->name, (long)getpid());
    } else {
        say_at(LOG_WARNING, "the command is stopped; \"%s\" stays locked. kill -CONT %ld continues it",
               supervisor->name, (long)getpid());
    }
}

static void check_child(struct supervisor *supervisor)
{
    if (supervisor->state == SUPERVISE_IDLE || !child_update(&supervisor->child)) return;
    if (supervisor->child.state == CHILD_ENDED) {
        supervise_ended(supervisor);
    } else if (supervisor->child.state == CHILD_STOPPED && supervisor->state == SUPERVISE_RUNNING) {
        stopped(supervisor);
    }
}

/* check_warden - start another warden if it was killed. Without a warden the command must not run. */
static void check_warden(struct supervisor *supervisor)
{
    uint32_t restarts = supervisor->warden.restarts;

    if (supervisor->state == SUPERVISE_IDLE) return;
    if (!warden_check(&supervisor->warden)) {
        if (errno != 0) {
            say("the warden was killed, no other can be started, and without it the command must not run: %s",
                strerror(errno));
        } else {
            say("the warden was killed more than %d times, and without it the command must not run",
                WARDEN_RESTARTS_MAX);
        }
        if (supervisor->state == SUPERVISE_RUNNING || supervisor->state == SUPERVISE_GROUP)
            end_command(supervisor, supervisor->valid_ms(supervisor->arg), EXIT_SYSTEM);
    } else if (restarts != supervisor->warden.restarts) {
        say_at(LOG_WARNING,
               "the warden was killed, the process that ends the command in time if quorlock cannot; another one "
               "runs now");
    }
}

/* supervise_pass_on - send a signal to the command's group. */
static void supervise_pass_on(struct supervisor *supervisor, int number, bool typed)
{
    bool stopped = supervisor->child.state == CHILD_STOPPED;

    if (number == SIGINT || number == SIGQUIT) {
        supervisor->passed = number;
        supervisor->passed_typed = typed;
    }
    if (number == SIGCONT) {
        if (time_is_up(supervisor)) return; /* the library is about to report the loss */
        terminal_offer(supervisor->terminal, supervisor->child.pid);
        child_signal(&supervisor->child, SIGCONT);
    } else if (number == SIGTSTP && stopped && supervisor->terminal >= 0) {
        /* The command is stopped. If the lease ends before SIGCONT, the warden kills it. */
        signals_stop();
    } else {
        supervisor->sent |= signal_bit(number);
        /* Daemons use other signals for other purposes, so these do not ask the command to end. */
        if (number == SIGTERM || number == SIGINT || number == SIGQUIT) supervisor->asked_to_end = true;
        child_signal(&supervisor->child, number);
        /* A stopped command must end now, not when somebody continues it. */
        if (stopped && signals_end_wait(number) && !time_is_up(supervisor)) child_signal(&supervisor->child, SIGCONT);
    }
}

static void supervise_handle_signals(evutil_socket_t fd, short what, void *arg)
{
    struct supervisor *supervisor = arg;
    bool typed = false;

    (void)fd;
    (void)what;
    for (int number; (number = signals_next(&supervisor->signals, &typed)) != 0;) {
        if (number == SIGCHLD) {
            check_child(supervisor);
            check_warden(supervisor);
            child_reap_others(&supervisor->child, supervisor->warden.pid);
        } else if (number == SIGTTIN || number == SIGTTOU) {
            supervisor->others_want = supervisor->terminal >= 0;
            share_terminal(supervisor);
        } else if (supervisor->state == SUPERVISE_IDLE) {
            supervisor->signaled(supervisor->arg, number, typed);
        } else {
            supervise_pass_on(supervisor, number, typed);
        }
    }
}

void supervise_read_signals(struct supervisor *supervisor)
{
    supervise_handle_signals(supervisor->signals.fd, EV_READ, supervisor);
}

bool supervise_start(struct supervisor *supervisor, uint64_t deadline_us)
{
    const char *what = "the command";
    struct child *child = &supervisor->child;
    bool started = child_start(child, supervisor->contain, supervisor->command, &supervisor->signals);

    if (started) {
        what = "the warden, without which the command must not run";
        started = warden_start(&supervisor->warden, child->pid, &child->contain, deadline_us);
        if (!started) child_abandon(child);
    }
    if (!started) {
        say("cannot start a process for %s: %s", what, strerror(errno));
        return false;
    }
    supervisor->state = SUPERVISE_RUNNING;
    supervisor->killed = supervisor->asked_to_end = false;
    supervisor->verdict = 0;
    supervisor->passed = 0;
    supervisor->sent = 0;
    terminal_offer(supervisor->terminal, child->pid);
    child_go(child);
    notify_status("READY=1", "%s runs under \"%s\"", supervisor->command[0], supervisor->name);
    return true;
}

/* ---- life ---- */

/* is_well - return whether the watchdog may be told that all is well: a running command has its lock. */
static bool is_well(const void *arg)
{
    const struct supervisor *supervisor = arg;

    return (supervisor->state != SUPERVISE_RUNNING && supervisor->state != SUPERVISE_GROUP) ||
           supervisor->valid_ms(supervisor->arg) > 0;
}

void supervise_init(struct supervisor *supervisor)
{
    *supervisor =
        (struct supervisor){.signals.fd = -1, .timer_fd = -1, .child = {.fd = -1, .contain.link = -1}, .terminal = -1};
}

static bool supervise_watch(struct supervisor *supervisor)
{
    if (!signals_open(&supervisor->signals)) return false;
    supervisor->terminal = terminal_open();
    supervisor->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (supervisor->timer_fd < 0) return false;
    supervisor->signal_event =
        event_new(supervisor->base, supervisor->signals.fd, EV_READ | EV_PERSIST, supervise_handle_signals, supervisor);
    supervisor->timer_event =
        event_new(supervisor->base, supervisor->timer_fd, EV_READ | EV_PERSIST, timer_fired, supervisor);
    return supervisor->signal_event != NULL && supervisor->timer_event != NULL &&
           event_add(supervisor->signal_event, NULL) == 0 && event_add(supervisor->timer_event, NULL) == 0 &&
           notify_open(supervisor->base, is_well, supervisor);
}

int supervise_open(struct supervisor *supervisor, const struct session *session)
{
    const struct settings *settings = session->settings;

    supervisor->base = session->base;
    supervisor->command = settings->command;
    supervisor->verbose = settings->verbose;
    supervisor->group_rule = settings->group;
    supervisor->contain = settings->contain;
    if (settings->subreaper) prctl(PR_SET_CHILD_SUBREAPER, 1);
    supervisor->grace_ms = choose_grace_ms(session->client, session_lease_ms(settings));
    if (supervise_watch(supervisor)) return 0;
    say("cannot watch signals and time: %s", strerror(errno));
    return EXIT_SYSTEM;
}

void supervise_close(struct supervisor *supervisor)
{
    /* The loop has failed: a command must not run without a lock. */
    if (supervisor->state != SUPERVISE_IDLE) kill_group(supervisor);
    warden_end(&supervisor->warden);
    contain_end(&supervisor->child.contain);
    child_forget(&supervisor->child);
    if (supervisor->signal_event != NULL) event_free(supervisor->signal_event);
    if (supervisor->timer_event != NULL) event_free(supervisor->timer_event);
    notify_close();
    if (supervisor->signals.fd >= 0) close(supervisor->signals.fd);
    if (supervisor->timer_fd >= 0) close(supervisor->timer_fd);
    if (supervisor->terminal >= 0) close(supervisor->terminal);
}

int supervise_loop(struct supervisor *supervisor)
{
    /* In each turn the answer to a renewal may have come. */
    while (event_base_got_break(supervisor->base) == 0) {
        if (event_base_loop(supervisor->base, EVLOOP_ONCE) != 0) {
            say("the event loop failed");
            return EXIT_SYSTEM;
        }
        if (supervisor->state == SUPERVISE_RUNNING || supervisor->state == SUPERVISE_GROUP) update_warden(supervisor);
    }
    return 0;
}

void supervise_die(const struct supervisor *supervisor, int status)
{
    if (supervisor->die_of != 0 && status == EXIT_SIGNAL + supervisor->die_of)
        signals_die(supervisor->die_of, supervisor->die_together);
}
