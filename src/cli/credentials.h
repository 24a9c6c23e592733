/* SPDX-License-Identifier: BSD-3-Clause */
/* credentials.h - user and password for the nodes whose address has none */
#pragma once

#include <stddef.h>

#include "cli.h"

struct credentials {
    const char *user; /* NULL: none */
    char password[1024];
};

/* credentials_read - from the options, the environment or a file. 0, or QUORLOCK_INVAL with what is wrong in `error`.
 * Call credentials_wipe in any case. */
int credentials_read(struct credentials *credentials, const struct settings *settings, char *error, size_t error_size);
void credentials_wipe(struct credentials *credentials);
