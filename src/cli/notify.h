/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - messages to a supervisor such as systemd, by the protocol of sd_notify(3), without its library
 *
 * If no supervisor has asked for messages, the functions do nothing. They never wait, and a message that cannot be sent
 * is dropped: the lock does not depend on it.
 */
#pragma once

#include <stdbool.h>

struct event_base;

/*
 * notify_open - remove NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, and begin
 *
 * The command must not have these variables, because its READY would count as ours. If the supervisor has a watchdog,
 * it gets a message after each half of the watchdog's time, as long as is_well returns true. False: out of memory.
 */
bool notify_open(struct event_base *base, bool (*is_well)(const void *), const void *arg);
void notify_close(void);
/* notify_status - send a line for people, with a state such as "READY=1" or NULL. */
void notify_status(const char *state, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* notify_state - send a state. */
void notify_state(const char *state);
