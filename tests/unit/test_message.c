/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_message.c - the texts of results, from votes: who is in the way, for how long, and why nodes do not vote
 */
#include <string.h>

#include "base/protocol.h"
#include "lock/message.h"
#include "test.h"

#define NOW_US 5000000u
#define A      "label:aaaaaaaaaaaaaaaa"
#define B      "bbbbbbbbbbbbbbbb"

enum { NONE = QUORLOCK_VOTE_NONE, PENDING, GRANTED, REFUSED, FAILED, MISSING };

struct vote {
    int outcome;
    const char *holder;
    int64_t ttl_ms;
    const char *error;
};

struct row {
    int status;
    struct vote votes[3];
    const char *text;
};

/* A lock "key" on three nodes, as far as texts need it. */
struct scene {
    struct claims all;
    struct runtime runtime;
    struct terms *terms;
    struct keylist *keylist;
    struct claim *claim;
    struct quorlock_vote votes[3];
    const struct quorlock_vote *at[3];
    struct quorlock_result result;
    char text[MESSAGE_SIZE];
};

static void *zeroed(size_t size)
{
    void *block = test_calloc(1, size);

    assert_non_null(block);
    return block;
}

static struct scene *scene_begin(const struct vote *votes)
{
    static const char *const names[] = {"n1", "n2", "n3"};
    struct scene *s = zeroed(sizeof(*s));

    s->runtime.n_nodes = 3;
    s->runtime.batch_us = NOW_US;
    s->all.runtime = &s->runtime;
    s->terms = zeroed(sizeof(*s->terms));
    s->keylist = zeroed(sizeof(*s->keylist) + sizeof("key"));
    s->keylist->name_at = sizeof(*s->keylist);
    memcpy((char *)s->keylist + sizeof(*s->keylist), "key", sizeof("key"));
    s->claim = zeroed(sizeof(*s->claim));
    s->claim->all = &s->all;
    s->claim->keylist = s->keylist;
    s->claim->terms = s->terms;
    s->result.n_votes = 3;
    s->result.votes = s->at;
    for (size_t i = 0; i < 3; i++) {
        s->votes[i] = (struct quorlock_vote){.node = names[i],
                                             .outcome = votes[i].outcome,
                                             .error = votes[i].error,
                                             .holder = votes[i].holder,
                                             .ttl_ms = votes[i].ttl_ms};
        s->at[i] = &s->votes[i];
        s->result.granted += votes[i].outcome == GRANTED;
        s->result.refused += votes[i].outcome == REFUSED;
        s->result.failed += votes[i].outcome == FAILED;
    }
    return s;
}

static void scene_end(struct scene *s)
{
    test_free(s->claim);
    test_free(s->keylist);
    test_free(s->terms);
    test_free(s);
}

