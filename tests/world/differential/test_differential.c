/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_differential.c - the model answers as a real server does: random commands to both, replies compared
 *
 * The server is REDIS_SERVER, or redis-server. QUORLOCK_SIM_SEED draws other commands; a difference is shown with
 * its seed and step.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw.h"
#include "pair.h"

#define OUT_MAX 1048576

struct fixture {
    struct pair pair;
    struct draw draw;
    struct bytes out;
    uint64_t seed;
};

static uint64_t first_seed(void)
{
    const char *text = getenv("QUORLOCK_SIM_SEED");

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : 1;
}

static bool ask(struct fixture *f, size_t conn)
{
    bool same = pair_ask(&f->pair, conn, f->out.data, f->out.used);

    bytes_cut(&f->out, 0);
    return same;
}

static void ask_all(struct fixture *f, size_t conn, const char *const *words)
{
    bytes_texts(&f->out, words);
    if (!ask(f, conn)) fail_msg("%s", f->pair.difference);
}
#define ASK(f, conn, ...) ask_all(f, conn, (const char *const[]){__VA_ARGS__, NULL})

static void load_scripts(struct fixture *f)
{
    const struct dialect *const dialects[] = {&dialect_plain, &dialect_redisson};

    for (size_t d = 0; d < 2; d++) {
        for (size_t i = 0; i < dialects[d]->n_scripts; i++) {
            const char *const words[] = {"SCRIPT", "LOAD", dialects[d]->scripts[i].text};
            const char *sha = model_do(f->pair.model, f->pair.wall_us, words, 3);

            snprintf(f->draw.shas[d].sha[i], sizeof(f->draw.shas[d].sha[i]), "%s", sha);
            ASK(f, 0, "SCRIPT", "LOAD", dialects[d]->scripts[i].text);
        }
    }
}

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));

    *state = f;
    f->seed = first_seed();
    bytes_init(&f->out, &memory, OUT_MAX);
    pair_open(&f->pair);
    f->draw.model = f->pair.model;
    load_scripts(f);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pair_close(&f->pair);
    bytes_clear(&f->out);
    test_free(f);
    return 0;
}

static void learn(struct fixture *f)
{
    pair_learn_ids(&f->pair);
    pair_info(&f->pair, false, "server", "run_id", f->draw.ids[0], sizeof(f->draw.ids[0]));
    pair_info(&f->pair, false, "replication", "master_replid", f->draw.ids[1], sizeof(f->draw.ids[1]));
}

static void advance(struct fixture *f)
{
    struct rng *rng = &f->draw.rng;

    if (rng_one_in(rng, 2)) pair_advance(&f->pair, rng_below(rng, 3000));
    if (rng_one_in(rng, 20)) pair_advance(&f->pair, rng_below(rng, 100000));
    f->draw.wall_ms = f->pair.wall_us / 1000;
}

/* So many commands; returns after how many a difference was seen, 0: none. */
static unsigned run(struct fixture *f, uint64_t seed, unsigned n)
{
    rng_seed(&f->draw.rng, seed, 0);
    learn(f);
    for (unsigned i = 1; i <= n; i++) {
        advance(f);
        draw_command(&f->draw, &f->out);
        if (!ask(f, rng_below(&f->draw.rng, PAIR_CONNS))) return i;
    }
    return 0;
}

static void agree(struct fixture *f, uint64_t seed, unsigned n)
{
    unsigned at = run(f, seed, n);

    if (at == 0) return;
    /* A message of cmocka's is cut. */
    fprintf(stderr, "seed %llu, step %u, %s\n", (unsigned long long)seed, at, f->pair.difference);
    fail_msg("the model and the server differ");
}

#define PAIR_TEST(name) TEST_WITH(fixture, name, setup, teardown)

PAIR_TEST(random_commands_are_answered_alike)
{
    for (uint64_t i = 0; i < 20; i++) agree(f, f->seed + i, 2000);
}
