/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_permits.c - k permits of a name: each is a slot, and a slot is a lock
 */
#include <stdlib.h>

#include "fixture.h"

#define K          3u
#define SHORT_MS   2000u /* a slow machine does not miss it */
#define SOON_MS    600u  /* whose end a test waits for */
#define QUEUED     8
#define OWN_ROUNDS 3u /* a free permit is found within so many round trips */

static char slot_text[TEXT_SIZE];

static const char *slot_key(uint32_t slot)
{
    snprintf(slot_text, sizeof(slot_text), "quorlock:slot:%u:key", slot);
    return slot_text;
}

#define PERMIT(...) LEASE(LONG_LEASE_MS, .permits = __VA_ARGS__)

static quorlock *permit(quorlock_client *client, uint32_t wait_ms)
{
    return fixture_lock(client, "key", PERMIT(K, .wait_ms = wait_ms));
}

/* Another owner's slot, on the first n servers. */
static void take_slot(uint32_t n, uint32_t slot, uint32_t lease_ms)
{
    for (uint32_t i = 0; i < n; i++) {
        server_do(SERVER(i), "SET %s peer PX %d", slot_key(slot), (int)lease_ms);
        server_do(SERVER(i), "SET quorlock:permits:key %d PX %d", (int)K, (int)lease_ms);
    }
}

static void delete_slots(void)
{
    for (uint32_t slot = 0; slot < K; slot++) {
        for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL %s", slot_key(slot));
    }
}

/* ---- one holder ---- */

CLIENT_TEST(a_permit_is_a_slot_in_one_round)
{
    quorlock *lock = permit(fixture.client, 0);
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
        assert_true(server_pttl(SERVER(i), "quorlock:permits:key") >= server_pttl(SERVER(i), slot_key(slot)) - 1);
    }
    assert_int_equal(holders("key", NULL), 0);
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(slot));
    /* The slot that was held last is asked for first. */
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.rounds, 1);
    assert_int_equal(seen.result.slot, slot);
}

/* Renewal keeps the slot and the number, over several leases. */
CLIENT_TEST(a_permit_is_renewed)
{
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(KEPT_LEASE_MS, .permits = K, .wait_ms = GENEROUS_MS));
    struct seen_loss loss = {0};
    struct seen seen;

    quorlock_on_lost(lock, on_loss, &loss);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    run_ms(2 * KEPT_LEASE_MS);
    assert_int_equal(loss.calls, 0);
    assert_true(quorlock_valid_ms(lock) > 0);
    assert_int_equal(holders(slot_key(seen.result.slot), seen.owner), 3);
    assert_int_equal(holders("quorlock:permits:key", "3"), 3);
    assert_status(fixture_extend(lock, LONG_LEASE_MS, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(server_pttl(SERVER(i), "quorlock:permits:key") > LONG_LEASE_MS / 2);
    }
}

/* A server that lost everything gets slot and number again. */
CLIENT_TEST(a_slot_is_repaired)
{
    quorlock *lock = fixture_lock(fixture.client, "key", LEASE(SHORT_MS, .permits = K, .wait_ms = GENEROUS_MS));
    struct seen seen;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders(slot_key(seen.result.slot), seen.owner, 3);
    server_do(SERVER(1), "FLUSHALL");
    await_holders(slot_key(seen.result.slot), seen.owner, 3);
    await_holders("quorlock:permits:key", "3", 3);
}

/* ---- as many holders as permits ---- */

CLIENT_TEST(as_many_hold_as_there_are_permits)
{
    quorlock_client *other = fixture_new_client(3);
    struct seen seen;
    uint32_t taken = 0;

    for (uint32_t i = 0; i < K; i++) {
        quorlock *lock = permit(i % 2 == 0 ? fixture.client : other, 0);

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_true(seen.result.rounds <= OWN_ROUNDS);
        assert_int_equal(taken & 1u << seen.result.slot, 0);
        taken |= 1u << seen.result.slot;
    }
    assert_int_equal(taken, (1u << K) - 1);
    assert_status(fixture_acquire(permit(fixture.client, 0), &seen), QUORLOCK_HELD);
    assert_contains(seen.text, "all 3 permits are taken");
    assert_int_equal(seen.result.slot, 0);
    assert_status(fixture_acquire(permit(other, 0), &seen), QUORLOCK_HELD);
}

