/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <string.h>

static size_t cell_width(table_cell *cell, const void *rows, size_t row, size_t column)
{
    struct text text = {0};
    size_t width;

    cell(&text, rows, row, column);
    width = text_columns(&text, 0);
    text_clear(&text);
    return width;
}

void table_add(struct text *text, const char *const *heads, size_t n_columns, table_cell *cell,
               const void *rows, size_t n_rows)
{
    size_t widths[TABLE_COLUMNS_MAX];

    for (size_t column = 0; column < n_columns; column++) {
        widths[column] = heads[column] != NULL ? strlen(heads[column]) : 0;
        for (size_t row = 0; row < n_rows; row++) {
            size_t width = cell_width(cell, rows, row, column);

            if (width > widths[column]) widths[column] = width;
        }
    }
    for (size_t line = 0; line <= n_rows; line++) {
        size_t begin = text->length;

        for (size_t column = 0; column < n_columns; column++) {
            size_t start = text->length;

            if (heads[column] == NULL) continue;
            if (line == 0) text_format(text, "%s", heads[column]);
            if (line > 0) cell(text, rows, line - 1, column);
            text_pad(text, start, widths[column] + 2);
        }
        while (text->length > begin && text->bytes[text->length - 1] == ' ') text->length--;
        text_add(text, "\n", 1);
    }
}
