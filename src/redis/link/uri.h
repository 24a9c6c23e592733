/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.h - node addresses
 *
 * redis://[user[:password]@]host[:port][/db], rediss:// likewise, which is TLS,
 * unix://[user[:password]@]/path[?db=N], bare host[:port]; IPv6
 * in brackets. User, password and path may be percent-encoded. "redis://:secret@host" is a password without
 * user; "redis://secret@host" is the user "secret", as in other clients.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

enum uri_kind { URI_NUMERIC, URI_NAME, URI_UNIX };

struct uri {
    enum uri_kind kind;
    bool tls;
    char *host; /* address or name without brackets; the path of a unix socket */
    uint16_t port;
    uint32_t db;
    char *user;     /* NULL where there is none */
    char *password; /* NULL where there is none; wiped by uri_clear */
    char *name;     /* to show and to compare: without credentials, canonical (host in lower case, numeric addresses
                       in one form, default port and db always written the same way) */
};

/*
 * uri_parse - reads one address
 *
 * 0, or a quorlock_status with the text in error: 'address "redis://host": ', which part is wrong, and what
 * would be right. Only scheme and host are quoted: where a wrong address has its password is not known.
 * *ret is untouched on failure.
 */
int uri_parse(struct uri *ret, const struct alloc *, const char *text, char *error, size_t error_size);
void uri_clear(struct uri *, const struct alloc *);
/* uri_log_in - gives copies of user and password, NULL or "" for none, to an address that has neither. 0 or NOMEM. */
int uri_log_in(struct uri *, const struct alloc *, const char *user, const char *password);
/* uri_same - both name the same server: host and port, or path. The databases of one server share its memory,
 * so they do not count. */
bool uri_same(const struct uri *, const struct uri *);
/* uri_tells_password - the text contains the password, or ends in what may be its beginning: an odd server may
 * echo what it received. */
bool uri_tells_password(const struct uri *, const char *text, size_t length);
