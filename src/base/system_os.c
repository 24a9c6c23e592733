/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/system_os.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <quorlock/adapters/libevent.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/resolve.h"

/* A server that vanished while the connection was idle is noticed after about 20 s. */
#define KEEP_IDLE_S     10
#define KEEP_INTERVAL_S 3
#define KEEP_COUNT      3

/* ---- alarms ---- */

/* A timerfd. */
struct alarm {
    const struct alloc *alloc;
    const struct quorlock_loop *loop;
    void *watch;
    int fd;
    void (*fire)(void *arg);
    void *arg;
};

static void system_os_on_alarm(void *arg, unsigned events)
{
    struct alarm *alarm = arg;
    uint64_t expirations;

    (void)events;
    /* The read only makes the descriptor unreadable again. It fails if the alarm was set again meanwhile. */
    if (read(alarm->fd, &expirations, sizeof(expirations)) < 0) return;
    alarm->fire(alarm->arg);
}

static void alarm_free(struct alarm *alarm)
{
    if (alarm->watch != NULL) alarm->loop->watch_free(alarm->watch);
    if (alarm->fd >= 0) close(alarm->fd);
    alloc_free(alarm->alloc, alarm);
}

static struct alarm *alarm_new(struct system *system, void (*fire)(void *), void *arg)
{
    const struct quorlock_loop *loop = &system->loop;
    struct alarm *alarm = alloc_zero(system->alloc, sizeof(*alarm));

    if (alarm == NULL) return NULL;
    *alarm = (struct alarm){.alloc = system->alloc, .loop = loop, .fire = fire, .arg = arg};
    alarm->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (alarm->fd >= 0) alarm->watch = loop->watch_new(loop->arg, alarm->fd, system_os_on_alarm, alarm);
    if (alarm->watch != NULL && loop->watch_set(alarm->watch, WATCH_READ) == 0) return alarm;
    alarm_free(alarm);
    return NULL;
}

static void alarm_set(struct alarm *alarm, uint64_t after_us)
{
    const struct itimerspec when = {.it_value.tv_sec = (time_t)(after_us / 1000000u),
                                    /* Zero would disarm the timer. */
                                    .it_value.tv_nsec = after_us > 0 ? (long)(after_us % 1000000u) * 1000 : 1};

    timerfd_settime(alarm->fd, 0, &when, NULL);
}

/* ---- time and random bytes ---- */

static uint64_t reading_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t boot_us(struct system *system)
{
    (void)system;
    return reading_us(CLOCK_BOOTTIME);
}

static uint64_t raw_us(struct system *system)
{
    (void)system;
    return reading_us(CLOCK_MONOTONIC_RAW);
}

static uint64_t system_os_wall_us(struct system *system)
{
    (void)system;
    return reading_us(CLOCK_REALTIME);
}

/* The kernel's random bytes; we have no generator of our own. */
static int system_os_draw(struct system *system, void *ret, size_t size, bool wait)
{
    char *at = ret;
    ssize_t n;

    (void)system;
    /* A signal may interrupt a call for more than 256 bytes. */
    for (; size > 0; at += n, size -= (size_t)n) {
        n = getrandom(at, size, wait ? 0 : GRND_NONBLOCK);
        if (n < 0 && errno != EINTR) return -1;
        if (n < 0) n = 0;
    }
    return 0;
}

static void *wiped_new(struct system *system, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)system;
    if (memory == MAP_FAILED) return NULL;
    /* Kernels before 4.14 do not know MADV_WIPEONFORK; then there is no such memory. */
    if (madvise(memory, size, MADV_WIPEONFORK) == 0) return memory;
    munmap(memory, size);
    return NULL;
}

static void wiped_free(struct system *system, void *memory, size_t size)
{
    (void)system;
    munmap(memory, size);
}

/* ---- sockets ---- */

/* None of these options is worth failing for: without one, some ends of connections are only noticed later. */
static void tune(int fd, uint32_t user_timeout_ms)
{
    const int on = 1, idle_s = KEEP_IDLE_S, interval_s = KEEP_INTERVAL_S, count = KEEP_COUNT;
    const unsigned user_ms = user_timeout_ms;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    if (user_ms > 0) (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof(user_ms));
}

