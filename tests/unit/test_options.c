/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/election.h>
#include <stdio.h>
#include <string.h>

#include "core/validity.h"
#include "runtime/options.h"
#include "test.h"

#define MS 1000ull

static const char *const nodes[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};
static struct quorlock_error error;

static struct quorlock_client_options plain_client(void)
{
    return (struct quorlock_client_options){
        .size = sizeof(struct quorlock_client_options), .nodes = nodes, .n_nodes = 3, .guard = QUORLOCK_GUARD_OFF};
}

static struct quorlock_lock_options plain_lock(void)
{
    return (struct quorlock_lock_options){.size = sizeof(struct quorlock_lock_options)};
}

/* The text names what is wrong. */
static void assert_said(const char *part)
{
    if (strstr(error.text, part) == NULL) fail_msg("'%s' is not in '%s'", part, error.text);
}

static void refuses_client(const struct quorlock_client_options *options, const char *part)
{
    struct quorlock_client_options ret;
    struct quorlock_client_options before;

    memset(&ret, 0x5a, sizeof(ret));
    memcpy(&before, &ret, sizeof(ret));
    error.text[0] = '\0';
    assert_int_equal(options_client(&ret, options, &error), QUORLOCK_ERR_INVAL);
    assert_said(part);
    assert_memory_equal(&ret, &before, sizeof(ret));
}

static struct quorlock_client_options takes_client(const struct quorlock_client_options *options)
{
    struct quorlock_client_options ret;

    if (options_client(&ret, options, &error) != 0) fail_msg("refused: %s", error.text);
    return ret;
}

static struct quorlock_lock_options checked_lock; /* by the check before */

static int check_lock(struct core_config *ret, const struct quorlock_client_options *client, const char *key,
                      const struct quorlock_lock_options *options)
{
    struct quorlock_client_options checked = takes_client(client);

    error.text[0] = '\0';
    return options_lock(ret, &checked_lock, &checked, &key, 1, options, &error);
}

static void refuses_lock(const struct quorlock_client_options *client, const struct quorlock_lock_options *options,
                         const char *part)
{
    struct core_config config;

    assert_int_equal(check_lock(&config, client, "key", options), QUORLOCK_ERR_INVAL);
    assert_said(part);
}

static struct core_config takes_lock(const struct quorlock_client_options *client,
                                     const struct quorlock_lock_options *options)
{
    struct core_config config;

    if (check_lock(&config, client, "key", options) != 0) fail_msg("refused: %s", error.text);
    return config;
}

/* ---- the environment ---- */

TEST(a_seed_in_the_environment_is_a_number)
{
    static const struct {
        const char *text;
        uint64_t seed; /* 0 where it is refused, or says nothing */
        bool refused;
    } seeds[] = {
        {NULL, 0, false},
        {"", 0, false},
        {"0", 0, false},
        {"1", 1, false},
        {"42", 42, false},
        {"-1", 0, true},
        {"1.5", 0, true},
        {" 1", 0, true},
        {"0x1", 0, true},
        {"twelve", 0, true},
        {"99999999999999999999", 0, true},
    };

    for (size_t i = 0; i < LENGTH(seeds); i++) {
        uint64_t seed = 0;

        error.text[0] = '\0';
        assert_int_equal(options_buggify(&seed, seeds[i].text, &error), seeds[i].refused ? QUORLOCK_ERR_INVAL : 0);
        assert_true(seed == seeds[i].seed);
        if (seeds[i].refused) assert_said(seeds[i].text);
        if (seeds[i].refused) assert_said("QUORLOCK_BUGGIFY");
    }
}

/* ---- the client ---- */

TEST(a_client_has_these_defaults)
{
    struct quorlock_client_options given = plain_client();
    struct quorlock_client_options options = takes_client(&given);

    assert_int_equal(options.max_lease_ms, 30000);
    assert_int_equal(options.drift_ppm, 10000);
    assert_int_equal(options.drift_fixed_ms, 2);
    assert_int_equal(options.reconnect_min_ms, 50);
    assert_int_equal(options.reconnect_max_ms, 2000);
    assert_int_equal(options.node_timeout_ms, 0);
    assert_int_equal(options.connect_timeout_ms, 3000);
    given.node_timeout_ms = 5000;
    options = takes_client(&given);
    assert_int_equal(options.connect_timeout_ms, 5000);
}

