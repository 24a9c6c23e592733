/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_break_wire.c - on one server: what a break deletes, of everybody and of one owner, and whom it tells
 */
#include "keys_fixture.h"

#define READERS   "quorlock:readers"
#define FAR       "99999999999999" /* ms since 1970, and in queues a place */
#define TWO_SLOTS "SET quorlock:slot:0:a us:1;SET quorlock:slot:63:a us:1;SET quorlock:slot:5:a them:2"
#define ANYONE    NULL

static struct answer break_it(const char *owner)
{
    struct node_request request = request_of(OP_BREAK, owner != NULL ? owner : "");

    request.n_keys = 1;
    request.owner = owner;
    return probe_ask(probe, &request);
}

/* A notice with that text, or none. */
static void assert_notice(struct listener *listener, const char *text)
{
    char heard[64];

    server_do(server, "PUBLISH quorlock:released:a end");
    if (text != NULL) {
        listener_next(listener, NULL, heard, sizeof(heard));
        assert_string_equal(heard, text);
    }
    listener_next(listener, NULL, heard, sizeof(heard));
    assert_string_equal(heard, "end");
}

static const struct row {
    const char *label, *there, *owner;
    enum outcome outcome;
    const char *holder, *others;
    int left; /* keys */
    const char *notice;
} rows[] = {
    {"nothing", "PING", US, OUTCOME_MISSING, "", "", 0, NULL},
    {"ours", "SET a us:1 PX 30000", US, OUTCOME_YES, US, "", 0, US},
    {"ours, kept", "SET a quorlock:kept:us:1 PX 30000", US, OUTCOME_YES, US, "", 0, US},
    {"theirs", "SET a them:2 PX 30000", US, OUTCOME_OTHER, THEM, "", 1, NULL},
    {"theirs, kept", "SET a quorlock:kept:them:2 PX 30000", US, OUTCOME_OTHER, "quorlock:kept:them:2", "", 1, NULL},
    {"a reader among others", "SET a " READERS " PX 30000;ZADD quorlock:readers:a " FAR " us:1 " FAR " them:2", US,
     OUTCOME_YES, US, "", 2, US},
    {"the only reader", "SET a " READERS " PX 30000;ZADD quorlock:readers:a " FAR " us:1", US, OUTCOME_YES, US, "", 0,
     US},
    {"the last reader that has not expired",
     "SET a " READERS " PX 30000;ZADD quorlock:readers:a " FAR " us:1 1000 them:2", US, OUTCOME_YES, US, "", 0, US},
    {"readers of others", "SET a " READERS " PX 30000;ZADD quorlock:readers:a " FAR " them:2", US, OUTCOME_OTHER,
     READERS, "", 2, NULL},
    {"slots", TWO_SLOTS, US, OUTCOME_YES, US, "", 1, US},
    {"slots of others", "SET quorlock:slot:5:a them:2", US, OUTCOME_MISSING, "", "", 1, NULL},
    {"no lock", "RPUSH a x", US, OUTCOME_ERROR, "", "", 1, NULL},

    {"nothing", "PING", ANYONE, OUTCOME_MISSING, "", "", 0, NULL},
    {"a lock", "SET a them:2 PX 30000", ANYONE, OUTCOME_YES, THEM, "", 0, THEM},
    {"no lock", "RPUSH a x", ANYONE, OUTCOME_YES, "", "", 0, ""},
    {"the number of permits", "SET quorlock:permits:a 3", ANYONE, OUTCOME_MISSING, "", "p 3 0 0 0 \n", 0, ""},
    {"slots", "SET quorlock:permits:a 3;" TWO_SLOTS ";SET quorlock:fence:quorlock:slot:5:a 7", ANYONE, OUTCOME_YES, "",
     "p 3 0 0 0 \ns 0 0 -1 4 us:1\ns 5 7 -1 6 them:2\ns 63 0 -1 4 us:1\n", 1, ""},
    {"no slot", "SET quorlock:permits:a 3;RPUSH quorlock:slot:1:a x", ANYONE, OUTCOME_YES, "", "p 3 0 0 0 \n", 0, ""},
    {"who waits",
     "SET a them:2;ZADD quorlock:intents:a 100000000000001 wone " FAR
     " ~one;ZADD quorlock:queue:a 100000000000001 wtwo " FAR " ~two",
     ANYONE, OUTCOME_YES, THEM, "", 0, THEM},
};

#define WIRE_TEST(name) TEST_RUNS(name, RUN_WITH(name, "", setup_plain))

WIRE_TEST(what_a_break_leaves)
{
    struct listener *listener = server_listen(server, "quorlock:released:a");

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        struct answer answer;

        wipe();
        server_run(server, row->there);
        answer = break_it(row->owner);
        if (answer.reply.outcome != row->outcome || strcmp(answer.holder, row->holder) != 0 || key_count() != row->left)
            fail_msg("%s of %s: outcome %d, holder \"%s\", %lld keys, %s", row->label,
                     row->owner != NULL ? row->owner : "anyone", (int)answer.reply.outcome, answer.holder, key_count(),
                     answer.error);
        if (row->outcome == OUTCOME_YES && row->others[0] != '\0') assert_string_equal(answer.others, row->others);
        assert_notice(listener, row->notice);
    }
    listener_close(listener);
}
