/* SPDX-License-Identifier: BSD-3-Clause */
/* test_handshake.c - what a new connection asks, and what it makes of each reply */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect_fixture.h"
#include "redis/link/handshake.h"
#include "redis/wire/errors.h"
#include "redis/wire/info.h"

enum shape { FAILS, WARNS, UNASKED, GREET, KNOCK, LOOK }; /* the first three: a node's, by what eviction does */

static struct uri uri;
static struct handshake shake;

static void begin(struct dialect_fixture *f, enum shape shape, const char *address, const char *name)
{
    char error[256];

    uri_clear(&uri, &memory);
    if (uri_parse(&uri, &memory, address, error, sizeof(error)) != 0) fail_msg("%s", error);
    switch (shape) {
    case FAILS: handshake_begin(&shake, &f->out, &uri, name, &dialect_plain, HANDSHAKE_EVICTION_FAILS); break;
    case WARNS: handshake_begin(&shake, &f->out, &uri, name, &dialect_plain, HANDSHAKE_EVICTION_WARNS); break;
    case UNASKED: handshake_begin(&shake, &f->out, &uri, name, &dialect_plain, HANDSHAKE_EVICTION_UNASKED); break;
    case GREET: handshake_greet(&shake, &f->out, &uri, name); break;
    case KNOCK: handshake_knock(&shake, &f->out, &uri); break;
    case LOOK: handshake_look(&shake, &f->out, &uri); break;
    }
}

static int teardown(void **state)
{
    uri_clear(&uri, &memory);
    return dialect_teardown(state);
}

#define HANDSHAKE_TEST(name) TEST_WITH(dialect_fixture, name, dialect_setup, teardown)

#define INFOS "INFO server\nINFO replication\n"

HANDSHAKE_TEST(the_commands_of_a_handshake)
{
    static const struct {
        enum shape shape;
        const char *address, *name, *commands;
        size_t steps;
    } rows[] = {
        {UNASKED, "h", NULL, INFOS "EVAL return '' 0\n", 3},
        {UNASKED, "h", "", INFOS "EVAL return '' 0\n", 3},
        {UNASKED, "redis://h/0", "me", "CLIENT SETNAME me\n" INFOS "EVAL return '' 0\n", 4},
        {UNASKED, "redis://bob:pw@h/7", "me", "AUTH bob pw\nSELECT 7\nCLIENT SETNAME me\n" INFOS "EVAL return '' 0\n",
         6},
        {UNASKED, "redis://:pw@h", NULL, "AUTH pw\n" INFOS "EVAL return '' 0\n", 4},
        {GREET, "redis://bob@h/7", "me", "AUTH bob \nCLIENT SETNAME me\nPING\n", 3},
        {GREET, "h", NULL, "PING\n", 1},
        {KNOCK, "h", NULL, "TIME ?\n", 1},
        {KNOCK, "redis://h/3", NULL, "TIME ?\nSELECT 3\n", 2},
        {KNOCK, "redis://:pw@h/3", NULL, "AUTH pw\nSELECT 3\n", 2},
        {LOOK, "redis://:pw@h/3", NULL, "AUTH pw\nSELECT 3\nINFO server\n", 3},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        begin(f, rows[i].shape, rows[i].address, rows[i].name);
        assert_string_equal(dialect_commands(f), rows[i].commands);
        assert_int_equal(shake.n_steps, rows[i].steps);
    }
}

/* Which user a certificate names is asked for only where the address has none. */
HANDSHAKE_TEST(a_guarded_node_asks_for_memory_rights_and_tracking)
{
    static const char *const addresses[] = {"h", "rediss://h", "rediss://bob:pw@h"};

    for (size_t i = 0; i < LENGTH(addresses); i++) {
        for (enum shape shape = FAILS; shape <= WARNS; shape++) {
            const char *commands;

            begin(f, shape, addresses[i], NULL);
            commands = dialect_commands(f);
            assert_contains(commands, INFOS "INFO memory\n");
            assert_contains(commands, i == 1 ? "ACL WHOAMI\nEVAL SCRIPT 0 " : "INFO memory\nEVAL SCRIPT 0 ");
            for (const char *const *command = dialect_plain.commands; *command != NULL; command++)
                assert_contains(strstr(commands, "SCRIPT"), *command);
            assert_contains(commands, "\nHELLO 3\nCLIENT TRACKING ON OPTIN\nCLIENT CACHING YES\n");
            assert_int_equal(shake.n_steps, 7 + (i > 0));
        }
    }
}

