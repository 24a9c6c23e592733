/* SPDX-License-Identifier: BSD-3-Clause */
#include "signals.h"

#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int handed_on[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                                SIGCONT, SIGWINCH, SIGTSTP, SIGURG,  SIGIO,   SIGPWR};

static struct sigaction pipe_before;

void signals_ignore_pipe(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGPIPE, &ignore, &pipe_before);
}

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

bool signals_open(struct signals *signals)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t taken;

    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    for (size_t i = 0; i < sizeof(handed_on) / sizeof(handed_on[0]); i++)
        if (!is_ignored(handed_on[i])) sigaddset(&taken, handed_on[i]);
    sigaddset(&taken, SIGTTIN);
    sigaddset(&taken, SIGTTOU);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        if (!is_ignored(number)) sigaddset(&taken, number);

    signals->fd = signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals->fd < 0) return false;
    /* If SIGCHLD were ignored, the kernel would drop the status of a command that ends. */
    sigaction(SIGCHLD, &standard, &signals->chld_before);
    sigprocmask(SIG_BLOCK, &taken, &signals->mask_before);
    return true;
}

int signals_next(const struct signals *signals, bool *ret_typed)
{
    struct signalfd_siginfo info;

    do {
        if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) return 0;
    } while (info.ssi_signo == SIGCONT && info.ssi_code == SI_USER && (pid_t)info.ssi_pid == getpid());
    *ret_typed = info.ssi_code == SI_KERNEL && (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT);
    return (int)info.ssi_signo;
}

void signals_restore(const struct signals *signals)
{
    sigaction(SIGPIPE, &pipe_before, NULL);
    sigaction(SIGCHLD, &signals->chld_before, NULL);
    sigprocmask(SIG_SETMASK, &signals->mask_before, NULL);
}

void signals_stop(void)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
}

void signals_die(int number, bool group)
{
    sigset_t one;

    if (is_ignored(number)) return;
    sigemptyset(&one);
    sigaddset(&one, number);
    /* If SIGQUIT writes a core file, it must be that of the command. */
    prctl(PR_SET_DUMPABLE, 0);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    kill(group ? 0 : getpid(), number);
}

bool signals_end_wait(int number)
{
    return number != SIGTTIN && number != SIGTTOU && number != SIGCONT && number != SIGWINCH && number != SIGURG &&
           number != SIGTSTP && number != SIGCHLD;
}
