/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test.h - tests that register themselves; test.c runs those of one program in the order of their definition
 *
 *     TEST(sums_saturate) { ... }
 *
 * is a whole test. Those of fixture.h, node_fixture.h and notice_fixture.h get a fresh fixture `f`. Its
 * teardown runs behind the test, also where an assertion failed, so that nothing leaks.
 */
#ifndef QUORLOCK_UNIT_TEST_H
#define QUORLOCK_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* For cmocka 2 the name of cmocka 1 is deprecated. */
#ifdef assert_int_in_range
#undef assert_in_range
#define assert_in_range assert_int_in_range
#endif

#include "base/alloc.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST_ADD(name, setup, teardown)                                                                                \
    __attribute__((constructor)) static void name##_add(void)                                                          \
    {                                                                                                                  \
        test_add(#name, name##_run, setup, teardown);                                                                  \
    }

#define TEST(name)                                                                                                     \
    static void name(void);                                                                                            \
    static void name##_run(void **state)                                                                               \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        name();                                                                                                        \
    }                                                                                                                  \
    TEST_ADD(name, NULL, NULL)                                                                                         \
    static void name(void)

/* TEST_WITH - setup makes a struct fixture_type, the test gets it as `f`, and teardown frees it. */
#define TEST_WITH(fixture_type, name, setup, teardown)                                                                 \
    static void name(struct fixture_type *f);                                                                          \
    static void name##_run(void **state)                                                                               \
    {                                                                                                                  \
        name(*state);                                                                                                  \
    }                                                                                                                  \
    TEST_ADD(name, setup, teardown)                                                                                    \
    static void name(struct fixture_type *f)

/* Memory hooks that fail the allocation whose turn it is, or all from then on, and count what is out. */
struct counted {
    long until_failure, out;
    bool for_good;
};

/* counted_hooks - nothing fails where until_failure is negative. */
struct alloc_hooks counted_hooks(struct counted *);

/* Plain malloc. */
extern struct alloc memory;

void assert_contains(const char *text, const char *part);
/* times_in - how often the part is in the text. */
unsigned times_in(const char *text, const char *part);

#endif
