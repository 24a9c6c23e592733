/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the log hook gets where one turn of the loop has more lines than it passes on.
 */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/system_os.h"
#include "runtime/runtime.h"
#include "test.h"

#define FLOOD 3000

struct log_fixture {
    struct event_base *base;
    struct runtime runtime;
    unsigned lines[QUORLOCK_LOG_ERROR + 1]; /* of each level */
    char last[128];                         /* of them all */
};

static void hear(int level, const char *text, void *arg)
{
    struct log_fixture *f = arg;

    f->lines[level]++;
    snprintf(f->last, sizeof(f->last), "%s", text);
}

static int setup(void **state)
{
    static struct log_fixture fixture;
    struct log_fixture *f = &fixture;

    memset(f, 0, sizeof(*f));
    f->base = event_base_new();
    assert_non_null(f->base);
    alloc_init(&f->runtime.alloc, NULL);
    f->runtime.system = system_libevent(f->base, &f->runtime.alloc);
    f->runtime.options.log = hear;
    f->runtime.options.log_arg = f;
    assert_int_equal(runtime_start(&f->runtime), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct log_fixture *f = *state;

    runtime_stop(&f->runtime);
    event_base_free(f->base);
    return 0;
}

#define LOG_TEST(name) TEST_WITH(log_fixture, name, setup, teardown)

static void flood(struct log_fixture *f, int level)
{
    for (int i = 0; i < FLOOD; i++) runtime_log(&f->runtime, level, "line %d", i);
}

static void pass_on(struct log_fixture *f)
{
    while (f->runtime.log_lines.count > 0) assert_int_equal(event_base_loop(f->base, EVLOOP_ONCE), 0);
}

LOG_TEST(a_level_is_not_crowded_out_by_those_below_it)
{
    for (int level = QUORLOCK_LOG_DEBUG; level < QUORLOCK_LOG_ERROR; level++) flood(f, level);
    runtime_log(&f->runtime, QUORLOCK_LOG_ERROR, "the loss");
    assert_int_equal(f->lines[QUORLOCK_LOG_ERROR], 0);
    pass_on(f);
    assert_int_equal(f->lines[QUORLOCK_LOG_ERROR], 1);
    assert_in_range(f->lines[QUORLOCK_LOG_WARN], 200, FLOOD - 1);
    assert_in_range(f->lines[QUORLOCK_LOG_INFO], 200, FLOOD - 1);
    assert_in_range(f->lines[QUORLOCK_LOG_DEBUG], 200, FLOOD - 1);
}

LOG_TEST(what_was_dropped_is_counted)
{
    unsigned passed;
    char text[128];

    flood(f, QUORLOCK_LOG_ERROR);
    pass_on(f);
    passed = f->lines[QUORLOCK_LOG_ERROR];
    assert_in_range(passed, 1000, FLOOD - 1);
    snprintf(text, sizeof(text), "%u lines of the log were dropped", FLOOD - passed);
    assert_non_null(strstr(f->last, text));
    assert_int_equal(f->lines[QUORLOCK_LOG_WARN], 1);
}

LOG_TEST(few_lines_come_whole_and_in_order)
{
    for (int i = 0; i < 300; i++) runtime_log(&f->runtime, i % (QUORLOCK_LOG_ERROR + 1), "line %d", i);
    pass_on(f);
    for (int level = QUORLOCK_LOG_DEBUG; level <= QUORLOCK_LOG_ERROR; level++) assert_int_equal(f->lines[level], 75);
    assert_string_equal(f->last, "line 299");
}
