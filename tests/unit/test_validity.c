/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_validity.c - lease arithmetic: rounded to the safe side, and no sum that wraps round
 */

#include "core/backoff.h"
#include "core/validity.h"
#include "test.h"

#define LAST UINT64_MAX

TEST(sums_saturate)
{
    assert_int_equal(validity_add(2, 3), 5);
    assert_true(validity_add(LAST, 1) == LAST);
    assert_true(validity_add(LAST - 1, 1) == LAST);
    assert_true(validity_add(LAST, LAST) == LAST);
    assert_int_equal(validity_sub(5, 3), 2);
    assert_int_equal(validity_sub(3, 5), 0);
    assert_int_equal(validity_sub(0, LAST), 0);
}

TEST(the_allowance_is_rounded_up)
{
    assert_int_equal(validity_allowance_us(30000000, 10000, 2000), 302000);
    assert_int_equal(validity_allowance_us(1, 10000, 0), 1);
    assert_int_equal(validity_allowance_us(100, 10000, 0), 1);
    assert_int_equal(validity_allowance_us(101, 10000, 0), 2);
    assert_int_equal(validity_allowance_us(0, 10000, 7), 7);
    assert_int_equal(validity_allowance_us(1000000, 0, 0), 0);
    assert_int_equal(validity_allowance_us(999999, 1, 0), 1);
    assert_int_equal(validity_allowance_us(1000001, 1, 0), 2);
}

TEST(absurd_allowances_saturate)
{
    assert_true(validity_allowance_us(LAST, 1000000, 1) == LAST);
    assert_true(validity_allowance_us(LAST, UINT32_MAX, 0) == LAST);
    assert_true(validity_allowance_us(1, 0, LAST) == LAST);
    assert_true(validity_allowance_us(LAST, 1, 0) == LAST / 1000000 + 1);
    assert_true(validity_allowance_us(LAST, 0, 5) == 5);
}

TEST(a_vote_ends_before_its_lease)
{
    assert_int_equal(validity_of_vote(1000, 30000000, 10000, 2000), 1000 + 30000000 - 302000);
    /* More allowance than lease: it ends with its send, it never wraps. */
    assert_int_equal(validity_of_vote(1000, 1000, 10000, 2000), 1000);
    assert_int_equal(validity_of_vote(1000, 1000, 1000000, 0), 1000);
    assert_true(validity_of_vote(LAST, 30000000, 10000, 2000) == LAST);
    assert_true(validity_of_vote(LAST - 5, 30000000, 10000, 2000) == LAST);
}

TEST(the_quorums_end_is_the_qth_largest)
{
    uint64_t ends[] = {30, 10, 50, 20, 40};
    uint64_t same[] = {7, 7, 7};
    uint64_t mixed[] = {0, 100, 0};

    assert_int_equal(validity_of_quorum(ends, 5, 3), 30);
    assert_int_equal(validity_of_quorum(ends, 5, 1), 50);
    assert_int_equal(validity_of_quorum(ends, 5, 5), 10);
    assert_int_equal(validity_of_quorum(same, 3, 2), 7);
    assert_int_equal(validity_of_quorum(mixed, 3, 2), 0); /* one yes is no quorum */
    assert_int_equal(validity_of_quorum(ends, 5, 6), 0);
    assert_int_equal(validity_of_quorum(ends, 5, 0), 0);
    assert_int_equal(validity_of_quorum(ends, 0, 1), 0);
}

TEST(loss_is_reported_at_least_ten_milliseconds_before)
{
    assert_int_equal(validity_lost_margin_us(30000000, 10000, 2000), 604000);
    assert_int_equal(validity_lost_margin_us(10000, 10000, 2000), 10000);
    assert_true(validity_lost_margin_us(LAST, 1000000, 0) == LAST);
}

TEST(a_debt_outlives_the_lease)
{
    assert_int_equal(validity_debt_until(1000, 30000000), 1000 + 30300000);
    assert_int_equal(validity_debt_until(0, 1), 2);
    assert_true(validity_debt_until(LAST, 1) == LAST);
    assert_true(validity_debt_until(1, LAST) == LAST);
}

TEST(pauses_stay_within_their_bounds)
{
    struct backoff_jitter jitter;
    uint64_t largest_us = 0;

    backoff_seed(&jitter, (const unsigned char *)"12345678");
    for (uint32_t i = 0; i < 10000; i++) {
        uint64_t split_us = backoff_split_us(&jitter, 1000, i % 100);
        uint64_t poll_us = backoff_poll_us(&jitter, i % 40, false);
        uint64_t renew_us = backoff_renew_us(&jitter, 100000, i % 40 + 2);

        if (split_us > largest_us) largest_us = split_us;
        assert_true(split_us <= 64000);
        assert_in_range(poll_us, 50000, 1000000);
        assert_in_range(renew_us, 12500, 100001);
    }
    assert_true(largest_us > 32000);
    assert_int_equal(backoff_renew_us(&jitter, 100000, 1), 0); /* at once, the first time */
    assert_true(backoff_split_us(&jitter, UINT64_MAX, UINT32_MAX) <= 64000000);
    assert_in_range(backoff_poll_us(&jitter, UINT32_MAX, false), 500000, 1000000);
    assert_in_range(backoff_poll_us(&jitter, UINT32_MAX, true), 2000000, 4000000);
    assert_int_equal(backoff_uniform(&jitter, 0), 0);
    (void)backoff_uniform(&jitter, UINT64_MAX);
}
