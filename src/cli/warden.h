/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden.h - a small process of its own that ends the command's group when its time is up
 *
 * It knows until when the group may live, and watches the clock itself, for quorlock may be stopped or hang by
 * then. It kills the group as soon as quorlock has died. It has a session of its own, so signals for quorlock's
 * process group do not reach it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* If every warden is killed, this process must not fork for ever. */
enum { WARDEN_RESTARTS_MAX = 16 };

struct warden {
    pid_t pid; /* 0: there is none */
    int fd;    /* to it; the warden reads its end when we have died */
    pid_t group;
    uint64_t deadline_us; /* CLOCK_BOOTTIME: what it knows */
    uint32_t restarts;
};

/* warden_now_us - the clock of the deadlines: CLOCK_BOOTTIME. */
uint64_t warden_now_us(void);
/* warden_start - returns when the warden watches over the group; false with errno: there is none. */
bool warden_start(struct warden *warden, pid_t group, uint64_t deadline_us);
/* warden_tell - the group may live until then instead. Where it cannot be sent now, deadline_us stays as it
 * was. */
void warden_tell(struct warden *warden, uint64_t deadline_us);
/*
 * warden_check - call it on SIGCHLD: continues a warden that was stopped, and replaces one that was killed
 *
 * False: it died and was not replaced, with errno, or 0 after WARDEN_RESTARTS_MAX times. A warden that ended because
 * the time was up is not replaced.
 */
bool warden_check(struct warden *warden);
/* warden_end - ends the warden and spares the group. No effect where there is none. */
void warden_end(struct warden *warden);
