/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doctor.c - the doctor without a server: what facts mean, and how they are read. Integration tests
 * provoke every finding on real servers; here are the limits, and what real servers seldom show.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/facts.h"
#include "test.h"

#define NODES 3

#define DOCTOR_TEST(name) TEST_WITH(doctor_fixture, name, setup, teardown)

struct doctor_fixture {
    struct examine_facts facts[NODES];
    struct diagnose_node nodes[NODES];
    struct diagnose_set set;
    struct diagnosis diagnosis;
};

static int setup(void **state)
{
    static const char *const names[NODES] = {"a:1", "b:2", "c:3"};
    static struct doctor_fixture fixture;
    struct doctor_fixture *f = &fixture;

    for (unsigned i = 0; i < NODES; i++) {
        f->facts[i] = (struct examine_facts){
            .reachable = true,
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
            .guard = {
                .state = EXAMINE_GUARD_THERE, .n_nodes = NODES, .max_lease_ms = 30000, .set = "0123456789abcdef"}};
        snprintf(f->facts[i].run_id, sizeof(f->facts[i].run_id), "run%u", i);
        f->nodes[i] = (struct diagnose_node){names[i], NULL, &f->facts[i]};
    }
    f->set = (struct diagnose_set){
        .nodes = f->nodes, .n_nodes = NODES, .quorum = 2, .set = "0123456789abcdef", .prefix = ""};
    *state = f;
    f->diagnosis.room = diagnose_room(NODES);
    f->diagnosis.findings = calloc(diagnose_room(QUORLOCK_NODES_MAX), sizeof(const struct quorlock_finding *));
    f->diagnosis.words = calloc(diagnose_room(QUORLOCK_NODES_MAX), sizeof(*f->diagnosis.words));
    return f->diagnosis.findings == NULL || f->diagnosis.words == NULL;
}

static int teardown(void **state)
{
    struct doctor_fixture *f = *state;

    free(f->diagnosis.findings);
    free(f->diagnosis.words);
    return 0;
}

/* "unsafe eviction b:2; note replicas a:1", in the order of the findings; "" where there are none */
static const char *judged(struct doctor_fixture *f)
{
    static char text[4000];
    size_t used = 0;

    diagnose(&f->set, &f->diagnosis);
    text[0] = '\0';
    for (size_t i = 0; i < f->diagnosis.n_findings; i++) {
        const struct quorlock_finding *finding = f->diagnosis.findings[i];
        static const char *const words[] = {"note", "warning", "unsafe", "outage"};

        assert_true(finding->severity >= QUORLOCK_SEVERITY_NOTE && finding->severity <= QUORLOCK_SEVERITY_OUTAGE);
        assert_true(strlen(finding->text) > 5 && strlen(finding->text) + 1 < DIAGNOSE_TEXT_SIZE);
        assert_true(strlen(finding->remedy) > 5 && strlen(finding->remedy) + 1 < DIAGNOSE_REMEDY_SIZE);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s%s%s", i > 0 ? "; " : "",
                                 words[finding->severity], finding->code, finding->node != NULL ? " " : "",
                                 finding->node != NULL ? finding->node : "");
        assert_true(used < sizeof(text));
    }
    return text;
}

static void assert_first(struct doctor_fixture *f, const char *text, const char *remedy)
{
    (void)judged(f);
    assert_non_null(strstr(f->diagnosis.findings[0]->text, text));
    assert_non_null(strstr(f->diagnosis.findings[0]->remedy, remedy));
}

DOCTOR_TEST(a_sound_set_has_no_finding)
{
    assert_string_equal(judged(f), "");
    assert_int_equal(diagnose_severity(&f->diagnosis), QUORLOCK_SEVERITY_NOTE);
}

DOCTOR_TEST(findings_are_sorted_by_severity_and_node)
{
    f->facts[0].replicas = 2;
    f->facts[1].loopback = false;
    f->facts[1].aof = false;
    f->facts[2].aof = false;
    memcpy(f->facts[2].mode, "cluster", sizeof("cluster"));
    assert_string_equal(judged(f), "unsafe cluster c:3; warning persistence b:2; note replicas a:1; note plain-text "
                                   "b:2");
    assert_int_equal(diagnose_severity(&f->diagnosis), QUORLOCK_SEVERITY_UNSAFE);
}

DOCTOR_TEST(a_quorum_of_voters_is_needed)
{
    f->facts[0].reachable = false;
    f->facts[0].role[0] = '\0';
    assert_string_equal(judged(f), "warning unreachable a:1");
    f->facts[1].too_old = true;
    assert_string_equal(judged(f), "outage no-quorum; warning unreachable a:1; warning version b:2");
    assert_non_null(strstr(f->diagnosis.findings[0]->text, "only 1 of 3 nodes can vote, 2 are needed"));
    f->facts[1].reachable = false;
    assert_string_equal(judged(f), "outage no-quorum; warning unreachable a:1; warning unreachable b:2");
    assert_non_null(strstr(f->diagnosis.findings[0]->text, "can be reached"));
    f->set.quorum = 1;
    assert_string_equal(judged(f), "warning unreachable a:1; warning unreachable b:2");
    /* Facts of an unreachable node are not judged. */
    f->facts[0].used_memory = f->facts[0].maxmemory = 1;
    f->facts[0].refused_rights = 1;
    assert_string_equal(judged(f), "warning unreachable a:1; warning unreachable b:2");
}

/* As quorlock run -n needs it: a vote that comes later does not count. */
DOCTOR_TEST(a_quorum_is_needed_now)
{
    f->facts[0].guard.quarantine_ms = 12345;
    assert_string_equal(judged(f), "warning quarantine a:1");
    f->facts[1].guard.quarantine_ms = 2345;
    assert_string_equal(judged(f), "outage no-quorum; warning quarantine a:1; warning quarantine b:2");
    assert_first(f, "only 1 of 3 nodes can vote now, 2 are needed: no lock can be taken for 2.3 s", "by themselves");
    f->set.quorum = 3;
    assert_first(f, "3 are needed: no lock can be taken for 12.3 s", "by themselves");
    f->set.quorum = 2;
    f->facts[1].guard.stale = true;
    assert_first(f, "for 2.3 s from the next contact on", "by themselves");
    f->facts[1].guard = f->facts[0].guard = (struct examine_guard){.state = EXAMINE_GUARD_NONE};
    /* Another one let clients vote: they were emptied, and locks that they forgot may be held. */
    assert_first(f, "only 1 of 3 nodes can vote now", "by themselves");
    assert_first(f, "for 30.0 s from the next contact on", "by themselves");
    f->facts[2].guard.max_lease_ms = f->set.max_lease_ms = 5000;
    assert_first(f, "for 5.0 s from the next contact on", "by themselves");
    /* A reason that does not pass by itself has no time. */
    f->facts[0].guard.state = EXAMINE_GUARD_FOREIGN;
    f->facts[1].guard.state = EXAMINE_GUARD_UNKNOWN;
    assert_first(f, "only 1 of 3 nodes can vote, 2 are needed: no lock can be taken", "other nodes");
}

