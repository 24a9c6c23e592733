/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/link/uri.h"
#include "test.h"

struct good_row {
    const char *text;
    enum uri_kind kind;
    const char *host;
    unsigned port, db;
    const char *user, *password, *name;
};

static const struct good_row good_rows[] = {
    {"127.0.0.1", URI_NUMERIC, "127.0.0.1", 6379, 0, NULL, NULL, "127.0.0.1:6379"},
    {"127.0.0.1:7000", URI_NUMERIC, "127.0.0.1", 7000, 0, NULL, NULL, "127.0.0.1:7000"},
    {"redis.example", URI_NAME, "redis.example", 6379, 0, NULL, NULL, "redis.example:6379"},
    {"Redis_1.Example.:65535", URI_NAME, "redis_1.example", 65535, 0, NULL, NULL, "redis_1.example:65535"},
    {"[::1]", URI_NUMERIC, "::1", 6379, 0, NULL, NULL, "[::1]:6379"},
    {"[0:0:0::1]:1", URI_NUMERIC, "::1", 1, 0, NULL, NULL, "[::1]:1"},
    {"[::ffff:10.0.0.1]:1", URI_NUMERIC, "10.0.0.1", 1, 0, NULL, NULL, "10.0.0.1:1"},
    {"redis://h", URI_NAME, "h", 6379, 0, NULL, NULL, "h:6379"},
    {"REDIS://h/", URI_NAME, "h", 6379, 0, NULL, NULL, "h:6379"},
    {"redis://h:1/3", URI_NAME, "h", 1, 3, NULL, NULL, "h:1/3"},
    {"redis://h:1/0", URI_NAME, "h", 1, 0, NULL, NULL, "h:1"},
    {"redis://:secret@h", URI_NAME, "h", 6379, 0, NULL, "secret", "h:6379"},
    {"redis://bob@h", URI_NAME, "h", 6379, 0, "bob", NULL, "h:6379"},
    {"redis://bob:@h", URI_NAME, "h", 6379, 0, "bob", NULL, "h:6379"},
    {"redis://:@h", URI_NAME, "h", 6379, 0, NULL, NULL, "h:6379"},
    {"redis://bob:s%40c%2fr:t@h:2/1", URI_NAME, "h", 2, 1, "bob", "s@c/r:t", "h:2/1"},
    {"redis://b%6fb:a@b@h", URI_NAME, "h", 6379, 0, "bob", "a@b", "h:6379"},
    {"redis://:%2F%3a%4Af@h", URI_NAME, "h", 6379, 0, NULL, "/:Jf", "h:6379"},
    {"redis://u:p@[2001:DB8::2]:5/2", URI_NUMERIC, "2001:db8::2", 5, 2, "u", "p", "[2001:db8::2]:5/2"},
    {"valkey://u:p@H:1/3", URI_NAME, "h", 1, 3, "u", "p", "h:1/3"},
    {"Valkeys://h", URI_NAME, "h", 6379, 0, NULL, NULL, "rediss://h:6379"},
    {"[FE80:0::1%enP1]", URI_NAME, "fe80::1%enP1", 6379, 0, NULL, NULL, "[fe80::1%enP1]:6379"},
    {"redis://u:p@[fe80::1%25br-lan.7]:5/2", URI_NAME, "fe80::1%br-lan.7", 5, 2, "u", "p", "[fe80::1%br-lan.7]:5/2"},
    {"valkeys://[febf::1%2]", URI_NAME, "febf::1%2", 6379, 0, NULL, NULL, "rediss://[febf::1%2]:6379"},
    {"[fe80::1%25]", URI_NAME, "fe80::1%25", 6379, 0, NULL, NULL, "[fe80::1%2525]:6379"},
    {"[fe80::1%25251]", URI_NAME, "fe80::1%251", 6379, 0, NULL, NULL, "[fe80::1%25251]:6379"},
    {"rediss://h", URI_NAME, "h", 6379, 0, NULL, NULL, "rediss://h:6379"},
    {"Rediss://u:p@[::1]:7/1", URI_NUMERIC, "::1", 7, 1, "u", "p", "rediss://[::1]:7/1"},
    {"unix:///run/redis.sock", URI_UNIX, "/run/redis.sock", 0, 0, NULL, NULL, "unix:///run/redis.sock"},
    {"unix:///run/a%20b?db=2", URI_UNIX, "/run/a b", 0, 2, NULL, NULL, "unix:///run/a b?db=2"},
    {"unix://u:p%3f@/run/s", URI_UNIX, "/run/s", 0, 0, "u", "p?", "unix:///run/s"},
};

