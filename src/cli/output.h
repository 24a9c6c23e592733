/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h - standard output for a verb that runs for long: a reader that does not read delays nothing
 *
 * Text that a terminal or pipe does not take now waits here, so that signals are still handled.
 */
#pragma once

#include "settings/text.h"

struct output {
    int fd; /* a descriptor of our own if possible, because O_NONBLOCK must not affect other processes */
    struct text waiting;
};

void output_open(struct output *output);
void output_close(struct output *output);
/*
 * output_add   - add a text behind the waiting text, and clear it
 * output_write - write as much as possible now; true: nothing waits; false with errno: EAGAIN, ENOMEM, or a write error
 */
void output_add(struct output *output, struct text *text);
bool output_write(struct output *output);
/* output_has_reader - return whether the reader of the pipe or socket still exists. */
bool output_has_reader(const struct output *output);
