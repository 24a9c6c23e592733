/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_differential.c - the model answers as a real server does: random commands to both, replies compared
 *
 * The server is REDIS_SERVER, or redis-server. QUORLOCK_SIM_SEED draws other commands; a difference is shown with
 * its seed and step.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "draw.h"
#include "pair.h"
#include "redis/wire/info.h"
#include "sim/parts/model_own.h"

#define OUT_MAX 1048576

struct fixture {
    struct pair pair;
    struct draw draw;
    struct bytes out;
    uint64_t seed;
};

static uint64_t first_seed(void)
{
    const char *text = getenv("QUORLOCK_SIM_SEED");

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : 1;
}

static bool ask(struct fixture *f, size_t conn)
{
    bool same = pair_ask(&f->pair, conn, f->out.data, f->out.used);

    bytes_cut(&f->out, 0);
    return same;
}

static void ask_all(struct fixture *f, size_t conn, const char *const *words)
{
    bytes_texts(&f->out, words);
    if (!ask(f, conn)) fail_msg("%s", f->pair.difference);
}
#define ASK(f, conn, ...) ask_all(f, conn, (const char *const[]){__VA_ARGS__, NULL})

static void load_scripts(struct fixture *f)
{
    const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};

    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < SCRIPTS; i++) {
            const struct dialect_script *script = &dialects[d]->scripts[i];
            const char *const words[] = {"SCRIPT", "LOAD", script->text};

            if (script->text == NULL) continue;
            assert_string_equal(model_do(f->pair.model, f->pair.wall_us, words, 3), script->sha);
            ASK(f, 0, "SCRIPT", "LOAD", script->text);
        }
    }
}

static void learn(struct fixture *f)
{
    pair_learn_ids(&f->pair);
    pair_info(&f->pair, false, "server", "run_id", f->draw.ids[0], sizeof(f->draw.ids[0]));
    pair_info(&f->pair, false, "replication", "master_replid", f->draw.ids[1], sizeof(f->draw.ids[1]));
}

static struct fixture *begin(enum pair_wrong wrong)
{
    struct fixture *f = test_calloc(1, sizeof(*f));

    f->seed = first_seed();
    bytes_init(&f->out, &memory, OUT_MAX);
    pair_open(&f->pair, wrong);
    f->draw.model = f->pair.model;
    load_scripts(f);
    learn(f);
    return f;
}

static void end(struct fixture *f)
{
    pair_close(&f->pair);
    bytes_clear(&f->out);
    test_free(f);
}

static int setup(void **state)
{
    *state = begin(RIGHT);
    return 0;
}

static int teardown(void **state)
{
    end(*state);
    return 0;
}

static void advance(struct fixture *f)
{
    struct rng *rng = &f->draw.rng;

    if (rng_one_in(rng, 2)) pair_advance(&f->pair, rng_below(rng, 3000));
    if (rng_one_in(rng, 20)) pair_advance(&f->pair, rng_below(rng, 100000));
    f->draw.wall_ms = f->pair.wall_us / 1000;
}

static bool has_word(const struct bytes *bytes, const char *word)
{
    return memmem(bytes->data, bytes->used, word, strlen(word)) != NULL;
}

/* SET with an expiry that is no longer to come: in some servers the key is there until a command finds it. */
static bool expires_now(const struct fixture *f)
{
    static const char option[] = "\r\nPXAT\r\n$13\r\n";
    const char *at = memmem(f->out.data, f->out.used, option, strlen(option));

    return at != NULL && strtoull(at + strlen(option), NULL, 10) <= f->draw.wall_ms;
}

/* Later servers have a connection's own notices, and that of its own flush, in another order to its replies; and
 * Valkey 9.1 refuses a stranger before it looks for faults of the command, also of one of several. */
