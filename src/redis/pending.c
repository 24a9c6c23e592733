/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/pending.h"

#include <assert.h>
#include <string.h>

struct header {
    enum pending_kind kind;
    size_t length; /* of the channel, which follows */
};

void pending_init(struct pending *pending, const struct alloc *alloc, size_t limit)
{
    *pending = (struct pending){.head = 0};
    bytes_init(&pending->log, alloc, limit);
}

void pending_forget_all(struct pending *pending)
{
    bytes_cut(&pending->log, 0);
    pending->head = pending->n = pending->n_listens = 0;
}

void pending_clear(struct pending *pending)
{
    pending_forget_all(pending);
    bytes_clear(&pending->log);
}

static struct header header_at(const struct pending *pending, size_t at)
{
    struct header header;

    assert(at + sizeof(header) <= pending->log.used);
    memcpy(&header, pending->log.data + at, sizeof(header));
    return header;
}

enum bytes_fault pending_push(struct pending *pending, enum pending_kind kind, const char *channel,
                              size_t length)
{
    struct bytes *log = &pending->log;
    struct header header;
    enum bytes_fault fault;
    size_t mark;

    /* Moved only when more is answered than not, so the cost of moving stays linear. */
    if (pending->head > log->used / 2) {
        bytes_shift(log, pending->head);
        pending->head = 0;
    }
    memset(&header, 0, sizeof(header));
    header.kind = kind;
    header.length = length;
    mark = log->used;
    bytes_append(log, &header, sizeof(header));
    bytes_append(log, channel, length);
    fault = log->fault;
    if (fault != BYTES_FINE) {
        bytes_cut(log, mark);
        return fault;
    }
    pending->n++;
    if (kind == PENDING_LISTEN) pending->n_listens++;
    return BYTES_FINE;
}

struct pending_entry pending_first(const struct pending *pending)
{
    struct header header = header_at(pending, pending->head);

    return (struct pending_entry){header.kind, pending->log.data + pending->head + sizeof(header),
                                  header.length};
}

void pending_pop(struct pending *pending)
{
    struct header header = header_at(pending, pending->head);

    pending->head += sizeof(header) + header.length;
    if (header.kind == PENDING_LISTEN) pending->n_listens--;
    if (--pending->n == 0) pending_forget_all(pending);
}

void pending_mute(struct pending *pending, const char *channel, size_t length)
{
    size_t at = pending->head;

    while (pending->n_listens != 0 && at < pending->log.used) {
        struct header header = header_at(pending, at);
        const char *name = pending->log.data + at + sizeof(header);

        if (header.kind == PENDING_LISTEN && header.length == length && memcmp(name, channel, length) == 0) {
            header.kind = PENDING_MUTED;
            memcpy(pending->log.data + at, &header, sizeof(header));
            pending->n_listens--;
        }
        at += sizeof(header) + header.length;
    }
}
