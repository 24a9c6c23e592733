/* SPDX-License-Identifier: BSD-3-Clause */
/* test_guard.c - what a node asks of its guard, what it makes of the replies, and what the guards of all nodes say */
#include <stdio.h>
#include <string.h>

#include <quorlock/quorlock.h>

#include "dialect_fixture.h"
#include "redis/dialect/guard.h"
#include "redis/guard_sets.h"

#define HASH   "0123456789abcdef"
#define NOW_US 5000000u

static struct guard guard_of(const char *set, bool named)
{
    struct guard guard;

    guard_init(&guard, QUORLOCK_GUARD_STRICT, 3, 0, set, named);
    guard_meet(&guard, "run", "repl");
    return guard;
}

/* ---- what is sent ---- */

DIALECT_TEST(the_guard_is_asked_for)
{
    struct guard guard = guard_of("s", true);

    guard_look(&guard, &f->out);
    assert_string_equal(dialect_commands(f), "EVAL SCRIPT 1 quorlock:guard 3 s 30000 run repl look\n");
    assert_true(guard.asked && guard.looks);
    guard_ask(&guard, &f->out);
    assert_string_equal(dialect_commands(f), "EVAL SCRIPT 1 quorlock:guard 3 s 30000 run repl 0\n");
    snprintf(guard.seen, sizeof(guard.seen), "x");
    guard_ask(&guard, &f->out);
    assert_string_equal(dialect_commands(f), "EVAL SCRIPT 1 quorlock:guard 3 s 30000 run repl 1\n");
    guard_compare(&f->out);
    assert_string_equal(dialect_commands(f), "CLIENT CACHING YES\nGET quorlock:guard\n");
    guard_init(&guard, QUORLOCK_GUARD_OFF, 5, 700, NULL, false);
    guard_ask(&guard, &f->out);
    assert_string_equal(dialect_commands(f), "EVAL SCRIPT 1 quorlock:guard 5  700   0\n");
}

TEST(a_guard_is_on_in_two_modes)
{
    static const struct {
        uint32_t mode;
        bool on;
    } rows[] = {{QUORLOCK_GUARD_OFF, false}, {QUORLOCK_GUARD_CONNECTION, true}, {QUORLOCK_GUARD_STRICT, true}};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct guard guard = {.mode = rows[i].mode};

        assert_int_equal(guard_is_on(&guard), rows[i].on);
    }
}

DIALECT_TEST(bootstrap_is_one_command_or_a_transaction)
{
#define KILL "CLIENT KILL TYPE normal SKIPME yes"
    static const struct {
        struct node_request request;
        const char *commands;
        uint8_t parts;
    } rows[] = {
        {{.op = OP_BOOTSTRAP}, "EVAL SCRIPT 1 quorlock:guard 3 s 30000 run repl new 0\n", 0},
        {{.op = OP_BOOTSTRAP, .lease_ms = 9, .longest_ms = 7, .ends = true},
         "EVAL SCRIPT 1 quorlock:guard 3 s 9 run repl end 7\n",
         0},
        {{.op = OP_BOOTSTRAP, .closes = true}, "EVAL SCRIPT 1 quorlock:guard 0 s 30000 run repl new 0\n", 0},
        {{.op = OP_BOOTSTRAP, .force = true, .ends = true},
         "MULTI\nEVAL SCRIPT 1 quorlock:guard 3 s 30000 run repl over 0\n" KILL "\nEXEC\n",
         3},
        {{.op = OP_MAY_KILL}, "MULTI\n" KILL " ADDR 0.0.0.0:0\nEXEC\n", 2},
        {{.op = OP_MAY_KILL, .force = true}, "MULTI\n" KILL " ADDR 0.0.0.0:0\nEXEC\n", 2},
    };
    const struct guard guard = guard_of("s", true);
    const struct node_request acquire = {.op = OP_ACQUIRE, .force = true};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        guard_bootstrap(&guard, &f->out, &rows[i].request);
        assert_string_equal(dialect_commands(f), rows[i].commands);
        assert_int_equal(guard_parts(&rows[i].request), rows[i].parts);
    }
    assert_int_equal(guard_parts(&acquire), 0);
}

