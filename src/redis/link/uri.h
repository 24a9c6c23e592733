/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uri.h - node addresses
 *
 * redis://[user[:password]@]host[:port][/db]; rediss:// is the same with TLS; valkey:// and valkeys:// are other names
 * of these; unix://[user[:password]@]/path[?db=N]; or bare host[:port]. IPv6 addresses are in brackets, link-local ones
 * with a zone, as [fe80::1%eth0] or [fe80::1%25eth0]. User, password and path may be percent-encoded.
 * "redis://:secret@host" has a password and no user; "redis://secret@host" has the user "secret", as in other clients.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* URI_NAME: the system must look it up, which includes addresses with a zone. */
enum uri_kind { URI_NUMERIC, URI_NAME, URI_UNIX };

struct uri {
    enum uri_kind kind;
    bool tls;
    char *host; /* address or name without brackets, a zone behind %; or the path of a unix socket */
    uint16_t port;
    uint32_t db;
    bool has_login; /* the address as written has a user or a password, which stay */
    char *user;     /* NULL: none */
    char *password; /* NULL: none; wiped by uri_clear and uri_log_in */
    char *name;     /* for showing and comparing: without credentials, in canonical form (lower-case host, one form of
                       numeric addresses, port and db always written the same way, schemes of redis) */
};

/*
 * uri_parse - parse one address
 *
 * Returns 0, or a quorlock_status with the text in error: 'address "redis://host": ', which part is wrong, and what
 * would be right. Only scheme and host are quoted, because it is not known where a wrong address has its password. *ret
 * is unchanged on failure.
 */
int uri_parse(struct uri *ret, const struct alloc *, const char *text, char *error, size_t error_size);
void uri_clear(struct uri *, const struct alloc *);
/* uri_logs_in_with - return whether the address has this user and password.
 * uri_log_in - give copies of user and password (NULL or "" for none) to an address that was written without a login.
 * Those that it was given before are wiped. NOMEM: nothing changed. */
bool uri_logs_in_with(const struct uri *, const char *user, const char *password);
int uri_log_in(struct uri *, const struct alloc *, const char *user, const char *password);
/* uri_same - return whether both name the same server: host and port, or path. The databases of one server share its
 * memory, so they do not count. */
bool uri_same(const struct uri *, const struct uri *);
/* uri_reveals_password - return whether the text contains the password, or ends in what may be its beginning: a server
 * that is not Redis may echo what it received. */
bool uri_reveals_password(const struct uri *, const char *text, size_t length);
