/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_batch_wire.c - on one real server: what leaves together is answered, and done, as if each had gone alone
 */
#include "keys_fixture.h"

#include "redis/dialect/dialect.h"

#define MOST 200

/* What is at a key, and who asks for its release. */
enum there { OURS, MISSING, THEIRS, FOREIGN, FOR_EVER, OURS_LONGER, OURS_FOR_EVER, THERES };
enum asked { PLAIN, SILENT, IF_DELETED, EXTENDED, TAKEN, ASKED };

#define TOKEN 5

struct crowd {
    char names[MOST][8];
    struct node_key keys[MOST];
    struct node_request requests[MOST];
    struct answer answers[MOST];
    size_t n;
};

static struct crowd crowd;

/* What stands in each fencing counter before; NULL: the requests are not fenced. */
static const char *counters;
#define NO_COUNTER "none"
#define A_HASH     "hash"

/* With which all names but the guard's begin. */
static const char *prefix = "";

static void name_counter(size_t i, char ret[TEXT_SIZE])
{
    snprintf(ret, TEXT_SIZE, "%squorlock:fence:%s", prefix, crowd.names[i] + strlen(prefix));
}

static void add(enum asked asked)
{
    static const enum op ops[ASKED] = {OP_RELEASE, OP_RELEASE, OP_RELEASE, OP_EXTEND, OP_ACQUIRE};
    size_t i = crowd.n++;

    snprintf(crowd.names[i], sizeof(crowd.names[i]), "%sk%zu", prefix, i);
    crowd.keys[i] = (struct node_key){.text = crowd.names[i], .length = strlen(crowd.names[i])};
    crowd.requests[i] = (struct node_request){.op = ops[asked],
                                              .keys = &crowd.keys[i],
                                              .n_keys = 1,
                                              .prefix = strlen(prefix),
                                              .owner = US,
                                              .owner_length = strlen(US),
                                              .lease_ms = LEASE_MS,
                                              .fenced = counters != NULL,
                                              .fence = counters != NULL ? TOKEN : 0,
                                              .silent = asked == SILENT,
                                              .if_deleted = asked == IF_DELETED};
}

static void crowd_of(size_t n)
{
    crowd.n = 0;
    while (crowd.n < n) add(PLAIN);
}

static void place(size_t i, enum there there)
{
    const char *name = crowd.names[i];
    char counter[TEXT_SIZE];

    name_counter(i, counter);
    switch (there) {
    case OURS: put_lock(name, US, SHORT_MS); break;
    case THEIRS: put_lock(name, THEM, LONG_MS); break;
    case FOREIGN: server_do(server, "DEL %s", name); break;
    case FOR_EVER: put_lock(name, THEM, NO_EXPIRY); break;
    case OURS_LONGER: put_lock(name, US, LONG_MS); break;
    case OURS_FOR_EVER: put_lock(name, US, NO_EXPIRY); break;
    case MISSING:
    case THERES: server_do(server, "DEL %s", name); break;
    }
    if (there == FOREIGN && plain()) server_do(server, "HSET %s %s 1", name, US);
    if (there == FOREIGN && !plain()) server_do(server, "SET %s %s", name, US);
    server_do(server, "DEL %s", counter);
    if (counters == NULL || strcmp(counters, NO_COUNTER) == 0) return;
    if (strcmp(counters, A_HASH) == 0) {
        server_do(server, "HSET %s a 1", counter);
    } else {
        server_do(server, "SET %s %s", counter, counters);
    }
}

static void place_all(enum there there)
{
    for (size_t i = 0; i < crowd.n; i++) place(i, there);
}

/* What the keys of a comparison have at them. */
static enum there anything(size_t i)
{
    return i % THERES;
}

static enum there only_ours(size_t i)
{
    return OURS;
}

static enum there all_ours_but_one(size_t i)
{
    return i == 3 ? MISSING : OURS;
}

static enum there (*at_key)(size_t) = anything;