/* One reply; a '$' stands for a string of that length. */
static const struct reply *hear(struct dialect_fixture *f, const char *text)
{
    char wire[600];

    if (text[0] == '$')
        snprintf(wire, sizeof(wire), "$%zu\r\n%s\r\n", strlen(text + 1), text + 1);
    else
        snprintf(wire, sizeof(wire), "%s\r\n", text);
    dialect_feed(f, wire);
    if (dialect_next(f) != REPLY_READY) fail_msg("%s: %s", text, f->why);
    return f->reply;
}

#define SERVER "$redis_version:7.0.15\r\nrun_id:aaaa\r\n"
#define MASTER "$role:master\r\nmaster_replid:bbbb\r\n"
#define MEMORY "$maxmemory:0\r\n"
#define EVICTS "$maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n"
#define EVICTED                                                                                                        \
    "the server may evict locks: maxmemory is 100 bytes with maxmemory-policy allkeys-lru: set "                       \
    "maxmemory-policy noeviction"
#define PROTO3 "%1\r\n$5\r\nproto\r\n:3"
#define OTHER  "%1\r\n$6\r\nserver\r\n$5\r\nother"
#define NOT    "not a Redis server: "
#define BEGUN  SERVER, MASTER, MEMORY, "$"
#define NO     "-ERR no"

