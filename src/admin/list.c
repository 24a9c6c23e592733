/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.c - quorlock_client_list: the locks that the nodes have, found by SCAN on each node and put together by key
 *
 * The answers of a step are merged at once, and the caller gets the locks in parts, one in each turn of the loop. So
 * many locks delay the renewals of this client by moments only.
 */
#include <stdio.h>
#include <string.h>

#include "admin/listed.h"
#include "admin/report.h"
#include "base/hash.h"
#include "base/hashtable.h"
#include "redis/lister.h"

#define SLOT_FRONT "quorlock:slot:"

enum { PART_MAX = 256, ERROR_SIZE = 640 };

struct listed {
    struct hashtable_entry entry;
    char *raw;        /* the whole key on the server */
    const char *name; /* its end: the key as callers know it */
    uint32_t slot;
    struct listed_there there[]; /* for each node; equal holders are the same pointer */
};

struct listing;

struct list_node {
    struct listing *listing;
    struct lister *lister; /* NULL: done */
    enum fault fault;
    bool done;
    size_t denied;   /* keys that may not be read */
    uint64_t others; /* strings of another form */
    char error[ERROR_SIZE];
};

struct listing {
    struct report report;
    quorlock_list_cb call;
    void *arg;
    int status;
    uint32_t left, answered; /* nodes */
    char *pattern, *match;   /* the caller's; the server's: a key may have something in front */
    struct hashtable table;
    struct hashtable_entry *at; /* the last one that the caller got */
    struct quorlock_listed part[PART_MAX];
    const struct quorlock_listed *part_pointers[PART_MAX];
    struct quorlock_list_node reports[QUORLOCK_NODES_MAX];
    const struct quorlock_list_node *report_pointers[QUORLOCK_NODES_MAX];
    size_t n_others;
    char *others[QUORLOCK_LIST_OTHERS_MAX]; /* with the prefix */
    const char *other_names[QUORLOCK_LIST_OTHERS_MAX];
    struct list_node nodes[];
};

static struct runtime *admin_list_runtime_of(const struct listing *listing)
{
    return listing->report.all->runtime;
}

/* ---- patterns ---- */

/* make_match - return the pattern for SCAN: the prefix, whatever stands before the name of a slot, and the caller's
 * pattern. */
static char *make_match(const struct alloc *alloc, const char *prefix, const char *pattern)
{
    char *match = alloc_zero(alloc, 2 * strlen(prefix) + strlen(pattern) + 2), *to = match;

    if (match == NULL) return NULL;
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]\\^-", *prefix) != NULL) *to++ = '\\';
        *to++ = *prefix;
    }
    *to++ = '*';
    memcpy(to, pattern, strlen(pattern) + 1);
    return match;
}

/* name_of - return the caller's key within a key of the server, and its slot: NULL: it is not what was asked for. */
static const char *name_of(const struct listing *listing, const char *raw, uint32_t *ret_slot)
{
    const char *prefix = admin_list_runtime_of(listing)->key_prefix, *name = raw;

    *ret_slot = QUORLOCK_SLOT_NONE;
    if (strncmp(name, prefix, strlen(prefix)) != 0) return NULL;
    name += strlen(prefix);
    if (strncmp(name, SLOT_FRONT, strlen(SLOT_FRONT)) == 0) {
        *ret_slot = 0;
        for (name += strlen(SLOT_FRONT); *name >= '0' && *name <= '9' && *ret_slot < QUORLOCK_PERMITS_MAX; name++)
            *ret_slot = *ret_slot * 10 + (uint32_t)(*name - '0');
        if (*name++ != ':' || *ret_slot >= QUORLOCK_PERMITS_MAX) return NULL;
    }
    return *name != '\0' && listed_fits(listing->pattern, name) ? name : NULL;
}

/* ---- what was found ---- */

