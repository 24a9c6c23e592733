/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * screen.h - draw a picture on a terminal again and again, and restore the terminal afterwards
 *
 * The picture is on the alternate screen, without a cursor and without echo. screen_leave restores the terminal, and so
 * does the end by a signal for faults. Only SIGKILL does not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "settings/text.h"

struct screen_size {
    size_t rows, columns;
};

/*
 * screen_is_usable  - return whether standard output is a terminal that obeys control sequences
 * screen_has_colors - return whether it may get colors (NO_COLOR)
 * screen_has_bars   - return whether it shows block characters
 */
bool screen_is_usable(void);
bool screen_has_colors(void);
bool screen_has_bars(void);
struct screen_size screen_size(void);
/*
 * screen_enter - prepare the terminal, unless that is done; false: this process is in the background, or there is no
 * terminal screen_leave - restore the terminal; it may be called several times
 */
bool screen_enter(int fd);
void screen_leave(void);
bool screen_is_entered(void);
/* screen_begin, screen_end - add the control sequences around a picture. */
void screen_begin(struct text *picture);
void screen_end(struct text *picture);