TEST(verdicts)
{
    static const struct row rows[] = {
        {QUORLOCK_OK,
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = PENDING}},
         "granted \"key\" by 2 of 3 nodes"},
        {QUORLOCK_OK,
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = FAILED, .error = "timeout"}},
         "granted \"key\" by 2 of 3 nodes; n3: timeout"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, A, 900, NULL}, {REFUSED, A, 500, NULL}, {REFUSED, A, 700, NULL}},
         "\"key\" is held by label:aaaaaaaa on 3 of 3 nodes, 700 ms left"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, A, -1, NULL}, {REFUSED, A, -1, NULL}, {.outcome = GRANTED}},
         "\"key\" is held by label:aaaaaaaa on 2 of 3 nodes, no expiry; 1 free"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, HOLDER_KEPT A, 800, NULL}, {REFUSED, HOLDER_KEPT A, 800, NULL}, {.outcome = PENDING}},
         "\"key\" is kept after its release by label:aaaaaaaa on 2 of 3 nodes, 800 ms left"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, HOLDER_WAITS B, 60, NULL}, {REFUSED, HOLDER_WAITS B, 60, NULL}, {.outcome = PENDING}},
         "\"key\" is kept for a writer that waits, bbbbbbbb on 2 of 3 nodes, 60 ms left"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, NULL, -2, NULL}, {REFUSED, B, 60, NULL}, {REFUSED, B, 60, NULL}},
         "\"key\" is held by bbbbbbbb on 2 of 3 nodes, 60 ms left"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, A, 40, NULL}, {.outcome = GRANTED}},
         "\"key\" is taken on 2 of 3 nodes, by several owners; enough of their leases end in 40 ms; 1 free"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, -1, NULL}, {REFUSED, A, -1, NULL}, {.outcome = GRANTED}},
         "\"key\" is taken on 2 of 3 nodes, by several owners; too many have no expiry; 1 free"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, A, 40, NULL}, {.outcome = PENDING}},
         "\"key\" is taken on 2 of 3 nodes, by bbbbbbbb and others"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, A, 40, NULL}, {REFUSED, NULL, -2, NULL}},
         "\"key\" is taken on 3 of 3 nodes, by bbbbbbbb and others"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, A, 40, NULL}, {.outcome = NONE}},
         "\"key\" is taken on 2 of 3 nodes, by several owners"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {NONE, A, 40, NULL}, {.outcome = NONE}},
         "\"key\" is taken on 2 of 3 nodes, by several owners"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, NULL, -2, NULL}, {REFUSED, NULL, -2, NULL}, {.outcome = PENDING}},
         "\"key\" is held by somebody else on 2 of 3 nodes"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, NULL, -2, NULL}, {PENDING, A, -2, NULL}, {.outcome = PENDING}},
         "\"key\" is held by somebody else on 1 of 3 nodes"},
        {QUORLOCK_ERR_HELD,
         {{PENDING, A, -2, NULL}, {.outcome = PENDING}, {.outcome = PENDING}},
         "\"key\" was held by label:aaaaaaaa when a node answered last"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, A, 40, NULL}, {PENDING, B, -2, NULL}},
         "\"key\" is taken on 2 of 3 nodes, by bbbbbbbb and others"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {REFUSED, B, 50, NULL}, {REFUSED, A, 40, NULL}},
         "\"key\" is held by bbbbbbbb on 2 of 3 nodes, 50 ms left"},
        {QUORLOCK_ERR_HELD,
         {{REFUSED, B, 60, NULL}, {PENDING, A, -2, NULL}, {.outcome = PENDING}},
         "\"key\" is held by bbbbbbbb on 1 of 3 nodes, 60 ms left"},
        {QUORLOCK_ERR_NOQUORUM,
         {{FAILED, NULL, -2, "down"}, {.outcome = GRANTED}, {FAILED, NULL, -2, "down"}},
         "too few nodes can vote on \"key\": 1 of 3 did, 2 needed; n1, n3: down"},
        {QUORLOCK_ERR_NOQUORUM,
         {{FAILED, NULL, -2, "down"}, {.outcome = GRANTED}, {FAILED, NULL, -2, "late"}},
         "too few nodes can vote on \"key\": 1 of 3 did, 2 needed; n1: down; n3: late"},
        {QUORLOCK_ERR_TIMEDOUT,
         {{REFUSED, B, 60, NULL}, {REFUSED, B, 60, NULL}, {.outcome = PENDING}},
         "the wait ended without a result; in the last attempt \"key\" is held by bbbbbbbb on 2 of 3 nodes, 60 ms "
         "left"},
        {QUORLOCK_ERR_TIMEDOUT,
         {{REFUSED, B, 60, NULL}, {.outcome = PENDING}, {.outcome = PENDING}},
         "the wait ended without a result; in the last attempt too few nodes can vote on \"key\": 1 of 3 did, 2 "
         "needed"},
        {QUORLOCK_OK,
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {PENDING, NULL, -2, "no answer yet"}},
         "granted \"key\" by 2 of 3 nodes"},
        {QUORLOCK_ERR_LOST,
         {{.outcome = MISSING}, {REFUSED, B, 60, NULL}, {.outcome = GRANTED}},
         "the lock was lost: \"key\": its token is gone from 2 of 3 nodes; held by bbbbbbbb on 1"},
        {QUORLOCK_ERR_INVAL,
         {{.outcome = NONE}, {.outcome = NONE}, {.outcome = NONE}},
         "the nodes refuse the settings of this client for \"key\""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct scene *s = scene_begin(rows[i].votes);

        message_verdict(s->claim, rows[i].status, &s->result, s->text, sizeof(s->text));
        assert_string_equal(s->text, rows[i].text);
        scene_end(s);
    }
}