static void place_each(int maxmemory)
{
    server_do(server, "CONFIG SET maxmemory 0");
    for (size_t i = 0; i < crowd.n; i++) place(i, at_key(i));
    server_do(server, "CONFIG SET maxmemory %d", maxmemory);
}

static uint32_t left(void)
{
    uint32_t n = 0;

    for (size_t i = 0; i < crowd.n; i++) n += server_has(server, crowd.names[i]);
    return n;
}

static void ask_all(void)
{
    probe_ask_all(probe, crowd.requests, crowd.answers, crowd.n);
}

static void assert_outcomes(enum outcome outcome)
{
    for (size_t i = 0; i < crowd.n; i++) assert_outcome(crowd.answers[i], outcome);
}

static void assert_faults(enum fault fault)
{
    for (size_t i = 0; i < crowd.n; i++) assert_fault(crowd.answers[i], fault);
}

/* ---- notices ---- */

static struct listener *subscriber;
enum { TO_KEYS, IN_A_QUEUE, TO_NONE, BY_PATTERN };
static int listening;

/* To every second key; by a pattern to some; for a fair lock of Redisson, in the queue of one; or to none. */
static void listen_to_keys(void)
{
    char channel[TEXT_SIZE];

    subscriber = server_listen(server, "end");
    for (size_t i = 0; listening == TO_KEYS && i < crowd.n; i += 2) {
        const struct dialect *spoken = plain() ? &dialect_plain : &dialect_redisson;

        channel[spoken->channel(&crowd.keys[i], strlen(prefix), channel, sizeof(channel) - 1)] = '\0';
        listener_to(subscriber, "SUBSCRIBE", channel);
    }
    if (listening == BY_PATTERN) listener_to(subscriber, "PSUBSCRIBE", "*0*");
    if (listening == IN_A_QUEUE) listener_to(subscriber, "SUBSCRIBE", "redisson_lock__channel:{k1}:me");
    server_do(server, "DEL redisson_lock_queue:{k1}");
    if (listening == IN_A_QUEUE) server_do(server, "RPUSH redisson_lock_queue:{k1} me");
}

/* All notices so far, their channels and texts. */
static void heard(char *ret, size_t size)
{
    char channel[TEXT_SIZE], text[TEXT_SIZE];
    size_t used = 0;

    server_do(server, "PUBLISH end .");
    ret[0] = '\0';
    for (listener_next(subscriber, channel, text, TEXT_SIZE); strcmp(channel, "end") != 0;
         listener_next(subscriber, channel, text, TEXT_SIZE))
        used += (size_t)snprintf(ret + used, size - used, "%s %s\n", channel, text);
}

/* ---- alone and together ---- */

static void assert_same(const struct answer *alone, const struct answer *together)
{
    assert_int_equal(alone->reply.outcome, together->reply.outcome);
    assert_int_equal(alone->reply.fault, together->reply.fault);
    assert_int_equal(alone->reply.count, together->reply.count);
    assert_int_equal(alone->reply.fence, together->reply.fence);
    assert_int_equal(alone->reply.node_time_us > 0, together->reply.node_time_us > 0);
    assert_string_equal(alone->holder, together->holder);
    assert_string_equal(alone->error, together->error);
    assert_int_equal(alone->reply.ttl_ms < 0 ? alone->reply.ttl_ms : 1,
                     together->reply.ttl_ms < 0 ? together->reply.ttl_ms : 1);
}

/* A lock that is found to be of another type after its number was drawn leaves the number used up. */
static size_t describe_counter(size_t i, char *ret, size_t size)
{
    char name[TEXT_SIZE], value[TEXT_SIZE] = "none";
    bool any = counters == NULL || strcmp(counters, A_HASH) == 0 ||
               (crowd.requests[i].op == OP_ACQUIRE && at_key(i) == FOREIGN);

    name_counter(i, name);
    if (any) return (size_t)snprintf(ret, size, "\n");
    if (server_has(server, name)) server_value(server, name, value, sizeof(value));
    return (size_t)snprintf(ret, size, " %s\n", value);
}

