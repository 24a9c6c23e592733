/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * configfile.h - read a configuration file into items
 *
 * A line is KEY = VALUE, [set NAME], a comment that begins with #, or blank. The meaning of keys is in sources.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONFIGFILE_SIZE_MAX 65536

struct config_item {
    const char *set; /* "" before the first [set NAME] */
    const char *key; /* NULL: the line [set NAME] itself */
    char *value;     /* may be changed */
    unsigned line;
};

struct configfile {
    char *path; /* NULL: the file does not exist */
    char *bytes;
    struct config_item *items;
    size_t n_items;
    char *error;    /* why it could not be read; NULL: out of memory */
    bool is_public; /* every user of the machine may read it */
};

/* configfile_read - read a file: 0, or QUORLOCK_ERR_INVAL or QUORLOCK_ERR_NOMEM (memory or descriptors) with
 * file->error. If it does not exist and is not `needed`, it has no items. Call configfile_clear in any case. */
int configfile_read(struct configfile *file, const char *path, bool needed);
void configfile_clear(struct configfile *file);

/* configfile_parse - do the same for bytes, with room for a NUL at `length`; they become the texts of the items. */
int configfile_parse(struct configfile *file, const char *path, char *bytes, size_t length);

/* configfile_find - return the item of a key in a set, or NULL. */
struct config_item *configfile_find(const struct configfile *file, const char *set, const char *key);
