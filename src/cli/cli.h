/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli.h - what the verbs of the quorlock command share: exit statuses, settings, the verbs themselves
 */
#ifndef QUORLOCK_CLI_CLI_H
#define QUORLOCK_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, numbered as in sysexits.h where that has one. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_HELD = 1, /* somebody else holds the lock; run -E changes it */
    EXIT_USAGE = 64,
    EXIT_NO_QUORUM = 69,
    EXIT_SYSTEM = 71, /* the operating system refused: memory, processes */
    EXIT_OUTPUT = 74,
    EXIT_LOST = 75, /* the lock was lost while the command ran */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the signal */
};

/* What the command line and the environment ask for. Strings belong to main's copy of the arguments. */
struct settings {
    bool help, version, json, fence, reconfigure, allow_eviction;
    int verbose;
    const char *nodes;    /* URI,URI,... */
    bool nodes_asked;     /* by --nodes */
    const char *label;    /* NULL: host and process id */
    const char *set_name; /* NULL: from the addresses */
    int policy, dialect, guard;
    uint32_t lease_ms, max_lease_ms, wait_ms, node_timeout_ms; /* 0: the library's default, but for wait_ms */
    int held_status;
    const char *const *words; /* what is no option: keys */
    size_t n_words;
    char *const *command; /* behind "--", ends with NULL; NULL where there was no "--" */
};

/* Each runs one verb to its end and returns the exit status. */
int verb_run(const struct settings *settings);
int verb_inspect(const struct settings *settings);
int verb_break(const struct settings *settings);
int verb_bootstrap(const struct settings *settings);
int verb_doctor(const struct settings *settings);

#endif
