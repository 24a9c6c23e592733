/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    *terminal = (struct terminal){.fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)};
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0) close(terminal->fd);
    terminal->fd = -1;
}

/* terminal_state - the state of a process as ps shows it, 0 where it is no member of our group (any more). */
static char terminal_state(pid_t pid)
{
    char path[32];
    char line[512];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    /* PID (NAME) STATE PARENT GROUP, where NAME may hold anything. */
    const char *name_end = strrchr(line, ')');
    char state = 0;
    int group = 0;
    if (!name_end || sscanf(name_end + 1, " %c %*d %d", &state, &group) != 2 || group != getpgrp()) return 0;
    return state == 'Z' || state == 'X' ? 0 : state;
}

/* terminal_look - who else is in our group, as many as we can remember. False: nobody can tell. */
static bool terminal_look(struct terminal *terminal)
{
    terminal->n_others = 0;
    DIR *folder = opendir("/proc");
    if (!folder) return false;
    for (const struct dirent *entry; (entry = readdir(folder)) && terminal->n_others < TERMINAL_OTHERS_MAX;) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid != getpid() && terminal_state(pid)) terminal->others[terminal->n_others++] = pid;
    }
    closedir(folder);
    return true;
}

bool terminal_has(const struct terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == group;
}

void terminal_offer(struct terminal *terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp()) && terminal_look(terminal) && terminal->n_others == 0)
        tcsetpgrp(terminal->fd, group);
}

bool terminal_lend(struct terminal *terminal, pid_t group)
{
    if (terminal_has(terminal, getpgrp())) {
        terminal_look(terminal);
        tcsetpgrp(terminal->fd, group);
    }
    return terminal_has(terminal, group);
}

bool terminal_is_wanted(const struct terminal *terminal)
{
    for (size_t i = 0; i < terminal->n_others; i++)
        if (terminal_state(terminal->others[i]) == 'T') return true;
    return false;
}

void terminal_take(struct terminal *terminal, pid_t group)
{
    if (!terminal_has(terminal, group) || tcsetpgrp(terminal->fd, getpgrp()) != 0) return;
    for (size_t i = 0; i < terminal->n_others; i++)
        if (terminal_state(terminal->others[i]) == 'T') kill(terminal->others[i], SIGCONT);
    terminal->n_others = 0;
}
