/* SPDX-License-Identifier: BSD-3-Clause */
#include "last.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define LAST_STATUS  "quorlock_run_status"
#define LAST_END     "quorlock_run_end_timestamp_seconds"
#define LAST_SUCCESS "quorlock_run_success_timestamp_seconds"
#define LAST_ACTIVE  "quorlock_run_active_timestamp_seconds"

static uint64_t last_now_s(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec;
}

/* last_sample - return the place behind the labels if the line is a sample of that family, or NULL. */
static const char *last_sample(const char *line, const char *family)
{
    size_t length = strlen(family);

    return strncmp(line, family, length) == 0 && line[length] == '{' ? strrchr(line, '}') : NULL;
}

static void last_read_number(const char *line, const char *family, uint64_t *ret)
{
    const char *end = last_sample(line, family);

    if (end != NULL) *ret = strtoull(end + 1, NULL, 10);
}

/* last_read_result - read the result, which is the last label. */
static void last_read_result(struct last *last, const char *line)
{
    static const char label[] = ",result=\"";
    const char *end = last_sample(line, LAST_STATUS), *start = end != NULL ? strrchr(line, ',') : NULL;
    size_t length;

    if (start == NULL || strncmp(start, label, strlen(label)) != 0) return;
    start += strlen(label);
    length = strspn(start, "abcdefghijklmnopqrstuvwxyz");
    if (length == 0 || length >= LAST_RESULT_SIZE || strncmp(start + length, "\"} ", 3) != 0) return;
    snprintf(last->result, sizeof(last->result), "%.*s", (int)length, start);
    last->status = strtoull(end + 1, NULL, 10);
}

void last_read(struct last *last, const char *path)
{
    /* It waits for no writer of a pipe; what is not a regular file is refused when the file is written. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    struct stat there = {0};
    FILE *file = fd >= 0 && fstat(fd, &there) == 0 && S_ISREG(there.st_mode) ? fdopen(fd, "r") : NULL;
    char *line = NULL;
    size_t size = 0;

    *last = (struct last){0};
    while (file != NULL && getline(&line, &size, file) > 0) {
        last_read_number(line, LAST_END, &last->end_s);
        last_read_number(line, LAST_SUCCESS, &last->success_s);
        last_read_result(last, line);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    } else if (fd >= 0) {
        close(fd);
    }
}

void last_end(struct last *last, const char *result, int status)
{
    snprintf(last->result, sizeof(last->result), "%s", result);
    last->status = (uint64_t)status;
    last->end_s = last_now_s();
    if (strcmp(result, "ok") == 0) last->success_s = last->end_s;
}

const char *last_result(int status)
{
    return status == 0 ? "ok" : status == EXIT_LOST ? "lost" : status > EXIT_SIGNAL ? "canceled" : "failed";
}

/* last_put_gauge - add a gauge with the label of the other samples, and with the result if that is not NULL. */
static void last_put_gauge(struct text *text, const char *label, const char *name, const char *help, const char *result,
                           uint64_t number)
{
    text_format(text, "# TYPE %s gauge\n# HELP %s %s\n%s{%s", name, name, help, name, label);
    if (result != NULL) text_format(text, ",result=\"%s\"", result);
    text_format(text, "} %" PRIu64 "\n", number);
}

/* last_label - copy the label from a sample of the client's metrics, escaped as it is there; the caller frees it. */
static char *last_label(struct text *text)
{
    static const char sample[] = "\nquorlock_held{";
    const char *start = memmem(text->bytes, text->length, sample, strlen(sample)), *end;

    if (start == NULL) return NULL;
    start += strlen(sample);
    end = memchr(start, '\n', text->length - (size_t)(start - text->bytes));
    while (end != NULL && end > start && *end != '}') end--;
    return end != NULL ? strndup(start, (size_t)(end - start)) : NULL;
}

void last_write(const struct last *last, bool is_running, struct text *text)
{
    char *label = last_label(text);

    if (label == NULL) {
        text->failed = true;
        return;
    }
    if (last->result[0] != '\0')
        last_put_gauge(text, label, LAST_STATUS, "Exit status of the latest run that ended, by its result.",
                       last->result, last->status);
    if (last->end_s != 0) last_put_gauge(text, label, LAST_END, "When the latest run ended.", NULL, last->end_s);
    if (last->success_s != 0)
        last_put_gauge(text, label, LAST_SUCCESS, "When the latest run ended that did its work.", NULL,
                       last->success_s);
    if (is_running)
        last_put_gauge(text, label, LAST_ACTIVE, "When the run that goes on last wrote this file.", NULL, last_now_s());
    free(label);
}
