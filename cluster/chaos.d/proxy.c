/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proxy.c - TCP proxies in front of Redis servers, to make their links slow, half-open or broken
 *
 * usage: chaos_proxy LISTEN=UPSTREAM...     (numeric addresses with port; the first is link 1)
 *
 * Orders come as lines on the standard input; its end ends the proxy:
 *   slow LINK MS MS    delay towards the server, and towards the client
 *   hold LINK 0|1 0|1  keep back everything towards the server, towards the client (also the end of it)
 *   cut LINK           close all connections of the link, with a reset
 * "ready" on the standard output says that all links listen; each order is answered by "ok" or "bad".
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/util.h>

#define LINKS_MAX        32
#define QUEUED_BYTES_MAX (1 << 20)

enum { TO_SERVER, TO_CLIENT };

/* Bytes from one side that were not passed on yet. No data: the sender closed. */
struct piece {
    STAILQ_ENTRY(piece) entry;
    struct evbuffer *data;
    uint64_t due_us;
};

struct pair;

/* One direction of a connection. */
struct flow {
    struct pair *pair;
    int towards;
    struct bufferevent *from, *to;
    struct event *timer;
    STAILQ_HEAD(, piece) pieces;
    size_t queued_bytes;
};

/* Two connections that the proxy joins. */
struct pair {
    LIST_ENTRY(pair) entry;
    struct link *link;
    struct flow flows[2];
};

struct link {
    struct evconnlistener *listener;
    struct sockaddr_storage upstream;
    int upstream_length;
    unsigned delay_ms[2];
    int hold[2];
    LIST_HEAD(, pair) pairs;
};

static struct event_base *base;
static struct link links[LINKS_MAX];
static size_t n_links;

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void flow_clear(struct flow *flow)
{
    struct piece *piece;

    while ((piece = STAILQ_FIRST(&flow->pieces)) != NULL) {
        STAILQ_REMOVE_HEAD(&flow->pieces, entry);
        if (piece->data != NULL) evbuffer_free(piece->data);
        free(piece);
    }
    if (flow->timer != NULL) event_free(flow->timer);
}

static void pair_free(struct pair *pair, int reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct bufferevent *sides[2] = {pair->flows[TO_SERVER].from, pair->flows[TO_SERVER].to};
    size_t i;

    for (i = 0; i < 2; i++) flow_clear(&pair->flows[i]);
    for (i = 0; i < 2; i++) {
        if (sides[i] == NULL) continue;
        if (reset != 0 && bufferevent_getfd(sides[i]) >= 0)
            (void)setsockopt(bufferevent_getfd(sides[i]), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        bufferevent_free(sides[i]);
    }
    LIST_REMOVE(pair, entry);
    free(pair);
}

/* Pass on what is due. Returns 0 if that ended the pair, which is freed then. */
static int flow_run(struct flow *flow)
{
    uint64_t now = now_us();
    struct piece *piece;
    struct timeval wait;

    while ((piece = STAILQ_FIRST(&flow->pieces)) != NULL && flow->pair->link->hold[flow->towards] == 0) {
        if (piece->due_us > now) {
            wait.tv_sec = (time_t)((piece->due_us - now) / 1000000u);
            wait.tv_usec = (suseconds_t)((piece->due_us - now) % 1000000u);
            (void)event_add(flow->timer, &wait);
            return 1;
        }
        if (piece->data == NULL) {
            pair_free(flow->pair, 0);
            return 0;
        }
        STAILQ_REMOVE_HEAD(&flow->pieces, entry);
        flow->queued_bytes -= evbuffer_get_length(piece->data);
        (void)bufferevent_write_buffer(flow->to, piece->data);
        evbuffer_free(piece->data);
        free(piece);
        (void)bufferevent_enable(flow->from, EV_READ);
    }
    return 1;
}

static void flow_due(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)flow_run(arg);
}

static void flow_queue(struct flow *flow, struct evbuffer *data)
{
    struct piece *piece = calloc(1, sizeof(*piece));

    if (piece == NULL) abort();
    piece->due_us = now_us() + flow->pair->link->delay_ms[flow->towards] * UINT64_C(1000);
    piece->data = data;
    if (data != NULL) flow->queued_bytes += evbuffer_get_length(data);
    STAILQ_INSERT_TAIL(&flow->pieces, piece, entry);
    if (flow->queued_bytes > QUEUED_BYTES_MAX) (void)bufferevent_disable(flow->from, EV_READ);
    (void)flow_run(flow);
}

static void flow_read(struct bufferevent *from, void *arg)
{
    struct evbuffer *data = evbuffer_new();

    if (data == NULL) abort();
    (void)evbuffer_add_buffer(data, bufferevent_get_input(from));
    flow_queue(arg, data);
}

static void flow_event(struct bufferevent *from, short what, void *arg)
{
    (void)from;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) flow_queue(arg, NULL);
}

static void flow_init(struct flow *flow, struct pair *pair, int towards, struct bufferevent *from,
                      struct bufferevent *to)
{
    flow->pair = pair;
    flow->towards = towards;
    flow->from = from;
    flow->to = to;
    STAILQ_INIT(&flow->pieces);
    flow->timer = event_new(base, -1, 0, flow_due, flow);
    if (flow->timer == NULL) abort();
    bufferevent_setcb(from, flow_read, NULL, flow_event, flow);
    (void)bufferevent_enable(from, EV_READ | EV_WRITE);
}

