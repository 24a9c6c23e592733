/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/note.h"

#include <assert.h>
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

static char *note_copy(const struct alloc *alloc, const char *text)
{
    return text != NULL ? alloc_text(alloc, text, strlen(text)) : NULL;
}

static void note_destroy(struct note *note, const struct alloc *alloc)
{
    assert(note->readers == 0);
    drop_text(alloc, &note->error);
    drop_text(alloc, &note->holder);
    drop_text(alloc, &note->release_error);
    drop_text(alloc, &note->release_holder);
    alloc_free(alloc, note);
}

/* ---- for readers ---- */

void note_lend(struct note *note)
{
    if (note != NULL) note->readers++;
}

void note_give_back(struct note *note, const struct alloc *alloc)
{
    if (note == NULL) return;
    assert(note->readers > 0);
    note->readers--;
    if (note->readers == 0 && note->left) note_destroy(note, alloc);
}

enum part { PART_NONE, PART_ATTEMPT, PART_RELEASE };

/* A copy of what is lent, without the part that goes. */
static struct note *leave_lent(struct note **ret, const struct alloc *alloc, enum part goes)
{
    struct note *lent = *ret;
    struct note rest = nothing;
    bool any = false;

    assert(lent->readers > 0 && !lent->left);
    lent->left = true;
    *ret = NULL;
    if (goes != PART_ATTEMPT) {
        rest.error = lent->error;
        rest.holder = lent->holder;
        rest.ttl_ms = lent->ttl_ms;
        any = rest.error != NULL || rest.holder != NULL || rest.ttl_ms != -2;
    }
    if (goes != PART_RELEASE) {
        rest.release_holder = lent->release_holder;
        rest.release_error = lent->release_error;
        any = any || rest.release_holder != NULL || rest.release_error != NULL;
    }
    if (any) *ret = alloc_zero(alloc, sizeof(**ret));
    if (*ret == NULL) return NULL;
    **ret = (struct note){.error = note_copy(alloc, rest.error),
                          .holder = note_copy(alloc, rest.holder),
                          .ttl_ms = rest.ttl_ms,
                          .holder_attempt = lent->holder_attempt,
                          .named_id = lent->named_id,
                          .release_holder = note_copy(alloc, rest.release_holder),
                          .release_error = note_copy(alloc, rest.release_error)};
    return *ret;
}

/* To be changed, and that part of it goes anyway. What is lent stays with its readers: this is a copy of the rest, or
 * NULL where there is none, or no memory for it. */
static inline struct note *note_own(struct note **ret, const struct alloc *alloc, enum part goes)
{
    return *ret == NULL || (*ret)->readers == 0 ? *ret : leave_lent(ret, alloc, goes);
}

/* ---- what the answers say ---- */

static void drop_if_empty(struct note **note, const struct alloc *alloc)
{
    const struct note *now = *note;

    assert(now->readers == 0);
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
    (void)note_own(ret, alloc, PART_ATTEMPT);
    note = open_note(ret, alloc);
    if (note == NULL) return;
    assert(note->readers == 0);
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
    struct note *note = note_own(ret, alloc, PART_ATTEMPT);

    if (note == NULL) return;
    drop_text(alloc, &note->error);
    drop_text(alloc, &note->holder);
    note->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

void note_forget_holder(struct note **ret, const struct alloc *alloc)
{
    struct note *note = note_own(ret, alloc, PART_NONE);

    if (note == NULL) return;
    drop_text(alloc, &note->holder);
    note->ttl_ms = -2;
    drop_if_empty(ret, alloc);
}

void note_clear_release(struct note **ret, const struct alloc *alloc)
{
    struct note *note = note_own(ret, alloc, PART_RELEASE);

    if (note == NULL) return;
    drop_text(alloc, &note->release_error);
    drop_text(alloc, &note->release_holder);
    drop_if_empty(ret, alloc);
}