static void describe_value(size_t i, char *ret, size_t size)
{
    static const char count[] = "local function of(owner) return redis.call('HGET', KEYS[1], owner) or 0 end "
                                "return of(ARGV[1]) + 10 * of(ARGV[2]) + 100 * redis.call('HLEN', KEYS[1])";
    const char *name = crowd.names[i];

    if (at_key(i) == FOREIGN)
        snprintf(ret, size, "foreign");
    else if (plain())
        server_value(server, name, ret, size);
    else
        snprintf(ret, size, "%lld", server_ask_number(server, "EVAL %s 1 %s %s %s", count, name, US, THEM));
}

/* What is at every key, and for how long, roughly. */
static void describe(char *ret, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < crowd.n; i++) {
        const char *name = crowd.names[i];
        int64_t left_ms = server_pttl(server, name);
        char value[TEXT_SIZE];

        describe_value(i, value, sizeof(value));
        used += (size_t)snprintf(ret + used, size - used, "%s %s %s", name, value,
                                 left_ms < 0           ? "endless"
                                 : left_ms <= SHORT_MS ? "short"
                                 : left_ms <= LEASE_MS ? "lease"
                                                       : "long");
        used += describe_counter(i, ret + used, size - used);
    }
}

/* The answers, what is left and the notices are the same. */
static void compare_crowd(int maxmemory)
{
    struct answer alone[(size_t)THERES * ASKED] = {0};
    char notices[4096], again[4096], remains[8192], remains_again[8192];
    long long calls;

    assert_in_range(crowd.n, 2, sizeof(alone) / sizeof(alone[0]));
    server_do(server, "CONFIG SET maxmemory 0"); /* a full Redis 8.6 refuses SUBSCRIBE */
    listen_to_keys();
    place_each(maxmemory);
    for (size_t i = 0; i < crowd.n; i++) alone[i] = probe_ask(probe, &crowd.requests[i]);
    describe(remains, sizeof(remains));
    heard(notices, sizeof(notices));
    place_each(maxmemory);
    calls = server_script_calls(server);
    ask_all();
    assert_int_equal(server_script_calls(server) - calls, 1);
    for (size_t i = 0; i < crowd.n; i++) assert_same(&alone[i], &crowd.answers[i]);
    describe(remains_again, sizeof(remains_again));
    assert_string_equal(remains, remains_again);
    heard(again, sizeof(again));
    assert_string_equal(notices, again);
    listener_close(subscriber);
}

/* Everything that can be at a key, and every way to ask by a script. */
static void compare(int maxmemory)
{
    bool takes = counters != NULL || probe->config.guard == QUORLOCK_GUARD_STRICT || !plain();

    crowd.n = 0;
    for (size_t i = 0; i < (size_t)THERES * (takes ? ASKED : TAKEN); i++) add((enum asked)(i / THERES));
    compare_crowd(maxmemory);
}

/* With whatever a counter may show. */
static void compare_fenced(int maxmemory)
{
    static const char *const all[] = {NO_COUNTER, "3", "5", "9", "odd", "9007199254740990", A_HASH};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        counters = all[i];
        compare(maxmemory);
    }
    counters = NULL;
}

/* As it mostly is: all are released, and ours; with those that listen so. */
static void compare_releases(enum there (*what)(size_t), int to)
{
    at_key = what;
    listening = to;
    crowd_of(12);
    compare_crowd(0);
    crowd.n = 0;
    while (crowd.n < 12) add((enum asked)(crowd.n % EXTENDED));
    compare_crowd(0);
    listening = TO_KEYS;
    at_key = anything;
}

