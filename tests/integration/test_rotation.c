/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rotation.c - users and passwords of the servers change while a client runs: which ones it logs in with
 *
 * test_credentials.py and test_logins.py have holders and waiters at such a change.
 */
#include "fixture.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <quorlock/sync.h>

#define OLD "xq7-old-secret"
#define NEW "xq7-new-secret"

/* A user on each server, as the client below knows it. */
static void add_user(const char *user, const char *password)
{
    for (uint32_t i = 0; i < fixture.cluster.n; i++)
        server_do(SERVER(i), "ACL SETUSER %s reset on >%s ~* &* +@all", user, password);
}

static void no_password_in_the_log(void)
{
    assert_null(strstr(fixture.log, OLD));
    assert_null(strstr(fixture.log, NEW));
}

/* What a callback does: it refuses, defers, returns a status that is not 0, or sets these. */
struct vault {
    const char *user, *password, *why;
    bool defers;
    int status, asked;
    char node[TEXT_SIZE];
};

static int on_credentials(quorlock_credentials *to, const char *node, void *arg)
{
    struct vault *vault = arg;

    vault->asked++;
    snprintf(vault->node, sizeof(vault->node), "%s", node);
    if (vault->why != NULL) return quorlock_credentials_refuse(to, vault->why);
    if (vault->defers) return quorlock_credentials_defer(to, node, arg);
    return vault->status != 0 ? vault->status : quorlock_credentials_set(to, vault->user, vault->password);
}

static void ask_vault(struct vault *vault)
{
    fixture.options.credentials = on_credentials;
    fixture.options.credentials_arg = vault;
}

/* ---- which ones ---- */

SERVER_TEST(the_login_of_each_source)
{
    static const struct {
        const char *label, *address, *user, *given, *set, *wanted;
        int status; /* of the set */
    } rows[] = {
        {"options", "", "app", NULL, NULL, "app", 0},
        {"an address with its own", "other:" OLD "@", "app", NULL, NULL, "other", 0},
        {"a callback before options", "", "app", "other", NULL, "other", 0},
        {"a callback, and an address with its own", "app:" OLD "@", NULL, "other", NULL, "app", 0},
        {"set before options", "", "app", NULL, "other", "other", 0},
        {"set, of none before", "", NULL, NULL, "other", "other", 0},
        {"set to none", "", "app", NULL, "", "default", 0},
        {"set, and a callback", "", NULL, "app", "other", "app", QUORLOCK_ERR_STATE},
        {"set, and an address with its own", "app:" OLD "@", NULL, NULL, "other", "app", QUORLOCK_ERR_INVAL},
    };

    add_user("app", OLD);
    add_user("other", OLD);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct vault vault = {.user = rows[i].given, .password = OLD};

        fixture.options.credentials = NULL;
        if (rows[i].given != NULL) ask_vault(&vault);
        fixture_log_in(rows[i].address, "");
        fixture.options.user = rows[i].user;
        fixture.options.password = rows[i].user != NULL ? OLD : NULL;
        fixture_client(0);
        if (rows[i].set != NULL) {
            const char *password = *rows[i].set != '\0' ? OLD : NULL;

            assert_status(quorlock_client_set_credentials(fixture.client, NULL, rows[i].set, password), rows[i].status);
        }
        fixture_await_ready(fixture.client, 1);
        if (server_ask_number(SERVER(0), "CLIENT KILL USER %s SKIPME yes", rows[i].wanted) != 1)
            fail_msg("%s: not logged in as %s", rows[i].label, rows[i].wanted);
        if (rows[i].given != NULL && rows[i].address[0] == '\0')
            assert_string_equal(vault.node, fixture.cluster.addresses[0]);
        assert_int_equal(vault.asked > 0, rows[i].given != NULL && rows[i].address[0] == '\0');
        fixture_close(fixture.client);
    }
    no_password_in_the_log();
}