static void link_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer, int length,
                        void *arg)
{
    struct link *link = arg;
    struct pair *pair = calloc(1, sizeof(*pair));
    struct bufferevent *client = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
    struct bufferevent *server = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

    (void)listener;
    (void)peer;
    (void)length;
    if (pair == NULL || client == NULL || server == NULL) abort();
    pair->link = link;
    LIST_INSERT_HEAD(&link->pairs, pair, entry);
    flow_init(&pair->flows[TO_SERVER], pair, TO_SERVER, client, server);
    flow_init(&pair->flows[TO_CLIENT], pair, TO_CLIENT, server, client);
    /* A failure is reported as an event, which queues the end. */
    (void)bufferevent_socket_connect(server, (struct sockaddr *)&link->upstream, link->upstream_length);
}

static void link_run(struct link *link)
{
    struct pair *pair = LIST_FIRST(&link->pairs), *next;

    for (; pair != NULL; pair = next) {
        next = LIST_NEXT(pair, entry);
        if (flow_run(&pair->flows[TO_SERVER]) != 0) (void)flow_run(&pair->flows[TO_CLIENT]);
    }
}

static int link_open(struct link *link, char *argument)
{
    struct sockaddr_storage address;
    int length = (int)sizeof(address);
    char *upstream = strchr(argument, '=');

    if (upstream == NULL) return -1;
    *upstream++ = 0;
    link->upstream_length = (int)sizeof(link->upstream);
    if (evutil_parse_sockaddr_port(argument, (struct sockaddr *)&address, &length) != 0) return -1;
    if (evutil_parse_sockaddr_port(upstream, (struct sockaddr *)&link->upstream, &link->upstream_length) != 0)
        return -1;
    LIST_INIT(&link->pairs);
    link->listener = evconnlistener_new_bind(base, link_accept, link, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 128,
                                             (struct sockaddr *)&address, length);
    return link->listener == NULL ? -1 : 0;
}

/* Read the numbers behind the verb of an order. Returns how many there are, or -1 if one is malformed. */
static int order_numbers(const char *order, unsigned long numbers[3])
{
    const char *at = strchr(order, ' ');
    char *end;
    int n = 0;

    while (at != NULL && *at != 0) {
        if (n == 3) return -1;
        numbers[n] = strtoul(at, &end, 10);
        if (end == at || (*end != 0 && *end != ' ') || numbers[n] > 3600000ul) return -1;
        n++;
        at = end;
    }
    return n;
}

static int order_obey(const char *order)
{
    unsigned long numbers[3] = {0, 0, 0};
    int n = order_numbers(order, numbers);
    struct link *link;

    if (n < 1 || numbers[0] < 1 || numbers[0] > n_links) return -1;
    link = &links[numbers[0] - 1];
    if (n == 3 && strncmp(order, "slow ", 5) == 0) {
        link->delay_ms[TO_SERVER] = (unsigned)numbers[1];
        link->delay_ms[TO_CLIENT] = (unsigned)numbers[2];
    } else if (n == 3 && strncmp(order, "hold ", 5) == 0) {
        link->hold[TO_SERVER] = numbers[1] != 0;
        link->hold[TO_CLIENT] = numbers[2] != 0;
        link_run(link);
    } else if (n == 1 && strncmp(order, "cut ", 4) == 0) {
        while (!LIST_EMPTY(&link->pairs)) pair_free(LIST_FIRST(&link->pairs), 1);
    } else {
        return -1;
    }
    return 0;
}

static void order_read(evutil_socket_t fd, short what, void *arg)
{
    static char line[256];
    static size_t length;
    char byte;
    ssize_t got;

    (void)what;
    (void)arg;
    for (;;) {
        got = read((int)fd, &byte, 1);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            (void)event_base_loopbreak(base);
            return;
        }
        if (byte != '\n') {
            if (length + 1 < sizeof(line)) line[length++] = byte;
            continue;
        }
        line[length] = 0;
        length = 0;
        (void)puts(order_obey(line) == 0 ? "ok" : "bad");
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct event *orders;
    int i;

    (void)signal(SIGPIPE, SIG_IGN);
    base = event_base_new();
    if (base == NULL) return 1;
    if (argc < 2 || argc - 1 > LINKS_MAX) {
        (void)fprintf(stderr, "usage: chaos_proxy LISTEN=UPSTREAM... (1 to %d)\n", LINKS_MAX);
        return 64;
    }
    for (i = 1; i < argc; i++) {
        if (link_open(&links[n_links++], argv[i]) == 0) continue;
        (void)fprintf(stderr, "chaos_proxy: cannot listen for '%s': %s\n", argv[i], strerror(errno));
        return 1;
    }
    (void)evutil_make_socket_nonblocking(STDIN_FILENO);
    orders = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, order_read, NULL);
    if (orders == NULL || event_add(orders, NULL) != 0) return 1;
    (void)puts("ready");
    (void)fflush(stdout);
    (void)event_base_dispatch(base);
    event_free(orders);
    while (n_links > 0) {
        struct link *link = &links[--n_links];

        while (!LIST_EMPTY(&link->pairs)) pair_free(LIST_FIRST(&link->pairs), 0);
        evconnlistener_free(link->listener);
    }
    event_base_free(base);
    return 0;
}
