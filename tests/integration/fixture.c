/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

struct fixture fixture;

static void record_log(int level, const char *text, void *arg)
{
    size_t length = strlen(text);
    char *grown;

    if (getenv("FIXTURE_LOG") != NULL) fprintf(stderr, "%12.3f %d %s\n", (double)clock_us() / 1e3, level, text);
    grown = realloc(fixture.log, fixture.log_length + length + 2);
    if (grown == NULL) return;
    memcpy(grown + fixture.log_length, text, length);
    grown[fixture.log_length + length] = '\n';
    grown[fixture.log_length + length + 1] = '\0';
    fixture.log = grown;
    fixture.log_length += length + 1;
}

void fixture_begin(uint32_t n_servers)
{
    memset(&fixture, 0, sizeof(fixture));
    fixture.owner = getpid();
    fixture.base = host_loop_begin();
    cluster_start(&fixture.cluster, n_servers);
    memcpy(fixture.nodes, fixture.cluster.addresses, sizeof(fixture.nodes));
    fixture.options = (struct quorlock_client_options){.size = sizeof(fixture.options),
                                                       .nodes = fixture.nodes,
                                                       .n_nodes = n_servers,
                                                       .guard = QUORLOCK_GUARD_OFF,
                                                       .max_lease_ms = LONG_LEASE_MS,
                                                       .log = record_log};
    if (fixture.cluster.tls_ca[0] != '\0') fixture.options.tls_ca = fixture.cluster.tls_ca;
}

/* Closes what is open and frees the base. Returns how many events are left on it. */
static int end_loop(void)
{
    if (fixture.at_end != NULL) fixture.at_end();
    for (size_t i = 0; i < FIXTURE_CLIENTS_MAX; i++) {
        if (fixture.clients[i] != NULL) fixture_close(fixture.clients[i]);
    }
    return host_loop_end();
}

void fixture_end(void)
{
    int left = 0;

    fixture.ending = true;
    fixture.inside_call = false;
    /* Where an assertion of a callback failed the loop never goes on: then only the servers are ended. */
    if (!fixture.in_loop) left = end_loop();
    cluster_end(&fixture.cluster);
    free(fixture.log);
    memset(&fixture, 0, sizeof(fixture));
    assert_int_equal(left, 0);
}

int fixture_setup(void **state)
{
    fixture_begin(3);
    return 0;
}

int fixture_setup_one(void **state)
{
    fixture_begin(1);
    return 0;
}

int fixture_setup_bare(void **state)
{
    fixture_begin(0);
    return 0;
}

int fixture_setup_client(void **state)
{
    fixture_begin(3);
    fixture_client(3);
    return 0;
}

int fixture_setup_redisson(void **state)
{
    fixture_begin(3);
    fixture.options.dialect = QUORLOCK_DIALECT_REDISSON;
    fixture_client(3);
    return 0;
}

int fixture_teardown(void **state)
{
    /* A forked child whose assertion failed comes here; the rest of the tests is its parent's. */
    if (getpid() != fixture.owner) _exit(99);
    fixture_end();
    return 0;
}

void fixture_turn(uint64_t until_us)
{
    fixture.in_loop = true;
    host_loop_turn(until_us);
    fixture.in_loop = false;
}

static bool run_until(condition done, void *arg, uint64_t until_us)
{
    bool reached;

    while (!(reached = done(arg)) && clock_us() < until_us) fixture_turn(until_us);
    return reached;
}

void await(condition done, void *arg, uint32_t limit_ms, const char *what)
{
    if (!run_until(done, arg, clock_us() + limit_ms * 1000ull)) {
        /* cmocka would cut it. */
        if (fixture.log != NULL) fputs(fixture.log, stderr);
        fail_msg("%s: not within %u ms; the log stands above", what, limit_ms);
    }
}

struct count_wish {
    const int *count;
    int wanted;
};

static bool counted(void *arg)
{
    const struct count_wish *wish = arg;

    return *wish->count >= wish->wanted;
}

