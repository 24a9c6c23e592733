/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dial.h - resolve an address as written, and connect to the addresses of a name one after the other
 *
 * The owner keeps the connection and the deadlines: it asks for the next address when one has failed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "redis/link/config.h"
#include "redis/link/conn.h"
#include "redis/link/tls.h"
#include "redis/link/uri.h"

#define DIAL_TEXT_SIZE 480

struct dial {
    struct conn *conn;
    const struct uri *uri;
    struct tls *tls;          /* for a URI with TLS */
    uint32_t user_timeout_ms; /* see conn_open */
    void (*resolved)(void *arg);
    void *arg;
    struct lookup *lookup;
    struct addresses addresses;
    size_t at;
    char why[DIAL_TEXT_SIZE]; /* the latest failure; but a failure of a server that was reached is not replaced by an
                                 unreachable address */
    enum fault fault;
};

enum dial_result {
    DIAL_RESOLVING,  /* resolved() is called from the loop, however late; then call dial_next */
    DIAL_CONNECTING, /* CONN_CONNECTED follows from the loop */
    DIAL_FAILED,     /* no address is left; see why */
};

/* dial_init - initialize. conn, and the config's uri and tls, belong to the owner and must live as long. */
void dial_init(struct dial *, struct conn *, const struct link_config *, void (*resolved)(void *arg), void *arg);
/* dial_begin - start with the first address. A name is looked up again, unless a lookup is still in progress. The
 * connection must be closed. */
enum dial_result dial_begin(struct dial *);
/* dial_next - begin to connect to the next address for which that is possible. The connection must be closed. Never
 * returns RESOLVING. */
enum dial_result dial_next(struct dial *);
/* dial_left - return how many addresses follow the one that was tried last. */
size_t dial_left(const struct dial *);
/* dial_blame - note why the present address failed, in `why`; the text names the address if the uri has a name. A
 * failure of a server that was reached is kept when another address is unreachable. */
void dial_blame(struct dial *, enum fault, const char *problem);
/* dial_cancel - cancel the lookup, if there is one: resolved() is not called any more. */
void dial_cancel(struct dial *);
/* dial_address - return the address that was tried last, or NULL. */
const struct sockaddr_storage *dial_address(const struct dial *);
