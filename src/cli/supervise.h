/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervise.h - a command under a lock: signals and the terminal are passed on to it, and it ends before the lock does
 *
 * One verb has one supervisor, for its own lifetime; under it the command runs once, or again and again. The warden
 * knows until when the command's group may live, and kills it when this process cannot.
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

/* While the command runs a line may wait so long: a terminal takes nothing while another process writes to it. */
enum { SUPERVISE_PATIENCE_MS = 5 };

enum supervise_state {
    SUPERVISE_IDLE = 0, /* no command runs */
    SUPERVISE_RUNNING,
    SUPERVISE_LOSING, /* the command's group has until kill_at_ms to end by itself */
    SUPERVISE_GROUP,  /* the command has ended; the lock is held for the rest of its group */
};

struct supervisor {
    /* The verb's: set before supervise_open. */
    const char *name;                /* of the lock, in messages */
    uint32_t (*valid_ms)(void *arg); /* what is left of the lock's validity, by the clock read now */
    /* Nothing of the command runs any more, unless it was left behind after an exit of its own; supervise_start may be
     * called. EXIT_LOST where the lock ended first. */
    void (*ended)(void *arg, int status);
    /* A signal came while no command ran. */
    void (*signaled)(void *arg, int number, bool typed);
    void *arg;

    struct event_base *base;
    char *const *command;
    int verbose;
    uint32_t grace_ms; /* how long before the end of validity the library must report a loss; 0: its own margin */
    enum supervise_state state;
    struct child child;
    struct warden warden;
    struct signals signals;
    int terminal; /* -1: there is none */
    struct event *signal_event, *timer_event;
    int timer_fd;         /* CLOCK_BOOTTIME, absolute: it goes on while the machine sleeps, and is never early */
    int group_rule;       /* enum group_rule */
    uint32_t poll_ms;     /* in GROUP */
    uint64_t kill_at_ms;  /* in LOSING and GROUP */
    bool killed;          /* in LOSING and GROUP: SIGKILL was sent */
    int verdict;          /* EXIT_LOST or EXIT_SYSTEM where the command had to end; 0: it did not */
    uint64_t share_at_ms; /* the terminal changes hands then at the earliest */
    bool others_want;     /* others of our process group are stopped because they read the terminal */
    int passed;           /* SIGINT or SIGQUIT, the last one that we sent to the command's group */
    bool passed_typed;    /* it was typed on the terminal */
    uint64_t sent;        /* a bit for each signal that we sent to the command's group, from 1 on */
    bool asked_to_end;    /* SIGTERM, SIGINT or SIGQUIT was among them, or the command died of one of them */
    int die_of;           /* a signal that was typed on the terminal: we die of it in the end */
    bool die_together;    /* typed while the command had the foreground: our group never got it */
};

/* supervise_check - whether there is a command to run, and its lease can be: 0, or the exit status after saying why
 * not. supervise_check_lease: only that it is no longer than the max lease. */
int supervise_check(const struct settings *settings, const char *verb);
int supervise_check_lease(const struct settings *settings);
/* supervise_init - a supervisor that has opened nothing. supervise_open: for the command of the session's settings;
 * watches signals, time, and the manager of services. 0, or the exit status after saying why. supervise_close: whatever
 * was opened; ends a command that still runs. */
void supervise_init(struct supervisor *supervisor);
int supervise_open(struct supervisor *supervisor, const struct session *session);
void supervise_close(struct supervisor *supervisor);
/* supervise_loop - runs the loop until it is broken; 0, or an exit status after saying why. */
int supervise_loop(struct supervisor *supervisor);
/* supervise_read_signals - those that came and were not read yet. */
void supervise_read_signals(struct supervisor *supervisor);
/* supervise_deadline_us - when SIGKILL must be sent at the latest, by the clock of warden_now_us; 0: now. */
uint64_t supervise_deadline_us(const struct supervisor *supervisor);
/* supervise_start - starts the command, the warden first; false: no process, said already. */
bool supervise_start(struct supervisor *supervisor, uint64_t deadline_us);
/* supervise_lose - the lock ends in remaining_ms, and the command must end before; where none runs: nothing. */
void supervise_lose(struct supervisor *supervisor, uint32_t remaining_ms);
/* supervise_die - dies of a signal that was typed, where that is what the exit status says. */
void supervise_die(const struct supervisor *supervisor, int status);
