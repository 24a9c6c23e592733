/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/login.h"

#include <stdio.h>
#include <string.h>

/* login_copy - copy the text; return false if it is too long. */
static bool login_copy(quorlock_credentials *to, const char *name, char *ret, size_t most, const char *text)
{
    size_t length = text != NULL ? strlen(text) : 0;

    if (length > most) {
        snprintf(to->why, sizeof(to->why), "the %s has %zu bytes: at most %zu", name, length, most);
        return false;
    }
    if (length > 0) memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

int quorlock_credentials_set(quorlock_credentials *to, const char *user, const char *password)
{
    to->given = login_copy(to, "user", to->user, LOGIN_USER_MAX, user) &&
                login_copy(to, "password", to->password, LOGIN_PASSWORD_MAX, password);
    return to->given ? 0 : QUORLOCK_ERR_INVAL;
}

int quorlock_credentials_defer(quorlock_credentials *to, const char *node, void *arg)
{
    (void)node, (void)arg;
    to->deferred = true;
    return 0;
}

int quorlock_credentials_refuse(quorlock_credentials *to, const char *why)
{
    to->given = 0;
    snprintf(to->why, sizeof(to->why), "%s", why != NULL ? why : "");
    return QUORLOCK_ERR_STATE;
}
