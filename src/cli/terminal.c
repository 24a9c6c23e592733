/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0) close(terminal->fd);
    terminal->fd = -1;
}

/* terminal_is_alive - a member of our group that has ended stays one until somebody asks for its status. */
static bool terminal_is_alive(pid_t pid)
{
    char path[32];
    char line[512];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    /* PID (NAME) STATE ..., where NAME may hold anything. */
    const char *name_end = strrchr(line, ')');
    return name_end && strncmp(name_end, ") Z", 3) != 0 && strncmp(name_end, ") X", 3) != 0;
}

/* terminal_is_alone - no kernel call tells; where nobody can say, we are not. */
static bool terminal_is_alone(void)
{
    bool alone = true;
    DIR *folder = opendir("/proc");
    if (!folder) return false;
    for (const struct dirent *entry; alone && (entry = readdir(folder));) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        alone = pid == getpid() || getpgid(pid) != getpgrp() || !terminal_is_alive(pid);
    }
    closedir(folder);
    return alone;
}

bool terminal_has(const struct terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && group > 0 && tcgetpgrp(terminal->fd) == group;
}

bool terminal_lend(const struct terminal *terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp())) tcsetpgrp(terminal->fd, group);
    return terminal_has(terminal, group);
}

void terminal_offer(const struct terminal *terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp()) && terminal_is_alone()) terminal_lend(terminal, group);
}

bool terminal_take(const struct terminal *terminal, pid_t group)
{
    if (terminal_has(terminal, group)) tcsetpgrp(terminal->fd, getpgrp());
    return terminal_has(terminal, getpgrp());
}
