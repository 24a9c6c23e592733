/* SPDX-License-Identifier: BSD-3-Clause */
#include "draw.h"

#include <quorlock/quorlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"
#include "test.h"

#define WORDS_MAX 16

const char *const draw_keys[DRAW_KEYS] = {"a", "b", "c d", "{e}f", "g"};

struct piece {
    const char *text;
    size_t length;
};
#define PIECE(literal)                                                                                                 \
    {                                                                                                                  \
        literal, sizeof(literal) - 1                                                                                   \
    }

/* The last is too long for a small hash: the order of fields in a large one is the server's own. */
static const struct piece values[] = {
    PIECE("me"),
    PIECE("you"),
    PIECE("me"),
    PIECE("x:1"),
    PIECE("1"),
    PIECE("-7"),
    PIECE("12"),
    PIECE(""),
    PIECE("a\r\nb\0c"),
    PIECE("9007199254740991"),
    PIECE("0.5e3"),
    PIECE("mode"),
    PIECE("9223372036854775807"),
    PIECE("quorlock:readers"),
    PIECE("long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long")};
static const struct piece fields[] = {PIECE("me"), PIECE("you"), PIECE("x:1"), PIECE("mode"), PIECE("z")};
static const struct piece numbers[] = {PIECE("0"),
                                       PIECE("1"),
                                       PIECE("-1"),
                                       PIECE("3"),
                                       PIECE("-2"),
                                       PIECE("x"),
                                       PIECE("1.5"),
                                       PIECE("01"),
                                       PIECE(""),
                                       PIECE("9223372036854775807"),
                                       PIECE("-9223372036854775808"),
                                       PIECE("9223372036854775808"),
                                       PIECE("2000")};
static const struct piece scores[] = {PIECE("0"),    PIECE("1"),   PIECE("2"),     PIECE("3"),   PIECE("-1.5"),
                                      PIECE("2"),    PIECE("1e3"), PIECE("inf"),   PIECE("-0"),  PIECE("1700000000123"),
                                      PIECE("-inf"), PIECE("2.5"), PIECE("1e400"), PIECE("nan"), PIECE("x"),
                                      PIECE("")};
/* Of ranges: with a bracket the bound itself is left out. */
static const struct piece bounds[] = {PIECE("0"),    PIECE("1"),    PIECE("(1"),   PIECE("2"),    PIECE("(2"),
                                      PIECE("-inf"), PIECE("-inf"), PIECE("+inf"), PIECE("+inf"), PIECE("inf"),
                                      PIECE("(-1"),  PIECE("1e3"),  PIECE("("),    PIECE(""),     PIECE("x"),
                                      PIECE("nan"),  PIECE("(inf")};
static const struct piece channels[] = {PIECE("c"), PIECE("quorlock:released:a"), PIECE("quorlock:released:b"),
                                        PIECE("redisson_lock__channel:{a}"), PIECE("redisson_lock__channel:{a}:you")};
/* Other keys than those of locks. */
static const struct piece others[] = {
    PIECE("quorlock:fence:a"),        PIECE("quorlock:fence:b"),        PIECE("quorlock:guard"),
    PIECE("redisson_lock_queue:{a}"), PIECE("redisson_lock_queue:{b}"), PIECE("quorlock:readers:a"),
    PIECE("quorlock:readers:b"),      PIECE("quorlock:intents:a"),      PIECE("quorlock:intents:b")};

