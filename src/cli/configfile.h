/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * configfile.h - one configuration file, read into items
 *
 * A line is KEY = VALUE, [set NAME], a comment that begins with #, or blank. What the keys mean is not known here.
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
    char *path; /* NULL: there is no such file */
    char *bytes;
    struct config_item *items;
    size_t n_items;
    bool is_public; /* any user of the machine may read it */
};

/* configfile_read - 0, or EXIT_USAGE or EXIT_SYSTEM after saying what is wrong. Where the file is not there, and need
 * not be, it has no items. configfile_clear in any case. */
int configfile_read(struct configfile *file, const char *path, bool needed);
void configfile_clear(struct configfile *file);

/* configfile_parse - the same for bytes that end with a NUL beyond `length`; they become the texts of the items. */
int configfile_parse(struct configfile *file, const char *path, char *bytes, size_t length);

/* configfile_find - NULL: it is not there. */
struct config_item *configfile_find(const struct configfile *file, const char *set, const char *key);
