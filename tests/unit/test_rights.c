/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rights.c - the handshake asks for the rights that a lock cannot do without, against a server that plays
 * scripts
 */

#include <quorlock/quorlock.h>

#include "node_fixture.h"

#define UP_TO_RIGHTS                                                                                           \
    EXPECT("CLIENT"), EXPECT("INFO server"), EXPECT("INFO replication"), EXPECT("INFO memory"),                \
        EXPECT("EVAL"),                                                                                        \
        SEND("+OK\r\n$36\r\nredis_version:7.0.0\r\nrun_id:12345678\r\n$34\r\nrole:master\r\nmaster_replid:"    \
             "1234567\r\n$0\r\n\r\n")

/* What may not be renewed or released is not locked; and what no server of ours says is no right refused. */
NODE_TEST(test_rights)
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

    for (size_t i = 0; i < LENGTH(answers); i++) {
        struct fake_step script[] = {UP_TO_RIGHTS, SEND(answers[i].reply), END};
        node_fixture_open(f);
        f->config.guard = QUORLOCK_GUARD_CONNECTION;
        f->config.n_nodes = 3;
        f->config.set = "s";
        fake_play(f->server, script);
        assert_non_null(node_fixture_new_node(f));
        run_until(f, "down");
        assert_trace(f, answers[i].trace);
        assert_contains(f->why, answers[i].why);
    }
}

/* Whoever keeps no guard may only want to look. */
NODE_TEST(test_unasked_without_a_guard)
{
    static const struct fake_step script[] = {EXPECT("CLIENT"), EXPECT("INFO server"),
                                              EXPECT("INFO replication"), EXPECT("SCRIPT LOAD"), END};

    node_fixture_open(f);
    f->config.guard = QUORLOCK_GUARD_OFF;
    fake_play(f->server, script);
    assert_non_null(node_fixture_new_node(f));
    while (fake_commands(f->server) < 4) run_on(f, 1);
}
