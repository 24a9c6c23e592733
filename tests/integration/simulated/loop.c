/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.c - the loop of a simulated machine, in place of that of libevent (host_loop.h) */
#include <stdlib.h>

#include "api/client.h"
#include "fixture.h"
#include "place.h"

static uint64_t begun;

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *value = getenv(variable);

    return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

static uint64_t seeds(void)
{
    return number_of("QUORLOCK_SIM_SEEDS", 5);
}

/* Each test runs with several seeds: see tests/README.md. */
void fixture_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup)
{
    for (uint64_t i = 0; i < seeds(); i++) test_add(name, run, setup, fixture_teardown);
}

void fixture_needs_real_servers(void)
{
    skip();
}

struct event_base *host_loop_begin(void)
{
    place_begin(number_of("QUORLOCK_SIM_SEED", 1) + begun++ % seeds());
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
