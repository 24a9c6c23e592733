/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rotation.c - users and passwords of the servers change while a client runs: which ones it logs in with
 *
 * test_credentials.py and test_logins.py have holders and waiters at such a change.
 */
#include "fixture.h"

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

/* What a callback does: it refuses, returns a status that is not 0, or sets these. */
struct vault {
    const char *user, *password, *why;
    int status, asked;
    char node[TEXT_SIZE];
};

static int on_credentials(quorlock_credentials *to, const char *node, void *arg)
{
    struct vault *vault = arg;

    vault->asked++;
    snprintf(vault->node, sizeof(vault->node), "%s", node);
    if (vault->why != NULL) return quorlock_credentials_refuse(to, vault->why);
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

            assert_status(quorlock_client_set_credentials(fixture.client, rows[i].set, password), rows[i].status);
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
    assert_status(quorlock_client_set_credentials(fixture.client, "app", NEW), 0);
    fixture_await_ready(fixture.client, 1);
}

SERVER_TEST(a_client_that_is_closed_takes_none)
{
    quorlock_client *client = fixture_new_client(1);
    int closed = 0;

    fixture_start_close(client, &closed);
    assert_status(quorlock_client_set_credentials(client, "a", "b"), QUORLOCK_ERR_CLOSED);
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
    assert_int_equal(quorlock_sync_client_set_credentials(sync_client, "default", "wrong", NULL), 0);
    for (int i = 0; i < 3; i++) {
        server_do(SERVER(i), "CONFIG SET requirepass secret");
        SERVER(i)->password = "secret";
        server_do(SERVER(i), "CLIENT KILL TYPE normal SKIPME yes");
    }
    assert_int_not_equal(quorlock_sync_lock_extend(lock, 0, NULL), QUORLOCK_OK);
    assert_int_equal(quorlock_sync_client_set_credentials(sync_client, NULL, "secret", NULL), 0);
    while (quorlock_sync_lock_extend(lock, 0, NULL) != QUORLOCK_OK) {
        assert_true(clock_us() < until_us);
        usleep(10000);
    }
    assert_int_equal(quorlock_sync_lock_release(lock, NULL), QUORLOCK_OK);
    quorlock_sync_lock_free(lock);
    assert_int_equal(quorlock_sync_client_close(sync_client), 0);
}
