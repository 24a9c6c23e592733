/* SPDX-License-Identifier: BSD-3-Clause */
/* test_examine.c - the questions to one server and what its answers become, against a server that plays scripts */
#include <string.h>

#include <event2/event.h>

#include "node_fixture.h"
#include "redis/examine.h"

struct examination {
    struct node_fixture *node;
    struct examine_config config;
    struct examine_facts facts;
    unsigned n_done;
};

static struct examination examination;

static void on_done(void *arg)
{
    struct examination *f = arg;

    f->n_done++;
}

static int setup(void **state)
{
    (void)node_fixture_setup(state);
    memset(&examination, 0, sizeof(examination));
    examination.node = *state;
    *state = &examination;
    return 0;
}

static int teardown(void **state)
{
    *state = examination.node;
    return node_fixture_teardown(state);
}

#define EXAMINE_TEST(name) TEST_WITH(examination, name, setup, teardown)

static void begin(struct examination *f, const struct fake_step *script)
{
    node_fixture_open(f->node);
    node_fixture_uri(f->node, "127.0.0.1", "");
    fake_play(f->node->server, script);
    f->n_done = 0;
    f->config = (struct examine_config){.system = &f->node->system,
                                        .alloc = &f->node->alloc,
                                        .link = f->node->config.link,
                                        .key_prefix = "app:",
                                        .done = on_done,
                                        .arg = f};
}

static void run(struct examination *f)
{
    assert_non_null(examine_start(&f->config, &f->facts));
    assert_int_equal(f->n_done, 0);
    while (f->n_done == 0) event_base_loop(f->node->base, EVLOOP_ONCE);
    assert_int_equal(f->n_done, 1);
}

#define ASK(question, answer) EXPECT(question), SEND(answer)
#define KNOCK                 ASK("TIME ?", "-ERR wrong number of arguments for 'time' command\r\n")
#define TIMES                                                                                                          \
    KNOCK, ASK("TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n"),                                                      \
        ASK("TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n6\r\n"), ASK("TIME", ":1\r\n"),                                  \
        ASK("TIME", "*2\r\n$10\r\n1700000000\r\n$7\r\n1000000\r\n")
#define VERSION     "$59\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\nrun_id:aaaabb\r\n\r\n"
#define REPLICATION "$51\r\nrole:master\r\nmaster_replid:b\r\nconnected_slaves:12\r\n\r\n"
#define MEMORY      "$54\r\nused_memory:10\r\nmaxmemory:100\r\nmaxmemory_policy:none\r\n\r\n"
#define CLIENTS     "$37\r\nconnected_clients:7\r\nmaxclients:100\r\n\r\n"
#define LOCK        "app:quorlock-doctor-"
#define FENCE       "app:quorlock:fence:quorlock-doctor-"
#define CHANNEL     "app:quorlock:released:quorlock-doctor-"
#define SYNTAX      "-ERR syntax error\r\n"

