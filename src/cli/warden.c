/* SPDX-License-Identifier: BSD-3-Clause */
#include "warden.h"

#include <errno.h>
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
#include "contain.h"
#include "fork.h"

enum { WARDEN_ANSWER_MS = 100 };

/* The only descriptors of the warden. */
enum { WARDEN_LINK = 0, WARDEN_TIMER = 1 };

uint64_t warden_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* warden_hear - read the newest deadline; false: quorlock, which sends them, has died. */
static bool warden_hear(uint64_t *deadline_us)
{
    uint64_t told_us = 0;
    ssize_t n = 0;

    while ((n = recv(WARDEN_LINK, &told_us, sizeof(told_us), MSG_DONTWAIT)) == (ssize_t)sizeof(told_us))
        *deadline_us = told_us;
    return n != 0;
}

/* warden_watch - wait until the group must end. */
static void warden_watch(uint64_t deadline_us)
{
    for (;;) {
        struct itimerspec at = {.it_value = {(time_t)(deadline_us / 1000000), (long)(deadline_us % 1000000) * 1000}};
        struct pollfd ready[] = {{.fd = WARDEN_LINK, .events = POLLIN}, {.fd = WARDEN_TIMER, .events = POLLIN}};

        timerfd_settime(WARDEN_TIMER, TFD_TIMER_ABSTIME, &at, NULL);
        poll(ready, 2, -1);
        /* Read messages before the clock: while this process did not run, the deadline may have moved forward. */
        if (!warden_hear(&deadline_us) || warden_now_us() >= deadline_us) return;
    }
}

/* warden_prepare - set up the process of the warden; false with errno. */
static bool warden_prepare(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "quorlock-warden");
    /* All cores may be busy at the deadline. Without the right to do this, the priority stays. */
    (void)setpriority(PRIO_PROCESS, 0, -20);
    /* Signals to our group must not reach it, and it must not keep descriptors open whose end another process waits
     * for. */
    if (setsid() < 0 || !fork_close_others(WARDEN_LINK)) return false;
    /* The lowest free descriptor is WARDEN_TIMER. The timeout of poll would not count while the machine sleeps. */
    return timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK) == WARDEN_TIMER;
}

/* live - be the warden. It does not return. */
static void live(int fd, pid_t group, struct contain *contain, uint64_t deadline_us)
{
    int error;

    if (dup2(fd, WARDEN_LINK) < 0) _exit(EXIT_SYSTEM);
    error = warden_prepare() ? 0 : errno;
    /* If quorlock has died meanwhile, this fails, and warden_watch finds it out. */
    (void)send(WARDEN_LINK, &error, sizeof(error), MSG_NOSIGNAL);
    if (error != 0) _exit(EXIT_SYSTEM);
    warden_watch(deadline_us);
    contain_kill(contain);
    kill(-group, SIGKILL);
    contain_end(contain);
    _exit(0);
}

/* wait_for_answer - wait for the new process, until the deadline at most: 0, or an errno. */
static int wait_for_answer(const struct warden *warden)
{
    struct pollfd ready = {.fd = warden->fd, .events = POLLIN};
    uint64_t now_us, left_ms;
    int error = 0, n = 0;

    while (n == 0 && (now_us = warden_now_us()) < warden->deadline_us) {
        left_ms = (warden->deadline_us - now_us) / 1000;
        n = poll(&ready, 1, left_ms < WARDEN_ANSWER_MS ? (int)left_ms : WARDEN_ANSWER_MS);
        if (n == 0) kill(warden->pid, SIGCONT); /* somebody may have stopped it */
    }
    if (n != 1) return ETIMEDOUT;
    return recv(warden->fd, &error, sizeof(error), MSG_DONTWAIT) == (ssize_t)sizeof(error) ? error : ECHILD;
}

static void warden_forget(struct warden *warden)
{
    close(warden->fd);
    warden->pid = 0;
}

bool warden_start(struct warden *warden, pid_t group, struct contain *contain, uint64_t deadline_us)
{
    int fd = -1, error;
    pid_t pid = fork_joined(&fd);

    if (pid == 0) live(fd, group, contain, deadline_us);
    if (pid < 0) return false;
    *warden = (struct warden){pid, fd, group, contain, deadline_us, warden->restarts};
    error = wait_for_answer(warden);
    if (error != 0) warden_end(warden);
    errno = error;
    return error == 0;
}

void warden_tell(struct warden *warden, uint64_t deadline_us)
{
    if (warden->pid != 0 && send(warden->fd, &deadline_us, sizeof(deadline_us), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                                (ssize_t)sizeof(deadline_us))
        warden->deadline_us = deadline_us;
}

bool warden_check(struct warden *warden)
{
    while (warden->pid != 0) {
        siginfo_t info = {0};

        if (waitid(P_PID, (id_t)warden->pid, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) return true;
        if (info.si_code == CLD_STOPPED) {
            kill(warden->pid, SIGCONT);
            continue;
        }
        warden_forget(warden);
        if (warden_now_us() >= warden->deadline_us) return true;
        errno = 0;
        return warden->restarts++ < WARDEN_RESTARTS_MAX &&
               warden_start(warden, warden->group, warden->contain, warden->deadline_us);
    }
    return true;
}

void warden_end(struct warden *warden)
{
    if (warden->pid == 0) return;
    fork_end(warden->pid);
    warden_forget(warden);
}
