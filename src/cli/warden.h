/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden.h - a second process, which kills the command's group, and what contains it, at its deadline or when quorlock
 * has died
 *
 * The warden has its own clock, because quorlock may be stopped or hang at the deadline. It has a session of its own,
 * so signals for quorlock's process group do not reach it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct contain;

/* If every warden is killed, this process must not fork forever. */
enum { WARDEN_RESTARTS_MAX = 16 };

struct warden {
    pid_t pid; /* 0: none */
    int fd;    /* to the warden, which reads its end when we have died */
    pid_t group;
    struct contain *contain; /* of the command */
    uint64_t deadline_us;    /* the deadline that the warden knows, by CLOCK_BOOTTIME */
    uint32_t restarts;
};

/* warden_now_us - return the time by CLOCK_BOOTTIME, the clock of deadlines. */
uint64_t warden_now_us(void);
/* warden_start - start a warden for the group and what the command is contained in, which must stay where it is, and
 * wait until it is ready; false with errno: it failed. */
bool warden_start(struct warden *warden, pid_t group, struct contain *contain, uint64_t deadline_us);
/* warden_tell - send another deadline. If it cannot be sent now, deadline_us does not change. */
void warden_tell(struct warden *warden, uint64_t deadline_us);
/*
 * warden_check - on SIGCHLD: continue a warden that was stopped, and replace one that was killed
 *
 * False: it was killed and not replaced, with errno, or 0 after WARDEN_RESTARTS_MAX times. A warden that ended at the
 * deadline is not replaced.
 */
bool warden_check(struct warden *warden);
/* warden_end - end the warden, if there is one; the group goes on. */
void warden_end(struct warden *warden);
