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

    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
    base = event_base_new_with_config(config);
    event_config_free(config);
    cluster_start(&cluster, 1);
    return 0;
}

static int teardown(void **state)
{
    cluster_end(&cluster);
    event_base_free(base);
    return 0;
}

static void assert_tells(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" without \"%s\"", text, part);
}

/* Connected to the one server, and on that level. */
static void begin(struct probe *probe, uint32_t max_lease_ms, enum node_state state)
{
    probe_open(probe, base, cluster.servers[0].address);
    probe->config.max_lease_ms = max_lease_ms;
    probe_connect(probe);
    probe_await(probe, state);
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

    uint64_t before_us = clock_us();
    begin(&first, SHORT_MS, NODE_QUARANTINED);
    assert_int_equal(first.generation, 1);
    assert_int_equal(first.fault, NODE_FAULT_NONE);
    assert_tells(first.why, "quarantined for 1.");
    assert_tells(first.why, "no guard yet: first contact waits one max_lease; 'quorlock bootstrap'");
    assert_tells(first.logged, "no guard yet");
    assert_true(node_quarantined_until_us(first.node) >= before_us + SHORT_US);

    /* Whoever comes second finds the same quarantine, though not its reason. */
    begin(&second, SHORT_MS, NODE_QUARANTINED);
    assert_tells(second.why, "it restarted, or is new, and may have lost its memory");
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

    bootstrap(SHORT_MS);
    begin(&lax, SHORT_MS, NODE_READY);
    probe_open(&strict, base, cluster.servers[0].address);
    strict.config.guard = QUORLOCK_GUARD_STRICT;
    strict.config.max_lease_ms = SHORT_MS;
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

    bootstrap(SHORT_MS);
    probe_open(&strict, base, server->address);
    strict.config.guard = QUORLOCK_GUARD_STRICT;
    strict.config.max_lease_ms = SHORT_MS;
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

/* Its clock was set back: nobody waits longer than for the longest lease. */
static void test_clamped(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;
    char guard[TEXT_SIZE];

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

/* What is left of the server's quarantine by its own clock. */
static int64_t quarantine_ms(const struct server *server)
{
    struct probe probe;
    struct node_request request = {.op = NODE_PEEK, NODE_KEY("key", 3)};

    probe_open(&probe, base, server->address);
    probe.config.guard = QUORLOCK_GUARD_OFF;
    probe_connect(&probe);
    probe_await(&probe, NODE_READY);
    struct answer answer = probe_ask(&probe, &request);
    assert_true(answer.reply.has_guard);
    probe_close(&probe);
    return answer.reply.quarantine_ms;
}

static void refused(uint32_t max_lease_ms)
{
    struct probe probe;

    begin(&probe, max_lease_ms, NODE_DOWN);
    assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
    probe_close(&probe);
}

/* A guard that knows of shorter leases only may stand where a longer one was forgotten. */
static void test_shorter_guard(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct probe probe;
    char guard[TEXT_SIZE], again[TEXT_SIZE];

    bootstrap(SHORT_MS);
    refused(SHORT_MS / 2);
    assert_int_equal(quarantine_ms(server), -1);
    uint64_t before_us = clock_us();
    refused(600000);
    uint64_t since_ms = (clock_us() - before_us) / 1000;
    int64_t left_ms = quarantine_ms(server);
    assert_true(left_ms > 590000 && left_ms <= 600001 + (int64_t)since_ms);
    /* Never shorter, and no longer for one who comes again: one client must not stop all others for ever. */
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    assert_tells(guard, "|600000");
    refused(300000);
    refused(600000);
    server_value(server, "quorlock:guard", again, sizeof(again));
    assert_string_equal(again, guard);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 590000000);
    probe_close(&probe);
    /* Nor does a restart inside of it forget how long it was to be. */
    server_restart(&cluster.servers[0]);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 590000000);
    probe_close(&probe);
    /* One that is longer yet. */
    refused(1200000);
    assert_true(quarantine_ms(server) > 1190000);
}

/* Also where a restart was not seen by anybody else yet. */
static void test_shorter_guard_of_a_lost_life(void **state)
{
    struct probe probe;
    char guard[TEXT_SIZE], again[TEXT_SIZE];

    bootstrap(SHORT_MS);
    server_restart(&cluster.servers[0]);
    refused(600000);
    server_value(&cluster.servers[0], "quorlock:guard", guard, sizeof(guard));
    refused(600000);
    server_value(&cluster.servers[0], "quorlock:guard", again, sizeof(again));
    assert_string_equal(again, guard);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 590000000);
    probe_close(&probe);
}

