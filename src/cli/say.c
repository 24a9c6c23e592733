/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static int say_patience_ms = 1000;

void say_patience(int patience_ms)
{
    say_patience_ms = patience_ms;
}

/* Lines are kept under PIPE_BUF: poll's promise that a write will not block holds for those only. */
static void say_line(const struct text *line)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    int n = poll(&ready, 1, say_patience_ms);
    if (n == 0) say_patience_ms = 0; /* who does not read is waited for once, not once a line */
    if (n <= 0 || !(ready.revents & POLLOUT)) return;
    /* Nobody is left to tell about a failing stderr. */
    ssize_t written = write(STDERR_FILENO, line->bytes, line->length);
    (void)written;
}

void say(const char *format, ...)
{
    static const size_t length_max = PIPE_BUF - 8;
    char *raw = NULL;
    struct text line = {0};
    va_list list;
    va_start(list, format);
    int length = vasprintf(&raw, format, list);
    va_end(list);
    if (length < 0) return; /* no memory for a line is none to tell of it either */
    text_format(&line, "quorlock: ");
    text_add_safe(&line, raw, (size_t)length);
    free(raw);
    if (!line.failed && line.length > length_max) {
        line.length = length_max;
        text_add(&line, "...", 3);
    }
    text_add(&line, "\n", 1);
    if (!line.failed) say_line(&line);
    text_clear(&line);
}

int put(const struct text *text)
{
    if (text->failed) {
        say("out of memory");
        return EXIT_SYSTEM;
    }
    for (size_t done = 0; done < text->length;) {
        ssize_t n = write(STDOUT_FILENO, text->bytes + done, text->length - done);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&ready, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            say("cannot write to standard output: %s", strerror(errno));
            return EXIT_OUTPUT;
        } else if (n > 0) {
            done += (size_t)n;
        }
    }
    return 0;
}
