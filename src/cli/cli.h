/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.h - common to all verbs of the command: exit statuses, settings, the session with the nodes */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings/sources.h"

/* Exit statuses, numbered as in sysexits.h where that has one. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_HELD = 1, /* somebody else holds the lock; run -E sets another number */
    EXIT_USAGE = 64,
    EXIT_NO_QUORUM = 69, /* an outage: another attempt may help */
    EXIT_SYSTEM = 71,    /* the operating system refused: memory, processes */
    EXIT_OUTPUT = 74,
    EXIT_LOST = 75,   /* the lock was lost while the command ran */
    EXIT_CONFIG = 78, /* the nodes refuse this client: its password, rights, settings, or the key */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the signal */
};

#define HOLD_MS_MAX 3600000000u
/* Limits of watch. The interval keeps the load of each node at a few commands a second. */
#define WATCH_INTERVAL_MS_MIN 250
#define WATCH_COUNT_MAX       1000000

#define ARGS_OPTIONS_MAX 64

/* Properties of a verb: bits. */
enum verb_trait {
    VERB_LOCKS = 1,   /* it takes locks; other verbs write no guard, and quarantine no node */
    VERB_COMMAND = 2, /* it runs the command behind "--", and checks the keys before "--" itself */
    VERB_REPORT = 4,  /* it reports on keys, and needs at least one */
};

/* All verbs, in the order of messages: X(argument, NAME, name, traits). main.c has a row of texts for each. */
#define VERB_MAP(X, argument)                                                                                          \
    X(argument, RUN, run, VERB_LOCKS | VERB_COMMAND)                                                                   \
    X(argument, ELECT, elect, VERB_LOCKS | VERB_COMMAND)                                                               \
    X(argument, ACQUIRE, acquire, VERB_LOCKS | VERB_REPORT)                                                            \
    X(argument, RENEW, renew, VERB_LOCKS | VERB_REPORT)                                                                \
    X(argument, RELEASE, release, VERB_LOCKS | VERB_REPORT)                                                            \
    X(argument, LEADER, leader, VERB_REPORT)                                                                           \
    X(argument, BOOTSTRAP, bootstrap, 0)                                                                               \
    X(argument, DOCTOR, doctor, 0)                                                                                     \
    X(argument, INSPECT, inspect, VERB_REPORT)                                                                         \
    X(argument, LS, ls, 0)                                                                                             \
    X(argument, WATCH, watch, VERB_REPORT)                                                                             \
    X(argument, BREAK, break, VERB_REPORT)                                                                             \
    X(argument, BENCH, bench, VERB_LOCKS)                                                                              \
    X(argument, CONFIG, config, 0)

/* The end of other processes in the command's process group, when the command has ended. */
enum group_rule {
    GROUP_AUTO,  /* as GROUP_LEAVE after an exit, as GROUP_END after a signal */
    GROUP_WAIT,  /* hold the lock until all have ended */
    GROUP_END,   /* the same, and end them: SIGTERM, then SIGKILL */
    GROUP_LEAVE, /* release the lock, and let them run */
};

/* The settings from command line, environment and files. Strings belong to main's copy of the arguments, or to
 * `sources`. */
struct settings {
    struct values values;
    struct sources *sources;
    bool help, version, json, quiet, fair, reconfigure, if_needed, yes, dry_run;
    int verbose;
    const char *config;          /* NULL: see sources.h */
    const char *acl;             /* of doctor: print the rights of this user; NULL: no */
    bool no_notices, with_ls;    /* of doctor --acl */
    const char *metrics_file;    /* of run and elect; NULL: none */
    const char *advertise;       /* of elect; NULL: the label */
    const char *token_file;      /* of acquire, renew and release; NULL: none */
    const char *owner;           /* of break: only if that one holds it; NULL: any */
    bool restart;                /* of elect: start another candidacy when the command has ended by itself */
    int group;                   /* of run and elect, enum group_rule */
    bool subreaper;              /* of run and elect */
    int contain;                 /* of run and elect, enum contain_kind */
    bool wait_leader, follow;    /* of leader */
    bool all;                    /* of ls: other strings, too */
    uint32_t interval_ms, count; /* of watch; 0: the default, and no limit */
    uint32_t held_status;
    uint32_t max_hold_ms;                /* of run; 0: no limit */
    uint32_t keep_ms;                    /* of run; 0: the release deletes the keys */
    uint32_t permits;                    /* of run; 0: an ordinary lock */
    uint64_t shared;                     /* of run: a bit for each word that is locked shared, from the lowest bit on */
    const char *asked[ARGS_OPTIONS_MAX]; /* the value of each option on the command line; see args_asked */
    const char *const *words;            /* the other arguments: keys */
    size_t n_words;
    char *const *command; /* behind "--", ends with NULL; NULL: there was no "--" */
};

struct event_base;
struct timeval;

/* An event loop with a client on it, for the time of one verb. */
struct session {
    struct event_base *base;
    quorlock_client *client;
    const struct settings *settings;
    int status; /* exit status */
    bool closed;
    unsigned waits_left; /* without -v: how many more lines about waiting locks are printed; at first no limit */
    struct quorlock_error error; /* why session_try failed */
};

/* session_try - do as session_open, without a message: 0, or a status of the library. */
int session_try(struct session *session, const struct settings *settings);
/* session_open - make the loop and the client: 0, or the exit status after a message. The settings must outlive the
 * session.
 */
int session_open(struct session *session, const struct settings *settings);
/* session_blame - print which values are from files, after the library has refused a value. */
void session_blame(const struct settings *settings);
/* session_check - return the exit status for the status of a call on the client; if it failed, print its error. */
int session_check(const struct session *session, int status);
/* session_run - run the loop until session_leave, close the session, and return the exit status. If `failed` is not 0,
 * it is the exit status, and the loop does not run. */
int session_run(struct session *session, int failed);
/* session_leave - end the loop. */
void session_leave(struct session *session);
/*
 * session_close - close the client, and wait a moment for missing answers
 *
 * A frozen node does not delay the command: the kernel has the requests, and the node reads them when it goes on. If
 * session_open failed, it has no effect.
 */
void session_close(struct session *session);

/* session_span - convert a time for timers of the session's loop. */
struct timeval session_span(uint32_t ms);
/* session_max_lease_ms - return the max lease, as the library chooses it.
 * session_lease_ms     - likewise the lease of locks. */
uint32_t session_max_lease_ms(const struct settings *settings);
uint32_t session_lease_ms(const struct settings *settings);
/*
 * session_exit    - return the exit status for the status of a call
 * session_refused - return it for the result of an operation, where INVAL means that the nodes have other settings
 */
int session_exit(int status);
int session_refused(int status);

/* verb_NAME - run the verb to its end, and return the exit status. */
#define VERB_FUNCTION(unused, NAME, name, traits) int verb_##name(const struct settings *settings);
VERB_MAP(VERB_FUNCTION, )

/* acl_print - print the rights that the user settings->acl needs for the keys settings->words. */
int acl_print(const struct settings *settings);