void await_count(const int *count, int wanted, uint32_t limit_ms, const char *what)
{
    struct count_wish wish = {count, wanted};

    await(counted, &wish, limit_ms, what);
}

void await_status(const struct seen *seen, int status, const char *what)
{
    await_count(&seen->calls, 1, GENEROUS_MS, what);
    if (seen->result.status != status) {
        fail_msg("%s: status %s, not %s: %s", what, quorlock_status_name(seen->result.status),
                 quorlock_status_name(status), seen->text);
    }
}

static bool never(void *arg)
{
    return false;
}

void run_ms(uint32_t span_ms)
{
    run_until(never, NULL, clock_us() + span_ms * 1000ull);
}

struct holders_wish {
    const char *key, *value;
    uint32_t wanted;
};

static bool held_so(void *arg)
{
    const struct holders_wish *wish = arg;

    return holders(wish->key, wish->value) == wish->wanted;
}

void await_holders(const char *key, const char *value, uint32_t wanted)
{
    struct holders_wish wish = {key, value, wanted};
    char what[TEXT_SIZE];

    snprintf(what, sizeof(what), "'%s' on %u servers", key, wanted);
    await(held_so, &wish, GENEROUS_MS, what);
}

void await_free(const char *key)
{
    await_holders(key, NULL, 0);
}

uint32_t holders(const char *key, const char *value)
{
    return cluster_holders(&fixture.cluster, key, value);
}

static quorlock_client **place_of(const quorlock_client *client)
{
    for (size_t i = 0; i < FIXTURE_CLIENTS_MAX; i++) {
        if (fixture.clients[i] == client) return &fixture.clients[i];
    }
    fail_msg("%s", client == NULL ? "too many clients" : "no client of the fixture");
    return NULL;
}

quorlock_client *fixture_new_client(uint32_t ready)
{
    quorlock_client **place = place_of(NULL);
    struct quorlock_error error;
    int status = host_loop_client(place, &fixture.options, &fixture.extras, &error);

    if (status != 0) fail_msg("quorlock_client_new: %s: %s", quorlock_status_name(status), error.text);
    assert_non_null(*place);
    if (ready > 0) fixture_await_ready(*place, ready);
    return *place;
}

void fixture_adopt(quorlock_client *client)
{
    *place_of(NULL) = client;
}

void fixture_client(uint32_t ready)
{
    fixture.client = fixture_new_client(ready);
}

void fixture_await_ready(quorlock_client *client, uint32_t ready)
{
    uint64_t until_us = clock_us() + GENEROUS_MS * 1000ull;
    struct seen_report seen;

    do {
        memset(&seen, 0, sizeof(seen));
        fixture_inspect(client, "ready?", &seen);
        if (clock_us() > until_us) fail_msg("only %u nodes answer, not %u", seen.report.answered, ready);
        if (seen.report.answered < ready) run_ms(10);
    } while (seen.report.answered < ready);
}

static void on_closed(void *arg)
{
    (*(int *)arg)++;
}

void fixture_start_close(quorlock_client *client, int *closed)
{
    *place_of(client) = NULL;
    if (client == fixture.client) fixture.client = NULL;
    *closed = 0;
    assert_status(quorlock_client_close(client, on_closed, closed), QUORLOCK_OK);
    assert_int_equal(*closed, 0);
}

void fixture_close(quorlock_client *client)
{
    int closed;

    fixture_start_close(client, &closed);
    await_count(&closed, 1, GENEROUS_MS, "close");
}

void fixture_log_in(const char *credentials, const char *database)
{
    for (uint32_t i = 0; i < fixture.cluster.n; i++) {
        const char *host = strstr(SERVER(i)->address, "://");

        snprintf(fixture.uris[i], sizeof(fixture.uris[i]), "redis%s://%s%s%s", host != NULL ? "s" : "", credentials,
                 host != NULL ? host + strlen("://") : SERVER(i)->address, database);
        fixture.nodes[i] = fixture.uris[i];
    }
}

