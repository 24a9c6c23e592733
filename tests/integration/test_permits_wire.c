/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_permits_wire.c - permits in requests to one real server
 */
#include "keys_fixture.h"

#define PERMITS 3
#define LOW_MS  5000

/* One request for a slot of "a"; `any`: from that one on, without these. */
static struct node_request slot_of(enum op op, const char *owner, uint8_t slot)
{
    struct node_request request = request_of(op, owner);

    request.n_keys = 1;
    request.permits = PERMITS;
    request.slot = slot;
    return request;
}

static struct answer send_it(struct node_request request)
{
    return probe_ask(probe, &request);
}

static struct answer slot(enum op op, const char *owner, uint8_t number)
{
    return send_it(slot_of(op, owner, number));
}

static struct answer any(enum op op, const char *owner, uint8_t from, uint64_t passed)
{
    struct node_request request = slot_of(op, owner, from);

    request.any = true;
    request.passed = passed;
    return send_it(request);
}

static const char *key_of(uint8_t number)
{
    static char key[64];

    snprintf(key, sizeof(key), "quorlock:slot:%u:a", number);
    return key;
}

static bool has_slot(const char *owner, uint8_t number)
{
    return server_holds(server, key_of(number), owner);
}

static int64_t left_of_permits(void)
{
    return server_pttl(server, "quorlock:permits:a");
}

#define WIRE_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup_plain))

WIRE_TEST(a_slot_is_taken_extended_and_released)
{
    assert_outcome(slot(OP_ACQUIRE, US, 1), OUTCOME_YES);
    assert_true(has_slot(US, 1));
    assert_true(server_holds(server, "quorlock:permits:a", "3"));
    assert_int_equal(key_count(), 2);
    /* The same request may come twice. */
    assert_outcome(slot(OP_ACQUIRE, US, 1), OUTCOME_YES);
    assert_outcome(slot(OP_EXTEND, US, 1), OUTCOME_YES);
    assert_outcome(slot(OP_EXTEND, US, 0), OUTCOME_MISSING);
    assert_outcome(slot(OP_EXTEND, THEM, 1), OUTCOME_OTHER);
    assert_outcome(slot(OP_RELEASE, THEM, 1), OUTCOME_OTHER);
    assert_true(has_slot(US, 1));
    assert_outcome(slot(OP_RELEASE, US, 1), OUTCOME_YES);
    assert_outcome(slot(OP_RELEASE, US, 1), OUTCOME_MISSING);
    assert_false(server_has(server, key_of(1)));
}

WIRE_TEST(any_takes_the_first_free_from_the_asked_one_on)
{
    assert_int_equal(any(OP_ACQUIRE, "o:1", 2, 0).reply.slot, 2);
    assert_int_equal(any(OP_ACQUIRE, "o:2", 2, 0).reply.slot, 0);
    assert_int_equal(any(OP_ACQUIRE, "o:3", 2, 0).reply.slot, 1);
    assert_true(has_slot("o:1", 2) && has_slot("o:2", 0) && has_slot("o:3", 1));
    assert_outcome(any(OP_ACQUIRE, "o:4", 2, 0), OUTCOME_OTHER);
    assert_outcome(slot(OP_RELEASE, "o:2", 0), OUTCOME_YES);
    assert_outcome(slot(OP_RELEASE, "o:3", 1), OUTCOME_YES);
    /* Slot 0 is passed over. */
    assert_int_equal(any(OP_ACQUIRE, "o:5", 2, 1).reply.slot, 1);
    assert_outcome(any(OP_ACQUIRE, "o:6", 2, 1), OUTCOME_OTHER);
}

WIRE_TEST(a_refusal_tells_of_all_slots)
{
    struct node_request request = slot_of(OP_ACQUIRE, THEM, 1);
    struct answer answer;

    assert_outcome(slot(OP_ACQUIRE, US, 0), OUTCOME_YES);
    request.lease_ms = LOW_MS;
    assert_outcome(send_it(request), OUTCOME_YES);
    answer = slot(OP_ACQUIRE, OTHERS, 0);
    assert_held_by(answer, US, LEASE_MS / 2, LEASE_MS);
    assert_int_equal(answer.reply.free, 1 << 2);
    assert_true(answer.reply.first_ttl_ms > 0 && answer.reply.first_ttl_ms <= LOW_MS);
    /* Without those passed over, and by the holder of the slot asked for. */
    answer = any(OP_ACQUIRE, OTHERS, 1, 1 << 2 | 1 << 1);
    assert_held_by(answer, THEM, 1, LOW_MS);
    assert_int_equal(answer.reply.free, 1 << 2);
    assert_true(answer.reply.first_ttl_ms > LOW_MS);
    server_do(server, "PERSIST %s", key_of(0));
    assert_int_equal(any(OP_ACQUIRE, OTHERS, 1, 1 << 2 | 1 << 1).reply.first_ttl_ms, -1);
}