/* It declares that no lock is held on any of the nodes. */
DOCTOR_TEST(bootstrap_is_the_remedy_where_no_node_has_let_anybody_vote)
{
    const struct examine_guard none = {.state = EXAMINE_GUARD_NONE}, older = f->facts[0].guard;
    struct examine_guard first = older;

    first.first_ms = 9000;
    first.cause = QUARANTINE_FIRST;
    first.quarantine_ms = 9000;
    f->facts[0].guard = f->facts[1].guard = f->facts[2].guard = none;
    assert_string_equal(judged(f), "outage no-quorum; warning guard-missing a:1; warning guard-missing b:2; "
                                   "warning guard-missing c:3");
    assert_first(f, "for 30.0 s from the next contact on", "quorlock bootstrap, if no lock is held");
    f->facts[0].guard = f->facts[1].guard = f->facts[2].guard = first;
    f->facts[1].guard.first_ms = 13000;
    assert_first(f, "no lock can be taken", "quorlock bootstrap, if no lock is held");
    assert_non_null(strstr(f->diagnosis.findings[1]->text, "first contact: it had no guard"));
    assert_non_null(strstr(f->diagnosis.findings[1]->remedy, "quorlock bootstrap, if no lock is held"));
    /* Nodes that were emptied one after the other, perhaps under a lock that is held. */
    f->facts[2].guard.first_ms = 15000;
    assert_first(f, "no lock can be taken", "by themselves");
    f->facts[2].guard = none;
    assert_first(f, "no lock can be taken", "by themselves");
    f->facts[2].guard = older;
    assert_first(f, "no lock can be taken", "by themselves");
    assert_non_null(strstr(f->diagnosis.findings[1]->text, "other nodes have one"));
    assert_null(strstr(f->diagnosis.findings[1]->text, "bootstrap"));
    assert_null(strstr(f->diagnosis.findings[1]->remedy, "bootstrap"));
    /* A client with longer leases than the guards'. */
    first.cause = QUARANTINE_CLIENT;
    first.wanted_ms = 86400000;
    f->facts[0].guard = f->facts[1].guard = first;
    assert_first(f, "no lock can be taken", "quorlock bootstrap, if no client with that max lease holds a lock");
    assert_non_null(strstr(f->diagnosis.findings[1]->text, "for a client with a max lease of 24h"));
}

DOCTOR_TEST(one_server_under_three_names_is_unsafe)
{
    for (unsigned i = 0; i < NODES; i++) memcpy(f->facts[i].run_id, "same", sizeof("same"));
    assert_string_equal(judged(f), "unsafe same-server b:2; unsafe same-server c:3");
    /* Servers without a run_id are not the same. */
    for (unsigned i = 0; i < NODES; i++) f->facts[i].run_id[0] = '\0';
    assert_string_equal(judged(f), "");
}

DOCTOR_TEST(guards_must_agree)
{
    f->facts[1].guard.max_lease_ms = 20000;
    assert_string_equal(judged(f), "unsafe guard-lease b:2");
    f->set.max_lease_ms = 20000;
    assert_string_equal(judged(f), "unsafe guard-lease a:1; unsafe guard-lease c:3");
    f->set.max_lease_ms = 0;
    f->facts[1].guard.max_lease_ms = 30000;
    f->facts[0].guard.n_nodes = 4;
    f->facts[0].guard.state = EXAMINE_GUARD_NONE;
    assert_string_equal(judged(f), "warning guard-missing a:1");
    f->facts[0].guard.state = EXAMINE_GUARD_THERE;
    assert_string_equal(judged(f), "unsafe guard-nodes a:1");
    f->facts[0].guard.n_nodes = 0;
    assert_string_equal(judged(f), "unsafe guard-nodes a:1");
    assert_non_null(strstr(f->diagnosis.findings[0]->text, "was not finished: the node refuses all clients"));
}

DOCTOR_TEST(guards_of_another_set_are_found)
{
    for (unsigned i = 0; i < NODES; i++) memcpy(f->facts[i].guard.set, "blue", sizeof("blue"));
    assert_string_equal(judged(f), "note guard-set a:1; note guard-set b:2; note guard-set c:3");
    assert_non_null(strstr(f->diagnosis.findings[0]->remedy, "--set-name blue"));
    memcpy(f->facts[1].guard.set, "red", sizeof("red"));
    assert_string_equal(judged(f), "unsafe guard-set b:2; note guard-set a:1; note guard-set c:3");
    memcpy(f->facts[1].guard.set, "blue", sizeof("blue"));
    f->set.set = "blue";
    f->set.named = true;
    assert_string_equal(judged(f), "");
    f->set.set = "red";
    assert_string_equal(judged(f), "unsafe guard-set a:1; unsafe guard-set b:2; unsafe guard-set c:3");
    /* Sixteen hex digits are a hash of other addresses, not a name. */
    f->set.named = false;
    for (unsigned i = 0; i < NODES; i++) memcpy(f->facts[i].guard.set, "fedcba9876543210", 17);
    assert_string_equal(judged(f), "unsafe guard-set a:1; unsafe guard-set b:2; unsafe guard-set c:3");
}

