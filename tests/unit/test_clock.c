/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "base/clock.h"
#include "base/system_os.h"
#include "test.h"

#define BOOT_US   5000000000u /* unlike RAW, it counts the sleep before we began */
#define RAW_US    1000000000u
#define SLACK_US  200u
#define SECOND_US 1000000ull

/* Both system clocks, as far as they have come, and ours over them. */
struct clock_fixture {
    struct clock clock;
    uint64_t boot_us, raw_us;
    uint64_t first_us;
};

static struct clock_fixture begin(void)
{
    struct clock_fixture f = {.boot_us = BOOT_US, .raw_us = RAW_US};

    f.first_us = clock_advance(&f.clock, f.boot_us, f.raw_us);
    return f;
}

static uint64_t pass(struct clock_fixture *f, uint64_t boot_us, uint64_t raw_us)
{
    f->boot_us += boot_us;
    f->raw_us += raw_us;
    return clock_advance(&f->clock, f->boot_us, f->raw_us) - f->first_us;
}

TEST(the_clock_begins_at_boottime)
{
    struct clock_fixture f = begin();

    assert_int_equal(f.first_us, BOOT_US);
}

TEST(even_clocks_add_nothing)
{
    struct clock_fixture f = begin();

    for (uint64_t i = 1; i <= 1000; i++) assert_int_equal(pass(&f, 777, 777), i * 777);
}

TEST(suspend_counts)
{
    struct clock_fixture f = begin();

    assert_int_equal(pass(&f, SECOND_US, SECOND_US), SECOND_US);
    assert_int_equal(pass(&f, 3600ull * SECOND_US, 10), 3600ull * SECOND_US + SECOND_US);
    /* Even running afterwards is even: the sleep is not counted again. */
    assert_int_equal(pass(&f, SECOND_US, SECOND_US), 3602ull * SECOND_US);
}

/* A time daemon slows BOOTTIME by 500 ppm: RAW is what we follow, at whatever pace we look. */
TEST(a_slowed_boottime_is_compensated)
{
    static const uint64_t paces_us[] = {1000, 100000, 10000000};

    for (size_t k = 0; k < LENGTH(paces_us); k++) {
        struct clock_fixture f = begin();
        uint64_t pace_us = paces_us[k];
        uint64_t now_us = 0;

        for (uint64_t raw_us = pace_us; raw_us <= 100ull * SECOND_US; raw_us += pace_us) {
            now_us = pass(&f, pace_us - pace_us / 2000, pace_us);
            if (now_us + SLACK_US < raw_us) fail_msg("%llu us behind", (unsigned long long)(raw_us - now_us));
            assert_true(now_us <= raw_us);
        }
        assert_true(now_us + SLACK_US >= 100ull * SECOND_US);
    }
}

TEST(a_hurried_boottime_is_followed)
{
    struct clock_fixture f = begin();

    for (uint64_t i = 1; i <= 1000; i++) assert_int_equal(pass(&f, 100050, 100000), i * 100050);
}

/* The larger advance holds for any interval: a sleep must not pay for a slew that comes after it. */
TEST(a_suspend_does_not_hide_a_slew)
{
    struct clock_fixture f = begin();
    uint64_t before_us;

    before_us = pass(&f, 100ull * SECOND_US, 0);
    assert_int_equal(before_us, 100ull * SECOND_US);
    assert_true(pass(&f, 9 * SECOND_US, 10 * SECOND_US) - before_us >= 10 * SECOND_US - SLACK_US);
}

TEST(a_slew_does_not_hide_a_suspend)
{
    struct clock_fixture f = begin();
    uint64_t before_us;

    before_us = pass(&f, 9 * SECOND_US, 10 * SECOND_US);
    assert_int_equal(before_us, 10 * SECOND_US);
    assert_int_equal(pass(&f, 5 * SECOND_US, 0) - before_us, 5 * SECOND_US);
}

/* Two readings are never taken at once; that must not make time run away. */
TEST(noise_below_the_slack_adds_nothing)
{
    struct clock_fixture f = begin();
    uint64_t now_us = 0;

    for (int i = 0; i < 10000; i++) {
        uint64_t off_us = (uint64_t)(i * 37 % 100); /* RAW is read up to 100 us late */

        now_us = clock_advance(&f.clock, BOOT_US + (uint64_t)i * 500, RAW_US + (uint64_t)i * 500 + off_us);
    }
    assert_int_equal(now_us, BOOT_US + 9999ull * 500u);
}

