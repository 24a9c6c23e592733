/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.h - what the verbs of the quorlock command share: exit statuses, settings, the session with the nodes */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses, numbered as in sysexits.h where that has one. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_HELD = 1, /* somebody else holds the lock; run -E changes it */
    EXIT_USAGE = 64,
    EXIT_NO_QUORUM = 69, /* an outage: trying again may help */
    EXIT_SYSTEM = 71,    /* the operating system refused: memory, processes */
    EXIT_OUTPUT = 74,
    EXIT_LOST = 75,   /* the lock was lost while the command ran */
    EXIT_CONFIG = 78, /* the nodes refuse this client: its password, rights, settings, or the key */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127,
    EXIT_SIGNAL = 128, /* plus the signal */
};

/* A shorter lease, which the library takes, has no room for a renewal and 10 ms in which a command is ended. */
#define LEASE_MS_MIN 25
/* The most that bench takes. */
#define BENCH_IN_FLIGHT_MAX 100000
#define BENCH_SECONDS_MAX   3600
/* What it takes by default. */
#define BENCH_IN_FLIGHT 16
#define BENCH_SECONDS   5
/* So that no node gets more than a few commands a second. */
#define WATCH_INTERVAL_MS_MIN 250
#define WATCH_COUNT_MAX       1000000

/* QUORLOCK_LEASE_MS_DEFAULT as it is shown. */
#define LEASE_SHOWN "30s"
_Static_assert(QUORLOCK_LEASE_MS_DEFAULT == 30000, "LEASE_SHOWN says it too");
/* SHOWN - a number's constant as text. */
#define SHOWN(number)      SHOWN_TEXT(number)
#define SHOWN_TEXT(number) #number

#define ARGS_OPTIONS_MAX 64

/* What the command needs to know of a verb beside its help: bits. */
enum verb_trait {
    VERB_LOCKS = 1,   /* it takes locks; the others write no guard, and quarantine no node */
    VERB_COMMAND = 2, /* it runs the command behind "--", and checks the keys before it by itself */
    VERB_REPORT = 4,  /* it reports on keys, and needs one at least */
};

/* Each verb, in the order in which messages name them: X(argument, NAME, name, traits). main.c has a row of texts for
 * each. */
#define VERB_MAP(X, argument)                                                                                          \
    X(argument, RUN, run, VERB_LOCKS | VERB_COMMAND)                                                                   \
    X(argument, ELECT, elect, VERB_LOCKS | VERB_COMMAND)                                                               \
    X(argument, LEADER, leader, VERB_REPORT)                                                                           \
    X(argument, BOOTSTRAP, bootstrap, 0)                                                                               \
    X(argument, DOCTOR, doctor, 0)                                                                                     \
    X(argument, INSPECT, inspect, VERB_REPORT)                                                                         \
    X(argument, WATCH, watch, VERB_REPORT)                                                                             \
    X(argument, BREAK, break, VERB_REPORT)                                                                             \
    X(argument, BENCH, bench, VERB_LOCKS)                                                                              \
    X(argument, CONFIG, config, 0)

/* What becomes of the rest of a command's process group when the command has ended. */
enum group_rule {
    GROUP_AUTO,  /* as GROUP_LEAVE after an exit, as GROUP_END after a signal */
    GROUP_WAIT,  /* the lock is held until all of it has ended */
    GROUP_END,   /* the same, and it is ended: SIGTERM, then SIGKILL */
    GROUP_LEAVE, /* the lock is released, and it goes on */
};

/* What the command line, the environment and files ask for. Strings belong to main's copy of the arguments, to the
 * environment and to sources.c. */
struct settings {
    bool help, version, json, quiet, fence, reconfigure, if_needed, yes, dry_run, allow_eviction;
    int verbose;
    const char *config, *set;                           /* NULL: see sources.h */
    char *nodes;                                        /* URI,URI,... */
    const char *user, *password, *password_file;        /* for addresses without any; NULL: none. See credentials.h */
    const char *tls_ca, *tls_cert, *tls_key, *tls_name; /* NULL: the library's default */
    const char *label;                                  /* NULL: host and process id */
    const char *set_name;                               /* NULL: from the addresses */
    const char *acl;          /* of doctor: the user whose rights are printed; NULL: none are */
    bool no_notices;          /* for acl */
    const char *metrics_file; /* of run and elect; NULL: none */
    const char *advertise;    /* of elect; NULL: the label */
    bool restart;             /* of elect: also when the command has ended by itself */
    int group;                /* of run and elect, enum group_rule */
    bool subreaper;           /* of run and elect */
    bool wait_leader, follow; /* of leader */
    int policy, dialect, guard;
    uint32_t lease_ms, max_lease_ms, wait_ms, node_timeout_ms,
        connect_timeout_ms;      /* 0: the library's default, but for wait_ms */
    uint32_t in_flight, seconds; /* of bench */
    uint32_t interval_ms, count; /* of watch; 0: the default, and for ever */
    uint32_t held_status;
    uint32_t permits; /* of run; 0: an ordinary lock */
    uint64_t shared;  /* of run: a bit for each of the words that is locked shared, from the lowest on */
    const char *asked[ARGS_OPTIONS_MAX]; /* what the command line gave to each option; see args_asked */
    const char *const *words;            /* what is no option: keys */
    size_t n_words;
    char *const *command; /* of run, behind "--", ends with NULL; NULL where there was no "--" */
};

struct event_base;
struct timeval;

/* One event loop with one client on it, for the time of one verb. */
struct session {
    struct event_base *base;
    quorlock_client *client;
    const struct settings *settings;
    int status; /* exit status */
    bool closed;
    unsigned waits_left; /* how many more lines about locks that wait are said without -v; session_open: all */
    char error[512];     /* why session_try failed */
};

/* session_try - session_open without a message: 0, or a library status. */
int session_try(struct session *session, const struct settings *settings);
/* session_open - 0, or the exit status after saying why. The settings must outlive the session. */
int session_open(struct session *session, const struct settings *settings);
/* session_check - the exit status for what a request to the client returned, after saying why it failed. */
int session_check(const struct session *session, int status);
/* session_run - unless `failed` is an exit status, runs the loop until session_leave; closes the session and
 * returns the exit status. */
int session_run(struct session *session, int failed);
void session_leave(struct session *session);
/*
 * session_close - ends the client, and waits a short grace for answers that are still on their way
 *
 * A frozen node does not delay the command: the kernel has what was sent to it, and the node reads it when it
 * wakes. After session_open failed: no effect.
 */
void session_close(struct session *session);

/* session_span - for timers of the session's loop. */
struct timeval session_span(uint32_t ms);
/* session_lease_ms - of a lock, as the library chooses it. */
uint32_t session_lease_ms(const struct settings *settings);
/* session_exit - the exit status for what a call returned; session_refused: for what the nodes made of an operation,
 * where INVAL means that they are set up for other clients, and the command line was right. */
int session_exit(int status);
int session_refused(int status);

/* verb_NAME - runs that verb to its end and returns the exit status. */
#define VERB_FUNCTION(unused, NAME, name, traits) int verb_##name(const struct settings *settings);
VERB_MAP(VERB_FUNCTION, )

/* acl_print - the rights for settings->acl on the keys of settings->words. */
int acl_print(const struct settings *settings);