TEST(a_majority_is_the_smallest_quorum_that_overlaps)
{
    for (uint32_t n = 1; n <= QUORLOCK_NODES_MAX; n++) {
        uint32_t quorum = options_quorum(QUORLOCK_POLICY_MAJORITY, n);

        /* The smallest number of which two always overlap. */
        assert_true(2 * quorum > n);
        assert_true(2 * (quorum - 1) <= n);
        assert_int_equal(options_quorum(QUORLOCK_POLICY_ALL, n), n);
    }
}

#define CLIENT .size = sizeof(struct quorlock_client_options), .nodes = nodes, .n_nodes = 3
#define TEN    "xxxxxxxxxx"
static const struct {
    struct quorlock_client_options options;
    const char *said; /* NULL: accepted */
} clients[] = {
    {{.size = sizeof(struct quorlock_client_options), .nodes = nodes}, "0 node addresses"},
    {{.size = sizeof(struct quorlock_client_options), .nodes = nodes, .n_nodes = QUORLOCK_NODES_MAX + 1}, "32"},
    {{.size = sizeof(struct quorlock_client_options), .n_nodes = 3}, "node"},
    {{CLIENT, .policy = 7}, "policy is 7"},
    {{CLIENT, .policy = -1}, "policy is -1"},
    {{CLIENT, .policy = QUORLOCK_POLICY_ALL}, NULL},
    {{CLIENT, .dialect = 5}, "dialect is 5"},
    {{CLIENT, .dialect = -1}, "dialect is -1: it must be QUORLOCK_DIALECT_PLAIN or QUORLOCK_DIALECT_REDISSON"},
    {{CLIENT, .guard = 9}, "guard is 9"},
    {{CLIENT, .guard = -1}, "guard is -1"},
    {{CLIENT, .set_name = ""}, "the set's name"},
    {{CLIENT, .set_name = "a|b"}, "a|b"},
    {{CLIENT, .set_name = TEN TEN TEN TEN TEN TEN "12345"}, "64"},
    {{CLIENT, .set_name = TEN TEN TEN TEN TEN TEN "1234"}, NULL},
    {{CLIENT, .max_lease_ms = QUORLOCK_LEASE_MS_MIN - 1}, "max_lease_ms is 9"},
    {{CLIENT, .max_lease_ms = QUORLOCK_LEASE_MS_MAX + 1}, "max_lease_ms is 86400001"},
    {{CLIENT, .max_lease_ms = QUORLOCK_LEASE_MS_MAX}, NULL},
    {{CLIENT, .drift_ppm = 1000000}, "drift_ppm is 1000000"},
    {{CLIENT, .drift_fixed_ms = UINT32_MAX}, "drift_fixed_ms is 4294967295"},
    {{CLIENT, .node_timeout_ms = 60001}, "node_timeout_ms is 60001: it must be 0 to 60000"},
    {{CLIENT, .node_timeout_ms = 60000, .connect_timeout_ms = 60000}, NULL},
    {{CLIENT, .connect_timeout_ms = 60001}, "connect_timeout_ms is 60001: it must be 1 to 60000"},
    {{CLIENT, .reconnect_min_ms = 300, .reconnect_max_ms = 200}, "200"},
    {{CLIENT, .reconnect_min_ms = UINT32_MAX}, "reconnect_min_ms is 4294967295: it must be 1 to 3600000"},
    {{CLIENT, .owner_label = TEN TEN TEN TEN TEN TEN "12345"}, "65"},
    {{CLIENT, .owner_label = TEN TEN TEN TEN TEN TEN "1234"}, NULL},
    {{CLIENT, .owner_label = "two words"}, "0x20"},
    {{CLIENT, .owner_label = "line\n"}, "0x0a"},
    {{CLIENT, .owner_label = "\xc3\xa4"}, "0xc3"},
    {{CLIENT, .owner_label = "host:4711:"}, NULL},
};