static const struct {
    enum shape shape;
    const char *address;
    const char *replies[12];
    const char *why; /* "": it is done; else the last reply ends it */
    enum fault fault;
    const char *warning;
    bool tracks;
} rows[] = {
    {FAILS, "h", {BEGUN, PROTO3, "+OK", "+OK"}, "", FINE, "", true},
    {FAILS, "h", {BEGUN, PROTO3, NO, NO}, "", FINE, "", false},
    {FAILS, "h", {BEGUN, NO, "+OK", NO}, "", FINE, "", false},
    {FAILS, "h", {BEGUN, NO, NO, NO}, "", FINE, "", false},
    {FAILS,
     "h",
     {SERVER, MASTER, "$maxmemory:100\r\nmaxmemory_policy:noeviction\r\n", "$", NO, NO, NO},
     "",
     FINE,
     "",
     false},
    {FAILS,
     "h",
     {SERVER, MASTER, "$maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", "$", NO, NO, NO},
     "",
     FINE,
     "",
     false},
    {FAILS, "h", {SERVER, MASTER, EVICTS}, EVICTED ", or allow eviction", FAULT_CONFIG, EVICTED, false},
    {WARNS, "h", {SERVER, MASTER, EVICTS, "$", NO, NO, NO}, "", FINE, EVICTED, false},
    {UNASKED, "h", {SERVER, MASTER, "$"}, "", FINE, "", false},
    {UNASKED, "h", {SERVER, MASTER, "-NOPERM no"}, "", FINE, "", false},
    {UNASKED, "h", {SERVER, MASTER, "-LOADING no"}, "EVAL: LOADING no", FAULT_TEMPORARY, "", false},
    {UNASKED, "h", {SERVER, MASTER, "-NOAUTH no"}, "EVAL: NOAUTH no", FAULT_LOGIN, "", false},
    {UNASKED, "h", {SERVER, MASTER, "+OK"}, "EVAL: an unexpected reply: not a Redis server?", PROTO, "", false},
    {UNASKED, "h", {"-DENIED no"}, "refused: DENIED no", FAULT_REFUSED, "", false},
    {UNASKED, "h", {SERVER, "-DENIED no"}, "INFO: DENIED no", FAULT_REFUSED, "", false},
    /* INFO server */
    {UNASKED, "h", {"$x:y\r\n"}, NOT "INFO has no redis_version", PROTO, "", false},
    {UNASKED, "h", {"$redis_version:7.0.0\r\n"}, NOT "INFO has no run_id", PROTO, "", false},
    {UNASKED, "h", {"$redis_version:7.0.0\r\nrun_id:\r\n"}, NOT "INFO has no run_id", PROTO, "", false},
    {UNASKED,
     "h",
     {"$redis_version:6.0.9<b>\r\nrun_id:a\r\n"},
     "Redis 6.0.9 is too old: Redis 6.2 or newer is needed",
     PROTO,
     "",
     false},
    {UNASKED,
     "h",
     {"$redis_version:7.0.0\r\nredis_mode:sentinel\r\nrun_id:a\r\n"},
     "a Sentinel, not a Redis server: give the address of the server itself",
     PROTO,
     "",
     false},
    {UNASKED,
     "h",
     {"$redis_version:7.0.0\r\nredis_mode:cluster\r\nrun_id:a\r\n"},
     "the server runs in cluster mode: list independent masters, with cluster-enabled no",
     FAULT_CLUSTER,
     "",
     false},
    {UNASKED, "h", {"-NOPERM no"}, "INFO: NOPERM no", FAULT_AUTH, "", false},
    {UNASKED, "h", {":1"}, "INFO: an unexpected reply: not a Redis server?", PROTO, "", false},
    /* INFO replication */
    {UNASKED, "h", {SERVER, "$x:y\r\n"}, NOT "INFO has no role", PROTO, "", false},
    {UNASKED, "h", {SERVER, "$role:master\r\n"}, NOT "INFO has no master_replid", PROTO, "", false},
    {UNASKED,
     "h",
     {SERVER, "$role:slave\r\nmaster_host:h2\r\nmaster_port:77\r\n"},
     "the server is a replica of h2:77: list independent masters only",
     FAULT_REPLICA,
     "",
     false},
    {UNASKED,
     "h",
     {SERVER, "$role:slave\r\n"},
     "the server is a replica of ?:?: list independent masters only",
     FAULT_REPLICA,
     "",
     false},
    {UNASKED,
     "redis://:sesame@h",
     {"+OK", SERVER, "$role:slave\r\nmaster_host:sesame\r\nmaster_port:77\r\n"},
     "the server is a replica: list independent masters only",
     FAULT_REPLICA,
     "",
     false},
    {UNASKED,
     "redis://:sesame@h",
     {"+OK", SERVER, "$role:slave\r\nmaster_host:h2\r\nmaster_port:sesame\r\n"},
     "the server is a replica: list independent masters only",
     FAULT_REPLICA,
     "",
     false},
    /* rights */
    {FAILS,
     "redis://bob:pw@h",
     {"+OK", SERVER, MASTER, MEMORY, "$PEXPIRE"},
     "user \"bob\" may not run PEXPIRE, so locks could not be renewed or released (ACL SETUSER bob +pexpire; or undo "
     "its rename-command)",
     FAULT_AUTH,
     "",
     false},
    {FAILS,
     "h",
     {SERVER, MASTER, MEMORY, "$DEL GET"},
     "user \"default\" may not run DEL GET, so locks could not be renewed or released (ACL SETUSER default +del +get; "
     "or undo its rename-command)",
     FAULT_AUTH,
     "",
     false},
    {FAILS,
     "rediss://h",
     {SERVER, MASTER, MEMORY, "$cn", "$DEL"},
     "user \"cn\" may not run DEL, so locks could not be renewed or released (ACL SETUSER cn +del; or undo its "
     "rename-command)",
     FAULT_AUTH,
     "",
     false},
    {FAILS,
     "rediss://h",
     {SERVER, MASTER, MEMORY, NO, "$DEL"},
     "user \"default\" may not run DEL, so locks could not be renewed or released (ACL SETUSER default +del; or undo "
     "its rename-command)",
     FAULT_AUTH,
     "",
     false},
    {FAILS,
     "h",
     {SERVER, MASTER, MEMORY, "$DELETE"},
     "EVAL: a reply that does not fit the request: not a Redis server?",
     PROTO,
     "",
     false},
    {FAILS,
     "h",
     {SERVER, MASTER, MEMORY, "$DE"},
     "EVAL: a reply that does not fit the request: not a Redis server?",
     PROTO,
     "",
     false},
    {FAILS,
     "h",
     {SERVER, MASTER, MEMORY,
      "$DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL DEL"
      " DEL DEL DEL DEL DEL DEL"},
     "EVAL: a reply that does not fit the request: not a Redis server?",
     PROTO,
     "",
     false},
    /* AUTH */
    {KNOCK, "h", {"-ERR wrong number"}, "", FINE, "", false},
    {KNOCK, "h", {"+OK"}, "", FINE, "", false},
    {KNOCK, "h", {"-DENIED no"}, "refused: DENIED no", FAULT_REFUSED, "", false},
    {LOOK, "redis://bob:sesame@h", {"+OK", SERVER}, "", FINE, "", false},
    {LOOK,
     "redis://bob:sesame@h",
     {"-WRONGPASS no"},
     "WRONGPASS: wrong password for user \"bob\", or that user is unknown or disabled",
     FAULT_LOGIN,
     "",
     false},
    {LOOK,
     "redis://:sesame@h",
     {"-WRONGPASS no"},
     "WRONGPASS: wrong password for the default user, or that user is unknown or disabled",
     FAULT_LOGIN,
     "",
     false},
    {LOOK,
     "redis://sesame@h",
     {"-WRONGPASS no"},
     "WRONGPASS: wrong password for a user without a password, or that user is unknown or disabled",
     FAULT_LOGIN,
     "",
     false},
    {LOOK,
     "redis://:sesame@h",
     {"-ERR AUTH called without any password configured"},
     "AUTH: the server has no password for the default user, but the address or an option gives one: remove it, or "
     "set one on the server",
     FAULT_LOGIN,
     "",
     false},
    {LOOK, "redis://:sesame@h", {"-ERR sesame"}, "AUTH: refused for the default user", FAULT_LOGIN, "", false},
    {LOOK, "redis://sesame@h", {"-ERR sesame"}, "AUTH: refused for a user without a password", FAULT_LOGIN, "", false},
    {LOOK, "redis://:sesame@h", {NO}, "AUTH: ERR no", FAULT_LOGIN, "", false},
    {LOOK, "redis://:sesame@h", {"-LOADING sesame"}, "AUTH: refused", FAULT_TEMPORARY, "", false},
    {LOOK, "redis://:sesame@h/1", {"+OK", NO}, "SELECT: ERR no", FAULT_OTHER, "", false},
    {LOOK,
     "redis://h/1",
     {"-ERR max number of clients reached"},
     "refused: ERR max number of clients reached",
     FAULT_REFUSED,
     "",
     false},
    /* PING: also of a server that loads its data, or denies the command */
    {GREET, "h", {"+PONG"}, "", FINE, "", false},
    {GREET, "h", {"-LOADING no"}, "", FINE, "", false},
    {GREET, "h", {"-NOPERM no"}, "", FINE, "", false},
    {GREET, "h", {"-NOAUTH no"}, "PING: NOAUTH no", FAULT_LOGIN, "", false},
    {GREET, "h", {"-DENIED no"}, "refused: DENIED no", FAULT_REFUSED, "", false},
    {GREET, "h", {"-BUSY no"}, "PING: BUSY no", FAULT_TEMPORARY, "", false},
    /* Where HELLO is still to come, it is awaited, and may name the server. */
    {FAILS,
     "h",
     {"$x:y\r\n", "$x", "$x", "$x", OTHER},
     "not a Redis server, but other: INFO has no redis_version",
     PROTO,
     "",
     false},
    {FAILS, "h", {"$x:y\r\n", "$x", "$x", "$x", PROTO3}, NOT "INFO has no redis_version", PROTO, "", false},
    {FAILS,
     "h",
     {SERVER, "-ERR no", "$x", "$x", OTHER},
     "not a Redis server, but other: INFO: ERR no",
     PROTO,
     "",
     false},
    {FAILS,
     "redis://:other@h",
     {"+OK", "$x:y\r\n", "$x", "$x", "$x", OTHER},
     NOT "INFO has no redis_version",
     PROTO,
     "",
     false},
    {LOOK, "h", {"$x:y\r\n"}, NOT "INFO has no redis_version", PROTO, "", false},
};

