/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * note.h - what a node's answers said beyond yes and no, for people: the verdict is the core's
 *
 * Most answers say nothing, so a note exists only while there is something in it. Out of memory costs the text, not the
 * verdict.
 */
#pragma once

#include "base/alloc.h"
#include "runtime/nodes.h"

struct note {
    char *error, *holder;
    int64_t ttl_ms;
    uint64_t holder_attempt;              /* in which the node named the holder */
    uint64_t named_id;                    /* the holder that it named last, also where it is not quoted any more */
    char *release_holder, *release_error; /* what the answer to the latest release said; NULL: nothing */
    uint32_t readers : 31;                /* callbacks that were handed its texts */
    bool left : 1;                        /* to the last of these, who frees it */
};

/* note_read - the note, or one that says nothing. */
const struct note *note_read(const struct note *);
/* note_lend - it stays as it is until it is given back: who changes it meanwhile makes another one. NULL is fine. */
void note_lend(struct note *);
void note_give_back(struct note *, const struct alloc *);
/* note_take - writes down what the answer to an attempt or a renewal says, in place of the one before.
 * note_take_release: likewise of a release. */
void note_take(struct note **, const struct alloc *, uint64_t attempt, const struct node_reply *);
void note_take_release(struct note **, const struct alloc *, const struct node_reply *);
/* note_clear - what an attempt or a renewal said. note_forget_holder: only its holder. note_clear_release: what a
 * release said. A note that says nothing is freed. */
void note_clear(struct note **, const struct alloc *);
void note_forget_holder(struct note **, const struct alloc *);
void note_clear_release(struct note **, const struct alloc *);
