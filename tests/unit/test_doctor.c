/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doctor without a server: what facts mean, and how they are read. Every finding is provoked on a real
 * server elsewhere; here are the limits, and what real servers show too seldom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admin/diagnose.h"

#define NODES 3

static struct examine_facts facts[NODES];
static struct diagnose_node nodes[NODES];
static struct diagnose_set set;
static struct diagnosis diagnosis;

static int setup(void **state)
{
    static const char *const names[NODES] = {"a:1", "b:2", "c:3"};

    (void)state;
    for (unsigned i = 0; i < NODES; i++) {
        facts[i] = (struct examine_facts){.reachable = true,
                                          .latency_us = 100,
                                          .loopback = true,
                                          .kind = "Redis",
                                          .version = "7.0.15",
                                          .mode = "standalone",
                                          .role = "master",
                                          .has_memory = true,
                                          .used_memory = 1000000,
                                          .policy = "noeviction",
                                          .has_persistence = true,
                                          .aof = true,
                                          .appendfsync = "always",
                                          .has_clients = true,
                                          .clients = 1,
                                          .maxclients = 100,
                                          .has_clock = true,
                                          .offset_error_us = 50,
                                          .guard = {.state = EXAMINE_GUARD_THERE,
                                                    .n_nodes = NODES,
                                                    .max_lease_ms = 30000,
                                                    .set = "0123456789abcdef"}};
        snprintf(facts[i].run_id, sizeof(facts[i].run_id), "run%u", i);
        nodes[i] = (struct diagnose_node){names[i], NULL, &facts[i]};
    }
    set = (struct diagnose_set){.nodes = nodes, .n_nodes = NODES, .quorum = 2, .set = "0123456789abcdef"};
    diagnosis.room = diagnose_room(NODES);
    diagnosis.findings = calloc(diagnosis.room, sizeof(const struct quorlock_finding *));
    diagnosis.words = calloc(diagnosis.room, sizeof(*diagnosis.words));
    return diagnosis.findings == NULL || diagnosis.words == NULL;
}

static int teardown(void **state)
{
    (void)state;
    free(diagnosis.findings);
    free(diagnosis.words);
    return 0;
}

/* "unsafe eviction b:2; note replicas a:1", in the order of the findings; "" where there are none */
static const char *judged(void)
{
    static char text[4000];
    size_t used = 0;

    diagnose(&set, &diagnosis);
    text[0] = '\0';
    for (size_t i = 0; i < diagnosis.n_findings; i++) {
        const struct quorlock_finding *finding = diagnosis.findings[i];
        static const char *const words[] = {"note", "warning", "unsafe"};

        assert_true(finding->severity >= QUORLOCK_NOTE && finding->severity <= QUORLOCK_UNSAFE);
        assert_true(strlen(finding->text) > 5 && strlen(finding->text) + 1 < DIAGNOSE_TEXT_SIZE);
        assert_true(strlen(finding->remedy) > 5 && strlen(finding->remedy) + 1 < DIAGNOSE_REMEDY_SIZE);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s%s%s", i > 0 ? "; " : "",
                                 words[finding->severity], finding->code, finding->node != NULL ? " " : "",
                                 finding->node != NULL ? finding->node : "");
        assert_true(used < sizeof(text));
    }
    return text;
}

static void assert_first(const char *text, const char *remedy)
{
    (void)judged();
    assert_non_null(strstr(diagnosis.findings[0]->text, text));
    assert_non_null(strstr(diagnosis.findings[0]->remedy, remedy));
}

static void a_sound_set_has_no_finding(void **state)
{
    (void)state;
    assert_string_equal(judged(), "");
    assert_int_equal(diagnose_severity(&diagnosis), QUORLOCK_NOTE);
}

static void the_worst_come_first_and_nodes_in_order(void **state)
{
    (void)state;
    facts[0].replicas = 2;
    facts[1].loopback = false;
    facts[1].aof = false;
    facts[2].aof = false;
    memcpy(facts[2].mode, "cluster", sizeof("cluster"));
    assert_string_equal(judged(),
                        "unsafe cluster c:3; warning persistence b:2; note replicas a:1; note plain-text "
                        "b:2");
    assert_int_equal(diagnose_severity(&diagnosis), QUORLOCK_UNSAFE);
}

