/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_permits.c - k permits of a name: each is a slot, and a slot is a lock
 *
 * unit.test_core_permits has how a free slot is searched for, test_command_parts.py the same from the command line.
 */
#include "fixture.h"

#define K          3u
#define QUEUED     8
#define OWN_ROUNDS 3u /* a free permit is found within so many round trips */

static char slot_text[TEXT_SIZE];

static const char *slot_key(uint32_t slot)
{
    snprintf(slot_text, sizeof(slot_text), "quorlock:slot:%u:key", slot);
    return slot_text;
}

#define PERMIT(...) LEASE(LONG_LEASE_MS, .permits = __VA_ARGS__)

static quorlock_lock *permit(quorlock_client *client, uint32_t wait_ms)
{
    return fixture_lock(client, "key", PERMIT(K, .wait_ms = wait_ms));
}

/* ---- one holder ---- */

CLIENT_TEST(a_permit_is_a_slot_in_one_round)
{
    quorlock_lock *lock = permit(fixture.client, 0);
    struct seen seen;
    char text[64];
    uint32_t slot;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.rounds, 1);
    slot = seen.result.slot;
    assert_true(slot < K);
    snprintf(text, sizeof(text), "granted slot %u of \"key\" by", slot);
    assert_contains(seen.text, text);
    await_holders(slot_key(slot), seen.owner, 3);
    assert_int_equal(holders("quorlock:permits:key", "3"), 3);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t left_ms = server_pttl(SERVER(i), "quorlock:permits:key");

        /* Asked later, so it is no longer than it was then. */
        assert_true(left_ms >= server_pttl(SERVER(i), slot_key(slot)) - 1);
    }
    assert_int_equal(holders("key", NULL), 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(slot));
    /* The slot that was held last is asked for first. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.rounds, 1);
    assert_int_equal(seen.result.slot, slot);
}

/* ---- as many holders as permits ---- */

CLIENT_TEST(as_many_hold_as_there_are_permits)
{
    quorlock_client *other = fixture_new_client(3);
    struct seen seen;
    uint32_t taken = 0;

    for (uint32_t i = 0; i < K; i++) {
        quorlock_lock *lock = permit(i % 2 == 0 ? fixture.client : other, 0);

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_true(seen.result.rounds <= OWN_ROUNDS);
        assert_int_equal(taken & 1u << seen.result.slot, 0);
        taken |= 1u << seen.result.slot;
    }
    assert_int_equal(taken, (1u << K) - 1);
    assert_status(fixture_acquire(permit(fixture.client, 0), &seen), QUORLOCK_ERR_HELD);
    assert_contains(seen.text, "all 3 permits are taken");
    assert_int_equal(seen.result.slot, QUORLOCK_SLOT_NONE);
    assert_status(fixture_acquire(permit(other, 0), &seen), QUORLOCK_ERR_HELD);
}

/* The most that a name can have, and the least; from the last slots on few are free. */
CLIENT_TEST(many_permits_and_one)
{
    quorlock_lock *lock;
    struct seen seen;
    uint64_t taken = 0;

    for (uint32_t i = 0; i < QUORLOCK_PERMITS_MAX; i++) {
        lock = fixture_lock(fixture.client, "key", PERMIT(QUORLOCK_PERMITS_MAX));
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_true(seen.result.rounds <= OWN_ROUNDS);
        assert_true((taken >> seen.result.slot & 1) == 0);
        taken |= UINT64_C(1) << seen.result.slot;
    }
    assert_true(taken == UINT64_MAX);
    lock = fixture_lock(fixture.client, "key", PERMIT(QUORLOCK_PERMITS_MAX));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    lock = fixture_lock(fixture.client, "one", PERMIT(1));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.slot, 0);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "one", PERMIT(1)), &seen), QUORLOCK_ERR_HELD);
}

/* An ordinary lock of the same key is another lock. */
CLIENT_TEST(an_ordinary_lock_of_the_name_is_apart)
{
    quorlock_lock *ordinary = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    for (uint32_t i = 0; i < K; i++) assert_status(fixture_acquire(permit(fixture.client, 0), &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(ordinary, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.slot, QUORLOCK_SLOT_NONE);
    await_holders("key", seen.owner, 3);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS)), &seen), QUORLOCK_ERR_HELD);
}

/* While a slot is held; when none is the number may change. */
CLIENT_TEST(another_number_of_permits_is_refused)
{
    quorlock_lock *lock = permit(fixture.client, 0);
    quorlock_lock *other = fixture_lock(fixture.client, "key", PERMIT(K + 2));
    struct seen seen, refused;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders(slot_key(seen.result.slot), seen.owner, 3);
    assert_status(fixture_acquire(other, &refused), QUORLOCK_ERR_INVAL);
    assert_contains(refused.text, "the name has 3 permits, this lock gives 5");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(seen.result.slot));
    assert_status(fixture_acquire(other, &seen), QUORLOCK_OK);
    assert_true(seen.result.slot < K + 2);
    await_holders("quorlock:permits:key", "5", 3);
    assert_status(fixture_acquire(lock, &refused), QUORLOCK_ERR_INVAL);
}