static void assert_text(const char *got, const char *wanted)
{
    if (wanted != NULL)
        assert_string_equal(got != NULL ? got : "(null)", wanted);
    else
        assert_null(got);
}

TEST(good_addresses_are_read)
{
    for (size_t i = 0; i < LENGTH(good_rows); i++) {
        const struct good_row *row = &good_rows[i];
        struct uri uri;
        char error[256] = "untouched";

        if (uri_parse(&uri, &memory, row->text, error, sizeof(error)) != 0) fail_msg("%s: %s", row->text, error);
        assert_string_equal(error, "untouched");
        assert_int_equal(uri.kind, row->kind);
        assert_text(uri.host, row->host);
        assert_int_equal(uri.port, row->port);
        assert_int_equal(uri.db, row->db);
        assert_text(uri.user, row->user);
        assert_text(uri.password, row->password);
        assert_text(uri.name, row->name);
        assert_int_equal(uri.tls, strncmp(row->name, "rediss://", strlen("rediss://")) == 0);
        uri_clear(&uri, &memory);
        assert_null(uri.password);
    }
}

struct bad_row {
    const char *text;
    int status;
    const char *shown;  /* the value as the error shows it */
    const char *remedy; /* a part of the error */
};

static const struct bad_row bad_rows[] = {
    {"", QUORLOCK_ERR_INVAL, "address: ", "redis://"},
    {"redis://", QUORLOCK_ERR_INVAL, "\"redis://\"", "no host"},
    {":6379", QUORLOCK_ERR_INVAL, "address: ", "no host"},
    {"h:", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"h:0", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"H:65536", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"h:99999999999999999999", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"h:+1", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"h:6379x", QUORLOCK_ERR_INVAL, "\"h\"", "1 to 65535"},
    {"::1", QUORLOCK_ERR_INVAL, "address: ", "[::1]:6379"},
    {"[::1", QUORLOCK_ERR_INVAL, "address: ", "not closed"},
    {"[::1]x", QUORLOCK_ERR_INVAL, "address: ", ":port"},
    {"[::1]:x", QUORLOCK_ERR_INVAL, "\"[::1]\"", "1 to 65535"},
    {"[::g]", QUORLOCK_ERR_INVAL, "\"[::g]\"", "IPv6"},
    {"[fe80::1]", QUORLOCK_ERR_INVAL, "\"[fe80::1]\"", "needs its interface behind it: [fe80::1%eth0]"},
    {"[fe80::1%]", QUORLOCK_ERR_INVAL, "\"[fe80::1]\"", "the name of an interface"},
    {"[fe80::1%a/b]:1", QUORLOCK_ERR_INVAL, "address", "bracket"},
    {"redis://[fe80::1%%ses]", QUORLOCK_ERR_INVAL, "\"redis://[fe80::1]\"", "the name of an interface"},
    {"[fe80::1%a234567890123456]", QUORLOCK_ERR_INVAL, "[fe80::1", "the name of an interface"},
    {"[2001:db8::1%eth0]", QUORLOCK_ERR_INVAL, "\"[2001:db8::1]\"", "only allowed behind a link-local"},
    {"[::1%lo]", QUORLOCK_ERR_INVAL, "\"[::1]\"", "only allowed behind a link-local"},
    {"fe80::1%eth0", QUORLOCK_ERR_INVAL, "address: ", "[::1]:6379"},
    {"[127.0.0.1]", QUORLOCK_ERR_INVAL, "\"[127.0.0.1]\"", "IPv6"},
    {"127.0.0.256", QUORLOCK_ERR_INVAL, "\"127.0.0.256\"", "neither"},
    {"127.1", QUORLOCK_ERR_INVAL, "\"127.1\"", "neither"},
    {"a..b", QUORLOCK_ERR_INVAL, "\"a..b\"", "neither"},
    {"a b", QUORLOCK_ERR_INVAL, "address: ", "neither"},
    {"h\nx", QUORLOCK_ERR_INVAL, "address: ", "neither"},
    {"u@h", QUORLOCK_ERR_INVAL, "address: ", "redis://"},
    {"h/2", QUORLOCK_ERR_INVAL, "\"h\"", "redis://"},
    {"http://h", QUORLOCK_ERR_INVAL, "\"http://\"", "scheme"},
    {"quorlok://h", QUORLOCK_ERR_INVAL, "\"quorlok://\"", "scheme"},
    {"redi://h", QUORLOCK_ERR_INVAL, "\"redi://\"", "scheme"},
    {"unixs://h", QUORLOCK_ERR_INVAL, "\"unixs://\"", "scheme"},
    {".", QUORLOCK_ERR_INVAL, "\".\"", "neither"},
    {"redis://h/x", QUORLOCK_ERR_INVAL, "\"redis://h\"", "database"},
    {"redis://h/-1", QUORLOCK_ERR_INVAL, "\"redis://h\"", "database"},
    {"redis://h/99999999", QUORLOCK_ERR_INVAL, "\"redis://h\"", "database"},
    {"redis://h?x=1", QUORLOCK_ERR_INVAL, "\"redis://h\"", "are not allowed"},
    {"unix://run/x", QUORLOCK_ERR_INVAL, "\"unix://\"", "absolute"},
    {"unix:///", QUORLOCK_ERR_INVAL, "\"unix://", "no path"},
    {"unix:///x?y=1", QUORLOCK_ERR_INVAL, "\"unix:///x\"", "?db=N"},
    {"unix:///x?db=", QUORLOCK_ERR_INVAL, "\"unix:///x\"", "database"},
    /* Passwords, in every kind of wrong address. */
    {"redis://:sesame@", QUORLOCK_ERR_INVAL, "\"redis://\"", "no host"},
    {"redis://bob:sesame@h:x", QUORLOCK_ERR_INVAL, "\"redis://h\"", "1 to 65535"},
    {"redis://bob:sesame@h:1/x", QUORLOCK_ERR_INVAL, "\"redis://h\"", "database"},
    {"redis://bob:sesame@127.1", QUORLOCK_ERR_INVAL, "\"redis://127.1\"", "neither"},
    {"redis://bob:ses/ame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "%2F"},
    {"redis://bob:ses%zzame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:ses%00ame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:ses%2:ame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:ses%2`ame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:ses%2game@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:ses%2Game@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob:sesame%4@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the password, % must"},
    {"redis://bob%:sesame@h", QUORLOCK_ERR_INVAL, "\"redis://h\"", "in the user, % must"},
    {"redis://:sesame", QUORLOCK_ERR_INVAL, "\"redis://\"", "no host"},
    {"rediss://bob:sesame@h:x", QUORLOCK_ERR_INVAL, "\"rediss://h\"", "1 to 65535"},
    {"http://bob:sesame@h", QUORLOCK_ERR_INVAL, "\"http://\"", "scheme"},
    {"bob:sesame@h", QUORLOCK_ERR_INVAL, "address: ", "redis://"},
    {"unix://bob:sesame@x", QUORLOCK_ERR_INVAL, "\"unix://\"", "absolute"},
    {"unix://bob:ses/ame@/x", QUORLOCK_ERR_INVAL, "\"unix://\"", "absolute"},
    {"unix://bob:ses%zzame@/x", QUORLOCK_ERR_INVAL, "\"unix:///x\"", "in the password, % must"},
    {"unix:///x?password=sesame", QUORLOCK_ERR_INVAL, "\"unix:///x\"", "?db=N"},
    /* The @host was forgotten, or the comma between two addresses. */
    {"redis://bob:sesame", QUORLOCK_ERR_INVAL, "\"redis://bob\"", "port"},
    {"redis://bob:sesame/1", QUORLOCK_ERR_INVAL, "\"redis://bob\"", "port"},
    {"redis://bob:sesame?x", QUORLOCK_ERR_INVAL, "\"redis://bob\"", "port"},
    {"redis://bob:se:same", QUORLOCK_ERR_INVAL, "\"redis://\"", "more than one colon"},
    {"bob:sesame", QUORLOCK_ERR_INVAL, "\"bob\"", "port"},
    {"bob:sesame@h1;redis://h2", QUORLOCK_ERR_INVAL, "address: ", "@"},
    {"bob:sesame@h1 redis://bob:sesame@h2", QUORLOCK_ERR_INVAL, "address: ", "@"},
    {"redis://bob:sesame@h1;redis://h2", QUORLOCK_ERR_INVAL, "\"redis://\"", "neither"},
    {"redis://bob:sesame@h1;redis://bob:sesame@h2", QUORLOCK_ERR_INVAL, "\"redis://h2\"", "%2F"},
    {"redis://bob:o@pen sesame", QUORLOCK_ERR_INVAL, "\"redis://\"", "neither"},
    {"unix://bob:sesame", QUORLOCK_ERR_INVAL, "\"unix://\"", "absolute"},
    {"sesame;redis://h", QUORLOCK_ERR_INVAL, "address: ", "host"},
};

TEST(bad_addresses_are_refused_without_a_password_in_the_error)
{
    for (size_t i = 0; i < LENGTH(bad_rows); i++) {
        const struct bad_row *row = &bad_rows[i];
        struct uri uri, before;
        char error[512] = "";
        int status;

        memset(&uri, 0x5a, sizeof(uri));
        memcpy(&before, &uri, sizeof(uri));
        status = uri_parse(&uri, &memory, row->text, error, sizeof(error));
        if (status != row->status) fail_msg("%s: status %d", row->text, status);
        if (strstr(error, row->shown) == NULL) fail_msg("%s: error shows another value: %s", row->text, error);
        if (strstr(error, row->remedy) == NULL) fail_msg("%s: error without \"%s\": %s", row->text, row->remedy, error);
        if (strstr(error, "ses") != NULL || strstr(error, "same") != NULL)
            fail_msg("a part of a password in: %s", error);
        assert_memory_equal(&uri, &before, sizeof(uri));
    }
}

TEST(addresses_that_are_too_long_are_refused)
{
    struct uri uri;
    char text[6000], error[512];

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(error, "longer"));
    text[300] = '\0';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(error, "too long"));
    /* Of short labels. */
    for (size_t i = 9; i < 300; i += 10) text[i] = '.';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_ERR_INVAL);
    memset(text, 'a', 300);
    text[64] = '\0'; /* a label may have 63 */
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_ERR_INVAL);
    text[63] = '\0';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_OK);
    uri_clear(&uri, &memory);
    memset(text, 'a', sizeof(text));
    memcpy(text, "unix:///", 8);
    text[7 + 107] = '\0';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_OK);
    uri_clear(&uri, &memory);
    text[7 + 107] = 'a';
    text[7 + 108] = '\0';
    assert_int_equal(uri_parse(&uri, &memory, text, error, sizeof(error)), QUORLOCK_ERR_INVAL);
    assert_non_null(strstr(error, "107"));
}

