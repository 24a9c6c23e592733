/* SPDX-License-Identifier: BSD-3-Clause */
/* credentials.h - user and password for the nodes whose address has none */
#pragma once

#include <stddef.h>

#include "cli.h"

/* So many bytes the manual promises; a longer one is no password, but a wrong file. */
#define PASSWORD_LENGTH_MAX 1000

struct credentials {
    const char *user;                       /* NULL: none */
    char password[PASSWORD_LENGTH_MAX + 2]; /* with one byte more, by which a longer one is seen */
};

/* credentials_read - from the options, the environment or a file. 0, or QUORLOCK_INVAL with what is wrong in `error`.
 * Call credentials_wipe in any case. */
int credentials_read(struct credentials *credentials, const struct settings *settings, char *error, size_t error_size);
void credentials_wipe(struct credentials *credentials);
