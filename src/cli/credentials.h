/* SPDX-License-Identifier: BSD-3-Clause */
/* credentials.h - user and password for the nodes whose address has none */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

/* So many bytes the manual promises; a longer one is no password, but a wrong file. */
#define PASSWORD_LENGTH_MAX 1000

struct quorlock_client_options;

struct credentials {
    bool again;                             /* from a file that can be read again */
    const char *user;                       /* NULL: none */
    char password[PASSWORD_LENGTH_MAX + 2]; /* with one byte more, by which a longer one is seen */
};

/* credentials_read - from the options, the environment or a file. 0, or QUORLOCK_INVAL with what is wrong in `error`.
 * Call credentials_wipe in any case. */
int credentials_read(struct credentials *credentials, const struct settings *settings, char *error, size_t error_size);
void credentials_wipe(struct credentials *credentials);
/* credentials_give - to a client: these, and, where they are from a file, what is in that before each later login. The
 * settings live as long as the client. */
void credentials_give(struct quorlock_client_options *options, const struct credentials *credentials,
                      const struct settings *settings);
