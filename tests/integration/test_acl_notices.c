/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_acl_notices.c - the rights that quorlock doctor --acl prints are those of a client with several waiters, too
 *
 * The command has one waiter: it ends its connection instead of leaving a channel. So test_acl.py cannot see that the
 * right to UNSUBSCRIBE is needed.
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

/* How often a server has refused an UNSUBSCRIBE. */
static long long refusals(void)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++)
        n += server_ask_number(SERVER(i), "EVAL %s 0",
                               "return tonumber(string.match(redis.call('INFO', 'commandstats'), "
                               "'cmdstat_unsubscribe:[^\\r\\n]*rejected_calls=(%d+)') or 0)");
    return n;
}

static bool is_deaf(void *key)
{
    return listeners(key) == 0;
}

static bool is_refused(void *before)
{
    return refusals() > *(const long long *)before;
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
    before = refusals();
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
    assert_int_equal(refusals(), before);
    fixture_close(fixture.client);
    give_rights("-unsubscribe");
    before = leave_one_of_two(seen);
    await(is_refused, &before, GENEROUS_MS, "it is refused");
}
