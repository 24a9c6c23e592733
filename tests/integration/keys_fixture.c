/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys_fixture.h"

#include "redisson_peer.h"

const struct server *const server = SERVER(0);
uint32_t dialect;
struct probe *probe;

const char *const names[N] = {"a", "b", "c"};
static const struct node_key keys[N] = {{"a", 1}, {"b", 1}, {"c", 1}};

void open_probe(const char *address, uint32_t guard)
{
    probe = probe_open(address);
    probe->config.guard = guard;
    probe->config.dialect = dialect;
    probe_connect(probe);
    probe_await(probe, NODE_READY);
}

static int setup(uint32_t which)
{
    fixture_begin(1);
    dialect = which;
    open_probe(server->address, QUORLOCK_GUARD_OFF);
    return 0;
}

int setup_plain(void **state)
{
    return setup(QUORLOCK_DIALECT_PLAIN);
}

int setup_redisson(void **state)
{
    return setup(QUORLOCK_DIALECT_REDISSON);
}

bool plain(void)
{
    return dialect == QUORLOCK_DIALECT_PLAIN;
}

/* ---- the server, from outside ---- */

void put_lock(const char *name, const char *owner, int32_t lease_ms)
{
    static const char script[] = "redis.call('DEL', KEYS[1])"
                                 "redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3])"
                                 "if ARGV[4] ~= '-1' then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end";

    if (plain())
        server_do(server, "EVAL %s 1 %s SET %s KEEPTTL %d", script, name, owner, (int)lease_ms);
    else
        server_do(server, "EVAL %s 1 %s HSET %s 1 %d", script, name, owner, (int)lease_ms);
}

bool lock_is_of(const char *name, const char *owner)
{
    if (!server_has(server, name)) return false;
    if (plain()) return server_holds(server, name, owner);
    return peer_fields(server, name) == 1 && peer_counts(server, name, owner) == 1;
}

void put(size_t i, const char *owner, int32_t lease_ms)
{
    put_lock(names[i], owner, lease_ms);
}

void put_all(const char *owner, int32_t lease_ms)
{
    for (size_t i = 0; i < N; i++) put(i, owner, lease_ms);
}

void drop(size_t i)
{
    server_do(server, "DEL %s", names[i]);
}

bool has(size_t i)
{
    return server_has(server, names[i]);
}

bool holds(size_t i, const char *owner)
{
    return lock_is_of(names[i], owner);
}

void assert_left(size_t i, int64_t least_ms, int64_t most_ms)
{
    int64_t left_ms = server_pttl(server, names[i]);

    if (left_ms < least_ms || left_ms > most_ms) fail_msg("%s: %lld ms are left", names[i], (long long)left_ms);
}

void count_to(size_t i, const char *counter)
{
    server_do(server, "SET quorlock:fence:%s %s", names[i], counter);
}

void assert_counter(size_t i, const char *wanted)
{
    char key[TEXT_SIZE], got[TEXT_SIZE];

    snprintf(key, sizeof(key), "quorlock:fence:%s", names[i]);
    server_value(server, key, got, sizeof(got));
    assert_string_equal(got, wanted);
}

void assert_counters(const char *wanted)
{
    for (size_t i = 0; i < N; i++) assert_counter(i, wanted);
}

void wipe(void)
{
    server_do(server, "FLUSHALL");
}

long long key_count(void)
{
    return server_ask_number(server, "DBSIZE") - server_ask_number(server, "EXISTS quorlock:clock");
}

/* ---- requests ---- */

struct node_request request_of(enum op op, const char *owner)
{
    return (struct node_request){
        .op = op, .keys = keys, .n_keys = N, .owner = owner, .owner_length = strlen(owner), .lease_ms = LEASE_MS};
}

struct answer ask(enum op op)
{
    struct node_request request = request_of(op, US);

    return probe_ask(probe, &request);
}

struct answer ask_fenced(enum op op, uint64_t fence)
{
    struct node_request request = request_of(op, US);

    request.fenced = true;
    request.fence = fence;
    return probe_ask(probe, &request);
}

void assert_outcome(struct answer answer, enum outcome outcome)
{
    if (answer.reply.outcome != outcome)
        fail_msg("outcome %d fault %d: %s", (int)answer.reply.outcome, (int)answer.reply.fault, answer.error);
}

void assert_fault(struct answer answer, enum fault fault)
{
    assert_outcome(answer, OUTCOME_ERROR);
    if (answer.reply.fault != fault) fail_msg("fault %d: %s", (int)answer.reply.fault, answer.error);
}

void assert_counts(struct answer answer, uint64_t fence)
{
    assert_outcome(answer, OUTCOME_YES);
    assert_int_equal(answer.reply.fence, fence);
}

void assert_held_by(struct answer answer, const char *holder, int64_t least_ms, int64_t most_ms)
{
    assert_outcome(answer, OUTCOME_OTHER);
    assert_string_equal(answer.holder, holder);
    if (answer.reply.ttl_ms < least_ms || answer.reply.ttl_ms > most_ms)
        fail_msg("the holder has %lld ms left", (long long)answer.reply.ttl_ms);
}
