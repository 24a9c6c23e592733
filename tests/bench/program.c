/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "base/system_os.h"

void program_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(69);
}

bool program_number(uint32_t *ret, const char *word, uint32_t most)
{
    char *end;
    unsigned long value = strtoul(word, &end, 10);

    if (*word == '\0' || *end != '\0' || value == 0 || value > most) return false;
    *ret = (uint32_t)value;
    return true;
}

struct event_base *program_loop(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;

    if (config != NULL && event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
        base = event_base_new_with_config(config);
    if (config != NULL) event_config_free(config);
    if (base == NULL) program_fail("no loop");
    return base;
}

quorlock_client *program_client_on(struct event_base *base, const char *nodes, struct quorlock_client_options options,
                                   const struct alloc_hooks *memory)
{
    const struct client_extras extras = {.memory = memory};
    const struct system system = system_libevent(base, NULL);
    const char *addresses[QUORLOCK_NODES_MAX];
    char *list = strdup(nodes), *rest = list;
    struct quorlock_error error;
    quorlock_client *client = NULL;

    options.size = sizeof(options);
    options.nodes = addresses;
    for (const char *node; options.n_nodes < QUORLOCK_NODES_MAX && (node = strsep(&rest, ",")) != NULL;)
        addresses[options.n_nodes++] = node;
    if (client_new_on(&client, &system, &options, &extras, &error) != 0) program_fail(error.text);
    free(list);
    return client;
}

quorlock_client *program_client(struct event_base *base, const char *nodes, struct quorlock_client_options options)
{
    return program_client_on(base, nodes, options, NULL);
}
