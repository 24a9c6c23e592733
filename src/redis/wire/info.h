/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - read fields of the reply to INFO */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "redis/wire/reply.h"

/* info_field - copy the value of the line "field:value", printable and cut to size. False: there is no such line, and
 * ret is unchanged. */
bool info_field(const char *text, size_t length, const char *field, char *ret, size_t size);

struct info_server {
    const char *kind;      /* "Redis", "Valkey" */
    unsigned major, minor; /* the oldest version that is supported */
    bool too_old;
};

/* info_server - read the kind of server and its version. False: INFO has no version. */
bool info_server(const char *text, size_t length, struct info_server *ret, char *version, size_t size);
/* info_other - copy the name that the reply to HELLO 3 gives a server that is neither Redis nor Valkey; else "". */
void info_other(const struct reply *, char *ret, size_t size);
/* info_mode - read "standalone", "cluster" or "sentinel"; ret is unchanged if INFO has none. */
void info_mode(const char *text, size_t length, char *ret, size_t size);
