/* SPDX-License-Identifier: BSD-3-Clause */
/* test_settings.c - the options of a client from environment and files, and errors in the words of the command */
#include <event2/event.h>
#include <quorlock/quorlock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/login.h"
#include "test.h"

/* A folder with a configuration file and a password file, an empty environment, and what was loaded. */
struct settings_fixture {
    char folder[64], file[96], secret[96];
    struct quorlock_error error;
    quorlock_settings *settings;
    struct quorlock_client_options options;
    struct event_base *base;
};

static const char *const variables[] = {"QUORLOCK_CONFIG",    "QUORLOCK_SET",          "QUORLOCK_NODES",
                                        "QUORLOCK_USER",      "QUORLOCK_PASSWORD",     "XDG_CONFIG_HOME",
                                        "QUORLOCK_TLS_CA",    "QUORLOCK_PREFIX",       "QUORLOCK_TLS_CERT",
                                        "QUORLOCK_TLS_KEY",   "QUORLOCK_TLS_NAME",     "HOME",
                                        "QUORLOCK_MAX_LEASE", "QUORLOCK_PASSWORD_FILE"};

static int settings_fixture_begin(void **state)
{
    struct settings_fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    for (size_t i = 0; i < LENGTH(variables); i++) unsetenv(variables[i]);
    snprintf(f->folder, sizeof(f->folder), "/tmp/quorlock-settings-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->file, sizeof(f->file), "%s/config", f->folder);
    snprintf(f->secret, sizeof(f->secret), "%s/secret", f->folder);
    f->options.size = sizeof(f->options);
    f->base = event_base_new();
    assert_non_null(f->base);
    *state = f;
    return 0;
}

static int settings_fixture_end(void **state)
{
    struct settings_fixture *f = *state;

    quorlock_settings_free(f->settings);
    event_base_free(f->base);
    unlink(f->file);
    unlink(f->secret);
    rmdir(f->folder);
    free(f);
    return 0;
}

#define SETTINGS_TEST(name) TEST_WITH(settings_fixture, name, settings_fixture_begin, settings_fixture_end)

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void load(struct settings_fixture *f, const char *text, const char *set)
{
    write_file(f->file, text);
    if (quorlock_settings_load(&f->settings, f->file, set, &f->error) != 0) fail_msg("%s", f->error.text);
    assert_int_equal(quorlock_settings_options(f->settings, &f->options, &f->error), 0);
}

static void refuse(struct settings_fixture *f, const char *text, const char *set, const char *error)
{
    quorlock_settings_free(f->settings);
    f->settings = NULL;
    if (text != NULL) write_file(f->file, text);
    assert_int_equal(quorlock_settings_load(&f->settings, f->file, set, &f->error), QUORLOCK_ERR_INVAL);
    assert_null(f->settings);
    assert_contains(f->error.text, error);
}

SETTINGS_TEST(a_file_gives_options_and_a_set_goes_before_the_rest)
{
    load(
        f,
        "user = app\npassword = secret\nnodes = other:1\nlabel = web\n"
        "[set production]\n"
        "nodes = rediss://a:1, valkeys://b:2,c:3\ntls-ca = /ca\ntls-cert = /cert\ntls-key = /key\ntls-name = name\n"
        "policy = all\ndialect = redisson\nguard = strict\nmax-lease = 1m\nnode-timeout = 200ms\nconnect-timeout = 4s\n"
        "prefix = app:\nset-name = three\nallow-eviction = yes\n",
        "production");
    assert_int_equal(f->options.n_nodes, 3);
    assert_string_equal(f->options.nodes[0], "rediss://a:1");
    assert_string_equal(f->options.nodes[1], "valkeys://b:2");
    assert_string_equal(f->options.nodes[2], "c:3");
    assert_string_equal(f->options.user, "app");
    assert_string_equal(f->options.password, "secret");
    assert_null(f->options.credentials);
    assert_string_equal(f->options.tls_ca, "/ca");
    assert_string_equal(f->options.tls_cert, "/cert");
    assert_string_equal(f->options.tls_key, "/key");
    assert_string_equal(f->options.tls_name, "name");
    assert_int_equal(f->options.policy, QUORLOCK_POLICY_ALL);
    assert_int_equal(f->options.dialect, QUORLOCK_DIALECT_REDISSON);
    assert_int_equal(f->options.guard, QUORLOCK_GUARD_STRICT);
    assert_int_equal(f->options.max_lease_ms, 60000);
    assert_int_equal(f->options.node_timeout_ms, 200);
    assert_int_equal(f->options.connect_timeout_ms, 4000);
    assert_string_equal(f->options.key_prefix, "app:");
    assert_string_equal(f->options.owner_label, "web");
    assert_string_equal(f->options.set_name, "three");
    assert_int_equal(f->options.allow_eviction, 1);
}

SETTINGS_TEST(variables_go_before_files_and_are_copied)
{
    static char prefix[] = "QUORLOCK_PREFIX=app:";

    assert_int_equal(putenv(prefix), 0);
    setenv("QUORLOCK_NODES", "a:1,b:2", 1);
    setenv("QUORLOCK_PASSWORD", "of the variable", 1);
    load(f, "nodes = c:3\npassword = of the file\n", NULL);
    memset(prefix + strlen("QUORLOCK_PREFIX="), 'x', 4);
    assert_int_equal(f->options.n_nodes, 2);
    assert_string_equal(f->options.nodes[1], "b:2");
    assert_string_equal(f->options.password, "of the variable");
    assert_string_equal(f->options.key_prefix, "app:");
}

SETTINGS_TEST(without_anything_there_are_the_default_nodes_and_no_label)
{
    load(f, "", NULL);
    assert_int_equal(f->options.n_nodes, 3);
    assert_string_equal(f->options.nodes[2], "127.0.0.1:6381");
    assert_null(f->options.owner_label);
    assert_int_equal(f->options.max_lease_ms, 0);
}

SETTINGS_TEST(keys_of_locks_and_of_the_command_are_checked_only)
{
    load(f, "lease = 1s\nwait = forever\nfence = yes\nin-flight = 3\nseconds = 2\n", NULL);
    refuse(f, "lease = 1\n", NULL, "/config:1: lease: \"1\" has no unit: write 250ms, 30s or 2m");
}

SETTINGS_TEST(a_password_file_is_read_again)
{
    char text[256];
    quorlock_credentials login = {.given = false};

    write_file(f->secret, "first\n");
    snprintf(text, sizeof(text), "user = app\npassword-file = %s\n", f->secret);
    load(f, text, NULL);
    assert_string_equal(f->options.password, "first");
    write_file(f->secret, "second\n");
    assert_int_equal(f->options.credentials(&login, "node", f->options.credentials_arg), 0);
    assert_string_equal(login.user, "app");
    assert_string_equal(login.password, "second");
    unlink(f->secret);
    assert_int_equal(f->options.credentials(&login, "node", f->options.credentials_arg), QUORLOCK_ERR_STATE);
    assert_contains(login.why, "No such file");
    refuse(f, NULL, NULL, "/secret\": No such file or directory");
}

SETTINGS_TEST(a_login_is_short_enough_or_refused_with_a_reason)
{
    static char text[LOGIN_PASSWORD_MAX + 2];
    quorlock_credentials login = {.given = false};

    memset(text, 'x', sizeof(text) - 1);
    assert_int_equal(quorlock_credentials_set(&login, NULL, text), QUORLOCK_ERR_INVAL);
    assert_false(login.given);
    assert_string_equal(login.why, "the password has 16385 bytes: at most 16384");
    assert_int_equal(quorlock_credentials_set(&login, text + LOGIN_PASSWORD_MAX - LOGIN_USER_MAX, NULL),
                     QUORLOCK_ERR_INVAL);
    assert_string_equal(login.why, "the user has 1025 bytes: at most 1024");
    assert_int_equal(quorlock_credentials_set(&login, text + LOGIN_PASSWORD_MAX + 1 - LOGIN_USER_MAX, text + 1), 0);
    assert_true(login.given);
    assert_int_equal(strlen(login.user), LOGIN_USER_MAX);
    assert_int_equal(strlen(login.password), LOGIN_PASSWORD_MAX);
    assert_int_equal(quorlock_credentials_set(&login, NULL, ""), 0);
    assert_string_equal(login.user, "");
    assert_string_equal(login.password, "");
    assert_int_equal(quorlock_credentials_refuse(&login, NULL), QUORLOCK_ERR_STATE);
    assert_false(login.given);
}

SETTINGS_TEST(a_password_of_the_caller_is_not_replaced_by_the_file)
{
    char text[256];
    quorlock_client *client = NULL;

    write_file(f->secret, "of the file\n");
    snprintf(text, sizeof(text), "nodes = 127.0.0.1:1\npassword-file = %s\n", f->secret);
    load(f, text, NULL);
    f->options.password = "of the program";
    assert_int_equal(quorlock_client_new(&client, f->base, &f->options, &f->error), QUORLOCK_ERR_INVAL);
    assert_contains(f->error.text, "set credentials to NULL, too");
    f->options.credentials = NULL;
    assert_int_equal(quorlock_client_new(&client, f->base, &f->options, &f->error), 0);
    assert_int_equal(quorlock_client_close(client, NULL, NULL), 0);
    assert_true(event_base_dispatch(f->base) >= 0);
}

/* What other programs permit in such a file is named as the cause of the error. */
SETTINGS_TEST(quotes_marks_and_comments_behind_values_are_named)
{
    static const char quotes[] = "has quotes around", comment[] = "a comment is a line of its own, which begins with #";
    static const struct {
        const char *text, *place, *cause;
    } cases[] = {
        {"lease = \"30s\"\n", "/config:1: lease ", quotes},
        {"nodes = 'a:1,b:2'\n", "/config:1: nodes ", quotes},
        {"\n[set a]\nlabel = \"web\"\n", "/config:3: label ", quotes},
        {"password = \"hidden\"\n", "/config:1: password ", "password-file"},
        {"max-lease = 30s # long\n", "/config:1: max-lease: ", comment},
        {"policy = all\t# of them\n", "/config:1: policy: ", comment},
        {"allow-eviction = no  # never\n", "/config:1: allow-eviction: ", comment},
        {"nodes = a:1,b:2 # and c\n", "/config:1: nodes: address 3 of 5 begins with a quote or with #", comment},
        {"\xef\xbb\xbfnodes = a:1\n", "/config:1: ", "byte order mark (BOM)"},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        refuse(f, cases[i].text, NULL, cases[i].place);
        assert_contains(f->error.text, cases[i].cause);
        assert_int_equal(times_in(f->error.text, "hidden"), 0);
    }
    /* They are a part of the value here. */
    load(f, "password = \"a\nlabel = web #1\nprefix = a'b\n", NULL);
    assert_string_equal(f->options.password, "\"a");
    assert_string_equal(f->options.owner_label, "web #1");
    assert_string_equal(f->options.key_prefix, "a'b");
    setenv("QUORLOCK_NODES", "\"a:1,b:2\"", 1);
    refuse(f, "", NULL, "QUORLOCK_NODES: address 1 of 2 begins with a quote or with #: write addresses without quotes");
}

SETTINGS_TEST(a_password_file_with_a_byte_order_mark_is_refused)
{
    char text[256];

    write_file(f->secret, "\xef\xbb\xbfhidden\n");
    snprintf(text, sizeof(text), "nodes = a:1\npassword-file = %s\n", f->secret);
    refuse(f, text, NULL, "it begins with a byte order mark (BOM): save it as UTF-8 without one");
    assert_int_equal(times_in(f->error.text, "hidden"), 0);
}

SETTINGS_TEST(commas_or_blanks_separate_addresses)
{
    static const char *const texts[] = {"a:1 b:2 c:3", "a:1,b:2,c:3", " a:1, b:2 ,c:3, ", "a:1\tb:2,  c:3",
                                        "a:1 b:2 , c:3 ,"};

    for (size_t i = 0; i < LENGTH(texts); i++) {
        setenv("QUORLOCK_NODES", texts[i], 1);
        f->options = (struct quorlock_client_options){.size = sizeof(f->options)};
        load(f, "", NULL);
        assert_int_equal(f->options.n_nodes, 3);
        assert_string_equal(f->options.nodes[0], "a:1");
        assert_string_equal(f->options.nodes[1], "b:2");
        assert_string_equal(f->options.nodes[2], "c:3");
        quorlock_settings_free(f->settings);
        f->settings = NULL;
    }
}

SETTINGS_TEST(errors_name_variable_or_line_and_show_no_password)
{
    refuse(f, "nodes = a:1\njson = yes\n", NULL, "/config:2: json is no key of a file");
    refuse(f, "nodes = redis://u:hid den@a:1,b:2\n", NULL, "/config:1: nodes: address 2 of 3 has an @");
    refuse(f, "nodes = redis://u:hidden@a:1,,b:2\n", NULL, "/config:1: nodes: address 2 of 3 is empty");
    assert_int_equal(times_in(f->error.text, "hidden"), 0);
    refuse(f, "[set a]\n[set b]\n", "c", "set: \"c\" is no set of the configuration files, which have a, b");
    assert_int_equal(times_in(f->error.text, "--"), 0);
    setenv("QUORLOCK_MAX_LEASE", "2", 1);
    refuse(f, "", NULL, "QUORLOCK_MAX_LEASE: \"2\" has no unit");
    unlink(f->file);
    refuse(f, NULL, NULL, "/config: No such file or directory");
    setenv("QUORLOCK_CONFIG", "redis://u:hidden@a:1", 1);
    assert_int_equal(quorlock_settings_load(&f->settings, NULL, NULL, &f->error), QUORLOCK_ERR_INVAL);
    assert_string_equal(f->error.text,
                        "\"redis://...\" is an address, not a configuration file: write nodes URI,URI,...");
    assert_int_equal(quorlock_settings_load(&f->settings, NULL, NULL, NULL), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_settings_load(NULL, NULL, NULL, &f->error), QUORLOCK_ERR_INVAL);
    assert_string_equal(f->error.text, "ret is NULL: there is no place for the settings");
}

SETTINGS_TEST(no_value_is_lost_without_an_error)
{
    struct quorlock_client_options options = {.size = sizeof(options), .max_lease_ms = 5000};

    load(f, "connect-timeout = 4s\n", NULL);
    assert_int_equal(quorlock_settings_options(f->settings, &options, &f->error), QUORLOCK_ERR_INVAL);
    assert_int_equal(options.max_lease_ms, 5000);
    assert_contains(f->error.text, "options->max_lease_ms is set already");
    options.max_lease_ms = 0;
    /* A program that was built before connect_timeout_ms was there. */
    options.size = offsetof(struct quorlock_client_options, connect_timeout_ms);
    assert_int_equal(quorlock_settings_options(f->settings, &options, &f->error), QUORLOCK_ERR_INVAL);
    assert_null(options.nodes);
    assert_contains(f->error.text, "gives connect_timeout_ms");
    quorlock_settings_free(f->settings);
    f->settings = NULL;
    f->options = (struct quorlock_client_options){.size = sizeof(f->options)};
    load(f, "", NULL);
    assert_int_equal(quorlock_settings_options(f->settings, &options, &f->error), 0);
    assert_int_equal(options.size, offsetof(struct quorlock_client_options, connect_timeout_ms));
    assert_int_equal(options.n_nodes, 3);
    assert_int_equal(quorlock_settings_options(NULL, &options, &f->error), QUORLOCK_ERR_INVAL);
    assert_int_equal(quorlock_settings_options(f->settings, NULL, &f->error), QUORLOCK_ERR_INVAL);
}

SETTINGS_TEST(bytes_between_members_are_nobodys)
{
    union {
        struct quorlock_client_options options;
        char bytes[sizeof(struct quorlock_client_options)];
    } padded = {.options = {.size = sizeof(padded.options)}};

    load(f, "", NULL);
    if (sizeof(void *) != 8) skip();
    padded.bytes[offsetof(struct quorlock_client_options, log) - 1] = 'x';
    assert_int_equal(quorlock_settings_options(f->settings, &padded.options, &f->error), 0);
}

SETTINGS_TEST(a_client_without_options_has_the_settings)
{
    quorlock_client *client = NULL;
    struct quorlock_client_options empty = {.size = sizeof(empty)};

    setenv("QUORLOCK_CONFIG", f->file, 1);
    write_file(f->file, "nodes = 127.0.0.1:1\nmax-lease = 1s\n");
    assert_int_equal(quorlock_client_new(&client, f->base, NULL, &f->error), 0);
    assert_int_equal(quorlock_client_close(client, NULL, NULL), 0);
    assert_true(event_base_dispatch(f->base) >= 0);
    write_file(f->file, "nodes = 127.0.0.1:1\nset-name = a|b\n");
    assert_int_equal(quorlock_client_new(&client, f->base, NULL, &f->error), QUORLOCK_ERR_INVAL);
    write_file(f->file, "nodes\n");
    assert_int_equal(quorlock_client_new(&client, f->base, NULL, &f->error), QUORLOCK_ERR_INVAL);
    /* A list of nodes that is empty by mistake is no wish for others. */
    assert_int_equal(quorlock_client_new(&client, f->base, &empty, &f->error), QUORLOCK_ERR_INVAL);
    assert_contains(f->error.text, "0 node addresses");
}
