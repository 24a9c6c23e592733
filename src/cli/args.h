/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - the command line: one table of options, strict values */
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
    ARGS_CONFIG = 128,
    ARGS_WATCH = 256,
    ARGS_ELECT = 512,
    ARGS_LEADER = 1024,
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

/*
 * args_duration - "250ms", "30s", "2m", "1h" in milliseconds
 *
 * NULL, or what is wrong with it in words; *ret_ms is untouched then. Whole numbers only, a unit always.
 */
const char *args_duration(const char *text, uint32_t *ret_ms);
