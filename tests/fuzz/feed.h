/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feed.h - what the fuzz targets of texts share: bytes as choices, and a check that ends the process
 */
#ifndef TESTS_FUZZ_FEED_H
#define TESTS_FUZZ_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct feed {
    const uint8_t *data;
    size_t left;
};

/* feed_byte - 0 where there are none left. */
static inline uint8_t feed_byte(struct feed *feed)
{
    if (feed->left == 0) return 0;
    feed->left--;
    return *feed->data++;
}

/* feed_number - one of any size: the first byte says how many more make it. */
static inline uint64_t feed_number(struct feed *feed)
{
    uint64_t number = 0;

    for (uint8_t n = feed_byte(feed) % 9; n > 0; n--) number = number << 8 | feed_byte(feed);
    return number;
}

/* feed_text - up to `most` bytes; how many is the next byte. They stay in the data. */
static inline const char *feed_text(struct feed *feed, size_t most, size_t *ret_length)
{
    size_t length = feed_byte(feed);
    const char *text = (const char *)feed->data;

    if (length > most) length = most;
    if (length > feed->left) length = feed->left;
    feed->data += length;
    feed->left -= length;
    *ret_length = length;
    return text;
}

/*
 * The secret stands for a password. No letter of it is in anything else that a target writes, so whatever three
 * of them stand together in a text were taken from it. In capitals, and hosts are shown in small letters.
 */
#define FEED_SECRET "QZXWVK"

/* feed_add - one more piece of an address: its parts, the secret, or a byte that is none of the secret's. */
static inline void feed_add(struct feed *feed, char *text, size_t size)
{
    static const char *const pieces[] = {"redis://",  "unix://",    "rediss://", "://", ":",  "@",         "/",
                                         ",",         ";",          "?db=",      "[",   "]",  "h1",        "h2:6379",
                                         "u",         "%2f",        "%",         "7",   "::", "127.0.0.1", FEED_SECRET,
                                         "valkey://", "valkeys://", "fe80::1",   "%25"};
    uint8_t what = feed_byte(feed);
    size_t used = strlen(text);

    /* Once is enough, and there is no doubt then which of them is shown. */
    if (what < sizeof(pieces) / sizeof(pieces[0]) && strcmp(pieces[what], FEED_SECRET) == 0 &&
        strstr(text, FEED_SECRET) != NULL)
        return;
    if (what < sizeof(pieces) / sizeof(pieces[0])) {
        snprintf(text + used, size - used, "%s", pieces[what]);
    } else if (what >= 32 && strchr(FEED_SECRET, what & ~0x20) == NULL) {
        snprintf(text + used, size - used, "%c", what);
    }
}

/* feed_shows_secret - three letters of it in a row, small or capital. */
static inline bool feed_shows_secret(const char *text)
{
    for (; *text != '\0'; text++) {
        for (size_t i = 0; i + 3 <= sizeof(FEED_SECRET) - 1; i++) {
            size_t n = 0;

            while (n < 3 && (text[n] == FEED_SECRET[i + n] || text[n] == (FEED_SECRET[i + n] | 0x20))) n++;
            if (n == 3) return true;
        }
    }
    return false;
}

/*
 * feed_is_secret - the secret stands where a password may: behind a colon that is not the scheme's, or in
 * front of an @. What stands nowhere but in the place of a scheme or a host is none, and may be shown.
 */
static inline bool feed_is_secret(const char *text)
{
    const char *scheme = strstr(text, "://");
    const char *secret = strstr(text, FEED_SECRET);
    const char *at, *colon;

    if (secret == NULL) return false;
    /* Only at the very beginning is it a scheme. */
    if (scheme != NULL && strcspn(text, ":@/") == (size_t)(scheme - text)) {
        if (secret < scheme) return false;
        text = scheme + 3;
    }
    /* The path of a unix socket may hold anything. */
    at = strstr(text, "@/");
    if (text[0] == '/' || (at != NULL && at < secret)) return false;
    at = strrchr(text, '@');
    if (at != NULL && at > secret) return true;
    /* Behind the last @ the host begins, or such a path. */
    if (at != NULL) text = at + 1;
    if (text[0] == '/') return false;
    /* In brackets colons are the host's own. */
    if (text[0] == '[') text = strchr(text, ']');
    if (text == NULL || text > secret) return false;
    colon = strchr(text, ':');
    return colon != NULL && colon < secret;
}

#endif
