/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line: one table of options, strict values */
#pragma once

#include "cli.h"
#include "settings/text.h"

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
 * ARGS_GLOBAL stops at the first word that is not an option: the verb. It sets --help and --version only, because all
 * other options are read with those behind the verb. A verb takes options and keys in any order, up to the end or to
 * the first "--". Behind "--" the command of ARGS_COMMANDS begins, or more keys. The list `words` belongs to the
 * caller, must outlive the settings, and is reordered: keys move to its front. *ret_next is where getopt_long stopped.
 * 0, or EXIT_USAGE after a message with the wrong value and the remedy.
 */
int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next);

/* args_asked - return the value of the option of a key on the command line, or NULL. */
const char *args_asked(const struct settings *settings, const char *key);
/* args_settle - set all settings that the command line has not set, from environment and files: 0, EXIT_USAGE or
 * EXIT_SYSTEM after a message. Call it after the options are read. */
int args_settle(struct settings *settings, enum args_place place);

/* args_hide - hide passwords in the arguments before "--", which other users see in ps, and owner tokens. */
void args_hide(char **words, int count);

/* args_help - add the help of all options of that place. */
void args_help(struct text *text, enum args_place place);