TEST(client_options_are_checked_one_by_one)
{
    struct quorlock_client_options options = plain_client();

    for (size_t i = 0; i < LENGTH(clients); i++) {
        if (clients[i].said != NULL) {
            refuses_client(&clients[i].options, clients[i].said);
        } else {
            takes_client(&clients[i].options);
        }
    }
    refuses_client(NULL, "NULL");
    options.reconnect_min_ms = 5000;
    assert_int_equal(takes_client(&options).reconnect_max_ms, 5000);
}

TEST(structs_of_older_and_newer_callers_are_read)
{
    struct {
        struct quorlock_client_options options;
        unsigned char newer[16];
    } longer = {.options = plain_client()};
    struct quorlock_client_options options = plain_client();

    longer.options.size = sizeof(longer);
    takes_client(&longer.options);
    longer.newer[15] = 1;
    refuses_client(&longer.options, "non-zero");
    options.size = 0;
    refuses_client(&options, "size");
    /* What lies behind the struct of an older caller is ignored. */
    options = plain_client();
    options.size = offsetof(struct quorlock_client_options, max_lease_ms);
    options.max_lease_ms = 12345;
    assert_int_equal(takes_client(&options).max_lease_ms, 30000);
}

TEST(max_lease_is_optional_under_every_guard)
{
    static const int guards[] = {QUORLOCK_GUARD_OFF, QUORLOCK_GUARD_CONNECTION, QUORLOCK_GUARD_STRICT};
    struct quorlock_client_options options = plain_client();
    struct quorlock_lock_options lock = plain_lock();

    for (size_t i = 0; i < LENGTH(guards); i++) {
        options = plain_client();
        options.guard = guards[i];
        assert_int_equal(takes_client(&options).guard, guards[i]);
        assert_int_equal(takes_client(&options).max_lease_ms, 30000);
        assert_false(options_max_lease_given(&options));
        options.max_lease_ms = QUORLOCK_LEASE_MS_MIN - 1;
        refuses_client(&options, "max_lease_ms is 9");
        options.max_lease_ms = 5000;
        assert_int_equal(takes_client(&options).max_lease_ms, 5000);
        assert_true(options_max_lease_given(&options));
        options.size = offsetof(struct quorlock_client_options, max_lease_ms);
        assert_false(options_max_lease_given(&options));
    }
    options = plain_client();
    options.guard = QUORLOCK_GUARD_DEFAULT;
    assert_int_equal(takes_client(&options).guard, QUORLOCK_GUARD_CONNECTION);
    lock.lease_ms = 30001;
    refuses_lock(&options, &lock, "the lease in ms is 30001");
}

TEST(the_label_of_a_lock_is_checked)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options lock = plain_lock();

    lock.label = TEN TEN TEN TEN TEN TEN "1234";
    takes_lock(&client, &lock);
    lock.label = TEN TEN TEN TEN TEN TEN "12345";
    refuses_lock(&client, &lock, "the label has 65 characters: at most 64");
    lock.label = "two words";
    refuses_lock(&client, &lock, "the label \"two words\" has the byte 0x20");
    lock.label = "";
    refuses_lock(&client, &lock, "the label is empty");
    lock.label = "host";
    client.dialect = QUORLOCK_DIALECT_REDISSON;
    refuses_lock(&client, &lock, "redisson");
}

/* ---- the lock ---- */

TEST(a_lock_has_these_defaults)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options given = plain_lock();
    struct core_config config = takes_lock(&client, &given);

    assert_int_equal(config.n_nodes, 3);
    assert_int_equal(config.quorum, 2);
    assert_int_equal(config.lease_us, 30000 * MS);
    assert_int_equal(config.holder.renew_us, 10000 * MS);
    assert_int_equal(config.node_timeout_us, 1000 * MS);
    assert_true(config.holder.wait_us == CORE_NEVER);
    assert_int_equal(config.holder.min_valid_us, 0);
    assert_int_equal(config.holder.lost_margin_us, 0);
    assert_true(config.holder.max_hold_us == CORE_NEVER);
    assert_int_equal(config.holder.keep_us, 0);
    assert_int_equal(config.drift_ppm, 10000);
    assert_int_equal(config.drift_fixed_us, 2 * MS);
    assert_false(config.fencing);
    config = takes_lock(&client, NULL);
    assert_int_equal(config.lease_us, 30000 * MS);
    client.max_lease_ms = 3000;
    assert_int_equal(takes_lock(&client, &given).lease_us, 3000 * MS);
    assert_int_equal(takes_lock(&client, &given).node_timeout_us, 300 * MS);
}

