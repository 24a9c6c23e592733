/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sources.h - values from the environment and from configuration files, where the command line has none
 *
 * The order of precedence is: the command line, the environment, the chosen set of a file, the part of a file before
 * all sets, the default.
 */
#pragma once

#include "args.h"
#include "configfile.h"

enum source_layer {
    SOURCE_NONE, /* the default, or not settled yet */
    SOURCE_OPTION,
    SOURCE_ENVIRONMENT,
    SOURCE_SET,
    SOURCE_FILE,
};

/* The source of one key, which is the name of an option. */
struct source {
    const char *key;
    enum source_layer layer;
    const char *value;    /* as it was given; NULL: none */
    const char *variable; /* the variable of the environment for this key, or NULL */
    const char *path;     /* of the file */
    unsigned line;
};

/* sources_know - return whether a file may have the key. */
bool sources_know(const char *key);

/*
 * sources_settle - set all settings that the command line has not set: 0, EXIT_USAGE or EXIT_SYSTEM
 *
 * Call it after the options are read. A wrong value that is not used is no error; an unknown key is one. Strings are
 * valid until the next call.
 */
int sources_settle(struct settings *settings, enum args_place place);

/* sources_check - check every value in the files, also in sets that are not used: 0, or EXIT_USAGE after a message. */
int sources_check(void);

/* sources_forget - wipe passwords, also those in settings->nodes. Call it when the library has its own copies. */
void sources_forget(const struct settings *settings);

/* sources_blame - print which values are from files, after the library has refused a value. */
void sources_blame(void);

/* sources_all, sources_files - return all keys after sources_settle, and the files that were read. */
const struct source *sources_all(size_t *ret_n);
const struct configfile *sources_files(size_t *ret_n);
/*
 * sources_set  - return the name of a set in the files, by its number from 0 on; NULL: there is none
 * sources_sets - add the names of all sets
 */
const char *sources_set(size_t number);
void sources_sets(struct text *text);