/* What scripts can do besides what ours do. */
static const char *const bodies[] = {
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('HGET', KEYS[1], ARGV[1])",
    "return {1.9, -1.9, 'a', true, false, {ok='fine'}, {err='bad'}, nil, 3}",
    "x = 1",
    "return y",
    "KEYS = 1",
    "error('boom')",
    "error({err='X y'})",
    "local a = nil\nreturn a.b",
    "return redis.error_reply(ARGV[1])",
    "return redis.error_reply('-' .. ARGV[1] .. ' there')",
    "return redis.status_reply(ARGV[1])",
    "return redis.call(ARGV[1], KEYS[1])",
    "return redis.call('SET', KEYS[1], 1.5)",
    "redis.call('SET', KEYS[1], '1')\nreturn redis.call('NOSUCH')",
    "return #KEYS + #ARGV",
    "return redis.sha1hex(ARGV[1])",
    "return type(redis.REDIS_VERSION_NUM)",
    "return {redis.REDIS_VERSION_NUM, redis.VALKEY_VERSION_NUM}",
    "return {redis.pcall('MSETEX', 2, KEYS[1], 1.5, 'b', ARGV[1], 'NX', 'PX', 50), redis.pcall('PTTL', KEYS[1])}",
    "local why = redis.pcall('MSETEX', 1, KEYS[1], 'x', 'PX', ARGV[1])\nreturn type(why) == 'table' and why.err",
    "return redis.acl_check_cmd('MSETEX', '1', KEYS[1], 'v')",
    "return redis.call('TIME')",
    "return redis.call('PUBLISH', 'c', ARGV[1])",
    "return {redis.pcall('SUBSCRIBE', 'c')}",
    "return tostring(redis.call('GET', KEYS[1]))",
    "for i = 1, 3 do redis.call('INCR', KEYS[1]) end\nreturn redis.call('GET', KEYS[1])",
    "return {{{}}, {a = 1}}",
    "return {2^53, -0.5}",
    "return",
    "return pcall(redis.call, 'NOSUCH')",
    "local good, why = pcall(redis.call, 'GET')\nreturn {err = why}",
    "local why = redis.pcall('LPUSH', KEYS[1], 'x')\nreturn type(why) == 'table' and {err = why.err, ok = 'no'} or why",
    "return redis.acl_check_cmd('SET', KEYS[1], 'v')",
    "return redis.acl_check_cmd('TIME')",
    "return redis.acl_check_cmd('NOSUCH')",
    "return redis.acl_check_cmd()",
    "return redis.call('SET', KEYS[1])",
    "return redis.call()",
    "return redis.call({})",
    "return redis.pcall('HSCAN', KEYS[1], '0')",
    "return redis.pcall('PUBSUB', 'NUMSUB', 'c')",
    "return redis.pcall('PUBSUB', 'NUMPAT')",
    "local all = redis.pcall('MGET', KEYS[1], 'b', 'none'); return {all[1], all[2] or 'nil', all[3] or 'nil'}",
    "return string.format('%s', redis.call('EXISTS', KEYS[1]))",
    "(",
    "return 1 +",
    "return {redis.call('DEL', KEYS[1]), redis.pcall('SET', KEYS[1], 'x')}",
    "return {redis.pcall('TIME').err == nil, redis.pcall('INCR', KEYS[1])}",
    "return redis.pcall('MULTI')",
    "redis.call('ZADD', KEYS[1], 1.5, 'me', 1700000123, 'u') return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "local why = redis.pcall('ZADD', KEYS[1], ARGV[1], 'me')\nreturn type(why) == 'table' and why.err or why",
    "local score = redis.call('ZSCORE', KEYS[1], 'me')\nreturn {type(score), tonumber(score or 7) + 1}",
    "local n = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', 2)\nreturn {n, redis.call('EXISTS', KEYS[1])}",
    "return {redis.pcall('ZADD', KEYS[1], 2^53, ARGV[1]), redis.pcall('PTTL', KEYS[1]), redis.pcall('TYPE', KEYS[1])}",
};

/* Capital letters stand for what is drawn: key, value (W: no long one), ms, number, field, channel, time, body, hash of
 * a script, score, bound of scores. */