static void free_listed(const struct listing *listing, struct listed *listed)
{
    const struct runtime *runtime = admin_list_runtime_of(listing);

    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        char *holder = listed->there[i].holder;

        for (uint32_t k = i; k < runtime->n_nodes; k++)
            if (listed->there[k].holder == holder) listed->there[k].holder = NULL;
        alloc_free(&runtime->alloc, holder);
    }
    alloc_free(&runtime->alloc, listed->raw);
    alloc_free(&runtime->alloc, listed);
}

/* listed_of - return the entry of a key, which is taken over, or a new one; NULL: out of memory. */
static struct listed *listed_of(struct listing *listing, char *raw, const char *name, uint32_t slot)
{
    const struct runtime *runtime = admin_list_runtime_of(listing);
    uint64_t hash = hash_text(HASH_START, raw);
    struct listed *listed;

    HASHTABLE_EACH_OF (struct listed, old, &listing->table, hash, entry) {
        if (strcmp(old->raw, raw) != 0) continue;
        alloc_free(&runtime->alloc, raw);
        return old;
    }
    listed = alloc_zero(&runtime->alloc, sizeof(*listed) + runtime->n_nodes * sizeof(struct listed_there));
    if (listed == NULL || hashtable_reserve(&listing->table, &runtime->alloc) != 0) {
        alloc_free(&runtime->alloc, listed);
        alloc_free(&runtime->alloc, raw);
        return NULL;
    }
    listed->raw = raw;
    listed->name = name;
    listed->slot = slot;
    listed->entry.hash = hash;
    hashtable_add(&listing->table, &listed->entry);
    return listed;
}

/* note_there - store what this node has at the key: false: out of memory. */
static bool note_there(const struct runtime *runtime, struct listed *listed, uint32_t index,
                       const struct lister_key *key)
{
    struct listed_there *there = &listed->there[index];
    char *holder;

    if (there->holder != NULL) return true; /* SCAN may return a key twice */
    holder = owner_copy(&runtime->alloc, key->holder, key->holder_length);
    if (holder == NULL) return false;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        char *other = listed->there[i].holder;

        if (other == NULL || strcmp(other, holder) != 0) continue;
        alloc_free(&runtime->alloc, holder);
        holder = other;
        break;
    }
    *there = (struct listed_there){holder, key->ttl_ms, key->number, key->kind};
    return true;
}

static void list_end(struct list_node *node, enum fault fault, const char *why)
{
    struct listing *listing = node->listing;

    node->lister = NULL;
    node->done = true;
    node->fault = fault;
    snprintf(node->error, sizeof(node->error), "%s", why);
    listing->answered += fault == FAULT_NONE;
    if (fault == FAULT_NONE && node->denied > 0)
        snprintf(
            node->error, sizeof(node->error),
            "keys that the user may not read, and that may be locks: %zu ('quorlock doctor --acl USER --ls PATTERN' "
            "prints the rights)",
            node->denied);
    if (--listing->left == 0) report_complete(&listing->report);
}

/* note_other - count a string of another form, and keep the first names; both are taken over. */
static void note_other(struct list_node *node, char *raw, const char *name)
{
    struct listing *listing = node->listing;
    bool keeps = listing->n_others < QUORLOCK_LIST_OTHERS_MAX;

    node->others++;
    for (size_t i = 0; keeps && i < listing->n_others; i++) keeps = strcmp(listing->others[i], raw) != 0;
    if (!keeps) {
        alloc_free(&admin_list_runtime_of(listing)->alloc, raw);
        return;
    }
    listing->others[listing->n_others] = raw;
    listing->other_names[listing->n_others++] = name;
}

/* others_of - return how many there are: those that were kept, or more on one node. */
static uint64_t others_of(const struct listing *listing)
{
    uint64_t most = listing->n_others;

    if (most < QUORLOCK_LIST_OTHERS_MAX) return most;
    for (uint32_t i = 0; i < admin_list_runtime_of(listing)->n_nodes; i++)
        if (listing->nodes[i].others > most) most = listing->nodes[i].others;
    return most;
}

