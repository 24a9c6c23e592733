/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * document.h - JSON documents by jansson
 *
 * Out of memory, a JSON value becomes NULL, and so does every value that it is added to, so only document_write has to
 * check.
 */
#pragma once

#include <jansson.h>

#include <stdint.h>

#include "settings/text.h"

/* document_text - return a string, or null for NULL; bytes that are not UTF-8 become U+FFFD. */
json_t *document_text(const char *string);
/* document_number - return a number, or null if it is below `least`. */
json_t *document_number(int64_t number, int64_t least);
/* document_truth - return a boolean, or null if `truth` is below 0. */
json_t *document_truth(int truth);
/* document_read - read what document_write or the library wrote; NULL: out of memory. */
json_t *document_read(const char *string);
/* document_text_of, document_number_of, document_truth_of - read a member: NULL or -1 if it is null. The text belongs
 * to the object. */
const char *document_text_of(const json_t *object, const char *name);
int64_t document_number_of(const json_t *object, const char *name);
int document_truth_of(const json_t *object, const char *name);
/* document_add, document_append - add a member to an object, an element to an array. They own the value then. */
void document_add(json_t **object, const char *name, json_t *value);
void document_append(json_t **array, json_t *value);
/* document_write - add the document as one line that is safe for a terminal, and free it. */
void document_write(struct text *text, json_t *document);
