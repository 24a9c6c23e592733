/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_guard_wire.c - the restart guard of one node, against a real server that restarts, forgets and changes
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "probe.h"

#define SHORT_MS 1500 /* a max_lease that a test can sit out, and a slow machine does not miss */
#define SHORT_US 1500000u

/* The parts of a guard, see guard_text.lua. */
#define PART_RUN_ID      4u
#define PART_TILL        6u
#define PART_HOW         8u
#define PART_MADE        9u
#define PART_WANTED      11u
#define PART_WANTED_TILL 12u
#define GUARD_PARTS_OF_2 13u

/* Connected to the one server, and on that level. */
static struct probe *begin(uint32_t max_lease_ms, enum node_state state)
{
    struct probe *probe = probe_open(SERVER(0)->address);

    probe->config.max_lease_ms = max_lease_ms;
    probe_connect(probe);
    probe_await(probe, state);
    return probe;
}

/* A guard without quarantine, as an admin writes it. */
static void bootstrap(uint32_t max_lease_ms)
{
    struct node_request request = {.op = OP_BOOTSTRAP, .lease_ms = max_lease_ms};
    struct probe *probe = probe_ready(SERVER(0)->address, QUORLOCK_GUARD_OFF);

    assert_int_equal(probe_ask(probe, &request).reply.outcome, OUTCOME_YES);
    probe_close(probe);
}

/* The part of the guard with that number, from 0. */
static void guard_part(const struct server *server, unsigned number, char *ret, size_t size)
{
    char guard[TEXT_SIZE];
    const char *part = guard;

    server_value(server, "quorlock:guard", guard, sizeof(guard));
    for (; number > 0; number--) {
        part = strchr(part, '|');
        assert_non_null(part);
        part++;
    }
    snprintf(ret, size, "%.*s", (int)strcspn(part, "|"), part);
}

static unsigned long long guard_number(const struct server *server, unsigned number)
{
    char part[TEXT_SIZE];

    guard_part(server, number, part, sizeof(part));
    return strtoull(part, NULL, 10);
}

/* Puts another text in the place of one part of the guard. */
static void change_guard(const struct server *server, unsigned number, const char *text)
{
    char guard[TEXT_SIZE] = "", part[TEXT_SIZE / 2];

    for (unsigned i = 0; i < GUARD_PARTS_OF_2; i++) {
        size_t used = strlen(guard);

        guard_part(server, i, part, sizeof(part));
        assert_true(snprintf(guard + used, sizeof(guard) - used, "%s%s", i > 0 ? "|" : "", i == number ? text : part) <
                    (int)(sizeof(guard) - used));
    }
    server_do(server, "SET quorlock:guard %s", guard);
}

/* ---- quarantine ---- */

SERVER_TEST(test_first_contact)
{
    struct probe *first, *second;
    char guard[TEXT_SIZE], wanted[TEXT_SIZE];

    uint64_t before_us = clock_us();
    first = begin(SHORT_MS, NODE_QUARANTINED);
    assert_int_equal(first->generation, 1);
    assert_int_equal(first->fault, FAULT_NONE);
    assert_contains(first->why, "quarantined for 1.");
    assert_contains(first->why, "first contact: it had no guard, and locks may be held");
    assert_contains(first->logged, "first contact: ");
    assert_true(node_quarantined_until_us(first->node) >= before_us + SHORT_US);

    /* A second client finds the same quarantine, and its reason. */
    second = begin(SHORT_MS, NODE_QUARANTINED);
    assert_contains(second->why, "first contact: it had no guard, and locks may be held");
    assert_string_equal(node_run_id(first->node), node_run_id(second->node));

    /* Requests are accepted meanwhile, and the connection stays. */
    assert_int_equal(probe_do(first, OP_REPAIR, "me").reply.outcome, OUTCOME_YES);
    assert_int_equal(probe_do(first, OP_EXTEND, "me").reply.outcome, OUTCOME_YES);
    probe_await(first, NODE_READY);
    assert_true(clock_us() >= before_us + SHORT_US);
    assert_int_equal(first->generation, 1);
    assert_int_equal(first->levels, 2);
    assert_int_equal(node_quarantined_until_us(first->node), 0);
    assert_string_equal(node_why(first->node), "");
    probe_await(second, NODE_READY);
    probe_close(first);
    probe_close(second);

    /* From then on no client waits. The key has no expiry. */
    first = begin(SHORT_MS, NODE_READY);
    assert_int_equal(first->levels, 1);
    server_value(SERVER(0), "quorlock:guard", guard, sizeof(guard));
    snprintf(wanted, sizeof(wanted), "2|3|s|%d|%s|", SHORT_MS, node_run_id(first->node));
    assert_memory_equal(guard, wanted, strlen(wanted));
    assert_int_equal(server_pttl(SERVER(0), "quorlock:guard"), -1);
}

