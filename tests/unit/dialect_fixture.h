/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dialect_fixture.h - tables of what a dialect sends for a request, and of what it makes of a reply
 */
#ifndef QUORLOCK_UNIT_DIALECT_FIXTURE_H
#define QUORLOCK_UNIT_DIALECT_FIXTURE_H

#include "redis/dialect/dialect.h"
#include "test.h"

#define FINE         FAULT_NONE
#define PROTO        FAULT_PROTO
#define NO_TTL       (-2)
#define DOES_NOT_FIT OUTCOME_ERROR, PROTO, .ttl_ms = NO_TTL, .error = "does not fit"

struct dialect_sent {
    struct node_request request;
    const struct guard *guard;
    const char *words; /* of the command, joined by spaces; a script as a letter, by its place in the table */
};

/* In the order in which rows read best. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct dialect_judged {
    enum op op;
    const char *wire;
    enum outcome outcome;
    enum fault fault;
    int64_t ttl_ms; /* or NO_TTL */
    const char *holder;
    const char *error; /* a part of it, or where there is none the type; NULL: neither */
    uint64_t fence, node_time_us, count, refusing;
    int64_t quarantine_ms; /* 0: none */
    int64_t waiters;       /* 0: not known */
    bool has_guard;
    bool by_set; /* the request was a SET, no script */
};

/* Guards of the three modes, as the tables use them. */
extern const struct guard guard_off, guard_lax, guard_strict;

/* DIALECT_TEST - a test whose `f` has an open parser, and room for one command. */
#define DIALECT_TEST(name) TEST_WITH(dialect_fixture, name, dialect_setup, dialect_teardown)

struct dialect_fixture {
    struct reply_parser parser;
    const struct reply *reply; /* the latest, and why there is none */
    const char *why;
    struct bytes out;
    char text[320]; /* of the latest judged reply */
};

int dialect_setup(void **state);
int dialect_teardown(void **state);
void dialect_feed(struct dialect_fixture *, const char *wire);
enum reply_result dialect_next(struct dialect_fixture *);
/* dialect_judge - what the dialect makes of this one reply. */
struct node_reply dialect_judge(struct dialect_fixture *, const struct dialect *, enum op, bool by_script,
                                const char *wire);
/* dialect_build_one - one command, in f->out; of which the server knows these scripts; by_script is what build must
 * answer. */
void dialect_build_one(struct dialect_fixture *, const struct dialect *, const struct node_request *,
                       const struct guard *, uint32_t whole_sent, bool by_script);
/* ALL_SENT - the server knows each script. */
#define ALL_SENT UINT32_MAX
/* dialect_word - word number index of that command. */
const char *dialect_word(const struct dialect_fixture *, size_t index, size_t *ret_length);
/* dialect_commands - take the commands out of f->out, and return them as text, a line each, with SCRIPT for a script.
 */
const char *dialect_commands(struct dialect_fixture *);
void assert_sent(struct dialect_fixture *, const struct dialect *, const struct dialect_sent *, size_t n);
/* assert_judged - each reply alone, byte by byte, and all of them in one piece. */
void assert_judged(struct dialect_fixture *, const struct dialect *, const struct dialect_judged *, size_t n);

#endif