static bool on_found(void *arg, const struct lister_key *key)
{
    struct list_node *node = arg;
    struct listing *listing = node->listing;
    const struct runtime *runtime = admin_list_runtime_of(listing);
    char *raw = alloc_text(&runtime->alloc, key->key, key->key_length);
    uint32_t slot = QUORLOCK_SLOT_NONE;
    const char *name = raw != NULL ? name_of(listing, raw, &slot) : NULL;
    struct listed *listed = NULL;
    char why[80];

    if (raw != NULL && (name == NULL || key->kind == LISTER_DENIED)) {
        node->denied += name != NULL;
        alloc_free(&runtime->alloc, raw);
        return true;
    }
    if (raw != NULL && key->kind == LISTER_OTHER) {
        note_other(node, raw, name);
        return true;
    }
    if (raw != NULL) listed = listed_of(listing, raw, name, slot);
    if (listed == NULL || !note_there(runtime, listed, (uint32_t)(node - listing->nodes), key)) {
        list_end(node, FAULT_LIMIT, "out of memory");
        listing->status = QUORLOCK_ERR_NOMEM;
        return false;
    }
    if (listing->table.count <= QUORLOCK_LIST_MAX) return true;
    hashtable_remove(&listing->table, &listed->entry);
    free_listed(listing, listed);
    snprintf(why, sizeof(why), "more than %u locks match: give a narrower pattern", QUORLOCK_LIST_MAX);
    list_end(node, FAULT_LIMIT, why);
    return false;
}

static void list_done(void *arg, enum fault fault, const char *why)
{
    list_end(arg, fault, why);
}

/* ---- the report ---- */

/* list_status - return the status as an inspection does: AUTH: too many nodes refuse us. */
static int list_status(const struct listing *listing)
{
    const struct runtime *runtime = admin_list_runtime_of(listing);
    uint32_t refused = 0;

    if (listing->status != 0) return listing->status;
    if (listing->answered >= runtime_quorum(runtime)) return 0;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) refused += report_refuses(listing->nodes[i].fault);
    return report_lack(refused, runtime->n_nodes, runtime_quorum(runtime));
}

static void fill_node(const struct listing *listing, uint32_t index, struct quorlock_list_node *ret)
{
    const struct list_node *node = &listing->nodes[index];

    *ret = (struct quorlock_list_node){.node = admin_list_runtime_of(listing)->nodes[index].uri.name,
                                       .state = node->done ? listed_state(node->fault) : QUORLOCK_LIST_DOWN,
                                       .error = node->error[0] != '\0' ? node->error : NULL};
}

/* admin_list_notify - run the callback with the next part, and come again if there is more. */
static void admin_list_notify(struct report *base)
{
    struct listing *listing = CONTAINER_OF(base, struct listing, report);
    struct runtime *runtime = admin_list_runtime_of(listing);
    struct quorlock_list_report ret = {.quorum = runtime_quorum(runtime),
                                       .answered = listing->answered,
                                       .locks = listing->part_pointers,
                                       .nodes = listing->report_pointers,
                                       .n_nodes = runtime->n_nodes,
                                       .other_keys = listing->other_names,
                                       .others = others_of(listing)};
    struct hashtable_entry *next = hashtable_after(&listing->table, listing->at);

    for (; next != NULL && ret.n_locks < PART_MAX; next = hashtable_after(&listing->table, next)) {
        const struct listed *listed = CONTAINER_OF(next, struct listed, entry);
        struct quorlock_listed *lock = &listing->part[ret.n_locks];

        listed_judge(listed->there, runtime->n_nodes, ret.quorum, lock);
        lock->key = listed->name;
        lock->slot = listed->slot;
        listing->part_pointers[ret.n_locks] = lock;
        listing->at = next;
        ret.n_locks += lock->nodes > 0; /* 0: there was no memory for its holder */
    }
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        fill_node(listing, i, &listing->reports[i]);
        listing->report_pointers[i] = &listing->reports[i];
    }
    ret.more = next != NULL;
    ret.n_other_keys = next == NULL ? listing->n_others : 0;
    if (next != NULL) {
        listing->report.notified = false;
        runtime_run_soon(runtime);
    }
    runtime_batch(runtime, false);
    listing->call(list_status(listing), &ret, listing->arg);
}