static void a_quorum_of_voters_is_needed(void **state)
{
    (void)state;
    facts[0].reachable = false;
    facts[0].role[0] = '\0';
    assert_string_equal(judged(), "warning unreachable a:1");
    facts[1].too_old = true;
    assert_string_equal(judged(), "unsafe no-quorum; warning unreachable a:1; warning version b:2");
    assert_non_null(strstr(diagnosis.findings[0]->text, "only 1 of 3 nodes can vote, 2 are needed"));
    facts[1].reachable = false;
    assert_string_equal(judged(), "unsafe no-quorum; warning unreachable a:1; warning unreachable b:2");
    assert_non_null(strstr(diagnosis.findings[0]->text, "can be reached"));
    set.quorum = 1;
    assert_string_equal(judged(), "warning unreachable a:1; warning unreachable b:2");
    /* An unreachable node may still have told some facts: they are not judged. */
    facts[0].used_memory = facts[0].maxmemory = 1;
    facts[0].refused_rights = 1;
    assert_string_equal(judged(), "warning unreachable a:1; warning unreachable b:2");
}

/* What run -n meets now: a vote that comes later is none. */
static void a_quorum_must_be_had_now(void **state)
{
    (void)state;
    facts[0].guard.quarantine_ms = 12345;
    assert_string_equal(judged(), "warning quarantine a:1");
    facts[1].guard.quarantine_ms = 2345;
    assert_string_equal(judged(), "unsafe no-quorum; warning quarantine a:1; warning quarantine b:2");
    assert_first("only 1 of 3 nodes can vote now, 2 are needed: no lock can be taken for 2.3 s",
                 "by themselves");
    set.quorum = 3;
    assert_first("3 are needed: no lock can be taken for 12.3 s", "by themselves");
    set.quorum = 2;
    facts[1].guard.stale = true;
    assert_first("for 2.3 s from the next contact on", "by themselves");
    facts[1].guard = facts[0].guard = (struct examine_guard){.state = EXAMINE_GUARD_NONE};
    assert_first("only 1 of 3 nodes can vote now", "quorlock bootstrap");
    assert_first("for 30.0 s from the next contact on", "quorlock bootstrap");
    facts[2].guard.max_lease_ms = set.max_lease_ms = 5000;
    assert_first("for 5.0 s from the next contact on", "quorlock bootstrap");
    /* What does not pass by itself has no time. */
    facts[0].guard.state = EXAMINE_GUARD_FOREIGN;
    facts[1].guard.state = EXAMINE_GUARD_UNKNOWN;
    assert_first("only 1 of 3 nodes can vote, 2 are needed: no lock can be taken", "other nodes");
}

static void one_server_under_three_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++) memcpy(facts[i].run_id, "same", sizeof("same"));
    assert_string_equal(judged(), "unsafe same-server b:2; unsafe same-server c:3");
    /* Not knowing who they are makes no two of them one. */
    for (unsigned i = 0; i < NODES; i++) facts[i].run_id[0] = '\0';
    assert_string_equal(judged(), "");
}

static void guards_must_agree(void **state)
{
    (void)state;
    facts[1].guard.max_lease_ms = 20000;
    assert_string_equal(judged(), "unsafe guard-lease b:2");
    set.max_lease_ms = 20000;
    assert_string_equal(judged(), "unsafe guard-lease a:1; unsafe guard-lease c:3");
    set.max_lease_ms = 0;
    facts[1].guard.max_lease_ms = 30000;
    facts[0].guard.n_nodes = 4;
    facts[0].guard.state = EXAMINE_GUARD_NONE;
    assert_string_equal(judged(), "warning guard-missing a:1");
    facts[0].guard.state = EXAMINE_GUARD_THERE;
    assert_string_equal(judged(), "unsafe guard-nodes a:1");
    facts[0].guard.n_nodes = 0;
    assert_string_equal(judged(), "unsafe guard-nodes a:1");
    assert_non_null(strstr(diagnosis.findings[0]->text, "was not finished: it refuses all clients"));
}

