/* SPDX-License-Identifier: BSD-3-Clause */
#include "metrics.h"

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "say.h"

/* More often than scrapes. */
enum { INTERVAL_S = 5 };

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
        if (*ret_length < size) return text;
        size = *ret_length + 1;
        free(text);
        text = malloc(size);
        if (text == NULL) break;
    }
    free(text);
    errno = ENOMEM;
    return NULL;
}

static bool cli_metrics_write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

/* Give the file the permissions of any new file; mkstemp makes it readable for us only. */
static bool open_for_readers(int fd)
{
    mode_t mask = umask(0);

    umask(mask);
    return fchmod(fd, 0666 & ~mask) == 0;
}

/* Accept a regular file only: a rename would replace a device or a link. */
static bool is_replaceable(const char *path)
{
    struct stat there;

    if (lstat(path, &there) != 0) return errno == ENOENT;
    if (S_ISREG(there.st_mode)) return true;
    errno = S_ISDIR(there.st_mode) ? EISDIR : EEXIST;
    return false;
}

/* Write the file; false with errno. */
static bool write_file(const struct metrics *metrics)
{
    size_t length, size = strlen(metrics->path) + sizeof(".XXXXXX");
    char *text = read_text(metrics, &length), *name = malloc(size);
    bool written = false;
    int fd = -1, error;

    if (text == NULL || name == NULL || !is_replaceable(metrics->path)) goto done;
    snprintf(name, size, "%s.XXXXXX", metrics->path);
    fd = mkstemp(name);
    if (fd < 0) goto done;
    written = cli_metrics_write_all(fd, text, length) && open_for_readers(fd) && rename(name, metrics->path) == 0;
done:
    error = errno;
    if (fd >= 0 && !written) unlink(name);
    if (fd >= 0) close(fd);
    free(name);
    free(text);
    errno = error;
    return written;
}

static void write_now(struct metrics *metrics)
{
    bool failed = !write_file(metrics);

    if (failed && !metrics->failed) {
        say("--metrics-file: \"%s\" cannot be written: %s%s", metrics->path, strerror(errno),
            errno == EEXIST ? " and is not a regular file: give the file itself" : "");
    }
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

    *metrics = (struct metrics){.client = client, .path = path};
    if (path == NULL) return 0;
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

void metrics_end(struct metrics *metrics)
{
    if (metrics->timer != NULL) {
        event_free(metrics->timer);
        write_now(metrics);
    }
    free(metrics->label);
    *metrics = (struct metrics){0};
}
