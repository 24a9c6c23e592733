/* SPDX-License-Identifier: BSD-3-Clause */
#include "keeper.h"

#include "example.h"

/* Short, so that it has to be renewed. */
#define LEASE_MS 500

static void on_closed(void *arg)
{
    struct keeper *keeper = arg;

    say("closed");
    keeper->ended(keeper->arg);
}

static void on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct keeper *keeper = arg;

    (void)lock;
    say(result->status == QUORLOCK_ERR_LOST ? "expired" : "released");
    quorlock_client_close(keeper->client, on_closed, keeper);
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct keeper *keeper = arg;

    (void)lock;
    if (result->status != QUORLOCK_OK) die("no lock: %s", result->text);
    say("granted token=%s", result->token);
    keeper->held(keeper->arg);
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    (void)lock;
    (void)arg;
    say("lost: %s", loss->text);
}

void keeper_begin(struct keeper *keeper, const struct quorlock_loop *loop, const char *const *nodes, size_t n_nodes)
{
    const struct quorlock_lock_options lease = {.size = sizeof(lease), .lease_ms = LEASE_MS};
    const char *const key = "daemon";
    struct quorlock_error error;
    const struct quorlock_client_options options = {
        .size = sizeof(options), .nodes = nodes, .n_nodes = n_nodes, .set_name = "examples"};

    if (quorlock_client_new_on_loop(&keeper->client, loop, &options, &error) != 0) die("%s", error.text);
    if (quorlock_lock_new(&keeper->lock, keeper->client, &key, 1, &lease) != 0) {
        die("%s", quorlock_client_error(keeper->client));
    }
    quorlock_lock_set_on_lost(keeper->lock, on_lost, keeper);
    if (quorlock_lock_acquire(keeper->lock, on_acquired, keeper) != 0) die("%s", quorlock_client_error(keeper->client));
}

void keeper_end(struct keeper *keeper)
{
    say("worked");
    if (quorlock_lock_release(keeper->lock, on_released, keeper) != 0) die("%s", quorlock_client_error(keeper->client));
}
