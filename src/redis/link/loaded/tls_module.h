/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls_module.h - TLS as a module that a program loads when a node asks for it
 *
 * To load and relocate OpenSSL takes a quarter of the CPU of "quorlock run KEY -- true", and 450 KiB of each process
 * that waits. The command leaves it out, and has tls_load.c in the place of tls.c; the library is linked with OpenSSL.
 */
#pragma once

#include "redis/link/tls.h"

#define TLS_MODULE_SYMBOL "quorlock_tls_module"

struct tls_module {
    char version[16]; /* both sides must be of one version, for they share structs */
    int (*create)(struct tls **ret, struct system *, const struct tls_config *, char *error, size_t error_size);
    void (*free)(struct tls *);
    struct conn_layer *(*open)(struct tls *, struct conn *, const struct uri *);
};