DIALECTS_TEST(test_together_is_as_alone)
{
    compare(0);
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    assert_int_equal(crowd.answers[0].reply.count, 1);
    assert_outcome(crowd.answers[1], OUTCOME_MISSING);
    assert_held_by(crowd.answers[2], THEM, LEASE_MS, LONG_MS);
    assert_fault(crowd.answers[3], FAULT_FOREIGN);
    assert_held_by(crowd.answers[4], THEM, -1, -1);
}

/* Never shortened; and what somebody made endless ends again. */
DIALECTS_TEST(test_renewed_keys_end_with_the_lease)
{
    const size_t first = (size_t)EXTENDED * THERES;

    compare(0);
    assert_in_range(server_pttl(server, crowd.names[first + OURS]), SHORT_MS + 1, LEASE_MS);
    assert_in_range(server_pttl(server, crowd.names[first + OURS_LONGER]), LEASE_MS + 1, LONG_MS);
    assert_in_range(server_pttl(server, crowd.names[first + OURS_FOR_EVER]), SHORT_MS + 1, LEASE_MS);
}

DIALECTS_TEST(test_together_is_as_alone_under_a_prefix)
{
    prefix = "p:";
    compare(0);
    assert_int_equal(crowd.answers[0].reply.count, 1);
    counters = "3";
    compare(0);
    counters = NULL;
    prefix = "";
    assert_int_equal(server_keys(server, "quorlock:fence:"), 0);
}

DIALECTS_TEST(test_who_listens_by_a_pattern_is_told)
{
    fixture_needs_real_servers();
    listening = BY_PATTERN;
    compare(0);
    compare_releases(only_ours, BY_PATTERN);
    compare_releases(all_ours_but_one, BY_PATTERN);
}

DIALECTS_TEST(test_releases_of_what_is_ours_are_as_alone)
{
    for (int to = TO_KEYS; to <= TO_NONE; to++) compare_releases(only_ours, to);
}

DIALECTS_TEST(test_releases_of_what_is_ours_but_one_are_as_alone)
{
    for (int to = TO_KEYS; to <= TO_NONE; to++) compare_releases(all_ours_but_one, to);
}

static void guarded_probe(uint32_t guard)
{
    probe_close(probe);
    probe = probe_open(server->address);
    probe->config.guard = guard;
    probe->config.dialect = dialect;
    probe->config.max_lease_ms = 50;
    probe_connect(probe);
    probe_await(probe, NODE_READY);
}

/* Without memory for writes, too. */
DIALECTS_TEST(test_together_is_as_alone_under_a_guard)
{
    guarded_probe(QUORLOCK_GUARD_CONNECTION);
    compare(0);
    compare(1);
    server_do(server, "CONFIG SET maxmemory 0");
    guarded_probe(QUORLOCK_GUARD_STRICT);
    compare(0);
    compare(1);
}

/* Acquires, too: a server without memory grants none, though it deletes in the same script. */
DIALECTS_TEST(test_fenced_requests_together_are_as_alone)
{
    compare_fenced(0);
    guarded_probe(QUORLOCK_GUARD_CONNECTION);
    compare_fenced(0);
    compare_fenced(1);
    server_do(server, "CONFIG SET maxmemory 0");
    guarded_probe(QUORLOCK_GUARD_STRICT);
    compare_fenced(0);
}

/* How often the server has set many keys by one command; -1: it has none that does so with an expiry. */
static long long sets_of_many(void)
{
    return server_ask_number(server, "EVAL %s 0",
                             "if not pcall(redis.acl_check_cmd, 'MSETEX', '1', 'k', 'v') then return -1 end "
                             "local calls = string.match(redis.call('INFO', 'commandstats'), 'msetex:calls=(%d+)') "
                             "return tonumber(calls or 0)");
}

