/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/options.h"
#include "core/validity.h"

#define MS 1000ull

static const char *const nodes[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
static struct options_error error;

static struct quorlock_client_options plain_client(void)
{
    return (struct quorlock_client_options){.size = sizeof(struct quorlock_client_options),
                                            .nodes = nodes,
                                            .n_nodes = 3,
                                            .guard = QUORLOCK_GUARD_OFF};
}

static struct quorlock_options plain_lock(void)
{
    return (struct quorlock_options){.size = sizeof(struct quorlock_options)};
}

/* The text names what is wrong. */
static void assert_said(const char *part)
{
    if (!strstr(error.text, part)) fail_msg("'%s' is not in '%s'", part, error.text);
}

static void refuses_client(const struct quorlock_client_options *options, int status, const char *part)
{
    struct quorlock_client_options ret;
    struct quorlock_client_options before;

    memset(&ret, 0x5a, sizeof(ret));
    memcpy(&before, &ret, sizeof(ret));
    error.text[0] = '\0';
    assert_int_equal(options_client(&ret, options, &error), status);
    assert_said(part);
    assert_memory_equal(&ret, &before, sizeof(ret));
}

static struct quorlock_client_options takes_client(const struct quorlock_client_options *options)
{
    struct quorlock_client_options ret;

    if (options_client(&ret, options, &error) != 0) fail_msg("refused: %s", error.text);
    return ret;
}

static int check_lock(struct core_config *ret, const struct quorlock_client_options *client, const char *key,
                      const struct quorlock_options *options)
{
    struct quorlock_client_options checked = takes_client(client);

    error.text[0] = '\0';
    return options_lock(ret, &checked, &key, 1, options, &error);
}

static void refuses_lock(const struct quorlock_client_options *client, const struct quorlock_options *options,
                         int status, const char *part)
{
    struct core_config config;

    assert_int_equal(check_lock(&config, client, "key", options), status);
    assert_said(part);
}

static struct core_config takes_lock(const struct quorlock_client_options *client,
                                     const struct quorlock_options *options)
{
    struct core_config config;

    if (check_lock(&config, client, "key", options) != 0) fail_msg("refused: %s", error.text);
    return config;
}

/* ---- the client ---- */

static void client_defaults(void **state)
{
    struct quorlock_client_options given = plain_client();
    struct quorlock_client_options options = takes_client(&given);

    (void)state;
    assert_int_equal(options.max_lease_ms, 30000);
    assert_int_equal(options.drift_ppm, 10000);
    assert_int_equal(options.drift_fixed_ms, 2);
    assert_int_equal(options.reconnect_min_ms, 50);
    assert_int_equal(options.reconnect_max_ms, 2000);
    assert_int_equal(options.node_timeout_ms, 0);
}

static void quorums(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= QUORLOCK_NODES_MAX; n++) {
        uint32_t quorum = options_quorum(QUORLOCK_MAJORITY, n);

        /* Two quorums always meet, and it takes no node more than that. */
        assert_true(2 * quorum > n);
        assert_true(2 * (quorum - 1) <= n);
        assert_int_equal(options_quorum(QUORLOCK_ALL, n), n);
    }
}

static void number_of_nodes(void **state)
{
    struct quorlock_client_options options = plain_client();

    (void)state;
    options.n_nodes = 0;
    refuses_client(&options, QUORLOCK_INVAL, "is 0");
    options.n_nodes = QUORLOCK_NODES_MAX + 1;
    refuses_client(&options, QUORLOCK_INVAL, "32");
    options = plain_client();
    options.nodes = NULL;
    refuses_client(&options, QUORLOCK_INVAL, "node");
    refuses_client(NULL, QUORLOCK_INVAL, "NULL");
}

/* What an older or a newer caller hands in. */
static void sizes(void **state)
{
    struct {
        struct quorlock_client_options options;
        unsigned char newer[16];
    } longer = {.options = plain_client()};
    struct quorlock_client_options options = plain_client();

    (void)state;
    longer.options.size = sizeof(longer);
    takes_client(&longer.options);
    longer.newer[15] = 1;
    refuses_client(&longer.options, QUORLOCK_INVAL, "non-zero");
    options.size = 0;
    refuses_client(&options, QUORLOCK_INVAL, "size");
    /* What lies behind an older caller's struct is none of ours. */
    options = plain_client();
    options.size = offsetof(struct quorlock_client_options, max_lease_ms);
    options.max_lease_ms = 12345;
    assert_int_equal(takes_client(&options).max_lease_ms, 30000);
}