/* The pause after the refusal would be half an hour. */
SERVER_TEST(a_node_that_refused_the_last_login_is_tried_at_once)
{
    add_user("app", NEW);
    fixture.options.user = "app";
    fixture.options.password = OLD;
    fixture.options.reconnect_min_ms = fixture.options.reconnect_max_ms = 3600000;
    fixture_client(0);
    await_log("WRONGPASS", 1);
    assert_status(quorlock_client_set_credentials(fixture.client, NULL, "app", NEW), 0);
    fixture_await_ready(fixture.client, 1);
}

SERVER_TEST(a_client_that_is_closed_takes_none)
{
    quorlock_client *client = fixture_new_client(1);
    int closed = 0;

    fixture_start_close(client, &closed);
    assert_status(quorlock_client_set_credentials(client, NULL, "a", "b"), QUORLOCK_ERR_CLOSED);
    await_count(&closed, 1, GENEROUS_MS, "the end of the client");
}

/* ---- a callback that has none ---- */

/* n_logins: of all nodes, since the client is there. */
static void log_in_again(unsigned n_logins)
{
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CLIENT KILL USER app");
    await_log(": ready, ", n_logins);
}

SERVERS_TEST(a_callback_without_credentials_is_asked_again)
{
    struct vault vault = {.why = "the vault is sealed"};
    quorlock_lock *lock;
    struct seen seen;

    add_user("app", OLD);
    ask_vault(&vault);
    fixture_client(0);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    fixture_start_acquire(lock, &seen);
    await_log("down: no credentials yet: the vault is sealed", 3);
    assert_int_equal(seen.calls, 0);
    vault = (struct vault){.user = "app", .password = OLD};
    await_status(&seen, QUORLOCK_OK, "the grant");
    /* Those of before stay in use, which is said once. */
    fixture_await_ready(fixture.client, 3);
    vault = (struct vault){.status = -1};
    log_in_again(6);
    assert_int_equal(logged("no new credentials, those of before stay in use: the callback has none"), 1);
    /* Another reason is said, and the same one when there were some in between. */
    for (unsigned turn = 1; turn <= 2; turn++) {
        vault = (struct vault){.why = "the vault is sealed"};
        log_in_again(3 + 6 * turn);
        assert_int_equal(logged("those of before stay in use: the vault is sealed"), turn);
        vault = (struct vault){.user = "app", .password = OLD};
        log_in_again(6 + 6 * turn);
    }
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
}

/* ---- a callback that has them later ---- */

static void answer(const char *node, const char *password)
{
    assert_status(quorlock_client_set_credentials(fixture.client, node, "app", password), 0);
}

SERVERS_TEST(a_login_waits_for_credentials_that_come_later)
{
    struct vault vault = {.defers = true};
    struct seen seen;
    quorlock_lock *lock;

    add_user("app", OLD);
    ask_vault(&vault);
    fixture_client(0);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE));
    fixture_start_acquire(lock, &seen);
    await_count(&vault.asked, 3, GENEROUS_MS, "the questions of all nodes");
    assert_int_equal(seen.calls, 0);
    for (uint32_t i = 0; i < 3; i++) answer(fixture.cluster.addresses[i], OLD);
    await_status(&seen, QUORLOCK_OK, "the grant");
    fixture_await_ready(fixture.client, 3);
    assert_int_equal(logged("down:"), 0);
    /* Each login asks anew, and one with the former password is refused once. */
    add_user("app", NEW);
    for (uint32_t i = 0; i < 3; i++) server_do(SERVER(i), "CLIENT KILL USER app");
    await_count(&vault.asked, 6, GENEROUS_MS, "the next questions of all nodes");
    answer(fixture.cluster.addresses[0], OLD);
    for (uint32_t i = 1; i < 3; i++) answer(fixture.cluster.addresses[i], NEW);
    await_log("WRONGPASS", 1);
    await_count(&vault.asked, 7, GENEROUS_MS, "the question after the refusal");
    answer(fixture.cluster.addresses[0], NEW);
    fixture_await_ready(fixture.client, 3);
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
    no_password_in_the_log();
}

