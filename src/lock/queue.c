/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line.c - everybody of this client who wants the same keys
 *
 * Those who wait stand in the order of coming, and only the first of them asks the nodes: however many wait in
 * this process, the nodes see one. When a lock of this process gives the keys back, the first in line asks in
 * the same flush, behind the release: the keys go on in one round trip. And who releases and acquires again at
 * once is always sooner there than whoever has to hear of it first. So that other processes get their turn,
 * either is done only some times in a row; then this process holds back for as long as the others need to come.
 *
 * Who leaves the head of the line without the lock leaves his place at the nodes to the next: what they said to
 * him holds for both, and however many give up at once, nobody asks anew.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/validity.h"
#include "lock/lock.h"

#define KEYLIST_BUCKETS_MIN 64u
#define QUEUE_HANDED_MAX    8u      /* times in a row in which no other process had a chance */
#define QUEUE_AT_ONCE_US    5000u   /* within that after giving back, acquiring is at once */
#define QUEUE_OTHERS_US     500000u /* whoever listened a moment ago waits still */

/* ---- the table ---- */

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

/* FNV-1a over all keys; a byte that ends each keeps "ab","c" from "a","bc". */
static uint64_t hash_of(const char *const *keys, size_t n_keys)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n_keys; i++) hash = mix(hash, keys[i]);
    return hash;
}

/* Keys are compared without their prefix, which is the client's. */
static bool same_keys(const struct keylist *keylist, const char *const *keys, size_t n_keys)
{
    size_t prefix = strlen(keylist->client->key_prefix);

    if (keylist->n_keys != n_keys) return false;
    for (size_t i = 0; i < n_keys; i++) {
        if (strcmp(keylist->keys[i].text + prefix, keys[i]) != 0) return false;
    }
    return true;
}

/* One bucket a line on the average. Where memory is short the chains get longer, that is all. */
static int grow(struct quorlock_client *client)
{
    size_t room = client->n_buckets == 0 ? KEYLIST_BUCKETS_MIN : 2 * client->n_buckets;
    struct keylist **buckets;

    if (client->n_keylists < client->n_buckets) return 0;
    buckets = alloc_zero(&client->alloc, room * sizeof(struct keylist *));
    if (buckets == NULL) return client->n_buckets == 0 ? -1 : 0;
    for (size_t i = 0; i < client->n_buckets; i++) {
        struct keylist *next;

        for (struct keylist *keylist = client->buckets[i]; keylist != NULL; keylist = next) {
            struct keylist **bucket = &buckets[keylist->hash % room];

            next = keylist->next;
            keylist->next = *bucket;
            *bucket = keylist;
        }
    }
    alloc_free(&client->alloc, client->buckets);
    client->buckets = buckets;
    client->n_buckets = room;
    return 0;
}

/* ---- one line ---- */

static void destroy(struct keylist *keylist)
{
    const struct alloc *alloc = &keylist->client->alloc;

    notices_drop(keylist);
    for (size_t i = 0; i < keylist->n_keys; i++) {
        /* They are the line's own copies; the nodes only read them. */
        char *text = NULL;

        memcpy(&text, &keylist->keys[i].text, sizeof(text));
        alloc_free(alloc, text);
    }
    alloc_free(alloc, keylist->name);
    alloc_free(alloc, keylist);
}

/* The keys for people. A key may hold anything, a log line must stay one line. */
static char *name_of(const struct quorlock_client *client, const char *const *keys, size_t n_keys)
{
    size_t length = 0;
    char *name;
    char *at;

    for (size_t i = 0; i < n_keys; i++) length += strlen(keys[i]) + 2;
    name = at = alloc_zero(&client->alloc, length + 1);
    if (name == NULL) return NULL;
    for (size_t i = 0; i < n_keys; i++) {
        size_t n = strlen(keys[i]);

        if (i > 0) {
            *at++ = ',';
            *at++ = ' ';
        }
        memcpy(at, keys[i], n);
        for (size_t k = 0; k < n; k++) {
            if (iscntrl((unsigned char)at[k])) at[k] = '?';
        }
        at += n;
    }
    return name;
}

