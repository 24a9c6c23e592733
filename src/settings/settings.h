/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h - what environment and configuration files give, for programs that use the library */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

#include "base/caller.h"

/* settings_check_login - return 0, or INVAL if these options of a client are settings whose password file would replace
 * the user or the password that the caller gives. */
int settings_check_login(const struct quorlock_client_options *options, struct quorlock_error *error);
/* settings_asks_program - return whether the client asks a function of the program for credentials, not one of ours. */
bool settings_asks_program(const struct quorlock_client_options *options);
