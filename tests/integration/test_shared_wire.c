/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shared_wire.c - shared keys in requests to one real server
 */
#include "keys_fixture.h"
#include "redisson_peer.h"

#define SENTINEL "quorlock:readers"

/* One request of the first n keys, those with a bit shared. */
static struct answer of(enum op op, const char *owner, size_t n, uint64_t shared, const char *waiter,
                        uint32_t waited_ms)
{
    struct node_request request = request_of(op, owner);

    request.n_keys = n;
    request.shared = shared;
    request.waiter = waiter;
    request.waiter_length = waiter != NULL ? strlen(waiter) : 0;
    request.waited_us = waited_ms * UINT64_C(1000);
    return probe_ask(probe, &request);
}

static struct answer shared(enum op op, const char *owner)
{
    return of(op, owner, 1, 1, NULL, 0);
}

static struct answer exclusive(enum op op, const char *owner)
{
    struct node_request request = request_of(op, owner);

    request.n_keys = 1;
    return probe_ask(probe, &request);
}

static struct answer intend(const char *waiter, bool reader, uint32_t waited_ms, uint32_t life_ms)
{
    struct node_request request = request_of(OP_INTEND, "");

    request.n_keys = 1;
    request.shared = reader;
    request.waiter = waiter;
    request.waiter_length = strlen(waiter);
    request.waited_us = waited_ms * UINT64_C(1000);
    request.lease_ms = life_ms;
    return probe_ask(probe, &request);
}

static void assert_readers(long long n)
{
    assert_int_equal(server_ask_number(server, "ZCARD quorlock:readers:a"), n);
    assert_true(n == 0 ? !server_holds(server, "a", SENTINEL) : server_holds(server, "a", SENTINEL));
}

#define WIRE_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup_plain))

/* How many of those that wait have that letter. */
static long long intents(const char *letter)
{
    static const char script[] = "local n = 0 for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                                 "if string.sub(member, 1, 1) == ARGV[1] then n = n + 1 end end return n";

    return server_ask_number(server, "EVAL %s 1 quorlock:intents:a %s", script, letter);
}

/* ---- readers ---- */

WIRE_TEST(test_readers_hold_together)
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_readers(1);
    assert_outcome(shared(OP_ACQUIRE, THEM), OUTCOME_YES);
    assert_readers(2);
    assert_left(0, 1, LEASE_MS + 1);
    assert_outcome(exclusive(OP_ACQUIRE, OTHERS), OUTCOME_OTHER);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_YES);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_readers(1);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_MISSING);
    assert_outcome(exclusive(OP_ACQUIRE, OTHERS), OUTCOME_OTHER);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_MISSING);
    assert_outcome(shared(OP_RELEASE, THEM), OUTCOME_YES);
    assert_int_equal(key_count(), 0);
}

/* The same request twice, as after an answer that was lost. */
WIRE_TEST(test_again)
{
    for (int i = 0; i < 2; i++) assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_readers(1);
    for (int i = 0; i < 2; i++) assert_outcome(shared(OP_REPAIR, US), OUTCOME_YES);
    assert_readers(1);
}

WIRE_TEST(test_a_writer_keeps_readers_out)
{
    struct answer answer;

    put(0, THEM, LONG_MS);
    answer = shared(OP_ACQUIRE, US);
    assert_held_by(answer, THEM, LEASE_MS, LONG_MS);
    assert_false(answer.reply.readers);
    assert_held_by(shared(OP_REPAIR, US), THEM, LEASE_MS, LONG_MS);
    assert_held_by(shared(OP_EXTEND, US), THEM, LEASE_MS, LONG_MS);
    assert_held_by(shared(OP_RELEASE, US), THEM, LEASE_MS, LONG_MS);
    assert_true(holds(0, THEM));
    assert_int_equal(key_count(), 1);
    server_do(server, "DEL a");
    server_do(server, "LPUSH a x");
    assert_fault(shared(OP_ACQUIRE, US), FAULT_FOREIGN);
    server_do(server, "DEL a");
    server_do(server, "HSET a mode read");
    assert_fault(shared(OP_ACQUIRE, US), FAULT_FOREIGN);
    assert_int_equal(key_count(), 1);
}

