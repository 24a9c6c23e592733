/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - the core's commands as requests to the nodes */
#pragma once

#include "core/core.h"
#include "lock/terms.h"
#include "runtime/nodes.h"

#define REQUEST_OWNER_SIZE (OPTIONS_LABEL_SIZE + 2 * CORE_TOKEN_SIZE)

/* Texts of the requests of one step, which mostly have the same owner. */
struct request_texts {
    struct core_token token; /* the owner's */
    size_t owner_length;     /* 0: none yet */
    size_t waiter_length;    /* likewise */
    char owner[REQUEST_OWNER_SIZE], waiter[REQUEST_OWNER_SIZE];
};

/* request_owner_text - write the owner with that token, as the nodes know it, to ret, of REQUEST_OWNER_SIZE; return its
 * length. */
size_t request_owner_text(const struct runtime *, const struct terms *, const struct core_token *, char *ret);
/* request_fill - fill in all but the keys. waiter: of core_waiter(). The request points into the texts. */
void request_fill(struct node_request *, const struct runtime *, const struct terms *, const struct core_command *,
                  const struct core_token *waiter, struct request_texts *);
/* request_denied - if a reply reports that the user may not use a key, add the keys of the request to its error,
 * because servers do not name the key. slot: of a permit. The new error is in text, of REQUEST_DENIED_SIZE. */
#define REQUEST_DENIED_SIZE 640
void request_denied(struct node_reply *, const struct runtime *, const struct terms *, const struct node_key *keys,
                    uint32_t n_keys, uint32_t slot, char *text);
