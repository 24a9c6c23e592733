/* SPDX-License-Identifier: BSD-3-Clause */
/* hide.h - hide passwords in arguments and messages */
#pragma once

#include <stddef.h>

/*
 * hide_shown - return the word for a message, in a buffer that is valid until the next call
 *
 * A word that may be an address is cut behind its scheme: a wrong address may have a password anywhere.
 */
const char *hide_shown(const char *word);

/* hide_addresses - replace user and password in every URI in `text`, in place. The text gets shorter, and the bytes
 * behind its new end are wiped. */
void hide_addresses(char *text);
/* hide_all - do the same for the arguments before "--", which other users see in ps, and hide owner tokens there. */
void hide_all(char **words, int count);
/* hide_scheme_length - return the length of "word://" at the beginning of `text`; 0: there is none. */
size_t hide_scheme_length(const char *text);