/* Each takes a number of its own counter, and its token stays when it is given back. */
DIALECTS_TEST(test_fenced_locks_of_one_turn)
{
    long long before;

    counters = "7";
    crowd_of(4);
    place_all(MISSING);
    server_do(server, "SET quorlock:fence:k2 20");
    server_do(server, "PEXPIRE quorlock:fence:k1 %d", INT32_MAX);
    for (size_t i = 0; i < 4; i++) crowd.requests[i].op = OP_ACQUIRE;
    before = sets_of_many();
    ask_all();
    assert_outcomes(OUTCOME_YES);
    /* One for counters, one for locks; the counter that lives longer, and its lock, are set by others. */
    assert_int_equal(sets_of_many(), before < 0 || !plain() ? before : before + 2);
    assert_in_range(server_pttl(server, "quorlock:fence:k0"), LONG_MS, INT32_MAX / 2);
    assert_in_range(server_pttl(server, "quorlock:fence:k1"), INT32_MAX / 2, INT32_MAX);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(crowd.answers[i].reply.fence, i == 2 ? 21 : 8);
        assert_int_equal(crowd.answers[i].reply.node_time_us, crowd.answers[0].reply.node_time_us);
        crowd.requests[i].op = OP_RELEASE;
        crowd.requests[i].fence = 21;
    }
    crowd.requests[3].fence = 0;
    /* A renewal lets a counter live on that shows its token already. */
    crowd.requests[2].op = crowd.requests[3].op = OP_EXTEND;
    server_do(server, "PEXPIRE quorlock:fence:k2 %d", SHORT_MS);
    ask_all();
    assert_outcomes(OUTCOME_YES);
    assert_in_range(server_pttl(server, "quorlock:fence:k2"), LONG_MS, INT32_MAX);
    crowd.requests[2].op = crowd.requests[3].op = OP_RELEASE;
    place(0, OURS);
    place(1, OURS);
    ask_all();
    assert_outcomes(OUTCOME_YES);
    assert_int_equal(left(), 0);
    for (size_t i = 0; i < 4; i++) {
        char name[TEXT_SIZE];

        snprintf(name, sizeof(name), "quorlock:fence:k%zu", i);
        assert_true(server_holds(server, name, i == 3 ? "8" : "21"));
    }
    counters = NULL;
}

/* What has a counter goes with its like. */
DIALECTS_TEST(test_fenced_and_others_leave_apart)
{
    long long calls;

    crowd_of(6);
    place_all(OURS);
    for (size_t i = 2; i < 4; i++) crowd.requests[i].fenced = true;
    calls = server_script_calls(server);
    ask_all();
    assert_outcomes(OUTCOME_YES);
    assert_int_equal(server_script_calls(server) - calls, 3);
    assert_int_equal(left(), 0);
}

/* A right that is missing inside the script. What is denied differs from key to key, or from command to command.
 * (Rights to look at a hash are not among them: what leaves together looks at fewer.) */
DIALECTS_TEST(test_together_is_as_alone_where_rights_are_missing)
{
    static const char *const rights[][2] = {
        {"-del"},    {"-publish"},      {"-pttl"}, {"-mget"}, {"-get", "-mget"},     {"-type"}, {"-time"}, {"-pexpire"},
        {"-pubsub"}, {"resetchannels"}, {"-hdel"}, {"-hset"}, {"-exists", "-lrange"}};

    fixture_needs_real_servers();
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        char uri[TEXT_SIZE];

        server_do(server, "ACL SETUSER bob reset on >sesame ~* &* +@all");
        server_do(server, "ACL SETUSER bob %s", rights[i][0]);
        if (rights[i][1] != NULL) server_do(server, "ACL SETUSER bob %s", rights[i][1]);
        snprintf(uri, sizeof(uri), "redis://bob:sesame@127.0.0.1:%u", (unsigned)server->port);
        probe_close(probe);
        open_probe(uri, QUORLOCK_GUARD_OFF);
        wipe();
        compare(0);
        counters = "5";
        compare(0);
        counters = NULL;
    }
}