EXAMINE_TEST(all_that_a_server_tells_is_taken)
{
    static const struct fake_step script[] = {
        TIMES,
        ASK("INFO server", VERSION),
        ASK("INFO replication", REPLICATION),
        ASK("INFO memory", MEMORY),
        ASK("INFO persistence", "$15\r\naof_enabled:1\r\n\r\n"),
        ASK("INFO clients", CLIENTS),
        ASK("CONFIG GET appendfsync", "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n"),
        ASK("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$2\r\n60\r\n"),
        ASK("ACL WHOAMI", "$4\r\njobs\r\n"),
        ASK("INFO stats", "$30\r\ntotal_net_repl_input_bytes:0\r\n\r\n"),
        ASK("INFO commandstats", "$5\r\ncmd:1\r\n"),
        ASK("GET quorlock:guard", "$-1\r\n"),
        ASK("SET quorlock:guard - NX XX", "-NOPERM this user has no permissions to access one of the keys\r\n"),
        ASK("GET " LOCK, "$-1\r\n"),
        ASK("SET " LOCK, SYNTAX),
        ASK("PTTL " LOCK, ":-2\r\n"),
        ASK("PEXPIRE " LOCK, "-NOPERM this user has no permissions to run the 'pexpire' command\r\n"),
        ASK("DEL " LOCK, ":0\r\n"),
        ASK("TYPE " LOCK, "+none\r\n"),
        ASK("GET " FENCE, "$-1\r\n"),
        ASK("SET " FENCE, SYNTAX),
        ASK("PTTL " FENCE, ":-2\r\n"),
        ASK("PUBLISH " CHANNEL, "-NOPERM this user has no permissions to access one of the channels\r\n"),
        ASK("EVAL ( 1 " LOCK, "-ERR Error compiling script\r\n"),
        ASK("EVALSHA 0000000000000000000000000000000000000000 1 " LOCK, "-NOSCRIPT\r\n"),
        ASK("CLIENT SETNAME quorlock-doctor", "+OK\r\n"),
        ASK("CLIENT TRACKING OFF", "+OK\r\n"),
        ASK("CLIENT CACHING YES", "-ERR CLIENT CACHING can be called only when\r\n"),
        ASK("HELLO 0", "-NOPROTO unsupported protocol version\r\n"),
        ASK("EXISTS " LOCK, ":0\r\n"),
        ASK("MSETEX 1 " LOCK, "-ERR unknown command 'MSETEX'\r\n"),
        END};

    begin(f, script);
    run(f);
    assert_string_equal(f->facts.error, "");
    assert_true(f->facts.reachable && f->facts.loopback && f->facts.has_clock);
    assert_false(f->facts.tls || f->facts.no_config || f->facts.too_old);
    assert_int_equal(f->facts.time_us, 1700000000000006);
    assert_true(f->facts.latency_us > 0);
    assert_string_equal(f->facts.version, "7.2.4");
    assert_string_equal(f->facts.role, "master");
    assert_int_equal(f->facts.replicas, 12);
    assert_true(f->facts.has_memory && f->facts.has_clients && f->facts.has_persistence && f->facts.aof);
    assert_int_equal(f->facts.clients, 7);
    assert_string_equal(f->facts.appendfsync, "always");
    assert_string_equal(f->facts.idle_s, "60");
    assert_string_equal(f->facts.user, "jobs");
    assert_true(f->facts.no_input && f->facts.counts_all);
    assert_int_equal(f->facts.guard.state, EXAMINE_GUARD_NONE);
    assert_int_equal(f->facts.refused_rights, 1u << EXAMINE_PEXPIRE);
    assert_int_equal(f->facts.refused_names, 1u << EXAMINE_GUARD | 1u << EXAMINE_CHANNEL);
    assert_int_equal(f->facts.unknown_rights, 1u << EXAMINE_MSETEX);
}