TEST(releases)
{
    static const struct {
        struct core_completion completion;
        struct vote votes[3];
        const char *text;
    } rows[] = {
        {{.status = CORE_OK},
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = GRANTED}},
         "released \"key\" on 3 of 3 nodes"},
        {{.status = CORE_OK},
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = PENDING, .error = "no answer yet"}},
         "released \"key\" on 2 of 3 nodes; on its way to 1 more"},
        {{.status = CORE_OK, .keep_until_us = NOW_US + 1234000},
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = GRANTED}},
         "released \"key\" on 3 of 3 nodes; kept for another 1234 ms"},
        {{.status = CORE_OK, .keep_until_us = NOW_US},
         {{.outcome = GRANTED}, {.outcome = GRANTED}, {.outcome = GRANTED}},
         "released \"key\" on 3 of 3 nodes"},
        {{.status = CORE_OK, .expired = true, .keep_until_us = NOW_US + 1234000},
         {{.outcome = REFUSED, .ttl_ms = -2}, {REFUSED, B, -2, NULL}, {.outcome = PENDING}},
         "released \"key\" on 0 of 3 nodes; held by bbbbbbbb on 1; not there any more on 1; it had expired or was lost "
         "before"},
        {{.status = CORE_NOQUORUM},
         {{.outcome = GRANTED}, {PENDING, NULL, -2, "no answer yet"}, {FAILED, NULL, -2, "down"}},
         "released \"key\" on 1 of 3 nodes; n2: no answer yet; n3: down"},
        {{.status = CORE_NOQUORUM},
         {{.outcome = GRANTED}, {FAILED, NULL, -2, "down"}, {FAILED, NULL, -2, "down"}},
         "released \"key\" on 1 of 3 nodes; n2, n3: down"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct scene *s = scene_begin(rows[i].votes);

        message_released(s->claim, &rows[i].completion, &s->result, s->text, sizeof(s->text));
        assert_string_equal(s->text, rows[i].text);
        scene_end(s);
    }
}

TEST(owners_are_cut_behind_their_label)
{
    static const struct {
        const char *owner, *text;
    } rows[] = {
        {A, "label:aaaaaaaa"},
        {B, "bbbbbbbb"},
        {"", "\"\""},
        {HOLDER_READERS, "readers"},
        {"01234567-89ab-4def-8123-456789abcdef:77", "01234567:77"},
        {"b b\x1b\x7f", "b\\x20b\\x1b\\x7f"},
        {"b b:aaaaaaaaaaaa", "b\\x20b:aaaa"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[200];

        assert_string_equal(message_owner(text, sizeof(text), rows[i].owner), rows[i].text);
    }
}

TEST(a_long_text_is_cut_where_the_room_ends)
{
    static const char whole[] = "granted \"key\" by 2 of 3 nodes; n3: timeout";
    static const struct vote votes[] = {{.outcome = GRANTED}, {.outcome = GRANTED}, {FAILED, NULL, -2, "timeout"}};

    for (size_t size = 1; size <= sizeof(whole); size++) {
        struct scene *s = scene_begin(votes);

        memset(s->text, '#', sizeof(s->text));
        message_verdict(s->claim, QUORLOCK_OK, &s->result, s->text, size);
        assert_int_equal(strlen(s->text), size - 1);
        assert_memory_equal(s->text, whole, size - 1);
        assert_int_equal(s->text[size], '#');
        scene_end(s);
    }
}
