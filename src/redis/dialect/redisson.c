/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redisson.c - the redisson dialect: a hash at the key, with the owner as its field and a count as the value
 *
 * The scripts have the order, keys, arguments and replies of plain's, so plain.c builds and reads for both. There are
 * three differences: every write is a script, peek also returns the count, and a key that holds no hash is foreign.
 */
#include <stdio.h>
#include <string.h>

#include "redis/dialect/dialect.h"
#include "redis/wire/errors.h"
#include "scripts.h"

#define REDISSON_PEEK_ELEMENTS 6 /* one more with the number of waiters */
#define REDISSON_CHANNEL       "redisson_lock__channel"

static const struct dialect_script redisson_scripts[SCRIPTS] = {
    [SCRIPT_EXTEND] = DIALECT_SCRIPT(redisson_extend),     [SCRIPT_RELEASE] = DIALECT_SCRIPT(redisson_release),
    [SCRIPT_PEEK] = DIALECT_SCRIPT(redisson_peek),         [SCRIPT_BREAK] = DIALECT_SCRIPT(redisson_break),
    [SCRIPT_ACQUIRE] = DIALECT_SCRIPT(redisson_acquire),   [SCRIPT_RAISE] = DIALECT_SCRIPT(redisson_raise),
    [SCRIPT_COMBINED] = DIALECT_SCRIPT(redisson_combined),
};

static const char *const redisson_commands[] = {"HEXISTS", "HSCAN", "HSET",    "HDEL", "PTTL",
                                                "PEXPIRE", "TIME",  "EVALSHA", NULL};

static bool redisson_build(struct bytes *out, const struct node_request *request, uint32_t *whole_sent,
                           const struct guard *guard)
{
    /* Bootstrap reads the guard, which is a string in both dialects. It does so rarely, so the script is sent as text.
     */
    if (request->op == OP_PEEK && request->keys[0].length == sizeof(GUARD_KEY) - 1 &&
        memcmp(request->keys[0].text, GUARD_KEY, sizeof(GUARD_KEY) - 1) == 0) {
        uint32_t none = 0;

        return dialect_build(out, request, &none, guard, &dialect_plain);
    }
    return dialect_build(out, request, whole_sent, guard, &dialect_redisson);
}

static char redisson_letter(const struct node_request *request, const struct guard *guard)
{
    (void)guard;
    return dialect_letter(request);
}

static void redisson_build_batch(struct bytes *out, const struct dialect_batch *batch, uint32_t *whole_sent,
                                 const struct guard *guard)
{
    dialect_build_batch(out, batch, whole_sent, guard, &dialect_redisson);
}

static void redisson_judge(enum op op, bool by_script, const struct reply *reply, struct node_reply *ret, char *text,
                           size_t text_size)
{
    bool acquires = op == OP_ACQUIRE || op == OP_REPAIR;
    struct reply cut;
    uint32_t count = 0;

    if (op == OP_PEEK && reply->self.type == REPLY_ARRAY && reply->n_elements >= REDISSON_PEEK_ELEMENTS &&
        reply->n_elements <= REDISSON_PEEK_ELEMENTS + 1) {
        const struct reply_item *item = &reply->elements[reply->n_elements - 1];

        cut = *reply;
        /* Without its last element this is a reply of plain. If that element is no count, the reply is cut to one
         * element, which fits nothing. */
        cut.n_elements = item->type == REPLY_INTEGER && item->integer >= 0 ? reply->n_elements - 1 : 1;
        count = item->integer > UINT32_MAX ? UINT32_MAX : (uint32_t)item->integer;
        reply = &cut;
    }
    /* This dialect sends no SET. */
    dialect_judge_reply(op, by_script || acquires, reply, ret, text, text_size);
    if (op == OP_PEEK && ret->outcome == OUTCOME_YES) ret->count = count;
    if (ret->fault == FAULT_FOREIGN) error_foreign(text, text_size, ret->type, ret->type_length, ERROR_NO_HASH);
}

/* Redisson leaves a name as it is if that has a hash tag already. */
static size_t redisson_channel(const struct node_key *key, size_t prefix, char *ret, size_t size)
{
    bool tagged = memchr(key->text, '{', key->length) != NULL;

    (void)prefix; /* it belongs to the name that Redisson knows */
    return bytes_put(ret, size, tagged ? REDISSON_CHANNEL ":" : REDISSON_CHANNEL ":{", key->text, key->length,
                     tagged ? "" : "}");
}

/* A batch of one request is sent as the ordinary command. */
_Static_assert(sizeof(script_redisson_combined) >= sizeof(script_redisson_extend) &&
                   sizeof(script_redisson_combined) >= sizeof(script_redisson_release) &&
                   sizeof(script_redisson_combined) >= sizeof(script_redisson_acquire),
               "a batch has room for them");

const struct dialect dialect_redisson = {
    .scripts = redisson_scripts,
    .commands = redisson_commands,
    .build = redisson_build,
    .letter = redisson_letter,
    .build_batch = redisson_build_batch,
    .channel = redisson_channel,
    .judge = redisson_judge,
};
