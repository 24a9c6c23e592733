/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_node_fake.c - a node's beginning and end, against a server that plays scripts
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#include <cmocka.h>

#include "node_world.h"

/* A name with two addresses, of which the first refuses, whatever this machine's hosts file says. */
static bool two_addresses;

struct evdns_getaddrinfo_request *evdns_getaddrinfo(struct evdns_base *dns, const char *name,
                                                    const char *service, const struct evutil_addrinfo *hints,
                                                    evdns_getaddrinfo_cb done, void *arg)
{
    typedef struct evdns_getaddrinfo_request *ask_evdns(struct evdns_base *, const char *, const char *,
                                                        const struct evutil_addrinfo *, evdns_getaddrinfo_cb,
                                                        void *);
    struct evutil_addrinfo *first = NULL, *second = NULL;
    if (!two_addresses) {
        void *symbol = dlsym(RTLD_NEXT, "evdns_getaddrinfo");
        ask_evdns *real = NULL;
        memcpy(&real, &symbol, sizeof real);
        return real(dns, name, service, hints, done, arg);
    }
    assert_int_equal(evutil_getaddrinfo("127.0.0.2", service, hints, &first), 0);
    assert_int_equal(evutil_getaddrinfo("127.0.0.1", service, hints, &second), 0);
    first->ai_next = second;
    done(0, first, arg);
    return NULL;
}

static const struct fake_step plain_good[] = {SHAKE, END};

/* ---- handshake ---- */

struct refusal {
    struct fake_step script[12];
    const char *story, *why;
};

static const struct refusal refusals[] = {
    {{SEND("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), CLOSE},
     "down proto\n",
     "HTTP/1.1 400 Bad"},
    {{SEND("\x15\x03\x03"), END}, "down proto\n", "TLS"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesame?\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("What is AUTH bob sesam"), END}, "down proto\n", "not a Redis server"},
    {{SEND("SSH-2.0-OpenSSH_9\r\n"), END}, "down proto\n", "SSH-2.0"},
    {{SEND("-ERR max number of clients reached\r\n"), CLOSE}, "down refused\n", "maxclients"},
    {{SEND("-DENIED Redis is running in protected mode\r\n"), CLOSE}, "down refused\n", "protected mode"},
    {{EXPECT("AUTH"), SEND("-WRONGPASS invalid username-password pair\r\n"), END},
     "down auth\n",
     "user \"bob\""},
    {{EXPECT("AUTH"), SEND("-ERR AUTH <password> called without any password configured\r\n"), END},
     "down auth\n",
     "no password"},
    {{EXPECT("AUTH"), SEND("-ERR unknown command 'AUTH', with args beginning with: 'bob' 'sesame'\r\n"), END},
     "down auth\n",
     "AUTH"},
    {{EXPECT("AUTH"), SEND("-ERR sesame is not what I want\r\n"), END}, "down auth\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("-LOADING sesame\r\n"), END}, "down temporary\n", "AUTH"},
    {{EXPECT("AUTH"), SEND(":1\r\n"), END}, "down proto\n", "AUTH"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), EXPECT("SELECT"), SEND("-ERR DB index is out of range\r\n"), END},
     "down other\n",
     "SELECT: ERR DB index"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOPERM this user\r\n"), END}, "down auth\n", "INFO: NOPERM"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n-NOAUTH Authentication required.\r\n"), END},
     "down auth\n",
     "redis://USER:PASSWORD@"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$5\r\nhello\r\n"), END}, "down proto\n", "redis_version"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n+hello\r\n"), END}, "down proto\n", "not a Redis server"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n$99999999999\r\n"), END}, "down proto\n", "too large"},
    {{EXPECT("AUTH"), SEND("+OK\r\n+OK\r\n+OK\r\n*100000000\r\n"), END}, "down proto\n", "malformed"},
    {{SHAKE_AS("redis_version:6.0.16\r\n", NULL), END}, "down proto\n", "Redis 6.0.16 is too old: Redis 6.2"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:7.1.9\r\n", NULL), END},
     "down proto\n",
     "Valkey 7.1.9 is too old: Valkey 7.2"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:cluster\r\n", NULL), END},
     "down cluster\n",
     "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nserver_mode:cluster\r\n", NULL), END},
     "down cluster\n",
     "cluster-enabled no"},
    {{SHAKE_AS("redis_version:7.0.0\r\nredis_mode:sentinel\r\n", NULL), END}, "down proto\n", "Sentinel"},
    {{SHAKE_AS(NULL, "role:slave\r\nmaster_host:10.0.0.9\r\nmaster_port:6379\r\n"), END},
     "down replica\n",
     "replica of 10.0.0.9:6379"},
    {{SHAKE_AS(NULL, "roles:master\r\n"), END}, "down proto\n", "role"},
    {{EXPECT("AUTH"), SEND("+OK\r\n"), CLOSE},
     "down unreachable\n",
     "closed the connection during the handshake"},
    {{EXPECT("AUTH"), RESET}, "down unreachable\n", "during the handshake"},
};

