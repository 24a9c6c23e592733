/* SPDX-License-Identifier: BSD-3-Clause */
/* test_model.c - edges of the model that real servers cannot be asked about in time; all else: differential */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "model.h"
#include "redis/dialect/dialect.h"
#include "scripts.h"

#define START_US UINT64_C(1700000000000000)
#define WORDS    16

struct peer {
    struct session *session;
    char heard[65536];
    size_t n_heard;
    bool hung_up;
};

struct fixture {
    struct model *model;
    struct model_manners manners;
    struct model_events events;
    struct peer peers[4];
    uint64_t wall_us;
    char changed[256], executed[512];
};

static void on_write(void *arg, const void *bytes, size_t size)
{
    struct peer *peer = arg;

    assert_true(peer->n_heard + size < sizeof(peer->heard));
    memcpy(peer->heard + peer->n_heard, bytes, size);
    peer->n_heard += size;
    peer->heard[peer->n_heard] = '\0';
}

static void on_hang_up(void *arg)
{
    struct peer *peer = arg;

    peer->hung_up = true;
    model_close(peer->session);
    peer->session = NULL;
}

static void on_changed(void *arg, const char *key, size_t length)
{
    struct fixture *f = arg;
    size_t used = strlen(f->changed);

    snprintf(f->changed + used, sizeof(f->changed) - used, "%s%.*s", used != 0 ? " " : "", (int)length, key);
}

static void on_executed(void *arg, struct session *session, const char *command)
{
    struct fixture *f = arg;

    snprintf(f->executed, sizeof(f->executed), "%s", command);
}

static void restart(struct fixture *f, bool empty)
{
    for (size_t i = 0; i < LENGTH(f->peers); i++) {
        if (f->peers[i].session != NULL) model_close(f->peers[i].session);
        f->peers[i].session = NULL;
    }
    f->manners.run++;
    model_start(f->model, &f->manners, empty, &f->events);
    for (size_t i = 0; i < LENGTH(f->peers); i++) {
        f->peers[i].hung_up = false;
        f->peers[i].session = model_open(f->model, on_write, on_hang_up, &f->peers[i]);
    }
}

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));

    f->model = model_new();
    f->wall_us = START_US;
    f->events = (struct model_events){.changed = on_changed, .executed = on_executed, .arg = f};
    restart(f, true);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    model_free(f->model);
    test_free(f);
    return 0;
}

#define MODEL_TEST(name) TEST_WITH(fixture, name, setup, teardown)

static void feed(struct fixture *f, size_t who, const char *const *words)
{
    char text[64];
    size_t n = 0;

    while (words[n] != NULL) n++;
    model_feed(f->peers[who].session, text, (size_t)snprintf(text, sizeof(text), "*%zu\r\n", n));
    for (size_t i = 0; i < n; i++) {
        model_feed(f->peers[who].session, text, (size_t)snprintf(text, sizeof(text), "$%zu\r\n", strlen(words[i])));
        model_feed(f->peers[who].session, words[i], strlen(words[i]));
        model_feed(f->peers[who].session, "\r\n", 2);
    }
}

static const char *ask_words(struct fixture *f, size_t who, const char *const *words)
{
    struct peer *peer = &f->peers[who];

    peer->n_heard = 0;
    peer->heard[0] = '\0';
    feed(f, who, words);
    assert_true(model_step(peer->session, f->wall_us));
    return peer->heard;
}

/* The reply, as it is on the wire. */
#define ASK(f, who, ...)           ask_words(f, who, (const char *const[]){__VA_ARGS__, NULL})
#define EXPECT(f, who, reply, ...) assert_string_equal(ASK(f, who, __VA_ARGS__), reply)

/* It would undo what a client wrote that connected since. */
#define LOOK "1", "quorlock:guard", "3", "set", "30000", "", "", "look"

