/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - what a supervisor such as systemd is told, by the protocol of sd_notify(3), without its library
 *
 * All functions do nothing where no supervisor has asked, and none fails or waits: the lock does not depend on it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * notify_open - takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment
 *
 * The command must not have them: its READY would be taken for ours. Returns how often the supervisor wants to be
 * told that all is well, in microseconds; 0: it does not ask.
 */
uint64_t notify_open(void);
void notify_close(void);
/* notify_status - a line for people; `state`, such as "READY=1", goes with it, NULL: none does. */
void notify_status(const char *state, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* notify_state - only that state. */
void notify_state(const char *state);