static void test_handshake_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];
        struct world world;
        world_open(&world);
        /* It goes on trying, and the second time all is well. */
        fake_play(world.server, refusal->script);
        fake_play(world.server, plain_good);
        world_uri(&world, "redis://bob:sesame@127.0.0.1", "/1");
        assert_non_null(world_node(&world));
        run_until(&world, "down");
        assert_story(&world, refusal->story);
        assert_holds(world.why, refusal->why);
        assert_int_equal(ask(&world, 1, NODE_PEEK, 0), NODE_NOT_READY);
        run_until(&world, "ready 1");
        if (strstr(world.logged, "ses")) fail_msg("a password: %s", world.logged);
        world_close(&world);
    }
}

static void test_handshake_loading(void **state)
{
    static const struct fake_step script[] = {EXPECT("CLIENT"),
                                              SEND("-NOPERM this name is only for show\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$21\r\nredis_version:7.0.0\r\n\r\n"),
                                              EXPECT("INFO"),
                                              SEND("$11\r\nrole:master\r\n"),
                                              EXPECT("SCRIPT"),
                                              SEND("-LOADING Redis is loading the dataset in memory\r\n"),
                                              END};
    struct world world;
    (void)state;
    world_start(&world, script);
    fake_play(world.server, script);
    fake_play(world.server, plain_good);
    run_until(&world, "ready");
    assert_story(&world, "down temporary\nready 1\n"); /* told once, though it failed twice */
    assert_int_equal(fake_connections(world.server), 3);
    world_close(&world);
}

static void test_handshake_silence(void **state)
{
    static const struct fake_step script[] = {END};
    struct world world;
    (void)state;
    world_open(&world);
    world.config.timeout_ms = 30;
    fake_play(world.server, script);
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    assert_story(&world, "down unreachable\n");
    assert_holds(world.why, "no answer to the handshake within 30 ms");
    world_close(&world);
}

static void test_refused_port(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    world_uri(&world, "127.0.0.1", "");
    fake_free(world.server);
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    run_on(&world, 50); /* tries again and again, and tells it once */
    assert_story(&world, "down unreachable\n");
    assert_holds(world.why, "refused");
    world.server = fake_new(world.base);
    world_close(&world);
}

/* ---- the end ---- */

struct free_row {
    const char *free_at, *story;
    struct fake_step script[8];
    uint32_t timeout_ms;
};

static void ask_three(struct world *world, const char *line)
{
    if (strcmp(line, "ready 1") != 0) return;
    for (unsigned i = 1; i <= 3; i++) assert_int_equal(ask(world, i, NODE_ACQUIRE, i == 1 ? 20 : 0), NODE_SENT);
}

static void test_free_in_callback(void **state)
{
    static const struct free_row rows[] = {
        {"ready 1", "ready 1\n", {SHAKE, END}, 0},
        {"1 yes", "ready 1\n1 yes\n", {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), END}, 0},
        {"3 yes",
         "ready 1\n1 yes\n2 yes\n3 yes\n",
         {SHAKE, EXPECT("SET"), SEND("+OK\r\n+OK\r\n+OK\r\n"), CLOSE},
         0},
        {"1 error replica",
         "ready 1\n1 error replica\n",
         {SHAKE, EXPECT("SET"), SEND("-READONLY x\r\n+OK\r\n"), END},
         0},
        {"1 error proto", "ready 1\n1 error proto\n", {SHAKE, EXPECT("SET"), SEND(":1\r\n+OK\r\n"), END}, 0},
        {"2 unknown unreachable",
         "ready 1\n1 unknown unreachable\n2 unknown unreachable\n",
         {SHAKE, EXPECT("SET"), CLOSE},
         0},
        {"1 unknown timeout", "ready 1\n1 unknown timeout\n", {SHAKE, END}, 20},
        {"connecting unreachable",
         "ready 1\n1 yes\n2 unknown unreachable\n3 unknown unreachable\nconnecting unreachable\n",
         {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), CLOSE},
         0},
        {"down unreachable", "down unreachable\n", {CLOSE}, 0},
        {"down proto", "down proto\n", {SEND("?"), END}, 0},
        {"down auth", "down auth\n", {EXPECT("CLIENT"), SEND("-NOAUTH x\r\n+OK\r\n"), END}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world world;
        world_start(&world, rows[i].script);
        world.free_at = rows[i].free_at;
        world.on_line = ask_three;
        run_until(&world, rows[i].free_at);
        assert_null(world.node);
        run_on(&world, 10);
        assert_story(&world, rows[i].story);
        world_close(&world);
    }
}

