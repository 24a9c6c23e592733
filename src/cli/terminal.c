/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int terminal_open(void)
{
    return open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* is_alive - false for a zombie, which stays a member of its group until its parent has read its status. */
static bool is_alive(pid_t pid)
{
    char path[32], line[512];
    const char *name_end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    /* PID (NAME) STATE ..., where NAME may hold anything. */
    name_end = strrchr(line, ')');
    return name_end != NULL && strncmp(name_end, ") Z", 3) != 0 && strncmp(name_end, ") X", 3) != 0;
}

/* is_alone - whether our group has no other member. There is no system call for it; in doubt it is false. */
static bool is_alone(void)
{
    bool alone = true;
    DIR *folder = opendir("/proc");

    if (folder == NULL) return false;
    for (const struct dirent *entry; alone && (entry = readdir(folder)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0 for what is no process */

        alone = pid == 0 || pid == getpid() || getpgid(pid) != getpgrp() || !is_alive(pid);
    }
    closedir(folder);
    return alone;
}

bool terminal_has(int terminal, pid_t group)
{
    return terminal >= 0 && group > 0 && tcgetpgrp(terminal) == group;
}

bool terminal_lend(int terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp())) tcsetpgrp(terminal, group);
    return terminal_has(terminal, group);
}

void terminal_offer(int terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp()) && is_alone()) terminal_lend(terminal, group);
}

bool terminal_take(int terminal, pid_t group)
{
    if (terminal_has(terminal, group)) tcsetpgrp(terminal, getpgrp());
    return terminal_has(terminal, getpgrp());
}
