/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_keys_wire.c - several keys in one request, on one real server, in both dialects: all of them or none
 */
#include "keys_fixture.h"

#include <hiredis/hiredis.h>

/* ---- acquire ---- */

DIALECTS_TEST(test_acquire)
{
    for (int fenced = 0; fenced < 2; fenced++) {
        struct answer answer;

        for (size_t p = 0; p < N; p++) {
            wipe();
            put(p, THEM, LONG_MS);
            assert_held_by(fenced != 0 ? ask_fenced(OP_ACQUIRE, 0) : ask(OP_ACQUIRE), THEM, LEASE_MS, LONG_MS);
            /* Nothing but their key, as it was. */
            assert_int_equal(key_count(), 1);
            assert_true(holds(p, THEM));
            assert_left(p, LEASE_MS, LONG_MS);
        }
        wipe();
        answer = fenced != 0 ? ask_fenced(OP_ACQUIRE, 0) : ask(OP_ACQUIRE);
        assert_counts(answer, fenced != 0 ? 1 : 0);
        assert_true(answer.reply.node_time_us > 0);
        for (size_t i = 0; i < N; i++) {
            assert_true(holds(i, US));
            assert_left(i, 1, LEASE_MS);
        }
        assert_int_equal(key_count(), (fenced != 0 ? 2LL : 1LL) * N);
        /* The same request again, as after an answer that was lost. */
        assert_counts(fenced != 0 ? ask_fenced(OP_ACQUIRE, 0) : ask(OP_ACQUIRE), fenced != 0 ? 2 : 0);
        for (size_t i = 0; i < N; i++) assert_true(holds(i, US));
        /* A lease is never made shorter. */
        put_all(US, LONG_MS);
        assert_outcome(ask(OP_ACQUIRE), OUTCOME_YES);
        for (size_t i = 0; i < N; i++) assert_left(i, LEASE_MS + 1, LONG_MS);
    }
}

/* Of several holders, the reply names the one with the longest lease, wherever it is. */
DIALECTS_TEST(test_longest)
{
    static const enum op ops[] = {OP_ACQUIRE, OP_REPAIR, OP_EXTEND, OP_RAISE, OP_RELEASE, OP_PEEK};

    for (size_t k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
        for (size_t p = 0; p < N; p++) {
            for (int endless = 0; endless < 2; endless++) {
                struct answer answer;

                put_all(OTHERS, LEASE_MS);
                put(p, THEM, endless != 0 ? NO_EXPIRY : LONG_MS);
                answer = ask_fenced(ops[k], 5);
                if (ops[k] == OP_PEEK) {
                    assert_outcome(answer, OUTCOME_YES);
                    answer.reply.outcome = OUTCOME_OTHER;
                }
                assert_held_by(answer, THEM, endless != 0 ? -1 : LEASE_MS, endless != 0 ? -1 : LONG_MS);
                for (size_t i = 0; i < N; i++) assert_true(holds(i, i == p ? THEM : OTHERS));
            }
        }
    }
}

/* One command names the holder; a native SET does not. */
DIALECTS_TEST(test_explain)
{
    struct node_request request = request_of(OP_ACQUIRE, US);
    struct answer answer;

    request.n_keys = 1;
    put(0, THEM, LONG_MS);
    answer = probe_ask(probe, &request);
    assert_outcome(answer, OUTCOME_OTHER);
    assert_string_equal(answer.holder, plain() ? "" : THEM);
    request.explain = true;
    assert_held_by(probe_ask(probe, &request), THEM, LEASE_MS, LONG_MS);
    assert_true(holds(0, THEM));
    drop(0);
    assert_outcome(probe_ask(probe, &request), OUTCOME_YES);
    assert_true(holds(0, US));
    assert_left(0, 1, LEASE_MS);
}

/* ---- repair and extend ---- */

