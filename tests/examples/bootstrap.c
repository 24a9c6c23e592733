/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.c - declares that no lock is held on new nodes
 *
 * usage: bootstrap MAX_LEASE_MS NODE...
 *
 * Nodes without a restart guard may have lost a lock a moment ago, so their first clients would wait for one
 * max lease. Whoever sets the nodes up knows better and says so, once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

struct bootstrap {
    quorlock_client *client;
    int status;
};

static const char *state_text(int state)
{
    switch (state) {
    case QUORLOCK_BOOTSTRAP_WRITTEN: return "bootstrapped";
    case QUORLOCK_BOOTSTRAP_GUARDED: return "guarded";
    case QUORLOCK_BOOTSTRAP_FREE: return "free";
    case QUORLOCK_BOOTSTRAP_DOWN: return "down";
    default: return "failed";
    }
}

static void on_bootstrapped(int status, const struct quorlock_bootstrap_report *report, void *arg)
{
    struct bootstrap *bootstrap = arg;

    for (size_t i = 0; i < report->n_nodes; i++) {
        const struct quorlock_bootstrap_node *node = report->nodes[i];

        say("%s node=%s %s", state_text(node->state), node->node, node->error != NULL ? node->error : "");
    }
    bootstrap->status = status;
    /* Without a client the loop has nothing left to do and ends. */
    quorlock_client_close(bootstrap->client, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct quorlock_bootstrap_options options = {.size = sizeof(options)};
    struct bootstrap bootstrap = {.status = QUORLOCK_ERR_CLOSED};
    struct event_base *base = example_base();

    if (argc < 3) die("usage: bootstrap MAX_LEASE_MS NODE...");
    /* The guard is off in this client only: with it the client would write guards by itself, and wait. */
    bootstrap.client = example_client(base, (const char *const *)argv + 2, (size_t)(argc - 2), QUORLOCK_GUARD_OFF,
                                      (uint32_t)strtoul(argv[1], NULL, 10));
    if (quorlock_client_bootstrap(bootstrap.client, &options, on_bootstrapped, &bootstrap) != 0) {
        die("%s", quorlock_client_error(bootstrap.client));
    }
    event_base_dispatch(base);
    event_base_free(base);
    return bootstrap.status == QUORLOCK_OK ? 0 : 1;
}