TEST(the_error_text_may_be_left_out)
{
    struct uri uri;

    assert_int_equal(uri_parse(&uri, &memory, NULL, NULL, 0), QUORLOCK_ERR_INVAL);
    assert_int_equal(uri_parse(&uri, &memory, "h:x", NULL, 0), QUORLOCK_ERR_INVAL);
}

static bool same(const char *one_text, const char *other_text)
{
    struct uri one, other;
    bool result;

    assert_int_equal(uri_parse(&one, &memory, one_text, NULL, 0), 0);
    assert_int_equal(uri_parse(&other, &memory, other_text, NULL, 0), 0);
    result = uri_same(&one, &other);
    assert_int_equal(result, uri_same(&other, &one));
    uri_clear(&one, &memory);
    uri_clear(&other, &memory);
    return result;
}

TEST(addresses_of_one_server_are_the_same)
{
    assert_true(same("h", "redis://H.:6379/4"));
    assert_true(same("redis://a:b@h", "redis://h"));
    assert_true(same("valkey://h", "redis://h"));
    assert_true(same("valkeys://h", "rediss://h"));
    assert_true(same("[fe80::1%25eth0]", "[FE80::1%eth0]"));
    assert_false(same("[fe80::1%eth0]", "[fe80::1%eth1]"));
    assert_true(same("[::1]:1", "[0::0:1]:1"));
    assert_true(same("[::ffff:1.2.3.4]", "1.2.3.4"));
    assert_true(same("unix:///x", "unix:///x?db=1"));
    assert_false(same("h:1", "h:2"));
    assert_false(same("h", "i"));
    assert_false(same("unix:///x", "unix:///y"));
    assert_false(same("unix:///x", "x"));
}