static const struct {
    unsigned weight;
    const char *words;
} templates[] = {
    {6, "SET K V"},
    {6, "SET K V NX PX M"},
    {2, "SET K V XX"},
    {2, "SET K V GET"},
    {1, "SET K V NX GET"},
    {1, "SET K V KEEPTTL"},
    {2, "SET K V EX 1"},
    {2, "SET K V PXAT T"},
    {1, "SET K V PX"},
    {1, "SET K V NX XX"},
    {1, "SET K V PX M EX M"},
    {1, "SET K V px N"},
    {5, "GET K"},
    {1, "GETDEL K"},
    {2, "SETNX K V"},
    {1, "STRLEN K"},
    {1, "APPEND K V"},
    {2, "MSETEX 2 K V K V NX PX M"},
    {1, "MSETEX 1 K V XX PX N"},
    {1, "MSETEX 2 K V K V PXAT T"},
    {1, "MSETEX 3 K V K V K V KEEPTTL"},
    {1, "MSETEX 1 K V NX XX"},
    {1, "MSETEX 0 K V"},
    {1, "MSETEX 1 K"},
    {2, "INCR K"},
    {2, "INCRBY K N"},
    {4, "DEL K"},
    {1, "DEL K K K"},
    {2, "EXISTS K K"},
    {3, "MGET K K"},
    {3, "TYPE K"},
    {6, "PTTL K"},
    {2, "TTL K"},
    {1, "PERSIST K"},
    {4, "PEXPIRE K M"},
    {4, "PEXPIRE K M GT"},
    {1, "EXPIRE K N gt"},
    {1, "PEXPIRE K N"},
    {1, "EXPIRE K N"},
    {2, "PEXPIREAT K T"},
    {1, "EXPIREAT K N"},
    {5, "HSET K F W"},
    {2, "HSET K F W F W"},
    {1, "HSET K F W F"},
    {2, "HGET K F"},
    {2, "HDEL K F F"},
    {1, "HEXISTS K F"},
    {3, "HGETALL K"},
    {1, "HLEN K"},
    {2, "HINCRBY K F N"},
    {2, "HSCAN K 0"},
    {1, "HSCAN K x"},
    {2, "LPUSH K V V"},
    {2, "RPUSH K V"},
    {2, "LRANGE K N N"},
    {1, "LLEN K"},
    {1, "SADD K V V"},
    {1, "SCARD K"},
    {6, "ZADD K S F"},
    {2, "ZADD K S F S F"},
    {1, "ZADD K NX S F"},
    {1, "ZADD K XX CH S F"},
    {1, "ZADD K GT S F"},
    {1, "ZADD K LT CH S W"},
    {1, "ZADD K NX XX S F"},
    {1, "ZADD K NX GT S F"},
    {1, "ZADD K S F S"},
    {2, "ZREM K F F"},
    {2, "ZSCORE K F"},
    {1, "ZCARD K"},
    {2, "ZCOUNT K R R"},
    {3, "ZRANGE K N N"},
    {2, "ZRANGE K 0 -1 WITHSCORES"},
    {1, "ZRANGE K N N REV WITHSCORES"},
    {1, "ZRANGE K R R BYSCORE LIMIT N N"},
    {1, "ZRANGE K R R BYSCORE REV"},
    {1, "ZRANGE K N N LIMIT N N"},
    {1, "ZRANGE K N N V"},
    {2, "ZRANGEBYSCORE K R R"},
    {1, "ZRANGEBYSCORE K R R WITHSCORES LIMIT N N"},
    {1, "ZRANGEBYSCORE K R R LIMIT N"},
    {2, "ZREMRANGEBYSCORE K R R"},
    {3, "SUBSCRIBE C"},
    {1, "SUBSCRIBE C C"},
    {4, "UNSUBSCRIBE C"},
    {3, "UNSUBSCRIBE"},
    {4, "PUBLISH C V"},
    {2, "PUBSUB NUMSUB C C"},
    {1, "PUBSUB NUMPAT"},
    {3, "PING"},
    {2, "PING V"},
    {1, "PING V V"},
    {3, "TIME"},
    {1, "TIME V"},
    {1, "CLIENT SETNAME F"},
    {1, "CLIENT SETNAME V V"},
    {1, "CLIENT GETNAME"},
    {1, "CLIENT"},
    {1, "CLIENT NOSUCH V"},
    {1, "CLIENT KILL TYPE normal SKIPME yes"},
    {1, "CLIENT KILL TYPE pubsub"},
    {1, "CLIENT KILL TYPE normal SKIPME no"},
    {1, "CLIENT KILL TYPE V"},

    {1, "CLIENT KILL TYPE normal SKIPME"},
    {1, "CLIENT KILL ID 99999999 ADDR 0.0.0.0:0"},
    {2, "HELLO 3"},
    {1, "HELLO 2"},
    {1, "HELLO N"},
    {1, "HELLO"},
    {3, "CLIENT TRACKING ON OPTIN NOLOOP"},
    {1, "CLIENT TRACKING ON OPTIN"},
    {1, "CLIENT TRACKING ON"},
    {1, "CLIENT TRACKING off"},
    {1, "CLIENT TRACKING V"},
    {1, "CLIENT TRACKING ON V"},
    {6, "CLIENT CACHING YES"},
    {1, "CLIENT CACHING no"},
    {1, "CLIENT CACHING V"},
    {1, "FLUSHALL"},
    {4, "MULTI"},
    {6, "EXEC"},
    {2, "DISCARD"},
    {2, "SELECT 0"},
    {1, "SELECT 1"},
    {1, "SELECT N"},
    {1, "FLUSHDB"},
    {1, "FLUSHALL V"},
    {1, "SCRIPT FLUSH"},
    {1, "SCRIPT FLUSH V"},
    {2, "SCRIPT EXISTS H H V"},
    {4, "SCRIPT LOAD B"},
    {2, "SCRIPT NOSUCH"},
    {12, "EVAL B 1 K V"},
    {2, "EVAL B N K V"},
    {1, "EVAL B"},
    {3, "EVALSHA H 1 K F"},
    {2, "EVALSHA H N K F"},
    {1, "EVALSHA V 0"},
    {1, "NOSUCH V K"},
    {1, "GET"},
    {1, "CONFIG GET maxmemory-policy"},
    {1, "CLIENT ID V"},
};

