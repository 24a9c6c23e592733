/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/system.h"

void dial_init(struct dial *dial, struct conn *conn, const struct link_config *config, void (*resolved)(void *arg),
               void *arg)
{
    *dial = (struct dial){.conn = conn,
                          .uri = config->uri,
                          .tls = config->uri->tls ? config->tls : NULL,
                          .user_timeout_ms = config->user_timeout_ms,
                          .resolved = resolved,
                          .arg = arg};
}

const struct sockaddr_storage *dial_address(const struct dial *dial)
{
    return dial->at > 0 ? &dial->addresses.at[dial->at - 1].storage : NULL;
}

size_t dial_left(const struct dial *dial)
{
    return dial->addresses.n - dial->at;
}

void dial_blame(struct dial *dial, enum fault fault, const char *problem)
{
    char address[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_storage *storage = dial_address(dial);

    /* The failure of a server that was reached tells more than an unreachable address. */
    if (storage != NULL && fault == FAULT_UNREACHABLE && dial->fault != FAULT_UNREACHABLE) return;
    if (dial->uri->kind == URI_NAME && storage != NULL) {
        const void *bytes = storage->ss_family == AF_INET6
                                ? (const void *)&((const struct sockaddr_in6 *)storage)->sin6_addr
                                : (const void *)&((const struct sockaddr_in *)storage)->sin_addr;

        if (inet_ntop(storage->ss_family, bytes, address, sizeof(address)) == NULL) address[0] = '\0';
    }
    dial->fault = fault;
    snprintf(dial->why, sizeof(dial->why), "connect%s%s: %s", *address != '\0' ? " to " : "", address, problem);
}

/* Returns 0, or an errno. */
static int open_address(struct dial *dial, const struct address *address)
{
    struct conn_layer *layer = NULL;

    if (dial->tls != NULL) {
        layer = tls_open(dial->tls, dial->conn, dial->uri);
        if (layer == NULL) return ENOMEM;
    }
    return conn_open(dial->conn, address, dial->user_timeout_ms, layer);
}

enum dial_result dial_next(struct dial *dial)
{
    while (dial->at < dial->addresses.n) {
        int error = open_address(dial, &dial->addresses.at[dial->at++]);

        if (error == 0) return DIAL_CONNECTING;
        dial_blame(dial, FAULT_UNREACHABLE, strerror(error));
    }
    return DIAL_FAILED;
}

static void blame_name(struct dial *dial, enum fault fault, const char *problem)
{
    dial->fault = fault;
    snprintf(dial->why, sizeof(dial->why), "cannot resolve %s: %s", dial->uri->host, problem);
}

static void dial_on_resolved(void *arg, const struct addresses *answer)
{
    struct dial *dial = arg;

    dial->lookup = NULL;
    dial->addresses = *answer;
    /* For an address with a zone, the lookup is that of the interface. */
    if (answer->n == 0)
        blame_name(dial, FAULT_UNREACHABLE,
                   strchr(dial->uri->host, '%') != NULL ? "this machine has no such interface" : answer->why);
    dial->resolved(dial->arg);
}

/* Write the address of a unix path or a numeric host. False: it is not an address, which uri_parse() prevents. */
static bool fill_address(struct dial *dial)
{
    const struct uri *uri = dial->uri;
    struct address *address = &dial->addresses.at[0];
    struct sockaddr_un *local = (struct sockaddr_un *)&address->storage;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address->storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address->storage;
    size_t room = sizeof(local->sun_path);

    memset(address, 0, sizeof(*address));
    if (uri->kind == URI_UNIX) {
        local->sun_family = AF_UNIX;
        address->length = sizeof(*local);
        return (size_t)snprintf(local->sun_path, room, "%s", uri->host) < room;
    }
    if (inet_pton(AF_INET, uri->host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(uri->port);
        address->length = sizeof(*v4);
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(uri->port);
    address->length = sizeof(*v6);
    return inet_pton(AF_INET6, uri->host, &v6->sin6_addr) == 1;
}

enum dial_result dial_begin(struct dial *dial)
{
    const struct uri *uri = dial->uri;
    struct system *system = dial->conn->system;

    if (dial->lookup != NULL) return DIAL_RESOLVING;
    dial->at = 0;
    dial->addresses.n = 0;
    dial_blame(dial, FAULT_UNREACHABLE, "no address");
    if (uri->kind == URI_NAME) {
        dial->lookup = system->ops->lookup(system, uri->host, uri->port, dial_on_resolved, dial);
        if (dial->lookup != NULL) return DIAL_RESOLVING;
        blame_name(dial, FAULT_LIMIT, strerror(errno));
        return DIAL_FAILED;
    }
    if (fill_address(dial)) dial->addresses.n = 1;
    return dial_next(dial);
}

void dial_cancel(struct dial *dial)
{
    if (dial->lookup != NULL) dial->conn->system->ops->lookup_cancel(dial->lookup);
    dial->lookup = NULL;
}
