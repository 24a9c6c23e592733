/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/far.h"

#include <assert.h>
#include <string.h>

#define FRONT "quorlock:turn:"

struct far {
    struct listener listener;
    struct waker waker;
    const struct far_events *events;
    struct keylist *keylist;
    void *owner;
    char name[]; /* as queue_moved() of queue.lua makes it, without the front of all channels */
};

static void far_on_wake(struct waker *waker)
{
    struct far *far = CONTAINER_OF(waker, struct far, waker);

    far->events->woken(far->owner);
}

void far_wake(struct listener *listener)
{
    struct far *far = CONTAINER_OF(listener, struct far, listener);
    struct runtime *runtime = far->keylist->all->runtime;

    runtime_wake_at(runtime, &far->waker, runtime_now_us(runtime));
}

struct far *far_begin(struct keylist *keylist, const struct far_events *events, void *owner, const char *waiter)
{
    struct runtime *runtime = keylist->all->runtime;
    const struct node_key *key = &keylist->keys[0];
    size_t prefix = runtime->prefix_length;
    size_t size = key->length + strlen(FRONT) + strlen(waiter) + 2;
    struct far *far = alloc_zero(&runtime->alloc, sizeof(*far) + size);
    struct node_key own;
    char *at;

    assert(keylist->n_keys == 1);
    if (far == NULL) return NULL;
    runtime_start_waker(runtime, &far->waker, far_on_wake);
    far->listener.events = &events->told;
    far->events = events;
    far->keylist = keylist;
    far->owner = owner;
    memcpy(far->name, key->text, prefix);
    at = stpcpy(stpcpy(stpcpy(far->name + prefix, FRONT), waiter), ":");
    at = stpcpy(at, key->text + prefix);
    own = (struct node_key){.text = far->name, .length = (size_t)(at - far->name)};
    assert(own.length < size);
    subscriptions_open(&keylist->all->subscriptions, &far->listener, &own, 1, 1u << keylist_arbiter(keylist));
    return far;
}

void far_end(struct far *far)
{
    runtime_stop_waker(&far->waker);
    subscriptions_close(&far->keylist->all->subscriptions, &far->listener);
    alloc_free(&far->keylist->all->runtime->alloc, far);
}

void *far_owner(struct listener *listener)
{
    return CONTAINER_OF(listener, struct far, listener)->owner;
}

uint32_t far_confirmed(const struct far *far)
{
    return subscriptions_confirmed(&far->listener);
}