/* ---- life ---- */

static void admin_list_cancel(struct listing *listing)
{
    for (uint32_t i = 0; i < admin_list_runtime_of(listing)->n_nodes; i++) {
        lister_cancel(listing->nodes[i].lister);
        listing->nodes[i].lister = NULL;
    }
}

static void close_listing(struct report *report)
{
    struct listing *listing = CONTAINER_OF(report, struct listing, report);

    admin_list_cancel(listing);
    listing->status = QUORLOCK_ERR_CLOSED;
    report_complete(report);
}

static void admin_list_destroy(struct report *report)
{
    struct listing *listing = CONTAINER_OF(report, struct listing, report);
    const struct alloc *alloc = &admin_list_runtime_of(listing)->alloc;
    struct hashtable_entry *next = hashtable_after(&listing->table, NULL);

    admin_list_cancel(listing);
    while (next != NULL) {
        struct listed *listed = CONTAINER_OF(next, struct listed, entry);

        next = hashtable_after(&listing->table, next);
        free_listed(listing, listed);
    }
    for (size_t i = 0; i < listing->n_others; i++) alloc_free(alloc, listing->others[i]);
    hashtable_free(&listing->table, alloc);
    alloc_free(alloc, listing->pattern);
    alloc_free(alloc, listing->match);
    alloc_free(alloc, listing);
}

static bool admin_list_begin(struct listing *listing, const char *pattern)
{
    struct runtime *runtime = admin_list_runtime_of(listing);

    listing->pattern = alloc_text(&runtime->alloc, pattern, strlen(pattern));
    listing->match = make_match(&runtime->alloc, runtime->key_prefix, pattern);
    if (listing->pattern == NULL || listing->match == NULL) return false;
    for (uint32_t i = 0; i < runtime->n_nodes; i++) {
        struct list_node *node = &listing->nodes[i];
        struct lister_config config = {.system = &runtime->system,
                                       .alloc = &runtime->alloc,
                                       .link = nodes_link(runtime, i),
                                       .redisson = runtime->options.dialect == QUORLOCK_DIALECT_REDISSON,
                                       .pattern = listing->match,
                                       .prefix = runtime->key_prefix,
                                       .found = on_found,
                                       .done = list_done,
                                       .arg = node};

        node->listing = listing;
        node->lister = lister_start(&config);
        if (node->lister == NULL) return false;
        listing->left++;
    }
    return true;
}

int list_begin(struct admin *all, const char *pattern, quorlock_list_cb cb, void *arg)
{
    struct runtime *runtime = all->runtime;
    struct listing *listing;
    int status = report_check(all, cb != NULL);

    if (pattern == NULL) pattern = "*";
    if (status == 0 && (*pattern == '\0' || strlen(pattern) > QUORLOCK_KEY_LENGTH_MAX))
        status = runtime_fail(runtime, QUORLOCK_ERR_INVAL, "the pattern has %zu bytes: give 1 to %d", strlen(pattern),
                              QUORLOCK_KEY_LENGTH_MAX);
    if (status != 0) return status;
    listing = alloc_zero(&runtime->alloc, sizeof(*listing) + runtime->n_nodes * sizeof(struct list_node));
    if (listing == NULL) return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    listing->report =
        (struct report){.all = all, .close = close_listing, .notify = admin_list_notify, .destroy = admin_list_destroy};
    listing->call = cb;
    listing->arg = arg;
    if (!admin_list_begin(listing, pattern)) {
        admin_list_destroy(&listing->report);
        return runtime_fail_plainly(runtime, QUORLOCK_ERR_NOMEM);
    }
    report_begin(all, &listing->report);
    return 0;
}
