/* SPDX-License-Identifier: BSD-3-Clause */
#include "hide.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "owner.h"

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

/* Hide an owner token behind renew or release, because whoever has it can release the lock. Its label stays. */
static void hide_token(char *word)
{
    const char *digits = owner_digits(word);

    if (digits != NULL) memset(word + (digits - word), '*', strlen(digits));
}

void hide_all(char **words, int count)
{
    bool takes_token = false;

    for (int i = 1; i < count; i++) {
        if (takes_token) hide_token(words[i]);
        takes_token |= strcmp(words[i], "renew") == 0 || strcmp(words[i], "release") == 0;
        if (!takes_token && strcmp(words[i], "--") == 0) break;
    }
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strstr(words[i], "://") != NULL || (words[i][0] == '-' && strchr(words[i], '@') != NULL) ||
            (i > 0 && strcmp(words[i - 1], "--nodes") == 0))
            hide_addresses(words[i]);
}

size_t hide_scheme_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

const char *hide_shown(const char *word)
{
    static char buffer[256];
    bool is_address = strstr(word, "://") != NULL || strchr(word, '@') != NULL;
    size_t n_name = strcspn(word, "=:@");
    size_t front = word[0] == '-' && word[n_name] == '=' ? n_name + 1 : 0;
    size_t length = is_address ? front + hide_scheme_length(word + front) : strlen(word);

    snprintf(buffer, sizeof(buffer), "%.*s%s", length < 252 ? (int)length : 252, word, is_address ? "..." : "");
    return buffer;
}