static bool differs_by_pushes(const struct fixture *f, const struct session *session)
{
    bool tracks = has_word(&f->out, "\r\nTRACKING\r\n");

    if (has_word(&f->out, "\r\nSUBSCRIBE\r\n") && (tracks || session->resp3)) return true;
    if (has_word(&f->out, "\r\nFLUSH") && (tracks || session->tracking || session->multi)) return true;
    return tracks && model_manners(f->pair.model)->password != NULL && !session->authed;
}

/* What servers disagree about among themselves, and the library does not do: MULTI after MULTI; SUBSCRIBE after MULTI,
 * when a script's notice to its own connection may come behind the headers of later arrays, in 7.0, too; a key that
 * expires at once; what may be queued in a server that is full or a replica; SUBSCRIBE in a full one, which Redis 8.6
 * refuses; and what Valkey 9.1 executes where 7.0 refuses it: SELECT and CLIENT in a busy one, SCRIPT EXISTS in
 * a replica without its master. */
static bool differs_by_kind(const struct fixture *f, size_t conn)
{
    const struct model_manners *manners = model_manners(f->pair.model);
    const struct session *session = f->pair.conns[conn].session;
    bool multi = session->multi, queues = multi || manners->full || manners->replica || manners->master_down;

    if (multi && has_word(&f->out, "\r\nSUBSCRIBE\r\n")) return true;
    if (f->pair.real_is_7_0) return false;
    if (differs_by_pushes(f, session)) return true;
    if (manners->full && has_word(&f->out, "\r\nSUBSCRIBE\r\n")) return true;
    if (manners->busy && (has_word(&f->out, "\r\nSELECT\r\n") || has_word(&f->out, "\r\nCLIENT\r\n"))) return true;
    if (manners->master_down && has_word(&f->out, "\r\nSCRIPT\r\n")) return true;
    return expires_now(f) || (queues && has_word(&f->out, "\r\nMULTI\r\n"));
}

/* So many commands; returns after how many a difference was seen, 0: none. */
static unsigned run(struct fixture *f, uint64_t seed, unsigned n)
{
    rng_seed(&f->draw.rng, seed, 0);
    for (unsigned i = 1; i <= n; i++) {
        size_t conn = rng_below(&f->draw.rng, PAIR_CONNS);

        advance(f);
        draw_command(&f->draw, &f->out);
        if (differs_by_kind(f, conn))
            bytes_cut(&f->out, 0);
        else if (!ask(f, conn))
            return i;
    }
    return 0;
}

static void agree(struct fixture *f, uint64_t seed, unsigned n)
{
    unsigned at = run(f, seed, n);

    if (at == 0) return;
    /* A message of cmocka's is cut. */
    fprintf(stderr, "seed %llu, step %u, %s\n", (unsigned long long)seed, at, f->pair.difference);
    fail_msg("the model and the server differ");
}

static void reconnect(struct fixture *f)
{
    for (size_t i = 0; i < PAIR_CONNS; i++) pair_reconnect(&f->pair, i);
}

/* All that stands at the keys. */
static void compare_state(struct fixture *f)
{
    static const char *const more[] = {"quorlock:fence:a", "quorlock:guard", "redisson_lock_queue:{a}",
                                       "quorlock:readers:a", "quorlock:intents:a"};

    reconnect(f);
    for (size_t i = 0; i < DRAW_KEYS + LENGTH(more); i++) {
        const char *key = i < DRAW_KEYS ? draw_keys[i] : more[i - DRAW_KEYS];

        ASK(f, 0, "TYPE", key);
        ASK(f, 0, "PTTL", key);
        ASK(f, 0, "GET", key);
        ASK(f, 0, "HGETALL", key);
        ASK(f, 0, "LRANGE", key, "0", "-1");
        ASK(f, 0, "SCARD", key);
        ASK(f, 0, "ZRANGE", key, "0", "-1", "WITHSCORES");
    }
}

#define PAIR_TEST(name) TEST_WITH(fixture, name, setup, teardown)

PAIR_TEST(random_commands_are_answered_alike)
{
    for (uint64_t i = 0; i < 20; i++) {
        agree(f, f->seed + i, 2000);
        compare_state(f);
    }
}