/* The most that a name can have, and the least; from the last slots on few are free. */
CLIENT_TEST(many_permits_and_one)
{
    quorlock *lock;
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
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_HELD);
    lock = fixture_lock(fixture.client, "one", PERMIT(1));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.slot, 0);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "one", PERMIT(1)), &seen), QUORLOCK_HELD);
}

/* A server that does not answer, whichever it is, costs no permit and no node timeout. */
CLIENT_TEST(a_frozen_server_keeps_no_permit_from_anybody)
{
    struct seen seen;

    for (uint32_t frozen = 0; frozen < 3; frozen++) {
        quorlock *locks[K];
        uint32_t taken = 0;

        server_freeze(SERVER(frozen));
        for (uint32_t i = 0; i < K; i++) {
            locks[i] = permit(fixture.client, GENEROUS_MS);
            assert_status(fixture_acquire(locks[i], &seen), QUORLOCK_OK);
            assert_int_equal(taken & 1u << seen.result.slot, 0);
            taken |= 1u << seen.result.slot;
        }
        server_thaw(SERVER(frozen));
        for (uint32_t i = 0; i < K; i++) assert_status(fixture_release(locks[i], &seen), QUORLOCK_OK);
        for (uint32_t slot = 0; slot < K; slot++) await_free(slot_key(slot));
        fixture_await_ready(fixture.client, 3);
    }
}

/* From outside of the process: each is as good as another. */
CLIENT_TEST(contenders_never_are_more_than_permits)
{
    quorlock_client *clients[4];
    quorlock *locks[4][K];
    static struct seen seen[4][K], released;

    for (int c = 0; c < 4; c++) clients[c] = fixture_new_client(3);
    for (int c = 0; c < 4; c++) {
        for (uint32_t i = 0; i < K; i++) {
            locks[c][i] = permit(clients[c], QUORLOCK_WAIT_FOREVER);
            fixture_start_acquire(locks[c][i], &seen[c][i]);
        }
    }
    for (uint32_t done = 0; done < 4 * K;) {
        uint32_t holds = 0;

        run_ms(5);
        for (int c = 0; c < 4; c++) {
            for (uint32_t i = 0; i < K; i++) holds += quorlock_valid_ms(locks[c][i]) > 0;
        }
        assert_true(holds <= K);
        for (int c = 0; c < 4; c++) {
            for (uint32_t i = 0; i < K; i++) {
                if (quorlock_valid_ms(locks[c][i]) == 0) continue;
                assert_status(fixture_release(locks[c][i], &released), QUORLOCK_OK);
                done++;
            }
        }
    }
}

/* An ordinary lock of the same key is another lock. */
CLIENT_TEST(an_ordinary_lock_of_the_name_is_apart)
{
    quorlock *ordinary = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    struct seen seen;

    for (uint32_t i = 0; i < K; i++) assert_status(fixture_acquire(permit(fixture.client, 0), &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(ordinary, &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.slot, 0);
    assert_int_equal(holders("key", seen.owner), 3);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS)), &seen), QUORLOCK_HELD);
}

/* While a slot is held; when none is the number may change. */
CLIENT_TEST(another_number_of_permits_is_refused)
{
    quorlock *lock = permit(fixture.client, 0);
    quorlock *other = fixture_lock(fixture.client, "key", PERMIT(K + 2));
    struct seen seen, refused;

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders(slot_key(seen.result.slot), seen.owner, 3);
    assert_status(fixture_acquire(other, &refused), QUORLOCK_INVAL);
    assert_contains(refused.text, "the name has 3 permits, this lock gives 5");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(seen.result.slot));
    assert_status(fixture_acquire(other, &seen), QUORLOCK_OK);
    assert_true(seen.result.slot < K + 2);
    assert_int_equal(holders("quorlock:permits:key", "5"), 3);
    assert_status(fixture_acquire(lock, &refused), QUORLOCK_INVAL);
}

