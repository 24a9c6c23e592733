/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h - TLS between a connection's buffers and its socket, with OpenSSL
 *
 * TLS 1.2 at least. The server's certificate and the name in it are always verified: the name is that of the address,
 * or the one that the caller expects. OpenSSL reads and writes through conn_receive and conn_send, so it raises no
 * SIGPIPE. It reads the certificate files itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "redis/link/conn.h"
#include "redis/link/uri.h"

#define TLS_TEXT_SIZE 400

struct tls; /* shared by all connections of a client: certificates and settings */

struct tls_config {
    const char *ca;   /* certificates of CAs, a file or a folder; NULL: the system's */
    const char *cert; /* our own certificate, with those between it and its CA; NULL: none */
    const char *key;  /* its key; NULL: in the same file */
    const char *name; /* the name that the server's certificate must have; NULL: the host of the address */
    void (*log)(int level, const char *text, void *arg); /* may be NULL */
    void *arg;
};

/* tls_new - read the certificates. Returns 0, or a quorlock_status with the text in error: UNSUPPORTED in a build
 * without OpenSSL. The system must live as long; the config's strings are copied. */
int tls_new(struct tls **ret, struct system *, const struct tls_config *, char *error, size_t error_size);
/* tls_free - free; the layers of all connections must be gone. NULL is fine. */
void tls_free(struct tls *);

/* tls_refresh - read files that have changed, for the next connections; existing ones keep the old certificates. If a
 * file is bad, or certificate and key do not belong together, the old ones stay in use. Either is logged, once for each
 * change. */
void tls_refresh(struct tls *);

/* tls_open - refresh, and return the layer for a connection that is about to be opened to that server. NULL: out of
 * memory. */
struct conn_layer *tls_open(struct tls *, struct conn *, const struct uri *);
