/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/expiry.h"

#include "base/clock.h"
#include "base/system.h"
#include "test.h"

#define BOOT_US  5000000u
#define RAW_US   1000000u
#define LEASE_US 1000000u
#define LOST_US  900000u

/* Both clocks of the system, which the test moves. */
struct clocks {
    struct system system;
    uint64_t boot_us, raw_us;
};

static uint64_t boot_us(struct system *system)
{
    return ((struct clocks *)system)->boot_us;
}

static uint64_t raw_us(struct system *system)
{
    return ((struct clocks *)system)->raw_us;
}

static const struct system_ops ops = {.boot_us = boot_us, .raw_us = raw_us};

struct row {
    const char *what;
    uint64_t seen_boot_us, seen_raw_us; /* the clocks advance by so much, and the loop reads its clock */
    int64_t boot_us, raw_us;            /* and by so much more, and it does not */
    uint64_t left_us;                   /* that another thread then finds */
};

static const struct row rows[] = {
    {"at once", 0, 0, 0, 0, LEASE_US},
    {"even clocks", 0, 0, 250000, 250000, 750000},
    {"even clocks, and the loop looked in between", 100000, 100000, 150000, 150000, 750000},
    {"a suspend that the loop has not seen", 0, 0, 250000, 50000, 750000},
    {"a slew that the loop has not seen", 0, 0, 200000, 250000, 750000},
    {"a suspend, then a slew", 250000, 50000, 90000, 100000, 650000},
    {"a slew, then a suspend", 90000, 100000, 250000, 50000, 650000},
    {"clocks that go back", 250000, 250000, -1000, -1000, 750000},
    {"the moment before the loss", 0, 0, LOST_US - 1, LOST_US - 1, LEASE_US - LOST_US + 1},
    {"the loss", 0, 0, LOST_US, LOST_US, 0},
    {"the loss, by one clock", 0, 0, 0, LOST_US, 0},
    {"long after", 0, 0, INT64_C(10) * LEASE_US, INT64_C(10) * LEASE_US, 0},
};

TEST(another_thread_finds_what_the_loop_would_find)
{
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct row *row = &rows[i];
        struct clocks clocks = {.system.ops = &ops, .boot_us = BOOT_US, .raw_us = RAW_US};
        struct expiry_clock shown = {0};
        struct expiry expiry = {0};
        struct clock clock = {.shown = &shown};
        uint64_t begun_us = clock_now_us(&clock, &clocks.system), left_us;

        assert_int_equal(expiry_left_us(&expiry, &shown, &clocks.system), 0);
        expiry_set(&expiry, begun_us + LOST_US, begun_us + LEASE_US);
        clocks.boot_us += row->seen_boot_us;
        clocks.raw_us += row->seen_raw_us;
        (void)clock_now_us(&clock, &clocks.system);
        clocks.boot_us += (uint64_t)row->boot_us;
        clocks.raw_us += (uint64_t)row->raw_us;
        left_us = expiry_left_us(&expiry, &shown, &clocks.system);
        if (left_us != row->left_us) fail_msg("%s: %llu us left", row->what, (unsigned long long)left_us);
        if (left_us > 0 && left_us > begun_us + LEASE_US - clock_now_us(&clock, &clocks.system))
            fail_msg("%s: more than the loop finds", row->what);
        expiry_set(&expiry, 0, 0);
        assert_int_equal(expiry_left_us(&expiry, &shown, &clocks.system), 0);
    }
}