struct kind_row {
    int policy, dialect, guard;
    int status;
    const char *said;
};

static void kinds(void **state)
{
    static const struct kind_row rows[] = {
        {7, 0, 0, QUORLOCK_INVAL, "policy is 7"},
        {-1, 0, 0, QUORLOCK_INVAL, "policy is -1"},
        {0, 5, 0, QUORLOCK_INVAL, "dialect is 5"},
        {0, -1, 0, QUORLOCK_INVAL,
         "dialect is -1: it must be QUORLOCK_DIALECT_PLAIN or QUORLOCK_DIALECT_REDISSON"},
        {0, 0, 9, QUORLOCK_INVAL, "guard is 9"},
        {0, 0, -1, QUORLOCK_INVAL, "guard is -1"},
    };
    struct quorlock_client_options options = plain_client();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        options.policy = rows[i].policy;
        options.dialect = rows[i].dialect;
        options.guard = rows[i].guard;
        refuses_client(&options, rows[i].status, rows[i].said);
    }
    options = plain_client();
    options.policy = QUORLOCK_ALL;
    takes_client(&options);
}

/* With and without a guard the caller says the largest lease, or it is the default: it is never asked for. */
static void guards(void **state)
{
    static const int guards[] = {QUORLOCK_GUARD_OFF, QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT};
    struct quorlock_client_options options = plain_client();
    struct quorlock_options lock = plain_lock();

    (void)state;
    for (size_t i = 0; i < sizeof(guards) / sizeof(guards[0]); i++) {
        options = plain_client();
        options.guard = guards[i];
        assert_int_equal(takes_client(&options).guard, guards[i]);
        assert_int_equal(takes_client(&options).max_lease_ms, 30000);
        assert_false(options_max_lease_given(&options));
        options.max_lease_ms = QUORLOCK_LEASE_MS_MIN - 1;
        refuses_client(&options, QUORLOCK_INVAL, "max_lease_ms is 9");
        options.max_lease_ms = 5000;
        assert_int_equal(takes_client(&options).max_lease_ms, 5000);
        assert_true(options_max_lease_given(&options));
        /* Behind what an older caller knows. */
        options.size = offsetof(struct quorlock_client_options, max_lease_ms);
        assert_false(options_max_lease_given(&options));
    }
    options = plain_client();
    options.guard = QUORLOCK_GUARD_DEFAULT;
    assert_int_equal(takes_client(&options).guard, QUORLOCK_GUARD_CONNECTION);
    lock.lease_ms = 30001;
    refuses_lock(&options, &lock, QUORLOCK_INVAL, "lease_ms is 30001");
}

static void set_names(void **state)
{
    struct quorlock_client_options options = plain_client();
    char name[66];

    (void)state;
    options.set_name = "";
    refuses_client(&options, QUORLOCK_INVAL, "set_name");
    options.set_name = "a|b";
    refuses_client(&options, QUORLOCK_INVAL, "a|b");
    memset(name, 'n', sizeof(name));
    name[65] = '\0';
    options.set_name = name;
    refuses_client(&options, QUORLOCK_INVAL, "64");
    name[64] = '\0';
    takes_client(&options);
}

static void client_times(void **state)
{
    struct quorlock_client_options options = plain_client();

    (void)state;
    options.max_lease_ms = QUORLOCK_LEASE_MS_MIN - 1;
    refuses_client(&options, QUORLOCK_INVAL, "max_lease_ms is 9");
    options.max_lease_ms = QUORLOCK_LEASE_MS_MAX + 1;
    refuses_client(&options, QUORLOCK_INVAL, "max_lease_ms is 86400001");
    options.max_lease_ms = QUORLOCK_LEASE_MS_MAX;
    takes_client(&options);
    options = plain_client();
    options.drift_ppm = 1000000;
    refuses_client(&options, QUORLOCK_INVAL, "drift_ppm is 1000000");
    options = plain_client();
    options.drift_fixed_ms = UINT32_MAX;
    refuses_client(&options, QUORLOCK_INVAL, "drift_fixed_ms is 4294967295");
    options = plain_client();
    options.node_timeout_ms = UINT32_MAX;
    refuses_client(&options, QUORLOCK_INVAL, "node_timeout_ms is 4294967295");
    options = plain_client();
    options.reconnect_min_ms = 300;
    options.reconnect_max_ms = 200;
    refuses_client(&options, QUORLOCK_INVAL, "200");
    options.reconnect_min_ms = 5000;
    options.reconnect_max_ms = 0;
    assert_int_equal(takes_client(&options).reconnect_max_ms, 5000);
}