DOCTOR_TEST(limits_of_memory_and_clients_are_checked)
{
    f->facts[0].maxmemory = 1200000;
    assert_string_equal(judged(f), "");
    f->facts[0].maxmemory = 1111111;
    assert_string_equal(judged(f), "warning memory a:1");
    f->facts[0].maxmemory = UINT64_MAX;
    f->facts[0].used_memory = UINT64_MAX;
    assert_string_equal(judged(f), "warning memory a:1");
    f->facts[0].maxmemory = 0;
    memcpy(f->facts[0].policy, "allkeys-lru", sizeof("allkeys-lru"));
    assert_string_equal(judged(f), "");
    f->facts[0].maxmemory = UINT64_MAX;
    f->facts[0].used_memory = 1;
    assert_string_equal(judged(f), "unsafe eviction a:1");
    f->set.allow_eviction = true;
    assert_string_equal(judged(f), "warning eviction a:1");
    f->facts[0].maxmemory = 0;
    f->facts[0].maxclients = 4;
    f->facts[0].clients = 3;
    assert_string_equal(judged(f), "");
    f->facts[0].clients = 4;
    assert_string_equal(judged(f), "warning clients a:1");
    f->facts[0].maxclients = 5; /* four fifths are enough */
    assert_string_equal(judged(f), "warning clients a:1");
    f->facts[0].clients = f->facts[0].maxclients = UINT32_MAX;
    assert_string_equal(judged(f), "warning clients a:1");
}

DOCTOR_TEST(clocks_that_differ_are_found)
{
    f->facts[1].offset_us = 100050;
    assert_string_equal(judged(f), "");
    f->facts[1].offset_us = 100051;
    assert_string_equal(judged(f), "warning clock b:2");
    f->facts[1].offset_us = -100101;
    assert_string_equal(judged(f), "warning clock b:2; warning clocks");
    /* A long round trip proves little. */
    f->facts[1].offset_error_us = 200000;
    assert_string_equal(judged(f), "");
    /* The nodes agree with one another: it is our clock. */
    for (unsigned i = 0; i < NODES; i++) f->facts[i].offset_us = -5000000 + (int)i;
    assert_string_equal(judged(f), "warning clock");
    /* With short leases less is allowed. */
    for (unsigned i = 0; i < NODES; i++) f->facts[i].offset_us = 0;
    f->facts[1].offset_error_us = 50;
    f->facts[1].offset_us = 60000;
    assert_string_equal(judged(f), "");
    for (unsigned i = 0; i < NODES; i++) f->facts[i].guard.max_lease_ms = 1000;
    assert_string_equal(judged(f), "warning clock b:2; warning clocks");
    /* But not less than two milliseconds. */
    for (unsigned i = 0; i < NODES; i++) f->facts[i].guard.max_lease_ms = 10;
    f->facts[1].offset_us = 2050;
    assert_string_equal(judged(f), "");
    f->facts[1].offset_us = 2051;
    assert_string_equal(judged(f), "warning clock b:2");
    /* With one node it may be either clock. */
    f->set.n_nodes = f->set.quorum = 1;
    f->facts[0].guard.n_nodes = 1;
    f->facts[0].offset_us = INT64_C(-4000000000000000);
    assert_string_equal(judged(f), "warning clock a:1");
    f->facts[0].has_clock = false;
    assert_string_equal(judged(f), "");
}

DOCTOR_TEST(missing_rights_and_names_are_found)
{
    f->nodes[0].user = "app";
    f->facts[0].refused_rights = (1u << EXAMINE_RIGHTS) - 1;
    f->facts[0].refused_names = (1u << EXAMINE_NAMES) - 1;
    assert_string_equal(judged(f),
                        "warning rights a:1; warning rights a:1; warning names a:1; warning names a:1; "
                        "warning names a:1; note rights a:1; note rights a:1; note rights a:1; note rights a:1; "
                        "note rights a:1; note names a:1");
    assert_non_null(strstr(f->diagnosis.findings[0]->text, "user \"app\" may not run INFO, TIME, GET, SET, PTTL, "
                                                           "PEXPIRE, DEL, EVAL, EVALSHA: it cannot"));
    assert_string_equal(f->diagnosis.findings[0]->remedy, "ACL SETUSER app +info +time +get +set +pttl +pexpire +del "
                                                          "+eval +evalsha");
    /* Patterns that include the guard were chosen on purpose. */
    f->facts[0].refused_rights = 0;
    f->facts[0].refused_names = 1u << EXAMINE_LOCK | 1u << EXAMINE_FENCE;
    assert_string_equal(judged(f), "note names a:1; note names a:1");
    f->facts[0].refused_names = 1u << EXAMINE_FENCE;
    assert_string_equal(judged(f), "warning names a:1");
}

DOCTOR_TEST(names_that_are_missing_begin_with_the_prefix)
{
    static const struct {
        enum examine_name name;
        const char *text, *remedy;
    } rows[] = {{EXAMINE_LOCK, "may not use every key app:KEY: ", "ACL SETUSER default ~app:KEY"},
                {EXAMINE_GUARD, "may not use the key quorlock:guard: ", "ACL SETUSER default ~quorlock:guard"},
                {EXAMINE_FENCE, "every key app:quorlock:fence:KEY: ", "ACL SETUSER default ~app:quorlock:fence:*"},
                {EXAMINE_CHANNEL, "app:quorlock:released:KEY: ", "ACL SETUSER default &app:quorlock:released:*"}};

    f->set.prefix = "app:";
    for (size_t i = 0; i < LENGTH(rows); i++) {
        f->facts[0].refused_names = 1u << rows[i].name;
        assert_first(f, rows[i].text, rows[i].remedy);
    }
}

/* ---- what each fact means ---- */

struct change {
    size_t at, size; /* size: of a number; 0: a text */
    int64_t number;
    const char *text;
};

#define TEXT(member, text)                                                                                             \
    {                                                                                                                  \
        offsetof(struct examine_facts, member), 0, 0, text                                                             \
    }
#define NUMBER(member, number)                                                                                         \
    {                                                                                                                  \
        offsetof(struct examine_facts, member), SIZE(member), number, NULL                                             \
    }
#define SIZE(member) sizeof(((struct examine_facts *)NULL)->member)

static void apply(struct examine_facts *facts, const struct change *change)
{
    void *to = (char *)facts + change->at;

    if (change->text != NULL) (void)stpcpy(to, change->text);
    if (change->size == sizeof(bool)) *(bool *)to = change->number != 0;
    if (change->size == sizeof(uint32_t)) *(uint32_t *)to = (uint32_t)change->number;
    if (change->size == sizeof(int64_t)) *(int64_t *)to = change->number;
}

