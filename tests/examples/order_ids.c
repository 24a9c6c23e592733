/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order_ids.c - order numbers from whichever node is up, and never one twice
 *
 * usage: order_ids init NODE...
 *        order_ids plain|safe BUSINESS FIRST_TASK TASKS IDS CLOCK DATABASE NODE...
 *
 * An id has 64 bits: 0, 31 bits of seconds since 2024, 5 of the node's place in the list (the same list
 * everywhere), 27 of a counter at icr:BUSINESS:yyyy:MM:dd on that node. One node gives an id in one round trip;
 * when it is down another one does. The ids of a business are unique, those of a task rise.
 *
 * Two ids can be equal only if one node gives one counter twice within one second. It does when it comes back
 * empty within the second, or when its counter is gone and a clock is set back; "plain" shows it. With "safe":
 *
 *  - No second comes from a clock alone. A node keeps the last second that it used and never goes back; the
 *    client's clock only moves it forward, and the server's is not looked at. A counter that begins anew, for
 *    whatever reason, begins in a second that the node has not used.
 *  - A node uses only the seconds of a range that it was given in the present life of its server (run_id). One
 *    that restarted, without its memory, with all of it or a part, gives no id before it has a new range. A
 *    connection never outlives the server: so the client can say which life it talks to.
 *  - A range begins behind the end of all that its node was ever given. These ends, of all nodes, are noted
 *    on all nodes. A range may begin when a majority has its end, all at the same time: it is noted twice, and
 *    a node that acknowledges the second note has kept the first. A client that gives a range connects to all
 *    nodes, and then asks what each noted in its present life; a majority must know. So what a node has
 *    forgotten it had forgotten before the question, and two majorities have a node in common: the newest end
 *    is found. Noting it teaches those that had forgotten. Ends only grow, and a range that begins before the
 *    present one ends is refused.
 *
 * None of this rests on time, nor on the lock: that is held so that of many tasks which need a range one gives
 * it, and the others find it. It bears one node after the other that loses its memory by a restart. When a
 * majority has lost it no range is given, until an operator that knows that the clocks are beyond all ids
 * empties the nodes and calls "init". Memory that goes without a restart (FLUSHALL) is not seen.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "example.h"

#define EPOCH        1704067200 /* 2024-01-01 00:00:00 UTC */
#define DAY_S        86400
#define SECOND_MAX   INT64_C(0x7fffffff)
#define COUNTER_BITS 27
#define NODE_BITS    5
#define COUNTER_MAX  ((INT64_C(1) << COUNTER_BITS) - 1)
#define RANGE_S      10 /* seconds given at once: so far may ids run ahead of the clock after each loss */
#define LEASE_MS     2000
#define MAX_LEASE_MS 2000 /* so long a node that restarts has no vote */
#define TIMEOUT_S    2
#define PATIENCE_US  INT64_C(60000000)
#define PAUSE_MS     20
#define CLERKS       20

struct node {
    redisContext *redis;
    char life[64]; /* run_id of the server that this connection leads to */
};

struct office {
    bool safe;
    const char *business;
    const char *database;
    const char *const *addresses;
    size_t n_nodes;
    atomic_long next_task;
    long end_task, n_ids;
    int64_t clock; /* stops at this second of the epoch; -1: the real one */
    quorlock_sync_client *client;
};

/* A thread: it works on one task after the other. */
struct clerk {
    struct office *office;
    pthread_t thread;
    struct node nodes[QUORLOCK_NODES_MAX];
    quorlock_sync_lock *lock;
    size_t at;      /* the node that it asks */
    int64_t second; /* of the task's last id */
    size_t from;    /* the node that gave it */
};

enum answer { GIVEN, NO_RANGE, DOWN };

/* KEYS: the node's range, the counter of a day. ARGV: life, second of our clock, day of the counter. */
static const char *const next_script =
    "local range = redis.call('HMGET', KEYS[1], 'life', 'second', 'end')\n"
    "if range[1] ~= ARGV[1] then return {'no range', 0, 0} end\n"
    "local second = math.max(tonumber(range[2]), tonumber(ARGV[2]))\n"
    "if redis.call('EXISTS', KEYS[2]) == 0 then second = second + 1 end\n"
    "if second > tonumber(range[3]) then return {'no range', 0, 0} end\n"
    "if math.floor(second / 86400) ~= tonumber(ARGV[3]) then return {'other day', second, 0} end\n"
    "redis.call('HSET', KEYS[1], 'second', second)\n"
    "local counter = redis.call('INCR', KEYS[2])\n"
    "if counter == 1 then redis.call('EXPIRE', KEYS[2], 172800) end\n"
    "return {'id', second, counter}\n";

