/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * warden.h - a small process of our own that ends the command's group when its time is up
 *
 * It knows until when the group may live, and needs nobody to tell it that this time has come: not us, for we
 * may be stopped or hang by then. It kills the group too as soon as we have died. It lives in a session of its
 * own, so what is sent to our process group does not reach it.
 */
#ifndef QUORLOCK_CLI_WARDEN_H
#define QUORLOCK_CLI_WARDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct warden {
    pid_t pid; /* 0: there is none */
    int fd;    /* to it; its end tells the warden that we died */
    pid_t group;
    uint64_t deadline_us; /* CLOCK_BOOTTIME: what it was told last */
    uint32_t restarts;
};

/* warden_start - returns when the warden watches over the group; false with errno: there is none. */
bool warden_start(struct warden *warden, pid_t group, uint64_t deadline_us);
/* warden_tell - the group may live until then instead. What cannot be told now is to be told again later: see
 * deadline_us. */
void warden_tell(struct warden *warden, uint64_t deadline_us);
/*
 * warden_check - call it on SIGCHLD: a warden that somebody stopped is continued, one that was killed gets a
 * successor
 *
 * False with errno: it died, and there is no successor to be had. One that ended because its time was up has
 * done its work.
 */
bool warden_check(struct warden *warden);
/* warden_end - the group is nobody's business any more. No effect where there is none. */
void warden_end(struct warden *warden);

#endif
