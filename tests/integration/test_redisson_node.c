/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_redisson_node.c - the redisson dialect on one real server: requests that come twice, and short memory
 */
#include "probe.h"
#include "redisson_peer.h"

static struct probe *open_probe(const char *address)
{
    struct probe *probe = probe_open(address);

    probe->config.guard = QUORLOCK_GUARD_OFF;
    probe->config.dialect = QUORLOCK_DIALECT_REDISSON;
    probe_connect(probe);
    probe_await(probe, NODE_READY);
    return probe;
}

/* The same acquire may come twice: the field is set, never counted up. */
static void repeated(void **state)
{
    const struct server *server = SERVER(0);
    struct node_request shorter = {
        .op = NODE_ACQUIRE, NODE_KEY("key", 3), .owner = "u:1", .owner_length = 3, .lease_ms = 50};
    struct answer answer;
    struct probe *probe = open_probe(SERVER(0)->address);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(probe_do(probe, NODE_ACQUIRE, "u:1").reply.outcome, NODE_YES);
        assert_int_equal(peer_counts(server, "key", "u:1"), 1);
    }
    /* Never shorter. */
    assert_int_equal(probe_ask(probe, &shorter).reply.outcome, NODE_YES);
    assert_in_range(server_pttl(server, "key"), 10000, 30000);
    answer = probe_do(probe, NODE_REPAIR, "u:2");
    assert_int_equal(answer.reply.outcome, NODE_OTHER);
    assert_string_equal(answer.holder, "u:1");
    assert_int_equal(probe_do(probe, NODE_EXTEND, "u:2").reply.outcome, NODE_OTHER);
    assert_int_equal(probe_do(probe, NODE_RELEASE, "u:2").reply.outcome, NODE_OTHER);
    assert_int_equal(peer_fields(server, "key"), 1);
    assert_int_equal(probe_do(probe, NODE_RELEASE, "u:1").reply.outcome, NODE_YES);
    assert_int_equal(probe_do(probe, NODE_RELEASE, "u:1").reply.outcome, NODE_MISSING);
    assert_int_equal(probe_do(probe, NODE_EXTEND, "u:1").reply.outcome, NODE_MISSING);
    assert_int_equal(probe_do(probe, NODE_BREAK, "").reply.outcome, NODE_MISSING);
    assert_false(server_has(server, "key"));
}

/* Without memory for lock and counter nothing stays; a release goes through all the same. */
static void no_memory(void **state)
{
    const struct server *server = SERVER(0);
    struct answer answer;
    struct probe *probe = open_probe(SERVER(0)->address);

    for (int fenced = 0; fenced < 2; fenced++) {
        server_do(server, "CONFIG SET maxmemory 1");
        answer = fenced ? probe_fenced(probe, NODE_ACQUIRE, "u:1", 0) : probe_do(probe, NODE_ACQUIRE, "u:1");
        assert_int_equal(answer.reply.outcome, NODE_ERROR);
        assert_int_equal(answer.reply.fault, NODE_FAULT_REFUSED);
        assert_false(server_has(server, "key"));
        assert_false(server_has(server, "quorlock:fence:key"));
        server_do(server, "CONFIG SET maxmemory 0");
    }
    answer = probe_fenced(probe, NODE_ACQUIRE, "u:1", 0);
    assert_int_equal(answer.reply.outcome, NODE_YES);
    assert_int_equal(answer.reply.fence, 1);
    assert_int_equal(probe_fenced(probe, NODE_RAISE, "u:1", 5).reply.fence, 5);
    assert_int_equal(probe_fenced(probe, NODE_RAISE, "u:2", 9).reply.outcome, NODE_OTHER);
    assert_true(server_holds(server, "quorlock:fence:key", "5"));
    server_do(server, "CONFIG SET maxmemory 1");
    assert_int_equal(probe_do(probe, NODE_EXTEND, "u:1").reply.outcome, NODE_YES);
    assert_int_equal(probe_do(probe, NODE_RELEASE, "u:1").reply.outcome, NODE_YES);
    assert_false(server_has(server, "key"));
    assert_int_equal(probe_fenced(probe, NODE_RAISE, "u:1", 9).reply.outcome, NODE_MISSING);
}

/* Whoever may not set an expiry leaves no lock without one, even before anybody releases it. */
static void no_expiry(void **state)
{
    const struct server *server = SERVER(0);
    char address[TEXT_SIZE + 32];
    struct probe *probe;
    struct answer answer;

    server_do(server, "ACL SETUSER bob reset on >sesame ~* &* +@all -pexpire");
    snprintf(address, sizeof(address), "redis://bob:sesame@%s", server->address);
    probe = open_probe(address);
    answer = probe_do(probe, NODE_ACQUIRE, "u:1");
    assert_int_equal(answer.reply.outcome, NODE_ERROR);
    assert_int_equal(answer.reply.fault, NODE_FAULT_AUTH);
    assert_false(server_has(server, "key"));
    server_do(server, "ACL SETUSER bob +pexpire");
    assert_int_equal(probe_do(probe, NODE_ACQUIRE, "u:1").reply.outcome, NODE_YES);
    assert_in_range(server_pttl(server, "key"), 1, 30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_SERVERS(repeated), WITH_SERVERS(no_memory),
                                       WITH_SERVERS(no_expiry)};

    return cmocka_run_group_tests_name("redisson node", tests, NULL, NULL);
}