/* One key in a batch is denied: the others must not suffer. */
DIALECTS_TEST(test_one_denied_key)
{
    char uri[TEXT_SIZE];

    fixture_needs_real_servers();
    server_do(server, "ACL SETUSER bob reset on >sesame ~k0 ~k1 &* +@all");
    snprintf(uri, sizeof(uri), "redis://bob:sesame@127.0.0.1:%u", (unsigned)server->port);
    probe_close(probe);
    open_probe(uri, QUORLOCK_GUARD_OFF);
    crowd_of(3);
    place_all(OURS);
    ask_all();
    assert_faults(FAULT_TEMPORARY);
    assert_int_equal(left(), 3);
    ask_all();
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    assert_outcome(crowd.answers[1], OUTCOME_YES);
    assert_fault(crowd.answers[2], FAULT_AUTH);
    assert_int_equal(left(), 1);
    /* From now on each goes alone. */
    crowd_of(3);
    place_all(OURS);
    ask_all();
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    assert_outcome(crowd.answers[1], OUTCOME_YES);
    assert_fault(crowd.answers[2], FAULT_AUTH);
}

/* ---- one key twice, many keys ---- */

DIALECTS_TEST(test_one_key_twice)
{
    crowd_of(6);
    place_all(OURS);
    for (size_t i = 3; i < 6; i++) crowd.requests[i].keys = &crowd.keys[i - 3];
    crowd.requests[4].op = OP_ACQUIRE;
    crowd.requests[4].owner = THEM;
    crowd.requests[4].owner_length = strlen(THEM);
    crowd.requests[5].op = OP_EXTEND;
    ask_all();
    for (size_t i = 0; i < 3; i++) assert_outcome(crowd.answers[i], OUTCOME_YES);
    assert_outcome(crowd.answers[3], OUTCOME_MISSING);
    assert_outcome(crowd.answers[4], OUTCOME_YES);
    assert_outcome(crowd.answers[5], OUTCOME_MISSING);
    assert_true(lock_is_of("k1", THEM));
    /* First taken, then given back, in one turn. */
    crowd.requests[0].op = OP_ACQUIRE;
    crowd.requests[2].op = OP_ACQUIRE;
    crowd.requests[5].op = OP_RELEASE;
    ask_all();
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    assert_outcome(crowd.answers[3], OUTCOME_YES);
    assert_outcome(crowd.answers[5], OUTCOME_YES);
    assert_false(server_has(server, "k0"));
    assert_false(server_has(server, "k2"));
}

DIALECTS_TEST(test_many)
{
    long long calls = server_lock_calls(server);
    const long long batches = (MOST + DIALECT_BATCH_MAX - 1) / DIALECT_BATCH_MAX, takes = plain() ? MOST : batches;

    crowd_of(MOST);
    for (size_t i = 0; i < MOST; i++) crowd.requests[i].op = OP_ACQUIRE;
    ask_all();
    assert_outcomes(OUTCOME_YES);
    assert_int_equal(left(), MOST);
    assert_int_equal(server_lock_calls(server) - calls, takes);
    for (size_t i = 0; i < MOST; i++) crowd.requests[i].op = OP_RELEASE;
    ask_all();
    assert_outcomes(OUTCOME_YES);
    assert_int_equal(left(), 0);
    assert_int_equal(server_lock_calls(server) - calls, takes + batches);
}

/* ---- what can go wrong with the whole ---- */

DIALECTS_TEST(test_a_server_that_forgot)
{
    crowd_of(5);
    place_all(OURS);
    ask_all();
    assert_outcomes(OUTCOME_YES);
    place_all(OURS);
    server_do(server, "SCRIPT FLUSH");
    ask_all();
    assert_faults(FAULT_TEMPORARY);
    assert_int_equal(left(), 5);
    /* The next batch brings the script along, and the one behind it finds it there. */
    for (size_t round = 0; round < 2; round++) {
        place_all(OURS);
        ask_all();
        assert_outcomes(OUTCOME_YES);
        assert_int_equal(left(), 0);
    }
}