static void sets_of_guards(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++) memcpy(facts[i].guard.set, "blue", sizeof("blue"));
    assert_string_equal(judged(), "note guard-set a:1; note guard-set b:2; note guard-set c:3");
    assert_non_null(strstr(diagnosis.findings[0]->remedy, "--set-name blue"));
    set.set = "blue";
    set.named = true;
    assert_string_equal(judged(), "");
    set.set = "red";
    assert_string_equal(judged(), "unsafe guard-set a:1; unsafe guard-set b:2; unsafe guard-set c:3");
    /* Sixteen hex digits are a hash of other addresses, not a name. */
    set.named = false;
    for (unsigned i = 0; i < NODES; i++) memcpy(facts[i].guard.set, "fedcba9876543210", 17);
    assert_string_equal(judged(), "unsafe guard-set a:1; unsafe guard-set b:2; unsafe guard-set c:3");
}

static void limits_of_memory_and_clients(void **state)
{
    (void)state;
    facts[0].maxmemory = 1200000;
    assert_string_equal(judged(), "");
    facts[0].maxmemory = 1111111;
    assert_string_equal(judged(), "warning memory a:1");
    facts[0].maxmemory = UINT64_MAX;
    facts[0].used_memory = UINT64_MAX;
    assert_string_equal(judged(), "warning memory a:1");
    facts[0].maxmemory = 0;
    memcpy(facts[0].policy, "allkeys-lru", sizeof("allkeys-lru"));
    assert_string_equal(judged(), "");
    facts[0].maxmemory = UINT64_MAX;
    facts[0].used_memory = 1;
    assert_string_equal(judged(), "unsafe eviction a:1");
    set.allow_eviction = true;
    assert_string_equal(judged(), "warning eviction a:1");
    facts[0].maxmemory = 0;
    facts[0].maxclients = 4;
    facts[0].clients = 3;
    assert_string_equal(judged(), "");
    facts[0].clients = 4;
    assert_string_equal(judged(), "warning clients a:1");
    facts[0].clients = facts[0].maxclients = UINT32_MAX;
    assert_string_equal(judged(), "warning clients a:1");
}

static void clocks(void **state)
{
    (void)state;
    facts[1].offset_us = 100050;
    assert_string_equal(judged(), "");
    facts[1].offset_us = 100051;
    assert_string_equal(judged(), "warning clock b:2");
    facts[1].offset_us = -100101;
    assert_string_equal(judged(), "warning clock b:2; warning clocks");
    /* A long way there and back says little. */
    facts[1].offset_error_us = 200000;
    assert_string_equal(judged(), "");
    /* The nodes agree with one another: it is ours. */
    for (unsigned i = 0; i < NODES; i++) facts[i].offset_us = -5000000 + (int)i;
    assert_string_equal(judged(), "warning clock");
    /* Short leases bear less. */
    for (unsigned i = 0; i < NODES; i++) facts[i].offset_us = 0;
    facts[1].offset_error_us = 50;
    facts[1].offset_us = 60000;
    assert_string_equal(judged(), "");
    for (unsigned i = 0; i < NODES; i++) facts[i].guard.max_lease_ms = 1000;
    assert_string_equal(judged(), "warning clock b:2; warning clocks");
    /* One node alone cannot tell whose clock it is. */
    set.n_nodes = set.quorum = 1;
    facts[0].guard.n_nodes = 1;
    facts[0].offset_us = INT64_C(-4000000000000000);
    assert_string_equal(judged(), "warning clock a:1");
    facts[0].has_clock = false;
    assert_string_equal(judged(), "");
}

static void rights_and_names(void **state)
{
    (void)state;
    nodes[0].user = "app";
    facts[0].refused_rights = (1u << EXAMINE_RIGHTS) - 1;
    facts[0].refused_names = (1u << EXAMINE_NAMES) - 1;
    assert_string_equal(judged(),
                        "warning rights a:1; warning names a:1; warning names a:1; warning names a:1; "
                        "note rights a:1; note rights a:1; note rights a:1; note names a:1");
    assert_non_null(strstr(diagnosis.findings[0]->text,
                           "user \"app\" may not run INFO, TIME, GET, SET, PTTL, "
                           "PEXPIRE, DEL, EVAL, EVALSHA, SCRIPT LOAD: the node has"));
    assert_string_equal(diagnosis.findings[0]->remedy,
                        "ACL SETUSER app +info +time +get +set +pttl +pexpire +del "
                        "+eval +evalsha +script|load");
    /* Patterns that include the guard were given with care. */
    facts[0].refused_rights = 0;
    facts[0].refused_names = 1u << EXAMINE_LOCK | 1u << EXAMINE_FENCE;
    assert_string_equal(judged(), "note names a:1; note names a:1");
    facts[0].refused_names = 1u << EXAMINE_FENCE;
    assert_string_equal(judged(), "warning names a:1");
}

