/* SPDX-License-Identifier: BSD-3-Clause */
#include "counted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FDS_MAX 1024

/* Where a stream of requests stands: *WORDS, then $BYTES and so many bytes for each word. */
struct stream {
    bool in_number;
    uint64_t number;
    uint64_t words_left, bytes_left;
};

static struct counted counted;
static bool counting;
static struct stream streams[FDS_MAX];

/* The C library's own, by the names that it exports for this. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

void counted_begin(void)
{
    counted = (struct counted){0};
    counting = true;
}

struct counted counted_end(void)
{
    counting = false;
    return counted;
}

/* ---- requests ---- */

static void read_number(struct stream *stream, char byte)
{
    if (byte >= '0' && byte <= '9') stream->number = 10 * stream->number + (uint64_t)(byte - '0');
    if (byte != '\n') return;
    stream->in_number = false;
    if (stream->words_left == 0) {
        counted.requests++;
        stream->words_left = stream->number;
    } else {
        stream->words_left--;
        stream->bytes_left = stream->number + 2;
    }
}

static void sent(int fd, const char *bytes, size_t n)
{
    struct stream *stream = &streams[fd];

    counted.bytes_out += n;
    for (size_t i = 0; i < n; i++) {
        if (stream->bytes_left > 0) {
            stream->bytes_left--;
        } else if (stream->in_number) {
            read_number(stream, bytes[i]);
        } else {
            stream->in_number = true;
            stream->number = 0;
        }
    }
}

static ssize_t note_sent(int fd, const struct iovec *pieces, size_t n_pieces, ssize_t written)
{
    size_t left = written > 0 ? (size_t)written : 0;

    if (!counting) return written;
    counted.writes++;
    for (size_t i = 0; i < n_pieces && left > 0 && fd < FDS_MAX; i++) {
        size_t n = pieces[i].iov_len < left ? pieces[i].iov_len : left;

        sent(fd, pieces[i].iov_base, n);
        left -= n;
    }
    return written;
}

static ssize_t note_received(ssize_t n)
{
    if (!counting) return n;
    counted.reads++;
    if (n > 0) counted.bytes_in += (uint64_t)n;
    return n;
}

/* ---- in the place of the C library's ---- */

ssize_t read(int fd, void *buffer, size_t size)
{
    return note_received(syscall(SYS_read, fd, buffer, size));
}

ssize_t readv(int fd, const struct iovec *pieces, int n)
{
    return note_received(syscall(SYS_readv, fd, pieces, n));
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    return note_received(syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL));
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, size};

    return note_sent(fd, &piece, 1, syscall(SYS_write, fd, bytes, size));
}

ssize_t writev(int fd, const struct iovec *pieces, int n)
{
    return note_sent(fd, pieces, (size_t)n, syscall(SYS_writev, fd, pieces, n));
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    struct iovec piece = {(void *)(uintptr_t)bytes, size};

    return note_sent(fd, &piece, 1, syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return note_sent(fd, message->msg_iov, message->msg_iovlen, syscall(SYS_sendmsg, fd, message, flags));
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
    if (counting) counted.waits++;
    return (int)syscall(SYS_epoll_pwait, fd, events, n, timeout_ms, NULL, 8);
}

int epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
    if (counting) counted.other_calls++;
    return (int)syscall(SYS_epoll_ctl, fd, what, of, event);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *before)
{
    if (counting) counted.other_calls++;
    return (int)syscall(SYS_timerfd_settime, fd, flags, value, before);
}

ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    if (counting) counted.other_calls++;
    return syscall(SYS_getrandom, buffer, size, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (counting) counted.clocks++;
    return (int)syscall(SYS_clock_gettime, clock, now);
}

void *malloc(size_t size)
{
    if (counting) counted.allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    if (counting) counted.allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    if (counting) counted.allocations++;
    return __libc_realloc(block, size);
}
