/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/dialect/others.h"

#include <string.h>

#include "redis/dialect/request.h"

enum { NUMBER_MAX = 256, HOLDER_MAX = 256 };
/* Doubles are exact below this. */
#define FENCE_END (INT64_C(1) << 53)

/* take_number - read a number and the blank behind it; larger ones become `most`. */
static bool take_number(const char **at, const char *end, int64_t most, int64_t *ret)
{
    const char *p = *at;
    bool negative = p < end && *p == '-';
    int64_t number = 0;

    p += negative;
    if (p == end || *p < '0' || *p > '9') return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        number = number > (most - (*p - '0')) / 10 ? most : number * 10 + (*p - '0');
    if (p == end || *p != ' ') return false;
    *at = p + 1;
    *ret = negative ? -number : number;
    return true;
}

bool others_next(const char **at, const char *end, struct other *ret)
{
    const char *p = *at;
    int64_t number, fence, ttl_ms, length;

    if (end - p < 2 || *p == '\0' || strchr("psrwq", *p) == NULL || p[1] != ' ') return false;
    *ret = (struct other){.kind = (enum other_kind)(unsigned char)*p};
    p += 2;
    if (!take_number(&p, end, INT32_MAX, &number) || !take_number(&p, end, INT64_MAX, &fence) ||
        !take_number(&p, end, NODE_MS_MAX, &ttl_ms) || !take_number(&p, end, INT32_MAX, &length))
        return false;
    if (number < 0 || number > NUMBER_MAX || fence < 0 || fence >= FENCE_END) return false;
    if (length < 0 || length > HOLDER_MAX || end - p <= length || p[length] != '\n') return false;
    ret->number = (uint32_t)number;
    ret->fence = (uint64_t)fence;
    ret->ttl_ms = ttl_ms < -1 ? -2 : ttl_ms;
    ret->holder = p;
    ret->holder_length = (size_t)length;
    *at = p + length + 1;
    return true;
}

bool others_fit(const char *text, size_t length)
{
    const char *end = text + length;
    struct other other;

    while (others_next(&text, end, &other)) {
    }
    return text == end;
}
