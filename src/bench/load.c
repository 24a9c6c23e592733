/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/load.h"

#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE 128
#define WHY_SIZE 1024

/* How long an acquire may wait: many at a time take long. */
#define WARM_WAIT_MS 5000
#define WAIT_MS      60000

struct slot {
    struct load *load;
    quorlock_lock *lock;
    uint64_t since_ns; /* time of the call of acquire, then of release */
    uint32_t rounds;   /* cycles left; 0: cycle until the time is over */
    bool acquiring;
    bool starved; /* the last acquire of this run failed */
};

struct load {
    struct event_base *base;
    struct slice *slice; /* while load_run */
    uint64_t until_ns;
    uint32_t busy; /* slots in a cycle */
    uint32_t n_slots;
    int failed;  /* the status of a call that failed */
    int refused; /* the result of the last acquire or release that failed */
    bool stopped;
    char why[WHY_SIZE];  /* the text of that result */
    struct slot slots[]; /* the first is for load_warm */
};

static void load_next(struct slot *slot);

static void load_end_turn(struct load *load)
{
    if (--load->busy == 0) event_base_loopbreak(load->base);
}

static void note_failure(struct load *load, const struct quorlock_result *result)
{
    load->slice->failed++;
    load->refused = result->status;
    snprintf(load->why, sizeof(load->why), "%s", result->text);
}

static void load_on_released(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct slot *slot = arg;
    struct load *load = slot->load;
    uint64_t now_ns = slice_now_ns();

    (void)lock;
    if (result->status == QUORLOCK_OK || result->status == QUORLOCK_ERR_LOST) {
        load->slice->cycles++;
        latencies_add(&load->slice->release, now_ns - slot->since_ns);
    } else {
        note_failure(load, result);
    }
    slot->since_ns = now_ns;
    load_next(slot);
}

static void load_on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct slot *slot = arg;
    struct load *load = slot->load;
    uint64_t now_ns = slice_now_ns();

    slot->acquiring = false;
    slot->starved = result->status != QUORLOCK_OK;
    if (result->status == QUORLOCK_OK) {
        latencies_add(&load->slice->acquire, now_ns - slot->since_ns);
        slot->since_ns = now_ns;
        load->failed = quorlock_lock_release(lock, load_on_released, slot);
        if (load->failed != 0) load_end_turn(load);
        return;
    }
    note_failure(load, result);
    slot->since_ns = now_ns;
    load_next(slot);
}

/* load_begin - begin a cycle; false: the load ends. */
static bool load_begin(struct slot *slot)
{
    struct load *load = slot->load;

    if (!load->stopped && load->failed == 0) load->failed = quorlock_lock_acquire(slot->lock, load_on_acquired, slot);
    slot->acquiring = !load->stopped && load->failed == 0;
    return slot->acquiring;
}

static void load_next(struct slot *slot)
{
    bool done = slot->rounds > 0 ? --slot->rounds == 0 : slot->since_ns >= slot->load->until_ns;

    if (done || !load_begin(slot)) load_end_turn(slot->load);
}

/* add_slot - make the next lock, with the key of that number. */
static int add_slot(struct load *load, quorlock_client *client, const struct load_options *options, uint32_t number)
{
    struct quorlock_lock_options lock = options->lock;
    struct slot *slot = &load->slots[load->n_slots];
    char name[KEY_SIZE];
    const char *key = name;
    int status;

    snprintf(name, sizeof(name), "%s%u", options->prefix, number);
    lock.wait_ms = load->n_slots == 0 ? WARM_WAIT_MS : WAIT_MS;
    slot->load = load;
    status = quorlock_lock_new(&slot->lock, client, &key, 1, &lock);
    if (status == 0) load->n_slots++;
    return status;
}

int load_new(struct load **ret, struct event_base *base, quorlock_client *client, const struct load_options *options)
{
    struct load *load = calloc(1, sizeof(*load) + (options->in_flight + 1) * sizeof(load->slots[0]));
    int status = load != NULL ? add_slot(load, client, options, 0) : QUORLOCK_ERR_NOMEM;

    for (uint32_t i = 0; i < options->in_flight && status == 0; i++) status = add_slot(load, client, options, i);
    if (status != 0) {
        load_free(load, false);
        return status;
    }
    load->base = base;
    *ret = load;
    return 0;
}

void load_free(struct load *load, bool locks_gone)
{
    if (load == NULL) return;
    for (uint32_t i = 0; i < load->n_slots && !locks_gone; i++) quorlock_lock_free(load->slots[i].lock);
    free(load);
}

static int load_run_slots(struct load *load, struct slot *slots, uint32_t n_slots, uint64_t span_ns,
                          struct slice *slice)
{
    load->slice = slice;
    load->busy = n_slots;
    slice_begin(slice);
    load->until_ns = slice->begun_ns + span_ns;
    for (uint32_t i = 0; i < n_slots; i++) {
        slots[i].since_ns = slice_now_ns();
        slots[i].starved = false;
        if (!load_begin(&slots[i])) load->busy--;
    }
    if (load->busy > 0 && event_base_dispatch(load->base) != 0) load->failed = QUORLOCK_ERR_STATE;
    slice_end(slice);
    load->slice = NULL;
    return load->failed;
}

int load_warm(struct load *load)
{
    struct slice slice;
    int status = load_run_slots(load, load->slots, 1, 1, &slice);

    if (load->stopped) return QUORLOCK_ERR_CANCELED;
    return status == 0 && slice.failed > 0 ? load->refused : status;
}

int load_run(struct load *load, uint64_t span_ns, struct slice *slice)
{
    return load_run_slots(load, load->slots + 1, load->n_slots - 1, span_ns, slice);
}

bool load_starves(const struct load *load)
{
    uint32_t i = 1;

    while (i < load->n_slots && load->slots[i].starved) i++;
    return i == load->n_slots;
}

int load_rounds(struct load *load, uint32_t rounds, struct slice *slice)
{
    for (uint32_t i = 1; i < load->n_slots; i++) load->slots[i].rounds = rounds;
    return load_run(load, 0, slice);
}

const char *load_why(const struct load *load)
{
    return load->why;
}

void load_stop(struct load *load)
{
    load->stopped = true;
    for (uint32_t i = 0; i < load->n_slots; i++)
        if (load->slots[i].acquiring) (void)quorlock_lock_cancel(load->slots[i].lock);
}
