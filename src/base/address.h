/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - socket addresses */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

/* The addresses of a host name. */
struct addresses {
    size_t n; /* 0: the lookup failed, for the reason in `why` */
    struct address at[ADDRESSES_MAX];
    const char *why;
};
