/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "base/system_os.h"
#include "test.h"

#define TOKEN 28u
#define PAGE  4096u

struct random_fixture {
    struct random random;
    struct system system;
    struct system_ops ops;
    unsigned drawn; /* calls to the system */
    bool none;      /* the system has no random bytes */
    _Alignas(max_align_t) unsigned char memory[PAGE];
};

static struct random_fixture fixture;

static int count(struct system *system, void *ret, size_t size, bool wait)
{
    struct system real = system_libevent(NULL, NULL);

    fixture.drawn++;
    return fixture.none ? -1 : real.ops->random(&real, ret, size, wait);
}

static void *memory_of_the_test(struct system *system, size_t size)
{
    assert_true(size <= sizeof(fixture.memory));
    return fixture.memory;
}

static void *no_memory(struct system *system, size_t size)
{
    return NULL;
}

static void no_free(struct system *system, void *page, size_t size)
{
    assert_ptr_equal(page, fixture.memory);
}

static struct random_fixture *begin(void)
{
    memset(&fixture, 0, sizeof(fixture));
    fixture.system = system_libevent(NULL, NULL);
    fixture.ops = *fixture.system.ops;
    fixture.ops.random = count;
    fixture.system.ops = &fixture.ops;
    return &fixture;
}

static void draw(struct random_fixture *f, unsigned char ret[TOKEN])
{
    memset(ret, 0, TOKEN);
    assert_int_equal(random_draw(&f->random, &f->system, ret, TOKEN), 0);
}

TEST(many_draws_cost_the_system_one)
{
    static unsigned char tokens[300][TOKEN];
    struct random_fixture *f = begin();

    for (size_t i = 0; i < LENGTH(tokens); i++) {
        draw(f, tokens[i]);
        for (size_t k = 0; k < i; k++) assert_memory_not_equal(tokens[i], tokens[k], TOKEN);
    }
    assert_true(f->drawn <= 1 + LENGTH(tokens) * TOKEN / (PAGE - TOKEN - sizeof(size_t)));
    random_clear(&f->random, &f->system);
}

/* The child's own, through a pipe. */
static void draw_in_a_child(struct random_fixture *f, unsigned char ret[TOKEN])
{
    int ends[2], status = 1;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool fine = random_draw(&f->random, &f->system, ret, TOKEN) == 0 && f->drawn == 2;

        _exit(fine && write(ends[1], ret, TOKEN) == TOKEN ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], ret, TOKEN), TOKEN);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_fork_repeats_nothing)
{
    struct random_fixture *f = begin();
    unsigned char before[TOKEN], child[TOKEN], after[TOKEN];

    draw(f, before);
    draw_in_a_child(f, child);
    draw(f, after);
    assert_int_equal(f->drawn, 1);
    assert_memory_not_equal(child, after, TOKEN);
    assert_memory_not_equal(child, before, TOKEN);
    random_clear(&f->random, &f->system);
}

TEST(what_was_handed_out_is_not_kept)
{
    struct random_fixture *f = begin();
    unsigned char token[TOKEN];

    f->ops.wiped_new = memory_of_the_test;
    f->ops.wiped_free = no_free;
    for (int i = 0; i < 200; i++) {
        draw(f, token);
        assert_null(memmem(f->memory, sizeof(f->memory), token, TOKEN));
    }
    random_clear(&f->random, &f->system);
    for (size_t i = 0; i < sizeof(f->memory); i++) assert_int_equal(f->memory[i], 0);
}

TEST(without_such_memory_each_draw_is_the_systems)
{
    struct random_fixture *f = begin();
    unsigned char token[TOKEN];

    f->ops.wiped_new = no_memory;
    for (unsigned i = 1; i <= 5; i++) {
        draw(f, token);
        assert_int_equal(f->drawn, i);
    }
    random_clear(&f->random, &f->system);
}

TEST(no_random_bytes_is_an_error_and_may_pass)
{
    struct random_fixture *f = begin();
    unsigned char token[TOKEN];

    f->none = true;
    assert_int_equal(random_draw(&f->random, &f->system, token, TOKEN), -1);
    f->none = false;
    draw(f, token);
    random_clear(&f->random, &f->system);
}
