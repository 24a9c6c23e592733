/* SPDX-License-Identifier: BSD-3-Clause */
#include "mangle.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "draw.h"

#define FLIP_ONCE_IN 12u
#define CUT_ONCE_IN  150u
#define SPLIT_BYTES  40u

/* Two connections that are one. */
struct pair {
    LIST_ENTRY(pair) entry;
    struct mangle *mangle;
    struct bufferevent *client, *server;
    struct evbuffer *late; /* replies that were not handed on yet */
    struct event *timer;
};

struct mangle {
    struct event_base *base;
    struct evconnlistener *listener;
    struct draw draw;
    unsigned ways;
    uint16_t port, upstream;
    LIST_HEAD(, pair) pairs;
};

static void pair_free(struct pair *pair)
{
    LIST_REMOVE(pair, entry);
    if (pair->client != NULL) bufferevent_free(pair->client);
    if (pair->server != NULL) bufferevent_free(pair->server);
    if (pair->late != NULL) evbuffer_free(pair->late);
    if (pair->timer != NULL) event_free(pair->timer);
    free(pair);
}

static void wake_later(struct pair *pair)
{
    const struct timeval soon = {.tv_usec = 1 + (suseconds_t)draw_below(&pair->mangle->draw, 2000)};

    event_add(pair->timer, &soon);
}

static void hand_on(struct pair *pair)
{
    struct evbuffer *out = bufferevent_get_output(pair->client);
    struct mangle *mangle = pair->mangle;

    if ((mangle->ways & MANGLE_HOLD) == 0) {
        if ((mangle->ways & MANGLE_SPLIT) == 0) {
            evbuffer_add_buffer(out, pair->late);
        } else {
            evbuffer_remove_buffer(pair->late, out, 1 + draw_below(&mangle->draw, SPLIT_BYTES));
        }
    }
    if (evbuffer_get_length(pair->late) > 0) wake_later(pair);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    hand_on(arg);
}

static void flip(struct mangle *mangle, struct evbuffer *data)
{
    unsigned char *bytes = evbuffer_pullup(data, -1);
    size_t length = evbuffer_get_length(data);

    if (bytes == NULL || !draw_once_in(&mangle->draw, FLIP_ONCE_IN)) return;
    bytes[draw_number(&mangle->draw) % length] ^= (unsigned char)(1u << draw_below(&mangle->draw, 8));
}

/* True: the pair is gone. */
static bool cut(struct pair *pair, struct evbuffer *data)
{
    struct mangle *mangle = pair->mangle;
    size_t length = evbuffer_get_length(data);

    if ((mangle->ways & (MANGLE_CUT | MANGLE_LOSE)) == 0 || !draw_once_in(&mangle->draw, CUT_ONCE_IN)) {
        return false;
    }
    if ((mangle->ways & MANGLE_CUT) != 0 && evbuffer_get_length(pair->late) == 0) {
        size_t kept = draw_number(&mangle->draw) % length;

        /* What does not fit into the socket is lost, too. */
        (void)send(bufferevent_getfd(pair->client), evbuffer_pullup(data, -1), kept, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    pair_free(pair);
    return true;
}

static void on_reply(struct bufferevent *server, void *arg)
{
    struct pair *pair = arg;
    struct evbuffer *data = bufferevent_get_input(server);

    if (evbuffer_get_length(data) == 0 || cut(pair, data)) return;
    if ((pair->mangle->ways & MANGLE_FLIP) != 0) flip(pair->mangle, data);
    evbuffer_add_buffer(pair->late, data);
    if (event_pending(pair->timer, EV_TIMEOUT, NULL) == 0) hand_on(pair);
}

static void on_request(struct bufferevent *client, void *arg)
{
    const struct pair *pair = arg;

    evbuffer_add_buffer(bufferevent_get_output(pair->server), bufferevent_get_input(client));
}

static void on_ignored(struct bufferevent *server, void *arg)
{
    evbuffer_drain(bufferevent_get_input(server), SIZE_MAX);
}

static void on_drained(struct bufferevent *server, void *arg)
{
    pair_free(arg);
}

static void on_end(struct bufferevent *side, short what, void *arg)
{
    struct pair *pair = arg;

    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;
    if (side == pair->server || evbuffer_get_length(bufferevent_get_output(pair->server)) == 0) {
        pair_free(pair);
        return;
    }
    /* What was asked before the end is handed on: a connection of its own would have delivered it. */
    bufferevent_free(pair->client);
    pair->client = NULL;
    event_del(pair->timer);
    bufferevent_setcb(pair->server, on_ignored, on_drained, on_end, pair);
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int length, void *arg)
{
    struct mangle *mangle = arg;
    struct pair *pair = calloc(1, sizeof(*pair));
    struct sockaddr_in upstream = loopback(mangle->upstream);

    if (pair == NULL) abort();
    LIST_INSERT_HEAD(&mangle->pairs, pair, entry);
    pair->mangle = mangle;
    pair->late = evbuffer_new();
    pair->timer = event_new(mangle->base, -1, 0, on_timer, pair);
    pair->client = bufferevent_socket_new(mangle->base, fd, BEV_OPT_CLOSE_ON_FREE);
    pair->server = bufferevent_socket_new(mangle->base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (pair->late == NULL || pair->timer == NULL || pair->client == NULL || pair->server == NULL) abort();
    bufferevent_setcb(pair->client, on_request, NULL, on_end, pair);
    bufferevent_setcb(pair->server, on_reply, NULL, on_end, pair);
    bufferevent_enable(pair->client, EV_READ | EV_WRITE);
    bufferevent_enable(pair->server, EV_READ | EV_WRITE);
    /* A failure comes as an event, or here. */
    if (bufferevent_socket_connect(pair->server, (struct sockaddr *)&upstream, sizeof(upstream)) != 0) {
        pair_free(pair);
    }
}

struct mangle *mangle_new(struct event_base *base, uint16_t upstream, uint64_t seed)
{
    struct mangle *mangle = calloc(1, sizeof(*mangle));
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);

    if (mangle == NULL) return NULL;
    mangle->base = base;
    mangle->upstream = upstream;
    mangle->draw = draw_of(seed, upstream);
    LIST_INIT(&mangle->pairs);
    mangle->listener = evconnlistener_new_bind(base, on_accept, mangle, LEV_OPT_CLOSE_ON_FREE, -1,
                                               (struct sockaddr *)&address, sizeof(address));
    if (mangle->listener == NULL) {
        free(mangle);
        return NULL;
    }
    getsockname(evconnlistener_get_fd(mangle->listener), (struct sockaddr *)&address, &length);
    mangle->port = ntohs(address.sin_port);
    return mangle;
}

void mangle_cut(struct mangle *mangle)
{
    struct pair *next;

    for (struct pair *pair = LIST_FIRST(&mangle->pairs); pair != NULL; pair = next) {
        next = LIST_NEXT(pair, entry);
        pair_free(pair);
    }
}

bool mangle_is_idle(const struct mangle *mangle)
{
    return LIST_EMPTY(&mangle->pairs);
}

void mangle_free(struct mangle *mangle)
{
    if (mangle == NULL) return;
    mangle_cut(mangle);
    evconnlistener_free(mangle->listener);
    free(mangle);
}

uint16_t mangle_port(const struct mangle *mangle)
{
    return mangle->port;
}

void mangle_set(struct mangle *mangle, unsigned ways)
{
    mangle->ways = ways;
}
