/* SPDX-License-Identifier: BSD-3-Clause */
#include "contain.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "fork.h"
#include "say.h"

enum { ANSWER_MS = 100, REMOVALS = 100, REMOVAL_MS = 2, DEPTH_MAX = 16 };
/* The only descriptor of the init. */
enum { INIT_LINK = 0 };

/* What the helper tells us. */
struct made {
    int error; /* errno; 0: both are there */
    pid_t init, command;
};

static bool contain_write(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX + 32];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    n = write(fd, text, strlen(text));
    close(fd);
    return n >= 0;
}

/* ---- pid: the namespace ---- */

/* map_ids - let the user and group of this process be the same in its new namespace of users. */
static bool map_ids(uid_t user, gid_t group)
{
    char users[32], groups[32];

    snprintf(users, sizeof(users), "%lu %lu 1", (unsigned long)user, (unsigned long)user);
    snprintf(groups, sizeof(groups), "%lu %lu 1", (unsigned long)group, (unsigned long)group);
    return contain_write("/proc/self", "setgroups", "deny") && contain_write("/proc/self", "uid_map", users) &&
           contain_write("/proc/self", "gid_map", groups);
}

/* enter - let the next process of this one be process 1; false with errno. Who may not needs a namespace of users, in
 * which he may. */
static bool enter(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();

    if (unshare(CLONE_NEWPID | CLONE_NEWNS) == 0) return true;
    return errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0 && map_ids(user, group);
}

/* fork_beside - fork a process that is not our child, but our parent's. This process has one thread, so nothing that
 * fork() cares for is needed. */