/* Every mixture of keys that are missing, ours for longer than the lease, and ours for less. */
DIALECTS_TEST(test_repair)
{
    enum { MISSING, LONGER, SHORTER, WAYS };

    for (size_t mixture = 0; mixture < (size_t)WAYS * WAYS * WAYS; mixture++) {
        const size_t ways[N] = {mixture % WAYS, mixture / WAYS % WAYS, mixture / WAYS / WAYS};

        for (size_t i = 0; i < N; i++) {
            if (ways[i] == MISSING)
                drop(i);
            else
                put(i, US, ways[i] == LONGER ? LONG_MS : SHORT_MS);
        }
        assert_outcome(ask(OP_REPAIR), OUTCOME_YES);
        for (size_t i = 0; i < N; i++) {
            assert_true(holds(i, US));
            assert_left(i, ways[i] == LONGER ? LEASE_MS + 1 : SHORT_MS + 1, ways[i] == LONGER ? LONG_MS : LEASE_MS);
        }
    }
    for (size_t p = 0; p < N; p++) {
        size_t missing = (p + 1) % N, ours = (p + 2) % N;

        put(p, THEM, LONG_MS);
        drop(missing);
        put(ours, US, SHORT_MS);
        assert_held_by(ask_fenced(OP_REPAIR, 7), THEM, LEASE_MS, LONG_MS);
        assert_false(has(missing));
        assert_left(ours, 1, SHORT_MS);
        assert_counters("");
    }
}

DIALECTS_TEST(test_extend)
{
    for (size_t p = 0; p < N; p++) {
        struct answer answer;

        put_all(US, SHORT_MS);
        put(p, US, LONG_MS);
        answer = ask(OP_EXTEND);
        assert_outcome(answer, OUTCOME_YES);
        assert_true(answer.reply.node_time_us > 0);
        for (size_t i = 0; i < N; i++) {
            assert_left(i, i == p ? LEASE_MS + 1 : SHORT_MS + 1, i == p ? LONG_MS : LEASE_MS);
        }

        put_all(US, SHORT_MS);
        drop(p);
        assert_outcome(ask_fenced(OP_EXTEND, 7), OUTCOME_MISSING);
        assert_int_equal(key_count(), N - 1);
        for (size_t i = 0; i < N; i++) {
            if (i != p) assert_left(i, 1, SHORT_MS);
        }
        /* Another owner's key is reported rather than a missing one. */
        put((p + 1) % N, THEM, SHORT_MS);
        assert_held_by(ask_fenced(OP_EXTEND, 7), THEM, 1, SHORT_MS);
        assert_left((p + 1) % N, 1, SHORT_MS);
        assert_left((p + 2) % N, 1, SHORT_MS);
        assert_counters("");
    }
}

/* ---- release ---- */

DIALECTS_TEST(test_release)
{
    for (size_t p = 0; p < N; p++) {
        put_all(US, LEASE_MS);
        put(p, THEM, LONG_MS);
        assert_held_by(ask(OP_RELEASE), THEM, LEASE_MS, LONG_MS);
        assert_int_equal(key_count(), 1);
        assert_true(holds(p, THEM));
        assert_left(p, LEASE_MS, LONG_MS);
        put_all(US, LEASE_MS);
        drop(p);
        assert_outcome(ask(OP_RELEASE), OUTCOME_MISSING);
        assert_int_equal(key_count(), 0);
        /* Ours go whatever sits at another key. */
        put_all(US, LEASE_MS);
        server_do(server, "DEL %s", names[p]);
        server_do(server, "RPUSH %s x", names[p]);
        assert_fault(ask(OP_RELEASE), FAULT_FOREIGN);
        assert_int_equal(key_count(), 1);
        drop(p);
    }
    put_all(US, LEASE_MS);
    assert_outcome(ask(OP_RELEASE), OUTCOME_YES);
    assert_outcome(ask(OP_RELEASE), OUTCOME_MISSING);
    assert_int_equal(key_count(), 0);
}

