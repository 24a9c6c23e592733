/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_refusals.c - permanent errors: the status, the value and the node are in the text, never a
 * password, and nothing is left behind
 */
#include "fixture.h"

#include <quorlock/election.h>
#include <quorlock/sync.h>

#include <unistd.h>

#define SECRET "s3cret-Pa55"

/* ---- what quorlock_client_new refuses ---- */

static void refuse_client(const struct quorlock_client_options *options, const char *part)
{
    struct quorlock_error error;
    quorlock_client *client = NULL;

    assert_status(quorlock_client_new(&client, fixture.base, options, &error), QUORLOCK_ERR_INVAL);
    assert_null(client);
    assert_int_equal(error.status, QUORLOCK_ERR_INVAL);
    assert_contains(error.text, part);
    if (strstr(error.text, SECRET) != NULL) fail_msg("the password is in '%s'", error.text);
    assert_status(quorlock_client_new(&client, fixture.base, options, NULL), QUORLOCK_ERR_INVAL);
    assert_null(client);
}

static struct quorlock_client_options nodes_options(const char *const *nodes, size_t n)
{
    return (struct quorlock_client_options){
        .size = sizeof(struct quorlock_client_options), .nodes = nodes, .n_nodes = n, .guard = QUORLOCK_GUARD_OFF};
}

BARE_TEST(bad_sets_of_nodes)
{
    const char *twice[3] = {"127.0.0.1:7001", "127.0.0.1:7002", "redis://alice:" SECRET "@127.0.0.1:7001/5"};
    const char *sockets[2] = {"unix:///tmp/a", "unix:///tmp/a"};
    const char *names[2] = {"localhost:7001", "redis://LOCALHOST:7001"};
    const char *null[2] = {"127.0.0.1:7001", NULL};
    char texts[QUORLOCK_NODES_MAX + 1][32];
    const char *many[QUORLOCK_NODES_MAX + 1];
    struct quorlock_client_options options = nodes_options(twice, 0);

    refuse_client(&options, "0");
    options = nodes_options(NULL, 3);
    refuse_client(&options, "");
    options = nodes_options(null, 2);
    refuse_client(&options, "");
    options = nodes_options(twice, 3);
    refuse_client(&options, "127.0.0.1:7001");
    options = nodes_options(sockets, 2);
    refuse_client(&options, "/tmp/a");
    options = nodes_options(names, 2);
    refuse_client(&options, "localhost:7001");
    for (int i = 0; i <= QUORLOCK_NODES_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%d", 7000 + i);
        many[i] = texts[i];
    }
    options = nodes_options(many, QUORLOCK_NODES_MAX + 1);
    refuse_client(&options, "32");
}

/* Whatever else is wrong with the call: what it lacks is of no use any more. The guard is on, and no operation began.
 */
