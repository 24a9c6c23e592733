/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/system_libevent.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/resolve.h"

/* A server that vanished while we were silent is noticed after some 20 s. */
#define KEEP_IDLE_S     10
#define KEEP_INTERVAL_S 3
#define KEEP_COUNT      3

/* ---- the loop: descriptors ---- */

struct watch {
    const struct alloc *alloc;
    struct event *reader, *writer;
    void (*ready)(void *arg, unsigned events);
    void *arg;
};

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    struct watch *watch = arg;

    (void)fd;
    watch->ready(watch->arg, what == EV_READ ? WATCH_READ : WATCH_WRITE);
}

static void watch_free(struct watch *watch)
{
    if (watch->reader != NULL) event_free(watch->reader);
    if (watch->writer != NULL) event_free(watch->writer);
    alloc_free(watch->alloc, watch);
}

static struct watch *watch_new(struct system *system, int fd, void (*ready)(void *, unsigned), void *arg)
{
    struct watch *watch = alloc_zero(system->alloc, sizeof(*watch));

    if (watch == NULL) return NULL;
    *watch = (struct watch){.alloc = system->alloc, .ready = ready, .arg = arg};
    watch->reader = event_new(system->arg, fd, EV_READ | EV_PERSIST, on_ready, watch);
    watch->writer = event_new(system->arg, fd, EV_WRITE | EV_PERSIST, on_ready, watch);
    if (watch->reader != NULL && watch->writer != NULL) return watch;
    watch_free(watch);
    return NULL;
}

/* Adding what is added, or deleting what is not, costs no system call. */
static int watch_set(struct watch *watch, unsigned events)
{
    if ((events & WATCH_READ) == 0) event_del(watch->reader);
    if ((events & WATCH_WRITE) == 0) event_del(watch->writer);
    if ((events & WATCH_READ) != 0 && event_add(watch->reader, NULL) != 0) return -1;
    if ((events & WATCH_WRITE) != 0 && event_add(watch->writer, NULL) != 0) return -1;
    return 0;
}

/* ---- the loop: timers ---- */

/*
 * libevent's own timers run from the time at which the loop last looked at the clock, on a clock that stops in
 * suspend: after a long callback or a pause they fire early or late. A precise one is a timer of the kernel.
 */
struct timer {
    const struct alloc *alloc;
    struct event *event;
    int fd; /* of a precise one; else -1 */
    void (*fire)(void *arg);
    void *arg;
};

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct timer *timer = arg;
    uint64_t expirations;

    (void)what;
    /* Only to make it unreadable again. It is empty where the timer was set anew meanwhile. */
    if (fd >= 0 && read(fd, &expirations, sizeof(expirations)) < 0) return;
    timer->fire(timer->arg);
}

static void timer_free(struct timer *timer)
{
    if (timer->event != NULL) event_free(timer->event);
    if (timer->fd >= 0) close(timer->fd);
    alloc_free(timer->alloc, timer);
}

static struct timer *timer_new(struct system *system, bool precise, void (*fire)(void *), void *arg)
{
    struct timer *timer = alloc_zero(system->alloc, sizeof(*timer));

    if (timer == NULL) return NULL;
    *timer = (struct timer){.alloc = system->alloc, .fd = -1, .fire = fire, .arg = arg};
    if (precise) {
        timer->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (timer->fd < 0) goto failed;
    }
    timer->event = event_new(system->arg, timer->fd, precise ? EV_READ | EV_PERSIST : 0, on_timer, timer);
    if (timer->event == NULL || (precise && event_add(timer->event, NULL) != 0)) goto failed;
    return timer;
failed:
    timer_free(timer);
    return NULL;
}

static int timer_set(struct timer *timer, uint64_t after_us)
{
    const struct timeval after = {.tv_sec = (time_t)(after_us / 1000000u),
                                  .tv_usec = (suseconds_t)(after_us % 1000000u)};
    const struct itimerspec when = {.it_value.tv_sec = after.tv_sec,
                                    /* Zero would disarm it. */
                                    .it_value.tv_nsec = after_us > 0 ? after.tv_usec * 1000 : 1};

    if (timer->fd < 0) return event_add(timer->event, &after);
    return timerfd_settime(timer->fd, 0, &when, NULL);
}

