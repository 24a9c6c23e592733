/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/own_base.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The descriptors that a base opens: epoll, a pair for signals; and one by which its user wakes it. */
#define BASE_DESCRIPTORS 4

/*
 * libevent aborts the process if it finds no descriptor for its signal pair, so we first try whether there are enough.
 * Another thread may still take the last ones in between; that cannot be prevented here.
 */
static bool enough_descriptors(void)
{
    int fds[BASE_DESCRIPTORS];
    int n = 0;
    bool enough;

    while (n < BASE_DESCRIPTORS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0) n++;
    enough = n == BASE_DESCRIPTORS;
    while (n > 0) close(fds[--n]);
    return enough;
}

struct event_base *own_base_new(void)
{
    struct event_config *config;
    struct event_base *base = NULL;

    if (!enough_descriptors()) return NULL;
    config = event_config_new();
    if (config == NULL) return NULL;
    /* Precise timers would be set anew in each turn, by a system call; the deadlines of locks have an alarm of their
     * own. No lock, even if the program has given libevent some: one thread at a time uses the base. */
    if (event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0) base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}
