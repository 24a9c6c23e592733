/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - fields of what INFO answers */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* info_field - the value of "field:" at the beginning of a line, printable and cut to size; false where there
 * is none, and ret is untouched. */
bool info_field(const char *text, size_t length, const char *field, char *ret, size_t size);

struct info_server {
    const char *kind;      /* "Redis", "Valkey" */
    unsigned major, minor; /* of the oldest version that will do */
    bool too_old;
};

/* info_server - what kind of server it is, and its version; false where INFO has none. */
bool info_server(const char *text, size_t length, struct info_server *ret, char *version, size_t size);
/* info_mode - "standalone", "cluster", "sentinel"; untouched where INFO has none. */
void info_mode(const char *text, size_t length, char *ret, size_t size);