static void labels(void **state)
{
    struct quorlock_client_options options = plain_client();
    char label[OPTIONS_LABEL_MAX + 2];

    (void)state;
    memset(label, 'x', sizeof(label));
    label[sizeof(label) - 1] = '\0';
    options.owner_label = label;
    refuses_client(&options, QUORLOCK_INVAL, "65");
    label[OPTIONS_LABEL_MAX] = '\0';
    takes_client(&options);
    options.owner_label = "two words";
    refuses_client(&options, QUORLOCK_INVAL, "0x20");
    options.owner_label = "line\n";
    refuses_client(&options, QUORLOCK_INVAL, "0x0a");
    options.owner_label = "\xc3\xa4";
    refuses_client(&options, QUORLOCK_INVAL, "0xc3");
    options.owner_label = "host:4711:";
    takes_client(&options);
}

static void *allocate(void *arg, size_t size)
{
    (void)arg;
    (void)size;
    return NULL;
}

static void *reallocate(void *arg, void *block, size_t size)
{
    (void)arg;
    (void)block;
    (void)size;
    return NULL;
}

static void release(void *arg, void *block)
{
    (void)arg;
    (void)block;
}

static void half_an_allocator(void **state)
{
    struct quorlock_client_options options = plain_client();
    const struct quorlock_allocator half = {.size = sizeof(half), .allocate = allocate};

    (void)state;
    options.allocator = &half;
    refuses_client(&options, QUORLOCK_INVAL, "reallocate");
}

static void an_allocator_says_its_size(void **state)
{
    struct {
        struct quorlock_allocator known;
        size_t newer;
    } hooks = {.known = {.allocate = allocate, .reallocate = reallocate, .release = release}};
    struct quorlock_client_options options = plain_client();

    (void)state;
    options.allocator = &hooks.known;
    refuses_client(&options, QUORLOCK_INVAL, "quorlock_allocator.size is 0");
    hooks.known.size = sizeof(hooks);
    takes_client(&options);
    hooks.newer = 1;
    refuses_client(&options, QUORLOCK_INVAL, "quorlock_allocator has a non-zero byte");
    hooks.known.size = sizeof(hooks.known);
    takes_client(&options);
}

/* ---- the lock ---- */

static void lock_defaults(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options given = plain_lock();
    struct core_config config = takes_lock(&client, &given);

    (void)state;
    assert_int_equal(config.n_nodes, 3);
    assert_int_equal(config.quorum, 2);
    assert_int_equal(config.lease_us, 30000 * MS);
    assert_int_equal(config.renew_us, 10000 * MS);
    assert_int_equal(config.node_timeout_us, 1000 * MS);
    assert_int_equal(config.wait_us, 0);
    assert_int_equal(config.min_valid_us, 0);
    assert_int_equal(config.lost_margin_us, 0);
    assert_true(config.max_hold_us == CORE_NEVER);
    assert_int_equal(config.drift_ppm, 10000);
    assert_int_equal(config.drift_fixed_us, 2 * MS);
    assert_false(config.fencing);
    config = takes_lock(&client, NULL);
    assert_int_equal(config.lease_us, 30000 * MS);
    client.max_lease_ms = 3000;
    assert_int_equal(takes_lock(&client, &given).lease_us, 3000 * MS);
    assert_int_equal(takes_lock(&client, &given).node_timeout_us, 300 * MS);
}

static void never_and_forever(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();
    struct core_config config;

    (void)state;
    options.wait_ms = QUORLOCK_WAIT_FOREVER;
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    options.max_hold_ms = 7;
    config = takes_lock(&client, &options);
    assert_true(config.wait_us == CORE_NEVER);
    assert_true(config.renew_us == CORE_NEVER);
    assert_int_equal(config.max_hold_us, 7 * MS);
    options.wait_ms = UINT32_MAX - 1;
    assert_int_equal(takes_lock(&client, &options).wait_us, (uint64_t)(UINT32_MAX - 1) * MS);
}

static void leases(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    options.lease_ms = QUORLOCK_LEASE_MS_MIN - 1;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "lease_ms is 9");
    options.lease_ms = 30001;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "lease_ms is 30001");
    options.lease_ms = UINT32_MAX;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "lease_ms is 4294967295");
    client.max_lease_ms = QUORLOCK_LEASE_MS_MAX;
    options.lease_ms = QUORLOCK_LEASE_MS_MAX;
    assert_int_equal(takes_lock(&client, &options).lease_us, (uint64_t)QUORLOCK_LEASE_MS_MAX * MS);
}