SERVER_TEST(an_answer_before_the_question_is_for_the_next_login_alone)
{
    struct vault vault = {.defers = true};

    add_user("app", OLD);
    ask_vault(&vault);
    fixture_client(0);
    answer(fixture.cluster.addresses[0], OLD);
    fixture_await_ready(fixture.client, 1);
    assert_int_equal(vault.asked, 0);
    server_do(SERVER(0), "CLIENT KILL USER app");
    await_count(&vault.asked, 1, GENEROUS_MS, "the question");
}

SERVER_TEST(a_login_that_gets_no_answer_is_tried_again)
{
    struct vault vault = {.defers = true};

    add_user("app", OLD);
    ask_vault(&vault);
    fixture.options.connect_timeout_ms = 200;
    fixture_client(0);
    await_log("down: the program gave no credentials within 200 ms (connect_timeout_ms, --connect-timeout)", 1);
    await_count(&vault.asked, 2, GENEROUS_MS, "the next question");
    /* The client is closed while a login waits. */
    fixture_close(fixture.client);
}

SERVER_TEST(a_server_that_ends_the_connection_of_a_login_that_waits)
{
    struct vault vault = {.defers = true};

    ask_vault(&vault);
    fixture_client(0);
    await_count(&vault.asked, 1, GENEROUS_MS, "the question");
    server_do(SERVER(0), "CLIENT KILL TYPE normal SKIPME yes");
    await_log("down: the server closed the connection", 1);
    fixture_close(fixture.client);
    fixture.options.credentials = NULL;
    server_do(SERVER(0), "CONFIG SET maxclients 1");
    (void)fixture_new_client(1);
    ask_vault(&vault);
    fixture_client(0);
    await_log("down: it spoke before the login: it has as many clients as it may have", 1);
}

SERVER_TEST(answers_for_no_login_are_refused)
{
    struct vault vault = {.defers = true};

    ask_vault(&vault);
    fixture_client(0);
    assert_status(quorlock_client_set_credentials(fixture.client, NULL, "app", OLD), QUORLOCK_ERR_STATE);
    assert_status(quorlock_client_set_credentials(fixture.client, "10.0.0.1:1", "app", OLD), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(quorlock_client_error(fixture.client), "there is no node 10.0.0.1:1 whose address has"));
    fixture_close(fixture.client);
    fixture_log_in("app:" OLD "@", "");
    fixture_client(0);
    assert_status(quorlock_client_set_credentials(fixture.client, fixture.cluster.addresses[0], "app", OLD),
                  QUORLOCK_ERR_INVAL);
}

/* ---- a file ---- */