quorlock_lock *fixture_lock_all(quorlock_client *client, const char *const *keys, size_t n_keys,
                                const struct quorlock_lock_options *options)
{
    quorlock_lock *lock = NULL;
    int status = quorlock_lock_new(&lock, client, keys, n_keys, options);

    if (status != 0) fail_msg("quorlock_lock_new: %s: %s", quorlock_status_name(status), quorlock_client_error(client));
    assert_non_null(lock);
    return lock;
}

quorlock_lock *fixture_lock(quorlock_client *client, const char *key, const struct quorlock_lock_options *options)
{
    return fixture_lock_all(client, &key, 1, options);
}

static void copy_text(char ret[TEXT_SIZE], const char *text)
{
    snprintf(ret, TEXT_SIZE, "%s", text == NULL ? "" : text);
}

void on_result(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct seen *seen = arg;

    if (fixture.ending) return;
    assert_false(fixture.inside_call);
    seen->calls++;
    seen->order = ++fixture.order;
    seen->at_us = clock_us();
    seen->result = *result;
    copy_text(seen->text, result->text);
    copy_text(seen->owner, result->token);
    assert_true(result->n_votes <= QUORLOCK_NODES_MAX);
    for (size_t i = 0; i < result->n_votes; i++) {
        struct seen_vote *vote = &seen->votes[i];

        copy_text(vote->node, result->votes[i]->node);
        copy_text(vote->error, result->votes[i]->error);
        copy_text(vote->holder, result->votes[i]->holder);
        vote->outcome = result->votes[i]->outcome;
        vote->latency_us = result->votes[i]->latency_us;
        vote->ttl_ms = result->votes[i]->ttl_ms;
    }
}

void on_loss(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct seen_loss *seen = arg;

    if (fixture.ending) return;
    assert_false(fixture.inside_call);
    seen->calls++;
    seen->order = ++fixture.order;
    seen->at_us = clock_us();
    seen->valid_ms = quorlock_lock_valid_ms(lock);
    seen->loss = *loss;
    copy_text(seen->text, loss->text);
}

/* seen_call - note a callback with a report; false: the test has ended. */
static bool seen_call(struct seen_report *seen, int status)
{
    if (fixture.ending) return false;
    assert_false(fixture.inside_call);
    seen->calls++;
    seen->status = status;
    return true;
}

void on_inspected(int status, const struct quorlock_inspect_report *report, void *arg)
{
    struct seen_report *seen = arg;

    if (!seen_call(seen, status)) return;
    seen->report = *report;
    copy_text(seen->holder, report->holder);
    for (size_t i = 0; i < report->n_nodes; i++) {
        seen->nodes[i].state = report->nodes[i]->state;
        copy_text(seen->nodes[i].holder, report->nodes[i]->holder);
        copy_text(seen->nodes[i].error, report->nodes[i]->error);
        seen->nodes[i].waiters = report->nodes[i]->waiters;
        seen->nodes[i].n_holders = report->nodes[i]->n_holders;
    }
}

void on_broken(int status, const struct quorlock_break_report *report, void *arg)
{
    struct seen_report *seen = arg;

    if (!seen_call(seen, status)) return;
    for (size_t i = 0; i < report->n_nodes; i++) seen->nodes[i].state = report->nodes[i]->state;
}

void on_bootstrapped(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct seen_report *seen = arg;

    if (!seen_call(seen, status)) return;
    for (size_t i = 0; i < report->n_nodes; i++) {
        seen->nodes[i].state = report->nodes[i]->state;
        copy_text(seen->nodes[i].error, report->nodes[i]->error);
    }
}

void fixture_start_acquire(quorlock_lock *lock, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    fixture.inside_call = true;
    assert_status(quorlock_lock_acquire(lock, on_result, seen), QUORLOCK_OK);
    fixture.inside_call = false;
}

void fixture_start_release(quorlock_lock *lock, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    fixture.inside_call = true;
    assert_status(quorlock_lock_release(lock, on_result, seen), QUORLOCK_OK);
    fixture.inside_call = false;
}

