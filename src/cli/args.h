/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line: one table of options, strict values, passwords hidden */
#pragma once

#include "cli.h"
#include "text.h"

/* Where an option belongs: bits. */
enum args_place {
    ARGS_GLOBAL = 1, /* before the verb */
    ARGS_RUN = 2,
    ARGS_INSPECT = 4,
    ARGS_BREAK = 8,
    ARGS_BOOTSTRAP = 16,
    ARGS_DOCTOR = 32,
    ARGS_BENCH = 64,
};

/*
 * args_parse - reads words[1 .. count) into settings; words[0] is the program or the verb
 *
 * ARGS_GLOBAL stops at the first word that is no option; a verb's place takes options and keys in any order, to
 * the end or to the first "--", behind which the command of ARGS_RUN begins, or more keys. The list `words` belongs to
 * the caller, must outlive the settings, and is reordered: the keys move to its front. *ret_next is where getopt_long
 * stopped. 0, or EXIT_USAGE after a message that names the wrong value and the remedy.
 */
int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next);

/* args_environment - defaults from QUORLOCK_NODES, QUORLOCK_MAX_LEASE and so on; 0 or EXIT_USAGE. Call it after the
 * options are read: what was given there wins, and a bad value that is not used is no error. */
int args_environment(struct settings *settings);

/* args_forget - takes users and passwords out of settings->nodes, once the library has its own copies. */
void args_forget(const struct settings *settings);

/* args_help - the lines of all options of that place. */
void args_help(struct text *text, enum args_place place);

/*
 * args_duration - "250ms", "30s", "2m", "1h" in milliseconds
 *
 * NULL, or what is wrong with it in words; *ret_ms is untouched then. Whole numbers only, a unit always.
 */
const char *args_duration(const char *text, uint32_t *ret_ms);

/* args_hide_all - takes users and passwords out of the URIs before "--", in place: other users see them in ps.
 */
void args_hide_all(char **words, int count);