static struct keylist *build(struct quorlock_client *client, const char *const *keys, size_t n_keys)
{
    struct keylist *keylist = alloc_zero(&client->alloc, sizeof(*keylist) + n_keys * sizeof(struct node_key));

    if (keylist == NULL) return NULL;
    keylist->client = client;
    keylist->n_keys = n_keys;
    keylist->name = name_of(client, keys, n_keys);
    for (size_t i = 0; i < n_keys; i++) {
        struct node_key *key = &keylist->keys[i];

        key->text = alloc_joined(&client->alloc, client->key_prefix, keys[i], &key->length);
        if (key->text == NULL) break;
    }
    if (keylist->name != NULL && keylist->keys[n_keys - 1].text != NULL) return keylist;
    destroy(keylist);
    return NULL;
}

struct keylist *keylist_join(struct quorlock_client *client, const char *const *keys, size_t n_keys)
{
    uint64_t hash = hash_of(keys, n_keys);
    struct keylist *keylist;

    if (grow(client) != 0) return NULL;
    for (keylist = client->buckets[hash % client->n_buckets]; keylist != NULL; keylist = keylist->next) {
        if (keylist->hash == hash && same_keys(keylist, keys, n_keys)) break;
    }
    if (keylist == NULL) {
        struct keylist **bucket = &client->buckets[hash % client->n_buckets];

        keylist = build(client, keys, n_keys);
        if (keylist == NULL) return NULL;
        keylist->hash = hash;
        keylist->next = *bucket;
        *bucket = keylist;
        client->n_keylists++;
    }
    keylist->users++;
    return keylist;
}

void keylist_leave(struct keylist *keylist)
{
    struct quorlock_client *client = keylist->client;
    struct keylist **at = &client->buckets[keylist->hash % client->n_buckets];

    if (--keylist->users > 0) return;
    while (*at != keylist) at = &(*at)->next;
    *at = keylist->next;
    client->n_keylists--;
    destroy(keylist);
}

/* Another one first for other keys, so that not all who wait ask the same. By the first key alone: longer lists
 * that begin with it should meet there. */
static uint8_t arbiter_at(const struct keylist *keylist, uint32_t place)
{
    const struct quorlock_client *client = keylist->client;
    uint64_t first = claim_holder_id(keylist->keys[0].text, keylist->keys[0].length) >> 1;

    return client->order[(first + place) % client->n_nodes];
}

void keylist_arbiters(const struct keylist *keylist, struct core_config *config)
{
    for (uint32_t i = 0; i < keylist->client->n_nodes; i++) config->arbiters[i] = arbiter_at(keylist, i);
}

/*
 * The first arbiters, and only so many that one of them lives as long as a quorum does: where many wait for a
 * key it is waking them all that costs most, and each more that tells them wakes them once more.
 */
uint32_t keylist_listens_on(const struct keylist *keylist)
{
    uint32_t n_nodes = keylist->client->n_nodes;
    uint32_t n = n_nodes - options_quorum(keylist->client->options.policy, n_nodes) + 1;
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < n; i++) nodes |= 1u << arbiter_at(keylist, i);
    return nodes;
}

/* ---- standing in line ---- */

static struct quorlock *first_of(const struct keylist *keylist)
{
    return LIST_ITEM(keylist->waiting.first, struct quorlock, turn);
}

static bool asks(const struct quorlock *lock)
{
    return lock->claim != NULL && lock->claim->acquirer == lock;
}

void queue_count_listeners(struct keylist *keylist, uint32_t node, uint32_t listeners)
{
    uint32_t ours = (notices_confirmed(keylist) & 1u << node) != 0;

    if (listeners > ours) keylist->others_until_us = client_now_us(keylist->client) + QUEUE_OTHERS_US;
}

