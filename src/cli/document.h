/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * document.h - JSON documents, made by jansson
 *
 * Out of memory makes a value NULL, and what it is added to becomes NULL too: only document_write has to check.
 */
#ifndef QUORLOCK_CLI_DOCUMENT_H
#define QUORLOCK_CLI_DOCUMENT_H

#include <jansson.h>

#include "text.h"

/* document_text - null for NULL; what is no UTF-8 becomes U+FFFD. */
json_t *document_text(const char *string);
/* document_number - null for what is below `least`. */
json_t *document_number(int64_t number, int64_t least);
/* document_truth - null for what is below 0. */
json_t *document_truth(int truth);
/* document_add, document_append - a member to an object, an element to an array; they take the value. */
void document_add(json_t **object, const char *name, json_t *value);
void document_append(json_t **array, json_t *value);
/* document_write - adds it as one line that is safe for a terminal, and frees it. */
void document_write(struct text *text, json_t *document);

#endif