TEST(never_and_forever_are_passed_on)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();
    struct core_config config;

    options.renew_ms = QUORLOCK_RENEW_NEVER;
    options.max_hold_ms = 7;
    config = takes_lock(&client, &options);
    assert_true(config.holder.wait_us == CORE_NEVER);
    assert_true(config.holder.renew_us == CORE_NEVER);
    assert_int_equal(config.holder.max_hold_us, 7 * MS);
    options.wait_ms = QUORLOCK_TRY_ONCE;
    assert_int_equal(takes_lock(&client, &options).holder.wait_us, 0);
    options.wait_ms = UINT32_MAX - 1;
    assert_int_equal(takes_lock(&client, &options).holder.wait_us, (uint64_t)(UINT32_MAX - 1) * MS);
}

TEST(a_lease_is_at_most_max_lease)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    options.lease_ms = QUORLOCK_LEASE_MS_MIN - 1;
    refuses_lock(&client, &options, "the lease in ms is 9");
    options.lease_ms = 30001;
    refuses_lock(&client, &options, "the lease in ms is 30001");
    options.lease_ms = UINT32_MAX;
    refuses_lock(&client, &options, "the lease in ms is 4294967295");
    client.max_lease_ms = QUORLOCK_LEASE_MS_MAX;
    options.lease_ms = QUORLOCK_LEASE_MS_MAX;
    assert_int_equal(takes_lock(&client, &options).lease_us, (uint64_t)QUORLOCK_LEASE_MS_MAX * MS);
}

TEST(the_lease_covers_the_keep_time)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    options.keep_ms = 30000;
    assert_int_equal(takes_lock(&client, &options).holder.keep_us, 30000 * MS);
    options.keep_ms = 30001;
    refuses_lock(&client, &options, "keep_ms is 30001: at most max_lease_ms, 30000");
    client.max_lease_ms = 90000;
    options.keep_ms = 60000;
    assert_int_equal(takes_lock(&client, &options).lease_us, 60000 * MS);
    options.keep_ms = 10;
    assert_int_equal(takes_lock(&client, &options).lease_us, 30000 * MS);
    options.lease_ms = 1000;
    options.keep_ms = 1000;
    assert_int_equal(takes_lock(&client, &options).holder.keep_us, 1000 * MS);
    options.keep_ms = 1001;
    refuses_lock(&client, &options, "keep_ms is 1001, but the lease has only 1000 ms");
    client.max_lease_ms = 1000;
    options.lease_ms = 0;
    options.keep_ms = 1000;
    assert_int_equal(takes_lock(&client, &options).lease_us, 1000 * MS);
}

TEST(only_plain_exclusive_locks_are_kept)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();
    struct core_config config;

    options.keep_ms = 10;
    options.permits = 2;
    refuses_lock(&client, &options, "keep_ms is for exclusive locks");
    options.permits = 0;
    options.shared = QUORLOCK_SHARED_ALL;
    refuses_lock(&client, &options, "keep_ms is for exclusive locks");
    options.shared = 0;
    client.dialect = QUORLOCK_DIALECT_REDISSON;
    assert_int_equal(check_lock(&config, &client, "key", &options), QUORLOCK_ERR_UNSUPPORTED);
    assert_said("the redisson dialect has no keep_ms");
}

