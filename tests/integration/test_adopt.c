/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_adopt.c - a lock that passes from one client to another by its token
 */
#include <string.h>

#include "fixture.h"

static const char *const keys[] = {"one", "two"};
static struct seen seen, after;
static quorlock_lock *lock, *heir;
static char token[TEXT_SIZE];
static uint64_t fence;
static uint32_t valid_ms;

static int adopt(quorlock_lock *by, struct seen *ret)
{
    memset(ret, 0, sizeof(*ret));
    assert_status(quorlock_lock_adopt(by, token, on_result, ret), QUORLOCK_OK);
    await_count(&ret->calls, 1, GENEROUS_MS, "the end of the adoption");
    return ret->result.status;
}

static void detach(quorlock_lock *from)
{
    const char *text = NULL;

    assert_status(quorlock_lock_detach(from, &text, &fence, &valid_ms), QUORLOCK_OK);
    snprintf(token, sizeof(token), "%s", text);
}

/* Held by one client, with another label than that of the next one, and detached. */
static void hand_out(size_t n_keys, bool fencing)
{
    lock = fixture_lock_all(fixture.client, keys, n_keys, LEASE(LONG_LEASE_MS, .fencing = fencing, .label = "first"));
    heir = fixture_lock_all(fixture_new_client(3), keys, n_keys,
                            LEASE(LONG_LEASE_MS, .fencing = fencing, .label = "second"));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    detach(lock);
    assert_string_equal(token, seen.owner);
    assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    assert_in_range(valid_ms, 1, LONG_LEASE_MS);
}

CLIENT_TEST(an_adopted_lock_is_held_and_released_like_any_other)
{
    static struct seen_loss lost;

    hand_out(1, false);
    await_holders("one", token, 3);
    memset(&lost, 0, sizeof(lost));
    quorlock_lock_set_on_lost(heir, on_loss, &lost);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    assert_string_equal(quorlock_lock_token(heir), token);
    assert_in_range(quorlock_lock_valid_ms(heir), 1, LONG_LEASE_MS);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_HELD);
    await_holders("one", token, 3);
    assert_status(fixture_extend(heir, 0, &after), QUORLOCK_OK);
    assert_status(fixture_release(heir, &after), QUORLOCK_OK);
    await_free("one");
    /* The handle has its own label again. */
    assert_status(fixture_acquire(heir, &after), QUORLOCK_OK);
    assert_int_equal(strncmp(after.owner, "second:", 7), 0);
    drop_by_hand("one");
    await_count(&lost.calls, 0, GENEROUS_MS, "nothing");
}

static bool is_renewed(void *unused)
{
    (void)unused;
    return quorlock_lock_valid_ms(heir) > 0 && server_pttl(SERVER(0), "one") > 0 && lock_calls() > 18;
}

/* The former owner renews no more; the new one does, and is notified of the loss. */
CLIENT_TEST(an_adopted_lock_is_renewed_and_its_loss_is_reported)
{
    static struct seen_loss lost;

    lock = fixture_lock(fixture.client, "one", LEASE(KEPT_LEASE_MS));
    heir = fixture_lock(fixture_new_client(3), "one", LEASE(KEPT_LEASE_MS, .renew_ms = 50));
    memset(&lost, 0, sizeof(lost));
    quorlock_lock_set_on_lost(heir, on_loss, &lost);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    detach(lock);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    await(is_renewed, NULL, GENEROUS_MS, "renewals");
    drop_by_hand("one");
    await_count(&lost.calls, 1, GENEROUS_MS, "the loss");
    assert_int_equal(lost.loss.reason, QUORLOCK_LOSS_GONE);
}

CLIENT_TEST(several_keys_and_their_fencing_token_pass_on)
{
    hand_out(2, true);
    assert_true(fence > 0);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    assert_true(after.result.fence == fence && quorlock_lock_fence(heir) == fence);
    assert_status(fixture_release(heir, &after), QUORLOCK_OK);
    await_free("one");
    await_free("two");
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_true(seen.result.fence > fence);
}

/* One node of three still has the key. */
CLIENT_TEST(a_token_without_a_quorum_is_lost_and_released)
{
    hand_out(1, false);
    await_holders("one", token, 3);
    server_do(SERVER(0), "DEL one");
    server_do(SERVER(1), "SET one somebody");
    assert_status(adopt(heir, &after), QUORLOCK_ERR_LOST);
    assert_contains(after.text, "its token is gone from 2 of 3 nodes; held by somebody on 1");
    assert_int_equal(quorlock_lock_valid_ms(heir), 0);
    await_holders("one", token, 0);
    assert_true(server_holds(SERVER(1), "one", "somebody"));
}

CLIENT_TEST(without_a_quorum_of_answers_the_token_can_be_adopted_again)
{
    hand_out(1, false);
    await_holders("one", token, 3);
    server_kill(SERVER(0));
    server_kill(SERVER(1));
    assert_status(adopt(heir, &after), QUORLOCK_ERR_NOQUORUM);
    assert_true(server_holds(SERVER(2), "one", token));
    server_wipe(SERVER(0));
    server_do(SERVER(0), "SET one %s PX 100000", token);
    fixture_await_ready(fixture.clients[1], 2);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
}