/* What listing reads of a value. */
PAIR_TEST(parts_of_values_are_alike)
{
    static const char *const keys[] = {"string", "short", "hash", "none"};

    ASK(f, 0, "SET", "string", "hello");
    ASK(f, 0, "SET", "short", "he");
    ASK(f, 0, "HSET", "hash", "f", "1", "g", "2");
    for (size_t i = 0; i < LENGTH(keys); i++) {
        ASK(f, 0, "GETRANGE", keys[i], "0", "3");
        ASK(f, 0, "HKEYS", keys[i]);
    }
}

/* A set that has something in each range. */
PAIR_TEST(ranges_of_sorted_sets_are_alike)
{
    static const char *const bounds[] = {"-inf", "-1", "0", "(0", "1", "(1", "(2", "2", "+inf", "(inf"};
    static const char *const limits[] = {"-2", "-1", "0", "1", "2", "9"};
    struct rng *rng = &f->draw.rng;

    ASK(f, 0, "ZADD", "a", "1", "b", "1", "ba", "0", "c", "2", "", "2", "a", "-1", "z", "1e3", "y", "1", "aa");
    ASK(f, 0, "ZADD", "a", "GT", "CH", "0", "b", "3", "c", "0", "new");
    ASK(f, 0, "ZADD", "a", "LT", "CH", "0", "b", "9", "c", "0", "newer");
    rng_seed(rng, f->seed, 0);
    for (unsigned i = 0; i < 300; i++) {
        const char *from = bounds[rng_below(rng, LENGTH(bounds))], *to = bounds[rng_below(rng, LENGTH(bounds))];
        const char *skip = limits[rng_below(rng, LENGTH(limits))], *n = limits[rng_below(rng, LENGTH(limits))];

        ASK(f, 0, "ZRANGEBYSCORE", "a", from, to, "WITHSCORES", "LIMIT", skip, n);
        ASK(f, 0, "ZRANGE", "a", from, to, "BYSCORE", "REV", "LIMIT", skip, n);
        ASK(f, 0, "ZRANGE", "a", skip, n, "REV", "WITHSCORES");
        ASK(f, 0, "ZRANGE", "a", skip, n);
        ASK(f, 0, "ZCOUNT", "a", from, to);
    }
    ASK(f, 0, "ZREMRANGEBYSCORE", "a", "(0", "2");
    ASK(f, 0, "ZRANGE", "a", "0", "-1");
    ASK(f, 0, "ZREM", "a", "z", "z", "c");
    ASK(f, 0, "ZREMRANGEBYSCORE", "a", "-inf", "inf");
    ASK(f, 0, "EXISTS", "a");
}

PAIR_TEST(a_full_server_is_answered_for_alike)
{
    agree(f, f->seed, 300);
    reconnect(f);
    server_do(pair_server(&f->pair), "CONFIG SET maxmemory 1");
    model_manners(f->pair.model)->full = true;
    /* Only the first write of a script may be refused. */
    ASK(f, 0, "EVAL", "return {redis.call('DEL', KEYS[1]), redis.pcall('SET', KEYS[1], 'x')}", "1", "a");
    ASK(f, 0, "EVAL", "return {redis.pcall('SET', KEYS[1], 'x'), redis.pcall('GET', KEYS[1])}", "1", "b");
    agree(f, f->seed + 1, 2000);
    server_do(pair_server(&f->pair), "CONFIG SET maxmemory 0");
    model_manners(f->pair.model)->full = false;
    agree(f, f->seed + 2, 300);
    compare_state(f);
}

