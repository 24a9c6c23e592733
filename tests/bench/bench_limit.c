/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_limit.c - what no client can be faster than: the bytes of a client, made beforehand, and replies of which only
 * the bytes are counted
 *
 * usage: bench_limit IN_FLIGHT SECONDS NODE,NODE,...     (host:port)
 *
 * Half of the locks are taken while the other half is given back, on each node for itself and again at once when all
 * replies are there. There is no quorum, no token is ever new, and nothing is read: what remains is the kernel's work
 * and the servers'. Two kinds alternate: "sent" is what quorlock sends, byte for byte; "bare" gives locks back by the
 * least that a server can do for it, one look at all keys and one deletion of all, which tells nobody that waits.
 * Prints as JSON for each kind: locks, seconds, client_cpu_us_per_lock, and server_cpu_us_per_lock of all nodes.
 */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/slice.h"
#include "program.h"
#include "redis/batch.h"
#include "redis/dialect/dialect.h"

#define NODES_MAX     31
#define IN_FLIGHT_MAX 4096u
#define LEASE_MS      30000
#define SLICES        6
#define OUT_MAX       ((size_t)16 << 20)
#define NS_PER_S      1000000000u

enum kind { SENT, BARE, KINDS };

static const char *const names[KINDS] = {"sent", "bare"};
/* Its reply is as long as that of quorlock's script. */
static const char bare_script[] = "local n, holders, ours = #KEYS, redis.call('MGET', unpack(KEYS)), {} "
                                  "for i = 1, n do if holders[i] == ARGV[i] then ours[#ours + 1] = KEYS[i] end end "
                                  "if #ours > 0 then redis.call('DEL', unpack(ours)) end "
                                  "return string.rep(':1\\r\\n', n)";

/* One half is taken, the other given back. */
struct turn {
    struct bytes out;
    size_t replied; /* the bytes of all replies */
};

struct node {
    redisContext *context; /* of the load, */
    redisContext *other;   /* and of questions meanwhile */
    char bare_sha[DIALECT_SHA_LENGTH + 1];
    struct turn turns[KINDS][2];
    size_t at, got; /* the turn that is under way, and what came of its replies */
    bool runs;
};

struct limit {
    struct alloc alloc;
    struct node nodes[NODES_MAX];
    size_t n_nodes;
    uint32_t half, halves; /* one lock has no other half */
    struct {
        double locks, seconds, client_us, server_us;
    } sums[KINDS];
};

static redisReply *check(redisReply *reply)
{
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) program_fail("a node does not do what it is asked");
    return reply;
}

/* ---- nodes ---- */

static redisContext *dial(const char *address)
{
    const char *colon = strrchr(address, ':');
    char host[256];
    redisContext *context;

    if (colon == NULL) program_fail("a node is host:port");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    context = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
    if (context == NULL || context->err != 0) program_fail("a node does not answer");
    return context;
}

static void load_script(redisContext *context, const char *text, size_t length, char *ret_sha)
{
    redisReply *reply = check(redisCommand(context, "SCRIPT LOAD %b", text, length));

    if (reply->type != REDIS_REPLY_STRING) program_fail("a node takes no script");
    snprintf(ret_sha, DIALECT_SHA_LENGTH + 1, "%s", reply->str);
    freeReplyObject(reply);
}

static void open_node(struct node *node, const char *address)
{
    node->context = dial(address);
    node->other = dial(address);
    for (size_t i = 0; i < SCRIPTS; i++) {
        const struct dialect_script *script = &dialect_plain.scripts[i];
        char sha[DIALECT_SHA_LENGTH + 1];

        load_script(node->other, script->text, script->length, sha);
    }
    load_script(node->other, bare_script, sizeof(bare_script) - 1, node->bare_sha);
}

static double server_us(const struct node *node)
{
    redisReply *reply = check(redisCommand(node->other, "INFO cpu"));
    const char *system = strstr(reply->str, "used_cpu_sys:"), *user = strstr(reply->str, "used_cpu_user:");
    double seconds;

    if (system == NULL || user == NULL) program_fail("a node does not say what it took");
    seconds = strtod(strchr(system, ':') + 1, NULL) + strtod(strchr(user, ':') + 1, NULL);
    freeReplyObject(reply);
    return 1e6 * seconds;
}

/* ---- what is sent ---- */

/* The request for that lock; its words are in `key` and `owner`. */
static struct node_request request_of(enum op op, uint32_t lock, struct node_key *key, char *owner)
{
    static char text[IN_FLIGHT_MAX][48];

