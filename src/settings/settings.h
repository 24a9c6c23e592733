/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h - what environment and configuration files give, for programs that use the library */
#pragma once

#include <quorlock/quorlock.h>

#include "base/caller.h"

/* settings_check_login - return 0, or INVAL if these options of a client are settings whose password file would replace
 * the user or the password that the caller gives. */
int settings_check_login(const struct quorlock_client_options *options, struct quorlock_error *error);
