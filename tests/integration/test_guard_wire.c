/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_guard_wire.c - the restart guard of one node, against a real server that restarts, forgets and changes
 */
#include <event2/event.h>
#include <quorlock/quorlock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "probe.h"

#define SHORT_MS 1500 /* a max_lease that a test can sit out, and a slow machine does not miss */
#define SHORT_US 1500000u

static struct cluster cluster;
static struct event_base *base;

static int setup(void **state)
{
    struct event_config *config = event_config_new();

    (void)state;
    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base = event_base_new_with_config(config);
    event_config_free(config);
    cluster_start(&cluster, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cluster_end(&cluster);
    event_base_free(base);
    return 0;
}

static void assert_tells(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" without \"%s\"", text, part);
}

/* Connected to the one server, and on that level. */
static void begin(struct probe *probe, uint32_t max_lease_ms, enum node_level level)
{
    probe_open(probe, base, cluster.servers[0].address);
    probe->config.max_lease_ms = max_lease_ms;
    probe_connect(probe);
    probe_await(probe, level);
}

/* A guard without quarantine, as an operator writes it. */
static void bootstrap(uint32_t max_lease_ms)
{
    struct probe probe;
    struct node_request request = {.op = NODE_BOOTSTRAP, .lease_ms = max_lease_ms};

    probe_open(&probe, base, cluster.servers[0].address);
    probe.config.guard = QUORLOCK_GUARD_OFF;
    probe_connect(&probe);
    probe_await(&probe, NODE_READY);
    assert_int_equal(probe_ask(&probe, &request).reply.outcome, NODE_YES);
    probe_close(&probe);
}

/* ---- quarantine ---- */

static void test_first_contact(void **state)
{
    struct probe first, second;
    char guard[TEXT_SIZE], wanted[TEXT_SIZE];

    (void)state;
    uint64_t before_us = clock_us();
    begin(&first, SHORT_MS, NODE_QUARANTINED);
    assert_int_equal(first.generation, 1);
    assert_int_equal(first.fault, NODE_FAULT_NONE);
    assert_tells(first.why, "quarantined for 1.");
    assert_tells(first.why, "no guard yet: first contact waits one max_lease; 'quorlock bootstrap'");
    assert_tells(first.logged, "no guard yet");
    assert_true(node_quarantined_until_us(first.node) >= before_us + SHORT_US);
    assert_int_equal(node_max_lease_ms(first.node), SHORT_MS);

    /* Whoever comes second finds the same quarantine, though not its reason, and adopts the max_lease. */
    begin(&second, 0, NODE_QUARANTINED);
    assert_tells(second.why, "it restarted, or is new, and may have lost its memory");
    assert_int_equal(node_max_lease_ms(second.node), SHORT_MS);
    assert_string_equal(node_run_id(first.node), node_run_id(second.node));

    /* Requests are taken meanwhile, and the connection stays. */
    assert_int_equal(probe_do(&first, NODE_REPAIR, "me").reply.outcome, NODE_YES);
    assert_int_equal(probe_do(&first, NODE_EXTEND, "me").reply.outcome, NODE_YES);
    probe_await(&first, NODE_READY);
    assert_true(clock_us() >= before_us + SHORT_US);
    assert_int_equal(first.generation, 1);
    assert_int_equal(first.levels, 2);
    assert_int_equal(node_quarantined_until_us(first.node), 0);
    assert_string_equal(node_why(first.node), "");
    probe_await(&second, NODE_READY);
    probe_close(&first);
    probe_close(&second);

    /* From then on nobody waits. The key has no expiry. */
    begin(&first, SHORT_MS, NODE_READY);
    assert_int_equal(first.levels, 1);
    server_value(&cluster.servers[0], "quorlock:guard", guard, sizeof(guard));
    snprintf(wanted, sizeof(wanted), "1|3|s|%d|%s|", SHORT_MS, node_run_id(first.node));
    assert_memory_equal(guard, wanted, strlen(wanted));
    assert_int_equal(server_pttl(&cluster.servers[0], "quorlock:guard"), -1);
    probe_close(&first);
}

