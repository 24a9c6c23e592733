/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - where a socket connects to */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

/* What a host name stands for. */
struct addresses {
    size_t n; /* 0: failed, see why */
    struct address at[ADDRESSES_MAX];
    const char *why;
};