static uint64_t below(struct draw *draw, uint64_t n)
{
    return rng_below(&draw->rng, n);
}

static void piece(struct draw *draw, struct bytes *out, const struct piece *pieces, size_t n)
{
    const struct piece *drawn = &pieces[below(draw, n)];

    bytes_word(out, drawn->text, drawn->length);
}
#define DRAW_PIECE(draw, out, pieces) piece(draw, out, pieces, LENGTH(pieces))

static const char *key_of(struct draw *draw)
{
    return draw_keys[below(draw, DRAW_KEYS)];
}

static const struct dialect_script *choose_script(struct draw *draw)
{
    const struct dialect *dialect = below(draw, 2) == 0 ? &dialect_plain : &dialect_redisson;
    const struct dialect_script *script;

    do script = &dialect->scripts[below(draw, SCRIPTS)];
    while (script->text == NULL);
    return script;
}

static void word(struct draw *draw, struct bytes *out, const char *what, size_t length)
{
    if (length != 1) {
        bytes_word(out, what, length);
        return;
    }
    switch (*what) {
    case 'K':
        if (below(draw, 8) == 0)
            DRAW_PIECE(draw, out, others);
        else
            bytes_text(out, key_of(draw));
        break;
    case 'V': DRAW_PIECE(draw, out, values); break;
    case 'W': piece(draw, out, values, LENGTH(values) - 1); break;
    case 'M': bytes_number(out, below(draw, 5) == 0 ? below(draw, 3) : below(draw, 300)); break;
    case 'N': DRAW_PIECE(draw, out, numbers); break;
    case 'F': DRAW_PIECE(draw, out, fields); break;
    case 'S': DRAW_PIECE(draw, out, scores); break;
    case 'R': DRAW_PIECE(draw, out, bounds); break;
    case 'C': DRAW_PIECE(draw, out, channels); break;
    case 'T': bytes_number(out, draw->wall_ms - 5 + below(draw, 100)); break;
    case 'B': bytes_text(out, bodies[below(draw, LENGTH(bodies))]); break;
    case 'H': bytes_text(out, choose_script(draw)->sha); break;
    default: bytes_word(out, what, length);
    }
}

static void template(struct draw *draw, struct bytes *out)
{
    unsigned total = 0, at;
    size_t i = 0, n = 1;
    const char *words;

    for (size_t k = 0; k < LENGTH(templates); k++) total += templates[k].weight;
    for (at = (unsigned)below(draw, total); at >= templates[i].weight; i++) at -= templates[i].weight;
    words = templates[i].words;
    for (const char *p = words; *p != '\0'; p++) n += *p == ' ';
    bytes_command(out, n);
    for (; n > 0; n--) {
        size_t length = strcspn(words, " ");

        word(draw, out, words, length);
        words += length + (words[length] == ' ');
    }
}