static redisContext *listen_to_all(void)
{
    redisContext *context;
    redisReply *reply;

    fixture_needs_real_servers();
    context = redisConnect("127.0.0.1", server->port);
    reply = redisCommand(context, "PSUBSCRIBE *");
    assert_non_null(reply);
    freeReplyObject(reply);
    return context;
}

/* All messages so far, "channel=text " each, in order. */
static void hear_all(redisContext *context, char *ret, size_t size)
{
    size_t used = 0;

    ret[0] = '\0';
    server_do(server, "PUBLISH end x");
    for (;;) {
        redisReply *reply = NULL;
        bool end;

        assert_int_equal(redisGetReply(context, (void **)&reply), REDIS_OK);
        end = strcmp(reply->element[2]->str, "end") == 0;
        if (!end)
            used += (size_t)snprintf(ret + used, size - used, "%s=%s ", reply->element[2]->str, reply->element[3]->str);
        freeReplyObject(reply);
        assert_true(used < size);
        if (end) return;
    }
}

#define TOLD(name)  "quorlock:released:" name "=" US " "
#define TOLD2(name) "redisson_lock__channel:{" name "}=0 "
#define OVER(name)  "redisson_lock__channel:{" name "}=00 "

DIALECTS_TEST(test_notices)
{
    static const char *const passed_over[N] = {OVER("a"), OVER("a") OVER("b"), OVER("a") OVER("b") OVER("c")};
    struct node_request silent = request_of(OP_RELEASE, US);
    redisContext *ear = listen_to_all();
    char said[512];

    put_all(US, LEASE_MS);
    assert_outcome(ask(OP_RELEASE), OUTCOME_YES);
    hear_all(ear, said, sizeof(said));
    assert_string_equal(said, plain() ? TOLD("a") TOLD("b") TOLD("c") : TOLD2("a") TOLD2("b") TOLD2("c"));
    /* Also for keys that were not there; or only for those that were deleted. */
    for (int i = 0; i < 2; i++) {
        struct node_request release = request_of(OP_RELEASE, US);

        release.if_deleted = i != 0;
        put_all(US, LEASE_MS);
        put(0, THEM, LEASE_MS);
        drop(1);
        assert_outcome(probe_ask(probe, &release), OUTCOME_OTHER);
        hear_all(ear, said, sizeof(said));
        if (release.if_deleted) {
            assert_string_equal(said, plain() ? TOLD("c") : TOLD2("c"));
        } else {
            assert_string_equal(said, plain() ? TOLD("a") TOLD("b") TOLD("c") : TOLD2("a") TOLD2("b") TOLD2("c"));
        }
    }
    /* A silent release notifies none of ours; it does notify Redisson's waiters, which would sleep on. */
    silent.silent = true;
    for (silent.n_keys = N; silent.n_keys > 0; silent.n_keys--) {
        put_all(US, LEASE_MS);
        silent.fence = silent.n_keys - 1; /* with a counter and without */
        assert_outcome(probe_ask(probe, &silent), OUTCOME_YES);
        assert_false(has(0));
        hear_all(ear, said, sizeof(said));
        assert_string_equal(said, plain() ? "" : passed_over[silent.n_keys - 1]);
    }
    /* A silent release deletes no key of another owner, and a failed acquire publishes nothing. */
    put_all(THEM, LEASE_MS);
    silent.n_keys = N;
    assert_outcome(probe_ask(probe, &silent), OUTCOME_OTHER);
    assert_outcome(ask(OP_ACQUIRE), OUTCOME_OTHER);
    for (size_t i = 0; i < N; i++) assert_true(holds(i, THEM));
    hear_all(ear, said, sizeof(said));
    assert_string_equal(said, "");
    redisFree(ear);
}

/* Only the plain dialect keeps keys. The release may come twice; a late renewal, and whoever wants the keys, find them
 * taken. */
