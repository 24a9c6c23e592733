/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect.h - ask every node about a key: inspect and break, and the base of bootstrap */
#pragma once

#include "admin/holders.h"
#include "admin/report.h"

struct inspect;

/* Waited for: the node is connecting. Asked: its answer is. None: there will be no answer. */
enum answer { ANSWER_WAITED_FOR, ANSWER_ASKED, ANSWER_IN, ANSWER_NONE };

/* Hooks for bootstrap, which builds on an inspection; inspect and break have none. */
struct inspect_kind {
    void (*fill)(const struct inspect *, struct node_request *); /* complete a request */
    void (*reply)(struct inspect *, uint32_t node, const struct node_reply *);
    /* No answer is missing. True: nodes were asked again. False: the inspection waits, or ends with *ret_status. */
    bool (*step)(struct inspect *, int *ret_status);
    bool (*waits)(const struct inspect *); /* it asks nothing until its deadline, which calls wait_over */
    void (*wait_over)(struct inspect *);
    void (*tell)(const struct inspect *, int status); /* run the user's callback */
    void (*clear)(struct inspect *);                  /* free its own data of the nodes */
};

struct inspect_node {
    enum answer answer;
    enum op op;              /* the last request */
    struct node_reply reply; /* the last reply, without its texts */
    char *error, *holder, *type;
    struct holders holders;
    bool again;     /* it was asked again, after a temporary fault */
    bool read_only; /* it denied the command that may write, and was asked again by one that only reads */
    bool tried;     /* OP_BOOTSTRAP was sent, so its guard may have changed */
};

struct inspect {
    struct report report;
    struct waker waker;
    struct requester requester;
    const struct inspect_kind *kind;
    void *more; /* data of the kind */
    /* Whether the answers so far are enough; NULL: wait for all nodes. When patience_us is over, a quorum is enough. */
    bool (*enough)(const struct quorlock_inspect_report *);
    uint64_t patience_us; /* 0: it is over */
    enum op op;           /* the first request to each node */
    uint32_t first, end;  /* the nodes to ask */
    char *key;
    size_t key_length;
    const char *name;              /* the key without the prefix */
    char *owner;                   /* of BREAK: delete only what that one holds; NULL: all */
    quorlock_inspect_cb inspected; /* one of these two, or neither, if there is a kind */
    quorlock_break_cb broken;
    void *arg;
    int status;
    struct inspect_node nodes[];
};

/* inspect_start - ask every node about the key with that prefix: 0, or a status and its text. It frees `more` at its
 * end, or when it fails. */
int inspect_start(struct admin *, const struct inspect_kind *, void *more, enum op, const char *prefix,
                  const char *key);
/*
 * inspect_ask          - send one request to a node
 * inspect_ask_all      - send the first request to every node, as soon as it is connected
 * inspect_set_deadline - set the deadline of all requests in flight
 */
void inspect_ask(struct inspect *, uint32_t node, enum op);
void inspect_ask_all(struct inspect *);
void inspect_set_deadline(struct inspect *);
/* inspect_quarantine_ms - return the rest of the quarantine that the last reply shows: -1: no guard, or unknown. */
int64_t inspect_quarantine_ms(const struct inspect_node *);
/*
 * inspect_key   - implement quorlock_client_inspect
 * inspect_break - implement quorlock_client_break
 * inspect_one   - implement quorlock_client_inspect_node
 * inspect_until - inspect until the answers are enough, or a quorum has answered and patience_us is over
 */
int inspect_key(struct admin *, const char *key, quorlock_inspect_cb cb, void *arg);
int inspect_break(struct admin *, const char *key, const char *owner, quorlock_break_cb cb, void *arg);
int inspect_until(struct admin *, const char *key, bool (*enough)(const struct quorlock_inspect_report *),
                  uint64_t patience_us, quorlock_inspect_cb cb, void *arg);
int inspect_one(struct admin *, size_t node, const char *key, quorlock_inspect_cb cb, void *arg);
