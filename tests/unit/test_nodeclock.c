/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nodeclock.c - which readings prove that a node's clock has stepped
 */

#include "core/nodeclock.h"
#include "test.h"

#define DRIFT_PPM 10000u
#define FIXED_US  2000u
#define SECOND    UINT64_C(1000000)
#define EPOCH     UINT64_C(1700000000000000)

static bool read_clock(struct nodeclock *clock, uint64_t sent_us, uint64_t received_us, uint64_t node_us)
{
    return nodeclock_stepped(clock, sent_us, received_us, node_us, DRIFT_PPM, FIXED_US);
}

TEST(the_first_reading_proves_nothing)
{
    struct nodeclock clock = {.known = false};

    assert_false(read_clock(&clock, 10, 20, EPOCH + 3600 * SECOND));
    assert_true(clock.known);
    assert_int_equal(clock.sent_us, 10);
    assert_int_equal(clock.node_us, EPOCH + 3600 * SECOND);
}

TEST(a_clock_that_runs_along_has_not_stepped)
{
    struct nodeclock clock = {.known = false};

    for (uint64_t i = 0; i < 100; i++) {
        assert_false(read_clock(&clock, i * SECOND, i * SECOND + 500, EPOCH + i * SECOND + 250));
    }
}

/* From the first question to the second answer one second and 500 us pass: 1 % of it and 2 ms are allowed. */
TEST(a_reading_beyond_the_allowance_proves_a_step)
{
    const uint64_t passed_us = SECOND + 500;
    const uint64_t allowed_us = passed_us + 10005 + FIXED_US;
    struct nodeclock at = {.known = false};
    struct nodeclock beyond = {.known = false};

    read_clock(&at, 0, 500, EPOCH);
    read_clock(&beyond, 0, 500, EPOCH);
    assert_false(read_clock(&at, SECOND, passed_us, EPOCH + allowed_us));
    assert_true(read_clock(&beyond, SECOND, passed_us, EPOCH + allowed_us + 1));
}

TEST(a_slow_answer_hides_a_step_of_its_size)
{
    struct nodeclock clock = {.known = false};

    read_clock(&clock, 0, 500, EPOCH);
    assert_false(read_clock(&clock, SECOND, 3 * SECOND, EPOCH + 3 * SECOND));
    /* The next one is measured from the question on, not from that answer. */
    assert_true(read_clock(&clock, 3 * SECOND + 100, 3 * SECOND + 200, EPOCH + 6 * SECOND));
}

TEST(a_step_is_proven_once)
{
    struct nodeclock clock = {.known = false};

    read_clock(&clock, 0, 500, EPOCH);
    assert_true(read_clock(&clock, SECOND, SECOND + 500, EPOCH + 10 * SECOND));
    assert_false(read_clock(&clock, 2 * SECOND, 2 * SECOND + 500, EPOCH + 11 * SECOND));
}

TEST(a_step_back_does_no_harm)
{
    struct nodeclock clock = {.known = false};

    read_clock(&clock, 0, 500, EPOCH);
    assert_false(read_clock(&clock, SECOND, SECOND + 500, EPOCH - 100 * SECOND));
    /* Forward again to where it was: what it did in between ended early. */
    assert_true(read_clock(&clock, 2 * SECOND, 2 * SECOND + 500, EPOCH + 2 * SECOND));
}

TEST(absurd_readings_do_not_wrap_round)
{
    struct nodeclock clock = {.known = false};

    read_clock(&clock, UINT64_MAX, 0, 0);
    assert_true(read_clock(&clock, 0, 0, UINT64_MAX));
    assert_false(nodeclock_stepped(&clock, 0, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX));
    assert_false(read_clock(&clock, 0, 0, 0));
}
