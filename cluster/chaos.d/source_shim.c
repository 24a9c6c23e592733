/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_shim.c - preloaded into a chaos client, gives it an address of its own
 *
 * The supervisor separates single clients from single nodes with a packet filter, so it must tell clients apart.
 * connect() therefore first binds the socket to the IPv4 address QUORLOCK_CHAOS_SOURCE, also if a runtime opens IPv6
 * sockets for IPv4. Without the variable nothing changes.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct in_addr source_address;

__attribute__((constructor)) static void source_read(void)
{
    const char *text = getenv("QUORLOCK_CHAOS_SOURCE");

    if (text != NULL) (void)inet_pton(AF_INET, text, &source_address);
}

static int bind_source(int fd, const struct sockaddr *address)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = source_address};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    const struct sockaddr_in6 *target = (const void *)address;

    if (address->sa_family == AF_INET) return bind(fd, (struct sockaddr *)&own, sizeof(own));
    if (address->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&target->sin6_addr)) return 0;
    mapped.sin6_addr = target->sin6_addr;
    memcpy(&mapped.sin6_addr.s6_addr[12], &source_address, sizeof(source_address));
    return bind(fd, (struct sockaddr *)&mapped, sizeof(mapped));
}

/* Some programs bind their sockets themselves. */
static bool is_bound(int fd)
{
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof(own);

    if (getsockname(fd, (struct sockaddr *)&own, &length) != 0) return true;
    if (own.ss_family == AF_INET) return ((struct sockaddr_in *)&own)->sin_addr.s_addr != INADDR_ANY;
    return own.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&own)->sin6_addr) == 0;
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    int one = 1;

    if (source_address.s_addr != INADDR_ANY && !is_bound(fd)) {
        /* Without this option each local port could be used for one node only. */
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
        if (bind_source(fd, address.__sockaddr__) != 0) return -1;
    }
    return (int)syscall(SYS_connect, fd, address.__sockaddr__, length);
}
