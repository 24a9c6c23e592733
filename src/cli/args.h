/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line: one table of options, strict values */
#pragma once

#include "cli.h"
#include "text.h"

#define ARGS_NUMBER(unused, NAME, name, traits) ARGS_NUMBER_##NAME,
#define ARGS_PLACE(unused, NAME, name, traits)  ARGS_##NAME = ARGS_GLOBAL << (ARGS_NUMBER_##NAME + 1),
#define ARGS_IF(trait, NAME, name, traits)      | (((traits) & (trait)) != 0 ? ARGS_##NAME : 0)

enum { VERB_MAP(ARGS_NUMBER, ) N_VERBS };

/* Where an option belongs: bits. */
enum args_place {
    ARGS_GLOBAL = 1, /* before the verb */
    VERB_MAP(ARGS_PLACE, )
};

/* All verbs that have the trait. */
enum {
    ARGS_LOCKING = 0 VERB_MAP(ARGS_IF, VERB_LOCKS),
    ARGS_COMMANDS = 0 VERB_MAP(ARGS_IF, VERB_COMMAND),
    ARGS_REPORTS = 0 VERB_MAP(ARGS_IF, VERB_REPORT),
};

/*
 * args_parse - reads words[1 .. count) into settings; words[0] is the program or the verb
 *
 * ARGS_GLOBAL stops at the first word that is no option; a verb's place takes options and keys in any order, to
 * the end or to the first "--", behind which the command of ARGS_COMMANDS begins, or more keys. The list `words`
 * belongs to the caller, must outlive the settings, and is reordered: the keys move to its front. *ret_next is where
 * getopt_long stopped. 0, or EXIT_USAGE after a message that names the wrong value and the remedy.
 */
int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next);

/* Of one option by its long name: whether there is one, and a verb takes it; what the command line gave, or NULL. A
 * name that has no option is that of a password. */
bool args_knows(const char *name);
bool args_takes(enum args_place place, const char *name);
const char *args_asked(const struct settings *settings, const char *name);
/* args_set - the same as if the option was given; `origin` begins the message about a wrong value. The value must
 * outlive the settings, and may be changed. */
int args_set(struct settings *settings, const char *name, const char *origin, char *value);

/* args_help - the lines of all options of that place. */
void args_help(struct text *text, enum args_place place);
