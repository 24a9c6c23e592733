/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"
#include "test.h"

#define ENTRIES 300
#define MOVES   20000

#define HEAP_TEST(name) TEST_WITH(heap_fixture, name, setup, teardown)

struct heap_fixture {
    struct heap heap;
    struct heap_entry entries[ENTRIES];
    uint64_t times_us[ENTRIES]; /* as they were set */
};

static int setup(void **state)
{
    static struct heap_fixture f;

    *state = &f;
    f.heap = (struct heap){0};
    for (size_t i = 0; i < ENTRIES; i++) {
        f.entries[i] = (struct heap_entry){.index = HEAP_OUT};
    }
    return heap_reserve(&f.heap, &memory, ENTRIES);
}

static int teardown(void **state)
{
    struct heap_fixture *f = *state;

    heap_clear(&f->heap, &memory);
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

static void set(struct heap_fixture *f, size_t i, uint64_t at_us)
{
    heap_set(&f->heap, &f->entries[i], at_us);
    f->times_us[i] = at_us;
}

static uint64_t least_us(const struct heap_fixture *f)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < ENTRIES; i++) {
        if (f->entries[i].index != HEAP_OUT && f->times_us[i] < least) least = f->times_us[i];
    }
    return least;
}

static void assert_sound(const struct heap_fixture *f)
{
    size_t in = 0;

    for (size_t i = 0; i < ENTRIES; i++) in += f->entries[i].index != HEAP_OUT;
    assert_int_equal(in, f->heap.used);
    for (size_t i = 0; i < f->heap.used; i++) {
        assert_int_equal(f->heap.slots[i].entry->index, i);
        assert_int_equal(f->times_us[f->heap.slots[i].entry - f->entries], f->heap.slots[i].at_us);
        assert_int_equal(heap_time_us(&f->heap, f->heap.slots[i].entry), f->heap.slots[i].at_us);
        if (i > 0) assert_true(f->heap.slots[(i - 1) / HEAP_CHILDREN].at_us <= f->heap.slots[i].at_us);
    }
}

HEAP_TEST(an_empty_heap_has_no_first)
{
    assert_null(heap_first(&f->heap));
    assert_true(heap_first_us(&f->heap) == UINT64_MAX);
    set(f, 0, UINT64_MAX);
    assert_null(heap_first(&f->heap));
    assert_int_equal(f->entries[0].index, HEAP_OUT);
}

HEAP_TEST(entries_come_out_in_order)
{
    uint64_t last_us = 0;

    for (size_t i = 0; i < ENTRIES; i++) set(f, i, random_number() % 1000);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct heap_entry *first = heap_first(&f->heap);

        assert_non_null(first);
        assert_true(heap_first_us(&f->heap) >= last_us);
        last_us = heap_first_us(&f->heap);
        heap_set(&f->heap, first, UINT64_MAX);
        assert_int_equal(first->index, HEAP_OUT);
    }
    assert_null(heap_first(&f->heap));
}

HEAP_TEST(entries_move_both_ways_and_out)
{
    for (int i = 0; i < MOVES; i++) {
        size_t moved = random_number() % ENTRIES;

        set(f, moved, random_number() % 4 == 0 ? UINT64_MAX : random_number() % 500);
        if (f->heap.used > 0) {
            assert_int_equal(heap_first_us(&f->heap), least_us(f));
        } else {
            assert_null(heap_first(&f->heap));
        }
        if (i % 64 == 0) assert_sound(f);
    }
    assert_sound(f);
}

/* An entry in the middle whose place is taken by one that belongs above it: the other side of the tree is
 * lower. */
HEAP_TEST(removing_from_the_middle_keeps_the_order)
{
    static const uint64_t times_us[] = {0, 100, 1, 101, 102, 2, 3, 103, 104, 105, 106, 4};

    for (size_t i = 0; i < LENGTH(times_us); i++) set(f, i, times_us[i]);
    assert_sound(f);
    set(f, 3, UINT64_MAX);
    assert_sound(f);
    assert_int_equal(heap_first_us(&f->heap), 0);
}

HEAP_TEST(without_memory_the_heap_stays_as_it_is)
{
    struct counted counted = {0};
    const struct quorlock_allocator hooks = counted_hooks(&counted);
    struct alloc none;

    alloc_init(&none, &hooks);
    for (size_t i = 0; i < ENTRIES; i++) set(f, i, i);
    assert_int_equal(heap_reserve(&f->heap, &none, f->heap.room), 0);
    assert_int_equal(heap_reserve(&f->heap, &none, f->heap.room + 1), -1);
    assert_sound(f);
    assert_int_equal(heap_first_us(&f->heap), 0);
}
