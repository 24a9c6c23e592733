/* SPDX-License-Identifier: BSD-3-Clause */
/* file.h - files that the command writes: a new file beside the old one takes its name, so nothing blocks, and readers
 * see the old text or the new one */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* file_check - return whether that is a regular file, or nothing yet; else false with errno. A link, a pipe or a device
 * would be replaced. */
bool file_check(const char *path);
/* file_write - write the file, with that mode whatever mode the old one has: false with errno. */
bool file_write(const char *path, mode_t mode, const char *bytes, size_t length);
/* file_why - return the text of errno after file_check or file_write has failed. */
const char *file_why(void);
