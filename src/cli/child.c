/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "say.h"

static void child_fail(int error_fd)
{
    int error = errno;
    ssize_t written = write(error_fd, &error, sizeof(error));
    (void)written;
    _exit(error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* child_become - in the new process: turns into the command. Does not return. */
static void child_become(const struct child *child, int error_fd, pid_t parent, char *const *command,
                         const struct child_environment *environment, const struct signals *signals)
{
    char number[24];
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) child_fail(error_fd);
    /* The parent may have died before the line above: then nobody would ever send that signal. */
    if (getppid() != parent) _exit(EXIT_LOST);
    if (setenv("QUORLOCK_KEY", environment->key, 1) != 0 ||
        setenv("QUORLOCK_KEYS", environment->keys, 1) != 0 ||
        setenv("QUORLOCK_OWNER", environment->owner, 1) != 0)
        child_fail(error_fd);
    snprintf(number, sizeof(number), "%" PRIu64, environment->fence);
    if (environment->fence ? setenv("QUORLOCK_FENCE", number, 1) != 0 : unsetenv("QUORLOCK_FENCE") != 0)
        child_fail(error_fd);
    /* Both sides do this, and setpgid: whoever runs first, the group is in place before the command. */
    child_give_terminal(child);
    signals_restore(signals);
    execvp(command[0], command);
    child_fail(error_fd);
}

/* warden_live - in the warden: waits for our end, then kills the group. Does not return. */
static void warden_live(int fd, pid_t group)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    /* Out of reach of whoever signals our group; holding nothing that somebody waits to see closed. */
    setsid();
    prctl(PR_SET_NAME, "quorlock-warden");
    if (dup2(fd, STDIN_FILENO) < 0) _exit(EXIT_SYSTEM);
    close_range(STDIN_FILENO + 1, UINT_MAX, 0);
    char byte = 0;
    ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n == 0) kill(-group, SIGKILL);
    _exit(0);
}

static bool warden_start(struct child *child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) warden_live(ends[0], child->pid);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return false;
    }
    child->warden = pid;
    child->warden_fd = ends[1];
    return true;
}

bool child_start(struct child *child, char *const *command, const struct child_environment *environment,
                 const struct signals *signals)
{
    int ends[2];
    pid_t parent = getpid();
    *child = (struct child){.error_fd = -1, .warden_fd = -1, .terminal = isatty(STDIN_FILENO) == 1};
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) child_become(child, ends[1], parent, command, environment, signals);
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = error;
        return false;
    }
    child->pid = pid;
    child->error_fd = ends[0];
    child->state = CHILD_RUNNING;
    setpgid(pid, pid); /* fails once the command is executed; then the child did it */
    child_give_terminal(child);
    if (!warden_start(child))
        say("warning: no second process to be had: if quorlock is killed, what %s started may live on",
            command[0]);
    return true;
}

static void child_note_end(struct child *child, const siginfo_t *info)
{
    child->state = CHILD_ENDED;
    child->status = info->si_code == CLD_EXITED ? info->si_status : EXIT_SIGNAL + info->si_status;
    int error = 0;
    if (read(child->error_fd, &error, sizeof(error)) == (ssize_t)sizeof(error)) child->exec_errno = error;
}

bool child_update(struct child *child)
{
    enum child_state before = child->state;
    while (child->state == CHILD_RUNNING || child->state == CHILD_STOPPED) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0) break;
        if (info.si_pid == 0) break;
        if (info.si_code == CLD_STOPPED) {
            child->state = CHILD_STOPPED;
        } else if (info.si_code == CLD_CONTINUED) {
            child->state = CHILD_RUNNING;
        } else {
            child_note_end(child, &info);
        }
    }
    return child->state != before;
}

bool child_signal(const struct child *child, int number)
{
    return child->state == CHILD_NONE || kill(-child->pid, number) == 0 || errno == ESRCH;
}

bool child_group_is_left(const struct child *child)
{
    return child->state != CHILD_NONE && (kill(-child->pid, 0) == 0 || errno == EPERM);
}

void child_give_terminal(const struct child *child)
{
    pid_t group = child->pid ? child->pid : getpid();
    pid_t own = child->pid ? getpgrp() : getpgid(getppid());
    if (child->terminal && tcgetpgrp(STDIN_FILENO) == own) tcsetpgrp(STDIN_FILENO, group);
}

void child_take_terminal(const struct child *child)
{
    if (child->terminal && tcgetpgrp(STDIN_FILENO) == child->pid) tcsetpgrp(STDIN_FILENO, getpgrp());
}

void child_forget(struct child *child)
{
    if (child->warden) {
        kill(child->warden, SIGKILL);
        waitpid(child->warden, NULL, 0); /* no handler of ours can interrupt it */
        close(child->warden_fd);
    }
    if (child->error_fd >= 0) close(child->error_fd);
    child->warden = 0;
    child->warden_fd = child->error_fd = -1;
}
