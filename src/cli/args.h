/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line: one table of options, strict values */
#pragma once

#include "cli.h"
#include "text.h"

#define ARGS_NUMBER(unused, NAME, name, traits) ARGS_NUMBER_##NAME,
#define ARGS_PLACE(unused, NAME, name, traits)  ARGS_##NAME = ARGS_GLOBAL << (ARGS_NUMBER_##NAME + 1),
#define ARGS_IF(trait, NAME, name, traits)      | (((traits) & (trait)) != 0 ? ARGS_##NAME : 0)

enum { VERB_MAP(ARGS_NUMBER, ) N_VERBS };

/* Where an option is permitted: bits. */
enum args_place {
    ARGS_GLOBAL = 1, /* before the verb */
    VERB_MAP(ARGS_PLACE, )
};

/* All verbs that have a property. */
enum {
    ARGS_LOCKING = 0 VERB_MAP(ARGS_IF, VERB_LOCKS),
    ARGS_COMMANDS = 0 VERB_MAP(ARGS_IF, VERB_COMMAND),
    ARGS_REPORTS = 0 VERB_MAP(ARGS_IF, VERB_REPORT),
};

/*
 * args_parse - read words[1 .. count) into settings; words[0] is the program or the verb
 *
 * ARGS_GLOBAL stops at the first word that is not an option. A verb takes options and keys in any order, up to the end
 * or to the first "--". Behind "--" the command of ARGS_COMMANDS begins, or more keys. The list `words` belongs to the
 * caller, must outlive the settings, and is reordered: keys move to its front. *ret_next is where getopt_long stopped.
 * 0, or EXIT_USAGE after a message with the wrong value and the remedy.
 */
int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next);

/*
 * args_knows - return whether there is an option of that long name
 * args_takes - return whether a verb takes it; the name "password", which is no option, counts as taken
 * args_asked - return its value on the command line, or NULL
 */
bool args_knows(const char *name);
bool args_takes(enum args_place place, const char *name);
const char *args_asked(const struct settings *settings, const char *name);
/* args_set - set a value as if the option was given: 0, or EXIT_USAGE after a message, which begins with `origin`. The
 * value must outlive the settings, and may be changed. */
int args_set(struct settings *settings, const char *name, const char *origin, char *value);

/* args_help - add the help of all options of that place. */
void args_help(struct text *text, enum args_place place);
