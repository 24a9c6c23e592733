/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUORLOCK_CHAOS_SOURCE_CLIENT_H
#define QUORLOCK_CHAOS_SOURCE_CLIENT_H

#include <netinet/in.h>

/* Where every connection of this process comes from; INADDR_ANY: as the kernel likes. */
extern struct in_addr source_address;

#endif
