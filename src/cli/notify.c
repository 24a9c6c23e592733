/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "text.h"

static int supervisor = -1;

/* connect_to - a path, or a name in the abstract namespace behind "@"; -1: none can be reached there. */
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
    /* The length counts: in the abstract namespace every byte is part of the name. */
    if (connect(fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '/'))) == 0)
        return fd;
    close(fd);
    return -1;
}

/* number_in - of the environment; 0 where there is none. */
static uint64_t number_in(const char *name)
{
    const char *text = getenv(name);
    size_t length = text != NULL ? strlen(text) : 0;

    return length > 0 && length < 19 && strspn(text, "0123456789") == length ? strtoull(text, NULL, 10) : 0;
}

uint64_t notify_open(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    uint64_t every_us = number_in("WATCHDOG_USEC"), pid = number_in("WATCHDOG_PID");

    if (path != NULL) supervisor = connect_to(path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return supervisor >= 0 && (pid == 0 || pid == (uint64_t)getpid()) ? every_us : 0;
}

void notify_close(void)
{
    if (supervisor >= 0) close(supervisor);
    supervisor = -1;
}

static void send_text(const char *bytes, size_t length)
{
    /* A supervisor that does not read is not waited for. */
    ssize_t sent = supervisor >= 0 ? send(supervisor, bytes, length, MSG_NOSIGNAL) : 0;

    (void)sent;
}

void notify_state(const char *state)
{
    send_text(state, strlen(state));
}

void notify_status(const char *state, const char *format, ...)
{
    struct text words = {0}, message = {0};
    va_list list;

    if (supervisor < 0) return;
    va_start(list, format);
    text_format_list(&words, format, list);
    va_end(list);
    text_format(&message, "%s%sSTATUS=", state != NULL ? state : "", state != NULL ? "\n" : "");
    text_add_safe(&message, words.bytes, words.length);
    if (!words.failed && !message.failed) send_text(message.bytes, message.length);
    text_clear(&words);
    text_clear(&message);
}