/* One node of three has these facts. Each row is a finding, or a fact that is none. */
DOCTOR_TEST(each_fact_has_its_verdict)
{
    static const struct {
        struct change changes[4];
        const char *judged, *text, *remedy;
    } rows[] = {
        {{TEXT(mode, "cluster")}, "unsafe cluster a:1", "a failover loses locks", "cluster-enabled no"},
        {{TEXT(mode, "sentinel")}, "unsafe sentinel a:1", "it has no keys", "the server itself"},
        {{TEXT(role, "replica")}, "unsafe replica a:1", "it cannot grant locks", "REPLICAOF NO ONE"},
        {{TEXT(role, "replica"), NUMBER(replicas, 1)}, "unsafe replica a:1", "", ""},
        {{TEXT(role, "replica"), NUMBER(aof, 0)}, "unsafe replica a:1", "", ""},
        {{TEXT(role, "replica"), NUMBER(guard.state, EXAMINE_GUARD_NONE)}, "unsafe replica a:1", "", ""},
        {{NUMBER(replicas, 1)}, "note replicas a:1", "1 replica is attached", "detach"},
        {{NUMBER(replicas, 2)}, "note replicas a:1", "2 replicas are attached", "detach"},
        {{NUMBER(too_old, 1)}, "warning version a:1", "Redis 7.0.15 is too old", "install"},
        {{NUMBER(aof, 0)}, "warning persistence a:1", "appendonly is off", "appendonly yes"},
        {{NUMBER(aof_broken, 1)}, "warning persistence a:1", "could not be written", "disk full"},
        {{TEXT(appendfsync, "everysec")}, "warning persistence a:1", "appendfsync is everysec", "appendfsync always"},
        {{TEXT(appendfsync, "")}, "note persistence a:1", "could not be read", "allow CONFIG GET"},
        {{NUMBER(has_persistence, 0), NUMBER(aof, 0)}, "", NULL, NULL},
        {{TEXT(write_error, "MISCONF")}, "warning writes a:1", "so it cannot vote: MISCONF", "mend the fault"},
        {{TEXT(no_lua, "EVAL: ERR")}, "warning scripts a:1", "so it cannot vote: EVAL: ERR", "restart the server"},
        {{NUMBER(reachable, 0)}, "warning unreachable a:1", "no answer", "start the server"},
        {{NUMBER(reachable, 0), TEXT(error, "refused")}, "warning unreachable a:1", "refused", "start the server"},
        {{TEXT(idle_s, "0")}, "", NULL, NULL},
        {{TEXT(idle_s, "300")}, "note idle-limit a:1", "quiet for 300 s", "CONFIG SET timeout 0"},
        {{NUMBER(loopback, 0)}, "note plain-text a:1", "not encrypted", "rediss://"},
        {{NUMBER(loopback, 0), NUMBER(tls, 1)}, "", NULL, NULL},
        {{NUMBER(clients, 80)}, "warning clients a:1", "80 of 100 clients", "maxclients"},
        {{NUMBER(clients, 79)}, "", NULL, NULL},
        {{NUMBER(clients, 0), NUMBER(maxclients, 0)}, "", NULL, NULL},
        {{NUMBER(guard.state, EXAMINE_GUARD_NONE)}, "warning guard-missing a:1", "it lost its data", "none is needed"},
        {{NUMBER(guard.state, EXAMINE_GUARD_FOREIGN)}, "warning guard-format a:1", "clients refuse the node", "newest"},
        {{NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN)}, "warning guard-unread a:1", "unexpected reply", "wait"},
        {{NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN), TEXT(guard_error, "LOADING")},
         "warning guard-unread a:1",
         "could not be read: LOADING",
         "wait"},
        /* The missing right is the finding. */
        {{NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN), NUMBER(no_database, 1)},
         "warning rights a:1",
         "user \"default\" may not use this database: it cannot vote for us",
         "ACL SETUSER default alldbs"},
        {{NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN), NUMBER(refused_rights, 1u << EXAMINE_GET)},
         "warning rights a:1",
         "user \"default\" may not run GET: it cannot vote for us",
         "ACL SETUSER default +get"},
        {{NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN), NUMBER(refused_names, 1u << EXAMINE_GUARD)},
         "warning names a:1",
         "user \"default\" may not use the key quorlock:guard: it cannot vote for us",
         "ACL SETUSER default ~quorlock:guard"},
        {{NUMBER(guard.n_nodes, 5)}, "unsafe guard-nodes a:1", "for 5 nodes, and 3 are listed", "--reconfigure"},
        {{NUMBER(guard.n_nodes, 0)}, "unsafe guard-nodes a:1", "was not finished", "again"},
        {{TEXT(guard.set, "fedcba9876543210")}, "unsafe guard-set a:1", "in another way", "write the addresses"},
        {{TEXT(guard.set, "blue")}, "note guard-set a:1", "refuses clients without that name", "--set-name blue"},
        {{TEXT(guard.set, "sixteen_letters_")}, "note guard-set a:1", "the set sixteen_letters_", "--set-name sixteen"},
        {{NUMBER(guard.quarantine_ms, 12345)}, "warning quarantine a:1", "quarantined for 12.3 s more", "by itself"},
        {{NUMBER(guard.quarantine_ms, 1000)}, "warning quarantine a:1", "quarantined for 1.0 s more", "by itself"},
        {{NUMBER(guard.quarantine_ms, 5), NUMBER(guard.stale, 1), NUMBER(guard.cause, QUARANTINE_RESTART)},
         "warning quarantine a:1",
         "for 5 ms from the next contact on",
         "by itself"},
        {{NUMBER(guard.quarantine_ms, 5), NUMBER(guard.stale, 0), NUMBER(guard.cause, QUARANTINE_RESTART)},
         "warning quarantine a:1",
         "quarantined for 5 ms more",
         "by itself"},
        {{NUMBER(guard.quarantine_ms, 5), NUMBER(guard.stale, 1), NUMBER(guard.cause, QUARANTINE_CLIENT)},
         "warning quarantine a:1",
         "quarantined for 5 ms more",
         "no client with that max lease"},
    };
    const struct examine_facts sound = f->facts[0];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        int severity = rows[i].judged[0] == 'u'   ? QUORLOCK_SEVERITY_UNSAFE
                       : rows[i].judged[0] == 'w' ? QUORLOCK_SEVERITY_WARNING
                                                  : QUORLOCK_SEVERITY_NOTE;

        f->facts[0] = sound;
        for (size_t k = 0; k < LENGTH(rows[i].changes); k++) apply(&f->facts[0], &rows[i].changes[k]);
        assert_string_equal(judged(f), rows[i].judged);
        assert_int_equal(diagnose_severity(&f->diagnosis), severity);
        if (rows[i].text != NULL) assert_first(f, rows[i].text, rows[i].remedy);
    }
}

