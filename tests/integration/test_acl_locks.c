/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_acl_locks.c - the rights that quorlock doctor --acl prints are those of a client with several locks, too
 *
 * The command has one lock. It ends its connection instead of leaving a channel, and has nothing to release together,
 * so test_acl.py cannot see what these rights are for.
 */
#include <stdlib.h>

#include "wait_fixture.h"

/* As a person does it: the line, and a password, into redis-cli. */
static void give_rights(const char *change)
{
    char line[2048] = "", command[TEXT_SIZE];
    FILE *doctor = popen(QUORLOCK_COMMAND " doctor --acl app 2>/dev/null", "r");

    assert_non_null(doctor);
    assert_non_null(fgets(line, sizeof(line), doctor));
    assert_int_equal(pclose(doctor), 0);
    for (uint32_t i = 0; i < 3; i++) {
        FILE *cli;

        snprintf(command, sizeof(command), "redis-cli -p %u | grep -cx OK | grep -qx 2", (unsigned)SERVER(i)->port);
        cli = popen(command, "w");
        assert_non_null(cli);
        fprintf(cli, "%sACL SETUSER app >geheim %s\n", line, change);
        assert_int_equal(pclose(cli), 0);
    }
}

/* How often the servers have refused that command. */
static long long refusals(const char *command)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++)
        n += server_ask_number(SERVER(i), "EVAL %s 0 cmdstat_%s:",
                               "for line in string.gmatch(redis.call('INFO', 'commandstats'), '[^\\r\\n]+') do "
                               "if string.find(line, ARGV[1], 1, true) == 1 then "
                               "return tonumber(string.match(line, 'rejected_calls=(%d+)')) end end return 0",
                               command);
    return n;
}

static bool is_deaf(void *key)
{
    return listeners(key) == 0;
}

static bool is_refused(void *before)
{
    return refusals("unsubscribe") > *(const long long *)before;
}

/* Waits for two keys, and gives one of them up. */
static long long leave_one_of_two(struct seen seen[2])
{
    static const char *const keys[] = {"one", "two"};
    quorlock *locks[2];
    long long before;

    fixture_client(3);
    for (int i = 0; i < 2; i++) {
        seen[i] = (struct seen){0};
        locks[i] = lasting_lock(fixture.client, keys[i], NULL);
        fixture_start_acquire(locks[i], &seen[i]);
        await_listeners(keys[i]);
    }
    before = refusals("unsubscribe");
    assert_int_equal(quorlock_cancel(locks[0]), 0);
    await_status(&seen[0], QUORLOCK_CANCELED, "it is canceled");
    return before;
}

SERVERS_TEST(a_client_that_leaves_a_channel_needs_unsubscribe)
{
    struct seen seen[2];
    char left[] = "one";
    long long before;

    frozen = NO_NODE;
    take_by_hand(3, "one", "peer");
    take_by_hand(3, "two", "peer");
    fixture_log_in("app:geheim@", "");
    give_rights("");
    before = leave_one_of_two(seen);
    await(is_deaf, left, GENEROUS_MS, "it has left the channel");
    assert_true(listeners("two") >= 2);
    assert_int_equal(refusals("unsubscribe"), before);
    fixture_close(fixture.client);
    give_rights("-unsubscribe");
    before = leave_one_of_two(seen);
    await(is_refused, &before, GENEROUS_MS, "it is refused");
}

/* Takes three locks, and releases them in one turn: the servers refuse this command, and no other one. */
static void release_together(const char *refused)
{
    static const char *const keys[] = {"one", "two", "three"};
    static const char *const commands[] = {"mget", "pubsub|numsub", "pubsub|numpat", "get", "del", "publish"};
    long long before[sizeof(commands) / sizeof(commands[0])];
    struct seen seen[3] = {{0}};
    quorlock *locks[3];

    fixture_client(3);
    for (int i = 0; i < 3; i++) {
        locks[i] = lasting_lock(fixture.client, keys[i], NULL);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
        seen[i] = (struct seen){0};
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) before[i] = refusals(commands[i]);
    for (int i = 0; i < 3; i++) fixture_start_release(locks[i], &seen[i]);
    for (int i = 0; i < 3; i++) await_status(&seen[i], QUORLOCK_OK, "it is released");
    for (int i = 0; i < 3; i++) await_free(keys[i]);
    fixture_close(fixture.client);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        assert_int_equal(refusals(commands[i]) > before[i], strcmp(commands[i], refused) == 0);
}

/* They only save work: without them the locks are released all the same, and the server logs a denial. */
SERVERS_TEST(locks_that_are_released_together_use_what_asks_for_all_at_once)
{
    static const char *const rights[] = {"mget", "pubsub|numsub", "pubsub|numpat"};

    fixture_log_in("app:geheim@", "");
    give_rights("");
    release_together("");
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        char change[64];

        snprintf(change, sizeof(change), "-%s", rights[i]);
        give_rights(change);
        release_together(rights[i]);
    }
}