/* With defaults every allowed lease leaves room for a renewal that fails and one that does not. */
static void defaults_fit_every_lease(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    client.max_lease_ms = QUORLOCK_LEASE_MS_MAX;
    for (uint32_t lease_ms = QUORLOCK_LEASE_MS_MIN; lease_ms < QUORLOCK_LEASE_MS_MAX;
         lease_ms = lease_ms < 2000 ? lease_ms + 1 : lease_ms * 2) {
        struct core_config config;
        uint64_t margin_us;
        uint64_t useful_us;

        options.lease_ms = lease_ms;
        config = takes_lock(&client, &options);
        margin_us = config.lost_margin_us;
        if (margin_us == 0) {
            margin_us = validity_lost_margin_us(config.lease_us, config.drift_ppm, config.drift_fixed_us);
        }
        useful_us =
            config.lease_us - validity_allowance_us(config.lease_us, config.drift_ppm, config.drift_fixed_us);
        assert_true(config.node_timeout_us >= MS);
        assert_true(config.renew_us + 2 * config.node_timeout_us + margin_us <= useful_us);
        /* The bounds that are promised, where there is room for them. */
        if (lease_ms >= 400) assert_true(config.node_timeout_us >= 50 * MS && config.lost_margin_us == 0);
        assert_true(config.node_timeout_us <= 1000 * MS);
    }
}

/* What the caller chose is never bent, but refused: the limit of each value, and one above it. */
static void chosen_values_are_refused_where_they_do_not_fit(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    client.node_timeout_ms = 100;
    options.lease_ms = 1000; /* 12 ms of it for drift */
    options.lost_margin_ms = 88;
    options.renew_ms = 700;
    assert_int_equal(takes_lock(&client, &options).renew_us, 700 * MS);
    options.renew_ms = 701;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "701");
    options.renew_ms = 700;
    options.lost_margin_ms = 89;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "89");
    options.lost_margin_ms = 88;
    client.node_timeout_ms = 101;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "101");
    options.renew_ms = UINT32_MAX - 1;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "4294967294");
}

static void without_renewal_only_the_margin_must_fit(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    client.node_timeout_ms = 5000;
    options.lease_ms = 1000;
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    options.lost_margin_ms = 987;
    takes_lock(&client, &options);
    options.lost_margin_ms = 988;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "988");
}

static void min_valid_above_the_lease(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    options.lease_ms = 1000;
    options.min_valid_ms = 1000;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "min_valid_ms is 1000");
    options.min_valid_ms = 500;
    assert_int_equal(takes_lock(&client, &options).min_valid_us, 500 * MS);
}

static void drift_that_eats_the_lease(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    client.drift_fixed_ms = 60000;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "drift");
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "drift");
}

static void owners(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();
    char name[QUORLOCK_OWNER_LENGTH_MAX + 2];

    (void)state;
    assert_null(options_owner(NULL));
    assert_null(options_owner(&options));
    options.owner = "me";
    (void)takes_lock(&client, &options);
    assert_string_equal(options_owner(&options), "me");
    options.owner = "";
    refuses_lock(&client, &options, QUORLOCK_INVAL, "owner is empty");
    memset(name, 'o', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    options.owner = name;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "256");
    name[QUORLOCK_OWNER_LENGTH_MAX] = '\0';
    (void)takes_lock(&client, &options);
    /* Behind what an older caller knows. */
    options.size = offsetof(struct quorlock_options, owner);
    assert_null(options_owner(&options));
    name[QUORLOCK_OWNER_LENGTH_MAX] = 'o';
    (void)takes_lock(&client, &options);
}

static void fencing(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_options options = plain_lock();

    (void)state;
    assert_int_equal(options_fence_ttl_ms(NULL), QUORLOCK_FENCE_TTL_MS);
    assert_int_equal(options_fence_ttl_ms(&options), QUORLOCK_FENCE_TTL_MS);
    options.fencing = 1;
    options.fence_ttl_ms = 30000;
    assert_true(takes_lock(&client, &options).fencing);
    assert_int_equal(options_fence_ttl_ms(&options), 30000);
    /* A lease may become as long as the longest, by an extend: no counter may end before it. */
    options.fence_ttl_ms = 29999;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "fence_ttl_ms is 29999: at least max_lease_ms, 30000");
    options.fence_ttl_ms = 1;
    refuses_lock(&client, &options, QUORLOCK_INVAL, "fence_ttl_ms is 1");
    client.max_lease_ms = 29999;
    options.fence_ttl_ms = 29999;
    options.lease_ms = 1000;
    assert_true(takes_lock(&client, &options).fencing);
    /* Behind what an older caller knows. */
    options.size = offsetof(struct quorlock_options, fence_ttl_ms);
    assert_int_equal(options_fence_ttl_ms(&options), QUORLOCK_FENCE_TTL_MS);
}

