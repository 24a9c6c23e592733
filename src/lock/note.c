/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/note.h"

#include <string.h>

#include "runtime/owner.h"

static const struct note nothing = {.ttl_ms = -2};

const struct note *note_read(const struct note *note)
{
    return note != NULL ? note : &nothing;
}

static void drop_text(const struct alloc *alloc, char **text)
{
    alloc_free(alloc, *text);
    *text = NULL;
}

static void drop_if_empty(struct note **note, const struct alloc *alloc)
{
    const struct note *now = *note;

    if (now->error != NULL || now->holder != NULL || now->ttl_ms != -2) return;
    if (now->release_holder != NULL || now->release_error != NULL) return;
    alloc_free(alloc, *note);
    *note = NULL;
}

static struct note *open_note(struct note **note, const struct alloc *alloc)
{
    if (*note != NULL) return *note;
    *note = alloc_zero(alloc, sizeof(**note));
    if (*note != NULL) **note = nothing;
    return *note;
}

void note_take(struct note **ret, const struct alloc *alloc, uint64_t attempt, const struct node_reply *reply)
{
    struct note *note;

    if (reply->error == NULL && reply->holder == NULL && reply->ttl_ms == -2) {
        note_clear(ret, alloc);
        return;
    }
    note = open_note(ret, alloc);
    if (note == NULL) return;
    drop_text(alloc, &note->error);
    drop_text(alloc, &note->holder);
    note->ttl_ms = reply->ttl_ms;
    if (reply->error != NULL) note->error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) {
        note->holder = owner_copy(alloc, reply->holder, reply->holder_length);
        note->holder_attempt = attempt;
    }
}

void note_take_release(struct note **ret, const struct alloc *alloc, const struct node_reply *reply)
{
    struct note *note;

    note_clear_release(ret, alloc);
    if (reply->error == NULL && reply->holder == NULL) return;
    note = open_note(ret, alloc);
    if (note == NULL) return;
    if (reply->error != NULL) note->release_error = alloc_text(alloc, reply->error, strlen(reply->error));
    if (reply->holder != NULL) note->release_holder = alloc_text(alloc, reply->holder, reply->holder_length);
    drop_if_empty(ret, alloc);
}

void note_clear(struct note **ret, const struct alloc *alloc)
{
    struct note *note = *ret;

    if (note == NULL) return;
    drop_text(alloc, &note->error);
    drop_text(alloc, &note->holder);
    note->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

void note_forget_holder(struct note **ret, const struct alloc *alloc)
{
    drop_text(alloc, &(*ret)->holder);
    (*ret)->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

void note_clear_release(struct note **ret, const struct alloc *alloc)
{
    struct note *note = *ret;

    if (note == NULL) return;
    drop_text(alloc, &note->release_error);
    drop_text(alloc, &note->release_holder);
    drop_if_empty(ret, alloc);
}
