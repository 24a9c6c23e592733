/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_acl_locks.c - the rights that quorlock doctor --acl prints are those of a client with several locks, too
 *
 * The command has one lock. It ends its connection instead of leaving a channel, and has nothing to release together,
 * so test_acl.py cannot see what these rights are for.
 */
#include "wait_fixture.h"

#include <hiredis/hiredis.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What quorlock doctor --acl prints, without what it says. */
static void print_rights(char *line, size_t size)
{
    size_t used = 0;
    ssize_t n = 1;
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl(QUORLOCK_COMMAND, "quorlock", "--config", "/dev/null", "doctor", "--acl", "app", "--dialect",
              fixture.options.dialect == QUORLOCK_DIALECT_PLAIN ? "plain" : "redisson", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    for (; n > 0 && used + 1 < size; used += (size_t)n) {
        n = read(ends[0], line + used, size - 1 - used);
        assert_true(n >= 0);
    }
    close(ends[0]);
    line[used] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* As a person does it: the line, and a password. */
static void give_rights(const char *change)
{
    static char line[2048];
    const char *words[64];
    size_t n = 0;

    print_rights(line, sizeof(line));
    for (char *word = strtok(line, " \n"); word != NULL && n < 62; word = strtok(NULL, " \n")) words[n++] = word;
    words[n++] = ">geheim";
    if (*change != '\0') words[n++] = change;
    for (uint32_t i = 0; i < 3; i++) {
        redisContext *context = redisConnect("127.0.0.1", SERVER(i)->port);
        redisReply *reply = redisCommandArgv(context, (int)n, words, NULL);

        assert_non_null(reply);
        assert_string_equal(reply->str, "OK");
        freeReplyObject(reply);
        redisFree(context);
    }
}

static long long counted(const char *command, const char *field)
{
    long long n = 0;

    for (uint32_t i = 0; i < 3; i++)
        n += server_ask_number(SERVER(i), "EVAL %s 0 cmdstat_%s: %s",
                               "for line in string.gmatch(redis.call('INFO', 'commandstats'), '[^\\r\\n]+') do "
                               "if string.find(line, ARGV[1], 1, true) == 1 then "
                               "return tonumber(string.match(line, '[:,]' .. ARGV[2] .. '=(%d+)')) end end return 0",
                               command, field);
    return n;
}

/* How often the servers have refused that command. */
static long long refusals(const char *command)
{
    return counted(command, "rejected_calls");
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
    quorlock_lock *locks[2];
    long long before;

    fixture_client(3);
    for (int i = 0; i < 2; i++) {
        seen[i] = (struct seen){0};
        locks[i] = lasting_lock(fixture.client, keys[i], NULL);
        fixture_start_acquire(locks[i], &seen[i]);
        await_listeners(keys[i]);
    }
    before = refusals("unsubscribe");
    assert_int_equal(quorlock_lock_cancel(locks[0]), 0);
    await_status(&seen[0], QUORLOCK_ERR_CANCELED, "it is canceled");
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

/* Takes three locks, and releases them in one turn: the servers refuse this command, and none of the others. */
static void release_together(const char *refused, const char *const *commands)
{
    static const char *const keys[] = {"one", "two", "three"};
    long long before[8];
    struct seen seen[3] = {{0}};
    quorlock_lock *locks[3];

    fixture_client(3);
    for (int i = 0; i < 3; i++) {
        locks[i] = lasting_lock(fixture.client, keys[i], NULL);
        assert_status(fixture_acquire(locks[i], &seen[i]), QUORLOCK_OK);
        seen[i] = (struct seen){0};
    }
    for (size_t i = 0; commands[i] != NULL; i++) before[i] = refusals(commands[i]);
    for (int i = 0; i < 3; i++) fixture_start_release(locks[i], &seen[i]);
    for (int i = 0; i < 3; i++) await_status(&seen[i], QUORLOCK_OK, "it is released");
    for (int i = 0; i < 3; i++) await_free(keys[i]);
    fixture_close(fixture.client);
    for (size_t i = 0; commands[i] != NULL; i++)
        assert_int_equal(refusals(commands[i]) > before[i], strcmp(commands[i], refused) == 0);
}

/* The same without each of the first `n`: they only save work, and the server logs a denial. */
static void release_without(const char *const *commands, size_t n)
{
    fixture_log_in("app:geheim@", "");
    give_rights("");
    release_together("", commands);
    for (size_t i = 0; i < n; i++) {
        char change[64];

        snprintf(change, sizeof(change), "-%s", commands[i]);
        give_rights(change);
        release_together(commands[i], commands);
    }
}

/* The line gives no right to MSETEX, which older servers do not know; servers that have it are not asked for it. */
SERVERS_TEST(locks_that_are_taken_together_are_denied_nothing)
{
    static const char *const keys[] = {"one", "two", "three"};
    struct seen seen[3] = {{0}};
    quorlock_lock *lock;

    fixture_log_in("app:geheim@", "");
    give_rights("");
    fixture_client(3);
    for (int i = 0; i < 3; i++) {
        lock = fixture_lock(fixture.client, keys[i], LEASE(LONG_LEASE_MS, .fencing = 1, .wait_ms = NO_LIMIT));
        fixture_start_acquire(lock, &seen[i]);
    }
    for (int i = 0; i < 3; i++) await_status(&seen[i], QUORLOCK_OK, "it is taken");
    assert_int_equal(refusals("msetex"), 0);
    fixture_close(fixture.client);
}

SERVERS_TEST(locks_that_are_released_together_use_what_asks_for_all_at_once)
{
    static const char *const commands[] = {"mget", "pubsub|numsub", "pubsub|numpat", "get", "del", "publish", NULL};

    release_without(commands, 3);
}

SERVERS_TEST(hashes_that_are_released_together_use_what_asks_for_all_at_once)
{
    static const char *const commands[] = {"exists", "pubsub|numsub", "pubsub|numpat", "hdel",
                                           "lrange", "publish",       "hexists",       NULL};

    fixture.options.dialect = QUORLOCK_DIALECT_REDISSON;
    release_without(commands, 3);
}

static bool is_counted(void *field)
{
    return counted("exists", field) > 0;
}

static void hold_until(const char *change, char *field)
{
    struct seen seen = {0};

    give_rights(change);
    fixture_client(3);
    assert_status(fixture_acquire(lasting_lock(fixture.client, "one", NULL), &seen), QUORLOCK_OK);
    await(is_counted, field, GENEROUS_MS, "the server is asked to tell of changes of the key");
    fixture_close(fixture.client);
}

/* It is used behind the first renewal, when the command of test_acl.py is over. */
SERVERS_TEST(a_holder_that_is_told_of_changes_needs_exists)
{
    char calls[] = "calls", rejected[] = "rejected_calls";

    fixture_bootstrap();
    fixture.options.guard = QUORLOCK_GUARD_CONNECTION;
    fixture_log_in("app:geheim@", "");
    hold_until("", calls);
    assert_int_equal(refusals("exists"), 0);
    hold_until("-exists", rejected);
}