/* The same facts of all nodes leave no quorum. */
DOCTOR_TEST(a_fact_that_keeps_a_node_from_voting_is_an_outage_where_all_have_it)
{
    static const struct change rows[] = {
        TEXT(mode, "cluster"),
        TEXT(mode, "sentinel"),
        TEXT(role, "replica"),
        TEXT(write_error, "MISCONF"),
        TEXT(no_lua, "EVAL: ERR"),
        NUMBER(no_database, 1),
        NUMBER(too_old, 1),
        NUMBER(reachable, 0),
        NUMBER(guard.state, EXAMINE_GUARD_NONE),
        NUMBER(guard.state, EXAMINE_GUARD_FOREIGN),
        NUMBER(guard.state, EXAMINE_GUARD_UNKNOWN),
        NUMBER(guard.quarantine_ms, 1),
        NUMBER(refused_rights, 1u << EXAMINE_SET),
        NUMBER(refused_names, 1u << EXAMINE_GUARD),
    };
    static const struct change harmless[] = {
        NUMBER(aof, 0),
        NUMBER(replicas, 1),
        NUMBER(refused_rights, 1u << EXAMINE_HELLO),
        NUMBER(loopback, 0),
        NUMBER(refused_names, 1u << EXAMINE_LOCK),
    };
    const struct examine_facts sound[NODES] = {f->facts[0], f->facts[1], f->facts[2]};

    for (size_t i = 0; i < LENGTH(rows) + LENGTH(harmless); i++) {
        const struct change *change = i < LENGTH(rows) ? &rows[i] : &harmless[i - LENGTH(rows)];

        for (unsigned k = 0; k < NODES; k++) {
            f->facts[k] = sound[k];
            apply(&f->facts[k], change);
        }
        (void)judged(f);
        assert_int_equal(diagnose_severity(&f->diagnosis) == QUORLOCK_SEVERITY_OUTAGE, i < LENGTH(rows));
    }
}
#undef TEXT
#undef NUMBER
#undef SIZE

/* All of them at once, on as many nodes as there can be. */
DOCTOR_TEST(there_is_room_for_all_findings)
{
    struct diagnose_node many[QUORLOCK_NODES_MAX];

    f->facts[0] = (struct examine_facts){.reachable = true,
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
    f->facts[1] = f->facts[0];
    f->facts[0].offset_us = 1000000;
    f->facts[1].offset_us = -1000000;
    for (unsigned i = 0; i < QUORLOCK_NODES_MAX; i++) many[i] = (struct diagnose_node){"n", NULL, &f->facts[i % 2]};
    f->set = (struct diagnose_set){.nodes = many,
                                   .n_nodes = QUORLOCK_NODES_MAX,
                                   .quorum = 16,
                                   .set = "0123456789abcdef",
                                   .prefix = "",
                                   .max_lease_ms = 9};
    f->diagnosis.room = diagnose_room(QUORLOCK_NODES_MAX);
    diagnose(&f->set, &f->diagnosis);
    assert_true(f->diagnosis.n_findings > (size_t)20 * QUORLOCK_NODES_MAX);
    assert_true(f->diagnosis.n_findings < f->diagnosis.room);
}

/* ---- reading ---- */

static void info(struct doctor_fixture *f, enum examine_section section, const char *text)
{
    f->facts[0] = (struct examine_facts){0};
    examine_read_info(&f->facts[0], section, text, strlen(text));
}

DOCTOR_TEST(sections_of_info_are_read)
{
    info(f, EXAMINE_SERVER, "# Server\r\nredis_version:6.1.9\r\nredis_mode:cluster\r\nrun_id:ab\r\n");
    assert_string_equal(f->facts[0].version, "6.1.9");
    assert_string_equal(f->facts[0].mode, "cluster");
    assert_string_equal(f->facts[0].run_id, "ab");
    assert_true(f->facts[0].too_old);
    info(f, EXAMINE_SERVER, "redis_version:7.2.4\r\nserver_mode:standalone\r\nvalkey_version:8.1.1\r\n");
    assert_string_equal(f->facts[0].kind, "Valkey");
    assert_string_equal(f->facts[0].mode, "standalone");
    assert_false(f->facts[0].too_old);
    info(f, EXAMINE_SERVER, "redis_version:7.2.4\r\nvalkey_version:7.1.9\r\n");
    assert_true(f->facts[0].too_old);
    info(f, EXAMINE_SERVER, "redis_version:6.2.0");
    assert_false(f->facts[0].too_old);
    info(f, EXAMINE_SERVER, "redis_version:255.255.255\r\n");
    assert_false(f->facts[0].too_old);
    info(f, EXAMINE_SERVER, "redis_version:\x1b[31m7\r\nrun_id:\r\n");
    assert_string_equal(f->facts[0].version, "?[31m7");
    assert_string_equal(f->facts[0].run_id, "");
    info(f, EXAMINE_REPLICATION, "role:slave\r\nmaster_replid:x\r\nconnected_slaves:99999999999\r\n");
    assert_string_equal(f->facts[0].role, "replica");
    assert_int_equal(f->facts[0].replicas, UINT32_MAX);
    info(f, EXAMINE_MEMORY, "used_memory:12\r\nused_memory_human:1\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
    assert_true(f->facts[0].has_memory);
    assert_int_equal(f->facts[0].used_memory, 12);
    info(f, EXAMINE_MEMORY, "used_memory:12\r\nmaxmemory:-1\r\nmaxmemory_policy:noeviction\r\n");
    assert_false(f->facts[0].has_memory);
    info(f, EXAMINE_MEMORY, "used_memory:99999999999999999999999\r\nmaxmemory:1\r\nmaxmemory_policy:noeviction\r\n");
    assert_false(f->facts[0].has_memory);
    info(f, EXAMINE_PERSISTENCE, "aof_enabled:1\r\naof_last_write_status:err\r\n");
    assert_true(f->facts[0].aof && f->facts[0].aof_broken);
    info(f, EXAMINE_PERSISTENCE, "loading:0\r\n");
    assert_false(f->facts[0].has_persistence);
    info(f, EXAMINE_CLIENTS, "connected_clients:3\r\n");
    assert_false(f->facts[0].has_clients);
    info(f, EXAMINE_CLIENTS, "");
    assert_false(f->facts[0].has_clients);
}

static enum examine_guard_state read_guard(struct doctor_fixture *f, const char *text)
{
    f->facts[0] = (struct examine_facts){.run_id = "run", .replid = "rep", .has_clock = true, .time_us = 1000000000};
    examine_read_guard(&f->facts[0], text, strlen(text));
    return f->facts[0].guard.state;
}

DOCTOR_TEST(a_guard_is_read)
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
    static const char format_2[] = "2|3|set|30000|run|rep|1012000|30000|found|982000|first|60000|1042001";
    char longest[700];

    for (size_t i = 0; i < LENGTH(foreign); i++) {
        assert_int_equal(read_guard(f, foreign[i]), EXAMINE_GUARD_FOREIGN);
    }
    for (const char *part = strchr(format_2, '|'); part != NULL; part = strchr(part + 1, '|')) {
        snprintf(longest, sizeof(longest), "%.*s", (int)(part - format_2), format_2);
        assert_int_equal(read_guard(f, longest), EXAMINE_GUARD_FOREIGN);
    }
    snprintf(longest, sizeof(longest), "%s|", format_2);
    assert_int_equal(read_guard(f, longest), EXAMINE_GUARD_FOREIGN);
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(read_guard(f, longest), EXAMINE_GUARD_FOREIGN);

    assert_int_equal(read_guard(f, "1|3|set|30000|run|rep|0"), EXAMINE_GUARD_THERE);
    assert_int_equal(f->facts[0].guard.n_nodes, 3);
    assert_string_equal(f->facts[0].guard.set, "set");
    assert_int_equal(f->facts[0].guard.max_lease_ms, 30000);
    assert_false(f->facts[0].guard.stale);
    assert_int_equal(f->facts[0].guard.quarantine_ms, 0);
    read_guard(f, "1|3|set|30000|run|rep|1012000");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 12000);
    read_guard(f, "1|3|set|30000|run|rep|999999");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 0);
    /* Clients cut a quarantine longer than a lease, unless the guard was reconfigured from a longer one. */
    read_guard(f, "1|3|set|30000|run|rep|1050000");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 30001);
    read_guard(f, "1|3|set|30000|run|rep|1050000|60000");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 50000);
    read_guard(f, "1|3|set|30000|run|rep|18446744073709551615|60000");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 60001);
    /* Another life of the server. */
    read_guard(f, "1|3|set|30000|old|rep|0");
    assert_true(f->facts[0].guard.stale);
    assert_int_equal(f->facts[0].guard.quarantine_ms, 30001);
    read_guard(f, "1|3|set|30000|run|old|0");
    assert_true(f->facts[0].guard.stale);
    /* Of two quarantines the last to end counts, and each is cut to what it was for. */
    read_guard(f, format_2);
    assert_int_equal(f->facts[0].guard.quarantine_ms, 42001);
    assert_int_equal(f->facts[0].guard.cause, QUARANTINE_CLIENT);
    assert_int_equal(f->facts[0].guard.wanted_ms, 60000);
    assert_int_equal(f->facts[0].guard.first_ms, 12000);
    read_guard(f, "2|3|set|30000|run|rep|1012000|30000|found|982000|first|0|0");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 12000);
    assert_int_equal(f->facts[0].guard.cause, QUARANTINE_FIRST);
    read_guard(f, "2|3|set|30000|run|rep|999999|30000|found|982000|first|60000|9999999");
    assert_int_equal(f->facts[0].guard.quarantine_ms, 60001);
    assert_int_equal(f->facts[0].guard.first_ms, 0);
}

