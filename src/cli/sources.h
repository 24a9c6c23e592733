/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sources.h - where values come from that the command line does not give: the environment and configuration files
 *
 * The command line goes before the environment, that before the set of a file which was chosen, that before what
 * stands in front of all sets, that before the defaults.
 */
#pragma once

#include "args.h"
#include "configfile.h"

enum source_layer {
    SOURCE_NONE, /* not settled */
    SOURCE_OPTION,
    SOURCE_ENVIRONMENT,
    SOURCE_SET,
    SOURCE_FILE,
};

/* Of one key, which is the name of an option. */
struct source {
    const char *key;
    enum source_layer layer;
    const char *value;    /* as it was given; NULL: none is in force */
    const char *variable; /* of the environment; NULL: there is none for this key */
    const char *path;     /* of the file */
    unsigned line;
};

/* sources_know - whether the key may stand in a file. */
bool sources_know(const char *key);

/*
 * sources_settle - gives the settings what the command line did not; 0, EXIT_USAGE or EXIT_SYSTEM
 *
 * Call it after the options are read. A bad value that is not used is no error, a key that does not exist is. Strings
 * live until the next call.
 */
int sources_settle(struct settings *settings, enum args_place place);

/* sources_check - whether every value in the files is good, also in sets that are not used. 0 or EXIT_USAGE. */
int sources_check(void);

/* sources_forget - wipes passwords, also those in settings->nodes, once the library has its own copies. */
void sources_forget(const struct settings *settings);

/* sources_blame - says which values are from files, where the library refuses one of them. */
void sources_blame(void);

/* All keys after sources_settle, and the files that were read. */
const struct source *sources_all(size_t *ret_n);
const struct configfile *sources_files(size_t *ret_n);
/* sources_set - the name of the set of that number in them, NULL behind the last one. sources_sets: all of them. */
const char *sources_set(size_t number);
void sources_sets(struct text *text);