/* Where nothing is to be written it is told all that it would be told else. */
MODEL_TEST(a_look_writes_no_guard)
{
    EXPECT(f, 0, "*1\r\n$3\r\nask\r\n", "EVAL", script_guard, LOOK);
    EXPECT(f, 0, "$-1\r\n", "GET", "quorlock:guard");
    (void)ASK(f, 0, "EVAL", script_guard, "1", "quorlock:guard", "3", "set", "30000", "", "", "0");
    assert_contains(ASK(f, 0, "EVAL", script_guard, LOOK), "*4\r\n$4\r\nkept\r\n:30001\r\n:30000\r\n");
    EXPECT(f, 0, "+OK\r\n", "SET", "quorlock:guard", "1|3|set|30000|other|other|0");
    EXPECT(f, 0, "*1\r\n$3\r\nask\r\n", "EVAL", script_guard, LOOK);
}

MODEL_TEST(a_client_that_knows_an_older_process_writes_no_guard)
{
#define OLDER "1|3|set|30000|older|older|0"
    EXPECT(f, 0, "+OK\r\n", "SET", "quorlock:guard", OLDER);
    EXPECT(f, 0, "*4\r\n$4\r\nlost\r\n:0\r\n:30000\r\n$27\r\n" OLDER "\r\n", "EVAL", script_guard, "1",
           "quorlock:guard", "3", "set", "30000", "a", "b", "1");
    EXPECT(f, 0, "$27\r\n" OLDER "\r\n", "GET", "quorlock:guard");
    assert_contains(ASK(f, 0, "EVAL", script_guard, "1", "quorlock:guard", "3", "set", "30000", "a", "b", "0"),
                    "*4\r\n$4\r\nlost\r\n:30001\r\n:30000\r\n");
}

MODEL_TEST(a_key_comes_back_with_the_clock_unless_it_was_seen_expired)
{
    struct model_value value;

    EXPECT(f, 0, "+OK\r\n", "SET", "seen", "v", "PX", "10");
    EXPECT(f, 0, "+OK\r\n", "SET", "unseen", "v", "PX", "10");
    f->wall_us += 50000;
    f->changed[0] = '\0';
    EXPECT(f, 0, "$-1\r\n", "GET", "seen");
    assert_string_equal(f->changed, "seen");
    assert_false(model_look(f->model, "unseen", 6, f->wall_us, &value));
    f->wall_us -= 50000;
    EXPECT(f, 0, "$-1\r\n", "GET", "seen");
    EXPECT(f, 0, ":10\r\n", "PTTL", "unseen");
    assert_true(model_look(f->model, "unseen", 6, f->wall_us, &value));
    assert_int_equal(value.expires_ms, START_US / 1000 + 10);
}

MODEL_TEST(what_has_expired_goes_in_the_background)
{
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v", "PX", "10");
    EXPECT(f, 0, "+OK\r\n", "SET", "b", "v", "PX", "11");
    EXPECT(f, 0, "+OK\r\n", "SET", "c", "v");
    f->changed[0] = '\0';
    model_expire(f->model, f->wall_us + 11000);
    assert_string_equal(f->changed, "a");
    model_expire(f->model, f->wall_us + 99999999);
    assert_string_equal(f->changed, "a b");
    EXPECT(f, 0, ":1\r\n", "EXISTS", "a", "b", "c");
}

/* A replica waits for its master to delete what has expired, and does not show it meanwhile. */
MODEL_TEST(a_replica_hides_what_has_expired)
{
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v", "PX", "10");
    model_manners(f->model)->replica = true;
    f->wall_us += 11000;
    f->changed[0] = '\0';
    EXPECT(f, 0, "$-1\r\n", "GET", "a");
    model_expire(f->model, f->wall_us);
    assert_string_equal(f->changed, "");
    model_manners(f->model)->replica = false;
    EXPECT(f, 0, ":0\r\n", "EXISTS", "a");
    assert_string_equal(f->changed, "a");
}

MODEL_TEST(time_stands_still_inside_a_script)
{
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v", "PX", "10");
    f->wall_us += 10999;
    EXPECT(f, 0, "*2\r\n:0\r\n$6\r\n010999\r\n", "EVAL",
           "return {redis.call('PTTL', KEYS[1]), string.format('%06d', redis.call('TIME')[2])}", "1", "a");
}