static bool others_listen(const struct keylist *keylist)
{
    return client_now_us(keylist->client) < keylist->others_until_us;
}

/* True: it is the others' turn. */
static bool holds_back(struct keylist *keylist)
{
    if (!others_listen(keylist)) return false;
    if (keylist->handed < QUEUE_HANDED_MAX) {
        keylist->handed++;
        return false;
    }
    keylist->handed = 0;
    return true;
}

/* The first in line begins to ask. */
static int begin(struct quorlock *lock, uint32_t seen)
{
    struct keylist *keylist = lock->keylist;
    struct core_event event = {.type = CORE_EV_WAKE, .behind = true};
    uint64_t since_us = client_now_us(keylist->client) - keylist->gave_back_us;
    bool at_once = keylist->gave_back_us != 0 && since_us < QUEUE_AT_ONCE_US;
    bool back = at_once && keylist->held == 0 && others_listen(keylist);
    int status = claim_acquire(lock, keylist->held > 0 || back, seen);

    if (!at_once) keylist->handed = 0;
    if (status == 0 && back) (void)claim_step(lock->claim, &event);
    return status;
}

int queue_acquire(struct quorlock *lock)
{
    struct keylist *keylist = lock->keylist;
    int status;

    /* Who tries once does not wait, not even for those before him. */
    if (lock->config.wait_us == 0) return claim_acquire(lock, false, 0);
    list_add(&keylist->waiting, &lock->turn);
    if (first_of(keylist) != lock) {
        client_wake_at(lock->client, &lock->waker, validity_add(lock->acquired.begun_us, lock->config.wait_us));
        return 0;
    }
    status = begin(lock, 0);
    if (status != 0) list_remove(&keylist->waiting, &lock->turn);
    return status;
}

void queue_leave(struct quorlock *lock)
{
    client_wake_at(lock->client, &lock->waker, UINT64_MAX);
    list_remove(&lock->keylist->waiting, &lock->turn);
    queue_advance(lock->keylist);
}

/* Since it came its owner may have taken one of the keys in another list. */
static int ask_in_turn(struct quorlock *lock, const char **ret_why)
{
    const struct claim *asked = lock->keylist->asked;
    struct claim *claim;
    int status = lock->owner_name != NULL ? reentry_check(lock, &claim) : 0;

    if (status != 0) {
        *ret_why = "its owner holds one of the keys in another list";
        return status;
    }
    /* What stood in the way of those before it did so for it, too. */
    return begin(lock, asked != NULL && core_phase_now(asked->core) == CORE_IDLE ? core_seen(asked->core) : 0);
}

/* Who asks the nodes for one of them asks for the other, too; only the wait bounds may differ. */
static bool same_wishes(const struct quorlock *a, const struct quorlock *b)
{
    const struct core_config *one = &a->config;
    const struct core_config *two = &b->config;

    if (a->owner_name != NULL || b->owner_name != NULL || a->fence_ttl_ms != b->fence_ttl_ms) return false;
    return one->lease_us == two->lease_us && one->renew_us == two->renew_us &&
           one->min_valid_us == two->min_valid_us && one->lost_margin_us == two->lost_margin_us &&
           one->max_hold_us == two->max_hold_us && one->node_timeout_us == two->node_timeout_us &&
           one->fencing == two->fencing;
}

bool queue_hand_off(struct quorlock *lock, int status)
{
    struct quorlock *successor = LIST_ITEM(lock->turn.next, struct quorlock, turn);
    struct core_event event = {.type = CORE_EV_HAND_OFF};
    struct claim *claim = lock->claim;

    if (successor == NULL || successor->claim != NULL || first_of(lock->keylist) != lock ||
        !same_wishes(lock, successor)) {
        return false;
    }
    event.begun_us = successor->acquired.begun_us;
    event.wait_us = successor->config.wait_us;
    if (claim_step(claim, &event) != 0) return false;
    client_wake_at(successor->client, &successor->waker, UINT64_MAX);
    list_remove(&lock->keylist->waiting, &lock->turn);
    lock->claim = NULL;
    successor->claim = claim;
    claim->handle = claim->acquirer = successor;
    lock_complete_acquire(lock, status, NULL);
    return true;
}