/* Everything at once, on as many nodes as there can be: there is room for all of it. */
static void there_is_room_for_all(void **state)
{
    struct diagnose_node many[QUORLOCK_NODES_MAX];
    struct diagnosis all = {.room = diagnose_room(QUORLOCK_NODES_MAX)};

    (void)state;
    facts[0] = (struct examine_facts){.reachable = true,
                                      .kind = "Redis",
                                      .version = "1.0",
                                      .too_old = true,
                                      .mode = "standalone",
                                      .role = "master",
                                      .run_id = "same",
                                      .replicas = 9,
                                      .has_memory = true,
                                      .used_memory = 100,
                                      .maxmemory = 100,
                                      .policy = "allkeys-lru",
                                      .has_persistence = true,
                                      .aof = true,
                                      .aof_broken = true,
                                      .appendfsync = "no",
                                      .has_clients = true,
                                      .clients = 10,
                                      .maxclients = 10,
                                      .has_clock = true,
                                      .guard = {.state = EXAMINE_GUARD_THERE,
                                                .n_nodes = 7,
                                                .max_lease_ms = 5,
                                                .set = "fedcba9876543210",
                                                .stale = true,
                                                .quarantine_ms = 6},
                                      .refused_rights = (1u << EXAMINE_RIGHTS) - 1,
                                      .refused_names = (1u << EXAMINE_NAMES) - 1};
    facts[1] = facts[0];
    facts[0].offset_us = 1000000;
    facts[1].offset_us = -1000000;
    for (unsigned i = 0; i < QUORLOCK_NODES_MAX; i++)
        many[i] = (struct diagnose_node){"n", NULL, &facts[i % 2]};
    set = (struct diagnose_set){.nodes = many,
                                .n_nodes = QUORLOCK_NODES_MAX,
                                .quorum = 16,
                                .set = "0123456789abcdef",
                                .max_lease_ms = 9};
    all.findings = calloc(all.room, sizeof(const struct quorlock_finding *));
    all.words = calloc(all.room, sizeof(*all.words));
    assert_non_null(all.findings);
    assert_non_null(all.words);
    diagnose(&set, &all);
    assert_true(all.n_findings > (size_t)20 * QUORLOCK_NODES_MAX);
    assert_true(all.n_findings < all.room);
    free(all.findings);
    free(all.words);
}

/* ---- reading ---- */

static void info(enum examine_section section, const char *text)
{
    facts[0] = (struct examine_facts){0};
    examine_read_info(&facts[0], section, text, strlen(text));
}

