/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sync_ask.c - the sync facade: questions to the nodes, whose reports are read in the thread that asks
 */
#include "sync_fixture.h"

struct reported {
    pthread_t thread;
    size_t calls, nodes, held, broken, bootstrapped;
    int status, any;
    char holder[QUORLOCK_SYNC_TOKEN_SIZE];
};

/* In the thread that asks: renewals do not wait for it. */
static void begin_reading(struct reported *reported, int status, size_t n_nodes)
{
    assert_true(pthread_equal(reported->thread, pthread_self()) != 0);
    *reported =
        (struct reported){.thread = pthread_self(), .calls = reported->calls + 1, .status = status, .nodes = n_nodes};
}

static void read_holders(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct reported *reported = arg;

    begin_reading(reported, status, report->n_nodes);
    reported->any = report->held;
    snprintf(reported->holder, sizeof(reported->holder), "%s", report->holder != NULL ? report->holder : "");
    for (size_t i = 0; i < report->n_nodes; i++) reported->held += report->nodes[i]->state == QUORLOCK_INSPECT_HELD;
}

static void read_broken(int status, const struct quorlock_break_report *report, void *arg)
{
    struct reported *reported = arg;

    begin_reading(reported, status, report->n_nodes);
    reported->any = report->held;
    snprintf(reported->holder, sizeof(reported->holder), "%s", report->holder != NULL ? report->holder : "");
    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_break_node *node = report->nodes[i];

        if (node->state != QUORLOCK_BREAK_BROKEN) continue;
        reported->broken += strcmp(node->holder, report->holder) == 0 && strchr(node->node, ':') != NULL;
    }
}

static void read_guards(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct reported *reported = arg;

    begin_reading(reported, status, report->n_nodes);
    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_bootstrap_node *node = report->nodes[i];

        assert_non_null(strchr(node->node, ':'));
        assert_int_equal(strncmp(node->guard, "2|3|", 4), 0);
        reported->bootstrapped += node->state == QUORLOCK_BOOTSTRAP_WRITTEN;
    }
}

BLOCKING_TEST(a_key_is_inspected_and_broken)
{
    quorlock_sync_lock *lock = new_lock("key", LONG_LEASE_MS, 0);
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct reported reported = {.thread = pthread_self()};

    assert_int_equal(quorlock_sync_client_inspect(sync_client, "key", read_holders, &reported), QUORLOCK_OK);
    assert_int_equal(reported.any, 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, &result), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_inspect(sync_client, "key", read_holders, &reported), QUORLOCK_OK);
    assert_int_equal(reported.any, 1);
    assert_true(reported.held >= 2);
    assert_string_equal(reported.holder, result.token);
    assert_int_equal(quorlock_sync_client_break(sync_client, "key", NULL, read_broken, &reported), QUORLOCK_OK);
    assert_int_equal(reported.any, 1);
    assert_string_equal(reported.holder, result.token);
    assert_true(reported.broken >= 2);
    assert_int_equal(quorlock_sync_client_inspect(sync_client, "", read_holders, &reported), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_inspect(sync_client, "key", NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_break(NULL, "key", NULL, read_broken, &reported), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_break(sync_client, "key", NULL, read_broken, &reported), QUORLOCK_ERR_CLOSED);
    assert_int_equal(reported.calls, 3);
    quorlock_sync_lock_free(lock);
}

/* The second node answers alone. */
BLOCKING_TEST(one_node_is_inspected)
{
    struct reported reported = {.thread = pthread_self()};

    server_do(SERVER(1), "SET key by-hand PX 60000");
    assert_int_equal(quorlock_sync_client_inspect_node(sync_client, 1, "key", read_holders, &reported), QUORLOCK_OK);
    assert_int_equal(reported.nodes, 1);
    assert_int_equal(reported.held, 1);
    assert_int_equal(quorlock_sync_client_inspect_node(sync_client, 0, "key", read_holders, &reported), QUORLOCK_OK);
    assert_int_equal(reported.held, 0);
    assert_int_equal(quorlock_sync_client_inspect_node(sync_client, 3, "key", read_holders, &reported),
                     QUORLOCK_ERR_INVAL);
    assert_int_equal(reported.calls, 2);
}

