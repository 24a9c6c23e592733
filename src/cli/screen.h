/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * screen.h - a terminal on which a picture is drawn again and again, and which is as it was afterwards
 *
 * The picture is on the alternate screen, without cursor, and what is typed is not shown. All that is undone by
 * screen_leave, and when the process dies of a signal that is one for faults. Only SIGKILL leaves it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

struct screen_size {
    size_t rows, columns;
};

/* screen_is_usable - whether standard output is a terminal that obeys control sequences. screen_has_colors: and may be
 * given colors (NO_COLOR). screen_has_bars: and shows block characters. */
bool screen_is_usable(void);
bool screen_has_colors(void);
bool screen_has_bars(void);
struct screen_size screen_size(void);
/* screen_enter - on the terminal of that descriptor. No effect when it is entered. False: this process is in the
 * background, or the terminal is gone. screen_leave: any number of times. */
bool screen_enter(int fd);
void screen_leave(void);
bool screen_is_entered(void);
/* screen_begin, screen_end - the control sequences around a picture. */
void screen_begin(struct text *picture);
void screen_end(struct text *picture);
