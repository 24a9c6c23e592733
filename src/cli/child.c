/* SPDX-License-Identifier: BSD-3-Clause */
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "fork.h"
#include "say.h"

static void child_fail(int fd)
{
    int error = errno;

    (void)send(fd, &error, sizeof(error), MSG_NOSIGNAL);
    _exit(error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* become - in the new process: wait for child_go, and execute the command. It does not return. */
static void become(int fd, pid_t parent, char *const *command, const struct signals *signals)
{
    char go = 0;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) child_fail(fd);
    /* If the parent died before prctl, the signal never comes. */
    if (getppid() != parent) _exit(EXIT_LOST);
    if (recv(fd, &go, 1, 0) != 1) _exit(EXIT_LOST);
    signals_restore(signals);
    execvp(command[0], command);
    child_fail(fd);
}

bool child_start(struct child *child, int kind, char *const *command, const struct signals *signals)
{
    /* From inside of a PID namespace the parent outside has no number. */
    pid_t parent = kind == CONTAIN_PID ? 0 : getpid();
    int fd;
    pid_t pid = contain_fork(&child->contain, kind, &fd);

    if (pid == 0) become(fd, parent, command, signals);
    if (pid < 0) return false;
    child_forget(child); /* of the term before */
    *child = (struct child){.state = CHILD_RUNNING, .pid = pid, .fd = fd, .contain = child->contain};
    setpgid(pid, pid);
    return true;
}

void child_go(const struct child *child)
{
    /* If it cannot be sent, the process has ended, and SIGCHLD comes. */
    (void)send(child->fd, "", 1, MSG_NOSIGNAL);
}

void child_abandon(struct child *child)
{
    int error = errno;

    fork_end(child->pid);
    contain_end(&child->contain);
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

bool child_kill(const struct child *child)
{
    contain_kill(&child->contain);
    return child_signal(child, SIGKILL);
}

void child_ask_to_end(const struct child *child)
{
    /* A stopped process does not get SIGTERM before it goes on. */
    static const int numbers[] = {SIGTERM, SIGCONT};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (!contain_signal(&child->contain, numbers[i])) child_signal(child, numbers[i]);
}

/* child_find_command - return the path that execvp found, or NULL. */
static const char *child_find_command(const char *command, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    size_t length;

    if (strchr(command, '/') != NULL) return access(command, F_OK) == 0 ? command : NULL;
    if (folders == NULL) folders = "/bin:/usr/bin";
    for (;; folders += length + 1) {
        int n;

        length = strcspn(folders, ":");
        n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, folders, length > 0 ? "/" : "", command);
        if (n > 0 && n < PATH_MAX && access(path, F_OK) == 0) return path;
        if (folders[length] == '\0') return NULL;
    }
}

/* read_interpreter - read the interpreter behind #! in the file; false: there is none. */
static bool read_interpreter(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;
    size_t start;

    if (fd >= 0) close(fd);
    ret[n > 0 ? n : 0] = '\0';
    if (strncmp(ret, "#!", 2) != 0) return false;
    start = 2 + strspn(ret + 2, " \t");
    memmove(ret, ret + start, strlen(ret + start) + 1);
    ret[strcspn(ret, " \t\n")] = '\0';
    return true;
}

void child_say_why(const struct child *child, const char *command)
{
    char path[PATH_MAX], interpreter[256];
    const char *file = child->exec_errno == ENOENT ? child_find_command(command, path) : NULL;

    if (file == NULL) {
        say("cannot execute %s: %s", command, strerror(child->exec_errno));
    } else if (!read_interpreter(file, interpreter, sizeof(interpreter))) {
        say("cannot execute %s: it exists, but not the loader that it needs: it was built for another system", command);
    } else {
        say("cannot execute %s: its interpreter \"%s\" does not exist%s", command, interpreter,
            strchr(interpreter, '\r') != NULL ? ": the script has the line ends of Windows, \\r\\n" : "");
    }
}

/* is_alive - return whether the process runs, or may run: /proc can hide what it does. A zombie does not run, but is in
 * its group until its parent reads its status. */
static bool is_alive(pid_t pid)
{
    char path[32], line[512];
    const char *name_end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno != ENOENT;
    n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    /* PID (NAME) STATE ..., where NAME may have any characters. */
    name_end = strrchr(line, ')');
    return name_end != NULL && strncmp(name_end, ") Z", 3) != 0 && strncmp(name_end, ") X", 3) != 0;
}

bool child_group_lives(pid_t group, pid_t but)
{
    bool lives = false;
    DIR *folder = opendir("/proc");

    if (folder == NULL) return true;
    for (const struct dirent *entry; !lives && (entry = readdir(folder)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: not a process */

        lives = pid != 0 && pid != but && getpgid(pid) == group && is_alive(pid);
    }
    closedir(folder);
    return lives;
}

/* child_sees_all - return whether /proc shows the processes of all users, and by the numbers that we use. It can be
 * empty, belong to another namespace, or hide the processes of other users (hidepid): then it hides process 1, too. */
static bool child_sees_all(void)
{
    char self[16];
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    self[n > 0 ? n : 0] = '\0';
    return strtol(self, NULL, 10) == (long)getpid() && access("/proc/1/stat", R_OK) == 0;
}

/* child_has_group - return whether the group has any process, zombies among them. */
static bool child_has_group(pid_t group)
{
    return kill(-group, 0) == 0 || errno == EPERM;
}

bool child_group_is_left(const struct child *child)
{
    if (child->contain.kind != CONTAIN_NO) return contain_is_left(&child->contain);
    if (child->state == CHILD_NONE || !child_has_group(child->pid)) return false;
    if (child_group_lives(child->pid, 0)) return true;
    return !child_sees_all() && child_has_group(child->pid);
}

void child_reap_others(const struct child *child, pid_t warden)
{
    pid_t command = child->state == CHILD_RUNNING || child->state == CHILD_STOPPED ? child->pid : 0;

    for (;;) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        /* Their own SIGCHLD follows. */
        if (info.si_pid == command || info.si_pid == child->contain.init || info.si_pid == warden) return;
        waitpid(info.si_pid, NULL, 0);
    }
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