BLOCKING_TEST(nodes_are_bootstrapped)
{
    /* Connections of the test before may still be there. */
    struct quorlock_bootstrap_options options = {.size = sizeof(options), .despite_clients = 1};
    struct reported reported = {.thread = pthread_self()};

    assert_int_equal(quorlock_sync_client_bootstrap(sync_client, &options, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_bootstrap(sync_client, &options, read_guards, &reported), QUORLOCK_OK);
    assert_int_equal(reported.bootstrapped, 3);
    assert_int_equal(quorlock_sync_client_bootstrap(sync_client, &options, read_guards, &reported), QUORLOCK_ERR_STATE);
    assert_int_equal(reported.status, QUORLOCK_ERR_STATE);
    options.if_needed = 1;
    assert_int_equal(quorlock_sync_client_bootstrap(sync_client, &options, read_guards, &reported), QUORLOCK_OK);
    assert_int_equal(reported.bootstrapped, 0);
    assert_int_equal(reported.calls, 3);
}

struct examined {
    pthread_t thread;
    size_t calls, n_nodes, masters, errors, unreachable, remedies;
    uint32_t reachable;
    int status, severity;
};

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part)) != NULL) n++, text++;
    return n;
}

static void read_examination(int status, const struct quorlock_doctor_report *report, void *arg)
{
    struct examined *examined = arg;

    assert_true(pthread_equal(examined->thread, pthread_self()) != 0);
    *examined = (struct examined){.thread = pthread_self(),
                                  .calls = examined->calls + 1,
                                  .n_nodes = count(report->facts_json, "\"node\":\"127.0.0.1:"),
                                  .masters = count(report->facts_json, "\"role\":\"master\""),
                                  .errors = count(report->facts_json, "\"error\":\""),
                                  .reachable = report->reachable,
                                  .status = status,
                                  .severity = report->severity};
    for (size_t i = 0; i < report->n_findings; i++) {
        const struct quorlock_finding *finding = report->findings[i];

        examined->unreachable += strcmp(finding->code, "unreachable") == 0 && strchr(finding->node, ':') != NULL;
        examined->remedies += strlen(finding->code) > 0 && strlen(finding->text) > 0 && strlen(finding->remedy) > 0;
    }
    assert_int_equal(examined->remedies, report->n_findings);
}

BLOCKING_TEST(the_doctor_is_asked)
{
    struct examined examined = {.thread = pthread_self()};

    server_kill(SERVER(2));
    assert_int_equal(quorlock_sync_client_doctor(sync_client, read_examination, &examined), QUORLOCK_OK);
    assert_int_equal(examined.status, QUORLOCK_OK);
    assert_int_equal(examined.n_nodes, 3);
    assert_int_equal(examined.reachable, 2);
    assert_int_equal(examined.masters, 2);
    assert_int_equal(examined.errors, 1);
    assert_int_equal(examined.unreachable, 1);
    assert_true(examined.severity >= QUORLOCK_SEVERITY_WARNING);
    assert_int_equal(quorlock_sync_client_doctor(sync_client, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_doctor(sync_client, read_examination, &examined), QUORLOCK_ERR_CLOSED);
    assert_int_equal(examined.calls, 1);
}

struct listed {
    size_t parts, locks, whole;
};

static void read_listing(int status, const struct quorlock_list_report *listing, void *arg)
{
    struct listed *listed = arg;

    assert_int_equal(status, QUORLOCK_OK);
    assert_int_equal(listing->quorum, 2);
    listed->parts++;
    listed->locks += listing->n_locks;
    for (size_t i = 0; i < listing->n_locks; i++) listed->whole += listing->locks[i]->nodes >= 2;
}

/* More than one part. */
BLOCKING_TEST(many_locks_are_listed)
{
    enum { LOCKS = 600 };
    static quorlock_sync_lock *locks[LOCKS];
    struct quorlock_sync_result result = {.size = sizeof(result)};
    struct listed listed = {0};
    char key[16];

    for (int i = 0; i < LOCKS; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        locks[i] = new_lock(key, LONG_LEASE_MS, 30000);
        assert_int_equal(quorlock_sync_lock_acquire(locks[i], &result), QUORLOCK_OK);
    }
    assert_int_equal(quorlock_sync_client_list(sync_client, "k*", read_listing, &listed), QUORLOCK_OK);
    assert_int_equal(listed.locks, LOCKS);
    assert_int_equal(listed.whole, LOCKS);
    assert_true(listed.parts > 1);
    assert_int_equal(quorlock_sync_client_list(sync_client, "", read_listing, &listed), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_list(sync_client, "k*", NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_sync_client_shutdown(sync_client), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_list(sync_client, NULL, read_listing, &listed), QUORLOCK_ERR_CLOSED);
    for (int i = 0; i < LOCKS; i++) quorlock_sync_lock_free(locks[i]);
}

/* As long as the locks of the client may have it, and not longer. */
BLOCKING_TEST(the_longest_margin_is_permitted)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = LONG_LEASE_MS};
    quorlock_sync_lock *lock;
    const char *key = "key";

    options.lost_margin_ms = quorlock_sync_client_lost_margin_max_ms(sync_client, LONG_LEASE_MS, 0);
    assert_true(options.lost_margin_ms > 0);
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    quorlock_sync_lock_free(lock);
    options.lost_margin_ms++;
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), QUORLOCK_ERR_INVAL);
}