uint64_t queue_expire_waiters(struct claim *claim)
{
    struct quorlock *lock;

    while ((lock = claim->acquirer) != NULL && core_phase_now(claim->core) != CORE_GRANTED) {
        uint64_t until_us = validity_add(lock->acquired.begun_us, lock->config.wait_us);
        uint64_t now_us = client_now_us(claim->client);

        if (now_us < until_us) return now_us;
        if (!queue_hand_off(lock, core_wait_verdict(claim->core))) break;
    }
    return client_now_us(claim->client);
}

void queue_advance(struct keylist *keylist)
{
    struct quorlock *lock;

    /* One that was freed while it asked is out when that was told. */
    while (!keylist->client->closing && (lock = first_of(keylist)) != NULL && !asks(lock) && !lock->freed) {
        const char *why = NULL;
        int status;

        client_wake_at(keylist->client, &lock->waker, UINT64_MAX);
        status = ask_in_turn(lock, &why);
        if (status == 0) return;
        list_remove(&keylist->waiting, &lock->turn);
        lock_complete_acquire(lock, status, why);
    }
}

void queue_keys_released(struct keylist *keylist, uint64_t holder_id)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct quorlock *lock = first_of(keylist);
    struct core_event event = {.type = CORE_EV_WAKE, .random = random};

    keylist->gave_back_us = client_now_us(keylist->client);
    keylist->gave_back_id = holder_id;
    if (lock == NULL || !asks(lock) || keylist->held > 0) return;
    if (claim_draw(random) != 0) event.random = NULL;
    event.wall_us = claim_fence_floor(keylist->client, &lock->config);
    event.behind = holds_back(keylist);
    (void)claim_step(lock->claim, &event);
}

void queue_wait_expired(struct waker *waker)
{
    struct quorlock *lock = (struct quorlock *)(void *)((char *)waker - offsetof(struct quorlock, waker));
    const struct claim *asked = lock->keylist->asked;
    int status = QUORLOCK_TIMEDOUT;
    const char *why = NULL;

    if (lock->pending_on != NULL) {
        why = "its owner holds it, and renewing it first took too long";
    } else if (lock->keylist->held > 0) {
        status = QUORLOCK_HELD;
    } else if (asked != NULL) {
        /* What keeps the first from the keys keeps those behind it, too. */
        status = core_wait_verdict(asked->core);
    }
    reentry_leave(lock);
    list_remove(&lock->keylist->waiting, &lock->turn);
    lock_complete_acquire(lock, status, why);
}

/* ---- notices ---- */

void queue_subscribed(struct keylist *keylist)
{
    struct quorlock *lock = first_of(keylist);

    if (lock != NULL && asks(lock)) claim_notify_subscribed(lock->claim, false);
}

void queue_unsubscribed(struct keylist *keylist, uint32_t node)
{
    struct quorlock *lock = first_of(keylist);

    /* Its next confirmation is news. */
    if (lock != NULL && asks(lock)) lock->claim->known_subscribed &= ~(1u << node);
}

void queue_on_notice(struct keylist *keylist, uint32_t node, uint64_t holder_id)
{
    unsigned char random[CORE_RANDOM_SIZE];
    struct quorlock *lock = first_of(keylist);
    struct core_event event = {.type = CORE_EV_NOTICE, .node = node, .random = random, .holder_id = holder_id};

    /* A release of our own woke whom it should when it went out. */
    if (holder_id != 0 && holder_id == keylist->gave_back_id) return;
    if (lock == NULL || !asks(lock)) return;
    if (claim_draw(random) != 0) event.random = NULL;
    event.wall_us = claim_fence_floor(keylist->client, &lock->config);
    (void)claim_step(lock->claim, &event);
}
