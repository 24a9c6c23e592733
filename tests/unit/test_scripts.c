/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_scripts.c - each entry of the dialects' tables of scripts, by the name of its file
 */
#include <string.h>

#include "redis/dialect/dialect.h"
#include "test.h"

static const char *const names[SCRIPTS] = {
    [SCRIPT_EXTEND] = "extend",
    [SCRIPT_RELEASE] = "release",
    [SCRIPT_PEEK] = "peek",
    [SCRIPT_BREAK] = "break",
    [SCRIPT_ACQUIRE] = "acquire",
    [SCRIPT_RAISE] = "raise",
    [SCRIPT_COMBINED] = "combined",
    [SCRIPT_SHARED_EXTEND] = "shared_extend",
    [SCRIPT_SHARED_RELEASE] = "shared_release",
    [SCRIPT_SHARED_ACQUIRE] = "shared_acquire",
    [SCRIPT_SHARED_RAISE] = "shared_raise",
    [SCRIPT_INTEND] = "intend",
    [SCRIPT_PERMIT] = "permit",
    [SCRIPT_FAIR_ACQUIRE] = "fair_acquire",
    [SCRIPT_FAIR_LEAVE] = "fair_leave",
};

/* An entry in the place of another one would make inspect break a lock. */
static void assert_script(const struct dialect *dialect, enum script script, const char *front)
{
    const struct dialect_script *entry = &dialect->scripts[script];
    size_t length = strlen(front);

    assert_non_null(entry->name);
    assert_int_equal(strncmp(entry->name, front, length), 0);
    assert_string_equal(entry->name + length, names[script]);
    assert_int_equal(entry->length, strlen(entry->text));
    assert_int_equal(strlen(entry->sha), DIALECT_SHA_LENGTH);
}

TEST(each_script_of_the_plain_dialect_stands_in_its_place)
{
    for (size_t i = 0; i < SCRIPTS; i++) assert_script(&dialect_plain, (enum script)i, "");
}

TEST(redisson_has_scripts_of_its_own_and_none_of_batches_sharing_and_permits)
{
    static const enum script own[] = {SCRIPT_EXTEND, SCRIPT_RELEASE, SCRIPT_PEEK,
                                      SCRIPT_BREAK,  SCRIPT_ACQUIRE, SCRIPT_RAISE};
    size_t n = 0;

    for (size_t i = 0; i < LENGTH(own); i++) assert_script(&dialect_redisson, own[i], "redisson_");
    for (size_t i = 0; i < SCRIPTS; i++) n += dialect_redisson.scripts[i].name != NULL;
    assert_int_equal(n, LENGTH(own));
}
