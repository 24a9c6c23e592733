/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <event2/event.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "settings/text.h"

/* The supervisor of this process. */
static struct {
    int fd; /* -1: there is none */
    struct event *event;
    bool (*is_well)(const void *);
    const void *arg;
} told = {.fd = -1};

/* connect_to - connect to a path, or behind "@" to a name of the abstract namespace; -1: it failed. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    int fd;

    if (length < 2 || length >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) return -1;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    /* In the abstract namespace every byte is a part of the name, so the length must be exact. */
    if (connect(fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '/'))) == 0)
        return fd;
    close(fd);
    return -1;
}

/* number_in - return the number in a variable of the environment; 0: there is none. */
static uint64_t number_in(const char *name)
{
    const char *text = getenv(name);
    size_t length = text != NULL ? strlen(text) : 0;

    return length > 0 && length < 19 && strspn(text, "0123456789") == length ? strtoull(text, NULL, 10) : 0;
}

static void send_text(const char *bytes, size_t length)
{
    /* Do not wait for a supervisor that does not read. */
    ssize_t sent = told.fd >= 0 ? send(told.fd, bytes, length, MSG_NOSIGNAL) : 0;

    (void)sent;
}

/* on_half - tell the watchdog that we are well, after half of its time. */
static void on_half(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    if (told.is_well(told.arg)) notify_state("WATCHDOG=1");
}

static bool cli_notify_watch(struct event_base *base, uint64_t every_us)
{
    struct timeval half = {.tv_sec = (time_t)(every_us / 2000000), .tv_usec = (suseconds_t)(every_us / 2 % 1000000)};

    told.event = event_new(base, -1, EV_PERSIST, on_half, NULL);
    return told.event != NULL && event_add(told.event, &half) == 0;
}

bool notify_open(struct event_base *base, bool (*is_well)(const void *), const void *arg)
{
    const char *path = getenv("NOTIFY_SOCKET");
    uint64_t every_us = number_in("WATCHDOG_USEC"), pid = number_in("WATCHDOG_PID");

    told.is_well = is_well;
    told.arg = arg;
    if (path != NULL) told.fd = connect_to(path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (told.fd < 0 || every_us < 2 || (pid != 0 && pid != (uint64_t)getpid())) return true;
    return cli_notify_watch(base, every_us);
}

void notify_close(void)
{
    if (told.event != NULL) event_free(told.event);
    if (told.fd >= 0) close(told.fd);
    told.event = NULL;
    told.fd = -1;
}

void notify_state(const char *state)
{
    send_text(state, strlen(state));
}

void notify_status(const char *state, const char *format, ...)
{
    struct text words = {0}, message = {0};
    va_list list;

    if (told.fd < 0) return;
    va_start(list, format);
    text_format_list(&words, format, list);
    va_end(list);
    text_format(&message, "%s%sSTATUS=", state != NULL ? state : "", state != NULL ? "\n" : "");
    text_add_safe(&message, words.bytes, words.length);
    if (!words.failed && !message.failed) send_text(message.bytes, message.length);
    text_clear(&words);
    text_clear(&message);
}