/* ---- free slots are found ---- */

/* Whichever is free: within three rounds, and without a wait. */
CLIENT_TEST(the_free_slot_is_found)
{
    struct seen seen;

    for (uint32_t free = 0; free < K; free++) {
        quorlock *lock = permit(fixture.client, 0);

        for (uint32_t slot = 0; slot < K; slot++) {
            if (slot != free) take_slot(3, slot, LONG_LEASE_MS);
        }
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_int_equal(seen.result.slot, free);
        assert_true(seen.result.rounds <= OWN_ROUNDS);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(slot_key(free));
        delete_slots();
    }
}

/* One server, whichever it is, has a key in the only slot that is free on the others. */
CLIENT_TEST(a_slot_that_one_server_has_taken_is_found)
{
    struct seen seen;

    for (uint32_t odd = 0; odd < 3; odd++) {
        quorlock *lock = permit(fixture.client, 0);

        for (uint32_t slot = 1; slot < K; slot++) take_slot(3, slot, LONG_LEASE_MS);
        server_do(SERVER(odd), "SET %s odd PX %d", slot_key(0), (int)LONG_LEASE_MS);
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_int_equal(seen.result.slot, 0);
        assert_true(seen.result.rounds <= OWN_ROUNDS);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_holders(slot_key(0), NULL, 1);
        server_do(SERVER(odd), "DEL %s", slot_key(0));
    }
}

/* One server has a key in the only slot that is free on the others, and one of the others stands still for a moment. */
CLIENT_TEST(a_server_that_is_slow_hides_no_free_slot)
{
    struct seen seen;

    for (uint32_t free = 0; free < 2 * K; free++) {
        uint32_t slow = free % 3;
        uint32_t odd = (slow + 1 + free / 3) % 3;
        quorlock *lock = permit(fixture.client, 0);

        for (uint32_t slot = 0; slot < K; slot++) take_slot(slot == free % K ? 0 : 3, slot, LONG_LEASE_MS);
        server_do(SERVER(odd), "SET %s odd PX %d", slot_key(free % K), (int)LONG_LEASE_MS);
        server_freeze(SERVER(slow));
        fixture_start_acquire(lock, &seen);
        run_ms(100);
        server_thaw(SERVER(slow));
        await_status(&seen, QUORLOCK_OK, "the slot that is free");
        assert_int_equal(seen.result.slot, free % K);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        delete_slots();
    }
}

/* One server, whichever it is, lacks the holders' keys: it offers slots that the others refuse. */
CLIENT_TEST(a_server_that_offers_taken_slots_is_no_guide)
{
    struct seen seen;

    for (uint32_t odd = 0; odd < 3; odd++) {
        quorlock *lock = permit(fixture.client, 2000);

        for (uint32_t slot = 0; slot < K; slot++) take_slot(3, slot, slot == 2 ? SOON_MS : LONG_LEASE_MS);
        for (uint32_t slot = 0; slot < K; slot++) server_do(SERVER(odd), "DEL %s", slot_key(slot));
        /* Only the lease that ends gives a permit. */
        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        assert_int_equal(seen.result.slot, 2);
        assert_true(seen.result.rounds < 30);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    }
}

/* ---- waiting ---- */

/* A dead holder's slot comes back with its lease. */
CLIENT_TEST(a_dead_holders_slot_comes_back)
{
    struct seen seen;

    take_slot(3, 0, LONG_LEASE_MS);
    take_slot(3, 1, SOON_MS);
    take_slot(3, 2, LONG_LEASE_MS);
    assert_status(fixture_acquire(permit(fixture.client, GENEROUS_MS), &seen), QUORLOCK_OK);
    assert_int_equal(seen.result.slot, 1);
    assert_true(seen.result.elapsed_ms >= SOON_MS / 2);
}