DOCTOR_TEST(the_shortest_round_trip_reads_the_clock)
{
    f->facts[0] = (struct examine_facts){0};
    examine_read_time(&f->facts[0], 5000, 1000, 900); /* ours was set back meanwhile */
    assert_false(f->facts[0].has_clock);
    examine_read_time(&f->facts[0], 5000, 1000, 2000);
    assert_true(f->facts[0].has_clock);
    assert_int_equal(f->facts[0].offset_us, 3500);
    assert_int_equal(f->facts[0].offset_error_us, 501);
    examine_read_time(&f->facts[0], 9000, 3000, 4800);
    assert_int_equal(f->facts[0].offset_us, 3500);
    examine_read_time(&f->facts[0], 9000, 5000, 5100);
    assert_int_equal(f->facts[0].offset_us, 3950);
    assert_int_equal(f->facts[0].time_us, 9000);
}

/* With a guard without end the remaining quarantine would overflow. */
DOCTOR_TEST(a_clock_before_1970_is_ignored)
{
    f->facts[0] = (struct examine_facts){0};
    examine_read_time(&f->facts[0], -9999999999000000, 1000, 2000);
    assert_false(f->facts[0].has_clock);
    examine_read_guard(&f->facts[0], "1|3|set|30000|||9223372036854775807", 35);
    assert_int_equal(f->facts[0].guard.state, EXAMINE_GUARD_THERE);
    assert_int_equal(f->facts[0].guard.quarantine_ms, 0);
}