/* ---- waiting ---- */

/* K permits are held, and QUEUED more wanted. */
static void take_all_and_queue(quorlock_lock **locks, struct seen *seen, quorlock_lock **queued, struct seen *waiters)
{
    for (uint32_t i = 0; i < K; i++) {
        locks[i] = permit(fixture.client, 0);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
    }
    for (int i = 0; i < QUEUED; i++) {
        queued[i] = permit(fixture.client, NO_LIMIT);
        fixture_start_acquire(queued[i], &waiters[i]);
    }
}

/* In this process: the next in line takes that very slot. */
CLIENT_TEST(a_release_hands_its_slot_to_the_next_in_line)
{
    quorlock_lock *locks[K], *queued[QUEUED];
    struct seen seen[K], waiters[QUEUED] = {0}, released;

    take_all_and_queue(locks, seen, queued, waiters);
    run_ms(50);
    for (int i = 0; i < QUEUED; i++) {
        uint32_t slot = seen[1].result.slot;

        assert_status(fixture_release(i == 0 ? locks[1] : queued[i - 1], &released), QUORLOCK_OK);
        await_status(&waiters[i], QUORLOCK_OK, "the next in line");
        assert_int_equal(waiters[i].result.slot, slot);
        for (int k = i + 1; k < QUEUED; k++) assert_int_equal(waiters[k].calls, 0);
    }
}

/* ---- fencing, owners, policies, guards ---- */

/* The first request of each connection brings the script. */
CLIENT_TEST(no_script_is_asked_for_before_a_server_knows_it)
{
    static const char script[] = "return tonumber(string.match(redis.call('INFO', 'errorstats'), "
                                 "'errorstat_NOSCRIPT:count=(%d+)') or 0)";
    struct seen seen;

    fixture_needs_real_servers();
    for (int i = 0; i < 5; i++) {
        quorlock_lock *lock = permit(fixture.client, 0);

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_holders(slot_key(seen.result.slot), seen.owner, 3);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(slot_key(seen.result.slot));
    }
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 0", script), 0);
}

CLIENT_TEST(an_owner_nests_in_its_slot)
{
    quorlock_lock *locks[3];
    struct seen seen[3], released;
    long long before;

    for (int i = 0; i < 3; i++) locks[i] = fixture_lock(fixture.client, "key", PERMIT(K, .owner = "me"));
    assert_status(fixture_acquire(locks[0], &seen[0]), QUORLOCK_OK);
    await_holders(slot_key(seen[0].result.slot), seen[0].owner, 3);
    before = lock_calls();
    assert_status(fixture_acquire(locks[1], &seen[1]), QUORLOCK_OK);
    assert_int_equal(seen[1].result.slot, seen[0].result.slot);
    assert_string_equal(seen[1].owner, seen[0].owner);
    assert_int_equal(lock_calls(), before);
    /* Another owner gets another slot. */
    locks[2] = fixture_lock(fixture.client, "key", PERMIT(K, .owner = "you"));
    assert_status(fixture_acquire(locks[2], &seen[2]), QUORLOCK_OK);
    assert_int_not_equal(seen[2].result.slot, seen[0].result.slot);
    assert_status(fixture_release(locks[0], &released), QUORLOCK_OK);
    assert_int_equal(holders(slot_key(seen[0].result.slot), seen[0].owner), 3);
    assert_status(fixture_release(locks[1], &released), QUORLOCK_OK);
    await_free(slot_key(seen[0].result.slot));
}

/* Each acquire of a permit checks the guard. A server that forgot its scripts gets them again. */
SERVERS_TEST(permits_under_a_strict_guard)
{
    struct seen seen;
    quorlock_lock *lock;

    fixture.options.guard = QUORLOCK_GUARD_STRICT;
    fixture.options.max_lease_ms = KEPT_LEASE_MS;
    fixture_client(3);
    lock =
        fixture_lock(fixture.client, "key", LEASE(KEPT_LEASE_MS, .permits = K, .fencing = 1, .wait_ms = GENEROUS_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    run_ms(KEPT_LEASE_MS + KEPT_LEASE_MS / 2);
    assert_true(quorlock_lock_valid_ms(lock) > 0);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(seen.result.slot));
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    /* Nobody is asked for votes without the guard. */
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL quorlock:guard");
    lock = fixture_lock(fixture.client, "key", LEASE(KEPT_LEASE_MS, .permits = K));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_NOQUORUM);
}