static void assert_turns(const char *waiter, uint32_t turns, uint32_t before)
{
    struct node_request request = slot_of(OP_ACQUIRE, waiter, 0);
    struct answer answer;

    request.any = request.fair = true;
    request.waiter = waiter;
    request.waiter_length = strlen(waiter);
    request.queued_ms = LONG_MS;
    answer = send_it(request);
    assert_outcome(answer, OUTCOME_OTHER);
    assert_int_equal(answer.reply.turns, turns);
    assert_int_equal(answer.reply.before, before);
}

WIRE_TEST(a_refusal_tells_when_it_is_our_turn)
{
    for (uint8_t i = 0; i < PERMITS; i++) assert_outcome(slot(OP_ACQUIRE, US, i), OUTCOME_YES);
    assert_turns("w:1", 1, 0);
    assert_turns("w:2", 2, 1);
    assert_turns("w:3", 3, 2);
    assert_outcome(slot(OP_RELEASE, US, 1), OUTCOME_YES);
    assert_turns("w:3", 2, 2);
    assert_turns("w:2", 1, 1);
}

static long long marks(void)
{
    return server_ask_number(server, "ZCOUNT quorlock:queue:a -64 -1");
}

/* Only the arbiter said yes: the place is kept, in case the other nodes refuse. */
WIRE_TEST(a_yes_marks_the_place_in_the_queue)
{
    struct node_request request = slot_of(OP_ACQUIRE, "w:1", 0);
    struct answer answer;

    for (uint8_t i = 0; i < PERMITS; i++) assert_outcome(slot(OP_ACQUIRE, US, i), OUTCOME_YES);
    assert_turns("w:1", 1, 0);
    assert_turns("w:2", 2, 1);
    assert_int_equal(marks(), 0);
    assert_outcome(slot(OP_RELEASE, US, 1), OUTCOME_YES);
    request.any = request.fair = true;
    request.waiter = "w:1";
    request.waiter_length = strlen(request.waiter);
    request.queued_ms = LONG_MS;
    answer = send_it(request);
    assert_outcome(answer, OUTCOME_YES);
    assert_int_equal(answer.reply.slot, 1);
    assert_int_equal(marks(), 1);
    assert_turns("w:2", 1, 0);
    assert_outcome(slot(OP_RELEASE, "w:1", 1), OUTCOME_YES);
    assert_turns("w:2", 1, 1);
    assert_int_equal(marks(), 0);
}

/* A client that was not told whether it holds a slot releases it; then `deleted` keeps it from waking others for
 * nothing. */
WIRE_TEST(who_is_told_of_a_release)
{
    static const struct {
        bool ours, silent, if_deleted, heard;
    } rows[] = {
        {true, false, false, true},  {false, false, false, true}, {true, false, true, true},
        {false, false, true, false}, {true, true, false, false},  {false, true, false, false},
    };
    struct listener *listener = server_listen(server, "quorlock:released:a");
    char heard[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct node_request request = slot_of(OP_RELEASE, US, 0);

        request.silent = rows[i].silent;
        request.if_deleted = rows[i].if_deleted;
        if (rows[i].ours) assert_outcome(slot(OP_ACQUIRE, US, 0), OUTCOME_YES);
        assert_outcome(send_it(request), rows[i].ours ? OUTCOME_YES : OUTCOME_MISSING);
        if (rows[i].heard) {
            listener_next(listener, NULL, heard, sizeof(heard));
            assert_string_equal(heard, US);
        }
        assert_int_equal(server_ask_number(server, "PUBLISH quorlock:released:a end"), 1);
        listener_next(listener, NULL, heard, sizeof(heard));
        assert_string_equal(heard, "end");
    }
    listener_close(listener);
}

/* Whichever it took: the one that asked was not told. */
WIRE_TEST(any_releases_whichever_is_ours)
{
    for (uint8_t i = 0; i < PERMITS; i++) {
        assert_outcome(slot(OP_ACQUIRE, THEM, (uint8_t)((i + 1) % PERMITS)), OUTCOME_YES);
        assert_outcome(slot(OP_ACQUIRE, US, i), OUTCOME_YES);
        assert_outcome(any(OP_RELEASE, US, 0, 0), OUTCOME_YES);
        assert_false(server_has(server, key_of(i)));
        assert_true(has_slot(THEM, (uint8_t)((i + 1) % PERMITS)));
        assert_outcome(any(OP_RELEASE, US, 0, 0), OUTCOME_MISSING);
        assert_outcome(any(OP_RELEASE, THEM, 0, 0), OUTCOME_YES);
    }
}

/* It ends after the last slot, and no request shortens it. */
WIRE_TEST(the_number_stands_as_long_as_any_slot)
{
    struct node_request request = slot_of(OP_ACQUIRE, THEM, 1);

    assert_outcome(slot(OP_ACQUIRE, US, 0), OUTCOME_YES);
    request.lease_ms = LOW_MS;
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(left_of_permits() > LOW_MS);
    request.op = OP_EXTEND;
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(left_of_permits() > LOW_MS);
    request.lease_ms = LONG_MS;
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(left_of_permits() > LEASE_MS);
    /* Where it was lost, an extend brings it back. */
    server_do(server, "DEL quorlock:permits:a");
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(left_of_permits() > LEASE_MS);
}

