/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { ROWS = 24, COLUMNS = 80, LEAVE_WAIT_MS = 200 };

/* Alternate screen, no cursor, long lines are cut; and all that undone, with plain letters. */
static const char screen_enter_text[] = "\x1b[?1049h\x1b[?25l\x1b[?7l";
static const char screen_leave_text[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/* Signals for faults and limits, which signals_open does not take. */
static const int fatal[] = {SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,    SIGABRT, SIGSYS,
                            SIGTRAP, SIGXCPU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGSTKFLT};
enum { N_FATAL = sizeof(fatal) / sizeof(fatal[0]) };

/* It is global because a signal handler cannot find it otherwise. */
static struct {
    volatile sig_atomic_t entered;
    int fd;
    bool has_modes;
    struct termios modes; /* before screen_enter */
    struct sigaction actions[N_FATAL];
} now;

bool screen_is_usable(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) == 1 && term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
}

bool screen_has_colors(void)
{
    const char *no_color = getenv("NO_COLOR");

    return screen_is_usable() && (no_color == NULL || *no_color == '\0');
}

bool screen_has_bars(void)
{
    return setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

struct screen_size screen_size(void)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return (struct screen_size){ROWS, COLUMNS};
    return (struct screen_size){size.ws_row, size.ws_col};
}

/* restore - restore the terminal. It uses only functions that a signal handler may call. */
static void restore(void)
{
    int errno_before = errno;
    struct pollfd ready = {.fd = now.fd, .events = POLLOUT};
    ssize_t written = -1;

    if (now.entered == 0) return;
    now.entered = 0;
    /* A terminal that Ctrl-S has stopped takes nothing, so wait only for a moment. */
    if (poll(&ready, 1, LEAVE_WAIT_MS) == 1) written = write(now.fd, screen_leave_text, sizeof(screen_leave_text) - 1);
    (void)written;
    if (now.has_modes) tcsetattr(now.fd, TCSANOW, &now.modes);
    errno = errno_before;
}

/* on_fatal - restore the terminal, and die as without this handler. */
static void on_fatal(int number)
{
    restore();
    for (size_t i = 0; i < N_FATAL; i++)
        if (fatal[i] == number) sigaction(number, &now.actions[i], NULL);
    raise(number);
}

static void catch_fatal(void)
{
    struct sigaction action = {.sa_handler = on_fatal};

    for (size_t i = 0; i < N_FATAL; i++) {
        sigaction(fatal[i], NULL, &now.actions[i]);
        if (now.actions[i].sa_handler != SIG_IGN) sigaction(fatal[i], &action, NULL);
    }
}

/* is_in_background - return whether the terminal is our controlling terminal, and another group has the foreground. */
static bool is_in_background(int fd)
{
    pid_t group = tcgetpgrp(fd);

    return group >= 0 && group != getpgrp();
}

bool screen_enter(int fd)
{
    struct termios quiet;
    ssize_t written;

    if (now.entered != 0) return true;
    if (is_in_background(fd)) return false;
    now.fd = fd;
    now.has_modes = tcgetattr(fd, &now.modes) == 0;
    quiet = now.modes;
    quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    catch_fatal();
    now.entered = 1;
    if (now.has_modes) tcsetattr(fd, TCSANOW, &quiet);
    written = write(fd, screen_enter_text, sizeof(screen_enter_text) - 1);
    if (written < 0 && errno != EAGAIN) restore();
    return now.entered != 0;
}

void screen_leave(void)
{
    bool entered = now.entered != 0;

    restore();
    for (size_t i = 0; entered && i < N_FATAL; i++) sigaction(fatal[i], &now.actions[i], NULL);
}

bool screen_is_entered(void)
{
    return now.entered != 0;
}

void screen_begin(struct text *picture)
{
    text_format(picture, "\x1b[H");
}

void screen_end(struct text *picture)
{
    text_format(picture, "\x1b[J");
}
