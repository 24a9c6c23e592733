/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/owner.h"

#include <assert.h>
#include <quorlock/quorlock.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/system.h"
#include "runtime/options.h"

#define UUID_BYTES    16
#define HEX_DIGITS    "0123456789abcdef"
#define ESCAPE_LENGTH 4 /* \xNN */

int owner_uuid(char ret[OWNER_UUID_SIZE], struct system *system)
{
    unsigned char bytes[UUID_BYTES];
    size_t at = 0;

    if (system->ops->random(system, bytes, sizeof(bytes), true) != 0) return -1;
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* version 4 */
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80); /* variant of RFC 9562 */
    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) ret[at++] = '-';
        ret[at++] = HEX_DIGITS[bytes[i] >> 4];
        ret[at++] = HEX_DIGITS[bytes[i] & 15];
    }
    assert(at == OWNER_UUID_LENGTH);
    ret[at] = '\0';
    return 0;
}

/*
 * The number has 63 of the token's 160 random bits, so that it is a positive Java long.
 *
 * 63 bits suffice. The uuid keeps clients apart, so only attempts of one client can collide, and only within one lease,
 * after which no node has the old number. For 10,000 attempts in that time the probability is 10^8 / 2^64, less than
 * 10^-11. After a fork both processes have the same uuid, but draw different numbers.
 */
size_t owner_redisson(char *ret, const char *uuid, const struct core_token *token)
{
    uint64_t number = 0;
    int length;

    for (size_t i = 0; i < sizeof(number); i++) number = number << 8 | token->bytes[i];
    number &= INT64_MAX;
    if (number == 0) number = 1;
    length = snprintf(ret, OWNER_REDISSON_SIZE, "%s:%llu", uuid, (unsigned long long)number);
    assert(length > OWNER_UUID_LENGTH && length < OWNER_REDISSON_SIZE);
    return length > 0 ? (size_t)length : 0;
}

#define HEX_ROW(digit)                                                                                                 \
    digit "0" digit "1" digit "2" digit "3" digit "4" digit "5" digit "6" digit "7" digit "8" digit "9" digit          \
          "a" digit "b" digit "c" digit "d" digit "e" digit "f"

_Static_assert(CORE_TOKEN_SIZE % 4 == 0, "four bytes at a time");

/* Hex digits, so that each token has its own text. */
size_t owner_plain(char *ret, const char *label, size_t label_length, const struct core_token *token)
{
    static const char pairs[] =
        HEX_ROW("0") HEX_ROW("1") HEX_ROW("2") HEX_ROW("3") HEX_ROW("4") HEX_ROW("5") HEX_ROW("6") HEX_ROW("7")
            HEX_ROW("8") HEX_ROW("9") HEX_ROW("a") HEX_ROW("b") HEX_ROW("c") HEX_ROW("d") HEX_ROW("e") HEX_ROW("f");
    char *at = ret + label_length;

    memcpy(ret, label, label_length);
    for (const unsigned char *from = token->bytes; from < token->bytes + CORE_TOKEN_SIZE; from += 4, at += 8) {
        memcpy(at, pairs + 2 * (size_t)from[0], 2);
        memcpy(at + 2, pairs + 2 * (size_t)from[1], 2);
        memcpy(at + 4, pairs + 2 * (size_t)from[2], 2);
        memcpy(at + 6, pairs + 2 * (size_t)from[3], 2);
    }
    assert(at == ret + label_length + 2 * (size_t)CORE_TOKEN_SIZE);
    *at = '\0';
    return (size_t)(at - ret);
}

bool owner_read_plain(const char *owner, size_t *ret_label_length, struct core_token *ret)
{
    size_t digits = 2 * (size_t)CORE_TOKEN_SIZE, length = strlen(owner);
    const char *hex;

    if (length < digits || length - digits >= OPTIONS_LABEL_SIZE) return false;
    hex = owner + length - digits;
    if (strspn(hex, HEX_DIGITS) != digits || (hex != owner && hex[-1] != ':')) return false;
    for (const char *at = owner; at < hex; at++)
        if (*at <= ' ' || *at >= 0x7f) return false;
    for (size_t i = 0; i < CORE_TOKEN_SIZE; i++) {
        size_t high = (size_t)(strchr(HEX_DIGITS, hex[2 * i]) - HEX_DIGITS);
        size_t low = (size_t)(strchr(HEX_DIGITS, hex[2 * i + 1]) - HEX_DIGITS);

        ret->bytes[i] = (unsigned char)(high << 4 | low);
    }
    *ret_label_length = (size_t)(hex - owner);
    return true;
}

uint64_t owner_id(const char *owner, size_t length)
{
    return hash_bytes(HASH_START, owner, length) | 1;
}

bool owner_is_redisson(const char *owner)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    size_t digits;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (i > 0 && *owner++ != '-') return false;
        if (strspn(owner, HEX_DIGITS) != parts[i]) return false;
        owner += parts[i];
    }
    if (*owner++ != ':') return false;
    digits = strspn(owner, "0123456789");
    return digits > 0 && digits <= OWNER_NUMBER_DIGITS && owner[digits] == '\0';
}

/* The length of the printable character at `s`, at most `n`; 0 for a control character, or bytes that are not UTF-8. */
static size_t printable(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* below 0xa0 are controls */
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t code;

    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] < 0x7f;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > n) return 0;
    code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    return length;
}

char *owner_copy(const struct alloc *alloc, const char *bytes, size_t length)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t size = 1;
    size_t used = 0;
    char *copy;

    for (size_t i = 0, step; i<length; i += step> 0 ? step : 1) {
        step = printable(s + i, length - i);
        size += step > 0 ? step : ESCAPE_LENGTH;
    }
    copy = alloc_resize(alloc, NULL, size);
    if (copy == NULL) return NULL;
    for (size_t i = 0, step; i<length; i += step> 0 ? step : 1) {
        step = printable(s + i, length - i);
        if (step > 0) {
            memcpy(copy + used, bytes + i, step);
            used += step;
        } else {
            snprintf(copy + used, ESCAPE_LENGTH + 1, "\\x%02x", s[i]);
            used += ESCAPE_LENGTH;
        }
    }
    assert(used <= ESCAPE_LENGTH * length);
    copy[used] = '\0';
    return copy;
}

size_t owner_step(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t step = strnlen(text, ESCAPE_LENGTH);

    if (step == ESCAPE_LENGTH && memcmp(text, "\\x", 2) == 0 && strspn(text + 2, HEX_DIGITS) >= 2) return step;
    step = printable(s, step);
    return step > 0 ? step : 1;
}

bool owner_is_plain_text(const char *text)
{
    for (; *text > ' ' && *text < 0x7f; text++)
        if (owner_step(text) > 1) return false;
    return *text == '\0';
}

int quorlock_owner_equals(const char *holder, const char *other)
{
    if (strcmp(holder, other) == 0) return 1;
    if (!owner_is_redisson(holder) || !owner_is_redisson(other)) return 0;
    return strcmp(strrchr(holder, ':'), strrchr(other, ':')) == 0;
}