/* ---- what the library sends ---- */

static void fill_guard(struct draw *draw, struct guard *guard)
{
    static const char *const sets[] = {"set", "set", "set", "other"};
    struct model_value value;
    bool there = model_look(draw->model, "quorlock:guard", 14, draw->wall_ms * 1000, &value);

    guard_init(guard, (uint32_t)below(draw, 3), 3, below(draw, 8) == 0 ? 60 : 50, sets[below(draw, 4)], true);
    guard_meet(guard, draw->ids[0], draw->ids[1]);
    if (there && value.type == MODEL_STRING && below(draw, 8) != 0)
        snprintf(guard->seen, sizeof(guard->seen), "%.*s", (int)value.owner_length, value.owner);
    else
        snprintf(guard->seen, sizeof(guard->seen), "another");
}

/* Sorted, each once. */
static size_t choose_keys(struct draw *draw, struct node_key *keys)
{
    size_t n = 0;

    for (size_t i = 0; i < DRAW_KEYS && n < 3; i++) {
        if (below(draw, 3) == 0) keys[n++] = (struct node_key){draw_keys[i], strlen(draw_keys[i])};
    }
    if (n == 0) keys[n++] = (struct node_key){draw_keys[0], strlen(draw_keys[0])};
    return n;
}

static void request(struct draw *draw, struct bytes *out)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_ACQUIRE, OP_ACQUIRE, OP_EXTEND,  OP_EXTEND,   OP_RELEASE,  OP_RELEASE,
                                  OP_PEEK,    OP_BREAK,   OP_REPAIR,  OP_RAISE,   OP_ACQUIRE,  OP_EXTEND,   OP_RELEASE,
                                  OP_PEEK,    OP_ACQUIRE, OP_EXTEND,  OP_RELEASE, OP_MAY_KILL, OP_BOOTSTRAP};
    static const char *const waiters[] = {"me", "x:1", "other"};
    const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};
    const struct piece *owner = &values[below(draw, below(draw, 4) == 0 ? LENGTH(values) - 1 : 3)];
    struct node_key keys[3];
    struct node_request sent = {.op = ops[below(draw, LENGTH(ops))],
                                .explain = below(draw, 2) == 0,
                                .silent = below(draw, 4) == 0,
                                .if_deleted = below(draw, 4) == 0,
                                .keys = keys,
                                .owner = owner->text,
                                .owner_length = owner->length,
                                .lease_ms = (uint32_t)below(draw, 200),
                                .fenced = below(draw, 2) == 0,
                                .fence = below(draw, 3) == 0 ? below(draw, 40) : 0,
                                .fence_ttl_ms = below(draw, 3) == 0 ? 1 + below(draw, 300) : 0,
                                .force = below(draw, 3) == 0,
                                .closes = below(draw, 4) == 0,
                                .longest_ms = (uint32_t)below(draw, 90)};
    size_t which = below(draw, 2), shares = below(draw, 2), waiter = below(draw, 3);
    uint32_t whole_sent = below(draw, 3) == 0 ? 0 : UINT32_MAX;
    struct guard guard;

    sent.waiter = waiters[waiter];
    sent.waiter_length = strlen(waiters[waiter]);
    sent.waited_us = below(draw, 400) * UINT64_C(1000);
    if (shares == 0 && which == 0) {
        sent.shared = below(draw, 8);
        if (below(draw, 4) == 0) sent.op = OP_INTEND;
        if (sent.op == OP_INTEND && below(draw, 3) == 0) sent.lease_ms = 0;
    }
    sent.n_keys = sent.op == OP_BREAK ? 1 : choose_keys(draw, keys);
    if (sent.op == OP_BREAK) keys[0] = (struct node_key){draw_keys[0], 1};
    fill_guard(draw, &guard);
    (void)dialects[which]->build(out, &sent, &whole_sent, &guard);
}

