/* SPDX-License-Identifier: BSD-3-Clause */
#include "warden.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

/* If every warden is killed, we must not end up doing nothing but fork. */
enum { WARDEN_RESTARTS_MAX = 16 };

/* In the warden, which keeps these two descriptors only. */
enum { WARDEN_LINK = 0, WARDEN_TIMER = 1 };

static uint64_t warden_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* warden_hear - takes the newest of the times that came; false: our process, which sends them, is dead. */
static bool warden_hear(uint64_t *deadline_us)
{
    uint64_t told_us = 0;
    ssize_t n = 0;
    while ((n = recv(WARDEN_LINK, &told_us, sizeof(told_us), MSG_DONTWAIT)) == (ssize_t)sizeof(told_us))
        *deadline_us = told_us;
    return n != 0;
}

/* warden_watch - returns when the group must end. */
static void warden_watch(uint64_t deadline_us)
{
    for (;;) {
        struct itimerspec at = {
            .it_value = {(time_t)(deadline_us / 1000000), (long)(deadline_us % 1000000) * 1000}};
        timerfd_settime(WARDEN_TIMER, TFD_TIMER_ABSTIME, &at, NULL);
        struct pollfd ready[] = {{.fd = WARDEN_LINK, .events = POLLIN}, {.fd = WARDEN_TIMER, .events = POLLIN}};
        poll(ready, 2, -1);
        /* First what was told, for this process may have been kept from running past the old time. */
        if (!warden_hear(&deadline_us) || warden_now_us() >= deadline_us) return;
    }
}

/* warden_prepare - whether what the warden needs is there; false with errno. */
static bool warden_prepare(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "quorlock-warden");
    /* It sleeps but for the moment that counts, when others may keep both cores. Without the right it does as
       it is. */
    (void)setpriority(PRIO_PROCESS, 0, -20);
    /* Out of reach of whoever signals our group; holding nothing that somebody waits to see closed. */
    if (setsid() < 0 || close_range(WARDEN_LINK + 1, UINT_MAX, 0) != 0) return false;
    /* The lowest free descriptor. It counts while the machine sleeps, which the time limit of poll does not. */
    return timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK) == WARDEN_TIMER;
}

/* warden_live - the life of the new process. Does not return. */
static void warden_live(int fd, pid_t group, uint64_t deadline_us)
{
    if (dup2(fd, WARDEN_LINK) < 0) _exit(EXIT_SYSTEM);
    int error = warden_prepare() ? 0 : errno;
    ssize_t sent = send(WARDEN_LINK, &error, sizeof(error), MSG_NOSIGNAL);
    if (error || sent < 0) _exit(EXIT_SYSTEM);
    warden_watch(deadline_us);
    kill(-group, SIGKILL);
    _exit(0);
}

/* warden_answer - waits for the new process, no longer than its own time lasts: 0 or an errno. */
static int warden_answer(const struct warden *warden)
{
    uint64_t now_us = warden_now_us();
    uint64_t left_ms = warden->deadline_us > now_us ? (warden->deadline_us - now_us) / 1000 : 0;
    struct pollfd ready = {.fd = warden->fd, .events = POLLIN};
    int error = 0;
    if (poll(&ready, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX) != 1) return ETIMEDOUT;
    return recv(warden->fd, &error, sizeof(error), MSG_DONTWAIT) == (ssize_t)sizeof(error) ? error : ECHILD;
}

bool warden_start(struct warden *warden, pid_t group, uint64_t deadline_us)
{
    int ends[2];
    *warden =
        (struct warden){.fd = -1, .group = group, .deadline_us = deadline_us, .restarts = warden->restarts};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) warden_live(ends[1], group, deadline_us);
    int error = pid < 0 ? errno : 0;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
    } else {
        warden->pid = pid;
        warden->fd = ends[0];
        error = warden_answer(warden);
        if (error) warden_end(warden);
    }
    errno = error;
    return error == 0;
}

void warden_tell(struct warden *warden, uint64_t deadline_us)
{
    if (warden->pid && send(warden->fd, &deadline_us, sizeof(deadline_us), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                           (ssize_t)sizeof(deadline_us))
        warden->deadline_us = deadline_us;
}

bool warden_check(struct warden *warden)
{
    while (warden->pid) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)warden->pid, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0)
            return true;
        if (info.si_code == CLD_STOPPED) {
            kill(warden->pid, SIGCONT);
            continue;
        }
        close(warden->fd);
        warden->pid = 0;
        warden->fd = -1;
        if (warden_now_us() >= warden->deadline_us) return true;
        errno = ECHILD;
        return warden->restarts++ < WARDEN_RESTARTS_MAX &&
               warden_start(warden, warden->group, warden->deadline_us);
    }
    return true;
}

void warden_end(struct warden *warden)
{
    if (!warden->pid) return;
    kill(warden->pid, SIGKILL);
    waitpid(warden->pid, NULL, 0); /* no handler of ours can interrupt it */
    close(warden->fd);
    warden->pid = 0;
    warden->fd = -1;
}
