/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static void fail(int fd)
{
    int error = errno;

    (void)send(fd, &error, sizeof(error), MSG_NOSIGNAL);
    _exit(error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* become - in the new process: waits for child_go and becomes the command. Does not return. */
static void become(int fd, pid_t parent, char *const *command, const struct signals *signals)
{
    char go = 0;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(fd);
    /* Where the parent died before the line above, that signal never comes. */
    if (getppid() != parent) _exit(EXIT_LOST);
    if (recv(fd, &go, 1, 0) != 1) _exit(EXIT_LOST);
    signals_restore(signals);
    execvp(command[0], command);
    fail(fd);
}

pid_t child_fork(int *ret_fd)
{
    int ends[2], error;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    pid = fork();
    error = errno;
    *ret_fd = ends[pid == 0];
    close(ends[pid != 0]);
    if (pid < 0) close(ends[0]);
    errno = error;
    return pid;
}

bool child_start(struct child *child, char *const *command, const struct signals *signals)
{
    pid_t parent = getpid();
    int fd;
    pid_t pid = child_fork(&fd);

    if (pid == 0) become(fd, parent, command, signals);
    if (pid < 0) return false;
    *child = (struct child){.state = CHILD_RUNNING, .pid = pid, .fd = fd};
    setpgid(pid, pid);
    return true;
}

void child_go(const struct child *child)
{
    /* Where it cannot be sent, the process has ended, and SIGCHLD comes. */
    (void)send(child->fd, "", 1, MSG_NOSIGNAL);
}

void child_abandon(struct child *child)
{
    int error = errno;

    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0); /* no handler of ours can interrupt it */
    child_forget(child);
    child->state = CHILD_NONE;
    errno = error;
}

static void note_end(struct child *child, const siginfo_t *info)
{
    int error = 0;

    child->state = CHILD_ENDED;
    child->end_signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
    child->status = child->end_signal != 0 ? EXIT_SIGNAL + child->end_signal : info->si_status;
    if (recv(child->fd, &error, sizeof(error), MSG_DONTWAIT) == (ssize_t)sizeof(error)) child->exec_errno = error;
}

bool child_update(struct child *child)
{
    bool changed = false;

    while (child->state == CHILD_RUNNING || child->state == CHILD_STOPPED) {
        siginfo_t info = {0};

        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) != 0) break;
        if (info.si_pid == 0) break;
        changed = true;
        if (info.si_code == CLD_STOPPED) {
            child->state = CHILD_STOPPED;
            child->stop_signal = info.si_status;
        } else if (info.si_code == CLD_CONTINUED) {
            child->state = CHILD_RUNNING;
        } else {
            note_end(child, &info);
        }
    }
    return changed;
}

bool child_signal(const struct child *child, int number)
{
    return child->state == CHILD_NONE || kill(-child->pid, number) == 0 || errno == ESRCH;
}

bool child_group_is_left(const struct child *child)
{
    return child->state != CHILD_NONE && (kill(-child->pid, 0) == 0 || errno == EPERM);
}

bool child_wants_terminal(const struct child *child)
{
    return child->state == CHILD_STOPPED && (child->stop_signal == SIGTTIN || child->stop_signal == SIGTTOU);
}

void child_forget(struct child *child)
{
    if (child->fd >= 0) close(child->fd);
    child->fd = -1;
}
