/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - what a supervisor such as systemd is told, by the protocol of sd_notify(3), without its library
 *
 * All functions do nothing where no supervisor has asked, and none fails or waits: the lock does not depend on it.
 */
#pragma once

#include <stdbool.h>

struct event_base;

/*
 * notify_open - takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment
 *
 * The command must not have them: its READY would be taken for ours. Where the supervisor wants to be told that all is
 * well, it is, twice in the time that it gives, as long as is_well returns true. False: no memory.
 */
bool notify_open(struct event_base *base, bool (*is_well)(const void *), const void *arg);
void notify_close(void);
/* notify_status - a line for people; `state`, such as "READY=1", goes with it, NULL: none does. */
void notify_status(const char *state, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* notify_state - only that state. */
void notify_state(const char *state);