WIRE_TEST(test_a_writer_is_told_of_readers)
{
    struct node_request request = request_of(OP_ACQUIRE, OTHERS);
    struct answer answer;

    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    request.n_keys = 1;
    request.explain = true;
    answer = probe_ask(probe, &request);
    assert_held_by(answer, SENTINEL, 1, LEASE_MS + 1);
    assert_true(answer.reply.readers);
}

/* A peer knows nothing of readers: a SET is refused while there is one, and no longer. */
WIRE_TEST(test_the_sentinel_lives_as_long_as_the_last_reader)
{
    struct node_request request = request_of(OP_ACQUIRE, US);

    request.n_keys = 1;
    request.shared = 1;
    request.lease_ms = LONG_MS;
    assert_outcome(probe_ask(probe, &request), OUTCOME_YES);
    assert_outcome(shared(OP_ACQUIRE, THEM), OUTCOME_YES);
    assert_left(0, LEASE_MS + 2, LONG_MS + 1);
    assert_outcome(shared(OP_EXTEND, THEM), OUTCOME_YES);
    assert_left(0, LEASE_MS + 2, LONG_MS + 1); /* never shorter */
    assert_in_range(server_ask_number(server, "PTTL quorlock:readers:a"), LEASE_MS + 2, LONG_MS + 1);
    /* The one that would have stayed longest is gone: the key ends with the other, and the set with the key. */
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_left(0, 1, LEASE_MS + 1);
    assert_in_range(server_ask_number(server, "PTTL quorlock:readers:a"), 1, LEASE_MS + 1);
    assert_readers(1);
}

/* An entry alone is no lock: whoever took the key meanwhile may have given it back. */
WIRE_TEST(test_an_entry_counts_beside_the_sentinel_only)
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    server_do(server, "DEL a");
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_MISSING);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_MISSING);
    put(0, THEM, LONG_MS);
    assert_held_by(shared(OP_EXTEND, US), THEM, LEASE_MS, LONG_MS);
    /* What is left does not count for a later sentinel. */
    server_do(server, "DEL a");
    assert_outcome(shared(OP_ACQUIRE, OTHERS), OUTCOME_YES);
    assert_readers(1);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_MISSING);
    assert_outcome(shared(OP_REPAIR, US), OUTCOME_YES);
    assert_readers(2);
}

/* By the server's clock. */
WIRE_TEST(test_readers_that_expired_are_dropped)
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    server_do(server, "ZADD quorlock:readers:a 1000 %s", THEM);
    assert_outcome(shared(OP_EXTEND, THEM), OUTCOME_MISSING);
    assert_outcome(shared(OP_ACQUIRE, OTHERS), OUTCOME_YES);
    assert_readers(2);
    server_do(server, "ZADD quorlock:readers:a 1000 %s", THEM);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_outcome(shared(OP_RELEASE, OTHERS), OUTCOME_YES);
    assert_int_equal(key_count(), 0);
}

/* A script for many locks knows nothing of readers. */
WIRE_TEST(test_requests_of_one_turn_go_alone)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_EXTEND, OP_RELEASE};
    struct node_request requests[N];
    struct answer answers[N];

    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        for (size_t i = 0; i < N; i++) {
            requests[i] = request_of(ops[k], US);
            requests[i].keys += i;
            requests[i].n_keys = 1;
            requests[i].shared = 1;
        }
        probe_ask_all(probe, requests, answers, N);
        for (size_t i = 0; i < N; i++) assert_outcome(answers[i], OUTCOME_YES);
    }
    assert_int_equal(key_count(), 0);
}

/* ---- several keys, in either mode ---- */

WIRE_TEST(test_all_or_none)
{
    const uint64_t modes = 5; /* a and c */

    for (size_t p = 0; p < N; p++) {
        wipe();
        put(p, THEM, LONG_MS);
        assert_held_by(of(OP_ACQUIRE, US, N, modes, NULL, 0), THEM, LEASE_MS, LONG_MS);
        assert_int_equal(key_count(), 1);
    }
    wipe();
    assert_outcome(of(OP_ACQUIRE, US, N, modes, NULL, 0), OUTCOME_YES);
    assert_true(server_holds(server, "a", SENTINEL) && holds(1, US) && server_holds(server, "c", SENTINEL));
    assert_outcome(of(OP_ACQUIRE, THEM, 1, 1, NULL, 0), OUTCOME_YES);
    assert_outcome(of(OP_ACQUIRE, OTHERS, N, 7, NULL, 0), OUTCOME_OTHER);
    assert_outcome(of(OP_EXTEND, US, N, modes, NULL, 0), OUTCOME_YES);
    server_do(server, "DEL b");
    assert_outcome(of(OP_EXTEND, US, N, modes, NULL, 0), OUTCOME_MISSING);
    assert_outcome(of(OP_REPAIR, US, N, modes, NULL, 0), OUTCOME_YES);
    assert_true(holds(1, US));
    assert_outcome(of(OP_RELEASE, US, N, modes, NULL, 0), OUTCOME_YES);
    assert_readers(1);
    assert_int_equal(key_count(), 2);
}