static void timer_stop(struct timer *timer)
{
    static const struct itimerspec never;

    if (timer->fd < 0)
        event_del(timer->event);
    else
        timerfd_settime(timer->fd, 0, &never, NULL);
}

/* ---- the loop: tasks ---- */

struct task {
    const struct alloc *alloc;
    struct event *event;
    void (*run)(void *arg);
    void *arg;
};

static void on_task(evutil_socket_t fd, short what, void *arg)
{
    struct task *task = arg;

    (void)fd;
    (void)what;
    task->run(task->arg);
}

static struct task *task_new(struct system *system, void (*run)(void *), void *arg)
{
    struct task *task = alloc_zero(system->alloc, sizeof(*task));

    if (task == NULL) return NULL;
    *task = (struct task){.alloc = system->alloc, .run = run, .arg = arg};
    task->event = event_new(system->arg, -1, 0, on_task, task);
    if (task->event != NULL) return task;
    alloc_free(system->alloc, task);
    return NULL;
}

static void task_run(struct task *task)
{
    event_active(task->event, EV_TIMEOUT, 0);
}

static void task_stop(struct task *task)
{
    event_del(task->event);
}

static void task_free(struct task *task)
{
    event_free(task->event);
    alloc_free(task->alloc, task);
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

static uint64_t wall_us(struct system *system)
{
    (void)system;
    return reading_us(CLOCK_REALTIME);
}

/* From the kernel: no generator of our own. */
static int draw(struct system *system, void *ret, size_t size, bool wait)
{
    char *at = ret;
    ssize_t n;

    (void)system;
    /* A signal may cut short what is longer than 256 bytes. */
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
    /* A kernel before 4.14 does not know how: then there is no such memory. */
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

/* None of these is worth failing for: a kernel without one only notices some ends later. */
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

static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    const struct sockaddr *to = (const struct sockaddr *)&address->storage;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    (void)system;
    if (fd < 0) return -1;
    if (to->sa_family != AF_UNIX) tune(fd, user_timeout_ms);
    /* Interrupted, it goes on by itself, as in progress. */
    if (connect(fd, to, address->length) == 0 || errno == EINPROGRESS || errno == EINTR) return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/*
 * A connect to a local port that nobody listens on can meet itself, when the kernel picks that very port as our
 * own. Such a socket would echo our commands, and keep the server from binding its port.
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

static void close_socket(struct system *system, int fd)
{
    (void)system;
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

struct system system_libevent(struct event_base *base, const struct alloc *alloc)
{
    static const struct system_ops ops = {.boot_us = boot_us,
                                          .raw_us = raw_us,
                                          .wall_us = wall_us,
                                          .random = draw,
                                          .wiped_new = wiped_new,
                                          .wiped_free = wiped_free,
                                          .connect = begin_connect,
                                          .finish = finish_connect,
                                          .send = send_bytes,
                                          .recv = receive,
                                          .has_input = has_input,
                                          .close = close_socket,
                                          .lookup = resolve_start,
                                          .lookup_cancel = resolve_cancel,
                                          .file_stamp = file_stamp};
    static const struct loop_ops loop = {.watch_new = watch_new,
                                         .watch_set = watch_set,
                                         .watch_free = watch_free,
                                         .timer_new = timer_new,
                                         .timer_set = timer_set,
                                         .timer_stop = timer_stop,
                                         .timer_free = timer_free,
                                         .task_new = task_new,
                                         .task_run = task_run,
                                         .task_stop = task_stop,
                                         .task_free = task_free};

    return (struct system){.ops = &ops, .loop = &loop, .alloc = alloc, .arg = base};
}

const char *system_environment(const char *name)
{
    return secure_getenv(name);
}