/* The guard is gone: what is ours is deleted all the same, and the connection ends. */
DIALECTS_TEST(test_a_broken_guard)
{
    unsigned levels;

    guarded_probe(QUORLOCK_GUARD_CONNECTION);
    crowd_of(4);
    place_all(OURS);
    ask_all();
    assert_outcomes(OUTCOME_YES);
    place_all(OURS);
    levels = probe->levels;
    server_do(server, "DEL quorlock:guard");
    ask_all();
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    for (size_t i = 1; i < 4; i++) assert_outcome(crowd.answers[i], OUTCOME_UNKNOWN);
    assert_int_equal(left(), 0);
    probe_await_after(probe, NODE_READY, levels);
    /* What extends does nothing then. */
    place_all(OURS);
    crowd.requests[0].op = crowd.requests[1].op = OP_EXTEND;
    levels = probe->levels;
    server_do(server, "DEL quorlock:guard");
    ask_all();
    assert_fault(crowd.answers[0], FAULT_GUARD);
    for (size_t i = 1; i < 4; i++) assert_outcome(crowd.answers[i], OUTCOME_UNKNOWN);
    assert_int_equal(left(), 2);
    assert_in_range(server_pttl(server, crowd.names[0]), 1, SHORT_MS);
    probe_await_after(probe, NODE_READY, levels);
}

/* Nothing is taken where the guard is gone, or another server than before answers; what is ours is given back. */
static unsigned begin_looked_at(void)
{
    guarded_probe(QUORLOCK_GUARD_STRICT);
    crowd_of(4);
    place_all(MISSING);
    place(0, OURS);
    for (size_t i = 1; i < 4; i++) crowd.requests[i].op = OP_ACQUIRE;
    return probe->levels;
}

static void assert_nothing_is_taken(unsigned levels)
{
    ask_all();
    assert_outcome(crowd.answers[0], OUTCOME_YES);
    assert_int_equal(left(), 0);
    probe_await_after(probe, NODE_READY, levels);
}

DIALECTS_TEST(test_acquires_look_at_the_guard)
{
    unsigned levels = begin_looked_at();

    server_do(server, "DEL quorlock:guard");
    assert_nothing_is_taken(levels);
}

DIALECTS_TEST(test_acquires_look_at_the_server)
{
    unsigned levels;

    fixture_needs_real_servers();
    levels = begin_looked_at();
    server_do(server, "REPLICAOF 127.0.0.1 1");
    server_do(server, "REPLICAOF NO ONE");
    assert_nothing_is_taken(levels);
}

DIALECTS_TEST(test_a_connection_that_ends)
{
    crowd_of(4);
    place_all(OURS);
    server_freeze(SERVER(0));
    for (size_t i = 0; i < 4; i++) {
        crowd.requests[i].tag.about = &crowd.answers[i];
        crowd.answers[i].came = false;
        assert_int_equal(node_send(probe->node, &crowd.requests[i]), NODE_SENT);
    }
    fixture_turn(clock_us());
    server_kill(SERVER(0));
    while (!crowd.answers[3].came) fixture_turn(clock_us() + LEASE_MS * UINT64_C(1000));
    assert_outcomes(OUTCOME_UNKNOWN);
}

/* A server without memory for writes still deletes. */
DIALECTS_TEST(test_a_server_that_is_full)
{
    crowd_of(3);
    place_all(OURS);
    server_do(server, "CONFIG SET maxmemory 1");
    ask_all();
    assert_outcomes(OUTCOME_YES);
    server_do(server, "CONFIG SET maxmemory 0");
}

/* One that wants replicas does not, and says so of each. */
DIALECTS_TEST(test_a_server_that_refuses_writes)
{
    fixture_needs_real_servers();
    crowd_of(3);
    place_all(OURS);
    server_do(server, "CONFIG SET min-replicas-to-write 1");
    ask_all();
    for (size_t i = 0; i < 3; i++) assert_fault(crowd.answers[i], FAULT_REFUSED);
    server_do(server, "CONFIG SET min-replicas-to-write 0");
    assert_int_equal(left(), 3);
}