static void lock_sizes(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct {
        struct quorlock_options options;
        unsigned char newer[8];
    } longer = {.options = plain_lock()};

    (void)state;
    longer.options.size = sizeof(longer);
    takes_lock(&client, &longer.options);
    longer.newer[0] = 1;
    refuses_lock(&client, &longer.options, QUORLOCK_INVAL, "non-zero");
    longer.options.size = 1;
    refuses_lock(&client, &longer.options, QUORLOCK_INVAL, "size");
}

static void keys(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_client_options checked = takes_client(&client);
    char key[QUORLOCK_KEY_LENGTH_MAX + 2];

    (void)state;
    assert_int_equal(options_key("", &checked, &error), QUORLOCK_INVAL);
    assert_said("empty");
    assert_int_equal(options_key(NULL, &checked, &error), QUORLOCK_INVAL);
    assert_int_equal(options_key("quorlock:guard", &checked, &error), QUORLOCK_INVAL);
    assert_said("quorlock:");
    assert_int_equal(options_key("quorlock", &checked, &error), 0);
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = '\0';
    assert_int_equal(options_key(key, &checked, &error), QUORLOCK_INVAL);
    assert_said("1025");
    key[QUORLOCK_KEY_LENGTH_MAX] = '\0';
    assert_int_equal(options_key(key, &checked, &error), 0);
}

static void several_keys(void **state)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_client_options checked = takes_client(&client);
    const char *const two[] = {"a", "b"};
    const char *const twice[] = {"a", "b", "c", "b"};
    const char *const one_bad[] = {"a", "quorlock:b"};
    char names[QUORLOCK_KEYS_MAX + 1][8];
    const char *many[QUORLOCK_KEYS_MAX + 1];
    struct core_config config;

    (void)state;
    assert_int_equal(options_lock(&config, &checked, two, 2, NULL, &error), 0);
    assert_int_equal(options_lock(&config, &checked, two, 0, NULL, &error), QUORLOCK_INVAL);
    assert_int_equal(options_lock(&config, &checked, NULL, 1, NULL, &error), QUORLOCK_INVAL);
    assert_int_equal(options_lock(&config, &checked, twice, 4, NULL, &error), QUORLOCK_INVAL);
    assert_said("keys 2 and 4 are the same, \"b\"");
    assert_int_equal(options_lock(&config, &checked, one_bad, 2, NULL, &error), QUORLOCK_INVAL);
    assert_said("quorlock:b");
    for (size_t i = 0; i <= QUORLOCK_KEYS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", i);
        many[i] = names[i];
    }
    assert_int_equal(options_lock(&config, &checked, many, QUORLOCK_KEYS_MAX, NULL, &error), 0);
    assert_int_equal(options_lock(&config, &checked, many, QUORLOCK_KEYS_MAX + 1, NULL, &error),
                     QUORLOCK_INVAL);
    assert_said("65");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_defaults),
        cmocka_unit_test(quorums),
        cmocka_unit_test(number_of_nodes),
        cmocka_unit_test(sizes),
        cmocka_unit_test(kinds),
        cmocka_unit_test(guards),
        cmocka_unit_test(set_names),
        cmocka_unit_test(client_times),
        cmocka_unit_test(labels),
        cmocka_unit_test(half_an_allocator),
        cmocka_unit_test(an_allocator_says_its_size),
        cmocka_unit_test(lock_defaults),
        cmocka_unit_test(never_and_forever),
        cmocka_unit_test(leases),
        cmocka_unit_test(defaults_fit_every_lease),
        cmocka_unit_test(chosen_values_are_refused_where_they_do_not_fit),
        cmocka_unit_test(without_renewal_only_the_margin_must_fit),
        cmocka_unit_test(min_valid_above_the_lease),
        cmocka_unit_test(drift_that_eats_the_lease),
        cmocka_unit_test(owners),
        cmocka_unit_test(fencing),
        cmocka_unit_test(lock_sizes),
        cmocka_unit_test(keys),
        cmocka_unit_test(several_keys),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
