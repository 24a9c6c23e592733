/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_versions.c - a server of any version answers a batch in the same words, and has the same keys after it
 *
 * Scripts use what a version has. The first kind is what the others are compared with. QUORLOCK_SIM_SEED draws other
 * batches.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "redis/wire/bytes.h"
#include "rng.h"
#include "scripts.h"

#define WALL_US  UINT64_C(1700000000000000)
#define KEYS_MAX 6
#define TEXT_MAX 4096
#define BATCHES  5000

static const struct {
    const char *version, *valkey, *denied;
} kinds[] = {{"7.0.15", NULL, NULL}, {"6.2.14", NULL, NULL}, {NULL, "8.1.4", NULL},
             {NULL, "9.1.2", NULL},  {"8.6.3", NULL, NULL},  {"8.6.3", NULL, "MSETEX"}};
enum { N_KINDS = LENGTH(kinds) };

struct fixture {
    struct model *model;
    struct session *session;
    struct bytes out;
    char heard[TEXT_MAX], changed[TEXT_MAX];
};

/* What stands at the keys, and what is asked for. */
struct batch {
    size_t n;
    bool fenced, full, one; /* one: one request for all keys, by the script of the first letter */
    const char *denied, *guard, *strict;
    char letters[KEYS_MAX + 1];
    unsigned locks[KEYS_MAX], counters[KEYS_MAX], tokens[KEYS_MAX], lease_ms, life_ms;
};

static void add_text(char *text, const char *more, size_t length)
{
    size_t used = strlen(text);

    assert_true(used + length + 2 < TEXT_MAX);
    snprintf(text + used, TEXT_MAX - used, "%.*s ", (int)length, more);
}

static void on_write(void *arg, const void *bytes, size_t size)
{
    add_text(arg, bytes, size);
}

static void on_hang_up(void *arg)
{
    fail_msg("the server closes the connection");
}

static void on_changed(void *arg, const char *key, size_t length)
{
    struct fixture *f = arg;

    add_text(f->changed, key, length);
}

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));

    bytes_init(&f->out, &memory, 1 << 20);
    f->model = model_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->session != NULL) model_close(f->session);
    bytes_clear(&f->out);
    model_free(f->model);
    test_free(f);
    return 0;
}

#define VERSIONS_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void start(struct fixture *f, size_t kind)
{
    const struct model_manners manners = {.version = kinds[kind].version, .valkey = kinds[kind].valkey};
    const struct model_events events = {.changed = on_changed, .arg = f};

    if (f->session != NULL) model_close(f->session);
    model_start(f->model, &manners, true, &events);
    f->session = model_open(f->model, on_write, on_hang_up, f->heard);
}

/* The operator's command; K is the lock of that number, C its counter. */
static void put(struct fixture *f, const char *line, size_t i)
{
    char copy[64], lock[32], counter[32], *rest = copy, *word;
    const char *words[8];
    size_t n = 0;

    if (line == NULL) return;
    snprintf(copy, sizeof(copy), "%s", line);
    snprintf(lock, sizeof(lock), "k%zu", i);
    snprintf(counter, sizeof(counter), "quorlock:fence:k%zu", i);
    while ((word = strsep(&rest, " ")) != NULL)
        words[n++] = strcmp(word, "K") == 0 ? lock : strcmp(word, "C") == 0 ? counter : word;
    (void)model_do(f->model, WALL_US, words, n);
}

static void put_all(struct fixture *f, const struct batch *batch)
{
    static const char *const locks[] = {NULL,          "SET K me PX 9",   "SET K you PX 50",
                                        "HSET K me 1", "SET K me PX 900", "SET K me"};
    static const char *const counters[] = {NULL,        "SET C 3 PX 50",   "SET C 7 PX 900",
                                           "SET C 5",   "SET C odd PX 50", "SET C 9007199254740991 PX 50",
                                           "HSET C a 1"};

    for (size_t i = 0; i < batch->n; i++) {
        put(f, locks[batch->locks[i]], i);
        put(f, counters[batch->counters[i]], i);
    }
}

/* Write a script and its keys. */
static void write_script(struct bytes *out, const struct batch *batch, const char *script, size_t n_args)
{
    size_t counters = batch->fenced ? batch->n : 0;
    bool guarded = *batch->guard != '\0';
    char key[64];

    bytes_command(out, 3 + batch->n + guarded + counters + n_args);
    bytes_text(out, "EVAL");
    bytes_text(out, script);
    bytes_number(out, batch->n + guarded + counters);
    for (size_t i = 0; i < batch->n + counters; i++) {
        snprintf(key, sizeof(key), "%sk%zu", i < batch->n ? "" : "quorlock:fence:", i % batch->n);
        if (i == batch->n && guarded) bytes_text(out, "quorlock:guard");
        bytes_text(out, key);
    }
    if (counters == 0 && guarded) bytes_text(out, "quorlock:guard");
    bytes_number(out, batch->n);
}