SERVER_TEST(test_restart)
{
    struct probe *probe;

    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    assert_int_equal(probe_do(probe, OP_ACQUIRE, "me").reply.outcome, OUTCOME_YES);
    /* With its memory or without: its last writes may be lost. */
    server_restart(SERVER(0));
    probe_await(probe, NODE_QUARANTINED);
    assert_contains(probe->why, "it restarted and may have lost its memory");
    assert_int_equal(probe->generation, 2);
    /* A holder need not drop its lock for that. */
    assert_int_equal(probe_do(probe, OP_EXTEND, "me").reply.outcome, OUTCOME_YES);
    probe_await(probe, NODE_READY);
    assert_int_equal(probe->generation, 2);

    server_wipe(SERVER(0));
    probe_await(probe, NODE_QUARANTINED);
    assert_contains(probe->why, "its guard is gone");
    assert_int_equal(probe_do(probe, OP_EXTEND, "me").reply.outcome, OUTCOME_MISSING);
    probe_await(probe, NODE_READY);
    assert_int_equal(probe->generation, 3);
}

/* A server that was a replica meanwhile may have lost keys, though the process is the same. */
SERVER_TEST(test_role_flip)
{
    const struct server *server = SERVER(0);
    struct probe *before, *probe;

    fixture_needs_real_servers();
    bootstrap(SHORT_MS);
    before = begin(SHORT_MS, NODE_READY);
    /* It took no data, but that cannot be told any more. */
    server_do(server, "CONFIG RESETSTAT");
    server_do(server, "REPLICAOF 127.0.0.1 1");
    server_do(server, "REPLICAOF NO ONE");
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_string_equal(node_run_id(before->node), node_run_id(probe->node));
    assert_contains(probe->why, "its replication id changed: it took its memory from another server");
    /* The server tells a connection from before that the new one has written the guard. */
    probe_await(before, NODE_QUARANTINED);
    assert_int_equal(before->generation, 2);
}

/* The server tells of it in front of the first vote that it spoils. */
SERVER_TEST(test_flush_is_told)
{
    struct probe *probe;
    struct answer answer;
    unsigned levels;

    fixture_needs_real_servers();
    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    server_do(SERVER(0), "FLUSHALL");
    answer = probe_do(probe, OP_ACQUIRE, "me");
    assert_int_equal(answer.reply.outcome, OUTCOME_UNKNOWN);
    assert_int_equal(answer.reply.fault, FAULT_GUARD);
    probe_await(probe, NODE_QUARANTINED);
    assert_int_equal(probe->generation, 2);
    assert_contains(probe->why, "its guard is gone");

    /* The client wrote the guard itself, and hears of it all the same. */
    levels = probe->levels;
    server_do(SERVER(0), "DEL quorlock:guard");
    probe_await_after(probe, NODE_QUARANTINED, levels);
    assert_int_equal(probe->generation, 3);
    probe_close(probe);

    /* A guard that is written as it was is not lost, nor is one in a server that loses another database. */
    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    server_do(SERVER(0), "DEL key");
    server_do(SERVER(0), "RENAME quorlock:guard aside");
    server_do(SERVER(0), "RENAME aside quorlock:guard");
    server_do(SERVER(0), "SWAPDB 1 2");
    /* It is looked at behind this request, and before the next. */
    assert_int_equal(probe_do(probe, OP_PEEK, "me").reply.outcome, OUTCOME_MISSING);
    assert_int_equal(probe_do(probe, OP_ACQUIRE, "me").reply.outcome, OUTCOME_YES);
    assert_int_equal(probe->generation, 1);
}