/* ---- tokens ---- */

static struct answer fenced(enum op op, const char *owner, size_t n, uint64_t modes, uint64_t fence)
{
    struct node_request request = request_of(op, owner);

    request.n_keys = n;
    request.shared = modes;
    request.fenced = true;
    request.fence = fence;
    return probe_ask(probe, &request);
}

WIRE_TEST(test_a_reader_increments_no_counter)
{
    count_to(0, "41");
    count_to(1, "52");
    assert_counts(fenced(OP_ACQUIRE, US, 2, 3, 0), 52);
    assert_counts(fenced(OP_REPAIR, US, 2, 3, 0), 52);
    assert_outcome(fenced(OP_EXTEND, US, 2, 3, 0), OUTCOME_YES);
    assert_outcome(of(OP_RELEASE, US, 2, 3, NULL, 0), OUTCOME_YES);
    assert_counter(0, "41");
    assert_counter(1, "52");
    /* With a key of its own it is a writer. */
    assert_counts(fenced(OP_ACQUIRE, US, 2, 1, 60), 60);
    assert_counts(fenced(OP_RAISE, US, 2, 1, 70), 70);
    assert_counter(0, "70");
    assert_counter(1, "70");
}

/* ---- those that wait ---- */

WIRE_TEST(test_a_writer_that_waits_keeps_later_readers_out)
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_outcome(intend("host:1:w", false, 100, LEASE_MS), OUTCOME_YES);
    assert_int_equal(intents("w"), 1);
    assert_held_by(of(OP_ACQUIRE, THEM, 1, 1, "r", 0), "quorlock:waits:host:1:w", 1, LEASE_MS);
    assert_held_by(of(OP_ACQUIRE, THEM, 1, 1, NULL, 0), "quorlock:waits:host:1:w", 1, LEASE_MS);
    /* Those that hold go on, also to mend what is missing. */
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_YES);
    assert_outcome(shared(OP_REPAIR, OTHERS), OUTCOME_YES);
    assert_outcome(shared(OP_RELEASE, OTHERS), OUTCOME_YES);
    /* One that has waited for longer comes first. */
    assert_outcome(of(OP_ACQUIRE, THEM, 1, 1, "r", 60000), OUTCOME_YES);
    /* It is told again under the same name, and when it began stays. */
    assert_outcome(intend("host:1:w", false, 100000, LEASE_MS), OUTCOME_YES);
    assert_int_equal(intents("w"), 1);
    assert_outcome(of(OP_ACQUIRE, "them:3", 1, 1, "r", 60000), OUTCOME_YES);
    assert_outcome(intend("host:1:w", false, 0, 0), OUTCOME_YES);
    assert_int_equal(intents("w"), 0);
    assert_outcome(of(OP_ACQUIRE, "them:4", 1, 1, "r", 0), OUTCOME_YES);
}

/* The writer died: readers wait for its intent only. */
WIRE_TEST(test_an_intent_ends)
{
    struct answer answer;

    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_outcome(intend("w", false, 0, 300), OUTCOME_YES);
    do {
        answer = of(OP_ACQUIRE, THEM, 1, 1, "r", 0);
    } while (answer.reply.outcome == OUTCOME_OTHER && answer.reply.ttl_ms > 0 && answer.reply.ttl_ms <= 300);
    assert_outcome(answer, OUTCOME_YES);
}

/* A writer that waits keeps out those who came later, and not itself. */
WIRE_TEST(test_places_decide)
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_outcome(intend("b", false, 60000, LEASE_MS), OUTCOME_YES);
    assert_outcome(intend("b", false, 60000, LEASE_MS), OUTCOME_YES);
    assert_outcome(of(OP_ACQUIRE, THEM, 1, 1, "b", 0), OUTCOME_YES);
    assert_outcome(of(OP_ACQUIRE, THEM, 1, 1, "a", 70000), OUTCOME_YES);
    assert_held_by(of(OP_ACQUIRE, OTHERS, 1, 1, "bb", 50000), "quorlock:waits:b", 1, INT64_MAX);
}