DIALECTS_TEST(test_kept)
{
    struct node_request keeps = request_of(OP_RELEASE, US);

    if (!plain()) return;
    keeps.silent = keeps.keep = true;
    keeps.lease_ms = SHORT_MS;
    for (keeps.n_keys = N; keeps.n_keys > 0; keeps.n_keys--) {
        put_all(US, LEASE_MS);
        for (int times = 0; times < 2; times++) {
            assert_outcome(probe_ask(probe, &keeps), OUTCOME_YES);
            for (size_t i = 0; i < N; i++) {
                assert_true(holds(i, i < keeps.n_keys ? "quorlock:kept:" US : US));
                if (i < keeps.n_keys) assert_left(i, 0, SHORT_MS);
            }
        }
        assert_outcome(ask(OP_EXTEND), OUTCOME_OTHER);
        assert_held_by(ask(OP_ACQUIRE), "quorlock:kept:" US, 0, SHORT_MS);
    }
    put_all(THEM, LEASE_MS);
    keeps.n_keys = N;
    assert_outcome(probe_ask(probe, &keeps), OUTCOME_OTHER);
    for (size_t i = 0; i < N; i++) assert_true(holds(i, THEM));
}

/* ---- fencing ---- */

DIALECTS_TEST(test_counters)
{
    for (size_t p = 0; p < N; p++) {
        wipe();
        count_to(p, "9");
        count_to((p + 1) % N, "4");
        assert_counts(ask_fenced(OP_ACQUIRE, 0), 10);
        assert_counters("10");
        assert_outcome(ask(OP_RELEASE), OUTCOME_YES);
        assert_counts(ask_fenced(OP_ACQUIRE, 50), 50);
        assert_counters("50");
        /* A token is acknowledged only where no counter is higher, and then it is in all of them. */
        count_to(p, "53");
        assert_counts(ask_fenced(OP_RAISE, 52), 53);
        assert_counter(p, "53");
        assert_counter((p + 1) % N, "50");
        assert_counter((p + 2) % N, "50");
        assert_counts(ask_fenced(OP_RAISE, 53), 53);
        assert_counters("53");
        assert_counts(ask_fenced(OP_RAISE, 60), 60);
        assert_counters("60");
        assert_counts(ask_fenced(OP_PEEK, 0), 60);
        /* Not ours, or not there: nothing is raised. */
        put(p, THEM, LEASE_MS);
        assert_held_by(ask_fenced(OP_RAISE, 70), THEM, 1, LEASE_MS);
        drop(p);
        assert_outcome(ask_fenced(OP_RAISE, 70), OUTCOME_MISSING);
        assert_counters("60");
        /* An extension and a release bring the token to all of them, never back; a repair as well. */
        put(p, US, LEASE_MS);
        count_to(p, "90");
        assert_outcome(ask_fenced(OP_EXTEND, 70), OUTCOME_YES);
        assert_counter(p, "90");
        assert_counter((p + 1) % N, "70");
        assert_counter((p + 2) % N, "70");
        drop(p);
        assert_outcome(ask_fenced(OP_RELEASE, 80), OUTCOME_MISSING);
        assert_counter(p, "90");
        assert_counter((p + 1) % N, "80");
        assert_counter((p + 2) % N, "80");
        assert_counts(ask_fenced(OP_REPAIR, 85), 90);
        assert_counts(ask_fenced(OP_REPAIR, 95), 95);
        assert_counters("95");
        assert_counts(ask_fenced(OP_PEEK, 0), 95);
    }
}

DIALECTS_TEST(test_bad_counter)
{
    for (size_t p = 0; p < N; p++) {
        wipe();
        for (size_t i = 0; i < N; i++) count_to(i, i == p ? "x" : "4");
        assert_fault(ask_fenced(OP_ACQUIRE, 0), FAULT_REFUSED);
        put_all(US, LEASE_MS);
        assert_fault(ask_fenced(OP_RAISE, 9), FAULT_REFUSED);
        for (size_t i = 0; i < N; i++) {
            drop(i);
            assert_counter(i, i == p ? "x" : "4");
        }
        assert_int_equal(key_count(), N);
    }
}