/* How often the node has read the guard again since the statistics were reset. */
static int comparisons(redisContext *other)
{
    static const char field[] = "cmdstat_client|caching:calls=";
    redisReply *reply = redisCommand(other, "INFO commandstats");
    const char *found = strstr(reply->str, field);
    int n = found != NULL ? (int)strtol(found + sizeof(field) - 1, NULL, 10) : 0;

    freeReplyObject(reply);
    return n;
}

static void other_does(redisContext *other, const char *format, int number)
{
    redisReply *reply = redisCommand(other, format, number);

    assert_non_null(reply);
    assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

/* A full table of tracked keys makes a server tell of changes that were none. */
SERVER_TEST(test_full_table_is_no_loss)
{
    const struct server *server = SERVER(0);
    redisContext *other;
    struct probe *probe;

    fixture_needs_real_servers();
    other = redisConnect("127.0.0.1", server->port);
    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    assert_int_equal(probe_do(probe, OP_ACQUIRE, "me").reply.outcome, OUTCOME_YES);
    other_does(other, "CONFIG RESETSTAT", 0);
    other_does(other, "CONFIG SET tracking-table-max-keys 1", 0);
    other_does(other, "CLIENT TRACKING ON", 0);
    for (int i = 0; i < 1000 && comparisons(other) < 8; i++) {
        other_does(other, "SETEX other%d 9 x", i);
        other_does(other, "GET other%d", i);
        assert_int_equal(probe_do(probe, OP_EXTEND, "me").reply.outcome, OUTCOME_YES);
    }
    assert_true(comparisons(other) >= 8);
    assert_int_equal(probe->generation, 1);
    assert_int_equal(probe->levels, 1);
    other_does(other, "CONFIG SET tracking-table-max-keys 1000000", 0);
    other_does(other, "DEL quorlock:guard", 0);
    probe_await(probe, NODE_QUARANTINED);
    assert_int_equal(probe->generation, 2);
    redisFree(other);
}

/* `strict` sees it at once; `connection`, where the user may not be told, only with the next renewal, release or
 * reconnection. */
SERVER_TEST(test_flush)
{
    struct probe *lax, *strict;
    struct answer answer;
    unsigned levels;

    fixture_needs_real_servers();
    server_do(SERVER(0), "ACL SETUSER default -client|tracking");
    bootstrap(SHORT_MS);
    lax = begin(SHORT_MS, NODE_READY);
    strict = probe_open(SERVER(0)->address);
    strict->config.guard = QUORLOCK_GUARD_STRICT;
    strict->config.max_lease_ms = SHORT_MS;
    probe_connect(strict);
    probe_await(strict, NODE_READY);
    assert_int_equal(probe_do(strict, OP_ACQUIRE, "me").reply.outcome, OUTCOME_YES);
    assert_int_equal(probe_do(strict, OP_ACQUIRE, "other").reply.outcome, OUTCOME_OTHER);

    server_do(SERVER(0), "FLUSHALL");
    assert_int_equal(probe_do(lax, OP_ACQUIRE, "lax").reply.outcome, OUTCOME_YES);
    server_do(SERVER(0), "DEL key");
    answer = probe_do(strict, OP_ACQUIRE, "strict");
    assert_int_equal(answer.reply.outcome, OUTCOME_ERROR);
    assert_int_equal(answer.reply.fault, FAULT_GUARD);
    assert_contains(answer.error, "the guard changed or is gone");
    assert_false(server_has(SERVER(0), "key"));
    probe_await(strict, NODE_QUARANTINED);
    assert_contains(strict->why, "its guard is gone");

    assert_int_equal(probe_do(strict, OP_REPAIR, "strict").reply.outcome, OUTCOME_YES);
    /* A release succeeds, and the change of the guard is noticed after it. */
    levels = lax->levels;
    answer = probe_do(lax, OP_RELEASE, "strict");
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_int_equal(answer.reply.fault, FAULT_NONE);
    assert_false(server_has(SERVER(0), "key"));
    probe_await_after(lax, NODE_QUARANTINED, levels);
    probe_await(lax, NODE_READY);
    probe_await(strict, NODE_READY);
}

/* Behind a proxy the connection survives the server. */
SERVER_TEST(test_other_life)
{
    const struct server *server = SERVER(0);
    struct probe *strict;
    char guard[TEXT_SIZE];
    struct answer answer;

    fixture_needs_real_servers();
    bootstrap(SHORT_MS);
    strict = probe_open(server->address);
    strict->config.guard = QUORLOCK_GUARD_STRICT;
    strict->config.max_lease_ms = SHORT_MS;
    probe_connect(strict);
    probe_await(strict, NODE_READY);
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    server_do(server, "CONFIG RESETSTAT");
    server_do(server, "REPLICAOF 127.0.0.1 1");
    server_do(server, "REPLICAOF NO ONE");
    assert_true(server_holds(server, "quorlock:guard", guard)); /* the key alone does not tell */
    answer = probe_do(strict, OP_ACQUIRE, "me");
    assert_int_equal(answer.reply.fault, FAULT_GUARD);
    assert_contains(answer.error, "another server than before");
    probe_await(strict, NODE_QUARANTINED);
}

/* A server may bring back the replid of its last life, but never the run_id. */
SERVER_TEST(test_run_id_alone)
{
    const struct server *server = SERVER(0);
    struct probe *probe;
    char guard[TEXT_SIZE];
    char *run_id;

    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    server_value(server, "quorlock:guard", guard, sizeof(guard));
    run_id = strstr(guard, node_run_id(probe->node));
    assert_non_null(run_id);
    *run_id = *run_id == 'a' ? 'b' : 'a';
    server_do(server, "SET quorlock:guard %s", guard);
    probe_close(probe);
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_contains(probe->why, "it restarted and may have lost its memory");
}

/* Its clock was set back: no client waits longer than the longest lease. */
SERVER_TEST(test_clamped)
{
    const struct server *server = SERVER(0);
    struct probe *probe;

    bootstrap(SHORT_MS);
    change_guard(server, PART_TILL, "99999999999999");
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe->node) <= clock_us() + SHORT_US + SHORT_US);
    probe_await(probe, NODE_READY);
}