static struct answer of_both_modes(enum op op, const char *waiter, uint32_t waited_ms, uint64_t modes)
{
    struct node_request request = request_of(op, op == OP_ACQUIRE ? OTHERS : "");

    request.n_keys = 2;
    request.shared = modes;
    request.waiter = waiter;
    request.waiter_length = strlen(waiter);
    request.waited_us = waited_ms * UINT64_C(1000);
    request.lease_ms = LONG_MS;
    return probe_ask(probe, &request);
}

/* Each server hears of two lists at other times, so their names decide where they began at nearly the same. A span of
 * time may end between the two, but not at each try. */
WIRE_TEST(test_names_decide_among_lists_of_both_modes)
{
    bool is_in = false;

    assert_outcome(of_both_modes(OP_INTEND, "n", 60000, 2), OUTCOME_YES);
    assert_int_equal(intents("m"), 1);
    assert_outcome(of_both_modes(OP_ACQUIRE, "o", 59998, 1), OUTCOME_OTHER);
    for (int tries = 0; tries < 1000 && !is_in; tries++)
        is_in = of_both_modes(OP_ACQUIRE, "m", 59998, 1).reply.outcome == OUTCOME_YES;
    assert_true(is_in);
    server_do(server, "DEL a b quorlock:readers:a");
    assert_outcome(of_both_modes(OP_ACQUIRE, "m", 59000, 1), OUTCOME_OTHER);
    /* One that is a reader of all its keys waits for whoever was first. */
    assert_outcome(of(OP_ACQUIRE, THEM, 1, 1, "m", 59998), OUTCOME_OTHER);
}

/* Where nobody of the other mode is in the way nothing is left: no server is written to for nothing. */
WIRE_TEST(test_who_leaves_an_intent)
{
    assert_outcome(intend("w", false, 0, LEASE_MS), OUTCOME_YES);
    assert_outcome(intend("r", true, 0, LEASE_MS), OUTCOME_YES);
    put(0, THEM, LONG_MS);
    assert_outcome(intend("w", false, 0, LEASE_MS), OUTCOME_YES);
    assert_int_equal(key_count(), 1);
    assert_outcome(intend("r", true, 0, LEASE_MS), OUTCOME_YES);
    assert_int_equal(intents("r"), 1);
    /* Of a list of both modes nothing is kept for the readers: two such lists would wait for each other. */
    wipe();
    put(0, THEM, LONG_MS);
    assert_outcome(of_both_modes(OP_INTEND, "m", 0, 1), OUTCOME_YES);
    assert_int_equal(intents("r"), 0);
    /* But its exclusive key is, also where that is free: younger readers there would come and go. */
    assert_int_equal(server_ask_number(server, "ZCOUNT quorlock:intents:b 100000000000000 +inf"), 1);
    assert_int_equal(key_count(), 2);
}

static void give_back(const char *owner, bool if_deleted)
{
    struct node_request request = request_of(OP_RELEASE, owner);

    request.n_keys = 1;
    request.if_deleted = if_deleted;
    assert_outcome(probe_ask(probe, &request), OUTCOME_YES);
}

/* A writer that kept these readers out gives back: they have their turn. On a machine that is busy for as long as a
 * turn lasts it is seen at another time; then it is made longer. */
static void begin_turn(const char *const *readers, size_t n)
{
    static const char lengthen[] =
        "if redis.call('PTTL', KEYS[1]) > 1000 or redis.call('GET', KEYS[1]) ~= 'quorlock:readers' then return 0 end "
        "redis.call('PEXPIRE', KEYS[1], 60000) redis.call('ZADD', KEYS[2], 99999999999999, '~turn') "
        "for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], 0, 99999999999999)) do "
        "redis.call('ZADD', KEYS[2], 99999999999999, member) end return 1";

    for (int tries = 0; tries < 100; tries++) {
        wipe();
        put(0, THEM, LONG_MS);
        for (size_t i = 0; i < n; i++) assert_outcome(intend(readers[i], true, 0, LEASE_MS), OUTCOME_YES);
        assert_int_equal(intents("r"), n);
        give_back(THEM, false);
        if (server_ask_number(server, "EVAL %s 2 a quorlock:intents:a", lengthen) == 1) return;
    }
    fail_msg("no turn was seen");
}