TEST(only_locks_of_the_plain_dialect_are_fair)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();
    struct core_config config;

    assert_int_equal(check_lock(&config, &client, "key", &options), QUORLOCK_OK);
    assert_false(config.fair);
    options.fair = 1;
    options.shared = QUORLOCK_SHARED_ALL;
    assert_int_equal(check_lock(&config, &client, "key", &options), QUORLOCK_OK);
    assert_true(config.fair && config.reads);
    options.shared = 0;
    options.permits = 2;
    assert_int_equal(check_lock(&config, &client, "key", &options), QUORLOCK_OK);
    assert_true(config.fair && config.permits == 2);
    options.permits = 0;
    client.dialect = QUORLOCK_DIALECT_REDISSON;
    assert_int_equal(check_lock(&config, &client, "key", &options), QUORLOCK_ERR_UNSUPPORTED);
    assert_said("the redisson dialect has no fair waiting");
}

/* Room for a renewal that fails and another that does not. */
TEST(the_defaults_fit_every_lease)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    client.max_lease_ms = QUORLOCK_LEASE_MS_MAX;
    for (uint32_t lease_ms = QUORLOCK_LEASE_MS_MIN; lease_ms < QUORLOCK_LEASE_MS_MAX;
         lease_ms = lease_ms < 2000 ? lease_ms + 1 : lease_ms * 2) {
        struct core_config config;
        uint64_t margin_us;
        uint64_t useful_us;

        options.lease_ms = lease_ms;
        config = takes_lock(&client, &options);
        margin_us = config.holder.lost_margin_us;
        if (margin_us == 0) {
            margin_us = validity_lost_margin_us(config.lease_us, config.drift_ppm, config.drift_fixed_us);
        }
        useful_us = config.lease_us - validity_allowance_us(config.lease_us, config.drift_ppm, config.drift_fixed_us);
        assert_true(config.node_timeout_us >= MS);
        assert_true(config.holder.renew_us + 2 * config.node_timeout_us + margin_us <= useful_us);
        /* The promised bounds, where there is room for them. */
        if (lease_ms >= 400) assert_true(config.node_timeout_us >= 50 * MS && config.holder.lost_margin_us == 0);
        assert_true(config.node_timeout_us <= 1000 * MS);
    }
}

/* At the limit of each value, and one above it. */
TEST(chosen_values_are_refused_where_they_do_not_fit)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    client.node_timeout_ms = 100;
    options.lease_ms = 1000; /* 12 ms of it for drift */
    options.lost_margin_ms = 88;
    options.renew_ms = 700;
    assert_int_equal(takes_lock(&client, &options).holder.renew_us, 700 * MS);
    options.renew_ms = 701;
    refuses_lock(&client, &options, "701");
    options.renew_ms = 700;
    options.lost_margin_ms = 89;
    refuses_lock(&client, &options, "89");
    options.lost_margin_ms = 88;
    client.node_timeout_ms = 101;
    refuses_lock(&client, &options, "101");
    options.renew_ms = UINT32_MAX - 1;
    refuses_lock(&client, &options, "4294967294");
}

TEST(without_renewal_only_the_margin_must_fit)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    client.node_timeout_ms = 5000;
    options.lease_ms = 1000;
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    options.lost_margin_ms = 987;
    takes_lock(&client, &options);
    options.lost_margin_ms = 988;
    refuses_lock(&client, &options, "988");
}

TEST(min_valid_is_below_the_lease)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    options.lease_ms = 1000;
    options.min_valid_ms = 1000;
    refuses_lock(&client, &options, "min_valid_ms is 1000");
    options.min_valid_ms = 500;
    assert_int_equal(takes_lock(&client, &options).holder.min_valid_us, 500 * MS);
}

TEST(drift_that_leaves_nothing_of_the_lease_is_refused)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    client.drift_fixed_ms = 60000;
    refuses_lock(&client, &options, "drift");
    options.renew_ms = QUORLOCK_RENEW_NEVER;
    refuses_lock(&client, &options, "drift");
}

