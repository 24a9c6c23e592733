/* SPDX-License-Identifier: BSD-3-Clause */
/* hide.h - hide passwords in addresses and messages */
#pragma once

#include <stddef.h>

#define HIDE_SIZE 256

/*
 * hide_shown - return the word for a message; it is valid until the end of the block
 *
 * A word that may be an address is cut behind its scheme: a wrong address may have a password anywhere.
 */
#define hide_shown(word) hide_shown_in((char[HIDE_SIZE]){0}, word)
const char *hide_shown_in(char *buffer, const char *word);

/* hide_addresses - replace user and password in every URI in `text`, in place. The text gets shorter, and the bytes
 * behind its new end are wiped. */
void hide_addresses(char *text);
/* hide_scheme_length - return the length of "word://" at the beginning of `text`; 0: there is none. */
size_t hide_scheme_length(const char *text);