static void test_restart(void **state)
{
    struct probe probe;

    (void)state;
    bootstrap(SHORT_MS);
    begin(&probe, SHORT_MS, NODE_READY);
    assert_int_equal(probe_do(&probe, NODE_ACQUIRE, "me").reply.outcome, NODE_YES);
    /* With its memory or without: nobody can know what the last moments held. */
    server_restart(&cluster.servers[0]);
    probe_await(&probe, NODE_QUARANTINED);
    assert_tells(probe.why, "it restarted and may have lost its memory");
    assert_int_equal(probe.generation, 2);
    /* A holder need not drop its lock for that. */
    assert_int_equal(probe_do(&probe, NODE_EXTEND, "me").reply.outcome, NODE_YES);
    probe_await(&probe, NODE_READY);
    assert_int_equal(probe.generation, 2);

    server_wipe(&cluster.servers[0]);
    probe_await(&probe, NODE_QUARANTINED);
    assert_tells(probe.why, "no guard yet");
    assert_int_equal(probe_do(&probe, NODE_EXTEND, "me").reply.outcome, NODE_MISSING);
    probe_await(&probe, NODE_READY);
    assert_int_equal(probe.generation, 3);
    probe_close(&probe);
}

/* A turn as a replica may have cost it keys, though the process is the same. */
static void test_role_flip(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe before, probe;

    (void)state;
    bootstrap(SHORT_MS);
    begin(&before, SHORT_MS, NODE_READY);
    server_do(server, "REPLICAOF 127.0.0.1 1");
    server_do(server, "REPLICAOF NO ONE");
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_string_equal(node_run_id(before.node), node_run_id(probe.node));
    assert_tells(probe.why, "it restarted and may have lost its memory");
    /* The live connection of before learns it with its next script, not by a plain acquire. */
    unsigned levels = before.levels;
    assert_int_equal(probe_do(&before, NODE_EXTEND, "me").reply.fault, NODE_FAULT_GUARD);
    probe_await_after(&before, NODE_QUARANTINED, levels);
    probe_close(&before);
    probe_close(&probe);
}

/* What strict sees at once and connection only with the next renewal, release or reconnection. */
static void test_flush(void **state)
{
    struct probe lax, strict;

    (void)state;
    bootstrap(SHORT_MS);
    begin(&lax, SHORT_MS, NODE_READY);
    probe_open(&strict, base, cluster.servers[0].address);
    strict.config.guard = QUORLOCK_GUARD_STRICT;
    probe_connect(&strict);
    probe_await(&strict, NODE_READY);
    assert_int_equal(probe_do(&strict, NODE_ACQUIRE, "me").reply.outcome, NODE_YES);
    assert_int_equal(probe_do(&strict, NODE_ACQUIRE, "other").reply.outcome, NODE_OTHER);

    server_do(&cluster.servers[0], "FLUSHALL");
    assert_int_equal(probe_do(&lax, NODE_ACQUIRE, "lax").reply.outcome, NODE_YES);
    server_do(&cluster.servers[0], "DEL key");
    struct answer answer = probe_do(&strict, NODE_ACQUIRE, "strict");
    assert_int_equal(answer.reply.outcome, NODE_ERROR);
    assert_int_equal(answer.reply.fault, NODE_FAULT_GUARD);
    assert_tells(answer.error, "the guard changed or is gone");
    assert_false(server_has(&cluster.servers[0], "key"));
    probe_await(&strict, NODE_QUARANTINED);
    assert_tells(strict.why, "no guard yet");

    assert_int_equal(probe_do(&strict, NODE_REPAIR, "strict").reply.outcome, NODE_YES);
    /* A release goes through and tells what it saw afterwards. */
    unsigned levels = lax.levels;
    answer = probe_do(&lax, NODE_RELEASE, "strict");
    assert_int_equal(answer.reply.outcome, NODE_YES);
    assert_int_equal(answer.reply.fault, NODE_FAULT_NONE);
    assert_false(server_has(&cluster.servers[0], "key"));
    probe_await_after(&lax, NODE_QUARANTINED, levels);
    probe_await(&lax, NODE_READY);
    probe_await(&strict, NODE_READY);
    probe_close(&lax);
    probe_close(&strict);
}

