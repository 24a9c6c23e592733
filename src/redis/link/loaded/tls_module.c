/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_module.c - what the module exports */
#include "redis/link/loaded/tls_module.h"

#include "quorlock/quorlock.h"

extern const struct tls_module quorlock_tls_module;

__attribute__((visibility("default"))) const struct tls_module quorlock_tls_module = {
    .version = QUORLOCK_VERSION, .create = tls_new, .free = tls_free, .open = tls_open};
