/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - a table for people: one line for the heads, then one for each row
 */
#ifndef QUORLOCK_CLI_TABLE_H
#define QUORLOCK_CLI_TABLE_H

#include "text.h"

enum { TABLE_COLUMNS_MAX = 16 };

/* table_cell - adds what stands in that cell; `rows` is what table_add was given. */
typedef void table_cell(struct text *cell, const void *rows, size_t row, size_t column);

/* table_add - each column as wide as its widest cell; one whose head is NULL is left out. */
void table_add(struct text *text, const char *const *heads, size_t n_columns, table_cell *cell,
               const void *rows, size_t n_rows);

#endif
