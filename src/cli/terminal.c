/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include "child.h"

int terminal_open(void)
{
    return open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
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
    if (terminal_has(terminal, getpgrp()) && !child_group_lives(getpgrp(), getpid())) terminal_lend(terminal, group);
}

bool terminal_take(int terminal, pid_t group)
{
    if (terminal_has(terminal, group)) tcsetpgrp(terminal, getpgrp());
    return terminal_has(terminal, getpgrp());
}
