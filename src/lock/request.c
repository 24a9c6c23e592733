/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/request.h"

#include <string.h>

#include "runtime/owner.h"

#define MS 1000u

size_t request_owner_text(const struct runtime *runtime, const struct terms *terms, const struct core_token *token,
                          char *ret)
{
    if (runtime->uuid[0] != '\0') return owner_redisson(ret, runtime->uuid, token);
    return owner_plain(ret, terms->label, terms->label_length, token);
}

static void name_owner(struct node_request *request, const struct runtime *runtime, const struct terms *terms,
                       const struct core_token *token, struct request_texts *texts)
{
    if (texts->owner_length == 0 || memcmp(&texts->token, token, sizeof(*token)) != 0) {
        texts->token = *token;
        texts->owner_length = request_owner_text(runtime, terms, token, texts->owner);
    }
    request->owner = texts->owner;
    request->owner_length = texts->owner_length;
}

/* An intent is the waiter's own; a reader's attempt names it beside the owner. */
static void name_waiter(struct node_request *request, const struct runtime *runtime, const struct terms *terms,
                        const struct core_token *waiter, struct request_texts *texts)
{
    if (request->op == OP_INTEND) {
        request->waiter = request->owner;
        request->waiter_length = request->owner_length;
    } else if (request->op == OP_ACQUIRE && request->shared != 0 && waiter != NULL) {
        if (texts->waiter_length == 0) texts->waiter_length = request_owner_text(runtime, terms, waiter, texts->waiter);
        request->waiter = texts->waiter;
        request->waiter_length = texts->waiter_length;
    }
}

void request_fill(struct node_request *request, const struct runtime *runtime, const struct terms *terms,
                  const struct core_command *command, const struct core_token *waiter, struct request_texts *texts)
{
    const struct core_tag *tag = &command->tag;
    uint64_t waited_ms = command->waited_us / MS;

    request->op = (enum op)tag->op;
    request->use_eval = command->use_eval;
    request->lease_ms = (uint32_t)(tag->lease_us / MS);
    request->fenced = terms->config.fencing;
    request->fence = command->fence;
    request->fence_ttl_ms = terms->fence_ttl_ms;
    request->explain = command->explain;
    request->silent = command->silent;
    request->if_deleted = command->if_deleted;
    request->shared = terms->config.shared;
    request->permits = terms->config.permits & UINT8_MAX;
    request->slot = tag->slot == CORE_SLOT_NONE ? 0 : tag->slot;
    request->any = command->any || tag->slot == CORE_SLOT_NONE;
    request->passed = command->passed;
    request->waited_ms = waited_ms < UINT32_MAX ? (uint32_t)waited_ms : UINT32_MAX;
    request->timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS);
    name_owner(request, runtime, terms, &command->token, texts);
    name_waiter(request, runtime, terms, waiter, texts);
}
