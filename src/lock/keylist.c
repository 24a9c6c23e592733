/* SPDX-License-Identifier: BSD-3-Clause */
#include "lock/keylist.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "base/hash.h"

#define NAME_AT_MAX   0xffffffu
#define LISTENERS_MAX 0xffffffu
#define HELD_MAX      0x7fffffffu
#define OTHERS_US     500000u /* a process that listened a moment ago probably still waits */

_Static_assert(QUORLOCK_KEYS_MAX *(2 * QUORLOCK_KEY_LENGTH_MAX + 64) < NAME_AT_MAX, "names begin within the block");
_Static_assert(QUORLOCK_KEYS_MAX <= UINT8_MAX, "keys are counted in eight bits");

/* ---- one list ---- */

void keylist_check(const struct keylist *keylist)
{
    (void)keylist; /* without assertions */
    assert(keylist->n_keys >= 1 && keylist->n_keys <= QUORLOCK_KEYS_MAX);
    /* Permits are slots of one name. */
    assert(keylist->permits == 0 || keylist->n_keys == 1);
    assert(keylist->contention == NULL || keylist->contention->keylist == keylist);
}

static void keylist_destroy(struct keylist *keylist)
{
    const struct alloc *alloc = &keylist->all->runtime->alloc;

    keylist_check(keylist);
    assert(keylist->listeners == 0 && bare_list_first(&keylist->waiting) == NULL);
    /* A client that ends forgets the locks that it could not release in time. */
    assert(keylist->held == 0 || keylist->all->runtime->closing);
    assert(keylist->asked == NULL);
    if (keylist->contention != NULL) {
        subscriptions_close(&keylist->all->subscriptions, &keylist->contention->listener);
        alloc_free(alloc, keylist->contention);
    }
    alloc_free(alloc, keylist);
}

static bool is_printable(const char *key)
{
    while (*key != '\0' && iscntrl((unsigned char)*key) == 0) key++;
    return *key == '\0';
}

/* Write the keys for people. A key may be any bytes, but a log line must stay one line. */
static void write_name(char *at, const char *const *keys, size_t n_keys)
{
    for (size_t i = 0; i < n_keys; i++) {
        if (i > 0) at = stpcpy(at, ", ");
        for (const char *from = keys[i]; *from != '\0'; from++) {
            *at++ = iscntrl((unsigned char)*from) != 0 ? '?' : *from;
        }
    }
    *at = '\0';
}

static void make_mark(struct keylist *keylist)
{
    unsigned char bytes[sizeof(uint64_t)];
    uint64_t sum = keylist->n_keys, hash;

    for (uint32_t i = 0; i < keylist->n_keys; i++)
        sum += hash_bytes(HASH_START, keylist->keys[i].text, keylist->keys[i].length);
    /* The same on machines of any byte order. */
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)(sum >> 8 * i);
    hash = hash_bytes(HASH_START, bytes, sizeof(bytes));
    for (size_t i = 0; i < KEYLIST_MARK_SIZE; i++) keylist->mark[i] = (unsigned char)(hash >> 8 * i);
    keylist->mark[KEYLIST_MARK_SIZE - 1] &= (unsigned char)~1u;
}

/* Make one block with all texts. A single printable key is its own name. */
static struct keylist *keylist_build(struct keylists *all, const char *const *keys, size_t n_keys, uint32_t permits)
{
    const char *prefix = all->runtime->key_prefix;
    size_t prefix_length = all->runtime->prefix_length;
    bool is_name = n_keys == 1 && is_printable(keys[0]);
    size_t fixed = n_keys * sizeof(struct node_key) + (permits == 0 ? 0 : core_slots_size(permits));
    size_t size = sizeof(struct keylist) + fixed;
    struct keylist *keylist;
    char *at;

    for (size_t i = 0; i < n_keys; i++) {
        /* In the name each key is followed by a comma and a space. */
        size += prefix_length + strlen(keys[i]) + 1 + (is_name ? 0 : strlen(keys[i]) + 2);
    }
    keylist = alloc_zero(&all->runtime->alloc, size);
    if (keylist == NULL) return NULL;
    keylist->all = all;
    keylist->n_keys = n_keys & 127u;
    keylist->permits = permits & UINT8_MAX;
    if (permits != 0) core_slots_init(keylist_slots(keylist), permits);
    at = (char *)keylist->keys + fixed;
    for (size_t i = 0; i < n_keys; i++) {
        keylist->keys[i].text = at;
        at = stpcpy(stpcpy(at, prefix), keys[i]);
        keylist->keys[i].length = (size_t)(at - keylist->keys[i].text);
        at++;
    }
    make_mark(keylist);
    if (!is_name) write_name(at, keys, n_keys);
    if (is_name) at = (char *)keylist->keys + fixed + prefix_length;
    keylist->name_at = (size_t)(at - (char *)keylist) & NAME_AT_MAX;
    assert((const char *)at == keylist_name(keylist));
    keylist_check(keylist);
    return keylist;
}

