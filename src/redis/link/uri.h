/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.h - node addresses
 *
 * redis://[user[:password]@]host[:port][/db], rediss:// likewise, which is TLS; valkey:// and valkeys:// are the same;
 * unix://[user[:password]@]/path[?db=N], bare host[:port]; IPv6 in brackets, with a zone where it is link-local, as
 * [fe80::1%eth0] or [fe80::1%25eth0]. User, password and path may be percent-encoded. "redis://:secret@host" is a
 * password without user; "redis://secret@host" is the user "secret", as in other clients.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* URI_NAME: the system has to look it up, which is so with an address that has a zone, too. */
enum uri_kind { URI_NUMERIC, URI_NAME, URI_UNIX };

struct uri {
    enum uri_kind kind;
    bool tls;
    char *host; /* address or name without brackets, a zone behind %; the path of a unix socket */
    uint16_t port;
    uint32_t db;
    bool has_login; /* the address as written has a user or a password, which stay */
    char *user;     /* NULL where there is none */
    char *password; /* NULL where there is none; wiped by uri_clear and uri_log_in */
    char *name;     /* to show and to compare: without credentials, canonical (host in lower case, numeric addresses
                       in one form, default port and db always written the same way, schemes of redis) */
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
/* uri_log_in - to an address without a login of its own gives copies of user and password, NULL or "" for none, instead
 * of those that it was given before, which are wiped. NOMEM: nothing changed. uri_logs_in_with: whether it has them. */
bool uri_logs_in_with(const struct uri *, const char *user, const char *password);
int uri_log_in(struct uri *, const struct alloc *, const char *user, const char *password);
/* uri_same - both name the same server: host and port, or path. The databases of one server share its memory,
 * so they do not count. */
bool uri_same(const struct uri *, const struct uri *);
/* uri_tells_password - the text contains the password, or ends in what may be its beginning: an odd server may
 * echo what it received. */
bool uri_tells_password(const struct uri *, const char *text, size_t length);