DOCTOR_TEST(refusals_of_old_and_new_servers_are_read)
{
#define ONE(name) (1u << EXAMINE_##name)
    static const struct {
        enum examine_right right;
        enum examine_name name;
        const char *text;
        uint32_t rights, names, unknown;
    } cases[] = {
        {EXAMINE_GET, EXAMINE_LOCK, "NOPERM this user has no permissions to run the 'get' command or its subcommand",
         ONE(GET), 0, 0},
        {EXAMINE_GET, EXAMINE_GUARD, "NOPERM User keys has no permissions to run the 'get' command", ONE(GET), 0, 0},
        {EXAMINE_GET, EXAMINE_GUARD, "NOPERM No permissions to access a key", 0, ONE(GUARD), 0},
        {EXAMINE_EVALSHA, EXAMINE_NAMES, "NOPERM whatever", ONE(EVALSHA), 0, 0},
        {EXAMINE_PEXPIRE, EXAMINE_LOCK, "ERR unknown command 'PEXPIRE', with args beginning with: ", ONE(PEXPIRE), 0,
         ONE(PEXPIRE)},
        {EXAMINE_TRACKING, EXAMINE_NAMES, "ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.", ONE(TRACKING), 0,
         ONE(TRACKING)},
        {EXAMINE_CACHING, EXAMINE_NAMES, "ERR Unknown subcommand or wrong number of arguments for 'CACHING'",
         ONE(CACHING), 0, ONE(CACHING)},
        {EXAMINE_SETNAME, EXAMINE_NAMES, "ERR unknown command 'CLIENT', with args beginning with: 'SETNAME'",
         ONE(SETNAME), 0, ONE(SETNAME)},
        {EXAMINE_CACHING, EXAMINE_NAMES, "ERR CLIENT CACHING can be called only when the client is in tracking mode", 0,
         0, 0},
        {EXAMINE_HELLO, EXAMINE_NAMES, "ERR unknown command 'HELLO', with args beginning with: '0'", ONE(HELLO), 0,
         ONE(HELLO)},
        {EXAMINE_HELLO, EXAMINE_NAMES, "NOPROTO unsupported protocol version", 0, 0, 0},
        {EXAMINE_MSETEX, EXAMINE_LOCK, "NOPERM User app has no permissions to run the 'msetex' command", ONE(MSETEX), 0,
         0},
        /* Most servers are older than this command. */
        {EXAMINE_MSETEX, EXAMINE_LOCK, "ERR unknown command 'MSETEX', with args beginning with: ", 0, 0, ONE(MSETEX)},
        {EXAMINE_SET, EXAMINE_LOCK, "ERR syntax error", 0, 0, 0},
        {EXAMINE_SET, EXAMINE_LOCK, "READONLY You can't write against a read only replica.", 0, 0, 0},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct examine_facts *facts = &f->facts[0];

        facts->refused_rights = facts->refused_names = facts->unknown_rights = 0;
        examine_read_refusal(facts, cases[i].right, cases[i].name, cases[i].text, strlen(cases[i].text));
        assert_int_equal(facts->refused_rights, cases[i].rights);
        assert_int_equal(facts->refused_names, cases[i].names);
        assert_int_equal(facts->unknown_rights, cases[i].unknown);
    }
}

/* What a server must have so that clients use the feature. */
DOCTOR_TEST(features_need_their_commands)
{
    static const struct {
        uint32_t refused, unknown;
        bool tracking, msetex;
    } cases[] = {
        {0, 0, true, true},
        {0, ONE(MSETEX), true, false},
        {ONE(MSETEX), 0, true, false},
        {ONE(TRACKING), 0, false, true},
        {ONE(CACHING), ONE(CACHING), false, true},
        {ONE(HELLO), ONE(HELLO), false, true},
        {ONE(EXISTS), 0, false, true},
        {ONE(TYPE) | ONE(PUBLISH), 0, true, true},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        f->facts[0].refused_rights = cases[i].refused;
        f->facts[0].unknown_rights = cases[i].unknown;
        assert_int_equal(diagnose_has_tracking(&f->facts[0]), cases[i].tracking);
        assert_int_equal(diagnose_has_msetex(&f->facts[0]), cases[i].msetex);
    }
    /* Without INFO its version is not known. */
    f->facts[0].version[0] = '\0';
    f->facts[0].unknown_rights = 0;
    f->facts[0].refused_rights = ONE(INFO);
    assert_false(diagnose_has_msetex(&f->facts[0]));
}

/* A command that a server does not have is no matter of rights: ACL SETUSER would not help. */
DOCTOR_TEST(a_renamed_command_has_another_remedy_than_a_missing_right)
{
    static const struct {
        uint32_t refused, unknown;
        const char *judged, *text, *remedy;
    } cases[] = {
        {ONE(HELLO), ONE(HELLO), "warning rights a:1", "it has no command HELLO: it cannot", "rename-command"},
        {ONE(TYPE), ONE(TYPE), "note rights a:1", "it has no command TYPE: quorlock break fails", "rename-command"},
        {ONE(TYPE), 0, "note rights a:1", "user \"default\" may not run TYPE: quorlock break fails",
         "ACL SETUSER default +type"},
        {ONE(TRACKING) | ONE(HELLO), ONE(HELLO), "warning rights a:1; warning rights a:1",
         "user \"default\" may not run CLIENT TRACKING: it cannot", "ACL SETUSER default +client|tracking"},
        {0, ONE(MSETEX), "", NULL, NULL},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        f->facts[0].refused_rights = cases[i].refused;
        f->facts[0].unknown_rights = cases[i].unknown;
        assert_string_equal(judged(f), cases[i].judged);
        if (cases[i].text != NULL) assert_first(f, cases[i].text, cases[i].remedy);
    }
#undef ONE
}

static void make_evicting(struct examine_facts *facts)
{
    memcpy(facts->policy, "allkeys-lru", sizeof("allkeys-lru"));
    facts->maxmemory = UINT64_MAX;
}

static void make_full(struct examine_facts *facts)
{
    facts->maxmemory = facts->used_memory;
}

static void make_forgetful(struct examine_facts *facts)
{
    facts->aof = false;
}

static void make_lazy(struct examine_facts *facts)
{
    memcpy(facts->appendfsync, "everysec", sizeof("everysec"));
}

static void make_unread(struct examine_facts *facts)
{
    facts->appendfsync[0] = '\0';
}

static void make_hasty(struct examine_facts *facts)
{
    memcpy(facts->idle_s, "60", sizeof("60"));
}

static void make_crowded(struct examine_facts *facts)
{
    facts->clients = facts->maxclients;
}

DOCTOR_TEST(config_set_is_no_remedy_where_config_was_renamed)
{
    static const struct {
        void (*make)(struct examine_facts *);
        const char *judged, *remedy, *by_file;
    } cases[] = {
        {make_evicting, "unsafe eviction a:1", "CONFIG SET maxmemory-policy", "set maxmemory-policy noeviction in its"},
        {make_full, "warning memory a:1", "CONFIG SET maxmemory to", "set maxmemory to more in its"},
        {make_forgetful, "warning persistence a:1", "CONFIG SET appendonly",
         "set appendonly yes and appendfsync always in"},
        {make_lazy, "warning persistence a:1", "CONFIG SET appendonly", "set appendonly yes and appendfsync always in"},
        {make_unread, "note persistence a:1", "allow CONFIG GET", "set appendfsync always in its"},
        {make_hasty, "note idle-limit a:1", "CONFIG SET timeout 0", "set timeout 0 in its"},
        {make_crowded, "warning clients a:1", "CONFIG SET maxclients", "set maxclients to more in its"},
    };
    const struct examine_facts sound = f->facts[0];

    for (size_t i = 0; i < LENGTH(cases); i++) {
        f->facts[0] = sound;
        cases[i].make(&f->facts[0]);
        assert_string_equal(judged(f), cases[i].judged);
        assert_first(f, "", cases[i].remedy);
        f->facts[0].no_config = true;
        assert_string_equal(judged(f), cases[i].judged);
        assert_first(f, "", cases[i].by_file);
        assert_first(f, "", "configuration file");
        assert_null(strstr(f->diagnosis.findings[0]->remedy, "CONFIG SET"));
    }
}