static void sections_of_info(void **state)
{
    (void)state;
    info(EXAMINE_SERVER, "# Server\r\nredis_version:6.1.9\r\nredis_mode:cluster\r\nrun_id:ab\r\n");
    assert_string_equal(facts[0].version, "6.1.9");
    assert_string_equal(facts[0].mode, "cluster");
    assert_string_equal(facts[0].run_id, "ab");
    assert_true(facts[0].too_old);
    info(EXAMINE_SERVER, "redis_version:7.2.4\r\nserver_mode:standalone\r\nvalkey_version:8.1.1\r\n");
    assert_string_equal(facts[0].kind, "Valkey");
    assert_string_equal(facts[0].mode, "standalone");
    assert_false(facts[0].too_old);
    info(EXAMINE_SERVER, "redis_version:7.2.4\r\nvalkey_version:7.1.9\r\n");
    assert_true(facts[0].too_old);
    info(EXAMINE_SERVER, "redis_version:6.2.0");
    assert_false(facts[0].too_old);
    info(EXAMINE_SERVER, "redis_version:255.255.255\r\n");
    assert_false(facts[0].too_old);
    info(EXAMINE_SERVER, "redis_version:\x1b[31m7\r\nrun_id:\r\n");
    assert_string_equal(facts[0].version, "?[31m7");
    assert_string_equal(facts[0].run_id, "");
    info(EXAMINE_REPLICATION, "role:slave\r\nmaster_replid:x\r\nconnected_slaves:99999999999\r\n");
    assert_string_equal(facts[0].role, "replica");
    assert_int_equal(facts[0].replicas, UINT32_MAX);
    info(EXAMINE_MEMORY,
         "used_memory:12\r\nused_memory_human:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
    assert_true(facts[0].has_memory);
    assert_int_equal(facts[0].used_memory, 12);
    info(EXAMINE_MEMORY, "used_memory:12\r\nmaxmemory:-1\r\nmaxmemory_policy:noeviction\r\n");
    assert_false(facts[0].has_memory);
    info(EXAMINE_MEMORY,
         "used_memory:99999999999999999999999\r\nmaxmemory:1\r\nmaxmemory_policy:noeviction\r\n");
    assert_false(facts[0].has_memory);
    info(EXAMINE_PERSISTENCE, "aof_enabled:1\r\naof_last_write_status:err\r\n");
    assert_true(facts[0].aof && facts[0].aof_broken);
    info(EXAMINE_PERSISTENCE, "loading:0\r\n");
    assert_false(facts[0].has_persistence);
    info(EXAMINE_CLIENTS, "connected_clients:3\r\n");
    assert_false(facts[0].has_clients);
    info(EXAMINE_CLIENTS, "");
    assert_false(facts[0].has_clients);
}

static enum examine_guard_state read_guard(const char *text)
{
    facts[0] =
        (struct examine_facts){.run_id = "run", .replid = "rep", .has_clock = true, .time_us = 1000000000};
    examine_read_guard(&facts[0], text, strlen(text));
    return facts[0].guard.state;
}

static void the_guard(void **state)
{
    static const char *const foreign[] = {"",
                                          "|",
                                          "1",
                                          "1|3|set|30000|run|rep",
                                          "2|3|set|30000|run|rep|0",
                                          "1|x|set|30000|run|rep|0",
                                          "1|3|set||run|rep|0",
                                          "1|3|set|1|run|rep|",
                                          "1|3|set|1|run|rep|-4",
                                          "1|3|set|1|run|rep|4|5|6",
                                          "1|3|set|1|run|rep|4|",
                                          "1|3|set|4294967296|run|rep|0",
                                          "1|3|set|1|run|rep|99999999999999999999"};
    char longest[700];

    (void)state;
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        assert_int_equal(read_guard(foreign[i]), EXAMINE_GUARD_FOREIGN);
    }
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(read_guard(longest), EXAMINE_GUARD_FOREIGN);

    assert_int_equal(read_guard("1|3|set|30000|run|rep|0"), EXAMINE_GUARD_THERE);
    assert_int_equal(facts[0].guard.n_nodes, 3);
    assert_string_equal(facts[0].guard.set, "set");
    assert_int_equal(facts[0].guard.max_lease_ms, 30000);
    assert_false(facts[0].guard.stale);
    assert_int_equal(facts[0].guard.quarantine_ms, 0);
    read_guard("1|3|set|30000|run|rep|1012000");
    assert_int_equal(facts[0].guard.quarantine_ms, 12000);
    read_guard("1|3|set|30000|run|rep|999999");
    assert_int_equal(facts[0].guard.quarantine_ms, 0);
    /* Further away than a lease: clients cut it. A longer one that it was reconfigured from may be so far away.
     */
    read_guard("1|3|set|30000|run|rep|1050000");
    assert_int_equal(facts[0].guard.quarantine_ms, 30001);
    read_guard("1|3|set|30000|run|rep|1050000|60000");
    assert_int_equal(facts[0].guard.quarantine_ms, 50000);
    read_guard("1|3|set|30000|run|rep|18446744073709551615|60000");
    assert_int_equal(facts[0].guard.quarantine_ms, 60001);
    /* Another life of the server. */
    read_guard("1|3|set|30000|old|rep|0");
    assert_true(facts[0].guard.stale);
    assert_int_equal(facts[0].guard.quarantine_ms, 30001);
    read_guard("1|3|set|30000|run|old|0");
    assert_true(facts[0].guard.stale);
}

