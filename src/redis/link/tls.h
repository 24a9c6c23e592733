/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h - TLS between a connection's buffers and its socket, by OpenSSL
 *
 * TLS 1.2 at least. The server's certificate and the name in it are always verified: that of the address, or the one
 * that the caller expects. OpenSSL moves its bytes by the connection's own send and receive, so it raises no SIGPIPE,
 * and reads its certificates itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "redis/link/conn.h"
#include "redis/link/uri.h"

#define TLS_TEXT_SIZE 400

struct tls; /* what all connections of a client share: certificates, and what is verified */

struct tls_config {
    const char *ca;   /* certificates of CAs, a file or a folder; NULL: the system's */
    const char *cert; /* our own, with those between it and its CA; NULL: none */
    const char *key;  /* of our own; NULL: it is in the same file */
    const char *name; /* of the server's certificate; NULL: the host of the address */
    void (*log)(void *arg, int level, const char *text); /* or NULL */
    void *arg;
};

/* tls_new - reads the certificates. 0, or a quorlock_status with the text in error: UNSUPPORTED in a build without
 * OpenSSL. The system lives as long; the config's strings are copied. */
int tls_new(struct tls **ret, struct system *, const struct tls_config *, char *error, size_t error_size);
/* tls_free - the connections' layers are gone before. NULL is fine. */
void tls_free(struct tls *);

/* tls_refresh - reads files that have changed since, for the next connections; the present ones keep theirs. Where one
 * is bad, or certificate and key do not belong together, all of the former stay in use. It logs either, once for each
 * change. */
void tls_refresh(struct tls *);

/* tls_open - refreshes; the layer for a connection that is about to be opened to that server. NULL: out of memory. */
struct conn_layer *tls_open(struct tls *, struct conn *, const struct uri *);
