/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster_look.c - what tests ask servers of any kind for */
#include <string.h>

#include "cluster.h"
#include "test.h"

#define FREE_LIMIT_US 20000000u
#define LOOK_US       5000u

bool server_holds(const struct server *server, const char *key, const char *value)
{
    char held[TEXT_SIZE];

    server_value(server, key, held, sizeof(held));
    return strcmp(held, value) == 0;
}

bool server_has(const struct server *server, const char *key)
{
    return server_ask_number(server, "EXISTS %s", key) == 1;
}

int64_t server_pttl(const struct server *server, const char *key)
{
    return server_ask_number(server, "PTTL %s", key);
}

void server_run(const struct server *server, const char *commands)
{
    static const char script[] = "for command in string.gmatch(ARGV[1], '[^;]+') do local words = {} "
                                 "for word in string.gmatch(command, '[^ ]+') do words[#words + 1] = word end "
                                 "redis.call(unpack(words)) end return 1";

    assert_int_equal(server_ask_number(server, "EVAL %s 0 %s", script, commands), 1);
}

uint32_t cluster_holders(const struct cluster *cluster, const char *key, const char *value)
{
    uint32_t holders = 0;

    for (uint32_t i = 0; i < cluster->n; i++) {
        const struct server *server = &cluster->servers[i];

        if (server->pid == 0) continue;
        holders += value == NULL ? server_has(server, key) : server_holds(server, key, value);
    }
    return holders;
}

void cluster_await_free(const struct cluster *cluster, const char *key)
{
    uint64_t until_us = clock_us() + FREE_LIMIT_US;

    while (cluster_holders(cluster, key, NULL) != 0) {
        if (clock_us() > until_us) fail_msg("the key '%s' stays on a node", key);
        cluster_pause_us(LOOK_US);
    }
}