/* Behind a proxy the connection survives the server. */
static void test_other_life(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe strict;
    char guard[TEXT_SIZE];

    (void)state;
    bootstrap(SHORT_MS);
    probe_open(&strict, base, server->address);
    strict.config.guard = QUORLOCK_GUARD_STRICT;
    probe_connect(&strict);
    probe_await(&strict, NODE_READY);
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    server_do(server, "REPLICAOF 127.0.0.1 1");
    server_do(server, "REPLICAOF NO ONE");
    assert_true(server_holds(server, "quorlock:guard", guard)); /* the key alone does not tell */
    struct answer answer = probe_do(&strict, NODE_ACQUIRE, "me");
    assert_int_equal(answer.reply.fault, NODE_FAULT_GUARD);
    assert_tells(answer.error, "another server than before");
    probe_await(&strict, NODE_QUARANTINED);
    probe_close(&strict);
}

/* A server may bring back the replid of its last life, but never the run_id. */
static void test_run_id_alone(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;
    char guard[TEXT_SIZE];

    (void)state;
    bootstrap(SHORT_MS);
    begin(&probe, SHORT_MS, NODE_READY);
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    char *run_id = strstr(guard, node_run_id(probe.node));
    assert_non_null(run_id);
    *run_id = *run_id == 'a' ? 'b' : 'a';
    server_do(server, "SET quorlock:guard %s", guard);
    probe_close(&probe);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_tells(probe.why, "it restarted and may have lost its memory");
    probe_close(&probe);
}

/* Who has no max_lease of its own gives an emptied node that of the others. */
static void test_expected_max_lease(void **state)
{
    struct probe probe;

    (void)state;
    probe_open(&probe, base, cluster.servers[0].address);
    probe_connect(&probe);
    node_expect_max_lease(probe.node, SHORT_MS);
    assert_int_equal(node_max_lease_ms(probe.node), 0);
    probe_await(&probe, NODE_QUARANTINED);
    assert_int_equal(node_max_lease_ms(probe.node), SHORT_MS);
    /* Here it is as read here; but if it gets lost, the others may have been set up anew since. */
    node_expect_max_lease(probe.node, 20000);
    assert_int_equal(node_max_lease_ms(probe.node), SHORT_MS);
    server_wipe(&cluster.servers[0]);
    unsigned levels = probe.levels;
    probe_await_after(&probe, NODE_QUARANTINED, levels);
    assert_int_equal(node_max_lease_ms(probe.node), 20000);
    probe_close(&probe);
    begin(&probe, 20000, NODE_QUARANTINED);
    probe_close(&probe);
}

/* Nobody has said the max_lease: then no default is written that may be too short. */
static void test_awaited_max_lease(void **state)
{
    struct probe probe;

    (void)state;
    probe_open(&probe, base, cluster.servers[0].address);
    probe_connect(&probe);
    probe_await(&probe, NODE_QUARANTINED);
    assert_true(node_awaits_max_lease(probe.node));
    assert_tells(node_why(probe.node), "too few other nodes answer to tell the max_lease");
    assert_int_equal(node_max_lease_ms(probe.node), 0);
    assert_false(server_has(&cluster.servers[0], "quorlock:guard"));
    unsigned levels = probe.levels;
    node_expect_max_lease(probe.node, SHORT_MS);
    probe_await_after(&probe, NODE_QUARANTINED, levels);
    assert_false(node_awaits_max_lease(probe.node));
    assert_int_equal(node_max_lease_ms(probe.node), SHORT_MS);
    assert_tells(probe.why, "no guard yet: first contact waits one max_lease");
    probe_await(&probe, NODE_READY);
    probe_close(&probe);
}