/* Readers that a writer kept out come before the next one. */
WIRE_TEST(test_a_turn_for_readers)
{
    struct listener *listener = server_listen(server, "quorlock:released:a");

    begin_turn(&(const char *){"r"}, 1);
    assert_int_equal(intents("R"), 1);
    assert_int_equal(intents("r"), 1);
    assert_outcome(exclusive(OP_ACQUIRE, OTHERS), OUTCOME_OTHER);
    /* Whatever writers wait. */
    assert_outcome(intend("w", false, 60000, LEASE_MS), OUTCOME_YES);
    assert_held_by(of(OP_ACQUIRE, OTHERS, 1, 1, "late", 0), "quorlock:waits:w", 1, LEASE_MS);
    assert_outcome(of(OP_ACQUIRE, US, 1, 1, "r", 0), OUTCOME_YES);
    assert_int_equal(intents("r"), 0);
    /* All are in: when they are gone it is the writer's turn. */
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_false(has(0));
    assert_held_by(of(OP_ACQUIRE, OTHERS, 1, 1, "late", 0), "quorlock:waits:w", 1, LEASE_MS);
    listener_close(listener);
}

/* Where one of two is in, and gone, the key stays for the other; where that gives up, it does not. */
WIRE_TEST(test_a_turn_is_for_all_of_them)
{
    static const char *const both[] = {"r1", "r2"};
    struct listener *listener = server_listen(server, "quorlock:released:a");

    begin_turn(both, 2);
    assert_int_equal(intents("r"), 2);
    assert_outcome(of(OP_ACQUIRE, US, 1, 1, "r1", 0), OUTCOME_YES);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_true(server_holds(server, "a", SENTINEL));
    assert_outcome(intend("r2", true, 0, 0), OUTCOME_YES);
    assert_false(has(0));
    listener_close(listener);
}

/* An attempt that failed held nothing that readers waited for; and where nobody listens nobody waits. */
WIRE_TEST(test_no_turn)
{
    struct listener *listener = server_listen(server, "quorlock:released:a");

    for (int i = 0; i < 2; i++) {
        put(0, THEM, LONG_MS);
        assert_outcome(intend("r1", true, 0, LEASE_MS), OUTCOME_YES);
        give_back(THEM, i == 0);
        assert_false(has(0));
        if (i == 0) listener_close(listener);
        while (server_ask_number(server, "PUBLISH quorlock:released:a x") > 0) continue;
    }
}

/* Nobody publishes that a writer's lease ends: so the first reader that gets the key tells the others. Each message is
 * the next one behind the one before. */
WIRE_TEST(test_the_first_reader_tells_the_others)
{
    struct listener *listener = server_listen(server, "quorlock:released:a");
    char heard[64];

    for (int others = 0; others < 2; others++) {
        wipe();
        put(0, THEM, LONG_MS);
        assert_outcome(intend("r1", true, 0, LEASE_MS), OUTCOME_YES);
        if (others > 0) assert_outcome(intend("r2", true, 0, LEASE_MS), OUTCOME_YES);
        assert_int_equal(server_ask_number(server, "DEL a"), 1);
        assert_outcome(of(OP_ACQUIRE, US, 1, 1, "r1", 0), OUTCOME_YES);
        if (others > 0) {
            listener_next(listener, NULL, heard, sizeof(heard));
            assert_string_equal(heard, US);
            assert_outcome(of(OP_ACQUIRE, OTHERS, 1, 1, "r2", 0), OUTCOME_YES);
        }
        assert_int_equal(server_ask_number(server, "PUBLISH quorlock:released:a end"), 1);
        listener_next(listener, NULL, heard, sizeof(heard));
        assert_string_equal(heard, "end");
    }
    listener_close(listener);
}

WIRE_TEST(test_break_takes_all)
{
    struct node_request request = request_of(OP_BREAK, "");

    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_outcome(intend("w", false, 0, LEASE_MS), OUTCOME_YES);
    request.n_keys = 1;
    request.owner = NULL;
    assert_outcome(probe_ask(probe, &request), OUTCOME_YES);
    assert_int_equal(key_count(), 0);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_MISSING);
}
