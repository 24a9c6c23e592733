/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - the loop of a simulated machine, in place of that of libevent (host_loop.h) */
#include <stdlib.h>

#include "api/client.h"
#include "fixture.h"
#include "place.h"

#define SEEDS 5u

static unsigned begun;

/* Each test runs with several seeds: see tests/README.md. */
void fixture_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup)
{
    for (unsigned i = 0; i < SEEDS; i++) test_add(name, run, setup, fixture_teardown);
}

void fixture_needs_real_servers(void)
{
    skip();
}

struct event_base *host_loop_begin(void)
{
    const char *first = getenv("QUORLOCK_SIM_SEED");

    place_begin((first != NULL ? strtoull(first, NULL, 10) : 1) + begun++ % SEEDS);
    return NULL;
}

int host_loop_end(void)
{
    return (int)place_end();
}

void host_loop_turn(uint64_t until_us)
{
    place_turn(until_us);
}

int host_loop_client(quorlock_client **ret, const struct quorlock_client_options *options,
                     const struct client_extras *extras, struct quorlock_error *error)
{
    struct client_extras ours = *extras;

    if (ours.memory == NULL) ours.memory = place_memory();
    return client_new_on(ret, place_system(), options, &ours, error);
}

struct system host_loop_system(const struct alloc *alloc)
{
    return *place_system();
}
