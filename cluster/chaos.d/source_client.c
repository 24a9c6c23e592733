/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_client.c - a client with an address of its own
 *
 * The supervisor cuts single clients off single nodes by a packet filter, and needs to tell clients apart. So
 * this program's connect() binds first. The library is linked statically and comes through here.
 */
#include "source_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct in_addr source_address;

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = source_address};
    int one = 1;

    if (source_address.s_addr != INADDR_ANY && address.__sockaddr__->sa_family == AF_INET) {
        /* Else each of our ports would be taken for all nodes at once. */
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
        if (bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0) return -1;
    }
    return (int)syscall(SYS_connect, fd, address.__sockaddr__, length);
}
