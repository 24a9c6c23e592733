/* SPDX-License-Identifier: BSD-3-Clause */
/* values.h - the keys of configuration files: one table, and functions that check and set values given as text */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "settings/text.h"

/* The library permits shorter leases, but they have no room for a renewal and for the 10 ms that ending a command
 * takes. */
#define LEASE_MS_MIN 25
/* Limits and defaults of quorlock bench. */
#define BENCH_IN_FLIGHT_MAX 100000
#define BENCH_SECONDS_MAX   3600
#define BENCH_IN_FLIGHT     16
#define BENCH_SECONDS       5

/* QUORLOCK_LEASE_MS_DEFAULT as text. */
#define LEASE_SHOWN "30s"
_Static_assert(QUORLOCK_LEASE_MS_DEFAULT == 30000, "change LEASE_SHOWN, too");
/* SHOWN - the number of a constant as text. */
#define SHOWN(number)      SHOWN_TEXT(number)
#define SHOWN_TEXT(number) #number

/* A value of each key. The strings belong to whoever set them. */
struct values {
    struct quorlock_client_options client; /* only members that have a key; without `nodes` */
    const char *set;                       /* NULL: none */
    char *nodes;                           /* URI,URI,... */
    const char *password_file;             /* NULL: none. See credentials.h */
    uint32_t lease_ms, wait_ms;  /* of locks; lease_ms 0: the library's default; wait_ms as in the options of a lock */
    uint32_t fence;              /* of locks: not 0: take a fencing token */
    uint32_t in_flight, seconds; /* of quorlock bench */
};

/* A value that is to be set. */
struct given {
    const char *name;    /* where it was given, for messages: an option, a variable, or a line of a file */
    char *value;         /* it must outlive the setting, and may be changed */
    const char *choices; /* "a|b", for given_choice */
    void *setting;
    struct text *error;
};

/*
 * given_duration, _number, _choice, _string - set the setting: 0, or QUORLOCK_ERR_INVAL with the error added
 *
 * A number is named by `what` in the error. The setting of a choice is an int: the index of the word.
 */
int given_duration(const struct given *given, uint32_t min_ms, uint32_t max_ms);
int given_number(const struct given *given, uint32_t min, uint32_t max, const char *what);
int given_choice(const struct given *given);
int given_string(const struct given *given);
/* given_refuse - add the error "NAME: "VALUE" WRONG", and return QUORLOCK_ERR_INVAL. */
int given_refuse(const struct given *given, const char *wrong);

struct value_key {
    const char *key;
    const char *variable; /* in the environment; NULL: none */
    const char *partner;  /* if this key was set in an earlier layer, `key` is not used */
    const char *usual;    /* the default as text; NULL: none */
    int (*set)(const struct given *);
    size_t setting;      /* offset in struct values */
    const char *choices; /* "a|b", for given_choice */
};

enum { N_VALUE_KEYS = 24, VALUE_SET = 0 }; /* VALUE_SET is the index of the key `set` */
extern const struct value_key value_keys[N_VALUE_KEYS];

/* values_place - return the index of a key, or N_VALUE_KEYS. */
size_t values_place(const char *key);
/* values_set - set a key, which must be in the table: 0, or QUORLOCK_ERR_INVAL with the error added, which begins with
 * `name`. The value must outlive the values, and may be changed. */
int values_set(struct values *values, const char *key, const char *name, char *value, struct text *error);
/* values_begin - return the defaults. */
struct values values_begin(void);
/* values_nodes - split the addresses of `list`, which is changed, into options->nodes, for which `nodes` has
 * QUORLOCK_NODES_MAX places. If there are more, only their number is right, which the library refuses. */
void values_nodes(struct quorlock_client_options *options, const char **nodes, char *list);