TEST(whatever_allocation_fails_nothing_leaks)
{
    struct counted counted = {0};
    const struct alloc_hooks hooks = counted_hooks(&counted);
    struct alloc alloc;
    int status = QUORLOCK_ERR_NOMEM;
    long n = 0;

    alloc_init(&alloc, &hooks);
    for (; status == QUORLOCK_ERR_NOMEM; n++) {
        struct uri uri;
        char error[256];

        assert_true(n < 20);
        counted.until_failure = n;
        status = uri_parse(&uri, &alloc, "redis://bob:sesame@h:1/2", error, sizeof(error));
        if (status == QUORLOCK_OK) uri_clear(&uri, &alloc);
        assert_int_equal(counted.out, 0);
    }
    assert_int_equal(status, QUORLOCK_OK);
    assert_int_equal(n, 5); /* user, password, host and name failed, and then none */
}

TEST(user_and_password_are_given_to_an_address_that_has_neither)
{
    static const struct {
        const char *address, *user, *password, *wanted_user, *wanted_password;
    } cases[] = {
        {"host", "u", "p%41", "u", "p%41"},       {"redis://host", NULL, "p", NULL, "p"},
        {"unix:///run/s", "u", "", "u", NULL},    {"host", "", NULL, NULL, NULL},
        {"redis://a@host", "u", "p", "a", NULL},  {"redis://:b@host", "u", "p", NULL, "b"},
        {"redis://a:b@host", "u", "p", "a", "b"},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct alloc alloc;
        struct uri uri = {0};
        char error[200];

        alloc_init(&alloc, NULL);
        assert_int_equal(uri_parse(&uri, &alloc, cases[i].address, error, sizeof(error)), 0);
        assert_int_equal(uri_log_in(&uri, &alloc, cases[i].user, cases[i].password), 0);
        assert_int_equal(uri.user == NULL, cases[i].wanted_user == NULL);
        if (uri.user != NULL) assert_string_equal(uri.user, cases[i].wanted_user);
        assert_int_equal(uri.password == NULL, cases[i].wanted_password == NULL);
        if (uri.password != NULL) assert_string_equal(uri.password, cases[i].wanted_password);
        uri_clear(&uri, &alloc);
    }
}