TEST(the_clock_never_goes_back)
{
    struct clock_fixture f = begin();
    uint64_t now_us = pass(&f, SECOND_US, SECOND_US);

    f.boot_us -= SECOND_US / 2;
    f.raw_us -= SECOND_US / 2;
    assert_int_equal(pass(&f, 0, 0), now_us);
    assert_true(pass(&f, SECOND_US, SECOND_US) > now_us);
}

static uint64_t system_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_BOOTTIME, &at);
    return (uint64_t)at.tv_sec * SECOND_US + (uint64_t)at.tv_nsec / 1000u;
}

TEST(the_clock_reads_the_clocks_of_the_system)
{
    struct clock clock = {0};
    struct system system = system_libevent(NULL, NULL);
    uint64_t from_us = system_us();
    uint64_t last_us = clock_now_us(&clock, &system);

    assert_true(last_us >= from_us);
    assert_true(last_us <= system_us());
    for (int i = 0; i < 1000; i++) {
        uint64_t now_us = clock_now_us(&clock, &system);

        assert_true(now_us >= last_us);
        last_us = now_us;
    }
}

/* ---- how often RAW is read ---- */

struct slewed {
    struct system system;
    uint64_t true_us;  /* as RAW shows it */
    uint64_t slow_ppm; /* BOOT loses so much */
    uint64_t slept_us;
    uint64_t boot_reads, raw_reads;
};

static uint64_t slewed_boot_us(struct system *system)
{
    struct slewed *slewed = (struct slewed *)system;

    slewed->boot_reads++;
    return BOOT_US + slewed->slept_us + slewed->true_us - slewed->true_us * slewed->slow_ppm / SECOND_US;
}

static uint64_t slewed_raw_us(struct system *system)
{
    struct slewed *slewed = (struct slewed *)system;

    slewed->raw_reads++;
    return RAW_US + slewed->true_us;
}

static const struct system_ops slewed_ops = {.boot_us = slewed_boot_us, .raw_us = slewed_raw_us};

TEST(raw_is_read_once_a_millisecond_at_most)
{
    struct slewed slewed = {.system.ops = &slewed_ops};
    struct clock clock = {0};

    for (; slewed.true_us < SECOND_US; slewed.true_us += 10)
        assert_int_equal(clock_now_us(&clock, &slewed.system), BOOT_US + slewed.true_us);
    assert_int_equal(slewed.boot_reads, 100000);
    assert_int_equal(slewed.raw_reads, 1000);
}

/* As much as the kernel slews, at whatever pace we look: behind are the slack, and what the last millisecond hides. */
TEST(the_hardest_slew_hides_no_more_than_the_allowance_covers)
{
    static const uint64_t paces_us[] = {7, 100, 999, 1001, 20000};

    for (size_t k = 0; k < LENGTH(paces_us); k++) {
        struct slewed slewed = {.system.ops = &slewed_ops, .slow_ppm = 100500};
        struct clock clock = {0};
        uint64_t now_us = 0;

        for (; slewed.true_us < SECOND_US; slewed.true_us += paces_us[k]) {
            now_us = clock_now_us(&clock, &slewed.system) - BOOT_US;
            assert_true(now_us <= slewed.true_us + 1);
            if (now_us + SLACK_US + 120 < slewed.true_us)
                fail_msg("%llu us behind", (unsigned long long)(slewed.true_us - now_us));
        }
        assert_true(now_us > 0);
    }
}

TEST(a_suspend_counts_at_once)
{
    struct slewed slewed = {.system.ops = &slewed_ops};
    struct clock clock = {0};

    assert_int_equal(clock_now_us(&clock, &slewed.system), BOOT_US);
    slewed.slept_us = 500;
    slewed.true_us = 10;
    assert_int_equal(clock_now_us(&clock, &slewed.system), BOOT_US + 510);
    slewed.slept_us = 3600 * SECOND_US;
    assert_int_equal(clock_now_us(&clock, &slewed.system), BOOT_US + 3600 * SECOND_US + 10);
}