WIRE_TEST(another_number_is_refused_while_a_slot_is_held)
{
    struct node_request request = slot_of(OP_ACQUIRE, THEM, 0);
    struct answer answer;

    request.permits = PERMITS + 1;
    assert_outcome(slot(OP_ACQUIRE, US, PERMITS - 1), OUTCOME_YES);
    answer = send_it(request);
    assert_fault(answer, FAULT_CONFIG);
    assert_contains(answer.error, "the name has 3 permits, this lock gives 4");
    request.op = OP_REPAIR;
    assert_fault(send_it(request), FAULT_CONFIG);
    assert_false(server_has(server, key_of(0)));
    assert_true(server_holds(server, "quorlock:permits:a", "3"));
    assert_outcome(slot(OP_RELEASE, US, PERMITS - 1), OUTCOME_YES);
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(server_holds(server, "quorlock:permits:a", "4"));
    /* A slot beyond the smaller number is a slot, too. */
    assert_outcome(slot(OP_RELEASE, THEM, 0), OUTCOME_YES);
    request.op = OP_ACQUIRE;
    request.slot = PERMITS;
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_fault(slot(OP_ACQUIRE, US, 0), FAULT_CONFIG);
}

/* Of the slot, and of no other. */
WIRE_TEST(counters_are_a_slots)
{
    struct node_request request = slot_of(OP_ACQUIRE, US, 2);
    struct answer answer;

    request.fenced = true;
    request.any = true;
    request.passed = 1 << 2;
    request.fence = 40;
    answer = send_it(request);
    assert_counts(answer, 40);
    assert_int_equal(answer.reply.slot, 0);
    assert_true(server_holds(server, "quorlock:fence:quorlock:slot:0:a", "40"));
    request.passed = 0;
    request.owner = THEM;
    request.owner_length = strlen(THEM);
    answer = send_it(request);
    assert_counts(answer, 40);
    assert_int_equal(answer.reply.slot, 2);
    request = slot_of(OP_RAISE, US, 0);
    request.fence = 50;
    assert_counts(send_it(request), 50);
    assert_true(server_holds(server, "quorlock:fence:quorlock:slot:2:a", "40"));
    request = slot_of(OP_RELEASE, US, 0);
    request.fence = 60;
    assert_outcome(send_it(request), OUTCOME_YES);
    assert_true(server_holds(server, "quorlock:fence:quorlock:slot:0:a", "60"));
    request = slot_of(OP_REPAIR, US, 1);
    request.fenced = true;
    request.fence = 70;
    assert_counts(send_it(request), 70);
}

/* A value of another type in a slot is passed over as long as there is another one. */
WIRE_TEST(another_type_in_a_slot_is_passed_over)
{
    struct answer answer;

    server_do(server, "RPUSH %s x", key_of(1));
    answer = slot(OP_ACQUIRE, US, 1);
    assert_held_by(answer, "no slot: list quorlock:slot:1:a", -1, -1);
    assert_int_equal(answer.reply.free, 1 << 0 | 1 << 2);
    answer = any(OP_ACQUIRE, US, 1, 0);
    assert_outcome(answer, OUTCOME_YES);
    assert_int_equal(answer.reply.slot, 2);
    assert_outcome(any(OP_ACQUIRE, THEM, 1, 0), OUTCOME_YES);
    answer = any(OP_ACQUIRE, OTHERS, 1, 0);
    assert_int_equal(answer.reply.outcome, OUTCOME_OTHER);
    assert_int_equal(answer.reply.free, 0);
    /* A holder of that slot is told. */
    assert_fault(slot(OP_REPAIR, US, 1), FAULT_FOREIGN);
    assert_fault(slot(OP_RELEASE, US, 1), FAULT_FOREIGN);
    /* The release of any looks at each. */
    assert_outcome(any(OP_RELEASE, US, 0, 0), OUTCOME_YES);
}

WIRE_TEST(another_type_in_all_slots_is_foreign)
{
    struct answer answer;

    for (uint8_t i = 0; i < PERMITS; i++) server_do(server, "RPUSH %s x", key_of(i));
    answer = slot(OP_ACQUIRE, US, 1);
    assert_fault(answer, FAULT_FOREIGN);
    assert_contains(answer.error, "\"quorlock:slot:1:a\" holds a list");
    assert_fault(any(OP_ACQUIRE, US, 1, 1 << 2), FAULT_FOREIGN);
}

/* People gave the name, and not this key. */
WIRE_TEST(another_type_in_place_of_the_number_is_named)
{
    struct answer answer;

    server_do(server, "HSET quorlock:permits:a f v");
    answer = slot(OP_ACQUIRE, US, 1);
    assert_fault(answer, FAULT_FOREIGN);
    assert_contains(answer.error, "\"quorlock:permits:a\" holds a hash");
}
