/* SPDX-License-Identifier: BSD-3-Clause */
#include "fork.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t fork_joined(int *ret_fd)
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

void fork_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0); /* there is no signal handler that could interrupt it */
}

/* Linux before 5.9 has no close_range, and some containers deny it. */
bool fork_close_others(int last)
{
    DIR *folder;

#ifdef SYS_close_range
    if (syscall(SYS_close_range, last + 1, UINT_MAX, 0) == 0) return true;
#endif
    folder = opendir("/proc/self/fd");
    if (folder == NULL) return false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int fd = (int)strtol(entry->d_name, NULL, 10); /* 0: not a descriptor */

        if (fd > last && fd != dirfd(folder)) close(fd);
    }
    closedir(folder);
    return true;
}
