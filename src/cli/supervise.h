/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervise.h - a command under a lock: it gets signals and the terminal, and ends before the lock does
 *
 * A verb has one supervisor, under which the command runs once or several times. The warden knows until when the
 * command's process group may live, and kills the group if this process cannot. With --contain "the group" below is
 * all that is contained with the command.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "signals.h"
#include "warden.h"

struct event;
struct event_base;
struct session;
struct settings;

/* How long a line may wait while the command runs: a terminal takes nothing while another process writes to it. */
enum { SUPERVISE_SAY_MS = 5 };

enum supervise_state {
    SUPERVISE_IDLE = 0, /* no command runs */
    SUPERVISE_RUNNING,
    SUPERVISE_LOSING, /* the lock is lost; the command's group has until kill_at_ms to end */
    SUPERVISE_GROUP,  /* the command has ended; the lock is held for the rest of its group */
};

struct supervisor {
    /* The verb sets these before supervise_open. */
    const char *name;                /* of the lock, for messages */
    uint32_t (*valid_ms)(void *arg); /* the validity that is left, by the clock read now */
    /* The command has ended, with its group unless GROUP_LEAVE let that run; supervise_start may be called. status:
     * EXIT_LOST if the lock was lost before. */
    void (*ended)(void *arg, int status);
    /* A signal came while no command was running. */
    void (*signaled)(void *arg, int number, bool typed);
    void *arg;

    struct event_base *base;
    char *const *command;
    int verbose;
    uint32_t grace_ms; /* how long before the end of validity the library reports a loss; 0: its own margin */
    enum supervise_state state;
    struct child child;
    struct warden warden;
    struct signals signals;
    int terminal; /* -1: none */
    struct event *signal_event, *timer_event;
    int timer_fd;         /* CLOCK_BOOTTIME, absolute: it counts while the machine sleeps, and is never early */
    int group_rule;       /* enum group_rule */
    int contain;          /* enum contain_kind */
    uint32_t poll_ms;     /* in GROUP: time between two polls */
    uint64_t kill_at_ms;  /* in LOSING and GROUP */
    bool killed;          /* in LOSING and GROUP: SIGKILL was sent */
    int verdict;          /* why the command had to end: EXIT_LOST, EXIT_SYSTEM; 0: it had not */
    uint64_t share_at_ms; /* earliest time at which the foreground of the terminal may change */
    bool others_want;     /* others in our process group are stopped because they read the terminal */
    int passed;           /* the last SIGINT or SIGQUIT that we sent to the command's group */
    bool passed_typed;    /* that one was typed on the terminal */
    uint64_t sent;        /* a bit for each signal that we sent to the command's group; bit 0 is signal 1 */
    bool asked_to_end;    /* SIGTERM, SIGINT or SIGQUIT was sent, or the command died of a signal that was sent */
    int die_of;           /* a signal that was typed on the terminal, of which this process must die at the end */
    bool die_together;    /* it was typed while the command had the foreground, so our group did not get it */
};

/*
 * supervise_check       - check that there is a command, and that the lease is possible: 0, or the exit status after a
 * message supervise_check_lease - check only that the lease is not longer than the max lease
 */
int supervise_check(const struct settings *settings, const char *verb);
int supervise_check_lease(const struct settings *settings);
/*
 * supervise_init  - make a supervisor that has opened nothing
 * supervise_open  - watch signals and time, and notify the manager of services: 0, or the exit status after a message
 * supervise_close - close all, in any state; kill a command that still runs
 */
void supervise_init(struct supervisor *supervisor);
int supervise_open(struct supervisor *supervisor, const struct session *session);
void supervise_close(struct supervisor *supervisor);
/* supervise_loop - run the loop until session_leave: 0, or the exit status after a message. */
int supervise_loop(struct supervisor *supervisor);
/* supervise_read_signals - handle the signals that have not been read yet. */
void supervise_read_signals(struct supervisor *supervisor);
/* supervise_deadline_us - return the latest time for SIGKILL, by the clock of warden_now_us; 0: now. */
uint64_t supervise_deadline_us(const struct supervisor *supervisor);
/* supervise_start - start the warden and then the command; false: out of processes, after a message. */
bool supervise_start(struct supervisor *supervisor, uint64_t deadline_us);
/* supervise_lose - end the command, if it runs, within remaining_ms, because the lock is lost then. */
void supervise_lose(struct supervisor *supervisor, uint32_t remaining_ms);
/* supervise_die - die of the signal that was typed on the terminal, if the exit status is that of the signal. */
void supervise_die(const struct supervisor *supervisor, int status);