/* What it answers to INFO decides whether it is a server of ours; then HELLO tells what else it is. */
EXAMINE_TEST(what_is_no_server_of_ours_is_named)
{
    static const struct {
        const char *info, *replication, *hello, *why;
    } rows[] = {
        {"$3\r\na:b\r\n", ":0\r\n", "%1\r\n$6\r\nserver\r\n$5\r\nother\r\n",
         "not a Redis server, but other: INFO has no redis_version"},
        {"$3\r\na:b\r\n", ":0\r\n", "-ERR no\r\n", "not a Redis server: INFO has no redis_version"},
        {"$21\r\nredis_version:7.0.0\r\n\r\n", ":0\r\n", "-ERR no\r\n", "not a Redis server: INFO has no run_id"},
        {VERSION, "$3\r\na:b\r\n", "-ERR no\r\n", "not a Redis server: INFO has no role"},
        {VERSION, "$13\r\nrole:master\r\n\r\n", "-ERR no\r\n", "not a Redis server: INFO has no master_replid"},
        /* These take no locks, whatever else they lack. */
        {VERSION, "$12\r\nrole:slave\r\n\r\n", NULL, ""},
        {"$57\r\nredis_version:7.2.4\r\nredis_mode:sentinel\r\nrun_id:aaaabb\r\n\r\n", "$3\r\na:b\r\n", NULL, ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct fake_step script[10 + 2 * 30 + 4] = {TIMES};
        size_t n = 10;

        for (size_t k = 0; k < 30; k++) {
            script[n++] = (struct fake_step)EXPECT("");
            script[n++] = (struct fake_step)SEND(k == 0 ? rows[i].info : k == 1 ? rows[i].replication : ":0\r\n");
        }
        if (rows[i].hello != NULL) script[n++] = (struct fake_step)EXPECT("HELLO 3");
        if (rows[i].hello != NULL) script[n] = (struct fake_step)SEND(rows[i].hello);
        begin(f, script);
        run(f);
        assert_int_equal(f->facts.reachable, rows[i].hello == NULL);
        assert_string_equal(f->facts.error, rows[i].why);
    }
}

EXAMINE_TEST(a_server_that_lets_nobody_in_is_asked_no_more)
{
    static const struct {
        const char *reply, *why;
        bool late; /* not to the first command, which is refused in any case */
    } rows[] = {
        {"-NOAUTH Authentication required.\r\n", "NOAUTH", true},
        {"-DENIED Redis is running in protected mode\r\n", "protected mode", false},
        {"-ERR max number of clients reached\r\n", "maxclients", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct fake_step script[] = {EXPECT("TIME ?"), SEND(rows[i].reply), EXPECT("TIME"), SEND(rows[i].reply),
                                           END};

        begin(f, script);
        run(f);
        assert_false(f->facts.reachable);
        assert_contains(f->facts.error, rows[i].why);
        assert_int_equal(fake_commands(f->node->server), 1 + rows[i].late);
    }
}

EXAMINE_TEST(a_section_is_read_if_it_has_all)
{
    struct examine_facts *facts = &f->facts;
    const struct {
        enum examine_section section;
        const char *text;
        const bool *flag;
        bool is_set;
    } cases[] = {
        {EXAMINE_STATS, "total_net_repl_input_bytes:0\r\n", &facts->no_input, true},
        {EXAMINE_STATS, "total_net_repl_input_bytes:5\r\n", &facts->no_input, false},
        {EXAMINE_STATS, "", &facts->no_input, false},
        {EXAMINE_COMMANDS, "cmdstat_get:calls=1\r\n", &facts->counts_all, true},
        {EXAMINE_COMMANDS, "cmdstat_config|resetstat:calls=1\r\n", &facts->counts_all, false},
        {EXAMINE_COMMANDS, "", &facts->counts_all, false},
        {EXAMINE_MEMORY, "used_memory:1\r\nmaxmemory:0\r\nmaxmemory_policy:none\r\n", &facts->has_memory, true},
        {EXAMINE_MEMORY, "maxmemory:0\r\nmaxmemory_policy:none\r\n", &facts->has_memory, false},
        {EXAMINE_MEMORY, "used_memory:1\r\nmaxmemory_policy:none\r\n", &facts->has_memory, false},
        {EXAMINE_MEMORY, "used_memory:1\r\nmaxmemory:0\r\n", &facts->has_memory, false},
        {EXAMINE_CLIENTS, "connected_clients:1\r\nmaxclients:9\r\n", &facts->has_clients, true},
        {EXAMINE_CLIENTS, "connected_clients:1\r\n", &facts->has_clients, false},
        {EXAMINE_CLIENTS, "maxclients:9\r\n", &facts->has_clients, false},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        *facts = (struct examine_facts){0};
        examine_read_info(facts, cases[i].section, cases[i].text, strlen(cases[i].text));
        if (*cases[i].flag != cases[i].is_set) fail_msg("%s", cases[i].text);
    }
}

/* What only Valkey 9.1 says. */
EXAMINE_TEST(a_missing_database_and_missing_lua_are_read)
{
    static const struct {
        enum examine_right right;
        const char *text;
        bool no_database, no_lua;
    } cases[] = {
        {EXAMINE_GET, "NOPERM No permissions to access database", true, false},
        {EXAMINE_EVAL, "NOPERM No permissions to access database", true, false},
        {EXAMINE_EVAL, "ERR Could not find scripting engine 'lua'", false, true},
        {EXAMINE_EVAL, "ERR Error compiling script", false, false},
        {EXAMINE_GET, "ERR Could not find", false, false},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct examine_facts *facts = &f->facts;

        *facts = (struct examine_facts){0};
        examine_read_refusal(facts, cases[i].right, EXAMINE_LOCK, cases[i].text, strlen(cases[i].text));
        assert_int_equal(facts->no_database, cases[i].no_database);
        assert_int_equal(facts->no_lua[0] != '\0', cases[i].no_lua);
        assert_int_equal(facts->refused_rights | facts->refused_names, 0);
    }
}