TEST(the_longest_lost_margin_is_taken_and_a_longer_one_is_not)
{
    static const uint32_t leases_ms[] = {10, 100, 1000, 30000}, timeouts_ms[] = {0, 1, 100, 5000};
    static const uint32_t renewals_ms[] = {0, 1, 50, 400, QUORLOCK_RENEW_NEVER};
    size_t n_longest = 0;

    /* Each of four leases with each of four timeouts and five renewals. */
    for (size_t i = 0; i < 80; i++) {
        struct quorlock_client_options client = plain_client();
        struct quorlock_lock_options options = plain_lock();
        struct quorlock_client_options checked;
        uint32_t most_ms;

        client.node_timeout_ms = timeouts_ms[i / 4 % 4];
        checked = takes_client(&client);
        options.lease_ms = leases_ms[i % 4];
        options.renew_ms = renewals_ms[i / 16];
        most_ms = options_lost_margin_max_ms(&checked, options.lease_ms, options.renew_ms);
        options.lost_margin_ms = most_ms;
        if (most_ms > 0) {
            (void)takes_lock(&client, &options);
            n_longest++;
        }
        options.lost_margin_ms = most_ms + 1;
        refuses_lock(&client, &options, "lease");
    }
    assert_true(n_longest > 20);
}

TEST(an_owner_is_neither_empty_nor_too_long)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();
    char name[QUORLOCK_OWNER_LENGTH_MAX + 2];

    (void)takes_lock(&client, NULL);
    assert_null(checked_lock.owner);
    (void)takes_lock(&client, &options);
    assert_null(checked_lock.owner);
    options.owner = "me";
    (void)takes_lock(&client, &options);
    assert_string_equal(checked_lock.owner, "me");
    options.owner = "";
    refuses_lock(&client, &options, "owner is empty");
    memset(name, 'o', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    options.owner = name;
    refuses_lock(&client, &options, "256");
    name[QUORLOCK_OWNER_LENGTH_MAX] = '\0';
    (void)takes_lock(&client, &options);
    options.size = offsetof(struct quorlock_lock_options, owner);
    name[QUORLOCK_OWNER_LENGTH_MAX] = 'o';
    (void)takes_lock(&client, &options);
    assert_null(checked_lock.owner);
}

TEST(a_fence_counter_outlives_max_lease)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_lock_options options = plain_lock();

    (void)takes_lock(&client, NULL);
    assert_int_equal(checked_lock.fence_ttl_ms, QUORLOCK_FENCE_TTL_MS_DEFAULT);
    (void)takes_lock(&client, &options);
    assert_int_equal(checked_lock.fence_ttl_ms, QUORLOCK_FENCE_TTL_MS_DEFAULT);
    options.fencing = 1;
    options.fence_ttl_ms = 30000;
    assert_true(takes_lock(&client, &options).fencing);
    assert_int_equal(checked_lock.fence_ttl_ms, 30000);
    /* An extend may make a lease as long as max_lease_ms: no counter may end before it. */
    options.fence_ttl_ms = 29999;
    refuses_lock(&client, &options, "fence_ttl_ms is 29999: at least max_lease_ms, 30000");
    options.fence_ttl_ms = 1;
    refuses_lock(&client, &options, "fence_ttl_ms is 1");
    client.max_lease_ms = 29999;
    options.fence_ttl_ms = 29999;
    options.lease_ms = 1000;
    assert_true(takes_lock(&client, &options).fencing);
    options.size = offsetof(struct quorlock_lock_options, fence_ttl_ms);
    (void)takes_lock(&client, &options);
    assert_int_equal(checked_lock.fence_ttl_ms, QUORLOCK_FENCE_TTL_MS_DEFAULT);
}

/* init fills as many bytes as the caller has, and no more. */
#define EXPECT_DEFAULTS(struct_name)                                                                                   \
    do {                                                                                                               \
        const struct struct_name defaults = {.size = sizeof(defaults)};                                                \
        struct {                                                                                                       \
            struct struct_name options;                                                                                \
            unsigned char behind[8];                                                                                   \
        } made;                                                                                                        \
                                                                                                                       \
        memset(&made, 0xff, sizeof(made));                                                                             \
        struct_name##_init(&made.options, sizeof(made.options));                                                       \
        assert_memory_equal(&made.options, &defaults, sizeof(defaults));                                               \
        for (size_t i = 0; i < sizeof(made.behind); i++) assert_int_equal(made.behind[i], 0xff);                       \
    } while (0)