    *key = (struct node_key){.text = text[lock]};
    key->length = (size_t)snprintf(text[lock], sizeof(text[lock]), "bench-limit:%ld:%u", (long)getpid(), lock);
    snprintf(owner, 41, "%040u", lock);
    return (struct node_request){
        .op = op, .keys = key, .n_keys = 1, .owner = owner, .owner_length = 40, .lease_ms = LEASE_MS};
}

static void take(struct turn *turn, uint32_t first, uint32_t n)
{
    char owner[41];

    for (uint32_t i = first; i < first + n; i++) {
        struct node_key key;
        struct node_request request = request_of(OP_ACQUIRE, i, &key, owner);
        uint32_t whole_sent = UINT32_MAX;

        (void)dialect_plain.build(&turn->out, &request, &whole_sent, NULL);
        turn->replied += strlen("+OK\r\n");
    }
}

/* A script's string of n replies; one lock alone has a plain one. */
static size_t reply_size(uint32_t n)
{
    char head[16];

    if (n == 1) return strlen(":1\r\n");
    return (size_t)snprintf(head, sizeof(head), "$%u\r\n", 4 * n) + (size_t)4 * n + 2;
}

static void give_back(const struct limit *limit, struct turn *turn, uint32_t first, uint32_t n)
{
    static struct batch batch;
    uint32_t whole_sent = UINT32_MAX;
    char owner[41];

    batch_init(&batch, &limit->alloc);
    for (uint32_t i = first; i < first + n; i++) {
        struct inflight_request entry = {.op = OP_RELEASE};
        struct node_key key;
        struct node_request request = request_of(OP_RELEASE, i, &key, owner);

        if (batch_add(&batch, 'r', &request, batch_key_hash(&key), &entry) != BYTES_FINE) program_fail("no memory");
        if (i + 1 < first + n && batch.content.n < DIALECT_BATCH_MAX) continue;
        turn->replied += reply_size((uint32_t)batch.content.n);
        batch_build(&batch, &turn->out, &dialect_plain, &whole_sent, NULL);
        batch_forget(&batch);
    }
    batch_clear(&batch);
}

static void give_back_bare(const struct node *node, struct turn *turn, uint32_t first, uint32_t n)
{
    char owner[41];
    struct node_key key;

    bytes_command(&turn->out, 3 + (size_t)2 * n);
    bytes_text(&turn->out, "EVALSHA");
    bytes_text(&turn->out, node->bare_sha);
    bytes_number(&turn->out, n);
    for (uint32_t i = 0; i < n; i++) {
        (void)request_of(OP_RELEASE, first + i, &key, owner);
        bytes_word(&turn->out, key.text, key.length);
    }
    for (uint32_t i = 0; i < n; i++) {
        (void)request_of(OP_RELEASE, first + i, &key, owner);
        bytes_word(&turn->out, owner, 40);
    }
    turn->replied += n == 1 ? strlen("$4\r\n:1\r\n\r\n") : reply_size(n);
}

static void make_turn(const struct limit *limit, struct node *node, enum kind kind, uint32_t t)
{
    struct turn *turn = &node->turns[kind][t];
    uint32_t half = limit->half, released = limit->halves == 2 ? 1 - t : 0;

    bytes_init(&turn->out, &limit->alloc, OUT_MAX);
    if (limit->halves == 2 || t == 0) take(turn, limit->halves == 2 ? t * half : 0, half);
    if (limit->halves == 2 || t == 1) {
        if (kind == SENT)
            give_back(limit, turn, released * half, half);
        else
            give_back_bare(node, turn, released * half, half);
    }
    if (turn->out.fault != BYTES_FINE) program_fail("no memory");
}

/* ---- the load ---- */

static void send_turn(struct node *node, enum kind kind)
{
    const struct bytes *out = &node->turns[kind][node->at].out;

    for (size_t sent = 0; sent < out->used;) {
        ssize_t n = write(node->context->fd, out->data + sent, out->used - sent);

        if (n <= 0) program_fail("a node does not take any more");
        sent += (size_t)n;
    }
}

/* read_turn - true where all replies to the turn are there. */
static bool read_turn(struct node *node, enum kind kind)
{
    static char in[(size_t)1 << 16];
    const struct turn *turn = &node->turns[kind][node->at];
    ssize_t n = read(node->context->fd, in, sizeof(in));

    if (n <= 0) program_fail("a node does not answer any more");
    /* Before anything was taken there is nothing to give back: the figure is another one, and as long. */
    if (memchr(in, '-', (size_t)n) != NULL) program_fail("a node refuses");
    node->got += (size_t)n;
    if (node->got > turn->replied) program_fail("a node says more than it was asked");
    return node->got == turn->replied;
}

