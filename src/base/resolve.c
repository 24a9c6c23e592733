/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/resolve.h"

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/own_base.h"

/* How often an event_base of our own is looked at. */
#define LOOK_US 5000

/*
 * What evdns holds of us. When its base is freed with a question open, evdns still calls back later from the
 * loop, when the lookup, the node and the caller's memory hooks may all be gone. So this cell is malloc's, and
 * is freed by that last call.
 */
struct question {
    struct lookup *owner; /* NULL: canceled */
};

struct lookup {
    const struct alloc *alloc;
    const struct quorlock_loop *loop;
    struct evdns_base *dns;
    struct event_base *own_base;
    void *look;                /* the timer that turns it */
    void *tell;                /* the task that comes behind the answer */
    struct question *question; /* NULL when evdns has answered */
    void (*done)(void *arg, const struct addresses *);
    void *arg;
    struct addresses answer;
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->question != NULL) lookup->question->owner = NULL;
    /* Failing open questions is what makes evdns forget the base that it is about to free; a canceled question
     * would look at it once more. */
    if (lookup->dns != NULL) evdns_base_free(lookup->dns, 1);
    if (lookup->own_base != NULL) {
        event_base_loop(lookup->own_base, EVLOOP_NONBLOCK);
        event_base_free(lookup->own_base);
    }
    if (lookup->look != NULL) lookup->loop->timer_free(lookup->look);
    if (lookup->tell != NULL) lookup->loop->task_free(lookup->tell);
    alloc_free(lookup->alloc, lookup);
}

static void take(struct addresses *answer, const struct evutil_addrinfo *list)
{
    for (; list != NULL && answer->n < ADDRESSES_MAX; list = list->ai_next) {
        struct address *address = &answer->at[answer->n];

        if (list->ai_addrlen > sizeof(address->storage)) continue;
        memcpy(&address->storage, list->ai_addr, list->ai_addrlen);
        address->length = (socklen_t)list->ai_addrlen;
        answer->n++;
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
    struct question *question = arg;
    struct lookup *lookup = question->owner;

    if (lookup != NULL) {
        lookup->question = NULL;
        if (result == 0) take(&lookup->answer, list);
        if (lookup->answer.n == 0) lookup->answer.why = problem(result);
        lookup->loop->task_run(lookup->tell);
    }
    if (list != NULL) evutil_freeaddrinfo(list);
    free(question);
}

static void on_tell(void *arg)
{
    struct lookup *lookup = arg;
    void (*done)(void *, const struct addresses *) = lookup->done;
    void *done_arg = lookup->arg;
    struct addresses answer = lookup->answer;

    lookup_free(lookup);
    done(done_arg, &answer);
}

static void on_look(void *arg)
{
    struct lookup *lookup = arg;

    event_base_loop(lookup->own_base, EVLOOP_NONBLOCK);
    if (lookup->question == NULL || lookup->loop->timer_set(lookup->look, LOOK_US) == 0) return;
    lookup->answer.why = "no memory for a timer";
    lookup->loop->task_run(lookup->tell);
}

/* evdns knows no other loop than libevent's. On any other one it has a base of its own. */
static struct event_base *base_of(struct lookup *lookup, const struct system *system)
{
    if (system->arg != NULL) return system->arg;
    lookup->own_base = own_base_new();
    lookup->look = lookup->loop->timer_new(lookup->loop->arg, on_look, lookup);
    if (lookup->own_base == NULL || lookup->look == NULL) return NULL;
    return lookup->loop->timer_set(lookup->look, 0) == 0 ? lookup->own_base : NULL;
}

/* An empty resolv.conf makes evdns refuse to begin; the hosts file is worth asking all the same. */
static struct evdns_base *open_dns(struct event_base *base)
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

struct lookup *resolve_start(struct system *system, const char *name, uint16_t port,
                             void (*done)(void *, const struct addresses *), void *arg)
{
    const struct evutil_addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};
    struct lookup *lookup = alloc_zero(system->alloc, sizeof(*lookup));
    struct event_base *base;
    char service[8];

    if (lookup == NULL) return NULL;
    snprintf(service, sizeof(service), "%u", (unsigned)port);
    *lookup = (struct lookup){.alloc = system->alloc, .loop = &system->loop, .done = done, .arg = arg};
    lookup->tell = lookup->loop->task_new(lookup->loop->arg, on_tell, lookup);
    base = base_of(lookup, system);
    if (lookup->tell == NULL || base == NULL) goto failed;
    lookup->dns = open_dns(base);
    if (lookup->dns == NULL) goto failed;
    lookup->question = malloc(sizeof(*lookup->question));
    if (lookup->question == NULL) goto failed;
    lookup->question->owner = lookup;
    /* The question belongs to evdns from here on: it may be gone when this returns. */
    (void)evdns_getaddrinfo(lookup->dns, name, service, &hints, on_answer, lookup->question);
    return lookup;
failed:
    lookup_free(lookup);
    return NULL;
}

void resolve_cancel(struct lookup *lookup)
{
    lookup_free(lookup);
}