HANDSHAKE_TEST(each_reply_is_judged)
{
    for (size_t i = 0; i < LENGTH(rows); i++) {
        enum handshake_result result = HANDSHAKE_MORE;

        begin(f, rows[i].shape, rows[i].address, NULL);
        bytes_cut(&f->out, 0);
        for (size_t k = 0; k < 12 && rows[i].replies[k] != NULL; k++) {
            if (result != HANDSHAKE_MORE) fail_msg("row %zu ends early: %s", i, shake.why);
            result = handshake_reply(&shake, hear(f, rows[i].replies[k]));
        }
        if (result != (rows[i].why[0] == '\0' ? HANDSHAKE_DONE : HANDSHAKE_FAILED))
            fail_msg("row %zu: %d %s", i, result, shake.why);
        if (result == HANDSHAKE_FAILED) assert_int_equal(shake.fault, rows[i].fault);
        if (strncmp(shake.why, rows[i].why, strlen(rows[i].why)) != 0) fail_msg("row %zu: %s", i, shake.why);
        assert_string_equal(shake.warning, rows[i].warning);
        assert_int_equal(shake.tracks, rows[i].tracks);
    }
}

HANDSHAKE_TEST(the_process_of_the_server_is_noted)
{
    begin(f, UNASKED, "h", NULL);
    (void)handshake_reply(&shake, hear(f, "$redis_version:7.0.15x\r\nrun_id:aaaa\r\n"));
    (void)handshake_reply(&shake, hear(f, MASTER));
    assert_string_equal(shake.version, "Redis 7.0.15");
    assert_string_equal(shake.run_id, "aaaa");
    assert_string_equal(shake.replid, "bbbb");
}