/* KEYS: what the node notes of the ends. ARGV: life, end of each node. Ends only grow. */
static const char *const note_script = "for i = 2, #ARGV do\n"
                                       "  local noted = tonumber(redis.call('HGET', KEYS[1], i - 2) or 0)\n"
                                       "  redis.call('HSET', KEYS[1], i - 2, math.max(noted, tonumber(ARGV[i])))\n"
                                       "end\n"
                                       "return redis.call('HSET', KEYS[1], 'life', ARGV[1])\n";

/* KEYS: the node's range. ARGV: life, first and last second of the new one. */
static const char *const range_script =
    "local range = redis.call('HMGET', KEYS[1], 'life', 'end')\n"
    "if range[1] == ARGV[1] and tonumber(range[2]) >= tonumber(ARGV[2]) then return 0 end\n"
    "redis.call('HSET', KEYS[1], 'life', ARGV[1], 'second', ARGV[2], 'end', ARGV[3])\n"
    "return 1\n";

/* ---- one node ---- */

static void node_drop(struct node *node)
{
    if (node->redis != NULL) redisFree(node->redis);
    node->redis = NULL;
}

/* NULL: no answer, or an error. The connection is given up then; what became of the command is not known. */
static redisReply *node_reply(struct node *node, redisReply *reply)
{
    if (reply != NULL && reply->type != REDIS_REPLY_ERROR) return reply;
    if (reply != NULL) freeReplyObject(reply);
    node_drop(node);
    return NULL;
}

static redisReply *node_ask(struct node *node, const char *format, ...)
{
    va_list arguments;
    redisReply *reply;

    va_start(arguments, format);
    reply = redisvCommand(node->redis, format, arguments);
    va_end(arguments);
    return node_reply(node, reply);
}

static bool node_connect(struct node *node, const char *address)
{
    const struct timeval limit = {.tv_sec = TIMEOUT_S};
    const char *colon = strrchr(address, ':');
    char host[256] = "";
    const char *life;
    redisReply *info;

    if (node->redis != NULL) return true;
    if (colon == NULL) die("%s: not HOST:PORT", address);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    node->redis = redisConnectWithTimeout(host, (int)strtol(colon + 1, NULL, 10), limit);
    if (node->redis == NULL) die("no memory");
    if (node->redis->err != 0 || redisSetTimeout(node->redis, limit) != REDIS_OK) {
        node_drop(node);
        return false;
    }
    info = node_ask(node, "INFO server");
    if (info == NULL) return false;
    life = strstr(info->str, "run_id:");
    if (life == NULL) die("%s: says no run_id", address);
    snprintf(node->life, sizeof(node->life), "%.40s", life + strlen("run_id:"));
    freeReplyObject(info);
    return true;
}

/* ---- ids ---- */

static int64_t id_make(int64_t second, size_t node, int64_t counter)
{
    if (second < 0 || second > SECOND_MAX) die("no second of 31 bits: %" PRId64, second);
    if (counter < 1 || counter > COUNTER_MAX) die("the counter of the day is used up");
    return second << (NODE_BITS + COUNTER_BITS) | (int64_t)node << COUNTER_BITS | counter;
}

static int64_t clock_now(const struct office *office)
{
    return office->clock >= 0 ? office->clock : time(NULL) - EPOCH;
}