/* ---- as JSON ---- */

/* The text about the first n nodes; it must be freed. */
static char *facts_of(const struct doctor_fixture *f, uint32_t n)
{
    size_t room = facts_room(f->nodes, n);
    char *json = malloc(room);

    assert_non_null(json);
    facts_write(f->nodes, n, json, room);
    return json;
}

#define GUARD_OF_ALL                                                                                                   \
    "\"guard\":true,\"guard_nodes\":3,\"guard_set\":\"0123456789abcdef\",\"guard_max_lease_ms\":30000,"                \
    "\"quarantine_ms\":0"
#define UNKNOWN_SERVER                                                                                                 \
    "\"version\":null,\"mode\":null,\"role\":null,\"run_id\":null,\"replicas\":null,\"used_memory\":null,"             \
    "\"maxmemory\":null,\"maxmemory_policy\":null,\"appendonly\":null,\"appendfsync\":null,"
#define UNKNOWN_REST                                                                                                   \
    "\"clock_offset_us\":null,\"clock_error_us\":null,\"clients\":null,\"clients_max\":null,\"refused\":null,"

DOCTOR_TEST(facts_are_json)
{
    char *json;

    f->facts[0].offset_us = -7;
    f->facts[0].refused_rights = 1u << EXAMINE_TRACKING | 1u << EXAMINE_TYPE;
    f->facts[1] = (struct examine_facts){.error = "no answer", .tls = true};
    f->facts[2] = (struct examine_facts){.reachable = true, .guard.state = EXAMINE_GUARD_FOREIGN};
    json = facts_of(f, 3);
    assert_string_equal(
        json, "[{\"node\":\"a:1\",\"reachable\":true,\"error\":null,\"latency_us\":100,"
              "\"version\":\"Redis 7.0.15\",\"mode\":\"standalone\",\"role\":\"master\",\"run_id\":\"run0\","
              "\"replicas\":0,\"used_memory\":1000000,\"maxmemory\":0,\"maxmemory_policy\":\"noeviction\","
              "\"appendonly\":true,\"appendfsync\":\"always\"," GUARD_OF_ALL
              ",\"clock_offset_us\":-7,\"clock_error_us\":50,\"clients\":1,\"clients_max\":100,"
              "\"refused\":\"TYPE, CLIENT TRACKING\",\"tracking\":false,\"msetex\":true,\"tls\":false},"
              "{\"node\":\"b:2\",\"reachable\":false,\"error\":\"no answer\",\"latency_us\":null," UNKNOWN_SERVER
              "\"guard\":null,\"guard_nodes\":null,\"guard_set\":null,\"guard_max_lease_ms\":null,"
              "\"quarantine_ms\":null," UNKNOWN_REST "\"tracking\":null,\"msetex\":null,\"tls\":true},"
              "{\"node\":\"c:3\",\"reachable\":true,\"error\":null,\"latency_us\":0," UNKNOWN_SERVER
              "\"guard\":true,\"guard_nodes\":null,\"guard_set\":null,\"guard_max_lease_ms\":null,"
              "\"quarantine_ms\":null," UNKNOWN_REST "\"tracking\":true,\"msetex\":false,\"tls\":false}]");
    free(json);
}

DOCTOR_TEST(facts_are_json_whatever_the_texts_are)
{
    static const struct {
        const char *error, *json;
    } cases[] = {
        {"a\"b\\c/d", "a\\\"b\\\\c/d"},
        {"\x01\t\x7f", "\\u0001\\u0009\x7f"},
        {"\xc3\xa4\xf0\x9f\x94\x92", "\xc3\xa4\xf0\x9f\x94\x92"},
        {"a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd"},
        {"\\x41", "\\\\x41"},
    };

    f->facts[0].reachable = false;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char part[64], *json;

        snprintf(f->facts[0].error, sizeof(f->facts[0].error), "%s", cases[i].error);
        snprintf(part, sizeof(part), "\"error\":\"%s\",", cases[i].json);
        json = facts_of(f, 1);
        assert_contains(json, part);
        free(json);
    }
}

static void fill_text(char *text, size_t size)
{
    memset(text, 1, size - 1);
    text[size - 1] = '\0';
}

/* facts_write leaves out what has no room. */
DOCTOR_TEST(the_longest_facts_have_room)
{
    struct examine_facts *facts = &f->facts[0];
    char *json;

    *facts = (struct examine_facts){
        .has_memory = true,
        .has_persistence = true,
        .has_clients = true,
        .has_clock = true,
        .replicas = UINT32_MAX,
        .clients = UINT32_MAX,
        .maxclients = UINT32_MAX,
        .refused_rights = (1u << EXAMINE_RIGHTS) - 1,
        .offset_error_us = UINT32_MAX,
        .offset_us = INT64_MIN,
        .used_memory = INT64_MAX,
        .maxmemory = INT64_MAX,
        .guard = {.state = EXAMINE_GUARD_THERE,
                  .n_nodes = UINT32_MAX,
                  .max_lease_ms = UINT32_MAX,
                  .quarantine_ms = INT64_MAX},
    };
    fill_text(facts->error, sizeof(facts->error));
    fill_text(facts->kind, sizeof(facts->kind));
    fill_text(facts->version, sizeof(facts->version));
    fill_text(facts->mode, sizeof(facts->mode));
    fill_text(facts->role, sizeof(facts->role));
    fill_text(facts->run_id, sizeof(facts->run_id));
    fill_text(facts->policy, sizeof(facts->policy));
    fill_text(facts->appendfsync, sizeof(facts->appendfsync));
    fill_text(facts->guard.set, sizeof(facts->guard.set));
    json = facts_of(f, 1);
    assert_non_null(strstr(json, "\"tls\":false}]"));
    free(json);
}
