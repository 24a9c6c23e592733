/* SPDX-License-Identifier: BSD-3-Clause */
/* login.h - what the caller's function `credentials` gives for one login */
#pragma once

#include <quorlock/quorlock.h>

#include <stdbool.h>

enum { LOGIN_USER_MAX = 1024, LOGIN_PASSWORD_MAX = 16384 /* the longest that a server accepts */ };

/* Zeros at first. Who makes it wipes it. */
struct quorlock_credentials {
    const char *user_before; /* of the options, or of the last login; NULL: none */
    bool given;              /* set, and not refused since then */
    bool deferred;           /* the program gives them later */
    char user[LOGIN_USER_MAX + 1], password[LOGIN_PASSWORD_MAX + 1];
    char why[256]; /* why there are none; "": unknown */
};
