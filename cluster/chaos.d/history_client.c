/* SPDX-License-Identifier: BSD-3-Clause */
#include "history_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES_MAX 1024
#define LOST           1 /* exit status: nobody records this client any more */

uint64_t history_now_us(void)
{
    static uint64_t last_us;
    struct timespec now;
    uint64_t us;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    us = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
    last_us = us > last_us ? us : last_us + 1;
    return last_us;
}

/* Each line is one write, so a kill leaves all of it or nothing. */
static void put(const char *line, size_t length)
{
    ssize_t written;

    do written = write(STDOUT_FILENO, line, length);
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)length) exit(LOST);
}

/* Read the one line of the answer. */
static void get(char *answer, size_t size)
{
    size_t length = 0;
    ssize_t got;

    while (length == 0 || answer[length - 1] != '\n') {
        got = read(STDIN_FILENO, answer + length, size - 1 - length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) exit(LOST);
        length += (size_t)got;
    }
    answer[length - 1] = 0;
}

__attribute__((format(printf, 3, 0))) static size_t add(char *line, size_t length, const char *format,
                                                        va_list arguments)
{
    int more = vsnprintf(line + length, LINE_BYTES_MAX - length, format, arguments);

    if (more < 0 || length + (size_t)more >= LINE_BYTES_MAX) abort();
    return length + (size_t)more;
}

__attribute__((format(printf, 2, 3))) static void ask(char *answer, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    va_list arguments;
    size_t length;

    va_start(arguments, format);
    length = add(line, 0, format, arguments);
    va_end(arguments);
    put(line, length);
    get(answer, LINE_BYTES_MAX);
}

void history_begin(const char *program)
{
    char answer[LINE_BYTES_MAX];

    ask(answer, "{\"event\":\"hello\",\"version\":1,\"program\":\"%s\"}\n", program);
}

/* Write the fields that a plain lock of the only user does not need. */
static const char *subject_fields(char *text, const struct history_subject *subject)
{
    int length = 0;

    text[0] = 0;
    if (subject->user != 0) length = snprintf(text, LINE_BYTES_MAX, ",\"user\":%" PRIu32, subject->user);
    if (subject->mode != NULL)
        length += snprintf(text + length, LINE_BYTES_MAX - (size_t)length, ",\"mode\":\"%s\"", subject->mode);
    if (subject->slot != 0)
        (void)snprintf(text + length, LINE_BYTES_MAX - (size_t)length, ",\"slot\":%" PRIu32, subject->slot);
    return text;
}

void history_say(uint64_t t_us, const char *event, const struct history_subject *subject, const char *more, ...)
{
    char about[LINE_BYTES_MAX], fields[LINE_BYTES_MAX], answer[LINE_BYTES_MAX];
    va_list arguments;

    va_start(arguments, more);
    (void)add(fields, 0, more, arguments);
    va_end(arguments);
    ask(answer, "{\"t_us\":%" PRIu64 ",\"event\":\"%s\",\"key\":\"%s\"%s%s}\n", t_us, event, subject->key,
        subject_fields(about, subject), fields);
}

static bool visit(const struct history_access *access, const char *event, uint64_t *ret_value)
{
    char about[LINE_BYTES_MAX], answer[LINE_BYTES_MAX];
    const char *value;

    ask(answer,
        "{\"event\":\"%s\",\"key\":\"%s\"%s,\"fence\":%" PRIu64 ",\"deadline_us\":%" PRIu64 ",\"value\":%" PRIu64 "}\n",
        event, access->subject->key, subject_fields(about, access->subject), access->fence, access->deadline_us,
        access->value);
    /* VERDICT TIME VALUE */
    value = strrchr(answer, ' ');
    if (value == NULL) exit(LOST);
    *ret_value = strtoull(value + 1, NULL, 10);
    return strncmp(answer, "ok ", 3) == 0;
}

bool history_read(struct history_access *access)
{
    return visit(access, "read", &access->value);
}

bool history_write(const struct history_access *access)
{
    uint64_t value;

    return visit(access, "write", &value);
}