/* Write what every script is told behind the number of locks. */
static void write_record(struct bytes *out, const struct batch *batch, const char *owner)
{
    bytes_text(out, owner);
    bytes_number(out, batch->lease_ms);
    bytes_text(out, batch->guard);
    if (!batch->fenced)
        bytes_text(out, "");
    else if (owner == batch->letters)
        bytes_text(out, "each");
    else
        bytes_number(out, batch->tokens[0]);
    bytes_number(out, batch->life_ms);
}

static void write_batch(struct bytes *out, const struct batch *batch)
{
    size_t counters = batch->fenced ? batch->n : 0;

    write_script(out, batch, script_combined, 8 + batch->n + counters);
    write_record(out, batch, batch->letters);
    bytes_text(out, batch->strict);
    bytes_text(out, "30000");
    for (size_t i = 0; i < batch->n; i++) bytes_text(out, "me");
    for (size_t i = 0; i < counters; i++) bytes_number(out, batch->tokens[i]);
}

static void write_request(struct bytes *out, const struct batch *batch)
{
    char letter = batch->letters[0];
    bool acquires = letter == 'a', extends = letter == 'e', plain = letter == 'r';

    write_script(out, batch,
                 acquires  ? script_acquire
                 : extends ? script_extend
                           : script_release,
                 acquires           ? 8
                 : extends || plain ? 6
                                    : 7);
    write_record(out, batch, "me");
    if (acquires) bytes_text(out, batch->strict);
    if (acquires) bytes_text(out, "30000");
    if (letter == 's' || letter == 'd') bytes_text(out, letter == 's' ? "silent" : "deleted");
}

static struct model_value look(struct fixture *f, const char *prefix, size_t i, bool value_matters)
{
    char key[64], text[128];
    struct model_value value;

    snprintf(key, sizeof(key), "%sk%zu", prefix, i);
    if (!model_look(f->model, key, strlen(key), WALL_US, &value)) value = (struct model_value){.owner = ""};
    snprintf(text, sizeof(text), "%s=%u:%.*s:%llu", key, (unsigned)value.type,
             value_matters ? (int)value.owner_length : 0, value.owner, (unsigned long long)value.expires_ms);
    add_text(f->heard, text, strlen(text));
    return value;
}

/* The reply, and what stands at the keys then, in f->heard; and which keys were written in f->changed. */
static void run(struct fixture *f, const struct batch *batch, size_t kind)
{
    char denied[64];

    start(f, kind);
    put_all(f, batch);
    snprintf(denied, sizeof(denied), "%s %s", kinds[kind].denied != NULL ? kinds[kind].denied : "",
             batch->denied != NULL ? batch->denied : "");
    model_manners(f->model)->denied = denied;
    model_manners(f->model)->full = batch->full;
    f->heard[0] = f->changed[0] = '\0';
    (batch->one ? write_request : write_batch)(&f->out, batch);
    model_feed(f->session, f->out.data, f->out.used);
    bytes_cut(&f->out, 0);
    assert_true(model_step(f->session, WALL_US));
    model_manners(f->model)->denied = NULL;
    for (size_t i = 0; i < batch->n; i++) {
        struct model_value lock = look(f, "", i, true);

        /* How many numbers are used up by a lock that then cannot be set is left open. */
        (void)look(f, "quorlock:fence:", i, batch->letters[i] != 'a' || lock.type == MODEL_STRING);
    }
}

static void draw(struct rng *rng, struct batch *ret, bool one)
{
    /* Where MSETEX is allowed, it takes the place of some of these. */
    static const char *const denied[] = {"SET MSETEX", "PTTL MSETEX", "TIME",    "MGET",
                                         "GET MSETEX", "DEL",         "PEXPIRE", "TYPE"};
    unsigned usual = (unsigned)rng_below(rng, 2);

    *ret = (struct batch){.n = 2 + rng_below(rng, KEYS_MAX - 1),
                          .fenced = !rng_one_in(rng, 4),
                          .full = rng_one_in(rng, 6),
                          .one = one,
                          .denied = rng_one_in(rng, 6) ? denied[rng_below(rng, LENGTH(denied))] : NULL,
                          .guard = rng_one_in(rng, 16) ? "another" : "",
                          .strict = rng_one_in(rng, 8) ? "strict" : "",
                          .lease_ms = rng_one_in(rng, 16) ? 0 : 1 + (unsigned)rng_below(rng, 100),
                          .life_ms = 1 + (unsigned)rng_below(rng, 200)};
    for (size_t i = 0; i < ret->n; i++) {
        ret->letters[i] = rng_one_in(rng, 2) ? 'a' : "aersd"[rng_below(rng, 5)];
        /* Mostly free, with a good counter. */
        ret->locks[i] = rng_one_in(rng, 3 + 9 * usual) ? (unsigned)rng_below(rng, 6) : 0;
        ret->counters[i] = (unsigned)rng_below(rng, usual == 0 ? 7 : 4);
        ret->tokens[i] = (unsigned)rng_below(rng, 12);
    }
}