SERVERS_TEST(a_closed_client_says_so_first)
{
    const struct quorlock_lock_options bad = {.size = 1};
    quorlock_client *client;
    quorlock_lock *lock;
    quorlock_candidate *candidate = NULL;
    int closed = 0;

    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    client = fixture_new_client(0);
    lock = fixture_lock(client, "key", LEASE(LONG_LEASE_MS));
    assert_status(quorlock_candidate_new(&candidate, client, "leader", NULL), QUORLOCK_OK);
    fixture_start_close(client, &closed);
    assert_status(quorlock_lock_new(NULL, client, NULL, 0, &bad), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_lock_acquire(lock, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_lock_extend(lock, UINT32_MAX, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_lock_release(lock, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_lock_cancel(lock), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_inspect(client, NULL, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_inspect_node(client, 99, NULL, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_break(client, "key", "me", NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_list(client, "", NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_bootstrap(client, &(struct quorlock_bootstrap_options){.size = 1}, NULL, NULL),
                  QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_doctor(client, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_candidate_new(NULL, client, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_candidate_stand(candidate), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_candidate_resign(candidate), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_observer_new(NULL, client, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_status(quorlock_client_close(client, NULL, NULL), QUORLOCK_ERR_CLOSED);
    assert_string_equal(quorlock_client_error(client), quorlock_status_text(QUORLOCK_ERR_CLOSED));
    await_count(&closed, 1, GENEROUS_MS, "the client closes");
}

SERVERS_TEST(votes_of_nodes_in_quarantine_have_failed)
{
    struct seen seen;

    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture_client(0);
    assert_status(fixture_acquire(fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS)), &seen),
                  QUORLOCK_ERR_NOQUORUM);
    assert_int_equal(seen.result.failed, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(seen.votes[i].outcome, QUORLOCK_VOTE_QUARANTINED);
}

/* Without a place for what is made nothing is made. */
CLIENT_TEST(no_place_for_what_is_made)
{
    const char *key = "key";
    quorlock_sync_client *sync_client = NULL;
    struct quorlock_error error;

    assert_status(quorlock_lock_new(NULL, fixture.client, &key, 1, NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "ret is NULL: there is no place for the lock");
    assert_status(quorlock_candidate_new(NULL, fixture.client, key, NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "no place for the candidate");
    assert_status(quorlock_observer_new(NULL, fixture.client, key, NULL), QUORLOCK_ERR_INVAL);
    assert_contains(quorlock_client_error(fixture.client), "no place for the observer");
    memset(&error, 'x', sizeof(error));
    assert_status(quorlock_sync_client_new(&sync_client, &fixture.options, &error), QUORLOCK_OK);
    assert_int_equal(error.status, QUORLOCK_OK);
    assert_string_equal(error.text, "");
    assert_status(quorlock_sync_lock_new(NULL, sync_client, &key, 1, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "no place for the lock");
    assert_status(quorlock_sync_candidate_new(NULL, sync_client, key, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "no place for the candidate");
    assert_status(quorlock_sync_observer_new(NULL, sync_client, key, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "no place for the observer");
    assert_status(quorlock_sync_observer_new(NULL, sync_client, key, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_sync_client_close(sync_client), QUORLOCK_OK);
}

/* The first errors of a new user: no size, no base. */
BARE_TEST(errors_have_their_text)
{
    const char *nodes[1] = {"127.0.0.1:7001"};
    struct quorlock_client_options options = nodes_options(nodes, 1);
    quorlock_client *client = NULL;
    quorlock_sync_client *sync_client = NULL;
    struct quorlock_error error;

    assert_status(quorlock_client_new(&client, NULL, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "base is NULL");
    assert_status(quorlock_client_new(NULL, fixture.base, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "ret is NULL");
    assert_status(quorlock_sync_client_new(NULL, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "ret is NULL");
    options.size = 0;
    assert_status(quorlock_client_new(&client, fixture.base, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "size is 0: set it to sizeof");
    assert_status(quorlock_sync_client_new(&sync_client, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "size is 0: set it to sizeof");
    options.size = sizeof(size_t);
    assert_status(quorlock_client_new(&client, fixture.base, &options, &error), QUORLOCK_ERR_INVAL);
    assert_contains(error.text, "0 node addresses");
    assert_null(client);
    assert_null(sync_client);
}

/* ---- what quorlock_lock_new refuses ---- */

CLIENT_TEST(bad_arguments_of_a_report)
{
    struct seen_report report;

    assert_status(quorlock_client_inspect(fixture.client, "", on_inspected, &report), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_client_inspect(fixture.client, NULL, on_inspected, &report), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_client_inspect_node(fixture.client, 0, "", on_inspected, &report), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_client_inspect_node(fixture.client, 0, "key", NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_status(quorlock_client_inspect_node(fixture.client, fixture.cluster.n, "key", on_inspected, &report),
                  QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(fixture.client), "counted from 0"));
    assert_status(quorlock_client_break(fixture.client, "quorlock:guard", NULL, on_broken, &report),
                  QUORLOCK_ERR_INVAL);
    assert_status(quorlock_client_break(fixture.client, "key", "", on_broken, &report), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(fixture.client), "owner: give the whole token of a holder"));
    assert_status(quorlock_client_list(fixture.client, NULL, NULL, NULL), QUORLOCK_ERR_INVAL);
}

static void on_closed_listing(int status, const struct quorlock_list_report *listing, void *arg)
{
    assert_status(status, QUORLOCK_ERR_CLOSED);
    assert_int_equal(listing->answered, 0);
    assert_int_equal(listing->n_locks, 0);
    assert_int_equal(listing->more, 0);
    *(int *)arg += 1;
}

CLIENT_TEST(a_close_ends_a_listing_once)
{
    quorlock_client *client = fixture_new_client(0);
    int closed = 0, calls = 0;

    assert_status(quorlock_client_list(client, "*", on_closed_listing, &calls), QUORLOCK_OK);
    fixture_start_close(client, &closed);
    await_count(&closed, 1, GENEROUS_MS, "the client closes");
    assert_int_equal(calls, 1);
}

/* ---- wrong passwords, rights and kinds of servers ---- */

static void no_password_in_the_log(void)
{
    if (fixture.log != NULL && strstr(fixture.log, SECRET) != NULL)
        fail_msg("a password is in the log:\n%s", fixture.log);
}

/* A vote failed for that reason. Not every vote: the result may be certain before the last node connects.
 */
static int failed_with(const struct seen *seen, size_t n, const char *part)
{
    for (size_t i = 0; i < n; i++) {
        const struct seen_vote *vote = &seen->votes[i];

        if (vote->outcome == QUORLOCK_VOTE_FAILED && strstr(vote->error, part) != NULL) return 1;
    }
    return 0;
}

/* A client of these nodes tries once for "key"; the verdict and node 0's reason are checked. */
static void verdict(uint32_t n, int status, const char *part, struct seen *seen)
{
    quorlock_client *client;
    quorlock_lock *lock;

    fixture.options.n_nodes = n;
    client = fixture_new_client(0);
    lock = fixture_lock(client, "key", LEASE(LONG_LEASE_MS));
    fixture_acquire(lock, seen);
    if (seen->result.status != status) {
        fail_msg("status %s, not %s: %s; node 0: %s", quorlock_status_name(seen->result.status),
                 quorlock_status_name(status), seen->text, seen->votes[0].error);
    }
    if (status == QUORLOCK_OK) {
        assert_status(fixture_release(lock, seen), QUORLOCK_OK);
    } else {
        assert_int_equal(failed_with(seen, n, part), 1);
        assert_int_equal(quorlock_lock_valid_ms(lock), 0);
    }
    for (size_t i = 0; i < n; i++) {
        if (strstr(seen->votes[i].error, SECRET) != NULL || strstr(seen->votes[i].node, SECRET) != NULL) {
            fail_msg("a password is in the vote of node %zu", i);
        }
    }
    assert_null(strstr(seen->text, SECRET));
    fixture_close(client);
    no_password_in_the_log();
}

SERVERS_TEST(users_and_rights)
{
    char wrong[TEXT_SIZE + 32];
    struct seen seen;

    for (int i = 0; i < 3; i++) {
        server_do(SERVER(i), "ACL SETUSER alice on >%s ~* &* +@all", SECRET);
        server_do(SERVER(i), "ACL SETUSER bob on >%s ~* &* +@all -set", SECRET);
        server_do(SERVER(i), "ACL SETUSER carol on >%s ~other* &* +@all", SECRET);
    }
    fixture_log_in("alice:" SECRET "@", "");
    verdict(3, QUORLOCK_OK, NULL, &seen);
    fixture_log_in("alice:wrong@", "");
    verdict(3, QUORLOCK_ERR_AUTH, "WRONGPASS", &seen);
    fixture_log_in("nobody:" SECRET "@", "");
    verdict(3, QUORLOCK_ERR_AUTH, "WRONGPASS", &seen);
    fixture_log_in("bob:" SECRET "@", "");
    verdict(3, QUORLOCK_ERR_AUTH, "NOPERM", &seen);
    fixture_log_in("carol:" SECRET "@", "");
    verdict(3, QUORLOCK_ERR_AUTH, "NOPERM", &seen);
    assert_int_equal(holders("key", NULL), 0);
    /* One node of three with wrong credentials only loses that node's vote. */
    fixture_log_in("alice:" SECRET "@", "");
    fixture.nodes[0] = wrong;
    snprintf(wrong, sizeof(wrong), "redis://alice:wrong@%s", SERVER(0)->address);
    verdict(3, QUORLOCK_OK, NULL, &seen);
}

SERVERS_TEST(unix_sockets_and_databases)
{
    struct seen seen;
    quorlock_lock *lock;

    for (int i = 0; i < 3; i++) fixture.nodes[i] = SERVER(i)->unix_address;
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    await_holders("key", seen.owner, 3);
    fixture_close(fixture.client);
    await_free("key");

    fixture_log_in("", "/5");
    fixture_client(3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_int_equal(holders("key", NULL), 0);
    assert_int_equal(
        server_ask_number(SERVER(0), "EVAL %s 0", "redis.call('SELECT', 5) return redis.call('EXISTS', 'key')"), 1);
    fixture_close(fixture.client);
    assert_int_equal(server_ask_number(SERVER(0), "EVAL %s 0", "redis.call('SELECT', 5) return redis.call('DBSIZE')"),
                     0);
    fixture_log_in("", "/4711");
    verdict(3, QUORLOCK_ERR_NOQUORUM, "SELECT", &seen);
    assert_contains(seen.votes[0].node, "4711");
}

SERVERS_TEST(a_replica_is_no_master)
{
    struct seen seen;

    server_do(SERVER(0), "REPLICAOF 127.0.0.1 %u", fixture.cluster.servers[2].port);
    verdict(1, QUORLOCK_ERR_NOQUORUM, "replica", &seen);
    assert_contains(seen.votes[0].node, fixture.cluster.addresses[0]);
    assert_int_equal(holders("key", NULL), 0);
    /* A majority does not need it. */
    verdict(3, QUORLOCK_OK, NULL, &seen);
}

/* A master that becomes a replica under our connection answers READONLY. */
SERVERS_TEST(a_master_turned_replica_is_noticed)
{
    struct seen seen;
    quorlock_lock *lock;

    fixture.options.n_nodes = 1;
    fixture_client(1);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    server_do(SERVER(0), "REPLICAOF 127.0.0.1 %u", fixture.cluster.servers[2].port);
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_ERR_NOQUORUM);
    assert_contains(seen.votes[0].error, "replica");
    server_do(SERVER(0), "REPLICAOF NO ONE");
    quorlock_lock_free(lock);
    fixture_await_ready(fixture.client, 1);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = GENEROUS_MS - 5000));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    quorlock_lock_free(lock);
    await_free("key");
}

SERVERS_TEST(no_room_on_the_nodes)
{
    struct seen seen;

    for (int i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET maxmemory 1");
    verdict(3, QUORLOCK_ERR_NOQUORUM, "OOM", &seen);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET maxmemory 0");
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 1");
    verdict(3, QUORLOCK_ERR_NOQUORUM, "NOREPLICAS", &seen);
    for (int i = 0; i < 3; i++) server_do(SERVER(i), "CONFIG SET min-replicas-to-write 0");
    assert_int_equal(holders("key", NULL), 0);
    verdict(3, QUORLOCK_OK, NULL, &seen);
}

/* ---- no server ---- */

BARE_TEST(no_server_listens)
{
    char address[TEXT_SIZE];
    struct seen seen;
    uint16_t port;
    int fd = reserve_port(&port);

    snprintf(address, sizeof(address), "redis://:" SECRET "@127.0.0.1:%u", port);
    fixture.nodes[0] = address;
    verdict(1, QUORLOCK_ERR_NOQUORUM, "refused", &seen);
    fixture.nodes[0] = "unix:///tmp/there is no such socket";
    verdict(1, QUORLOCK_ERR_NOQUORUM, "No such file", &seen);
    fixture.nodes[0] = "no-such-host.invalid:6379";
    verdict(1, QUORLOCK_ERR_NOQUORUM, "", &seen);
    assert_true(strlen(seen.votes[0].error) > 0);
    close(fd);
}

/* Messages have shortened owner tokens; only results have whole ones. */
CLIENT_TEST(tokens_are_cut_in_the_log)
{
    struct seen seen, other;
    quorlock_lock *lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));
    quorlock_lock *second = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS));

    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    assert_status(fixture_acquire(second, &other), QUORLOCK_ERR_HELD);
    assert_true(strlen(seen.owner) >= 40);
    assert_null(strstr(other.text, seen.owner));
    if (fixture.log != NULL) assert_null(strstr(fixture.log, seen.owner));
    assert_status(fixture_release(lock, &seen), QUORLOCK_OK);
}