PAIR_TEST(a_replica_is_answered_for_alike)
{
    agree(f, f->seed, 500);
    server_do(pair_server(&f->pair), "REPLICAOF 127.0.0.1 1");
    model_manners(f->pair.model)->replica = true;
    reconnect(f); /* what was queued before is judged by the kind of server */
    learn(f);
    agree(f, f->seed + 1, 2000);
    reconnect(f);
    server_do(pair_server(&f->pair), "CONFIG SET replica-serve-stale-data no");
    model_manners(f->pair.model)->master_down = true;
    agree(f, f->seed + 2, 1000);
    server_do(pair_server(&f->pair), "REPLICAOF NO ONE");
    model_manners(f->pair.model)->replica = model_manners(f->pair.model)->master_down = false;
    learn(f);
    agree(f, f->seed + 3, 500);
    compare_state(f);
}

PAIR_TEST(denied_commands_are_denied_alike)
{
    static const struct {
        const char *rules[8];
        const char *denied;
    } rows[] = {{{"-time"}, "TIME"},
                {{"-publish", "-hset"}, "PUBLISH HSET"},
                {{"-set", "-pexpire", "-type"}, "SET PEXPIRE TYPE"},
                {{"-evalsha", "-subscribe", "-client|kill"}, "EVALSHA SUBSCRIBE CLIENT|KILL"},
                {{"-get", "-info", "-del"}, "GET INFO DEL"},
                {{"-client|tracking", "-hello"}, "CLIENT|TRACKING HELLO"},
                {{"-client|caching"}, "CLIENT|CACHING"},
                {{"-exec", "-pttl", "-hscan"}, "EXEC PTTL HSCAN"},
                {{"-zadd", "-zrange", "-exists"}, "ZADD ZRANGE EXISTS"}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const char *words[12] = {"ACL", "SETUSER", "default", "+@all"};

        memcpy(words + 4, rows[i].rules, sizeof(rows[i].rules));
        reconnect(f);
        pair_tell(&f->pair, 0, words);
        model_manners(f->pair.model)->denied = rows[i].denied;
        agree(f, f->seed + i, 600);
    }
}

PAIR_TEST(a_busy_server_is_answered_for_alike)
{
    agree(f, f->seed, 300);
    pair_block(&f->pair);
    model_manners(f->pair.model)->busy = true;
    agree(f, f->seed + 1, 300);
    pair_unblock(&f->pair);
    model_manners(f->pair.model)->busy = false;
    agree(f, f->seed + 2, 300);
}