/* Its clock was set back: nobody waits longer than for the longest lease. */
static void test_clamped(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;
    char guard[TEXT_SIZE];

    (void)state;
    bootstrap(SHORT_MS);
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    assert_string_equal(guard + strlen(guard) - 2, "|0");
    guard[strlen(guard) - 1] = '\0';
    server_do(server, "SET quorlock:guard %s99999999999999", guard);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe.node) <= clock_us() + SHORT_US + SHORT_US);
    probe_await(&probe, NODE_READY);
    probe_close(&probe);
}

/* ---- configuration ---- */

static void test_conflicts(void **state)
{
    struct probe probe;

    (void)state;
    bootstrap(20000);
    for (int what = 0; what < 3; what++) {
        probe_open(&probe, base, cluster.servers[0].address);
        if (what == 0) probe.config.n_nodes = 5;
        if (what == 1) probe.config.set = "blue";
        if (what == 2) probe.config.max_lease_ms = 10000;
        probe_connect(&probe);
        probe_await(&probe, NODE_DOWN);
        assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
        assert_tells(probe.why, "its guard says 3 nodes, set s, max_lease 20000 ms");
        if (what == 0) assert_tells(probe.why, "this client says 5 nodes, set s, any max_lease");
        if (what == 1) assert_tells(probe.why, "this client says 3 nodes, set blue");
        if (what == 2) assert_tells(probe.why, "max_lease 10000 ms: ");
        assert_tells(probe.why, "--reconfigure");
        assert_int_equal(node_generation(probe.node), 0);
        probe_close(&probe);
    }
    /* The same max_lease, or none of one's own, will do. */
    begin(&probe, 20000, NODE_READY);
    probe_close(&probe);
    begin(&probe, 0, NODE_READY);
    assert_int_equal(node_max_lease_ms(probe.node), 20000);
    probe_close(&probe);

    server_do(&cluster.servers[0], "SET quorlock:guard 2|who|knows");
    begin(&probe, 0, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
    assert_tells(probe.why, "\"2|who|knows\"");
    assert_true(server_holds(&cluster.servers[0], "quorlock:guard", "2|who|knows"));
    probe_close(&probe);
}

static void test_eviction(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;

    (void)state;
    server_do(server, "CONFIG SET maxmemory 50mb");
    server_do(server, "CONFIG SET maxmemory-policy volatile-lru");
    begin(&probe, SHORT_MS, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
    assert_tells(probe.why, "maxmemory is 52428800 bytes with maxmemory-policy volatile-lru");
    assert_tells(probe.why, "set maxmemory-policy noeviction, or allow eviction");
    assert_false(server_has(server, "quorlock:guard"));
    probe_close(&probe);

    probe_open(&probe, base, server->address);
    probe.config.max_lease_ms = SHORT_MS;
    probe.config.allow_eviction = true;
    probe_connect(&probe);
    probe_await(&probe, NODE_QUARANTINED);
    assert_tells(probe.logged, "may evict locks");
    probe_close(&probe);

    /* Without a guard nothing is asked. */
    probe_open(&probe, base, server->address);
    probe.config.guard = QUORLOCK_GUARD_OFF;
    probe_connect(&probe);
    probe_await(&probe, NODE_READY);
    probe_close(&probe);
    server_do(server, "CONFIG SET maxmemory-policy noeviction");
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    probe_close(&probe);
}

/* No guard, no vote: and it says why. */
static void test_not_writable(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;

    (void)state;
    server_do(server, "CONFIG SET maxmemory 1");
    begin(&probe, SHORT_MS, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_REFUSED);
    assert_tells(probe.why, "restart guard (key quorlock:guard): ");
    assert_tells(probe.why, "OOM command not allowed");
    server_do(server, "CONFIG SET maxmemory 0");
    probe_await(&probe, NODE_QUARANTINED);
    probe_close(&probe);
    server_do(server, "DEL quorlock:guard");
    server_do(server, "HSET quorlock:guard a b");
    begin(&probe, SHORT_MS, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_FOREIGN);
    probe_close(&probe);
}

/* ---- bootstrap ---- */

static void test_bootstrap(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct node_request request = {.op = NODE_BOOTSTRAP, .lease_ms = 60000};
    struct probe probe, operator;

    (void)state;
    bootstrap(60000);
    begin(&probe, 0, NODE_READY);
    assert_int_equal(probe.levels, 1);
    assert_int_equal(node_max_lease_ms(probe.node), 60000);

    probe_open(&operator, base, server->address);
    operator.config.guard = QUORLOCK_GUARD_OFF;
    probe_connect(&operator);
    probe_await(&operator, NODE_READY);
    struct answer answer = probe_ask(&operator, & request);
    assert_int_equal(answer.reply.outcome, NODE_OTHER);
    assert_true(server_holds(server, "quorlock:guard", answer.holder));

    /* By force: leases of the old length may still run, so it waits that long, and everybody comes anew. */
    request.force = true;
    request.lease_ms = SHORT_MS;
    unsigned levels = probe.levels;
    assert_int_equal(probe_ask(&operator, & request).reply.outcome, NODE_YES);
    assert_int_equal(operator.levels, 1); /* not itself */
    probe_await_after(&probe, NODE_QUARANTINED, levels);
    assert_int_equal(node_max_lease_ms(probe.node), SHORT_MS);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 50000000);
    /* A restart inside of that does not shorten it. */
    levels = probe.levels;
    server_restart(&cluster.servers[0]);
    probe_await_after(&probe, NODE_QUARANTINED, levels);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 50000000);
    probe_close(&probe);
    probe_close(&operator);
}