static void write_secret(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

SERVERS_TEST(a_file_is_read_before_each_login)
{
    char path[] = "/tmp/quorlock-secret-XXXXXX";
    quorlock_lock *lock;
    struct seen seen;

    close(mkstemp(path));
    add_user("app", OLD);
    fixture.options.user = "app";
    fixture.options.credentials = quorlock_credentials_read_file;
    fixture.options.credentials_arg = path;
    fixture_client(0);
    await_log("WRONGPASS", 3);
    write_secret(path, OLD "\nmore\n");
    fixture_await_ready(fixture.client, 3);
    lock = fixture_lock(fixture.client, "key", LEASE(LONG_LEASE_MS, .wait_ms = NO_LIMIT));
    assert_status(fixture_acquire(lock, &seen), QUORLOCK_OK);
    add_user("app", NEW);
    write_secret(path, NEW "\n");
    log_in_again(6);
    unlink(path);
    log_in_again(9);
    assert_int_equal(logged("those of before stay in use: password file \"/tmp/quorlock-secret-"), 2);
    assert_status(fixture_extend(lock, 0, &seen), QUORLOCK_OK);
    no_password_in_the_log();
}

/* ---- locks ---- */

SERVERS_TEST(a_sync_holder_logs_in_with_the_latest_credentials)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LONG_LEASE_MS, .wait_ms = QUORLOCK_TRY_ONCE};
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;
    const char *key = "key";
    quorlock_sync_client *sync_client;
    quorlock_sync_lock *lock;

    fixture.options.log = NULL;
    assert_int_equal(quorlock_sync_client_new(&sync_client, &fixture.options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_new(&lock, sync_client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_acquire(lock, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_set_credentials(sync_client, NULL, "default", "wrong", NULL), 0);
    for (int i = 0; i < 3; i++) {
        server_do(SERVER(i), "CONFIG SET requirepass secret");
        SERVER(i)->password = "secret";
        server_do(SERVER(i), "CLIENT KILL TYPE normal SKIPME yes");
    }
    assert_int_not_equal(quorlock_sync_lock_extend(lock, 0, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_set_credentials(sync_client, NULL, NULL, "secret", NULL), 0);
    while (quorlock_sync_lock_extend(lock, 0, NULL) != QUORLOCK_OK) {
        assert_true(clock_us() < until_us);
        usleep(10000);
    }
    assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
    quorlock_sync_lock_free(lock);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
}

static void count_failed_logins(const struct quorlock_statistics *statistics, void *ret)
{
    uint64_t *least = ret;

    for (size_t i = 0; i < statistics->n_nodes; i++) {
        uint64_t failed = statistics->nodes[i]->errors[QUORLOCK_NODE_ERROR_TEMPORARY];

        if (i == 0 || failed < *least) *least = failed;
    }
}

/* Take the events, which must be one for each node. */
static void take_logins(quorlock_sync_client *client, const void *arg)
{
    struct quorlock_event event = {.size = sizeof(event)};
    unsigned seen = 0;

    while (quorlock_sync_client_next_event(client, &event) == 0 && event.type != QUORLOCK_EVENT_NONE) {
        if (event.type == QUORLOCK_EVENT_LOG) continue;
        assert_int_equal(event.type, QUORLOCK_EVENT_LOGIN);
        assert_ptr_equal(event.arg, arg);
        for (unsigned i = 0; i < 3; i++) {
            if (strcmp(event.text, fixture.cluster.addresses[i]) != 0) continue;
            assert_false(seen & (1u << i));
            seen |= 1u << i;
        }
    }
    assert_int_equal(seen, 7);
}

/* However often a node asks meanwhile, it has one event. */
SERVERS_TEST(logins_of_a_sync_client_are_events)
{
    const struct quorlock_lock_options options = {
        .size = sizeof(options), .lease_ms = LONG_LEASE_MS, .wait_ms = GENEROUS_MS};
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull, failed = 0;
    const char *key = "key";
    quorlock_sync_client *client;
    quorlock_sync_lock *lock;
    struct quorlock_event event = {.size = sizeof(event)};
    struct pollfd waits = {.events = POLLIN};

    add_user("app", OLD);
    fixture.options.log = NULL;
    fixture.options.connect_timeout_ms = 100;
    fixture.options.credentials = quorlock_credentials_defer;
    fixture.options.credentials_arg = &failed;
    assert_int_equal(quorlock_sync_client_new(&client, &fixture.options, NULL), 0);
    assert_int_equal(quorlock_sync_client_events(client, &waits.fd), 0);
    while (failed < 2) {
        assert_true(clock_us() < until_us);
        usleep(10000);
        assert_int_equal(quorlock_sync_client_statistics(client, count_failed_logins, &failed), 0);
    }
    take_logins(client, &failed);
    assert_int_equal(quorlock_sync_lock_new(&lock, client, &key, 1, &options, NULL), 0);
    assert_int_equal(quorlock_sync_lock_start_acquire(lock, NULL, NULL), 0);
    while (event.type != QUORLOCK_EVENT_ACQUIRE_ENDED) {
        assert_int_equal(poll(&waits, 1, GENEROUS_MS), 1);
        assert_int_equal(quorlock_sync_client_next_event(client, &event), 0);
        if (event.type == QUORLOCK_EVENT_LOGIN)
            assert_int_equal(quorlock_sync_client_set_credentials(client, event.text, "app", OLD, NULL), 0);
    }
    assert_int_equal(event.status, QUORLOCK_OK);
    quorlock_sync_lock_free(lock);
    assert_int_equal(quorlock_sync_client_close(client), 0);
    while (event.type != QUORLOCK_EVENT_CLOSED) assert_int_equal(quorlock_sync_client_next_event(client, &event), 0);
}