/* ---- configuration ---- */

/* What is left of the server's quarantine by its own clock. */
static int64_t quarantine_ms(const struct server *server)
{
    struct node_request request = {.op = OP_PEEK, NODE_KEY("key", 3)};
    struct probe *probe = probe_ready(server->address, QUORLOCK_GUARD_OFF);
    struct answer answer = probe_ask(probe, &request);

    assert_true(answer.reply.has_guard);
    probe_close(probe);
    return answer.reply.quarantine_ms;
}

static void refused(uint32_t max_lease_ms)
{
    struct probe *probe = begin(max_lease_ms, NODE_DOWN);

    assert_int_equal(probe->fault, FAULT_CONFIG);
    probe_close(probe);
}

static void assert_costs_nothing(uint32_t max_lease_ms)
{
    const struct server *server = SERVER(0);
    char guard[TEXT_SIZE], again[TEXT_SIZE];

    server_value(server, "quorlock:guard", guard, sizeof(guard));
    refused(max_lease_ms);
    server_value(server, "quorlock:guard", again, sizeof(again));
    assert_string_equal(again, guard);
}

/* Of a refused client a longer lease may run only where nothing was declared, and only one that is older than the
 * guard. */
SERVER_TEST(test_shorter_guard)
{
    const struct server *server = SERVER(0);
    struct node_request request = {.op = OP_BOOTSTRAP, .ends = true, .lease_ms = SHORT_MS};
    struct probe *probe, *admin;
    char how[TEXT_SIZE];

    bootstrap(SHORT_MS);
    probe = begin(SHORT_MS, NODE_READY);
    assert_costs_nothing(SHORT_MS / 2);
    assert_costs_nothing(600000);
    assert_int_equal(probe_do(probe, OP_EXTEND, "me").reply.outcome, OUTCOME_MISSING); /* on the same connection */
    assert_int_equal(probe->levels, 1);
    probe_close(probe);

    server_do(server, "DEL quorlock:guard");
    probe_close(begin(SHORT_MS, NODE_QUARANTINED));
    refused(600000);
    assert_int_equal(guard_number(server, PART_WANTED), 600000);
    assert_true(guard_number(server, PART_WANTED_TILL) == guard_number(server, PART_MADE) + 600001);
    assert_true(quarantine_ms(server) > 590000);
    assert_costs_nothing(300000);
    assert_costs_nothing(600000);
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 590000000);
    assert_contains(probe->why, "for a client with a max lease of 10m, until ");
    probe_close(probe);
    /* Nor does a restart inside of it forget how long it was to be. */
    server_restart(SERVER(0));
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 590000000);
    /* One that is longer yet. */
    refused(1200000);
    assert_true(quarantine_ms(server) > 1190000);

    /* Bootstrap ends that, and what a restart takes stays. Who waits sees it soon. */
    admin = probe_ready(server->address, QUORLOCK_GUARD_OFF);
    change_guard(server, PART_TILL, "1");
    assert_int_equal(probe_ask(admin, &request).reply.outcome, OUTCOME_YES);
    guard_part(server, PART_HOW, how, sizeof(how));
    assert_string_equal(how, "declared");
    assert_costs_nothing(1200000);
    probe_await(probe, NODE_READY);

    /* A guard that is older than any lease of that client. */
    change_guard(server, PART_HOW, "found");
    change_guard(server, PART_MADE, "1000");
    assert_costs_nothing(600000);
}

