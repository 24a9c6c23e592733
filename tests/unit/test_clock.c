/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

#define BOOT_US   5000000000u /* unlike RAW, it counts the sleep before we began */
#define RAW_US    1000000000u
#define SLACK_US  200u
#define SECOND_US 1000000ull

/* Both system clocks, as far as they have come, and ours over them. */
struct world {
    struct clock clock;
    uint64_t boot_us, raw_us;
    uint64_t first_us;
};

static struct world begin(void)
{
    struct world world = {.boot_us = BOOT_US, .raw_us = RAW_US};

    world.first_us = clock_advance(&world.clock, world.boot_us, world.raw_us);
    return world;
}

static uint64_t pass(struct world *world, uint64_t boot_us, uint64_t raw_us)
{
    world->boot_us += boot_us;
    world->raw_us += raw_us;
    return clock_advance(&world->clock, world->boot_us, world->raw_us) - world->first_us;
}

static void begins_at_boottime(void **state)
{
    struct world world = begin();

    (void)state;
    assert_int_equal(world.first_us, BOOT_US);
}

static void even_clocks_add_nothing(void **state)
{
    struct world world = begin();

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) assert_int_equal(pass(&world, 777, 777), i * 777);
}

static void suspend_counts(void **state)
{
    struct world world = begin();

    (void)state;
    assert_int_equal(pass(&world, SECOND_US, SECOND_US), SECOND_US);
    assert_int_equal(pass(&world, 3600ull * SECOND_US, 10), 3600ull * SECOND_US + SECOND_US);
    /* Even running afterwards is even: the sleep is not counted again. */
    assert_int_equal(pass(&world, SECOND_US, SECOND_US), 3602ull * SECOND_US);
}

/* A time daemon slows BOOTTIME by 500 ppm: RAW is what we follow, at whatever pace we look. */
static void slowed_boottime_is_made_up_for(void **state)
{
    static const uint64_t paces_us[] = {1000, 100000, 10000000};

    (void)state;
    for (size_t k = 0; k < sizeof(paces_us) / sizeof(paces_us[0]); k++) {
        struct world world = begin();
        uint64_t pace_us = paces_us[k];
        uint64_t now_us = 0;

        for (uint64_t raw_us = pace_us; raw_us <= 100ull * SECOND_US; raw_us += pace_us) {
            now_us = pass(&world, pace_us - pace_us / 2000, pace_us);
            if (now_us + SLACK_US < raw_us) fail_msg("%llu us behind", (unsigned long long)(raw_us - now_us));
            assert_true(now_us <= raw_us);
        }
        assert_true(now_us + SLACK_US >= 100ull * SECOND_US);
    }
}

static void hurried_boottime_is_followed(void **state)
{
    struct world world = begin();

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++) assert_int_equal(pass(&world, 100050, 100000), i * 100050);
}

/* The larger advance holds for any interval: a sleep must not pay for a slew that comes after it. */
static void suspend_does_not_hide_a_slew(void **state)
{
    struct world world = begin();
    uint64_t before_us;

    (void)state;
    before_us = pass(&world, 100ull * SECOND_US, 0);
    assert_int_equal(before_us, 100ull * SECOND_US);
    assert_true(pass(&world, 9 * SECOND_US, 10 * SECOND_US) - before_us >= 10 * SECOND_US - SLACK_US);
}

static void slew_does_not_hide_a_suspend(void **state)
{
    struct world world = begin();
    uint64_t before_us;

    (void)state;
    before_us = pass(&world, 9 * SECOND_US, 10 * SECOND_US);
    assert_int_equal(before_us, 10 * SECOND_US);
    assert_int_equal(pass(&world, 5 * SECOND_US, 0) - before_us, 5 * SECOND_US);
}

/* Two readings are never taken at once; that must not make time run away. */
static void noise_below_the_slack_adds_nothing(void **state)
{
    struct world world = begin();
    uint64_t now_us = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t off_us = (uint64_t)(i * 37 % 100); /* RAW is read up to 100 us late */

        now_us = clock_advance(&world.clock, BOOT_US + (uint64_t)i * 500, RAW_US + (uint64_t)i * 500 + off_us);
    }
    assert_int_equal(now_us, BOOT_US + 9999ull * 500u);
}

static void never_goes_back(void **state)
{
    struct world world = begin();
    uint64_t now_us = pass(&world, SECOND_US, SECOND_US);

    (void)state;
    world.boot_us -= SECOND_US / 2;
    world.raw_us -= SECOND_US / 2;
    assert_int_equal(pass(&world, 0, 0), now_us);
    assert_true(pass(&world, SECOND_US, SECOND_US) > now_us);
}

static uint64_t system_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_BOOTTIME, &at);
    return (uint64_t)at.tv_sec * SECOND_US + (uint64_t)at.tv_nsec / 1000u;
}

static void reads_the_system(void **state)
{
    struct clock clock = {0};
    uint64_t from_us = system_us();
    uint64_t last_us = clock_now_us(&clock);

    (void)state;
    assert_true(last_us >= from_us);
    assert_true(last_us <= system_us());
    for (int i = 0; i < 1000; i++) {
        uint64_t now_us = clock_now_us(&clock);

        assert_true(now_us >= last_us);
        last_us = now_us;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_at_boottime),
        cmocka_unit_test(even_clocks_add_nothing),
        cmocka_unit_test(suspend_counts),
        cmocka_unit_test(slowed_boottime_is_made_up_for),
        cmocka_unit_test(hurried_boottime_is_followed),
        cmocka_unit_test(suspend_does_not_hide_a_slew),
        cmocka_unit_test(slew_does_not_hide_a_suspend),
        cmocka_unit_test(noise_below_the_slack_adds_nothing),
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(reads_the_system),
    };

    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
