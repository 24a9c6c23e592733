/* SPDX-License-Identifier: BSD-3-Clause */
/* credentials.h - user and password for nodes whose address has neither */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "settings/values.h"

/* The manual promises this limit. A longer line is not a password, but a wrong file. */
#define PASSWORD_LENGTH_MAX 1000

struct credentials {
    bool again;                             /* they are from a file that can be read again */
    const char *user;                       /* NULL: none */
    char password[PASSWORD_LENGTH_MAX + 2]; /* with one more byte, which shows a password that is too long */
};

/* credentials_read - read them from the values or their file: 0, or QUORLOCK_ERR_INVAL with a text in `error`. Call
 * credentials_wipe in any case. */
int credentials_read(struct credentials *credentials, const struct values *values, char *error, size_t error_size);
void credentials_wipe(struct credentials *credentials);
/* credentials_give - give them to a client. If they are from a file, the client reads it again before each login by
 * credentials_again; the values must live as long as the client. */
void credentials_give(struct quorlock_client_options *options, const struct credentials *credentials,
                      const struct values *values);
/* credentials_again - do as quorlock_credentials_read_file for the user and the file of the values. */
int credentials_again(quorlock_credentials *to, const char *node, void *values);