/* The waiter of the same client hears of the adopter's release. */
CLIENT_TEST(a_waiter_has_the_keys_after_the_last_owner)
{
    quorlock_lock *waiter = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    static struct seen granted;

    lock = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS));
    heir = fixture_lock(fixture_new_client(3), "one", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    fixture_start_acquire(waiter, &granted);
    detach(lock);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    assert_int_equal(granted.calls, 0);
    assert_status(fixture_release(heir, &after), QUORLOCK_OK);
    await_status(&granted, QUORLOCK_OK, "the grant of the waiter");
}

/* A release of the token that is still to come would delete the keys of the adopter. */
CLIENT_TEST(a_client_adopts_no_token_that_it_holds_or_releases)
{
    static struct seen late;

    lock = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS));
    heir = fixture_lock(fixture.client, "one", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    snprintf(token, sizeof(token), "%s", seen.owner);
    assert_status(quorlock_lock_adopt(heir, token, on_result, &after), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), "holds that token, or is releasing it");
    /* The lock is quiet: only a record of it is kept. */
    await_holders("one", token, 3);
    run_ms(100);
    assert_status(quorlock_lock_adopt(heir, token, on_result, &after), QUORLOCK_ERR_STATE);
    assert_status(quorlock_lock_adopt(lock, token, on_result, &after), QUORLOCK_ERR_STATE);
    assert_contains(quorlock_client_error(fixture.client), "it is held already");
    for (uint32_t i = 0; i < 3; i++) server_freeze(SERVER(i));
    fixture_start_release(lock, &late);
    assert_status(quorlock_lock_adopt(heir, token, on_result, &after), QUORLOCK_ERR_STATE);
    for (uint32_t i = 0; i < 3; i++) server_thaw(SERVER(i));
    await_free("one");
}

static void expect_misfit(quorlock_lock *by, const char *text)
{
    assert_status(quorlock_lock_adopt(by, token, on_result, &after), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), text);
    for (size_t k = 0; k < 2; k++) assert_int_equal(holders(keys[k], token), 3);
}

/* A lock of fewer keys would release and renew a part; one with fencing would show the token of the owner before. */
CLIENT_TEST(a_token_is_adopted_with_all_its_keys_and_no_fencing_that_it_lacks)
{
    static const char *const swapped[] = {"two", "one"};

    hand_out(2, false);
    for (size_t k = 0; k < 2; k++) await_holders(keys[k], token, 3);
    expect_misfit(fixture_lock_all(fixture.client, keys, 1, LEASE(LONG_LEASE_MS)), "of a lock with other keys");
    expect_misfit(fixture_lock_all(fixture.client, keys, 2, LEASE(LONG_LEASE_MS, .fencing = 1)), "without fencing");
    heir = fixture_lock_all(fixture.client, swapped, 2, LEASE(LONG_LEASE_MS));
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    assert_status(fixture_release(heir, &after), QUORLOCK_OK);
    await_free("two");
    hand_out(2, true);
    assert_status(adopt(heir, &after), QUORLOCK_OK);
    assert_status(fixture_release(heir, &after), QUORLOCK_OK);
}

static void expect_refused(const struct quorlock_lock_options *options, const char *text)
{
    quorlock_lock *refused = fixture_lock(fixture.client, "one", options);
    const char *unused;

    assert_status(quorlock_lock_adopt(refused, seen.owner, on_result, &after), QUORLOCK_ERR_UNSUPPORTED);
    assert_contains(quorlock_client_error(fixture.client), text);
    assert_status(quorlock_lock_detach(refused, &unused, NULL, NULL), QUORLOCK_ERR_UNSUPPORTED);
    assert_contains(quorlock_client_error(fixture.client), text);
}

CLIENT_TEST(what_cannot_be_passed_on_is_refused_with_a_reason)
{
    const char *unused;

    expect_refused(LEASE(1000, .permits = 3), "permits is 3");
    expect_refused(LEASE(1000, .shared = QUORLOCK_SHARED_ALL), "shared is set");
    expect_refused(LEASE(1000, .owner = "me"), "owner is \"me\"");
    lock = fixture_lock(fixture.client, "one", LEASE(1000));
    assert_status(quorlock_lock_adopt(lock, "some text", on_result, &after), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "no owner token");
    assert_status(quorlock_lock_detach(lock, &unused, NULL, NULL), QUORLOCK_ERR_STATE);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(quorlock_lock_detach(lock, NULL, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "ret_token is NULL");
    assert_true(quorlock_lock_valid_ms(lock) > 0);
}

REDISSON_TEST(no_lock_of_redisson_is_passed_on)
{
    expect_refused(LEASE(1000), "the dialect is redisson");
}
