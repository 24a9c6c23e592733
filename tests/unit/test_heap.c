/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/heap.h"

#define ENTRIES 300
#define MOVES   20000

static struct alloc memory;
static struct heap heap;
static struct heap_entry entries[ENTRIES];

static int setup(void **state)
{
    (void)state;
    alloc_init(&memory, NULL);
    heap = (struct heap){0};
    for (size_t i = 0; i < ENTRIES; i++)
        entries[i] = (struct heap_entry){.at_us = UINT64_MAX, .index = HEAP_OUT};
    return heap_reserve(&heap, &memory, ENTRIES);
}

static int teardown(void **state)
{
    (void)state;
    heap_clear(&heap, &memory);
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

static uint64_t least_us(void)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < ENTRIES; i++) {
        if (entries[i].index != HEAP_OUT && entries[i].at_us < least) least = entries[i].at_us;
    }
    return least;
}

static void assert_sound(void)
{
    size_t in = 0;

    for (size_t i = 0; i < ENTRIES; i++) in += entries[i].index != HEAP_OUT;
    assert_int_equal(in, heap.used);
    for (size_t i = 0; i < heap.used; i++) {
        assert_int_equal(heap.entries[i]->index, i);
        if (i > 0) assert_true(heap.entries[(i - 1) / 2]->at_us <= heap.entries[i]->at_us);
    }
}

static void empty_has_no_first(void **state)
{
    (void)state;
    assert_null(heap_first(&heap));
    heap_set(&heap, &entries[0], UINT64_MAX);
    assert_null(heap_first(&heap));
    assert_int_equal(entries[0].index, HEAP_OUT);
}

static void comes_out_in_order(void **state)
{
    uint64_t last_us = 0;

    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) heap_set(&heap, &entries[i], random_number() % 1000);
    for (size_t i = 0; i < ENTRIES; i++) {
        struct heap_entry *first = heap_first(&heap);

        assert_non_null(first);
        assert_true(first->at_us >= last_us);
        last_us = first->at_us;
        heap_set(&heap, first, UINT64_MAX);
        assert_int_equal(first->index, HEAP_OUT);
    }
    assert_null(heap_first(&heap));
}

static void moves_both_ways_and_out(void **state)
{
    (void)state;
    for (int i = 0; i < MOVES; i++) {
        struct heap_entry *entry = &entries[random_number() % ENTRIES];

        heap_set(&heap, entry, random_number() % 4 == 0 ? UINT64_MAX : random_number() % 500);
        if (heap.used > 0) {
            assert_int_equal(heap_first(&heap)->at_us, least_us());
        } else {
            assert_null(heap_first(&heap));
        }
        if (i % 64 == 0) assert_sound();
    }
    assert_sound();
}

/* An entry in the middle whose place is taken by one that belongs above it: the other side of the tree is
 * lower. */
static void taking_out_of_the_middle_keeps_order(void **state)
{
    static const uint64_t times_us[] = {0, 100, 1, 101, 102, 2, 3, 103, 104, 105, 106, 4};

    (void)state;
    for (size_t i = 0; i < sizeof(times_us) / sizeof(times_us[0]); i++)
        heap_set(&heap, &entries[i], times_us[i]);
    assert_sound();
    heap_set(&heap, &entries[3], UINT64_MAX);
    assert_sound();
    assert_int_equal(heap_first(&heap)->at_us, 0);
}

static void *refuse_resize(void *arg, void *block, size_t size)
{
    (void)arg;
    (void)block;
    (void)size;
    return NULL;
}

static void *refuse(void *arg, size_t size)
{
    return refuse_resize(arg, NULL, size);
}

static void release(void *arg, void *block)
{
    (void)arg;
    free(block);
}

static void no_room_keeps_what_is_there(void **state)
{
    const struct quorlock_allocator hooks = {sizeof(hooks), refuse, refuse_resize, release, NULL};
    struct alloc none;

    (void)state;
    alloc_init(&none, &hooks);
    for (size_t i = 0; i < ENTRIES; i++) heap_set(&heap, &entries[i], i);
    assert_int_equal(heap_reserve(&heap, &none, heap.room), 0);
    assert_int_equal(heap_reserve(&heap, &none, heap.room + 1), -1);
    assert_sound();
    assert_int_equal(heap_first(&heap)->at_us, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(empty_has_no_first, setup, teardown),
        cmocka_unit_test_setup_teardown(comes_out_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(moves_both_ways_and_out, setup, teardown),
        cmocka_unit_test_setup_teardown(taking_out_of_the_middle_keeps_order, setup, teardown),
        cmocka_unit_test_setup_teardown(no_room_keeps_what_is_there, setup, teardown),
    };

    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
