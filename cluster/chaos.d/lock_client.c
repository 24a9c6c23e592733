/* SPDX-License-Identifier: BSD-3-Clause */
/* lock_client.c - users that take a lock: exclusive, shared, or one of several permits */
#include "lock_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MORE_SIZE 512

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;

    (void)result;
    if (lock != user->lock) {
        user_breach(user, "a release calls back for another lock");
        return;
    }
    user_given_back(user);
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct user *user = arg;

    if (lock != user->lock) {
        user_breach(user, "a loss callback of another lock");
        return;
    }
    user_lost(user, loss);
}

static void granted(struct user *user, const struct quorlock_result *result)
{
    char more[MORE_SIZE];
    int length =
        snprintf(more, sizeof(more), ",\"fence\":%" PRIu64 ",\"rounds\":%" PRIu32 ",\"yes\":%u,\"token\":\"%s\"",
                 result->fence, result->rounds, result->granted, result->token);

    if (user->permits != 0) {
        user->parts[0].subject.slot = result->slot;
        (void)snprintf(more + length, sizeof(more) - (size_t)length, ",\"permits\":%" PRIu32, user->permits);
    }
    user_granted(user, result->valid_ms > 0, more);
    /* Until the first writer there is no token for readers; the judge knows whether there was one. */
    if (user->chaos->options.fencing && result->fence == 0 && !user->parts[0].shared)
        user_breach(user, "a fenced grant without a token");
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;
    char more[MORE_SIZE];

    if (lock != user->lock || user->state != USER_ASKING) {
        user_breach(user, "an acquire calls back twice, or unasked");
        return;
    }
    if (result->status == QUORLOCK_OK) {
        granted(user, result);
        return;
    }
    (void)snprintf(more, sizeof(more), ",\"yes\":%u,\"no\":%u,\"none\":%u", result->granted, result->refused,
                   result->failed);
    user_refused(user, quorlock_status_name(result->status), more);
}

/* Make the handle. options: what differs from lock to lock. */
static void make(struct user *user, struct quorlock_lock_options *options)
{
    const char *keys[USER_PARTS_MAX];

    options->size = sizeof(*options);
    options->lease_ms = user->lease_ms;
    options->fencing = user->chaos->options.fencing;
    for (size_t i = 0; i < user->n_parts; i++) {
        keys[i] = user->parts[i].subject.key;
        if (user->parts[i].shared) options->shared |= UINT64_C(1) << i;
    }
    if (quorlock_lock_new(&user->lock, user->chaos->client, keys, user->n_parts, options) != 0) {
        (void)fprintf(stderr, "chaos_client: no lock: %s\n", quorlock_client_error(user->chaos->client));
        exit(1);
    }
    quorlock_lock_set_on_lost(user->lock, on_lost, user);
}

/* One key, which is never shared and has no permits. */
static bool is_plain(const struct user *user)
{
    return user->n_parts == 1 && user->parts[0].subject.mode == NULL && !user->parts[0].shared;
}

static int ask(struct user *user)
{
    struct quorlock_lock_options options = {.wait_ms = user->wait_ms > 0 ? user->wait_ms : QUORLOCK_TRY_ONCE,
                                            .permits = user->permits};

    if (user->chaos->options.mixed) {
        options.fair = user->permits == 0 && ONE_IN(user->chaos, 3);
        if (is_plain(user) && ONE_IN(user->chaos, 8)) options.keep_ms = user->lease_ms / 2;
    }
    make(user, &options);
    return quorlock_lock_acquire(user->lock, on_acquired, user);
}

static void on_adopted(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct user *user = arg;

    (void)lock;
    user_passed_on(user, result->status == QUORLOCK_OK);
}

static void pass_on(struct user *user)
{
    struct quorlock_lock_options options = {.wait_ms = QUORLOCK_TRY_ONCE};
    quorlock_lock *former = user->lock;
    const char *token;

    if (!user->chaos->options.mixed || !is_plain(user) || !ONE_IN(user->chaos, 50)) return;
    if (quorlock_lock_detach(former, &token, NULL, NULL) != 0) {
        /* This process may have stalled since it was last seen to be held. */
        if (quorlock_lock_valid_ms(former) > 0) user_breach(user, "a lock that is held cannot be passed on");
        return;
    }
    user->is_passing = true;
    make(user, &options);
    if (quorlock_lock_adopt(user->lock, token, on_adopted, user) != 0) {
        user_breach(user, "a lock that was passed on is not adopted");
        user_passed_on(user, false);
    }
    quorlock_lock_free(former);
}

static void cancel(struct user *user)
{
    (void)quorlock_lock_cancel(user->lock);
}

static int release(struct user *user)
{
    return quorlock_lock_release(user->lock, on_released, user);
}

static uint32_t valid_ms(const struct user *user)
{
    return quorlock_lock_valid_ms(user->lock);
}

static uint64_t fence(const struct user *user)
{
    return quorlock_lock_fence(user->lock);
}

static void drop(struct user *user)
{
    quorlock_lock_free(user->lock);
    user->lock = NULL;
}

const struct user_kind lock_kind = {.ask = ask,
                                    .cancel = cancel,
                                    .release = release,
                                    .lost = user_give_back,
                                    .pass_on = pass_on,
                                    .valid_ms = valid_ms,
                                    .fence = fence,
                                    .drop = drop};