static void day_key(char *key, size_t size, const char *business, int64_t day)
{
    time_t second = EPOCH + day * DAY_S;
    struct tm date;

    gmtime_r(&second, &date);
    snprintf(key, size, "icr:%s:%04d:%02d:%02d", business, date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/* The counter and the clock alone: two ids are equal when the node comes back empty within a second. */
static enum answer ask_plain(struct clerk *clerk, int64_t *ret_id)
{
    struct node *node = &clerk->nodes[clerk->at];
    int64_t second = clock_now(clerk->office);
    char key[128];
    redisReply *reply;

    day_key(key, sizeof(key), clerk->office->business, second / DAY_S);
    reply = node_ask(node, "INCR %s", key);
    if (reply == NULL) return DOWN;
    *ret_id = id_make(second, clerk->at, reply->integer);
    freeReplyObject(reply);
    return GIVEN;
}

/* The least second of the task's next id: those of one node rise anyway. */
static int64_t second_least(const struct clerk *clerk)
{
    int64_t rising = clerk->second + (clerk->from != clerk->at);
    int64_t now = clock_now(clerk->office);

    return now > rising ? now : rising;
}

/* The node says which second it is, and so which day: mostly the one that we thought. */
static enum answer ask_safe(struct clerk *clerk, int64_t *ret_id)
{
    struct node *node = &clerk->nodes[clerk->at];
    int64_t least = second_least(clerk);
    int64_t second = least;
    enum answer answer;
    bool other_day;

    do {
        char key[128];
        redisReply *reply;

        day_key(key, sizeof(key), clerk->office->business, second / DAY_S);
        reply = node_ask(node, "EVAL %s 2 icr:range %s %s %lld %lld", next_script, key, node->life, (long long)least,
                         (long long)(second / DAY_S));
        if (reply == NULL) return DOWN;
        second = reply->element[1]->integer;
        other_day = strcmp(reply->element[0]->str, "other day") == 0;
        answer = strcmp(reply->element[0]->str, "id") == 0 ? GIVEN : NO_RANGE;
        if (answer == GIVEN) {
            *ret_id = id_make(second, clerk->at, reply->element[2]->integer);
            clerk->second = second;
            clerk->from = clerk->at;
        }
        freeReplyObject(reply);
    } while (other_day);
    return answer;
}

/* ---- ranges ---- */

/* Adds what this node noted; false where it noted nothing in its present life. */
static bool ends_read(struct node *node, int64_t *ends, size_t n)
{
    redisReply *life = node_ask(node, "HGET icr:ends life");
    bool known = life != NULL && life->type == REDIS_REPLY_STRING && strcmp(life->str, node->life) == 0;

    if (life != NULL) freeReplyObject(life);
    for (size_t i = 0; i < n && known; i++) {
        redisReply *end = node_ask(node, "HGET icr:ends %lu", (unsigned long)i);

        known = end != NULL && end->type == REDIS_REPLY_STRING;
        if (known && strtoll(end->str, NULL, 10) > ends[i]) ends[i] = strtoll(end->str, NULL, 10);
        if (end != NULL) freeReplyObject(end);
    }
    return known;
}

static bool ends_note(struct node *node, const int64_t *ends, size_t n)
{
    const char *words[4 + 1 + QUORLOCK_NODES_MAX] = {"EVAL", note_script, "1", "icr:ends", node->life};
    char numbers[QUORLOCK_NODES_MAX][24];
    redisReply *reply;

    for (size_t i = 0; i < n; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%" PRId64, ends[i]);
        words[5 + i] = numbers[i];
    }
    reply = node_reply(node, redisCommandArgv(node->redis, (int)(5 + n), words, NULL));
    if (reply != NULL) freeReplyObject(reply);
    return reply != NULL;
}

static bool range_begin(struct node *node, int64_t first, int64_t last)
{
    redisReply *reply =
        node_ask(node, "EVAL %s 1 icr:range %s %lld %lld", range_script, node->life, (long long)first, (long long)last);
    bool begun = reply != NULL && reply->integer == 1;

    if (reply != NULL) freeReplyObject(reply);
    return begun;
}

/* Adds up how many nodes, of those that are connected, have noted these ends. */
static size_t ends_note_all(struct clerk *clerk, const int64_t *ends)
{
    size_t n_noted = 0;

    for (size_t i = 0; i < clerk->office->n_nodes; i++) {
        if (clerk->nodes[i].redis != NULL) n_noted += ends_note(&clerk->nodes[i], ends, clerk->office->n_nodes);
    }
    return n_noted;
}

/* A range for the node that this clerk asks, behind all that it ever had. No step may be left out, nor come
 * before another: see above. */
static bool range_give(struct clerk *clerk)
{
    const struct office *office = clerk->office;
    size_t n = office->n_nodes;
    size_t quorum = n / 2 + 1;
    size_t n_told = 0;
    int64_t ends[QUORLOCK_NODES_MAX] = {0};
    int64_t first = second_least(clerk);

    for (size_t i = 0; i < n; i++) (void)node_connect(&clerk->nodes[i], office->addresses[i]);
    for (size_t i = 0; i < n; i++) {
        if (clerk->nodes[i].redis != NULL) n_told += ends_read(&clerk->nodes[i], ends, n);
    }
    if (n_told < quorum) {
        say("forgotten: %zu of %zu nodes know which seconds were given, %zu needed", n_told, n, quorum);
        return false;
    }
    if (first <= ends[clerk->at]) first = ends[clerk->at] + 1;
    ends[clerk->at] = first + RANGE_S;
    for (int round = 0; round < 2; round++) {
        if (ends_note_all(clerk, ends) < quorum) return false;
    }
    return clerk->nodes[clerk->at].redis != NULL && range_begin(&clerk->nodes[clerk->at], first, ends[clerk->at]);
}

/* Of many tasks that need a range the first gives it, and the others find it. */
static enum answer ask_with_lock(struct clerk *clerk, int64_t *ret_id)
{
    struct quorlock_sync_result result = {.size = sizeof(result)};
    enum answer answer;

    if (quorlock_sync_lock_acquire(clerk->lock, &result) != QUORLOCK_OK) die("no lock: %s", result.text);
    answer = ask_safe(clerk, ret_id);
    if (answer == NO_RANGE) answer = range_give(clerk) ? ask_safe(clerk, ret_id) : DOWN;
    (void)quorlock_sync_lock_release(clerk->lock, NULL);
    return answer;
}

/* ---- tasks ---- */

static int64_t id_next(struct clerk *clerk)
{
    const struct office *office = clerk->office;
    int64_t until_us = clock_us() + PATIENCE_US;

    while (clock_us() < until_us) {
        enum answer answer = DOWN;
        int64_t id;

        if (node_connect(&clerk->nodes[clerk->at], office->addresses[clerk->at])) {
            answer = office->safe ? ask_safe(clerk, &id) : ask_plain(clerk, &id);
        }
        if (answer == NO_RANGE) answer = ask_with_lock(clerk, &id);
        if (answer == GIVEN) return id;
        clerk->at = (clerk->at + 1) % office->n_nodes;
        pause_ms(PAUSE_MS);
    }
    die("no node gives an id");
}

static void task_run(struct clerk *clerk, sqlite3 *db, long task, int64_t *ids)
{
    long n = clerk->office->n_ids;

    clerk->at = (size_t)task % clerk->office->n_nodes;
    clerk->second = 0;
    for (long i = 0; i < n; i++) ids[i] = id_next(clerk);
    sql_run(db, "BEGIN IMMEDIATE");
    for (long i = 0; i < n; i++) {
        sql_run(db, "INSERT INTO ids (task, id) VALUES (%ld, %lld)", task, (long long)ids[i]);
    }
    sql_run(db, "COMMIT");
}

static void *clerk_run(void *arg)
{
    const struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LEASE_MS};
    struct clerk *clerk = arg;
    struct office *office = clerk->office;
    sqlite3 *db = account_open(office->database);
    int64_t *ids = calloc((size_t)office->n_ids, sizeof(*ids));
    long task;

    if (ids == NULL) die("no memory");
    if (office->safe) clerk->lock = example_lock(office->client, "icr", &options);
    while ((task = atomic_fetch_add(&office->next_task, 1)) < office->end_task) task_run(clerk, db, task, ids);
    quorlock_sync_lock_free(clerk->lock);
    for (size_t i = 0; i < office->n_nodes; i++) node_drop(&clerk->nodes[i]);
    free(ids);
    sqlite3_close(db);
    return NULL;
}

static void office_run(struct office *office)
{
    struct clerk *clerks = calloc(CLERKS, sizeof(*clerks));

    if (clerks == NULL) die("no memory");
    if (office->safe) office->client = example_open(office->addresses, office->n_nodes, MAX_LEASE_MS);
    for (size_t i = 0; i < CLERKS; i++) {
        clerks[i].office = office;
        if (pthread_create(&clerks[i].thread, NULL, clerk_run, &clerks[i]) != 0) die("no thread");
    }
    for (size_t i = 0; i < CLERKS; i++) pthread_join(clerks[i].thread, NULL);
    if (office->client != NULL) quorlock_sync_client_close(office->client);
    free(clerks);
}

/* Declares, once, that all ids that may have been given are of seconds gone by. */
static int init(const char *const *addresses, size_t n)
{
    struct node nodes[QUORLOCK_NODES_MAX] = {0};
    int64_t ends[QUORLOCK_NODES_MAX];

    for (size_t i = 0; i < n; i++) {
        redisReply *reply = node_connect(&nodes[i], addresses[i]) ? node_ask(&nodes[i], "EXISTS icr:ends") : NULL;

        if (reply == NULL || reply->integer != 0) die("%s: not reached, or not empty", addresses[i]);
        freeReplyObject(reply);
        ends[i] = time(NULL) - EPOCH;
    }
    for (size_t i = 0; i < n; i++) {
        if (!ends_note(&nodes[i], ends, n)) die("%s: no answer", addresses[i]);
        node_drop(&nodes[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct office office = {0};

    if (argc > 2 && argc - 2 <= QUORLOCK_NODES_MAX && strcmp(argv[1], "init") == 0) {
        return init((const char *const *)argv + 2, (size_t)(argc - 2));
    }
    if (argc < 9 || argc - 8 > QUORLOCK_NODES_MAX) {
        die("usage: order_ids plain|safe BUSINESS FIRST_TASK TASKS IDS CLOCK DATABASE NODE...");
    }
    office.safe = strcmp(argv[1], "safe") == 0;
    office.business = argv[2];
    atomic_init(&office.next_task, strtol(argv[3], NULL, 10));
    office.end_task = strtol(argv[3], NULL, 10) + strtol(argv[4], NULL, 10);
    office.n_ids = strtol(argv[5], NULL, 10);
    office.clock = strcmp(argv[6], "real") == 0 ? -1 : strtoll(argv[6], NULL, 10);
    office.database = argv[7];
    office.addresses = (const char *const *)argv + 8;
    office.n_nodes = (size_t)(argc - 8);
    office_run(&office);
    return 0;
}