static pid_t fork_beside(void)
{
#if defined(__s390__)
    return (pid_t)syscall(SYS_clone, NULL, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL);
#else
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

/* show_processes - let /proc show the processes of this namespace. Only that mount is private: what the command mounts
 * elsewhere is seen as usual. */
static bool show_processes(void)
{
    return mount(NULL, "/proc", NULL, MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* init_prepare - set up process 1; false with errno. */
static bool init_prepare(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps */
    prctl(PR_SET_NAME, "quorlock-init");
    /* Signals to our group must not reach it, and it must not keep descriptors open whose end another process waits
     * for. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setsid() >= 0 && fork_close_others(INIT_LINK) && show_processes();
}

/* be_init - be process 1 until quorlock, which has the other end of the link, ends or says so. It does not return. */
static void be_init(int link)
{
    unsigned char number = 0;
    int error;

    if (dup2(link, INIT_LINK) < 0) _exit(EXIT_SYSTEM);
    error = init_prepare() ? 0 : errno;
    (void)send(INIT_LINK, &error, sizeof(error), MSG_NOSIGNAL);
    while (error == 0 && recv(INIT_LINK, &number, 1, 0) == 1) {
        bool left = kill(-1, number) == 0 || errno != ESRCH;

        if (number == 0) (void)send(INIT_LINK, &left, 1, MSG_NOSIGNAL);
    }
    _exit(0);
}

/* help - make the init, and then the process of the command, which returns. */
static void help(int fd, int link)
{
    struct made made = {0};

    made.init = enter() ? fork_beside() : -1;
    if (made.init == 0) be_init(link);
    made.command = made.init > 0 ? fork_beside() : -1;
    if (made.command < 0) made.error = errno;
    close(link);
    if (made.command == 0) return;
    (void)send(fd, &made, sizeof(made), MSG_NOSIGNAL);
    _exit(0);
}

/* hear - wait for what a process of ours sends; false with errno: it sent nothing. */
static bool hear(int fd, pid_t pid, void *ret, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    siginfo_t info = {0};

    while (poll(&ready, 1, ANSWER_MS) == 0) {
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0) break;
        kill(pid, SIGCONT); /* somebody may have stopped it */
    }
    if (recv(fd, ret, size, MSG_DONTWAIT) == (ssize_t)size) return true;
    errno = ECHILD;
    return false;
}

static pid_t fork_in_namespace(struct contain *contain, int *ret_fd)
{
    struct made made = {0};
    int link[2], error = 0;
    pid_t helper;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0) return -1;
    helper = fork_joined(ret_fd);
    if (helper == 0) {
        close(link[0]);
        help(*ret_fd, link[1]);
        return 0;
    }
    error = errno;
    close(link[1]);
    contain->link = link[0];
    if (helper > 0) {
        if (!hear(*ret_fd, helper, &made, sizeof(made))) made.error = errno;
        fork_end(helper); /* it has nothing more to do */
        contain->init = made.init > 0 ? made.init : 0;
        error = made.error;
        if (error == 0 && !hear(contain->link, contain->init, &error, sizeof(error))) error = errno;
    }
    if (error == 0) return made.command;
    if (made.command > 0) fork_end(made.command);
    if (helper > 0) close(*ret_fd);
    errno = error;
    return -1;
}

/* init_has_ended - return whether process 1 has ended, and so all others. */
static bool init_has_ended(const struct contain *contain)
{
    siginfo_t info = {0};

    return contain->init == 0 || waitid(P_PID, (id_t)contain->init, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

/* tell_init - let it send that signal to all others; 0: none, but it answers whether there are any. */
static bool tell_init(const struct contain *contain, int number)
{
    unsigned char byte = (unsigned char)number;

    kill(contain->init, SIGCONT); /* somebody may have stopped it */
    return send(contain->link, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static bool namespace_is_left(const struct contain *contain)
{
    struct pollfd ready = {.fd = contain->link, .events = POLLIN};
    bool left = true;

    if (init_has_ended(contain)) return false;
    while (recv(contain->link, &left, 1, MSG_DONTWAIT) == 1) continue; /* late answers */
    left = true;
    if (tell_init(contain, 0) && poll(&ready, 1, ANSWER_MS) == 1) (void)recv(contain->link, &left, 1, MSG_DONTWAIT);
    return left;
}

/* ---- cgroup ---- */

/* find_own - find the folder of our own cgroup, of version 2; false with errno. */
static bool find_own(char ret[PATH_MAX])
{
    static const char kind[] = " - cgroup2 ";
    char line[2 * PATH_MAX], own[PATH_MAX] = "", root[PATH_MAX], place[PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "re");
    int n = -1;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "0::/", 4) == 0) snprintf(own, sizeof(own), "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (file != NULL) fclose(file);
    file = fopen("/proc/self/mountinfo", "re");
    while (n < 0 && file != NULL && own[0] != '\0' && fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, kind) == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", root, place) != 2) continue;
        if (strcmp(root, "/") == 0) root[0] = '\0';
        if (strncmp(own, root, strlen(root)) == 0) n = snprintf(ret, PATH_MAX, "%s%s", place, own + strlen(root));
    }
    if (file != NULL) fclose(file);
    errno = ENOENT;
    return n >= 0 && n < PATH_MAX;
}

static bool make_cgroup(struct contain *contain)
{
    char own[PATH_MAX], path[PATH_MAX + 32];
    int n;

    if (!find_own(own)) return false;
    n = snprintf(contain->folder, sizeof(contain->folder), "%s/quorlock-XXXXXX", own);
    if (n >= PATH_MAX || mkdtemp(contain->folder) == NULL) {
        contain->folder[0] = '\0';
        return false;
    }
    snprintf(path, sizeof(path), "%s/cgroup.kill", contain->folder);
    return access(path, W_OK) == 0;
}

static pid_t fork_in_cgroup(struct contain *contain, int *ret_fd)
{
    char number[24];
    pid_t pid;

    if (!make_cgroup(contain)) return -1;
    pid = fork_joined(ret_fd);
    if (pid <= 0) return pid;
    snprintf(number, sizeof(number), "%ld", (long)pid);
    if (!contain_write(contain->folder, "cgroup.procs", number)) {
        int error = errno;

        fork_end(pid);
        close(*ret_fd);
        errno = error;
        return -1;
    }
    return pid;
}

/* open_file - open a file of the cgroup; NULL with errno: it cannot be opened, because the cgroup is removed, for
 * example. */
static FILE *open_file(const struct contain *contain, const char *name)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof(path), "%s/%s", contain->folder, name);
    return fopen(path, "re");
}

static bool cgroup_is_left(const struct contain *contain)
{
    FILE *file = open_file(contain, "cgroup.events");
    char line[64];
    bool left = file == NULL && errno != ENOENT;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strcmp(line, "populated 1\n") == 0) left = true;
    if (file != NULL) fclose(file);
    return left;
}

static bool signal_cgroup(const struct contain *contain, int number)
{
    FILE *file = open_file(contain, "cgroup.procs");
    char line[32];
    bool sent = false;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        pid_t pid = (pid_t)strtol(line, NULL, 10); /* 0: a process that we do not see */

        sent |= pid > 0 && kill(pid, number) == 0;
    }
    if (file != NULL) fclose(file);
    return sent;
}

