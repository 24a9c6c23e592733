/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "file.h"
#include "say.h"

/* More often than scrapes. */
enum { INTERVAL_S = 5 };

/* add_last - add what outlives the run to the text, which has room for so many bytes; return the text, or NULL. */
static char *add_last(const struct metrics *metrics, char *bytes, size_t *length, size_t room)
{
    struct text text = {.bytes = bytes, .length = *length, .room = room};

    last_write(&metrics->last, metrics->is_running, &text);
    *length = text.length;
    if (!text.failed) return text.bytes;
    text_clear(&text);
    errno = ENOMEM;
    return NULL;
}

static char *read_text(const struct metrics *metrics, size_t *ret_length)
{
    const struct quorlock_metrics_options options = {.size = sizeof(options),
                                                     .format = QUORLOCK_METRICS_PROMETHEUS,
                                                     .label_name = "file",
                                                     .label_value = metrics->label};
    char *text = NULL;

    *ret_length = 0;
    /* The loop does not run between the two calls, so the length does not change. */
    for (size_t size = 0; quorlock_client_metrics(metrics->client, &options, text, size, ret_length) == 0;) {
        if (*ret_length < size) return add_last(metrics, text, ret_length, size);
        size = *ret_length + 1;
        free(text);
        text = malloc(size);
        if (text == NULL) break;
    }
    free(text);
    errno = ENOMEM;
    return NULL;
}

/* Return the permissions of any new file. */
static mode_t mode_for_readers(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

/* Write the file; false with errno. */
static bool write_file(const struct metrics *metrics)
{
    size_t length;
    char *text = read_text(metrics, &length);
    bool written = text != NULL && file_write(metrics->path, mode_for_readers(), text, length);
    int error = errno;

    free(text);
    errno = error;
    return written;
}

static void write_now(struct metrics *metrics)
{
    bool failed = !write_file(metrics);

    if (failed && !metrics->failed) say("--metrics-file: \"%s\" cannot be written: %s", metrics->path, file_why());
    metrics->failed = failed;
}

static void cli_metrics_on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    write_now(arg);
}

/* Return the label: "backup" for "/var/lib/node_exporter/backup.prom". */
static char *cli_metrics_make_label(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);

    if (length > 5 && strcmp(name + length - 5, ".prom") == 0) length -= 5;
    return strndup(name, length);
}

int metrics_start(struct metrics *metrics, struct event_base *base, quorlock_client *client, const char *path)
{
    const struct timeval interval = {.tv_sec = INTERVAL_S};

    *metrics = (struct metrics){.client = client, .path = path, .is_running = true};
    if (path == NULL) return 0;
    last_read(&metrics->last, path);
    metrics->label = cli_metrics_make_label(path);
    metrics->timer = event_new(base, -1, EV_PERSIST, cli_metrics_on_timer, metrics);
    if (metrics->label == NULL || metrics->timer == NULL || event_add(metrics->timer, &interval) != 0) {
        say("out of memory");
        metrics->failed = true;
        return EXIT_SYSTEM;
    }
    write_now(metrics);
    return metrics->failed ? EXIT_OUTPUT : 0;
}

void metrics_end(struct metrics *metrics, const char *result, int status)
{
    if (metrics->timer != NULL) {
        event_free(metrics->timer);
        metrics->is_running = false;
        last_end(&metrics->last, result, status);
        write_now(metrics);
    }
    free(metrics->label);
    *metrics = (struct metrics){0};
}
