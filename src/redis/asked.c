/* SPDX-License-Identifier: BSD-3-Clause */
#include "asked.h"

#include <assert.h>
#include <string.h>

struct asked_header {
    enum asked_kind kind;
    size_t length; /* of the channel, which follows */
};

void asked_init(struct asked *asked, const struct alloc *alloc, size_t limit)
{
    *asked = (struct asked){.head = 0};
    bytes_init(&asked->log, alloc, limit);
}

void asked_forget_all(struct asked *asked)
{
    bytes_cut(&asked->log, 0);
    asked->head = asked->n = asked->n_listens = 0;
}

void asked_clear(struct asked *asked)
{
    asked_forget_all(asked);
    bytes_clear(&asked->log);
}

static struct asked_header asked_header_at(const struct asked *asked, size_t at)
{
    struct asked_header header;
    assert(at + sizeof header <= asked->log.used);
    memcpy(&header, asked->log.data + at, sizeof header);
    return header;
}

enum bytes_fault asked_push(struct asked *asked, enum asked_kind kind, const char *channel, size_t length)
{
    struct bytes *log = &asked->log;
    /* Moved only when as much is answered as not, so that all of it together costs no more than once again. */
    if (asked->head > log->used / 2) {
        bytes_shift(log, asked->head);
        asked->head = 0;
    }
    struct asked_header header;
    memset(&header, 0, sizeof header);
    header.kind = kind;
    header.length = length;
    size_t mark = log->used;
    bytes_append(log, &header, sizeof header);
    bytes_append(log, channel, length);
    enum bytes_fault fault = log->fault;
    if (fault) {
        bytes_cut(log, mark);
        return fault;
    }
    asked->n++;
    if (kind == ASKED_LISTEN) asked->n_listens++;
    return BYTES_FINE;
}

struct asked_entry asked_first(const struct asked *asked)
{
    assert(asked->n);
    struct asked_header header = asked_header_at(asked, asked->head);
    return (struct asked_entry){header.kind, asked->log.data + asked->head + sizeof header, header.length};
}

void asked_pop(struct asked *asked)
{
    assert(asked->n);
    struct asked_header header = asked_header_at(asked, asked->head);
    asked->head += sizeof header + header.length;
    if (header.kind == ASKED_LISTEN) asked->n_listens--;
    if (!--asked->n) asked_forget_all(asked);
}

void asked_mute(struct asked *asked, const char *channel, size_t length)
{
    size_t at = asked->head;
    while (asked->n_listens && at < asked->log.used) {
        struct asked_header header = asked_header_at(asked, at);
        const char *name = asked->log.data + at + sizeof header;
        if (header.kind == ASKED_LISTEN && header.length == length && memcmp(name, channel, length) == 0) {
            header.kind = ASKED_MUTED;
            memcpy(asked->log.data + at, &header, sizeof header);
            asked->n_listens--;
        }
        at += sizeof header + header.length;
    }
}
