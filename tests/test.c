/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct CMUnitTest tests[1024];
static size_t n_tests;

struct alloc memory;

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    if (n_tests == LENGTH(tests)) abort();
    tests[n_tests++] = (struct CMUnitTest){name, run, setup, teardown, NULL};
}

static bool fails(struct counted *counted)
{
    if (counted->for_good && counted->until_failure == 0) return true;
    return counted->until_failure-- == 0;
}

static void *counted_allocate(void *arg, size_t size)
{
    struct counted *counted = arg;

    if (fails(counted)) return NULL;
    counted->out++;
    return malloc(size);
}

static void *counted_reallocate(void *arg, void *block, size_t size)
{
    struct counted *counted = arg;

    if (fails(counted)) return NULL;
    if (block == NULL) counted->out++;
    return realloc(block, size);
}

static void counted_release(void *arg, void *block)
{
    struct counted *counted = arg;

    counted->out--;
    free(block);
}

struct alloc_hooks counted_hooks(struct counted *counted)
{
    return (struct alloc_hooks){counted_allocate, counted_reallocate, counted_release, counted};
}

void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("\"%s\" without \"%s\"", text, part);
}

unsigned times_in(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) n++;
    return n;
}

int main(void)
{
    alloc_init(&memory, NULL);
    return cmocka_run_group_tests_name(program_invocation_short_name, tests, NULL, NULL);
}