DIALECT_TEST(what_became_of_a_bootstrap)
{
#define WRITTEN "$9\r\nwritten:x\r\n"
#define GUARDED "$10\r\nguarded:yz\r\n"
    static const struct {
        enum op op;
        const char *wire;
        enum outcome outcome;
        enum fault fault;
        const char *holder, *error;
        bool misfit;
    } rows[] = {
        {OP_BOOTSTRAP, WRITTEN, OUTCOME_YES, FINE, "x", NULL, false},
        {OP_BOOTSTRAP, GUARDED, OUTCOME_OTHER, FINE, "yz", NULL, false},
        {OP_BOOTSTRAP, "$7\r\nwritten\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_BOOTSTRAP, "+written:x\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_MAY_KILL, WRITTEN, OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_BOOTSTRAP, "*2\r\n" WRITTEN ":4\r\n", OUTCOME_YES, FINE, "x", NULL, false},
        {OP_BOOTSTRAP, "*2\r\n" GUARDED ":0\r\n", OUTCOME_OTHER, FINE, "yz", NULL, false},
        {OP_BOOTSTRAP, "*2\r\n:1\r\n:0\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_BOOTSTRAP, "*2\r\n" WRITTEN "+OK\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_BOOTSTRAP, "*1\r\n:0\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_BOOTSTRAP, "*2\r\n-OOM no\r\n:0\r\n", OUTCOME_ERROR, FAULT_REFUSED, NULL, "bootstrap: OOM no", false},
        {OP_BOOTSTRAP, "*2\r\n" WRITTEN "-NOPERM no\r\n", OUTCOME_UNKNOWN, FAULT_AUTH, "x", "CLIENT KILL: NOPERM no",
         false},
        {OP_MAY_KILL, "*1\r\n:0\r\n", OUTCOME_YES, FINE, NULL, NULL, false},
        {OP_MAY_KILL, "*1\r\n-NOPERM no\r\n", OUTCOME_ERROR, FAULT_AUTH, NULL, "CLIENT KILL: NOPERM no", false},
        {OP_MAY_KILL, "*1\r\n+OK\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
        {OP_MAY_KILL, "*2\r\n:0\r\n:0\r\n", OUTCOME_MISSING, FINE, NULL, NULL, true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct node_reply ret = {.outcome = OUTCOME_MISSING};
        bool fits;

        dialect_feed(f, rows[i].wire);
        assert_int_equal(dialect_next(f), REPLY_READY);
        fits = guard_judge_bootstrap(rows[i].op, f->reply, &ret, f->text, sizeof(f->text));
        if (fits == rows[i].misfit) fail_msg("%s", rows[i].wire);
        if (!fits) continue;
        assert_int_equal(ret.outcome, rows[i].outcome);
        assert_int_equal(ret.fault, rows[i].fault);
        if (rows[i].holder != NULL) {
            assert_int_equal(ret.holder_length, strlen(rows[i].holder));
            assert_memory_equal(ret.holder, rows[i].holder, ret.holder_length);
        }
        if (rows[i].error != NULL) assert_contains(ret.error, rows[i].error);
    }
}

/* ---- what the server tells by itself ---- */

DIALECT_TEST(a_push_may_be_of_the_guard)
{
    static const struct {
        const char *wire;
        bool is;
    } rows[] = {
        {">2\r\n$10\r\ninvalidate\r\n*1\r\n$14\r\nquorlock:guard\r\n", true},
        {">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nx\r\n$14\r\nquorlock:guard\r\n", true},
        {">2\r\n$10\r\ninvalidate\r\n_\r\n", true},
        {">2\r\n$10\r\ninvalidate\r\n*1\r\n$15\r\nquorlock:guards\r\n", false},
        {">2\r\n$10\r\ninvalidate\r\n*0\r\n", false},
        {">2\r\n$10\r\nvalidation\r\n*1\r\n$14\r\nquorlock:guard\r\n", false},
        {">1\r\n$10\r\ninvalidate\r\n", false},
        {">2\r\n$10\r\ninvalidate\r\n:0\r\n", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        dialect_feed(f, rows[i].wire);
        assert_int_equal(dialect_next(f), REPLY_READY);
        if (guard_is_in(f->reply) != rows[i].is) fail_msg("%s", rows[i].wire);
    }
}

DIALECT_TEST(a_guard_that_was_read_again_is_compared_whole)
{
    static const struct {
        const char *wire;
        bool kept;
    } rows[] = {{"$2\r\nxy\r\n", true}, {"$1\r\nx\r\n", false}, {"$3\r\nxyz\r\n", false},
                {"$-1\r\n", false},     {"+xy\r\n", false},     {"-ERR no\r\n", false}};
    const struct guard guard = {.seen = "xy"};

    for (size_t i = 0; i < LENGTH(rows); i++) {
        dialect_feed(f, rows[i].wire);
        assert_int_equal(dialect_next(f), REPLY_READY);
        if (guard_is_kept(&guard, f->reply) != rows[i].kept) fail_msg("%s", rows[i].wire);
    }
}

/* ---- a set that others see differently ---- */

DIALECT_TEST(a_client_that_is_set_up_differently_is_told_what_to_do)
{
#define SECOND_HASH "fedcba9876543210"
    static const struct {
        const char *set, *n, *their_set, *lease, *why;
        bool named;
    } rows[] = {
        {"s", "5", "t", "2000",
         "set up differently: its guard says 5 nodes, set t, max lease 2000 ms; this client says 3 nodes, set s, max "
         "lease 30000 ms: give all clients the same (here --max-lease 2s or QUORLOCK_MAX_LEASE=2s; --set-name t; all "
         "5 nodes), or change the nodes by 'quorlock bootstrap --reconfigure --max-lease 30s --set-name s'",
         true},
        {"s", "5", "s", "30000",
         "set up differently: its guard says 5 nodes, set s, max lease 30000 ms; this client says 3 nodes, set s, max "
         "lease 30000 ms: give all clients the same (here all 5 nodes), or change the nodes by 'quorlock bootstrap "
         "--reconfigure --max-lease 30s --set-name s'",
         true},
        {"s", "3", "s", "90000",
         "set up differently: its guard says 3 nodes, set s, max lease 90000 ms; this client says 3 nodes, set s, max "
         "lease 30000 ms: give all clients the same (here --max-lease 90s or QUORLOCK_MAX_LEASE=90s), or change the "
         "nodes by 'quorlock bootstrap --reconfigure --max-lease 30s --set-name s'",
         true},
        {"s", "3", HASH, "30000",
         "set up differently: its guard says 3 nodes, a set without name, max lease 30000 ms; this client says 3 "
         "nodes, set s, max lease 30000 ms: give all clients the same (here the same addresses without --set-name), "
         "or change the nodes by 'quorlock bootstrap --reconfigure --max-lease 30s --set-name s'",
         true},
        {HASH, "3", "t", "30000",
         "set up differently: its guard says 3 nodes, set t, max lease 30000 ms; this client says 3 nodes, a set "
         "without name, max lease 30000 ms: give all clients the same (here --set-name t), or change the nodes by "
         "'quorlock bootstrap --reconfigure --max-lease 30s'",
         false},
        {HASH, "4", SECOND_HASH, "30000",
         "set up differently: its guard says 4 nodes, a set without name, max lease 30000 ms; this client says 3 "
         "nodes, a set without name, max lease 30000 ms: give all clients the same (here the same addresses; all 4 "
         "nodes), or change the nodes by 'quorlock bootstrap --reconfigure --max-lease 30s'",
         false},
        {HASH, "3", SECOND_HASH, "60000",
         "set up differently: its guard says 3 nodes, a set without name, max lease 60000 ms; this client says 3 "
         "nodes, a set without name, max lease 30000 ms: give all clients the same (here --max-lease 1m or "
         "QUORLOCK_MAX_LEASE=1m; the same addresses), or change the nodes by 'quorlock bootstrap --reconfigure "
         "--max-lease 30s'",
         false},
        {HASH, "3", SECOND_HASH, "30000",
         "set up differently: clients write the addresses in different ways (as localhost and 127.0.0.1), or another "
         "server is among them. Write them alike in all clients; or name the set, by 'quorlock bootstrap "
         "--reconfigure --max-lease 30s --set-name NAME' once, and --set-name NAME in all clients",
         false},
        {HASH, "3", "0123456789abcdeg", "30000",
         "set up differently: its guard says 3 nodes, set 0123456789abcdeg, max lease 30000 ms; this client says 3 "
         "nodes, a set without name, max lease 30000 ms: give all clients the same (here --set-name "
         "0123456789abcdeg), or change the nodes by 'quorlock bootstrap --reconfigure --max-lease 30s'",
         false},
        {"s", "0", "t", "2000",
         "its guard admits no client, because a 'quorlock bootstrap --reconfigure' was not finished: repeat that "
         "command until it exits with 0",
         true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct guard guard = guard_of(rows[i].set, rows[i].named);
        char wire[256];

        snprintf(wire, sizeof(wire), "*4\r\n$8\r\nconflict\r\n$1\r\n%s\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", rows[i].n,
                 strlen(rows[i].their_set), rows[i].their_set, strlen(rows[i].lease), rows[i].lease);
        dialect_feed(f, wire);
        assert_int_equal(dialect_next(f), REPLY_READY);
        assert_int_equal(guard_judge(&guard, f->reply, NOW_US), GUARD_FAILED);
        assert_int_equal(guard.fault, rows[i].n[0] == '0' ? FAULT_GUARD : FAULT_CONFIG);
        assert_string_equal(guard.why, rows[i].why);
    }
}

/* ---- its reply ---- */

#define REPLY(why, left, lease, text) "*4\r\n$4\r\n" why "\r\n:" left "\r\n:" lease "\r\n$1\r\n" text "\r\n"

DIALECT_TEST(a_reply_that_fits_is_read_and_no_other)
{
    static const struct {
        const char *wire;
        enum guard_verdict verdict;
        enum fault fault;
        const char *why; /* or a part of it */
        bool looks;
    } rows[] = {
        {REPLY("kept", "0", "1", "x"), GUARD_CLEAR, FINE, "", false},
        {REPLY("kept", "1", "1", "x"), GUARD_QUARANTINED, FINE, "", true},
        {REPLY("kept", "4294967295", "4294967295", "x"), GUARD_QUARANTINED, FINE, "", false},
        {REPLY("lost", "0", "1", "x"), GUARD_CLEAR, FINE, "", false},
        {REPLY("kept", "-1", "1", "x"), GUARD_FAILED, PROTO, "does not fit", false},
        {REPLY("kept", "4294967296", "1", "x"), GUARD_FAILED, PROTO, "does not fit", false},
        {REPLY("kept", "0", "0", "x"), GUARD_FAILED, PROTO, "does not fit", false},
        {REPLY("kept", "0", "4294967296", "x"), GUARD_FAILED, PROTO, "does not fit", false},
        {"*4\r\n$4\r\nkept\r\n:0\r\n:1\r\n$0\r\n\r\n", GUARD_FAILED, PROTO, "does not fit", false},
        {"*1\r\n$3\r\nask\r\n", GUARD_ASK, FINE, "", true},
        {"*1\r\n$3\r\nask\r\n", GUARD_FAILED, PROTO, "does not fit", false},
        {"*2\r\n$3\r\nask\r\n:0\r\n", GUARD_FAILED, PROTO, "does not fit", true},
        {"*1\r\n$3\r\nany\r\n", GUARD_FAILED, PROTO, "does not fit", true},
        {"*0\r\n", GUARD_FAILED, PROTO, "does not fit", true},
        {"*3\r\n$8\r\nconflict\r\n$1\r\n1\r\n$1\r\n1\r\n", GUARD_FAILED, PROTO, "does not fit", false},
        {"*2\r\n$8\r\nconflict\r\n$2\r\n\x01x\r\n", GUARD_FAILED, FAULT_CONFIG,
         "the restart guard at quorlock:guard has a format that this version does not know: \"?x\": use one version "
         "of quorlock, or delete that key",
         false},
        {"-WRONGTYPE Operation against a key\r\n", GUARD_FAILED, FAULT_CONFIG,
         "restart guard: the key quorlock:guard holds a value of another type: if no program needs it, delete that "
         "key",
         false},
        {"-ERR what\r\n", GUARD_FAILED, FAULT_GUARD, "restart guard (key quorlock:guard): ERR what", false},
        {"-NOPERM what\r\n", GUARD_FAILED, FAULT_AUTH, "restart guard (key quorlock:guard): NOPERM what", true},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct guard guard = guard_of("s", true);

        guard.asked = true;
        guard.looks = rows[i].looks;
        dialect_feed(f, rows[i].wire);
        assert_int_equal(dialect_next(f), REPLY_READY);
        if (guard_judge(&guard, f->reply, NOW_US) != rows[i].verdict) fail_msg("%s", rows[i].wire);
        assert_false(guard.asked || guard.looks);
        assert_int_equal(guard.fault, rows[i].fault);
        assert_contains(guard.why, rows[i].why);
        assert_string_equal(guard.seen, rows[i].fault == FINE && rows[i].verdict != GUARD_ASK ? "x" : "");
    }
}

/* A guard of another process than that of this connection's INFO. */
DIALECT_TEST(a_guard_that_was_seen_is_not_replaced_by_a_lost_one)
{
    struct guard guard = guard_of("s", true);

    snprintf(guard.seen, sizeof(guard.seen), "y");
    dialect_feed(f, REPLY("lost", "9", "1", "x"));
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(guard_judge(&guard, f->reply, NOW_US), GUARD_FAILED);
    assert_int_equal(guard.fault, FAULT_GUARD);
    assert_string_equal(guard.why, "its guard names another process of the server than INFO on this connection did");
    assert_string_equal(guard.seen, "y");
}

/* The text of a guard of format 2, and what is left of its quarantine. */
static void judge_text(struct dialect_fixture *f, struct guard *guard, const char *text, unsigned left_ms)
{
    char wire[256];

    snprintf(wire, sizeof(wire), "*4\r\n$3\r\nnew\r\n:%u\r\n:500\r\n$%zu\r\n%s\r\n", left_ms, strlen(text), text);
    dialect_feed(f, wire);
    assert_int_equal(dialect_next(f), REPLY_READY);
    assert_int_equal(guard_judge(guard, f->reply, NOW_US), left_ms == 0 ? GUARD_CLEAR : GUARD_QUARANTINED);
}

#define TEXT(cause, wanted, wanted_till) "2|3|s|500|run|repl|9000|500|found|6000|" cause "|" wanted "|" wanted_till

DIALECT_TEST(a_quarantine_is_taken_from_the_guard)
{
    static const struct {
        const char *text;
        unsigned left_ms;
        enum quarantine_cause cause;
        uint32_t wanted_ms;
        uint64_t end_ms, until_us, recheck_us, first_until_us; /* from NOW_US on; until 0: none */
        enum guard_set set;
        bool voted;
    } rows[] = {
        {TEXT("restart", "0", "0"), 0, QUARANTINE_RESTART, 0, 9000, 0, 0, 0, GUARD_SET_OLDER, true},
        {TEXT("restart", "0", "0"), 3000, QUARANTINE_RESTART, 0, 9000, 3032000, 3032000, 0, GUARD_SET_OLDER, false},
        /* Ended early by bootstrap, which is found out in a second. */
        {TEXT("first", "0", "0"), 3000, QUARANTINE_FIRST, 0, 9000, 3032000, 1000000, 3000000, GUARD_SET_FIRST, false},
        {TEXT("first", "0", "0"), 1000, QUARANTINE_FIRST, 0, 9000, 1012000, 1012000, 1000000, GUARD_SET_FIRST, false},
        {TEXT("none", "800", "9500"), 2000, QUARANTINE_CLIENT, 800, 9500, 2022000, 1000000, 0, GUARD_SET_OLDER, false},
        /* Of both, the first contact ends earlier. */
        {TEXT("first", "800", "9500"), 2000, QUARANTINE_CLIENT, 800, 9500, 2022000, 1000000, 1500000, GUARD_SET_FIRST,
         false},
        {TEXT("first", "0", "0"), 9000, QUARANTINE_FIRST, 0, 9000, 9092000, 1000000, 0, GUARD_SET_OLDER, false},
        {"no guard", 3000, QUARANTINE_UNKNOWN, 0, 0, 3032000, 3032000, 0, GUARD_SET_OLDER, false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct guard guard = guard_of("s", true);
        uint64_t from_us = rows[i].until_us != 0 ? NOW_US : 0;

        guard.until_us = guard.recheck_us = 7;
        guard.set_seen = GUARD_SET_FIRST;
        judge_text(f, &guard, rows[i].text, rows[i].left_ms);
        assert_int_equal(guard.cause, rows[i].cause);
        assert_int_equal(guard.wanted_ms, rows[i].wanted_ms);
        assert_int_equal(guard.end_ms, rows[i].end_ms);
        assert_int_equal(guard.until_us, from_us + rows[i].until_us);
        assert_int_equal(guard.recheck_us, from_us + rows[i].recheck_us);
        if (rows[i].set == GUARD_SET_FIRST) assert_int_equal(guard.first_until_us, NOW_US + rows[i].first_until_us);
        if (guard.set_seen != rows[i].set) fail_msg("%s: set %d", rows[i].text, guard.set_seen);
        assert_int_equal(guard.voted, rows[i].voted);
    }
}

/* A guard that allowed votes is gone: no locks are forgotten by what a bootstrap declares. */
DIALECT_TEST(a_node_that_voted_has_no_first_contact)
{
    struct guard guard = guard_of("s", true);
    char text[320];

    judge_text(f, &guard, TEXT("first", "0", "0"), 3000);
    guard_describe(&guard, GUARD_SET_FIRST, NOW_US, text, sizeof(text));
    assert_string_equal(text,
                        "quarantined for 3.1 s more: first contact: it had no guard, and locks may be held; "
                        "'quorlock bootstrap --yes' ends that at once, where no lock is held on any of the nodes");
    judge_text(f, &guard, TEXT("first", "0", "0"), 0);
    judge_text(f, &guard, TEXT("first", "0", "0"), 3000);
    assert_true(guard.voted);
    assert_int_equal(guard.set_seen, GUARD_SET_OLDER);
    guard_describe(&guard, GUARD_SET_FIRST, NOW_US, text, sizeof(text));
    assert_string_equal(text, "quarantined for 3.1 s more: its guard is gone: it lost its memory, and locks that it "
                              "forgot may be held");
}

TEST(a_new_connection_begins_anew)
{
    struct guard guard = guard_of("s", true);

    snprintf(guard.seen, sizeof(guard.seen), "x");
    guard.until_us = guard.recheck_us = 5;
    guard.asked = guard.looks = guard.voted = true;
    guard_recheck_at(&guard, 9);
    assert_int_equal(guard.recheck_us, 9);
    guard_forget(&guard);
    assert_string_equal(guard.seen, "");
    assert_string_equal(guard.run_id, "");
    assert_string_equal(guard.replid, "");
    assert_int_equal(guard.until_us, 0);
    assert_int_equal(guard.recheck_us, 0);
    assert_false(guard.asked || guard.looks);
    /* What is known of the node outlives the connection. */
    assert_true(guard.voted);
    assert_int_equal(guard.max_lease_ms, 30000);
}

/* ---- the guards of all nodes ---- */

TEST(first_contacts_are_one_if_they_come_together)
{
    static const struct {
        uint64_t left_ms[3];
        uint32_t max_lease_ms;
        enum guard_set more, set; /* more: of a fourth node */
    } rows[] = {
        {{9000, 7500, 8000}, 6000, GUARD_SET_FIRST, GUARD_SET_FIRST},
        {{9000, 7000, 8000}, 100, GUARD_SET_FIRST, GUARD_SET_FIRST}, /* two seconds at least */
        {{9000, 6999, 8000}, 100, GUARD_SET_FIRST, GUARD_SET_OLDER},
        {{6000, 9000, 8000}, 12000, GUARD_SET_FIRST, GUARD_SET_FIRST}, /* a quarter of the lease */
        {{5999, 9000, 8000}, 12000, GUARD_SET_FIRST, GUARD_SET_OLDER},
        {{4000, 9000, 8000}, 60000, GUARD_SET_FIRST, GUARD_SET_FIRST}, /* five seconds at most */
        {{3999, 9000, 8000}, 60000, GUARD_SET_FIRST, GUARD_SET_OLDER},
        {{9000, 9000, 9000}, 6000, GUARD_SET_UNKNOWN, GUARD_SET_UNKNOWN},
        {{3999, 9000, 9000}, 6000, GUARD_SET_UNKNOWN, GUARD_SET_OLDER},
        {{9000, 9000, 9000}, 6000, GUARD_SET_OLDER, GUARD_SET_OLDER},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct guard_sets sets = {0};

        for (size_t k = 0; k < 3; k++) guard_sets_add(&sets, GUARD_SET_FIRST, rows[i].left_ms[k]);
        guard_sets_add(&sets, rows[i].more, 8500);
        if (guard_sets_judge(&sets, rows[i].max_lease_ms) != rows[i].set) fail_msg("row %zu", i);
    }
}