static void set_reset(int fd, bool reset)
{
    const struct linger linger = {.l_onoff = reset, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    const struct sockaddr *to = (const struct sockaddr *)&address->storage;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    (void)system;
    if (fd < 0) return -1;
    if (to->sa_family != AF_UNIX) {
        tune(fd, user_timeout_ms);
        set_reset(fd, true);
    }
    /* After EINTR the connect goes on in the background, as after EINPROGRESS. */
    if (connect(fd, to, address->length) == 0 || errno == EINPROGRESS || errno == EINTR) return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/*
 * A connect to a local port on which nobody listens can connect to itself, if the kernel picks that very port for our
 * end. Such a socket would echo our commands, and keep the server from binding its port.
 */
static bool met_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_length = sizeof(here), there_length = sizeof(there);

    if (getsockname(fd, (struct sockaddr *)&here, &here_length) != 0 || here.ss_family == AF_UNIX) return false;
    if (getpeername(fd, (struct sockaddr *)&there, &there_length) != 0) return false;
    return here_length == there_length && memcmp(&here, &there, here_length) == 0;
}

static int finish_connect(struct system *system, int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    (void)system;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    return error == 0 && met_itself(fd) ? ECONNREFUSED : error;
}

static ssize_t send_bytes(struct system *system, int fd, const void *bytes, size_t size)
{
    (void)system;
    return send(fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t receive(struct system *system, int fd, void *ret, size_t size)
{
    (void)system;
    return recv(fd, ret, size, 0);
}

static bool has_input(struct system *system, int fd)
{
    char byte;

    (void)system;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void keep_sending(struct system *system, int fd)
{
    (void)system;
    set_reset(fd, false);
}

/* Whether the server's kernel has acknowledged all that was sent. */
static bool is_acknowledged(int fd)
{
    int unacknowledged = 0;

    return ioctl(fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
}

/* A reset makes no difference to bytes that the server's kernel has acknowledged: the server executes them in any case.
 * But after a reset a stalled server reads only one buffer of them, and that may end between an acquire and its
 * release. So a connection with nothing left to retransmit is closed in order. */
static void close_socket(struct system *system, int fd, bool reset)
{
    (void)system;
    set_reset(fd, reset && !is_acknowledged(fd));
    close(fd);
}

/* ---- files ---- */

static uint64_t file_stamp(struct system *system, const char *path, bool *ret_is_folder)
{
    struct stat file;
    uint64_t hash = HASH_START;

    (void)system;
    if (stat(path, &file) != 0) return 0;
    if (ret_is_folder != NULL) *ret_is_folder = S_ISDIR(file.st_mode);
    hash = hash_bytes(hash, &file.st_dev, sizeof(file.st_dev));
    hash = hash_bytes(hash, &file.st_ino, sizeof(file.st_ino));
    hash = hash_bytes(hash, &file.st_size, sizeof(file.st_size));
    hash = hash_bytes(hash, &file.st_mtim, sizeof(file.st_mtim));
    return hash_bytes(hash, &file.st_ctim, sizeof(file.st_ctim));
}

/* ---- the tables ---- */

struct system system_os(const struct quorlock_loop *loop, const struct alloc *alloc)
{
    static const struct system_ops ops = {.boot_us = boot_us,
                                          .raw_us = raw_us,
                                          .wall_us = system_os_wall_us,
                                          .alarm_new = alarm_new,
                                          .alarm_set = alarm_set,
                                          .alarm_free = alarm_free,
                                          .random = system_os_draw,
                                          .wiped_new = wiped_new,
                                          .wiped_free = wiped_free,
                                          .connect = begin_connect,
                                          .finish = finish_connect,
                                          .send = send_bytes,
                                          .recv = receive,
                                          .has_input = has_input,
                                          .keep_sending = keep_sending,
                                          .close = close_socket,
                                          .lookup = resolve_start,
                                          .lookup_cancel = resolve_cancel,
                                          .file_stamp = file_stamp};

    return (struct system){.ops = &ops, .loop = *loop, .alloc = alloc};
}

struct system system_libevent(struct event_base *base, const struct alloc *alloc)
{
    const struct quorlock_loop loop = quorlock_loop_libevent(base);

    return system_os(&loop, alloc);
}

const char *system_environment(const char *name)
{
    return secure_getenv(name);
}