static void test_conflicts(void **state)
{
    struct probe probe;

    bootstrap(20000);
    begin(&probe, 20000, NODE_READY);
    probe_close(&probe);
    for (int what = 0; what < 4; what++) {
        probe_open(&probe, base, cluster.servers[0].address);
        if (what == 0) probe.config.n_nodes = 5;
        if (what == 1) probe.config.set = "blue";
        probe.config.max_lease_ms = what == 2 ? 10000 : 20000;
        if (what == 3) probe.config.max_lease_ms = 0; /* which is 30 s, and is compared like any other */
        probe_connect(&probe);
        probe_await(&probe, NODE_DOWN);
        assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
        assert_tells(probe.why, "its guard says 3 nodes, set s, max_lease 20000 ms");
        if (what == 0) assert_tells(probe.why, "this client says 5 nodes, set s, max_lease 20000 ms");
        if (what == 1) assert_tells(probe.why, "this client says 3 nodes, set blue");
        if (what == 2) assert_tells(probe.why, "max_lease 10000 ms: ");
        if (what == 3) assert_tells(probe.why, "max_lease 30000 ms: ");
        if (what >= 2)
            assert_tells(probe.why, "(here --max-lease 20s, QUORLOCK_MAX_LEASE=20s or max_lease_ms = 20000)");
        if (what == 2) assert_tells(probe.why, "'quorlock bootstrap --reconfigure --max-lease 10s'");
        assert_int_equal(node_generation(probe.node), 0);
        probe_close(&probe);
    }
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

static void operate(struct probe *operator)
{
    probe_open(operator, base, cluster.servers[0].address);
    operator->config.guard = QUORLOCK_GUARD_OFF;
    probe_connect(operator);
    probe_await(operator, NODE_READY);
}

static void test_bootstrap(void **state)
{
    const struct server *server = &cluster.servers[0];
    struct node_request request = {.op = NODE_BOOTSTRAP, .lease_ms = 60000};
    struct probe probe, operator, again;

    bootstrap(60000);
    begin(&probe, 60000, NODE_READY);
    assert_int_equal(probe.levels, 1);

    operate(&operator);
    struct answer answer = probe_ask(&operator, & request);
    assert_int_equal(answer.reply.outcome, NODE_OTHER);
    assert_true(server_holds(server, "quorlock:guard", answer.holder));

    /* The rehearsal disconnects nobody. By force: leases of the old length may still run, so it waits that
     * long, and everybody comes anew, and is refused. */
    request.op = NODE_MAY_KILL;
    assert_int_equal(probe_ask(&operator, & request).reply.outcome, NODE_YES);
    assert_int_equal(probe_do(&probe, NODE_ACQUIRE, "me").reply.outcome, NODE_YES);
    assert_int_equal(probe.levels, 1);
    request.op = NODE_BOOTSTRAP;
    request.force = true;
    request.lease_ms = SHORT_MS;
    unsigned levels = probe.levels;
    answer = probe_ask(&operator, & request);
    assert_int_equal(answer.reply.outcome, NODE_YES);
    assert_true(server_holds(server, "quorlock:guard", answer.holder));
    assert_int_equal(operator.levels, 1); /* not itself */
    probe_await_after(&probe, NODE_DOWN, levels);
    assert_int_equal(probe.fault, NODE_FAULT_CONFIG);
    probe_close(&probe);
    begin(&probe, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 50000000);
    /* Neither a restart inside of that shortens it, nor that it is done once more. */
    levels = probe.levels;
    server_restart(&cluster.servers[0]);
    probe_await_after(&probe, NODE_QUARANTINED, levels);
    assert_true(node_quarantined_until_us(probe.node) > clock_us() + 50000000);
    probe_close(&probe);
    probe_close(&operator);
    operate(&operator);
    assert_int_equal(probe_ask(&operator, & request).reply.outcome, NODE_YES);
    begin(&again, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(again.node) > clock_us() + 50000000);
    probe_close(&again);
    /* What another node was set up for counts as well. */
    request.longest_ms = 600000;
    assert_int_equal(probe_ask(&operator, & request).reply.outcome, NODE_YES);
    begin(&again, SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(again.node) > clock_us() + 590000000);
    probe_close(&again);
    probe_close(&operator);
}

/* ---- what the caller does ---- */

static void test_expel(void **state)
{
    struct probe probe, twin;
    char address[TEXT_SIZE + 8];

    bootstrap(SHORT_MS);
    begin(&probe, SHORT_MS, NODE_READY);
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
    assert_int_equal(probe.state, NODE_DOWN);
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
        EACH(test_run_id_alone),  EACH(test_shorter_guard), EACH(test_shorter_guard_of_a_lost_life),
        EACH(test_first_contact), EACH(test_restart),       EACH(test_role_flip),
        EACH(test_flush),         EACH(test_other_life),    EACH(test_clamped),
        EACH(test_conflicts),     EACH(test_eviction),      EACH(test_not_writable),
        EACH(test_bootstrap),     EACH(test_expel),
    };

    return cmocka_run_group_tests_name("guard on real servers", tests, NULL, NULL);
}