/* The connection of a server that is doubted may end before HELLO is answered. */
HANDSHAKE_TEST(a_doubt_is_the_reason_when_the_connection_ends)
{
    static const struct {
        const char *reply;
        enum fault ends, fault;
        const char *why;
    } ends[] = {
        {"$x:y\r\n", PROTO, PROTO, NOT "INFO has no redis_version"},
        {"$x:y\r\n", FAULT_UNREACHABLE, PROTO, NOT "INFO has no redis_version"},
        {"-NOPERM no", FAULT_UNREACHABLE, FAULT_AUTH, "INFO: NOPERM no"},
        {"-NOPERM no", PROTO, PROTO, NOT "INFO: NOPERM no"},
    };

    for (size_t i = 0; i < LENGTH(ends); i++) {
        enum fault fault = ends[i].ends;
        char why[320];

        begin(f, FAILS, "h", NULL);
        assert_int_equal(handshake_reply(&shake, hear(f, ends[i].reply)), HANDSHAKE_MORE);
        assert_true(shake.doubted);
        handshake_still_doubted(&shake, &fault, why, sizeof(why));
        assert_int_equal(fault, ends[i].fault);
        assert_int_equal(strncmp(why, ends[i].why, strlen(ends[i].why)), 0);
    }
}

/* ---- what cannot be read ---- */

HANDSHAKE_TEST(what_cannot_be_read_is_shown_without_the_password)
{
    static const struct {
        const char *said[3];
        bool first;
        const char *why;
    } says[] = {
        {{"SSH-2.0\r\nx"}, true, "not a Redis server: it says \"SSH-2.0\""},
        {{"SSH", "-2.0", "\nx"}, true, "not a Redis server: it says \"SSH-2.0\""},
        {{"0123456789012345678901234567890123456789", "x"},
         true,
         "not a Redis server: it says \"0123456789012345678901234567890123456789\""},
        {{"\x15\x03"}, true, "not a Redis server: it says \"??\"; it speaks TLS: write rediss://"},
        {{"\r\n"}, true, "not a Redis server"},
        {{""}, true, "not a Redis server"},
        {{"What is sesame?"}, true, "not a Redis server"},
        {{"SSH-2.0\r\nx"}, false, "malformed reply: it is odd"},
    };

    for (size_t i = 0; i < LENGTH(says); i++) {
        char why[320];

        begin(f, UNASKED, "redis://:sesame@h", NULL);
        for (size_t k = 0; k < 3 && says[i].said[k] != NULL; k++)
            handshake_hear(&shake, says[i].said[k], strlen(says[i].said[k]));
        handshake_malformed(&shake, says[i].first, "it is odd", why, sizeof(why));
        assert_string_equal(why, says[i].why);
    }
}

