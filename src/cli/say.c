/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "cli.h"

static int timeout_ms = 1000;

void say_within(int ms)
{
    timeout_ms = ms;
}

/* is_journal - return whether stderr is the stream "DEVICE:INODE" to the journal. The variable may be that of another
 * process of the service. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat found;
    char own[64];

    if (stream == NULL || fstat(STDERR_FILENO, &found) != 0) return false;
    snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)found.st_dev, (uintmax_t)found.st_ino);
    return strcmp(stream, own) == 0;
}

/* write_line - write a line. It is shorter than PIPE_BUF: only then a write after poll does not block. */
static void write_line(const struct text *line)
{
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    int n = poll(&ready, 1, timeout_ms);
    ssize_t written;

    if (n == 0) timeout_ms = 0; /* wait only once for a reader that does not read, not once a line */
    if (n <= 0 || (ready.revents & POLLOUT) == 0) return;
    /* A failing stderr cannot be reported anywhere. */
    written = write(STDERR_FILENO, line->bytes, line->length);
    (void)written;
}

void say_text(int priority, struct text *text)
{
    static const size_t length_max = PIPE_BUF - 8;
    struct text line = {0};

    if (is_journal()) {
        text_format(&line, "<%d>", priority);
    } else {
        text_format(&line, "quorlock: ");
    }
    text_add_safe(&line, text->bytes, text->length);
    if (line.length > length_max) {
        line.length = length_max;
        text_format(&line, "...");
    }
    text_format(&line, "\n");
    /* Out of memory: there is none for an error message either. */
    if (!text->failed && !line.failed) write_line(&line);
    text_clear(&line);
    text_clear(text);
}

void say(const char *format, ...)
{
    struct text text = {0};
    va_list list;

    va_start(list, format);
    text_format_list(&text, format, list);
    va_end(list);
    say_text(LOG_ERR, &text);
}

void say_at(int priority, const char *format, ...)
{
    struct text text = {0};
    va_list list;

    va_start(list, format);
    text_format_list(&text, format, list);
    va_end(list);
    say_text(priority, &text);
}

int put(struct text *text)
{
    int status = text->failed ? EXIT_SYSTEM : 0;
    size_t done = 0;

    if (text->failed) say("out of memory");
    while (status == 0 && done < text->length) {
        ssize_t n = write(STDOUT_FILENO, text->bytes + done, text->length - done);

        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = STDOUT_FILENO, .events = POLLOUT};

            poll(&ready, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            say("cannot write to standard output: %s", strerror(errno));
            status = EXIT_OUTPUT;
        }
    }
    text_clear(text);
    return status;
}
