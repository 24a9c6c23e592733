/* SPDX-License-Identifier: BSD-3-Clause */
/* hide.h - passwords in words, out of sight */
#pragma once

#include <stddef.h>

/*
 * hide_shown - the word as an error may show it, in a buffer that lives until the next call
 *
 * A word that may be an address is cut behind its scheme: a wrong one may have a password anywhere.
 */
const char *hide_shown(const char *word);

/* hide_addresses - takes user and password out of every URI in `text`, in place; the text only gets shorter, what is
 * left over behind it is wiped. */
void hide_addresses(char *text);
/* hide_all - takes users and passwords out of the URIs before "--", in place: other users see them in ps.
 */
void hide_all(char **words, int count);
/* hide_scheme_length - of "word://" at the beginning of `text`; 0: there is none. */
size_t hide_scheme_length(const char *text);