/* In another process: by notice, for no poll would come so soon after so long a wait. */
CLIENT_TEST(a_release_wakes_those_who_wait_for_any_slot)
{
    quorlock_client *other = fixture_new_client(3);
    quorlock *locks[K];
    struct seen seen[K], waiter = {0}, released;

    for (uint32_t i = 0; i < K; i++) {
        locks[i] = permit(other, 0);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
    }
    for (uint32_t i = 0; i < K; i++) {
        quorlock *lock = permit(fixture.client, QUORLOCK_WAIT_FOREVER);

        memset(&waiter, 0, sizeof(waiter));
        fixture_start_acquire(lock, &waiter);
        run_ms(300);
        assert_int_equal(waiter.calls, 0);
        assert_status(fixture_release(locks[i], &released), QUORLOCK_OK);
        await_status(&waiter, QUORLOCK_OK, "the slot that was released");
        assert_int_equal(waiter.result.slot, seen[i].result.slot);
        assert_status(fixture_release(lock, &released), QUORLOCK_OK);
        await_free(slot_key(seen[i].result.slot));
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
    }
}

/* K permits are held, and QUEUED more wanted. */
static void take_all_and_queue(quorlock **locks, struct seen *seen, quorlock **queued, struct seen *waiters)
{
    for (uint32_t i = 0; i < K; i++) {
        locks[i] = permit(fixture.client, 0);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
    }
    for (int i = 0; i < QUEUED; i++) {
        queued[i] = permit(fixture.client, QUORLOCK_WAIT_FOREVER);
        fixture_start_acquire(queued[i], &waiters[i]);
    }
}

