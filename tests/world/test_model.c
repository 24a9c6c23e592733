/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model.c - edges of the model that real servers cannot be asked about in time; all else: differential */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "model.h"
#include "redis/dialect/dialect.h"
#include "scripts.h"

#define START_US UINT64_C(1700000000000000)
#define WORDS    16

struct peer {
    struct session *session;
    char heard[65536];
    size_t n_heard;
    bool hung_up;
};

struct fixture {
    struct model *model;
    struct model_manners manners;
    struct model_events events;
    struct peer peers[4];
    uint64_t wall_us;
    char changed[256], executed[512];
};

static void on_write(void *arg, const void *bytes, size_t size)
{
    struct peer *peer = arg;

    assert_true(peer->n_heard + size < sizeof(peer->heard));
    memcpy(peer->heard + peer->n_heard, bytes, size);
    peer->n_heard += size;
    peer->heard[peer->n_heard] = '\0';
}

static void on_hang_up(void *arg)
{
    struct peer *peer = arg;

    peer->hung_up = true;
    model_close(peer->session);
    peer->session = NULL;
}

static void on_changed(void *arg, const char *key, size_t length)
{
    struct fixture *f = arg;
    size_t used = strlen(f->changed);

    snprintf(f->changed + used, sizeof(f->changed) - used, "%s%.*s", used != 0 ? " " : "", (int)length, key);
}

static void on_executed(void *arg, struct session *session, const char *command)
{
    struct fixture *f = arg;

    snprintf(f->executed, sizeof(f->executed), "%s", command);
}

static void restart(struct fixture *f, bool empty)
{
    for (size_t i = 0; i < LENGTH(f->peers); i++) {
        if (f->peers[i].session != NULL) model_close(f->peers[i].session);
        f->peers[i].session = NULL;
    }
    f->manners.run++;
    model_start(f->model, &f->manners, empty, &f->events);
    for (size_t i = 0; i < LENGTH(f->peers); i++) {
        f->peers[i].hung_up = false;
        f->peers[i].session = model_open(f->model, on_write, on_hang_up, &f->peers[i]);
    }
}

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));

    f->model = model_new();
    f->wall_us = START_US;
    f->events = (struct model_events){.changed = on_changed, .executed = on_executed, .arg = f};
    restart(f, true);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    model_free(f->model);
    test_free(f);
    return 0;
}

#define MODEL_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void feed(struct fixture *f, size_t who, const char *const *words)
{
    char text[64];
    size_t n = 0;

    while (words[n] != NULL) n++;
    model_feed(f->peers[who].session, text, (size_t)snprintf(text, sizeof(text), "*%zu\r\n", n));
    for (size_t i = 0; i < n; i++) {
        model_feed(f->peers[who].session, text, (size_t)snprintf(text, sizeof(text), "$%zu\r\n", strlen(words[i])));
        model_feed(f->peers[who].session, words[i], strlen(words[i]));
        model_feed(f->peers[who].session, "\r\n", 2);
    }
}

static const char *ask_words(struct fixture *f, size_t who, const char *const *words)
{
    struct peer *peer = &f->peers[who];

    peer->n_heard = 0;
    peer->heard[0] = '\0';
    feed(f, who, words);
    assert_true(model_step(peer->session, f->wall_us));
    return peer->heard;
}

/* The reply, as it is on the wire. */
#define ASK(f, who, ...)           ask_words(f, who, (const char *const[]){__VA_ARGS__, NULL})
#define EXPECT(f, who, reply, ...) assert_string_equal(ASK(f, who, __VA_ARGS__), reply)

MODEL_TEST(a_key_expires_when_its_last_ms_is_over)
{
    EXPECT(f, 0, "+OK\r\n", "SET", "k", "v", "NX", "PX", "10");
    f->wall_us += 10 * 1000 + 999;
    EXPECT(f, 0, ":0\r\n", "PTTL", "k");
    EXPECT(f, 0, "$-1\r\n", "SET", "k", "w", "NX", "PX", "10");
    f->wall_us++;
    EXPECT(f, 0, ":-2\r\n", "PTTL", "k");
    EXPECT(f, 0, "+OK\r\n", "SET", "k", "w", "NX", "PX", "10");
}

MODEL_TEST(our_scripts_lock_and_release)
{
    const char *guarded;

    EXPECT(f, 0, "*3\r\n:1\r\n:0\r\n:1700000000000000\r\n", "EVAL", script_acquire, "1", "k", "1", "me", "1000", "", "",
           "", "604800000", "30000");
    assert_string_equal(f->executed, "acquire k 1 me 1000    604800000 30000");
    EXPECT(f, 0, "*3\r\n$2\r\nme\r\n:1000\r\n:0\r\n", "EVAL", script_acquire, "1", "k", "1", "you", "1000", "", "", "",
           "604800000", "30000");
    EXPECT(f, 1, "*3\r\n$9\r\nsubscribe\r\n$19\r\nquorlock:released:k\r\n:1\r\n", "SUBSCRIBE", "quorlock:released:k");
    EXPECT(f, 0, ":2\r\n", "EVAL", script_release, "1", "k", "1", "me");
    assert_contains(f->peers[1].heard, "*3\r\n$7\r\nmessage\r\n$19\r\nquorlock:released:k\r\n$2\r\nme\r\n");
    guarded = ASK(f, 0, "EVAL", script_guard, "1", "quorlock:guard", "3", "set", "30000", "a", "b");
    assert_contains(guarded, "*4\r\n$3\r\nnew\r\n:30001\r\n:30000\r\n");
}