static void the_shortest_way_tells_the_clock(void **state)
{
    (void)state;
    facts[0] = (struct examine_facts){0};
    examine_read_time(&facts[0], 5000, 1000, 900); /* ours was set back meanwhile */
    assert_false(facts[0].has_clock);
    examine_read_time(&facts[0], 5000, 1000, 2000);
    assert_true(facts[0].has_clock);
    assert_int_equal(facts[0].offset_us, 3500);
    assert_int_equal(facts[0].offset_error_us, 501);
    examine_read_time(&facts[0], 9000, 3000, 4800);
    assert_int_equal(facts[0].offset_us, 3500);
    examine_read_time(&facts[0], 9000, 5000, 5100);
    assert_int_equal(facts[0].offset_us, 3950);
    assert_int_equal(facts[0].time_us, 9000);
}

/* No server's clock stands before 1970, and with a guard without end what is left of it would overflow. */
static void a_clock_before_all_clocks_is_none(void **state)
{
    (void)state;
    facts[0] = (struct examine_facts){0};
    examine_read_time(&facts[0], -9999999999000000, 1000, 2000);
    assert_false(facts[0].has_clock);
    examine_read_guard(&facts[0], "1|3|set|30000|||9223372036854775807", 35);
    assert_int_equal(facts[0].guard.state, EXAMINE_GUARD_THERE);
    assert_int_equal(facts[0].guard.quarantine_ms, 0);
}

static void refuse(enum examine_right right, enum examine_name name, const char *text)
{
    facts[0].refused_rights = facts[0].refused_names = 0;
    examine_read_refusal(&facts[0], right, name, text, strlen(text));
}

static void refusals_of_old_and_new_servers(void **state)
{
    (void)state;
    refuse(EXAMINE_GET, EXAMINE_LOCK,
           "NOPERM this user has no permissions to run the 'get' command or its "
           "subcommand");
    assert_int_equal(facts[0].refused_rights, 1u << EXAMINE_GET);
    assert_int_equal(facts[0].refused_names, 0);
    refuse(EXAMINE_GET, EXAMINE_GUARD, "NOPERM User keys has no permissions to run the 'get' command");
    assert_int_equal(facts[0].refused_rights, 1u << EXAMINE_GET);
    refuse(EXAMINE_GET, EXAMINE_GUARD, "NOPERM No permissions to access a key");
    assert_int_equal(facts[0].refused_rights, 0);
    assert_int_equal(facts[0].refused_names, 1u << EXAMINE_GUARD);
    refuse(EXAMINE_SCRIPT_LOAD, EXAMINE_NAMES, "NOPERM whatever");
    assert_int_equal(facts[0].refused_rights, 1u << EXAMINE_SCRIPT_LOAD);
    refuse(EXAMINE_PEXPIRE, EXAMINE_LOCK, "ERR unknown command 'PEXPIRE', with args beginning with: ");
    assert_int_equal(facts[0].refused_rights, 1u << EXAMINE_PEXPIRE);
    refuse(EXAMINE_SET, EXAMINE_LOCK, "ERR syntax error");
    assert_int_equal(facts[0].refused_rights | facts[0].refused_names, 0);
    refuse(EXAMINE_SET, EXAMINE_LOCK, "READONLY You can't write against a read only replica.");
    assert_int_equal(facts[0].refused_rights | facts[0].refused_names, 0);
}

int main(void)
{
#define JUDGE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        JUDGE(a_sound_set_has_no_finding),
        JUDGE(the_worst_come_first_and_nodes_in_order),
        JUDGE(a_quorum_of_voters_is_needed),
        JUDGE(a_quorum_must_be_had_now),
        JUDGE(one_server_under_three_names),
        JUDGE(guards_must_agree),
        JUDGE(sets_of_guards),
        JUDGE(limits_of_memory_and_clients),
        JUDGE(clocks),
        JUDGE(rights_and_names),
        JUDGE(there_is_room_for_all),
        cmocka_unit_test(sections_of_info),
        cmocka_unit_test(the_guard),
        cmocka_unit_test(the_shortest_way_tells_the_clock),
        cmocka_unit_test(a_clock_before_all_clocks_is_none),
        cmocka_unit_test(refusals_of_old_and_new_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