/* What a server of Redis 7.0 replies. */
MODEL_TEST(patterns_and_numbers_in_scripts_are_lua_s)
{
    EXPECT(f, 0, "$52\r\nxaab xa xaab xaab 7 aa nil nil nil 1 a. xa xa  2 nil\r\n", "EVAL",
           "local t = {} "
           "for _, p in ipairs({'xa*b', 'xa?', 'xa-b', 'xa+b', 'b()', 'x(a+)', 'none', 'x.b', '^a', '%d', 'a%.', "
           "'x[ab]', 'xq*a', ''}) do t[#t + 1] = tostring(string.match('..xaab a.1', p)) end "
           "t[#t + 1] = ('12'):match('2') "
           "t[#t + 1] = tostring(string.match('aXb', 'a', 2)) "
           "return table.concat(t, ' ')",
           "0");
    EXPECT(f, 0,
           "$92\r\n0 -0 -5 100000000000000 1000000000000000 1e+17 9007199254740992 0.5 -1.0000000000000001e+300\r\n",
           "EVAL",
           "local t = {} "
           "for _, n in ipairs({0, tonumber('-0'), -5, 1e14, 1e15, 1e17, 2^53, 0.5, -1e300}) do "
           "redis.call('SET', 'k', n) t[#t + 1] = redis.call('GET', 'k') end "
           "return table.concat(t, ' ')",
           "0");
}

static void list_key(void *arg, const char *key, size_t length, const struct model_value *value)
{
    char *text = arg;
    size_t used = strlen(text);

    snprintf(text + used, 128 - used, "%.*s=%d:%.*s:%llu ", (int)length, key, (int)value->type,
             (int)value->owner_length, value->owner != NULL ? value->owner : "", (unsigned long long)value->expires_ms);
}

MODEL_TEST(a_snapshot_brings_back_what_was_there)
{
    struct model_memory *memory_then;
    char text[128] = "";

    EXPECT(f, 0, "+OK\r\n", "SET", "a", "me", "PXAT", "1700000000010");
    EXPECT(f, 0, ":1\r\n", "HSET", "h", "you", "1");
    EXPECT(f, 0, ":1\r\n", "LPUSH", "l", "x");
    memory_then = model_save(f->model);
    EXPECT(f, 0, ":2\r\n", "DEL", "a", "h");
    EXPECT(f, 0, "+OK\r\n", "SET", "new", "x");
    restart(f, true);
    model_load(f->model, memory_then);
    model_forget(memory_then);
    model_each(f->model, f->wall_us, list_key, text);
    assert_string_equal(text, "a=1:me:1700000000010 h=2:you:0 l=3::0 ");
    model_load(f->model, NULL);
    EXPECT(f, 0, ":0\r\n", "EXISTS", "a", "h", "l", "new");
}

MODEL_TEST(a_restart_forgets_scripts_and_keeps_keys_where_asked)
{
    EXPECT(f, 0, "$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n", "SCRIPT", "LOAD", "return 1");
    EXPECT(f, 0, ":1\r\n", "EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0");
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v");
    restart(f, false);
    EXPECT(f, 0, "-NOSCRIPT No matching script. Please use EVAL.\r\n", "EVALSHA",
           "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0");
    EXPECT(f, 0, "$1\r\nv\r\n", "GET", "a");
    restart(f, true);
    EXPECT(f, 0, "$-1\r\n", "GET", "a");
}