TEST(each_struct_of_options_can_be_filled_with_defaults)
{
    EXPECT_DEFAULTS(quorlock_client_options);
    EXPECT_DEFAULTS(quorlock_lock_options);
    EXPECT_DEFAULTS(quorlock_candidate_options);
    EXPECT_DEFAULTS(quorlock_observer_options);
    EXPECT_DEFAULTS(quorlock_bootstrap_options);
    EXPECT_DEFAULTS(quorlock_metrics_options);
}

TEST(lock_options_of_newer_callers_are_read)
{
    struct quorlock_client_options client = plain_client();
    struct {
        struct quorlock_lock_options options;
        unsigned char newer[8];
    } longer = {.options = plain_lock()};

    longer.options.size = sizeof(longer);
    takes_lock(&client, &longer.options);
    longer.newer[0] = 1;
    refuses_lock(&client, &longer.options, "non-zero");
    longer.options.size = 1;
    refuses_lock(&client, &longer.options, "size");
}

TEST(a_key_is_neither_empty_nor_too_long_nor_reserved)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_client_options checked = takes_client(&client);
    char key[QUORLOCK_KEY_LENGTH_MAX + 2];

    assert_int_equal(options_key("", &checked, &error), QUORLOCK_ERR_INVAL);
    assert_said("empty");
    assert_int_equal(options_key(NULL, &checked, &error), QUORLOCK_ERR_INVAL);
    assert_int_equal(options_key("quorlock:guard", &checked, &error), QUORLOCK_ERR_INVAL);
    assert_said("quorlock:");
    checked.key_prefix = "quor";
    assert_int_equal(options_key("lock:guard", &checked, &error), QUORLOCK_ERR_INVAL);
    checked.key_prefix = "p:";
    assert_int_equal(options_key("quorlock:fence:k", &checked, &error), QUORLOCK_ERR_INVAL);
    assert_said("\"p:quorlock:fence:k\"");
    checked.key_prefix = NULL;
    assert_int_equal(options_key("quorlock", &checked, &error), 0);
    memset(key, 'k', sizeof(key));
    key[sizeof(key) - 1] = '\0';
    assert_int_equal(options_key(key, &checked, &error), QUORLOCK_ERR_INVAL);
    assert_said("1025");
    key[QUORLOCK_KEY_LENGTH_MAX] = '\0';
    assert_int_equal(options_key(key, &checked, &error), 0);
    checked.key_prefix = "p";
    assert_int_equal(options_key(key, &checked, &error), QUORLOCK_ERR_INVAL);
    assert_said("the key has 1025 bytes with its prefix");
    key[QUORLOCK_KEY_LENGTH_MAX - 1] = '\0';
    assert_int_equal(options_key(key, &checked, &error), 0);
}

TEST(several_keys_are_all_different_and_not_too_many)
{
    struct quorlock_client_options client = plain_client();
    struct quorlock_client_options checked = takes_client(&client);
    const char *const two[] = {"a", "b"};
    const char *const twice[] = {"a", "b", "c", "b"};
    const char *const one_bad[] = {"a", "quorlock:b"};
    char names[QUORLOCK_KEYS_MAX + 1][8];
    const char *many[QUORLOCK_KEYS_MAX + 1];
    struct core_config config;

    assert_int_equal(options_lock(&config, &checked_lock, &checked, two, 2, NULL, &error), 0);
    assert_int_equal(options_lock(&config, &checked_lock, &checked, two, 0, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_int_equal(options_lock(&config, &checked_lock, &checked, NULL, 1, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_int_equal(options_lock(&config, &checked_lock, &checked, twice, 4, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_said("keys 2 and 4 are the same, \"b\"");
    assert_int_equal(options_lock(&config, &checked_lock, &checked, one_bad, 2, NULL, &error), QUORLOCK_ERR_INVAL);
    assert_said("quorlock:b");
    for (size_t i = 0; i <= QUORLOCK_KEYS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", i);
        many[i] = names[i];
    }
    assert_int_equal(options_lock(&config, &checked_lock, &checked, many, QUORLOCK_KEYS_MAX, NULL, &error), 0);
    assert_int_equal(options_lock(&config, &checked_lock, &checked, many, QUORLOCK_KEYS_MAX + 1, NULL, &error),
                     QUORLOCK_ERR_INVAL);
    assert_said("65");
}