/* ---- what the caller does ---- */

static void test_expel(void **state)
{
    struct probe probe, twin;
    char address[TEXT_SIZE + 8];

    (void)state;
    bootstrap(SHORT_MS);
    begin(&probe, 0, NODE_READY);
    /* The same server under another name: only the run_id tells. */
    snprintf(address, sizeof(address), "redis://localhost:%u/3", cluster.servers[0].port);
    probe_open(&twin, base, address);
    probe_connect(&twin);
    assert_string_equal(node_run_id(twin.node), "");
    probe_await(&twin, NODE_QUARANTINED); /* another db, another guard */
    assert_string_equal(node_run_id(probe.node), node_run_id(twin.node));
    assert_int_equal(strlen(node_run_id(twin.node)), 40);
    probe_close(&twin);

    unsigned levels = probe.levels;
    node_expel(probe.node, NODE_FAULT_CONFIG, "listed twice");
    assert_int_equal(probe.levels, levels + 1);
    assert_int_equal(probe.level, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
    assert_string_equal(node_why(probe.node), "listed twice");
    node_expel(probe.node, NODE_FAULT_CONFIG, "again"); /* nothing to expel */
    assert_int_equal(probe.levels, levels + 1);
    probe_await(&probe, NODE_READY);
    assert_int_equal(probe.generation, 2);
    probe_close(&probe);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(test_run_id_alone),
        EACH(test_expected_max_lease),
        EACH(test_awaited_max_lease),
        EACH(test_first_contact),
        EACH(test_restart),
        EACH(test_role_flip),
        EACH(test_flush),
        EACH(test_other_life),
        EACH(test_clamped),
        EACH(test_conflicts),
        EACH(test_eviction),
        EACH(test_not_writable),
        EACH(test_bootstrap),
        EACH(test_expel),
    };

    return cmocka_run_group_tests_name("guard on real servers", tests, NULL, NULL);
}