/* ---- words of INFO, HELLO and errors ---- */

TEST(a_version_is_compared_by_its_numbers)
{
    static const struct {
        const char *info, *kind;
        bool too_old;
    } versions[] = {
        {"redis_version:6.2.0", "Redis", false},   {"redis_version:6.1.9", "Redis", true},
        {"redis_version:5.9", "Redis", true},      {"redis_version:10.0", "Redis", false},
        {"redis_version:6", "Redis", true},        {"redis_version:6x9", "Redis", true},
        {"valkey_version:7.2.0", "Valkey", false}, {"redis_version:7.2.4\r\nvalkey_version:7.1.0", "Valkey", true},
    };

    for (size_t i = 0; i < LENGTH(versions); i++) {
        struct info_server server;
        char version[20];

        assert_true(info_server(versions[i].info, strlen(versions[i].info), &server, version, sizeof(version)));
        assert_string_equal(server.kind, versions[i].kind);
        if (server.too_old != versions[i].too_old) fail_msg("%s", versions[i].info);
    }
}

TEST(a_field_is_found_by_its_whole_name)
{
    static const struct {
        const char *info, *value; /* NULL: there is none */
    } fields[] = {{"role:a", "a"},
                  {"x:y\r\nrole:a\r\nz:z", "a"},
                  {"role:\r\n", ""},
                  {"roles:a", NULL},
                  {"role", NULL},
                  {"xrole:a", NULL},
                  {"", NULL},
                  {"role:a\tb\n", "a?b"},
                  {"role:\nrole:b", ""},
                  {"role:0123456789", "0123456"}};

    for (size_t i = 0; i < LENGTH(fields); i++) {
        char value[8] = "";
        bool found = info_field(fields[i].info, strlen(fields[i].info), "role", value, sizeof(value));

        if (found != (fields[i].value != NULL)) fail_msg("%s", fields[i].info);
        if (found) assert_string_equal(value, fields[i].value);
    }
}

HANDSHAKE_TEST(what_a_server_says_it_is)
{
    static const struct {
        const char *wire, *other;
    } hellos[] = {
        {OTHER, "other"},
        {"%2\r\n+proto\r\n:3\r\n+server\r\n+other", "other"},
        {"%1\r\n+server\r\n+redis", ""},
        {"%1\r\n+server\r\n+valkey", ""},
        {"%2\r\n+server\r\n:3\r\n+server\r\n+other", "other"},
        {"%1\r\n+name\r\n+other", ""},
        {"*2\r\n+server\r\n+other", ""},
    };

    for (size_t i = 0; i < LENGTH(hellos); i++) {
        char other[32] = "x";

        info_other(hear(f, hellos[i].wire), other, sizeof(other));
        assert_string_equal(other, hellos[i].other);
    }
}

TEST(an_error_is_known_by_its_first_words_wherever_they_stand)
{
    static const struct {
        const char *text;
        enum fault fault;
    } errors[] = {
        {"READONLY You can't", FAULT_REPLICA},
        {"READONLYx", FAULT_OTHER},
        {"ERR Error running script (call to f_0): @user_script:3: -READONLY You can't", FAULT_REPLICA},
        {"@user_script: 3: READONLY You can't", FAULT_REPLICA},
        {"@user_script: 3:-READONLY You can't", FAULT_OTHER},
        {"@user_script: 3; READONLY You can't", FAULT_OTHER},
        {"ERR other: READONLY You can't", FAULT_OTHER},
        {"@user_script: ", FAULT_OTHER},
    };

    for (size_t i = 0; i < LENGTH(errors); i++)
        if (error_classify(errors[i].text, strlen(errors[i].text)).fault != errors[i].fault)
            fail_msg("%s", errors[i].text);
}
