/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/link/resolve.h"

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What evdns holds of us. When its base is freed with a question open, evdns still calls back later from the
 * loop, when the resolve, the node and the caller's memory hooks may all be gone. So this cell is malloc's, and
 * is freed by that last call.
 */
struct resolve_link {
    struct resolve *owner; /* NULL: canceled */
};

struct resolve {
    const struct alloc *alloc;
    struct evdns_base *dns;
    struct event *deferred;
    struct resolve_link *link; /* NULL when evdns has answered */
    void (*done)(void *arg, const struct resolve_answer *);
    void *arg;
    struct resolve_answer answer;
};

static void resolve_free(struct resolve *resolve)
{
    if (resolve->link != NULL) resolve->link->owner = NULL;
    /* Failing open questions is what makes evdns forget the base that it is about to free; a canceled question
     * would look at it once more. */
    if (resolve->dns != NULL) evdns_base_free(resolve->dns, 1);
    if (resolve->deferred != NULL) event_free(resolve->deferred);
    alloc_free(resolve->alloc, resolve);
}

static void take(struct resolve_answer *answer, const struct evutil_addrinfo *list)
{
    for (; list != NULL && answer->n_addresses < RESOLVE_ADDRESSES_MAX; list = list->ai_next) {
        struct resolve_address *address = &answer->addresses[answer->n_addresses];
        if (list->ai_addrlen > sizeof(address->storage)) continue;
        memcpy(&address->storage, list->ai_addr, list->ai_addrlen);
        address->length = (socklen_t)list->ai_addrlen;
        answer->n_addresses++;
    }
}

static const char *problem(int result)
{
    if (result == 0 || result == EVUTIL_EAI_NONAME || result == EVUTIL_EAI_NODATA)
        return "there is no such host, or it has no address";
    return evutil_gai_strerror(result);
}

/* From evdns: at once for names of the hosts file, so the answer is only kept here and told by the loop. */
static void on_answer(int result, struct evutil_addrinfo *list, void *arg)
{
    struct resolve_link *link = arg;
    struct resolve *resolve = link->owner;
    if (resolve != NULL) {
        resolve->link = NULL;
        if (result == 0) take(&resolve->answer, list);
        if (!resolve->answer.n_addresses) resolve->answer.why = problem(result);
        event_active(resolve->deferred, EV_TIMEOUT, 0);
    }
    if (list != NULL) evutil_freeaddrinfo(list);
    free(link);
}

static void on_deferred(evutil_socket_t fd, short what, void *arg)
{
    struct resolve *resolve = arg;
    void (*done)(void *, const struct resolve_answer *) = resolve->done;
    void *done_arg = resolve->arg;
    struct resolve_answer answer = resolve->answer;
    (void)fd;
    (void)what;
    resolve_free(resolve);
    done(done_arg, &answer);
}

/* An empty resolv.conf makes evdns refuse to begin; the hosts file is worth asking all the same. */
static struct evdns_base *resolve_base(struct event_base *base)
{
    struct evdns_base *dns = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
    if (dns == NULL) {
        dns = evdns_base_new(base, 0);
        if (dns == NULL) return NULL;
        (void)evdns_base_resolv_conf_parse(dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
        (void)evdns_base_load_hosts(dns, "/etc/hosts");
    }
    /* How long the second family's answer is waited for when the first is there. */
    (void)evdns_base_set_option(dns, "getaddrinfo-allow-skew:", "0.1");
    return dns;
}

struct resolve *resolve_start(struct event_base *base, const struct alloc *alloc, const char *name,
                              uint16_t port, void (*done)(void *, const struct resolve_answer *), void *arg)
{
    struct evutil_addrinfo hints;
    memset(&hints, 0, sizeof(hints));
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_protocol = IPPROTO_TCP;
    char service[8];
    snprintf(service, sizeof(service), "%u", (unsigned)port);

    struct resolve *resolve = alloc_zero(alloc, sizeof(*resolve));
    if (resolve == NULL) return NULL;
    resolve->alloc = alloc;
    resolve->done = done;
    resolve->arg = arg;
    struct resolve_link *link = NULL;
    resolve->deferred = event_new(base, -1, 0, on_deferred, resolve);
    if (resolve->deferred == NULL) goto failed;
    resolve->dns = resolve_base(base);
    if (resolve->dns == NULL) goto failed;
    link = malloc(sizeof(*link));
    if (link == NULL) goto failed;
    link->owner = resolve;
    resolve->link = link;
    /* The link belongs to evdns from here on: it may be gone when this returns. */
    (void)evdns_getaddrinfo(resolve->dns, name, service, &hints, on_answer, link);
    return resolve;
failed:
    resolve_free(resolve);
    return NULL;
}

void resolve_cancel(struct resolve *resolve)
{
    if (resolve != NULL) resolve_free(resolve);
}
