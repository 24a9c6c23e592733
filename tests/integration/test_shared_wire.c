/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shared_wire.c - shared keys in requests to one real server
 */
#include <hiredis/hiredis.h>

#include "keys_fixture.h"

#define SENTINEL "quorlock:readers"

/* One request of the first n keys, those with a bit shared. */
static struct answer of(enum op op, const char *owner, size_t n, uint64_t shared, const char *waiter, uint32_t waited_ms)
{
    struct node_request request = request_of(op, owner);
    struct answer answer;

    request.n_keys = n;
    request.shared = shared;
    request.waiter = waiter;
    request.waiter_length = waiter != NULL ? strlen(waiter) : 0;
    request.waited_ms = waited_ms;
    answer = probe_ask(probe, &request);
    if (answer.reply.outcome != OUTCOME_NOSCRIPT) return answer;
    request.use_eval = true;
    return probe_ask(probe, &request);
}

static struct answer shared(enum op op, const char *owner)
{
    return of(op, owner, 1, 1, NULL, 0);
}

static struct answer exclusive(enum op op, const char *owner)
{
    struct node_request request = request_of(op, owner);

    request.n_keys = 1;
    return probe_ask(probe, &request);
}

static struct answer intend(const char *waiter, bool reader, uint32_t waited_ms, uint32_t life_ms)
{
    struct node_request request = request_of(OP_INTEND, "");
    struct answer answer;

    request.n_keys = 1;
    request.shared = reader;
    request.waiter = waiter;
    request.waiter_length = strlen(waiter);
    request.waited_ms = waited_ms;
    request.lease_ms = life_ms;
    answer = probe_ask(probe, &request);
    if (answer.reply.outcome != OUTCOME_NOSCRIPT) return answer;
    request.use_eval = true;
    return probe_ask(probe, &request);
}

static void assert_readers(long long n)
{
    assert_int_equal(server_ask_number(server, "ZCARD quorlock:readers:a"), n);
    assert_true(n == 0 ? !server_holds(server, "a", SENTINEL) : server_holds(server, "a", SENTINEL));
}

static struct node_request held_by(const char *waiter)
{
    struct node_request request = request_of(OP_ACQUIRE, "w:1");

    (void)waiter;
    request.n_keys = 1;
    return request;
}

TEST_RUNS(test_readers_hold_together, RUN_WITH(test_readers_hold_together, "", setup_plain))
{
    assert_outcome(shared(OP_ACQUIRE, US), OUTCOME_YES);
    assert_readers(1);
    assert_outcome(shared(OP_ACQUIRE, THEM), OUTCOME_YES);
    assert_readers(2);
    assert_left(0, LEASE_MS - 5000, LEASE_MS + 1);
    assert_outcome(exclusive(OP_ACQUIRE, OTHERS), OUTCOME_OTHER);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_YES);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_YES);
    assert_readers(1);
    assert_outcome(shared(OP_RELEASE, US), OUTCOME_MISSING);
    assert_outcome(exclusive(OP_ACQUIRE, OTHERS), OUTCOME_OTHER);
    assert_outcome(shared(OP_EXTEND, US), OUTCOME_MISSING);
    assert_outcome(shared(OP_RELEASE, THEM), OUTCOME_YES);
    assert_int_equal(key_count(), 0);
    (void)held_by;
    (void)intend;
}