/* Requests of one turn, each for a key of its own. */
static void batch(struct draw *draw, struct bytes *out)
{
    const struct dialect *dialect = below(draw, 2) == 0 ? &dialect_plain : &dialect_redisson;
    struct dialect_batch batch = {.lease_ms = 1 + (uint32_t)below(draw, 200),
                                  .fenced = below(draw, 2) == 0,
                                  .fence_ttl_ms = 1 + below(draw, 300)};
    uint32_t whole_sent = below(draw, 3) == 0 ? 0 : UINT32_MAX;
    struct guard guard;

    bytes_init(&batch.keys, out->alloc, out->limit);
    bytes_init(&batch.owners, out->alloc, out->limit);
    bytes_init(&batch.numbers, out->alloc, out->limit);
    for (size_t i = 0; i < DRAW_KEYS; i++) {
        if (below(draw, 4) == 0) continue;
        batch.letters[batch.n++] = "aaeersd"[below(draw, 7)];
        bytes_text(&batch.keys, draw_keys[i]);
        piece(draw, &batch.owners, values, below(draw, 4) == 0 ? LENGTH(values) - 1 : 3);
        if (batch.fenced) bytes_number(&batch.numbers, below(draw, 3) == 0 ? below(draw, 40) : 0);
    }
    fill_guard(draw, &guard);
    if (batch.n > 0) dialect->build_batch(out, &batch, &whole_sent, &guard);
    bytes_clear(&batch.keys);
    bytes_clear(&batch.owners);
    bytes_clear(&batch.numbers);
}

static void ask_guard(struct draw *draw, struct bytes *out)
{
    struct guard guard;

    fill_guard(draw, &guard);
    if (below(draw, 4) == 0)
        guard_look(&guard, out);
    else
        guard_ask(&guard, out);
}

static void ask_rights(struct draw *draw, struct bytes *out)
{
    const struct dialect *dialect = below(draw, 2) == 0 ? &dialect_plain : &dialect_redisson;
    size_t n = 0;

    while (dialect->commands[n] != NULL) n++;
    bytes_command(out, 3 + n);
    bytes_text(out, "EVAL");
    bytes_word(out, script_rights, sizeof(script_rights) - 1);
    bytes_text(out, "0");
    for (size_t i = 0; i < n; i++) bytes_text(out, dialect->commands[i]);
}

/* One of our scripts with words that it does not expect. */
static void nonsense(struct draw *draw, struct bytes *out)
{
    static const char *const firsts[] = {"1", "1", "2", "3", "0", "-1", "x", ""};
    const struct dialect_script *script = choose_script(draw);
    size_t n_keys = 1 + below(draw, 3), n_args = below(draw, 8);

    bytes_command(out, 3 + n_keys + n_args);
    bytes_text(out, "EVAL");
    bytes_word(out, script->text, script->length);
    bytes_number(out, n_keys);
    for (size_t i = 0; i < n_keys; i++) word(draw, out, "K", 1);
    /* The first is the number of locks: a huge one would never end. */
    if (n_args > 0) bytes_text(out, firsts[below(draw, LENGTH(firsts))]);
    for (size_t i = 1; i < n_args; i++) word(draw, out, i % 2 == 0 ? "N" : "V", 1);
}

/* What a session does that wants to hear of changes: the command behind is the caller's. */
static void track(struct draw *draw, struct bytes *out)
{
    bytes_texts(out, (const char *const[]){"HELLO", "3", NULL});
    bytes_texts(
        out, (const char *const[]){"CLIENT", "TRACKING", "ON", "OPTIN", below(draw, 8) == 0 ? NULL : "NOLOOP", NULL});
    bytes_texts(out, (const char *const[]){"CLIENT", "CACHING", "YES", NULL});
}

void draw_command(struct draw *draw, struct bytes *out)
{
    if (below(draw, 8) == 0) track(draw, out);
    switch (below(draw, 16)) {
    case 0: ask_guard(draw, out); break;
    case 1: nonsense(draw, out); break;
    case 2:
        if (below(draw, 4) == 0)
            ask_rights(draw, out);
        else
            template(draw, out);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
    case 7: request(draw, out); break;
    case 8: batch(draw, out); break;
    default: template(draw, out);
    }
}
