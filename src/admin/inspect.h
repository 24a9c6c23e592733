/* SPDX-License-Identifier: BSD-3-Clause */
/* inspect.h - asks every node about a key: inspect and break, and the base of bootstrap */
#pragma once

#include "admin/holders.h"
#include "admin/report.h"

struct inspect;

enum answer { ANSWER_WAITED_FOR, ANSWER_ASKED, ANSWER_IN, ANSWER_NONE };

/* The hooks of what builds on an inspection; inspect and break have none. */
struct inspect_kind {
    void (*fill)(const struct inspect *, struct node_request *); /* completes a request */
    void (*reply)(struct inspect *, uint32_t node, const struct node_reply *);
    /* All nodes answered, or cannot. True: they were asked something else. False: it waits, or ends with the
     * status. */
    bool (*step)(struct inspect *, int *ret_status);
    bool (*waits)(const struct inspect *); /* asks nothing until its deadline, which calls wait_over */
    void (*wait_over)(struct inspect *);
    void (*report)(const struct inspect *, uint32_t node, struct quorlock_node_report *ret);
    void (*clear)(struct inspect *); /* frees its own data of the nodes */
};

struct inspect_node {
    enum answer answer;
    enum op op;              /* that it was asked last */
    struct node_reply reply; /* the last, without its texts */
    char *error, *holder, *type;
    struct holders holders;
    bool again;     /* it was asked again, after a fault that passes */
    bool read_only; /* for it denied the command that may write: asked again by the one that only reads */
    bool tried;     /* OP_BOOTSTRAP was sent: its guard may be another now */
};

struct inspect {
    struct report report;
    struct waker waker;
    struct requester requester;
    const struct inspect_kind *kind;
    void *more; /* the kind's own */
    /* Whether these answers suffice; NULL: all nodes are waited for. When its patience is over, those of a quorum do.
     */
    bool (*enough)(const struct quorlock_report *);
    uint64_t patience_us; /* 0: it is over */
    enum op op;           /* what each node is asked first */
    uint32_t first, end;  /* the nodes that are asked */
    char *key;
    size_t key_length;
    const char *name; /* of the key, without prefix */
    quorlock_report_cb call;
    void *arg;
    int status;
    struct inspect_node nodes[];
};

/* inspect_start - asks every node about the key with that prefix. Frees `more` at its end, or when it fails. 0
 * or a status, with its text. */
int inspect_start(struct admin *, const struct inspect_kind *, void *more, enum op, const char *prefix, const char *key,
                  quorlock_report_cb cb, void *arg);
/* inspect_ask - sends one request to a node. inspect_ask_all: the first request to every node, as soon as it is
 * connected. inspect_set_deadline: for all that is asked now. */
void inspect_ask(struct inspect *, uint32_t node, enum op);
void inspect_ask_all(struct inspect *);
void inspect_set_deadline(struct inspect *);
/* inspect_key - behind quorlock_inspect and quorlock_break: op is OP_PEEK or OP_BREAK. inspect_one: behind
 * quorlock_inspect_node. inspect_until: quorlock_inspect that ends as soon as the answers suffice, or a quorum has
 * answered and so much time has passed. */
int inspect_key(struct admin *, enum op, const char *key, quorlock_report_cb cb, void *arg);
int inspect_until(struct admin *, const char *key, bool (*enough)(const struct quorlock_report *), uint64_t patience_us,
                  quorlock_report_cb cb, void *arg);
int inspect_one(struct admin *, size_t node, const char *key, quorlock_report_cb cb, void *arg);