static void test_free_any_time(void **state)
{
    (void)state;
    /* After so many turns of the loop, wherever it stands then. */
    for (int turns = 0; turns < 12; turns++) {
        struct world world;
        world_start(&world, plain_good);
        for (int i = 0; i < turns; i++) event_base_loop(world.base, EVLOOP_NONBLOCK);
        if (node_state_now(world.node) == NODE_READY) ask_sent(&world, 1, NODE_PEEK, 0);
        node_free(world.node);
        world.node = NULL;
        world.freed = true;
        run_on(&world, 2);
        world_close(&world);
    }
    node_free(NULL);
}

/* By the hosts file, or the name server: either way from the loop, and freed at any time. */
static void test_names(void **state)
{
    struct world world;
    (void)state;
    world_open(&world);
    fake_play(world.server, plain_good);
    world_uri(&world, "localhost", "");
    assert_non_null(world_node(&world));
    run_until(&world, "ready");
    world_close(&world);

    for (int turns = 0; turns < 3; turns++) {
        world_open(&world);
        world_uri(&world, "nobody.invalid", "");
        assert_non_null(world_node(&world));
        for (int i = 0; i < turns; i++) event_base_loop(world.base, EVLOOP_NONBLOCK);
        world_close(&world);
    }

    world_open(&world);
    world.config.timeout_ms = 200;
    world_uri(&world, "nobody.invalid", "");
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    assert_holds(world.story, "down unreachable\n");
    assert_holds(world.why, "nobody.invalid");
    world_close(&world);
}

static void test_second_address(void **state)
{
    struct world world;
    (void)state;
    two_addresses = true;
    world_open(&world);
    fake_play(world.server, plain_good);
    world_uri(&world, "two.example", "");
    assert_non_null(world_node(&world));
    run_until(&world, "ready");
    assert_story(&world, "ready 1\n");
    world_close(&world);

    /* None of them: the reason names the last. */
    world_open(&world);
    world_uri(&world, "two.example", "");
    fake_free(world.server);
    assert_non_null(world_node(&world));
    run_until(&world, "down");
    two_addresses = false;
    assert_holds(world.why, "connect to 127.0.0.1: ");
    world.server = fake_new(world.base);
    world_close(&world);
}

/* Each allocation of a whole life fails once: no crash, no leak, and in the end it works. */
static void test_out_of_memory(void **state)
{
    static const struct fake_step script[] = {SHAKE, EXPECT("SET"), SEND("+OK\r\n"), END};
    bool failed = true;
    long n = 0;
    (void)state;
    for (; failed; n++) {
        struct world world;
        assert_true(n < 100);
        world_open(&world);
        for (int i = 0; i < 4; i++) fake_play(world.server, script);
        world_uri(&world, n % 2 ? "localhost" : "127.0.0.1", "");
        world.counted.until_failure = n / 2;
        if (world_node(&world)) {
            run_until(&world, "ready");
            int result = ask(&world, 1, NODE_ACQUIRE, 0);
            if (result == NODE_NOMEM) result = ask(&world, 1, NODE_ACQUIRE, 0);
            assert_int_equal(result, NODE_SENT);
            run_until(&world, "1 yes");
        }
        failed = world.counted.until_failure < 0;
        world_close(&world);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_refused),
        cmocka_unit_test(test_handshake_loading),
        cmocka_unit_test(test_handshake_silence),
        cmocka_unit_test(test_refused_port),
        cmocka_unit_test(test_free_in_callback),
        cmocka_unit_test(test_free_any_time),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_second_address),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("a node begins and ends", tests, NULL, NULL);
}
