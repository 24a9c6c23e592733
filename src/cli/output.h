/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h - standard output for a verb that goes on: a reader that does not read holds up nothing
 *
 * What a terminal or a pipe does not take now waits here, so that signals are still handled.
 */
#pragma once

#include "text.h"

struct output {
    int fd; /* of our own where that is possible, for then writing to it need not block others that write there */
    struct text waiting;
};

void output_open(struct output *output);
void output_close(struct output *output);
/* output_add - behind what waits already; clears the text. output_write: as much as is taken now; true: nothing waits
 * any more; false with errno: EAGAIN, ENOMEM, or why nothing more can be written. */
void output_add(struct output *output, struct text *text);
bool output_write(struct output *output);
/* output_has_reader - false: what is written is read by nobody. */
bool output_has_reader(const struct output *output);
