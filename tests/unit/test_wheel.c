/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/wheel.h"
#include "test.h"

#define ENTRIES  300
#define MOVES    200000
#define START_US UINT64_C(123456789)
#define HOUR_US  UINT64_C(3600000000)
#define REACH_US ((uint64_t)WHEEL_SLOT_US * WHEEL_SLOTS)

#define WHEEL_TEST(name) TEST_WITH(wheel_fixture, name, setup, NULL)

struct wheel_fixture {
    struct wheel wheel;
    struct wheel_entry entries[ENTRIES];
    uint64_t times_us[ENTRIES]; /* as they were set; UINT64_MAX: none */
    uint64_t now_us;
};

static int setup(void **state)
{
    static struct wheel_fixture f;

    *state = &f;
    f = (struct wheel_fixture){.now_us = START_US};
    for (size_t i = 0; i < ENTRIES; i++) f.times_us[i] = f.entries[i].at_us = UINT64_MAX;
    wheel_start(&f.wheel, f.now_us);
    return 0;
}

/* xorshift: the same moves in every run. */
static uint64_t random_number(void)
{
    static uint64_t number = 88172645463325252u;

    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number;
}

static void set(struct wheel_fixture *f, size_t i, uint64_t at_us)
{
    wheel_set(&f->wheel, &f->entries[i], at_us);
    f->times_us[i] = at_us;
}

static void take_out(struct wheel_fixture *f, size_t i)
{
    wheel_remove(&f->entries[i]);
    f->entries[i].at_us = f->times_us[i] = UINT64_MAX;
}

static uint64_t least_us(const struct wheel_fixture *f)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < ENTRIES; i++) {
        if (f->times_us[i] < least) least = f->times_us[i];
    }
    return least;
}

/* Takes one; ENTRIES: there is none. It was due, and is not in the wheel any more. */
static size_t take(struct wheel_fixture *f)
{
    struct wheel_entry *entry = wheel_take(&f->wheel, f->now_us);
    size_t i = entry == NULL ? ENTRIES : (size_t)(entry - f->entries);

    if (entry == NULL) {
        assert_true(least_us(f) > f->now_us);
        assert_true(wheel_next_us(&f->wheel) <= least_us(f));
        assert_true(wheel_next_us(&f->wheel) > f->now_us);
        return i;
    }
    assert_true(f->times_us[i] <= f->now_us);
    assert_true(entry->at_us == UINT64_MAX);
    f->times_us[i] = UINT64_MAX;
    return i;
}

/* As an alarm would: how often it is looked until one comes, which is at its time. */
static size_t looks_until(struct wheel_fixture *f, size_t i)
{
    uint64_t at_us = f->times_us[i];
    size_t looks = 1;

    for (;; looks++) {
        size_t taken;

        f->now_us = wheel_next_us(&f->wheel);
        assert_true(f->now_us <= at_us);
        taken = take(f);
        if (taken == ENTRIES) continue;
        assert_int_equal(taken, i);
        assert_true(f->now_us == at_us);
        return looks;
    }
}

WHEEL_TEST(an_empty_wheel_has_no_deadline)
{
    assert_true(wheel_next_us(&f->wheel) == UINT64_MAX);
    assert_int_equal(take(f), ENTRIES);
    f->now_us += HOUR_US;
    assert_int_equal(take(f), ENTRIES);
    assert_true(wheel_next_us(&f->wheel) == UINT64_MAX);
}

WHEEL_TEST(the_beginning_of_a_slot_is_a_deadline_that_needs_one_look)
{
    set(f, 0, (START_US / WHEEL_SLOT_US + 100) * WHEEL_SLOT_US);
    assert_int_equal(looks_until(f, 0), 1);
}

WHEEL_TEST(another_time_within_a_slot_needs_two)
{
    set(f, 0, (START_US / WHEEL_SLOT_US + 100) * WHEEL_SLOT_US + 5000);
    assert_int_equal(looks_until(f, 0), 2);
}

