/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_shim.c - preloaded into a chaos client, gives it an address of its own
 *
 * The supervisor separates single clients from single nodes with a packet filter, so it must tell clients apart.
 * connect() therefore first binds the socket to the IPv4 address QUORLOCK_CHAOS_SOURCE, also if a runtime opens IPv6
 * sockets for IPv4. Some runtimes bind each socket to any address before they connect it, and a second bind() would
 * fail: bind() therefore takes any address of a TCP socket for ours. Without the variable nothing changes.
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

/* Bind the socket to our address, in the form of its family. */
static int bind_source(int fd, sa_family_t family, in_port_t port)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = port, .sin_addr = source_address};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = port};

    if (family == AF_INET) return (int)syscall(SYS_bind, fd, &own, sizeof(own));
    mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&mapped.sin6_addr.s6_addr[12], &source_address, sizeof(source_address));
    return (int)syscall(SYS_bind, fd, &mapped, sizeof(mapped));
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

static bool is_any(const struct sockaddr *address, socklen_t length)
{
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;

    if (length < sizeof(*four)) return false;
    if (address->sa_family == AF_INET) return four->sin_addr.s_addr == INADDR_ANY;
    return address->sa_family == AF_INET6 && length >= sizeof(*six) && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

static bool is_unbound(int fd)
{
    struct sockaddr_in6 own = {0};
    socklen_t length = sizeof(own);

    return getsockname(fd, (struct sockaddr *)&own, &length) == 0 && is_any((struct sockaddr *)&own, length) &&
           own.sin6_port == 0; /* at the same place in both families */
}

static bool is_ipv4(const struct sockaddr *address)
{
    const struct sockaddr_in6 *six = (const void *)address;

    return address->sa_family == AF_INET || (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr));
}

int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    const struct sockaddr_in *any = (const void *)address.__sockaddr__; /* or IPv6, with the port at the same place */

    /* It fails for a socket that is for IPv6 only. */
    if (source_address.s_addr != INADDR_ANY && is_any(address.__sockaddr__, length) && is_stream(fd) &&
        bind_source(fd, any->sin_family, any->sin_port) == 0)
        return 0;
    return (int)syscall(SYS_bind, fd, address.__sockaddr__, length);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    int one = 1;

    if (source_address.s_addr != INADDR_ANY && is_ipv4(address.__sockaddr__) && is_unbound(fd)) {
        /* Without this option each local port could be used for one node only. */
        (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
        if (bind_source(fd, address.__sockaddr__->sa_family, 0) != 0) return -1;
    }
    return (int)syscall(SYS_connect, fd, address.__sockaddr__, length);
}