/* Locks taken and given back, over all nodes. */
static double run(struct limit *limit, enum kind kind, uint64_t until_ns)
{
    struct pollfd ready[NODES_MAX];
    size_t running = limit->n_nodes;
    double locks = 0;

    for (size_t i = 0; i < limit->n_nodes; i++) {
        ready[i] = (struct pollfd){.fd = limit->nodes[i].context->fd, .events = POLLIN};
        send_turn(&limit->nodes[i], kind);
    }
    while (running > 0) {
        if (poll(ready, (nfds_t)limit->n_nodes, -1) < 0) program_fail("poll");
        for (size_t i = 0; i < limit->n_nodes; i++) {
            struct node *node = &limit->nodes[i];

            if ((ready[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || !read_turn(node, kind)) continue;
            locks += (double)limit->half * limit->halves / 2;
            node->got = 0;
            node->at = 1 - node->at;
            if (slice_now_ns() < until_ns) {
                send_turn(node, kind);
            } else {
                running--;
                ready[i].fd = -1;
            }
        }
    }
    return locks;
}

static double servers_us(const struct limit *limit)
{
    double us = 0;

    for (size_t i = 0; i < limit->n_nodes; i++) us += server_us(&limit->nodes[i]);
    return us;
}

static void measure(struct limit *limit, enum kind kind, uint64_t span_ns)
{
    static struct slice slice;
    double before_us = servers_us(limit);

    slice_begin(&slice);
    limit->sums[kind].locks += run(limit, kind, slice.begun_ns + span_ns) / (double)limit->n_nodes;
    slice_end(&slice);
    limit->sums[kind].seconds += (double)(slice.ended_ns - slice.begun_ns) / 1e9;
    limit->sums[kind].client_us += (double)slice.cpu_ns / 1e3;
    limit->sums[kind].server_us += servers_us(limit) - before_us;
}

static void tell(const struct limit *limit)
{
    for (int kind = 0; kind < KINDS; kind++) {
        double locks = limit->sums[kind].locks;

        printf("%s\"%s\": {\"locks\": %.0f, \"seconds\": %.6f, \"client_cpu_us_per_lock\": %.3f, "
               "\"server_cpu_us_per_lock\": %.3f}",
               kind == 0 ? "{" : ", ", names[kind], locks, limit->sums[kind].seconds,
               limit->sums[kind].client_us / locks, limit->sums[kind].server_us / locks);
    }
    puts("}");
}

/* What the last turn took is deleted. */
static void clean(const struct limit *limit, const struct node *node)
{
    char owner[41];
    struct node_key key;

    for (uint32_t i = 0; i < limit->half * limit->halves; i++) {
        (void)request_of(OP_RELEASE, i, &key, owner);
        freeReplyObject(check(redisCommand(node->other, "DEL %b", key.text, key.length)));
    }
}

static void close_nodes(struct limit *limit)
{
    for (size_t i = 0; i < limit->n_nodes; i++) {
        struct node *node = &limit->nodes[i];

        clean(limit, node);
        for (size_t t = 0; t < (size_t)KINDS * 2; t++) bytes_clear(&node->turns[t / 2][t % 2].out);
        redisFree(node->context);
        redisFree(node->other);
    }
}

int main(int argc, char **argv)
{
    static struct limit limit;
    uint32_t in_flight, seconds;
    char *rest = argc == 4 ? argv[3] : NULL;

    if (argc != 4 || !program_number(&in_flight, argv[1], IN_FLIGHT_MAX) || !program_number(&seconds, argv[2], 3600))
        program_fail("usage: bench_limit IN_FLIGHT SECONDS NODE,NODE,...");
    alloc_init(&limit.alloc, NULL);
    limit.halves = in_flight > 1 ? 2 : 1;
    limit.half = in_flight / limit.halves;
    for (const char *address; limit.n_nodes < NODES_MAX && (address = strsep(&rest, ",")) != NULL; limit.n_nodes++)
        open_node(&limit.nodes[limit.n_nodes], address);
    for (size_t i = 0; i < limit.n_nodes; i++)
        for (uint32_t t = 0; t < KINDS * 2; t++) make_turn(&limit, &limit.nodes[i], (enum kind)(t / 2), t % 2);
    for (int i = 0; i < SLICES * KINDS; i++)
        measure(&limit, (enum kind)(i % KINDS), (uint64_t)seconds * NS_PER_S / SLICES / KINDS);
    tell(&limit);
    close_nodes(&limit);
    return 0;
}