PAIR_TEST(a_server_that_cannot_save_is_answered_for_alike)
{
    char path[TEXT_SIZE + 16], saves[8] = "1", state[8] = "";

    /* What is in the place of the file cannot be replaced by one. */
    snprintf(path, sizeof(path), "%s/dump.rdb", pair_server(&f->pair)->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    pair_tell(&f->pair, 0, (const char *const[]){"CONFIG", "SET", "save", "3600 1", NULL});
    server_do(pair_server(&f->pair), "BGSAVE");
    while (strcmp(saves, "0") != 0) pair_info(&f->pair, true, "persistence", "rdb_bgsave_in_progress", saves, 8);
    pair_info(&f->pair, true, "persistence", "rdb_last_bgsave_status", state, sizeof(state));
    assert_string_equal(state, "err");
    model_manners(f->pair.model)->misconf = true;
    agree(f, f->seed, 1000);
}

PAIR_TEST(strangers_are_kept_out_alike)
{
    server_do(pair_server(&f->pair), "CONFIG SET requirepass p");
    pair_server(&f->pair)->password = model_manners(f->pair.model)->password = "p";
    agree(f, f->seed, 200);
    reconnect(f);
    agree(f, f->seed + 1, 500);
    reconnect(f);
    ASK(f, 0, "AUTH", "x");
    ASK(f, 0, "AUTH", "default", "x");
    ASK(f, 0, "AUTH", "nobody", "p");
    ASK(f, 0, "AUTH", "default", "p", "x");
    ASK(f, 0, "GET", "a");
    ASK(f, 0, "AUTH", "p");
    ASK(f, 0, "GET", "a");
    ASK(f, 1, "AUTH", "default", "p");
    ASK(f, 1, "AUTH", "x");
    ASK(f, 1, "GET", "a");
    agree(f, f->seed + 2, 500);
    server_do(pair_server(&f->pair), "CONFIG SET maxclients 3");
    model_manners(f->pair.model)->max_clients = 3;
    if (!pair_refused(&f->pair, 3)) fail_msg("%s", f->pair.difference);
}

PAIR_TEST(broken_requests_are_answered_alike)
{
    static const char *const requests[] = {"*x\r\n",
                                           "*1\r\n!\r\n",
                                           "*1\r\n$-1\r\n",
                                           "*1\r\n$x\r\n",
                                           "*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n",
                                           "*99999999999\r\n",
                                           "*1\r\n:1\r\n",
                                           "*1\r\n\r\n",
                                           "*2\r\n$3\r\nGET\r\n$01\r\na\r\n",
                                           "*1\r\n$4\r\nPING\r\n*1\r\n!\r\n",
                                           "*1\r\n$600000000\r\n"};

    for (size_t i = 0; i < LENGTH(requests); i++) {
        if (!pair_ask(&f->pair, 0, requests[i], strlen(requests[i]))) fail_msg("%s", f->pair.difference);
    }
}

/* Later servers send them behind the reply to EXEC. */
PAIR_TEST(a_client_hears_its_own_notices_between_its_replies)
{
    if (!f->pair.real_is_7_0) return;
    ASK(f, 0, "MULTI");
    ASK(f, 0, "SUBSCRIBE", "c");
    ASK(f, 0, "PUBLISH", "c", "x");
    ASK(f, 0, "EVAL", "return {1, redis.call('PUBLISH', 'c', 'y'), redis.call('PUBLISH', 'd', 'z')}", "0");
    ASK(f, 0, "EXEC");
}

/* Each field of the model's is one of the server's, and where nobody uses the server many have the same value. */
PAIR_TEST(info_tells_what_a_server_tells)
{
    static const char *const sections[] = {"server", "clients", "memory", "persistence", "replication"};
    static const char same[] = " redis_mode arch_bits hz maxclients blocked_clients maxmemory maxmemory_human "
                               "maxmemory_policy loading async_loading rdb_last_bgsave_status aof_enabled "
                               "aof_last_write_status role connected_slaves master_replid2 ";

    for (size_t i = 0; i < LENGTH(sections); i++) {
        char model[PAIR_INFO_MAX], real[PAIR_INFO_MAX], *rest = model, *line;

        pair_info_text(&f->pair, false, sections[i], model, sizeof(model));
        pair_info_text(&f->pair, true, sections[i], real, sizeof(real));
        while ((line = strsep(&rest, "\r\n")) != NULL) {
            char name[64], words[66], there[160];
            size_t length = strcspn(line, ":");

            if (line[length] != ':') continue;
            snprintf(name, sizeof(name), "%.*s", (int)length, line);
            if (info_field(real, strlen(real), name, there, sizeof(there))) {
                snprintf(words, sizeof(words), " %s ", name);
                if (strstr(same, words) != NULL) assert_string_equal(line + length + 1, there);
            } else if (f->pair.real_is_7_0) {
                fail_msg("the server's INFO %s has no %s", sections[i], name);
            }
        }
    }
    pair_tell(&f->pair, 0, (const char *const[]){"CONFIG", "SET", "appendfsync", "everysec", NULL});
    ASK(f, 0, "CONFIG", "GET", "appendfsync");
    ASK(f, 0, "CONFIG", "GET", "maxmemory");
    ASK(f, 0, "CONFIG", "GET", "maxmemory-policy");
    ASK(f, 0, "CONFIG", "GET", "timeout");
}

TEST(a_wrong_model_is_noticed)
{
    for (enum pair_wrong wrong = WRONG_CLOCK; wrong <= WRONG_PUSHES; wrong++) {
        struct fixture *f = begin(wrong);

        if (run(f, f->seed, 50000) == 0) fail_msg("fault %d of the model was not noticed", wrong);
        end(f);
    }
}