/* A guard of an older version stands for what it says, and nothing more is known of it. */
SERVER_TEST(test_format_1)
{
    const struct server *server = SERVER(0);
    struct probe *probe;
    char run_id[TEXT_SIZE], replid[TEXT_SIZE], how[TEXT_SIZE];

    bootstrap(SHORT_MS);
    guard_part(server, PART_RUN_ID, run_id, sizeof(run_id));
    guard_part(server, PART_RUN_ID + 1, replid, sizeof(replid));
    server_do(server, "SET quorlock:guard 1|3|s|%d|%s|%s|0", SHORT_MS, run_id, replid);
    assert_costs_nothing(SHORT_MS / 2);
    probe_close(begin(SHORT_MS, NODE_READY));
    guard_part(server, PART_HOW, how, sizeof(how));
    assert_string_equal(how, "found");
    refused(600000);
    assert_true(quarantine_ms(server) > 590000);

    server_do(server, "SET quorlock:guard 1|3|s|%d|%s|%s|99999999999999|600000", SHORT_MS, run_id, replid);
    assert_true(quarantine_ms(server) > 600000);
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_contains(probe->why, "it restarted, or is new, and may have lost its memory");
    assert_int_equal(guard_number(server, PART_TILL + 1), 600000);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 590000000);
}

