/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sources.h - values from the environment and from configuration files, where the caller gives none
 *
 * The order of precedence is: the caller, the environment, the chosen set of a file, the part of a file before all
 * sets, the default.
 */
#pragma once

#include <limits.h>

#include "settings/configfile.h"
#include "settings/values.h"

enum source_layer {
    SOURCE_NONE, /* the default, or not settled yet */
    SOURCE_OPTION,
    SOURCE_ENVIRONMENT,
    SOURCE_SET,
    SOURCE_FILE,
};

/* The source of one key. */
struct source {
    enum source_layer layer;
    const char *value; /* as it was given; NULL: none */
    char *copy;        /* the value, if it belongs to this struct */
    const char *path;  /* of the file */
    unsigned line;
};

enum { SOURCES_FILES_MAX = 2 };

/* Strings that are set belong to it. */
struct sources {
    struct configfile files[SOURCES_FILES_MAX];
    size_t n_files;
    char looked_for[SOURCES_FILES_MAX][PATH_MAX];
    struct source found[N_VALUE_KEYS]; /* in the order of value_keys */
    struct text error;
};

/* What the caller gives. */
struct sources_caller {
    const char *file;  /* the only configuration file to read; NULL: see quorlock.conf(5) */
    const char *front; /* of the names of its options in errors: "--", or "" */
    /* asked - return the value that the caller gives for a key and has set already, or NULL.
     * takes - return whether the caller uses a key; other keys of environment and files are not set. */
    const char *(*asked)(const void *arg, const char *key);
    bool (*takes)(const void *arg, const char *key);
    const void *arg;
};

/*
 * sources_settle - set all values that the caller has not given: 0, or QUORLOCK_ERR_INVAL or QUORLOCK_ERR_NOMEM with
 * the error
 *
 * `sources` is zeroed. A wrong value that is not used is no error; an unknown key is one. Call sources_clear in any
 * case, when the values are not needed any more.
 */
int sources_settle(struct sources *sources, struct values *values, const struct sources_caller *caller);
void sources_clear(struct sources *sources);

/* sources_warn - add a warning, if a password is in that file, and every user may read it. */
void sources_warn(const struct sources *sources, size_t file, struct text *text);

/* sources_check - check every value in the files, also in sets that are not used: 0, or QUORLOCK_ERR_INVAL with the
 * error.
 */
int sources_check(struct sources *sources);

/* sources_forget - wipe passwords, also those in values->nodes. Call it when the client has its own copies. */
void sources_forget(struct sources *sources, const struct values *values);

/* sources_blame - add the values that are from files, after the library has refused a value. */
void sources_blame(const struct sources *sources, struct text *text);

/*
 * sources_set  - return the name of a set in the files, by its number from 0 on; NULL: there is none
 * sources_sets - add the names of all sets
 */
const char *sources_set(const struct sources *sources, size_t number);
void sources_sets(const struct sources *sources, struct text *text);
