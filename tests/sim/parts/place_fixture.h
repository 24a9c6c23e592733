/* SPDX-License-Identifier: BSD-3-Clause */
/* place_fixture.h - a machine, some servers and the network between them, for tests of a client there */
#pragma once

#include "machine.h"
#include "net.h"
#include "queue.h"
#include "server.h"

static inline void place_make(struct queue *queue, struct net **ret_net, struct machine **ret_machine,
                              struct server *ret_servers[], size_t n_servers)
{
    *ret_net = net_new(queue);
    *ret_machine = machine_new(queue, *ret_net);
    for (size_t i = 0; i < n_servers; i++) ret_servers[i] = server_new(queue, *ret_net);
}

static inline void place_free(struct queue *queue, struct net *net, struct machine *machine, struct server *servers[],
                              size_t n_servers)
{
    machine_free(machine);
    for (size_t i = 0; i < n_servers; i++) server_free(servers[i]);
    net_free(net);
    queue_free(queue);
}