static void seed_it(struct rng *rng)
{
    const char *seed = getenv("QUORLOCK_SIM_SEED");

    rng_seed(rng, seed != NULL ? strtoull(seed, NULL, 10) : 1, 0);
}

static void compare(struct fixture *f, bool one)
{
    struct batch batch;
    struct rng rng;

    seed_it(&rng);
    for (unsigned at = 0; at < BATCHES; at++) {
        char first[TEXT_MAX];

        draw(&rng, &batch, one);
        run(f, &batch, 0);
        memcpy(first, f->heard, sizeof(first));
        for (size_t kind = 1; kind < N_KINDS; kind++) {
            /* 6.2 has no PEXPIRE ... GT, which needs no right to PTTL, and which is the first write of a script. */
            if (kind == 1 && (batch.full || batch.denied != NULL)) continue;
            run(f, &batch, kind);
            if (strcmp(first, f->heard) == 0) continue;
            fprintf(stderr, "batch %u, server %zu, %s, denied: %s%s\n%s\n%s\n", at, kind, batch.letters,
                    batch.denied != NULL ? batch.denied : "nothing", batch.full ? ", full" : "", first, f->heard);
            fail_msg("two versions differ");
        }
    }
}

VERSIONS_TEST(a_batch_is_answered_alike_by_all_versions)
{
    compare(f, false);
}

VERSIONS_TEST(a_list_is_answered_alike_by_all_versions)
{
    compare(f, true);
}

/* A batch replies with the text of its only reply. */
static void unwrap(char *heard)
{
    char *text = strstr(heard, "\r\n") + 2, *end = strstr(text, "\r\n k0=");

    assert_true(heard[0] == '$' && end != NULL);
    memmove(end, end + 2, strlen(end + 2) + 1);
    memmove(heard, text, strlen(text) + 1);
}

VERSIONS_TEST(a_request_alone_is_answered_as_in_a_batch)
{
    struct batch batch;
    struct rng rng;

    seed_it(&rng);
    for (unsigned at = 0; at < BATCHES; at++) {
        char first[TEXT_MAX];
        size_t kind = at % N_KINDS;

        draw(&rng, &batch, false);
        batch.n = 1;
        batch.letters[1] = '\0';
        batch.denied = NULL;
        batch.tokens[0]++; /* 0 means in a batch that this request has no counter */
        /* A batch writes the counter before it finds that the key is foreign. */
        if (batch.locks[0] == 3) batch.fenced = false;
        run(f, &batch, kind);
        unwrap(f->heard);
        memcpy(first, f->heard, sizeof(first));
        batch.one = true;
        run(f, &batch, kind);
        if (strcmp(first, f->heard) == 0) continue;
        fprintf(stderr, "batch %u, server %zu, %s%s\n%s\n%s\n", at, kind, batch.letters, batch.full ? ", full" : "",
                first, f->heard);
        fail_msg("alone it is answered otherwise");
    }
}

/* Where SET is denied, only another command can set them. */
VERSIONS_TEST(a_list_of_free_locks_is_set_by_one_command_where_the_server_can)
{
    const struct batch batch = {
        .n = 3, .one = true, .denied = "SET", .guard = "", .strict = "", .letters = "a", .lease_ms = 9, .life_ms = 99};

    for (size_t kind = 0; kind < N_KINDS; kind++) {
        run(f, &batch, kind);
        assert_string_equal(f->changed, kind == 3 || kind == 4 ? "k0 k1 k2 " : "");
    }
}

/* One command for all counters is seen by their order, and comes before one for all locks. */
VERSIONS_TEST(free_locks_are_set_together_where_the_server_can)
{
    const struct batch batch = {.n = 2,
                                .fenced = true,
                                .guard = "",
                                .strict = "",
                                .letters = "aa",
                                .tokens = {5, 6},
                                .lease_ms = 9,
                                .life_ms = 99};

    for (size_t kind = 0; kind < N_KINDS; kind++) {
        bool together = kind == 3 || kind == 4;

        run(f, &batch, kind);
        assert_string_equal(f->changed, together ? "quorlock:fence:k0 quorlock:fence:k1 k0 k1 "
                                                 : "quorlock:fence:k0 k0 quorlock:fence:k1 k1 ");
    }
}
