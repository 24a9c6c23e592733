/* SPDX-License-Identifier: BSD-3-Clause */
/* test_queue.c - what is set for earlier, or first, happens first */
#include "queue.h"
#include "rng.h"
#include "test.h"

#define MOMENTS 200

struct fixture {
    struct queue queue;
    struct moment moments[MOMENTS];
    uint64_t set[MOMENTS]; /* counts the calls of queue_set, for each moment */
    uint64_t n_set, n_happened, last_us, last_set;
};

static struct fixture queue;

static void on_moment(void *arg)
{
    size_t i = (size_t)((struct moment *)arg - queue.moments);

    assert_int_equal(queue.moments[i].at_us, queue.queue.now_us);
    assert_true(queue.queue.now_us > queue.last_us || queue.set[i] > queue.last_set);
    queue.last_us = queue.queue.now_us;
    queue.last_set = queue.set[i];
    queue.n_happened++;
}

static int setup(void **state)
{
    queue = (struct fixture){.last_set = 0};
    for (size_t i = 0; i < MOMENTS; i++)
        queue.moments[i] = (struct moment){.happen = on_moment, .arg = &queue.moments[i]};
    *state = &queue;
    return 0;
}

static int teardown(void **state)
{
    queue_free(&queue.queue);
    return 0;
}

static void set(struct fixture *f, size_t i, uint64_t at_us)
{
    f->set[i] = ++f->n_set;
    queue_set(&f->queue, &f->moments[i], at_us);
}

TEST_WITH(fixture, moments_happen_in_their_order, setup, teardown)
{
    struct rng rng;
    uint64_t n_expected = 0;

    rng_seed(&rng, 1, 1);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < MOMENTS; i++) set(f, i, f->queue.now_us + rng_below(&rng, 100));
        for (size_t i = 0; i < MOMENTS; i += 3) set(f, i, f->queue.now_us + rng_below(&rng, 100));
        for (size_t i = 0; i < MOMENTS; i += 5) set(f, i, NEVER);
        n_expected += MOMENTS - MOMENTS / 5;
        while (queue_next(&f->queue, f->queue.now_us + 1000)) continue;
        assert_int_equal(f->n_happened, n_expected);
        assert_int_equal(f->queue.used, 0);
    }
}

TEST_WITH(fixture, time_does_not_run_back, setup, teardown)
{
    assert_false(queue_next(&f->queue, 50));
    assert_int_equal(f->queue.now_us, 50);
    set(f, 0, 10);
    set(f, 1, 70);
    assert_true(queue_next(&f->queue, NEVER));
    assert_int_equal(f->queue.now_us, 50);
    assert_false(queue_next(&f->queue, 69));
    assert_int_equal(f->queue.now_us, 69);
    assert_true(queue_next(&f->queue, 70));
    assert_false(queue_next(&f->queue, NEVER));
    assert_int_equal(f->queue.now_us, 70);
    set(f, 0, 80);
    queue_clear(&f->queue);
    assert_int_equal(f->queue.now_us, 0);
    assert_false(queue_next(&f->queue, 100));
    assert_int_equal(f->n_happened, 2);
}