TEST(an_address_keeps_its_own_login_and_takes_each_other_one_that_it_is_given)
{
    struct counted counted = {.until_failure = -1};
    const struct alloc_hooks hooks = counted_hooks(&counted);
    struct alloc alloc;
    struct uri own = {0}, given = {0};
    char error[200];

    alloc_init(&alloc, &hooks);
    assert_int_equal(uri_parse(&own, &alloc, "redis://:b@host", error, sizeof(error)), 0);
    assert_int_equal(uri_parse(&given, &alloc, "host", error, sizeof(error)), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(uri_log_in(&own, &alloc, "u", "p"), 0);
        assert_true(uri_logs_in_with(&own, NULL, "b"));
        assert_int_equal(uri_log_in(&given, &alloc, i == 0 ? "u" : NULL, i == 0 ? "p" : "q"), 0);
        assert_true(uri_logs_in_with(&given, i == 0 ? "u" : "", i == 0 ? "p" : "q"));
        assert_false(uri_logs_in_with(&given, NULL, "p"));
    }
    /* Without memory nothing changes. */
    for (long n = 0; n < 2; n++) {
        counted.until_failure = n;
        assert_int_equal(uri_log_in(&given, &alloc, "v", "r"), QUORLOCK_ERR_NOMEM);
        assert_true(uri_logs_in_with(&given, "", "q"));
    }
    counted.until_failure = -1;
    uri_clear(&own, &alloc);
    uri_clear(&given, &alloc);
    assert_int_equal(counted.out, 0);
}