WHEEL_TEST(a_time_in_the_present_slot_needs_one)
{
    set(f, 0, START_US + 1);
    assert_int_equal(looks_until(f, 0), 1);
}

WHEEL_TEST(what_is_an_hour_away_is_looked_at_each_time_the_wheel_has_turned)
{
    set(f, 0, START_US + HOUR_US);
    assert_in_range(looks_until(f, 0), HOUR_US / REACH_US, HOUR_US / REACH_US + 3);
}

WHEEL_TEST(what_passed_while_nobody_looked_is_due_once)
{
    for (size_t i = 0; i < ENTRIES; i++) set(f, i, START_US + i * HOUR_US / ENTRIES);
    f->now_us += 2 * HOUR_US;
    for (size_t i = 0; i < ENTRIES; i++) assert_int_not_equal(take(f), ENTRIES);
    assert_int_equal(take(f), ENTRIES);
    assert_true(wheel_next_us(&f->wheel) == UINT64_MAX);
}

WHEEL_TEST(a_deadline_set_after_a_long_silence_is_kept)
{
    f->now_us += 10 * HOUR_US;
    set(f, 0, f->now_us + 1000);
    set(f, 1, f->now_us + HOUR_US);
    while (take(f) != ENTRIES) fail();
    f->now_us += 1000;
    assert_int_equal(take(f), 0);
    assert_int_equal(take(f), ENTRIES);
    looks_until(f, 1);
}

WHEEL_TEST(one_that_has_passed_already_is_due_at_once_also_while_others_are_taken)
{
    set(f, 0, START_US);
    set(f, 1, 0);
    assert_true(wheel_next_us(&f->wheel) <= START_US);
    (void)take(f);
    set(f, 2, START_US - 1);
    assert_int_not_equal(take(f), ENTRIES);
    assert_int_not_equal(take(f), ENTRIES);
    assert_int_equal(take(f), ENTRIES);
}

WHEEL_TEST(those_that_wait_their_turn_may_be_removed_or_moved_meanwhile)
{
    for (size_t i = 0; i < 6; i++) set(f, i, START_US - i);
    assert_int_equal(wheel_take(&f->wheel, START_US) - f->entries, 5);
    f->times_us[5] = UINT64_MAX;
    take_out(f, 4);
    set(f, 3, START_US + 1);
    set(f, 2, UINT64_MAX);
    take_out(f, 0);
    assert_int_equal(take(f), 1);
    assert_int_equal(take(f), ENTRIES);
    assert_true(least_us(f) == START_US + 1);
    looks_until(f, 3);
    assert_int_equal(take(f), ENTRIES);
}

/* Near, in the present slot, within the wheel, far beyond it. */
static uint64_t draw_time(const struct wheel_fixture *f)
{
    static const uint64_t spans_us[] = {2, WHEEL_SLOT_US, 100ull * WHEEL_SLOT_US, 2 * REACH_US, 3 * HOUR_US};
    uint64_t at_us = f->now_us + random_number() % spans_us[random_number() % LENGTH(spans_us)];

    return random_number() % 3 == 0 ? at_us - at_us % WHEEL_SLOT_US : at_us;
}

static void move_one(struct wheel_fixture *f)
{
    size_t i = random_number() % ENTRIES;

    switch (random_number() % 8) {
    case 0: take_out(f, i); break;
    case 1: set(f, i, UINT64_MAX); break;
    default: set(f, i, draw_time(f)); break;
    }
    assert_true(wheel_next_us(&f->wheel) <= least_us(f));
}

WHEEL_TEST(among_many_moves_none_is_early_late_or_forgotten)
{
    for (int moves = 0; moves < MOVES; moves++) {
        uint64_t until_us;

        move_one(f);
        if (random_number() % 4 != 0) continue;
        until_us = draw_time(f);
        if (random_number() % 2 == 0 && until_us > f->now_us) f->now_us = until_us;
        while (take(f) != ENTRIES) {
            if (random_number() % 4 == 0) move_one(f);
        }
    }
}
