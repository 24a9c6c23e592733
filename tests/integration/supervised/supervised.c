/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supervised.c - a process that reports its signals: supervised NAME HOW [family] [beats]
 *
 * For the table of tests/integration/supervision.py. Each report is a line in the file `events` of the working
 * folder, a FIFO: NAME SIGNAL SENDER. The first one has signal 0 and the process's own id. HOW:
 *   notes    reports every signal, and none ends or stops it but KILL and STOP
 *   leaves   the same, but it exits with 3 at TERM
 *   plain    signals do to it what they do to any process
 *   ignores  the same, but all are ignored that can be
 *   reads    as plain, but at the first PING it reads a line from the terminal, which it reports as signal 0 once more
 * However that is, it reports PING, and END ends it with status 6.
 *
 * family: before that it starts two more, `inner` in its own group, and `apart` in a session of its own.
 * beats: it writes the time into the file `beats` every few milliseconds while it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_AT_END = 6, STATUS_AT_TERM = 3, STATUS_TROUBLE = 99, BEAT_NS = 8000000, LIFE_S = 120 };
enum { PING = 8, END = 9 }; /* behind SIGRTMIN */

struct process {
    const char *name;
    const char *how;
    bool family, beats;
    int events, beats_fd, ready;
};

static void report(const struct process *self, int number, long sender)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "%s %d %ld\n", self->name, number, sender);

    if (write(self->events, line, (size_t)length) != length) _exit(STATUS_TROUBLE);
}

static void beat(const struct process *self)
{
    struct timespec now;
    char line[48];
    int length;

    clock_gettime(CLOCK_BOOTTIME, &now);
    length = snprintf(line, sizeof(line), "%lld.%06ld\n", (long long)now.tv_sec, now.tv_nsec / 1000);
    if (write(self->beats_fd, line, (size_t)length) != length) _exit(STATUS_TROUBLE);
}

static bool is(const struct process *self, const char *how)
{
    return strcmp(self->how, how) == 0;
}

/* take - the signals that this process waits for; the others do what they do. */
static void take(const struct process *self, sigset_t *ret_taken)
{
    sigemptyset(ret_taken);
    if (is(self, "notes") || is(self, "leaves")) sigfillset(ret_taken);
    sigaddset(ret_taken, SIGRTMIN + PING);
    sigaddset(ret_taken, SIGRTMIN + END);
    sigprocmask(SIG_BLOCK, ret_taken, NULL);
    if (!is(self, "ignores")) return;
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(ret_taken, number) == 0 && number != SIGCHLD) signal(number, SIG_IGN);
}

static void read_line(const struct process *self)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
    char line[64];

    /* A whole line at once: between two reads it may have lost the foreground. */
    if (terminal >= 0 && read(terminal, line, sizeof(line)) > 0) report(self, 0, getpid());
}

/* live - until END. Does not return. */
static void live(struct process *self)
{
    struct timespec turn = {.tv_sec = self->beats ? 0 : LIFE_S, .tv_nsec = self->beats ? BEAT_NS : 0};
    sigset_t taken;
    siginfo_t info;

    take(self, &taken);
    report(self, 0, getpid());
    close(self->ready);
    if (is(self, "reads") && sigwaitinfo(&taken, &info) == SIGRTMIN + PING) read_line(self);
    for (;;) {
        int number = sigtimedwait(&taken, &info, &turn);

        if (self->beats) beat(self);
        if (number < 0 && errno == EAGAIN && !self->beats) _exit(STATUS_TROUBLE); /* the test has died */
        if (number == SIGRTMIN + END) _exit(STATUS_AT_END);
        if (number > 0) report(self, number, info.si_pid);
        if (number == SIGTERM && is(self, "leaves")) _exit(STATUS_AT_TERM);
    }
}

static void start(const struct process *outer, const char *name, const char *how)
{
    struct process self = *outer;
    int ends[2];
    char byte;

    if (pipe(ends) != 0) _exit(STATUS_TROUBLE);
    if (fork() != 0) {
        close(ends[1]);
        /* Until it is up, and closes its end. */
        if (read(ends[0], &byte, 1) < 0) _exit(STATUS_TROUBLE);
        close(ends[0]);
        return;
    }
    close(ends[0]);
    self.ready = ends[1];
    self.name = name;
    self.how = how;
    if (strcmp(name, "apart") == 0) {
        self.beats = false;
        setsid();
    }
    live(&self);
}

int main(int argc, char **argv)
{
    struct process self = {.events = open("events", O_WRONLY | O_CLOEXEC), .ready = -1};

    if (argc < 3 || self.events < 0) return STATUS_TROUBLE;
    self.name = argv[1];
    self.how = argv[2];
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "family") == 0) self.family = true;
        if (strcmp(argv[i], "beats") == 0) self.beats = true;
    }
    if (self.beats) self.beats_fd = open("beats", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (self.family) {
        start(&self, "inner", is(&self, "leaves") ? "notes" : is(&self, "reads") ? "plain" : self.how);
        start(&self, "apart", "notes");
    }
    live(&self);
}