/* In this process: the next in line takes that very slot. */
CLIENT_TEST(a_release_hands_its_slot_to_the_next_in_line)
{
    quorlock *locks[K], *queued[QUEUED];
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

/* All permits at once go to as many in line. */
CLIENT_TEST(all_slots_are_handed_on_at_once)
{
    quorlock *locks[K], *queued[QUEUED];
    struct seen seen[K], waiters[QUEUED] = {0}, released[K] = {0};
    uint32_t taken = 0;

    take_all_and_queue(locks, seen, queued, waiters);
    for (uint32_t i = 0; i < K; i++) fixture_start_release(locks[i], &released[i]);
    for (uint32_t i = 0; i < K; i++) {
        await_status(&waiters[i], QUORLOCK_OK, "one of the first in line");
        taken |= 1u << waiters[i].result.slot;
    }
    assert_int_equal(taken, (1u << K) - 1);
    for (int i = K; i < QUEUED; i++) assert_int_equal(waiters[i].calls, 0);
}

/* One that is canceled, one that is freed: the others get their permits, and nothing of them stays. */
CLIENT_TEST(waiters_that_leave_leave_nothing)
{
    quorlock *locks[K], *queued[3];
    struct seen seen[K], waiters[3] = {0}, released;

    for (uint32_t i = 0; i < K; i++) {
        locks[i] = permit(fixture.client, 0);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
    }
    for (int i = 0; i < 3; i++) {
        queued[i] = permit(fixture.client, QUORLOCK_WAIT_FOREVER);
        fixture_start_acquire(queued[i], &waiters[i]);
    }
    run_ms(50);
    assert_int_equal(quorlock_cancel(queued[0]), 0);
    await_status(&waiters[0], QUORLOCK_CANCELED, "the cancel");
    quorlock_free(queued[1]);
    await_status(&waiters[1], QUORLOCK_CANCELED, "the free");
    assert_status(fixture_release(locks[0], &released), QUORLOCK_OK);
    await_status(&waiters[2], QUORLOCK_OK, "the one that stayed");
    fixture_close(fixture.client);
    for (uint32_t slot = 0; slot < K; slot++) await_free(slot_key(slot));
}

/* ---- fencing, owners, policies, guards ---- */

/* The first request of each connection brings the script. */
CLIENT_TEST(no_script_is_asked_for_before_a_server_knows_it)
{
    static const char script[] = "return tonumber(string.match(redis.call('INFO', 'errorstats'), "
                                 "'errorstat_NOSCRIPT:count=(%d+)') or 0)";
    struct seen seen;

    for (int i = 0; i < 5; i++) {
        quorlock *lock = permit(fixture.client, 0);

        assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
        await_holders(slot_key(seen.result.slot), seen.owner, 3);
        assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
        await_free(slot_key(seen.result.slot));
    }
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(server_ask_number(SERVER(i), "EVAL %s 0", script), 0);
}

/* Tokens rise for each slot: the counter is the slot's. */
CLIENT_TEST(tokens_rise_for_each_slot)
{
    uint64_t last[K] = {0};
    struct seen seen, released;

    for (int i = 0; i < 4; i++) {
        quorlock *locks[K];

        for (uint32_t k = 0; k < K; k++) {
            uint32_t slot;

            locks[k] = fixture_lock(fixture.client, "key", PERMIT(K, .fencing = 1, .wait_ms = GENEROUS_MS));
            assert_status(fixture_acquire(locks[k], &seen), QUORLOCK_OK);
            slot = seen.result.slot;
            assert_true(seen.result.fence > last[slot]);
            last[slot] = seen.result.fence;
        }
        for (uint32_t k = 0; k < K; k++) assert_status(fixture_release(locks[k], &released), QUORLOCK_OK);
    }
    for (uint32_t slot = 0; slot < K; slot++) {
        char key[TEXT_SIZE], counter[TEXT_SIZE];

        snprintf(key, sizeof(key), "quorlock:fence:quorlock:slot:%u:key", slot);
        server_value(SERVER(0), key, counter, sizeof(counter));
        assert_int_equal(strtoull(counter, NULL, 10), last[slot]);
    }
}

CLIENT_TEST(an_owner_nests_in_its_slot)
{
    quorlock *locks[3];
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

SERVERS_TEST(permits_on_all_nodes)
{
    quorlock *locks[K];
    struct seen seen;

    fixture.options.policy = QUORLOCK_ALL;
    fixture_client(3);
    for (uint32_t i = 0; i < K; i++) {
        locks[i] = permit(fixture.client, 0);
        assert_status(fixture_acquire(locks[i], &seen), QUORLOCK_OK);
        assert_int_equal(holders(slot_key(seen.result.slot), seen.owner), 3);
    }
    assert_status(fixture_acquire(permit(fixture.client, 0), &seen), QUORLOCK_HELD);
    assert_status(fixture_release(locks[1], &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(permit(fixture.client, GENEROUS_MS), &seen), QUORLOCK_OK);
}

/* The guard is looked at with every permit, too, and a server that forgets its scripts is told them again. */
SERVERS_TEST(permits_under_a_strict_guard)
{
    struct seen seen;
    quorlock *lock;

    fixture.options.guard = QUORLOCK_GUARD_STRICT;
    fixture.options.max_lease_ms = KEPT_LEASE_MS;
    fixture_client(3);
    lock =
        fixture_lock(fixture.client, "key", LEASE(KEPT_LEASE_MS, .permits = K, .fencing = 1, .wait_ms = GENEROUS_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    run_ms(KEPT_LEASE_MS + KEPT_LEASE_MS / 2);
    assert_true(quorlock_valid_ms(lock) > 0);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    await_free(slot_key(seen.result.slot));
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "SCRIPT FLUSH");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    /* Nobody is asked for votes without the guard. */
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "DEL quorlock:guard");
    lock = fixture_lock(fixture.client, "key", LEASE(KEPT_LEASE_MS, .permits = K));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_NOQUORUM);
}
