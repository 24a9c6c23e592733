/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rights.c - the handshake asks for the rights that a lock cannot do without, against a server that plays
 * scripts
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <quorlock/quorlock.h>

#include <cmocka.h>

#include "node_fixture.h"

#define UP_TO_RIGHTS                                                                                           \
    EXPECT("CLIENT"), EXPECT("INFO server"), EXPECT("INFO replication"), EXPECT("INFO memory"),                \
        EXPECT("EVAL"),                                                                                        \
        SEND("+OK\r\n$36\r\nredis_version:7.0.0\r\nrun_id:12345678\r\n$34\r\nrole:master\r\nmaster_replid:"    \
             "1234567\r\n$0\r\n\r\n")

/* What may not be renewed or released is not locked; and what no server of ours says is no right refused. */
static void test_rights(void **state)
{
    static const struct {
        const char *reply, *trace, *why;
    } answers[] = {
        {"$7\r\nPEXPIRE\r\n", "down auth\n", "user \"default\" may not run PEXPIRE: what could not be renewed"},
        {"$8\r\nPTTL DEL\r\n", "down auth\n", "(ACL SETUSER default +pttl +del)"},
        {"$8\r\nPEXPIREX\r\n", "down proto\n", "does not fit"},
        {"$6\r\nsesame\r\n", "down proto\n", "does not fit"},
        {"$9\r\nDEL  PTTL\r\n", "down proto\n", "does not fit"},
        {":0\r\n", "down proto\n", "EVAL: a reply that Redis would not give"},
        {"-NOPERM this user has no permissions to run the 'eval' command\r\n", "down auth\n", "EVAL: NOPERM"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct fake_step script[] = {UP_TO_RIGHTS, SEND(answers[i].reply), END};
        struct node_fixture f;
        node_fixture_open(&f);
        f.config.guard = QUORLOCK_GUARD_CONNECTION;
        f.config.n_nodes = 3;
        f.config.set = "s";
        fake_play(f.server, script);
        assert_non_null(node_fixture_new_node(&f));
        run_until(&f, "down");
        assert_trace(&f, answers[i].trace);
        assert_holds(f.why, answers[i].why);
        node_fixture_close(&f);
    }
}

/* Whoever keeps no guard may only want to look. */
static void test_unasked_without_a_guard(void **state)
{
    static const struct fake_step script[] = {EXPECT("CLIENT"), EXPECT("INFO server"),
                                              EXPECT("INFO replication"), EXPECT("SCRIPT LOAD"), END};
    struct node_fixture f;

    (void)state;
    node_fixture_open(&f);
    f.config.guard = QUORLOCK_GUARD_OFF;
    fake_play(f.server, script);
    assert_non_null(node_fixture_new_node(&f));
    while (fake_commands(f.server) < 4) run_on(&f, 1);
    node_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_unasked_without_a_guard),
    };
    return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