struct contention *keylist_contention(struct keylist *keylist)
{
    if (keylist->contention != NULL) return keylist->contention;
    keylist->contention = alloc_zero(&keylist->all->runtime->alloc, sizeof(*keylist->contention));
    if (keylist->contention == NULL) return NULL;
    keylist->contention->keylist = keylist;
    keylist->contention->listener.events = keylist->all->events;
    return keylist->contention;
}

void keylist_forget_contention(struct keylist *keylist)
{
    const struct contention *contention = keylist->contention;

    if (contention == NULL || keylist->listeners > 0 || contention->listener.subscriptions != NULL) return;
    if (bare_list_first(&keylist->waiting) != NULL || keylist_others_listen(keylist)) return;
    alloc_free(&keylist->all->runtime->alloc, keylist->contention);
    keylist->contention = NULL;
    keylist_check(keylist);
}

uint32_t keylist_confirmed(const struct keylist *keylist)
{
    return keylist->contention != NULL ? subscriptions_confirmed(&keylist->contention->listener) : 0;
}

/* ---- the table ---- */

/* Keys are compared without their prefix, which is the client's. */
static bool has_keys(const struct keylist *keylist, const char *const *keys, size_t n_keys, uint32_t permits)
{
    size_t prefix = keylist->all->runtime->prefix_length;

    if (keylist->n_keys != n_keys || keylist->permits != permits) return false;
    for (size_t i = 0; i < n_keys; i++) {
        if (strcmp(keylist->keys[i].text + prefix, keys[i]) != 0) return false;
    }
    return true;
}

static struct keylist *keylist_find(const struct keylists *all, uint64_t hash, const char *const *keys, size_t n_keys,
                                    uint32_t permits)
{
    HASHTABLE_EACH_OF (struct keylist, keylist, &all->table, hash, entry) {
        if (has_keys(keylist, keys, n_keys, permits)) return keylist;
    }
    return NULL;
}

struct keylist *keylist_of_key(const struct keylists *all, const struct node_key *key)
{
    const char *prefix = all->runtime->key_prefix;
    size_t skipped = all->runtime->prefix_length;
    char text[QUORLOCK_KEY_LENGTH_MAX + 1];
    const char *name = text;

    if (key->length < skipped || key->length - skipped > QUORLOCK_KEY_LENGTH_MAX) return NULL;
    if (memcmp(key->text, prefix, skipped) != 0) return NULL;
    memcpy(text, key->text + skipped, key->length - skipped);
    text[key->length - skipped] = '\0';
    return keylist_find(all, hash_text(HASH_START, name), &name, 1, 0);
}

struct keylist *keylist_join(struct keylists *all, const char *const *keys, size_t n_keys, uint32_t permits)
{
    uint64_t hash = HASH_START;
    struct keylist *keylist;

    for (size_t i = 0; i < n_keys; i++) hash = hash_text(hash, keys[i]);
    hash += permits;
    keylist = keylist_find(all, hash, keys, n_keys, permits);
    if (keylist == NULL) {
        if (hashtable_reserve(&all->table, &all->runtime->alloc) != 0) return NULL;
        keylist = keylist_build(all, keys, n_keys, permits);
        if (keylist == NULL) return NULL;
        keylist->entry.hash = hash;
        hashtable_add(&all->table, &keylist->entry);
    }
    keylist->users++;
    return keylist;
}

void keylist_leave(struct keylist *keylist)
{
    assert(keylist->users > 0);
    if (--keylist->users > 0) return;
    hashtable_remove(&keylist->all->table, &keylist->entry);
    keylist_destroy(keylist);
}

bool keylist_admits(const struct keylist *keylist, const struct core_config *config)
{
    return keylist->held == 0 || keylist->held < config->permits || (keylist->reads != 0 && config->reads);
}

void keylist_count_hold(struct keylist *keylist, const struct core_config *config, bool holds)
{
    assert(holds ? keylist->held < HELD_MAX : keylist->held > 0);
    if (holds) keylist->reads = config->reads && (keylist->held == 0 || keylist->reads != 0);
    keylist->held = (keylist->held + (holds ? 1u : HELD_MAX)) & HELD_MAX;
}

/* ---- what a token tells of its lock ---- */

void keylist_mark(const struct keylist *keylist, bool fenced, unsigned char ret[KEYLIST_MARK_SIZE])
{
    memcpy(ret, keylist->mark, KEYLIST_MARK_SIZE);
    ret[KEYLIST_MARK_SIZE - 1] |= fenced;
}

const char *keylist_misfit(const struct keylist *keylist, bool fenced, const struct core_token *token)
{
    const unsigned char *theirs = token->bytes + CORE_TOKEN_SIZE - KEYLIST_MARK_SIZE;
    bool their_fencing = (theirs[KEYLIST_MARK_SIZE - 1] & 1u) != 0;
    unsigned char ours[KEYLIST_MARK_SIZE];

    keylist_mark(keylist, their_fencing, ours);
    if (memcmp(ours, theirs, sizeof(ours)) != 0)
        return ": the token is of a lock with other keys: name all the keys that were acquired with it, and no others";
    /* Its fencing token would be that of the owner before. */
    if (fenced && !their_fencing)
        return ": the token is of a lock without fencing, so there is no fencing token for it: leave out fencing "
               "(--fence), or acquire the lock with it";
    return NULL;
}