void fixture_start_extend(quorlock_lock *lock, uint32_t lease_ms, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    fixture.inside_call = true;
    assert_status(quorlock_lock_extend(lock, lease_ms, on_result, seen), QUORLOCK_OK);
    fixture.inside_call = false;
}

int fixture_acquire(quorlock_lock *lock, struct seen *seen)
{
    fixture_start_acquire(lock, seen);
    await_count(&seen->calls, 1, GENEROUS_MS, "acquire");
    return seen->result.status;
}

int fixture_release(quorlock_lock *lock, struct seen *seen)
{
    fixture_start_release(lock, seen);
    await_count(&seen->calls, 1, GENEROUS_MS, "release");
    return seen->result.status;
}

int fixture_extend(quorlock_lock *lock, uint32_t lease_ms, struct seen *seen)
{
    fixture_start_extend(lock, lease_ms, seen);
    await_count(&seen->calls, 1, GENEROUS_MS, "extend");
    return seen->result.status;
}

void fixture_inspect(quorlock_client *client, const char *key, struct seen_report *seen)
{
    memset(seen, 0, sizeof(*seen));
    fixture.inside_call = true;
    assert_status(quorlock_client_inspect(client, key, on_inspected, seen), QUORLOCK_OK);
    fixture.inside_call = false;
    await_count(&seen->calls, 1, GENEROUS_MS, "inspect");
}

void fixture_bootstrap(void)
{
    /* Connections of the test before may still be there. */
    struct quorlock_bootstrap_options options = {.size = sizeof(options), .despite_clients = true};
    struct seen_report seen = {0};
    quorlock_client *client;

    fixture.options.guard = QUORLOCK_GUARD_OFF;
    client = fixture_new_client(0);
    assert_status(quorlock_client_bootstrap(client, &options, on_bootstrapped, &seen), QUORLOCK_OK);
    await_count(&seen.calls, 1, GENEROUS_MS, "bootstrap");
    assert_status(seen.status, QUORLOCK_OK);
    fixture_close(client);
}

void fixture_break(quorlock_client *client, const char *key, struct seen_report *seen)
{
    memset(seen, 0, sizeof(*seen));
    fixture.inside_call = true;
    assert_status(quorlock_client_break(client, key, NULL, on_broken, seen), QUORLOCK_OK);
    fixture.inside_call = false;
    await_count(&seen->calls, 1, GENEROUS_MS, "break");
}

unsigned logged(const char *text)
{
    return fixture.log == NULL ? 0 : times_in(fixture.log, text);
}

struct log_wish {
    const char *text;
    unsigned times;
};

static bool logged_so_often(void *arg)
{
    const struct log_wish *wish = arg;

    return logged(wish->text) >= wish->times;
}

void await_log(const char *text, unsigned times)
{
    struct log_wish wish = {text, times};
    char what[TEXT_SIZE];

    snprintf(what, sizeof(what), "'%s' in the log", text);
    await(logged_so_often, &wish, GENEROUS_MS, what);
}

void take_by_hand(uint32_t n, const char *key, const char *owner)
{
    for (uint32_t i = 0; i < n; i++) {
        if (fixture.options.dialect == QUORLOCK_DIALECT_PLAIN) {
            server_do(SERVER(i), "SET %s %s PX 60000", key, owner);
        } else {
            server_do(SERVER(i), "HSET %s %s:1 1", key, owner);
            server_do(SERVER(i), "PEXPIRE %s 60000", key);
        }
    }
}

void drop_by_hand(const char *key)
{
    for (uint32_t i = 0; i < fixture.cluster.n; i++) {
        if (SERVER(i)->pid != 0) server_do(SERVER(i), "DEL %s", key);
    }
}

long long lock_calls(void)
{
    long long calls = 0;

    for (uint32_t i = 0; i < fixture.cluster.n; i++) calls += server_lock_calls(SERVER(i));
    return calls;
}
