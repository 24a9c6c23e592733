/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* open_again - open the same terminal or pipe again, because O_NONBLOCK on the given descriptor would affect all
 * processes that share it. -1: that is not possible. */
static int open_again(void)
{
    struct stat is;

    if (fstat(STDOUT_FILENO, &is) != 0 || !(S_ISFIFO(is.st_mode) || isatty(STDOUT_FILENO) == 1)) return -1;
    return open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void output_open(struct output *output)
{
    int fd = open_again();

    *output = (struct output){.fd = fd >= 0 ? fd : STDOUT_FILENO};
}

void output_close(struct output *output)
{
    if (output->fd != STDOUT_FILENO) close(output->fd);
    text_clear(&output->waiting);
}

void output_add(struct output *output, struct text *text)
{
    text_add(&output->waiting, text->bytes, text->length);
    output->waiting.failed |= text->failed;
    text_clear(text);
}

bool output_write(struct output *output)
{
    struct text *waiting = &output->waiting;

    if (waiting->failed) errno = ENOMEM;
    while (!waiting->failed && waiting->length > 0) {
        ssize_t n = write(output->fd, waiting->bytes, waiting->length);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        waiting->length -= (size_t)n;
        memmove(waiting->bytes, waiting->bytes + n, waiting->length);
    }
    return !waiting->failed;
}

bool output_has_reader(const struct output *output)
{
    struct pollfd now = {.fd = output->fd};

    return poll(&now, 1, 0) != 1 || (now.revents & (POLLERR | POLLHUP)) == 0;
}