/* ---- arbiters ---- */

/* Rules 6.2 and 9.2. The first arbiter differs from key to key, so that not all waiters ask the same node. Only the
 * first key counts, so that longer lists which begin with that key meet there. All fair locks have one arbiter: see
 * core/fair.c. */
uint32_t keylist_first_arbiter(const struct keylist *keylist)
{
    uint64_t hash = owner_id(keylist->keys[0].text, keylist->keys[0].length) >> 1;

    assert(keylist->n_keys >= 1);
    if (keylist->fair != 0) return 0;
    return (uint32_t)(hash % keylist->all->runtime->n_nodes);
}

uint32_t keylist_arbiter(const struct keylist *keylist)
{
    return keylist->all->runtime->order[keylist_first_arbiter(keylist)];
}

/*
 * Subscribe on N - Q + 1 nodes, so that one of them is up whenever a quorum is. Each node publishes the release of a
 * hold, whether it had the key or not. More nodes would cost more: with many waiters for a key, notices are the most
 * expensive part, and each further node wakes all waiters once more.
 */
static uint32_t listen_nodes(const struct keylist *keylist)
{
    const struct runtime *runtime = keylist->all->runtime;
    uint32_t n = runtime->n_nodes - runtime_quorum(runtime) + 1;
    uint32_t first = keylist_first_arbiter(keylist);
    uint32_t nodes = 0;

    assert(n >= 1 && n <= runtime->n_nodes);
    for (uint32_t i = 0; i < n; i++) nodes |= 1u << runtime->order[(first + i) % runtime->n_nodes];
    return nodes;
}

void keylist_listen(struct keylist *keylist, bool wanted)
{
    struct subscriptions *subscriptions = &keylist->all->subscriptions;
    struct contention *contention = keylist_contention(keylist);

    assert(wanted ? keylist->listeners < LISTENERS_MAX : keylist->listeners > 0);
    keylist->listeners = (keylist->listeners + (wanted ? 1u : UINT32_MAX)) & LISTENERS_MAX;
    /* Out of memory, waiters poll. */
    if (contention == NULL) return;
    if (wanted) {
        subscriptions_open(subscriptions, &contention->listener, keylist->keys, keylist->n_keys, listen_nodes(keylist));
    } else if (keylist->listeners == 0) {
        subscriptions_linger(subscriptions, &contention->listener);
    }
    keylist_check(keylist);
}

void keylist_count_listeners(struct keylist *keylist, uint32_t node, uint32_t listeners)
{
    uint32_t ours = (keylist_confirmed(keylist) & 1u << node) != 0;
    struct contention *contention = listeners > ours ? keylist_contention(keylist) : NULL;

    assert(node < keylist->all->runtime->n_nodes);
    if (contention != NULL) contention->others_until_us = runtime_now_us(keylist->all->runtime) + OTHERS_US;
}

bool keylist_others_listen(const struct keylist *keylist)
{
    const struct contention *contention = keylist->contention;

    return contention != NULL && runtime_now_us(keylist->all->runtime) < contention->others_until_us;
}

/* Both lists are sorted. The slots of permits are other keys on the nodes than the key of an ordinary lock. */
const char *keylist_common_key(const struct keylist *a, const struct keylist *b)
{
    size_t k = 0;

    assert(a->all == b->all);
    if ((a->permits == 0) != (b->permits == 0)) return NULL;

    for (size_t i = 0; i < a->n_keys; i++) {
        while (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) < 0) k++;
        if (k < b->n_keys && strcmp(b->keys[k].text, a->keys[i].text) == 0) return a->keys[i].text;
    }
    return NULL;
}

/* ---- named owners ---- */

struct named_owner *named_owner_join(struct hashtable *table, const struct alloc *alloc, const char *name)
{
    uint64_t hash = hash_text(HASH_START, name);
    struct named_owner *owner;

    HASHTABLE_EACH_OF (struct named_owner, known, table, hash, entry) {
        if (strcmp(known->name, name) != 0) continue;
        known->users++;
        return known;
    }
    if (hashtable_reserve(table, alloc) != 0) return NULL;
    owner = alloc_zero(alloc, sizeof(*owner) + strlen(name) + 1);
    if (owner == NULL) return NULL;
    memcpy(owner->name, name, strlen(name) + 1);
    owner->entry.hash = hash;
    owner->users = 1;
    hashtable_add(table, &owner->entry);
    return owner;
}

void named_owner_leave(struct hashtable *table, const struct alloc *alloc, struct named_owner *owner)
{
    assert(owner == NULL || owner->users > 0);
    if (owner == NULL || --owner->users > 0) return;
    assert(owner->claims.count == 0);
    hashtable_remove(table, &owner->entry);
    alloc_free(alloc, owner);
}