MODEL_TEST(a_loading_server_says_so_to_all_but_notices)
{
    EXPECT(f, 0, "+OK\r\n", "MULTI");
    model_manners(f->model)->loading = true;
    EXPECT(f, 0, "-LOADING Redis is loading the dataset in memory\r\n", "GET", "a");
    EXPECT(f, 0, "-EXECABORT Transaction discarded because of previous errors.\r\n", "EXEC");
    EXPECT(f, 0, "-LOADING Redis is loading the dataset in memory\r\n", "PING");
    EXPECT(f, 0, "-LOADING Redis is loading the dataset in memory\r\n", "EVAL", "return 1", "0");
    EXPECT(f, 0, "-LOADING Redis is loading the dataset in memory\r\n", "SCRIPT", "LOAD", "return 1");
    assert_contains(ASK(f, 0, "INFO", "persistence"), "\nloading:1\r\n");
    EXPECT(f, 1, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c");
    EXPECT(f, 0, ":1\r\n", "PUBLISH", "c", "x");
    model_manners(f->model)->loading = false;
    EXPECT(f, 0, "+PONG\r\n", "PING");
}

static const char *operate(struct fixture *f, const char *const *words)
{
    size_t n = 0;

    while (words[n] != NULL) n++;
    return model_do(f->model, f->wall_us, words, n);
}
#define DO(f, ...) operate(f, (const char *const[]){__VA_ARGS__, NULL})

/* The operator's own rights are not those of clients. */
MODEL_TEST(the_operator_may_do_everything)
{
    f->manners.password = "p";
    f->manners.denied = "SET GET";
    f->manners.max_clients = 4;
    restart(f, true);
    assert_string_equal(DO(f, "SET", "a", "v"), "OK");
    assert_string_equal(DO(f, "GET", "a"), "v");
    assert_string_equal(DO(f, "LPUSH", "l", "x", "y"), "2");
    assert_string_equal(DO(f, "LRANGE", "l", "0", "-1"), "y\nx");
    assert_string_equal(DO(f, "GET", "none"), "");
    assert_string_equal(DO(f, "NOSUCH"), "ERR unknown command 'NOSUCH', with args beginning with: ");
    assert_string_equal(DO(f, "CLIENT", "KILL", "TYPE", "normal"), "4");
    assert_true(f->peers[0].hung_up && f->peers[3].hung_up);
}

MODEL_TEST(rights_that_only_scripts_lack_are_missing_there)
{
    model_manners(f->model)->no_info_in_scripts = model_manners(f->model)->no_publish = true;
    assert_contains(ASK(f, 0, "INFO", "server"), "run_id:");
    EXPECT(f, 0, "-ERR The user executing the script can't run this command or subcommand\r\n", "EVAL",
           "return redis.pcall('INFO', 'server')", "0");
    EXPECT(f, 0, "-NOPERM this user has no permissions to run the 'publish' command\r\n", "PUBLISH", "c", "x");
    EXPECT(f, 0, ":0\r\n", "EVAL", script_release, "1", "k", "1", "me");
}

MODEL_TEST(notices_that_get_lost_are_counted_and_do_not_come)
{
    EXPECT(f, 1, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c");
    f->peers[1].n_heard = 0;
    f->peers[1].heard[0] = '\0';
    model_manners(f->model)->lost_permille = 1000;
    EXPECT(f, 0, ":1\r\n", "PUBLISH", "c", "x");
    assert_string_equal(f->peers[1].heard, "");
    assert_int_equal(model_lost_notices(f->model), 1);
    model_manners(f->model)->lost_permille = 0;
    EXPECT(f, 0, ":1\r\n", "PUBLISH", "c", "x");
    assert_contains(f->peers[1].heard, "message");
    assert_int_equal(model_lost_notices(f->model), 1);
}

#define HELLO_3                                                                                                        \
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n"    \
    "$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
#define CHANGED(length, key) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$" #length "\r\n" key "\r\n"
#define CHANGED_ALL          ">2\r\n$10\r\ninvalidate\r\n_\r\n"

/* What came to it since it was last asked. */
static void expect_heard(struct fixture *f, size_t who, const char *text)
{
    struct peer *peer = &f->peers[who];

    assert_string_equal(peer->heard, text);
    peer->n_heard = 0;
    peer->heard[0] = '\0';
}

static void track(struct fixture *f, size_t who)
{
    assert_contains(ASK(f, who, "HELLO", "3"), "%7\r\n");
    EXPECT(f, who, "+OK\r\n", "CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP");
}

/* The next command's keys are remembered. */
#define READ(f, who, ...)                                                                                              \
    do {                                                                                                               \
        EXPECT(f, who, "+OK\r\n", "CLIENT", "CACHING", "YES");                                                         \
        (void)ASK(f, who, __VA_ARGS__);                                                                                \
        (f)->peers[who].n_heard = 0;                                                                                   \
        (f)->peers[who].heard[0] = '\0';                                                                               \
    } while (0)

MODEL_TEST(a_session_says_which_protocol_it_speaks)
{
    EXPECT(f, 0, "-NOPROTO unsupported protocol version\r\n", "HELLO", "4");
    EXPECT(f, 0, "$-1\r\n", "GET", "none");
    EXPECT(f, 0, HELLO_3, "HELLO", "3");
    EXPECT(f, 0, "_\r\n", "GET", "none");
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v");
    EXPECT(f, 0, "_\r\n", "SET", "a", "v", "NX");
    EXPECT(f, 0, "*3\r\n_\r\n:1\r\n$5\r\nfalse\r\n", "EVAL",
           "return {false, true, tostring(redis.call('GET', 'none'))}", "0");
    assert_contains(ASK(f, 0, "INFO", "server"), "\r\ntxt:# Server\r\n");
    assert_int_equal(f->peers[0].heard[0], '=');
    EXPECT(f, 1, "$-1\r\n", "GET", "none");
    assert_contains(ASK(f, 0, "HELLO", "2"), "*14\r\n");
    EXPECT(f, 0, "$-1\r\n", "GET", "none");
}

MODEL_TEST(a_stranger_learns_nothing_by_hello)
{
    f->manners.password = "p";
    restart(f, true);
    assert_contains(ASK(f, 0, "HELLO", "3"), "-NOAUTH HELLO must be called");
    EXPECT(f, 0, "+OK\r\n", "AUTH", "p");
    f->manners.denied = "HELLO CLIENT|TRACKING";
    *model_manners(f->model) = f->manners;
    assert_contains(ASK(f, 0, "HELLO", "3"), "%7\r\n");
    EXPECT(f, 0, "-NOPERM this user has no permissions to run the 'client|tracking' command\r\n", "CLIENT", "TRACKING",
           "ON");
}

MODEL_TEST(a_key_that_was_read_is_told_of_once)
{
    track(f, 0);
    READ(f, 0, "GET", "a");
    (void)ASK(f, 0, "GET", "b");
    EXPECT(f, 1, "+OK\r\n", "SET", "b", "v");
    EXPECT(f, 1, ":1\r\n", "DEL", "b");
    f->peers[0].n_heard = 0;
    EXPECT(f, 1, "+OK\r\n", "SET", "a", "v");
    expect_heard(f, 0, CHANGED(1, "a"));
    EXPECT(f, 1, "+OK\r\n", "SET", "a", "w");
    expect_heard(f, 0, "");
    /* What changes nothing is not told. */
    READ(f, 0, "GET", "a");
    EXPECT(f, 1, "$-1\r\n", "SET", "a", "v", "NX");
    expect_heard(f, 0, "");
    EXPECT(f, 1, ":1\r\n", "DEL", "a");
    expect_heard(f, 0, CHANGED(1, "a"));
    assert_contains(ASK(f, 1, "INFO", "clients"), "\ntracking_clients:1\r\n");
}

MODEL_TEST(a_session_does_not_hear_what_it_did_itself)
{
    track(f, 0);
    READ(f, 0, "GET", "a");
    EXPECT(f, 0, "+OK\r\n", "SET", "a", "v");
    (void)ASK(f, 1, "SET", "a", "w");
    EXPECT(f, 0, "+PONG\r\n", "PING");
    /* Without NOLOOP it does, behind the reply. */
    EXPECT(f, 0, "+OK\r\n", "CLIENT", "TRACKING", "ON", "OPTIN");
    READ(f, 0, "GET", "a");
    EXPECT(f, 0, "+OK\r\n" CHANGED(1, "a"), "SET", "a", "v");
    EXPECT(f, 0, "+OK\r\n" CHANGED_ALL, "FLUSHALL");
}

MODEL_TEST(what_a_script_writes_it_forgets_and_what_it_reads_after_that_it_remembers)
{
    track(f, 0);
    READ(f, 0, "EVAL", "redis.call('GET', KEYS[1]) return redis.call('SET', KEYS[1], 'v')", "1", "a");
    (void)ASK(f, 1, "SET", "a", "w");
    expect_heard(f, 0, "");
    READ(f, 0, "EVAL", "redis.call('SET', KEYS[1], 'v') return redis.call('GET', KEYS[1])", "1", "a");
    (void)ASK(f, 1, "SET", "a", "w");
    expect_heard(f, 0, CHANGED(1, "a"));
}

/* Before 7.2 a script that reads at all has read all that it was given, and nothing else. */
MODEL_TEST(what_a_script_has_read_is_the_server_s_opinion)
{
    static const char script[] = "return redis.call('GET', 'b')";

    track(f, 0);
    READ(f, 0, "EVAL", script, "1", "a");
    (void)ASK(f, 1, "SET", "b", "v");
    expect_heard(f, 0, "");
    (void)ASK(f, 1, "SET", "a", "v");
    expect_heard(f, 0, CHANGED(1, "a"));
    f->manners.version = "7.2.4";
    restart(f, true);
    track(f, 0);
    READ(f, 0, "EVAL", script, "1", "a");
    (void)ASK(f, 1, "SET", "a", "v");
    expect_heard(f, 0, "");
    (void)ASK(f, 1, "SET", "b", "v");
    expect_heard(f, 0, CHANGED(1, "b"));
}

MODEL_TEST(an_expired_key_is_told_of_when_another_finds_it)
{
    track(f, 0);
    (void)ASK(f, 1, "SET", "a", "v", "PX", "10");
    READ(f, 0, "GET", "a");
    f->wall_us += 11000;
    (void)ASK(f, 1, "GET", "a");
    expect_heard(f, 0, CHANGED(1, "a"));
    (void)ASK(f, 1, "SET", "a", "v", "PX", "10");
    READ(f, 0, "GET", "a");
    model_expire(f->model, f->wall_us + 11000);
    expect_heard(f, 0, CHANGED(1, "a"));
    /* Found by itself it is its own doing. */
    (void)ASK(f, 1, "SET", "a", "v", "PX", "10");
    READ(f, 0, "GET", "a");
    f->wall_us += 11000;
    EXPECT(f, 0, "_\r\n", "GET", "a");
    (void)ASK(f, 1, "SET", "a", "v");
    EXPECT(f, 0, "+PONG\r\n", "PING");
}

MODEL_TEST(a_flush_of_any_database_is_told_to_all_that_track)
{
    track(f, 0);
    READ(f, 0, "GET", "a");
    EXPECT(f, 1, "+OK\r\n", "SELECT", "3");
    EXPECT(f, 1, "+OK\r\n", "FLUSHDB");
    expect_heard(f, 0, CHANGED_ALL);
    EXPECT(f, 1, "+OK\r\n", "FLUSHALL");
    expect_heard(f, 0, CHANGED_ALL);
    EXPECT(f, 1, "+OK\r\n", "SELECT", "0");
    (void)ASK(f, 1, "SET", "a", "v");
    expect_heard(f, 0, "");
    EXPECT(f, 0, "+OK\r\n", "CLIENT", "TRACKING", "OFF");
    (void)ASK(f, 1, "FLUSHALL");
    EXPECT(f, 0, "+PONG\r\n", "PING");
}

MODEL_TEST(caching_is_for_sessions_that_opted_in)
{
    EXPECT(f, 0,
           "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode "
           "enabled\r\n",
           "CLIENT", "CACHING", "YES");
    EXPECT(f, 0, "+OK\r\n", "CLIENT", "TRACKING", "ON");
    EXPECT(f, 0, "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.\r\n", "CLIENT",
           "CACHING", "YES");
    track(f, 0);
    /* It is over with the next command that is none of CLIENT's. */
    READ(f, 0, "CLIENT", "SETNAME", "n");
    (void)ASK(f, 0, "GET", "a");
    (void)ASK(f, 0, "GET", "b");
    READ(f, 0, "PING");
    (void)ASK(f, 1, "SET", "b", "v");
    expect_heard(f, 0, "");
    (void)ASK(f, 1, "SET", "a", "v");
    expect_heard(f, 0, CHANGED(1, "a"));
    READ(f, 0, "MULTI");
    (void)ASK(f, 0, "GET", "a");
    (void)ASK(f, 0, "EXEC");
    f->peers[0].n_heard = 0;
    (void)ASK(f, 1, "SET", "a", "v");
    expect_heard(f, 0, CHANGED(1, "a"));
}

MODEL_TEST(a_full_table_tells_of_keys_that_have_not_changed)
{
    track(f, 0);
    READ(f, 0, "GET", "a");
    model_manners(f->model)->push_one_in = 1;
    EXPECT(f, 0, CHANGED(1, "a") "+PONG\r\n", "PING");
    EXPECT(f, 0, "+PONG\r\n", "PING");
    (void)ASK(f, 1, "SET", "a", "v");
    EXPECT(f, 0, "+PONG\r\n", "PING");
}
