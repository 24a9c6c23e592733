/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/request.h"

#include <assert.h>
#include <stdio.h>
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
    assert(texts->owner_length > 0 && texts->owner_length < REQUEST_OWNER_SIZE);
}

/* An intent is of the waiter itself; an attempt of a reader or a fair lock names the waiter beside the owner. */
static void name_waiter(struct node_request *request, const struct runtime *runtime, const struct terms *terms,
                        const struct core_token *waiter, struct request_texts *texts)
{
    if (request->op == OP_INTEND) {
        request->waiter = request->owner;
        request->waiter_length = request->owner_length;
    } else if (request->op == OP_ACQUIRE && (request->shared != 0 || request->fair) && waiter != NULL) {
        if (texts->waiter_length == 0) texts->waiter_length = request_owner_text(runtime, terms, waiter, texts->waiter);
        request->waiter = texts->waiter;
        request->waiter_length = texts->waiter_length;
    }
}

void request_fill(struct node_request *request, const struct runtime *runtime, const struct terms *terms,
                  const struct core_command *command, const struct core_token *waiter, struct request_texts *texts)
{
    const struct core_tag *tag = &command->tag;

    assert(request->n_keys >= 1 && tag->lease_us / MS <= UINT32_MAX);
    assert(terms->config.permits == 0 || request->n_keys == 1);
    request->op = (enum op)tag->op;
    request->prefix = runtime->prefix_length;
    request->lease_ms = (uint32_t)(tag->lease_us / MS);
    request->fenced = terms->config.fencing;
    request->fence = command->fence;
    request->fence_ttl_ms = terms->fence_ttl_ms;
    request->keep = tag->op == OP_RELEASE && tag->lease_us != 0;
    request->explain = command->explain;
    request->patient = command->patient;
    request->watch = command->watch;
    request->silent = command->silent;
    request->if_deleted = command->if_deleted;
    request->shared = terms->config.shared;
    request->permits = terms->config.permits & UINT8_MAX;
    request->slot = tag->slot == CORE_SLOT_NONE ? 0 : tag->slot;
    request->any = command->any || tag->slot == CORE_SLOT_NONE;
    request->passed = command->passed;
    request->fair = command->queues;
    request->waited_us = command->waited_us;
    request->queued_ms = (uint32_t)(command->queued_us / MS);
    request->timeout_ms = (uint32_t)((command->timeout_us + MS - 1) / MS);
    name_owner(request, runtime, terms, &command->token, texts);
    name_waiter(request, runtime, terms, waiter, texts);
}

/* ---- a key that was denied ---- */

/* Add a name of the key to the text, with front behind the prefix. What does not fit is left out. */
static void request_add_key(char *text, size_t prefix, const char *front, const struct node_key *key)
{
    size_t used = strlen(text), room = REQUEST_DENIED_SIZE - used;
    int written = snprintf(text + used, room, " %.*s%s", (int)prefix, key->text, front);
    char *at = text + used + written;

    assert(used < REQUEST_DENIED_SIZE);
    if (written < 0 || (size_t)written + key->length - prefix >= room) {
        text[used] = '\0';
        return;
    }
    at = stpncpy(at, key->text + prefix, key->length - prefix);
    *at = '\0';
    while (--at > text + used) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f) *at = '?';
    }
}

static void add_permit_keys(char *text, size_t prefix, const struct terms *terms, const struct node_key *name,
                            uint32_t slot)
{
    char front[48];

    assert(slot < terms->config.permits);
    request_add_key(text, prefix, "quorlock:permits:", name);
    if (terms->config.fair) request_add_key(text, prefix, "quorlock:queue:", name);
    snprintf(front, sizeof(front), "quorlock:fence:quorlock:slot:%u:", (unsigned)slot);
    request_add_key(text, prefix, front + sizeof("quorlock:fence:") - 1, name);
    if (terms->config.fencing) request_add_key(text, prefix, front, name);
}

void request_denied(struct node_reply *reply, const struct runtime *runtime, const struct terms *terms,
                    const struct node_key *keys, uint32_t n_keys, uint32_t slot, char *text)
{
    static const struct node_key none = {"", 0};
    size_t prefix = runtime->prefix_length;

    if (reply->fault != FAULT_AUTH || reply->error == NULL || strstr(reply->error, " key") == NULL) return;
    snprintf(text, REQUEST_DENIED_SIZE, "%s; it asked for", reply->error);
    reply->error = text;
    if (terms->config.permits != 0) add_permit_keys(text, prefix, terms, &keys[0], slot);
    for (uint32_t i = 0; i < n_keys && terms->config.permits == 0; i++) {
        request_add_key(text, prefix, "", &keys[i]);
        if (terms->config.fencing) request_add_key(text, prefix, "quorlock:fence:", &keys[i]);
        if (terms->config.shared != 0) request_add_key(text, prefix, "quorlock:readers:", &keys[i]);
        if (terms->config.shared != 0) request_add_key(text, prefix, "quorlock:intents:", &keys[i]);
        if (terms->config.fair) request_add_key(text, prefix, "quorlock:queue:", &keys[i]);
    }
    if (runtime->options.guard != QUORLOCK_GUARD_OFF) request_add_key(text, 0, "quorlock:guard", &none);
}