static int remove_folder(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)place;
    if (type == FTW_DP) (void)rmdir(path);
    return 0;
}

/* remove_cgroup - remove it with the cgroups in it, when the processes that were killed have ended. One that does not
 * end, because it waits for a disk, must not delay us. */
static void remove_cgroup(const struct contain *contain)
{
    for (int i = 0; i < REMOVALS; i++) {
        if (i > 0) poll(NULL, 0, REMOVAL_MS);
        (void)nftw(contain->folder, remove_folder, DEPTH_MAX, FTW_DEPTH | FTW_PHYS);
        if (access(contain->folder, F_OK) != 0) return;
    }
}

/* ---- both ---- */

pid_t contain_fork(struct contain *contain, int kind, int *ret_fd)
{
    pid_t pid;
    int error;

    *contain = (struct contain){.kind = kind, .link = -1};
    pid = kind == CONTAIN_PID      ? fork_in_namespace(contain, ret_fd)
          : kind == CONTAIN_CGROUP ? fork_in_cgroup(contain, ret_fd)
                                   : fork_joined(ret_fd);
    if (pid >= 0) return pid;
    error = errno;
    contain_end(contain);
    errno = error;
    return -1;
}

int contain_check(int kind)
{
    struct contain contain;
    char byte;
    int fd;
    pid_t pid = kind == CONTAIN_NO ? 0 : contain_fork(&contain, kind, &fd);

    if (kind == CONTAIN_NO) return 0;
    if (pid == 0) _exit(recv(fd, &byte, 1, 0) == 1);
    if (pid > 0) {
        fork_end(pid);
        contain_end(&contain);
        close(fd);
        return 0;
    }
    if (kind == CONTAIN_PID) {
        say("--contain pid: no PID namespace with a /proc of its own can be made here: %s. Run quorlock as root, "
            "permit namespaces to users (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns), or try --contain cgroup",
            strerror(errno));
    } else {
        say("--contain cgroup: no cgroup can be made here below that of quorlock, or it has no cgroup.kill: %s. It "
            "needs cgroup v2, Linux 5.14, and the right to make one: 'systemd-run --user --scope -p Delegate=yes "
            "quorlock "
            "...', Delegate=yes in a unit, or root; or try --contain pid",
            strerror(errno));
    }
    return EXIT_USAGE;
}

bool contain_signal(const struct contain *contain, int number)
{
    if (contain->kind == CONTAIN_PID) return tell_init(contain, number);
    return contain->kind == CONTAIN_CGROUP && signal_cgroup(contain, number);
}

bool contain_is_left(const struct contain *contain)
{
    if (contain->kind == CONTAIN_PID) return namespace_is_left(contain);
    return contain->kind == CONTAIN_CGROUP && cgroup_is_left(contain);
}

void contain_kill(const struct contain *contain)
{
    if (contain->init > 0) kill(contain->init, SIGKILL);
    if (contain->folder[0] != '\0') (void)contain_write(contain->folder, "cgroup.kill", "1");
}

void contain_end(struct contain *contain)
{
    contain_kill(contain);
    if (contain->folder[0] != '\0') remove_cgroup(contain);
    /* The init is not awaited: it ends after all others, of which one may wait for a disk. child_reap_others reaps it.
     */
    if (contain->kind == CONTAIN_PID && contain->link >= 0) close(contain->link);
    *contain = (struct contain){.link = -1};
}
