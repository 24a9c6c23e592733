/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/hide.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void hide_addresses(char *text)
{
    for (char *at = strchr(text, '@'); at != NULL; at = strchr(at, '@')) {
        /* Go back to the scheme, also across commas: the front of a password with a comma must not be shown. */
        size_t option = text[0] == '-' ? strcspn(text, "=@") : 0;
        char *start = text + (text[option] == '=' ? option + 1 : 0);
        char *scheme = strstr(text, "://");
        size_t mask, freed, rest = strlen(at) + 1; /* including the NUL */

        for (; scheme != NULL && scheme < at; scheme = strstr(scheme + 3, "://")) start = scheme + 3;
        mask = (size_t)(at - start) < 3 ? (size_t)(at - start) : 3;
        freed = (size_t)(at - start) - mask;
        memset(start, '*', mask);
        memmove(start + mask, at, rest);
        memset(start + mask + rest, 0, freed);
        at = start + mask + 1;
    }
}

size_t hide_scheme_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

const char *hide_shown_in(char *buffer, const char *word)
{
    bool is_address = strstr(word, "://") != NULL || strchr(word, '@') != NULL;
    size_t n_name = strcspn(word, "=:@");
    size_t front = word[0] == '-' && word[n_name] == '=' ? n_name + 1 : 0;
    size_t length = is_address ? front + hide_scheme_length(word + front) : strlen(word);

    snprintf(buffer, HIDE_SIZE, "%.*s%s", length < 252 ? (int)length : 252, word, is_address ? "..." : "");
    return buffer;
}