/* Also where no other client has seen a restart yet. */
SERVER_TEST(test_shorter_guard_of_a_lost_life)
{
    struct probe *probe;
    char guard[TEXT_SIZE], again[TEXT_SIZE];

    bootstrap(SHORT_MS);
    server_restart(SERVER(0));
    refused(600000);
    server_value(SERVER(0), "quorlock:guard", guard, sizeof(guard));
    refused(600000);
    server_value(SERVER(0), "quorlock:guard", again, sizeof(again));
    assert_string_equal(again, guard);
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 590000000);
}

/* ---- bootstrap ---- */

SERVER_TEST(test_bootstrap)
{
    const struct server *server = SERVER(0);
    struct node_request request = {.op = OP_BOOTSTRAP, .lease_ms = 60000};
    struct probe *probe, *admin, *again;
    struct answer answer;
    unsigned levels;

    bootstrap(60000);
    probe = begin(60000, NODE_READY);
    assert_int_equal(probe->levels, 1);

    admin = probe_ready(server->address, QUORLOCK_GUARD_OFF);
    answer = probe_ask(admin, &request);
    assert_int_equal(answer.reply.outcome, OUTCOME_OTHER);
    assert_true(server_holds(server, "quorlock:guard", answer.holder));

    /* The rehearsal disconnects no client. By force: leases of the old length may still run, so it waits that
     * long, and each client reconnects, and is refused. */
    request.op = OP_MAY_KILL;
    assert_int_equal(probe_ask(admin, &request).reply.outcome, OUTCOME_YES);
    assert_int_equal(probe_do(probe, OP_ACQUIRE, "me").reply.outcome, OUTCOME_YES);
    assert_int_equal(probe->levels, 1);
    request.op = OP_BOOTSTRAP;
    request.force = true;
    request.lease_ms = SHORT_MS;
    levels = probe->levels;
    answer = probe_ask(admin, &request);
    assert_int_equal(answer.reply.outcome, OUTCOME_YES);
    assert_true(server_holds(server, "quorlock:guard", answer.holder));
    assert_int_equal(admin->levels, 1); /* not itself */
    probe_await_after(probe, NODE_DOWN, levels);
    assert_int_equal(probe->fault, FAULT_CONFIG);
    probe_close(probe);
    probe = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 50000000);
    /* Neither a restart meanwhile nor a second bootstrap shortens it. */
    levels = probe->levels;
    server_restart(SERVER(0));
    probe_await_after(probe, NODE_QUARANTINED, levels);
    assert_true(node_quarantined_until_us(probe->node) > clock_us() + 50000000);
    probe_close(probe);
    probe_close(admin);
    admin = probe_ready(server->address, QUORLOCK_GUARD_OFF);
    assert_int_equal(probe_ask(admin, &request).reply.outcome, OUTCOME_YES);
    again = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(again->node) > clock_us() + 50000000);
    probe_close(again);
    /* The max lease of another node counts as well. */
    request.longest_ms = 600000;
    assert_int_equal(probe_ask(admin, &request).reply.outcome, OUTCOME_YES);
    again = begin(SHORT_MS, NODE_QUARANTINED);
    assert_true(node_quarantined_until_us(again->node) > clock_us() + 590000000);
}

/* The connection that bootstraps may be from before a change of role: the guard is of the server as it is. */
SERVER_TEST(test_bootstrap_after_a_role_flip)
{
    struct node_request request = {.op = OP_BOOTSTRAP, .lease_ms = SHORT_MS};
    struct probe *admin = probe_ready(SERVER(0)->address, QUORLOCK_GUARD_OFF);

    fixture_needs_real_servers();
    server_do(SERVER(0), "REPLICAOF 127.0.0.1 1");
    server_do(SERVER(0), "REPLICAOF NO ONE");
    assert_int_equal(probe_ask(admin, &request).reply.outcome, OUTCOME_YES);
    assert_int_equal(begin(SHORT_MS, NODE_READY)->levels, 1); /* no quarantine before */
}
