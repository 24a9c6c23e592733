/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/duration.h"

#include <string.h>

const char *duration_read(const char *text, uint32_t *ret_ms)
{
    static const char *const wrong = "is no duration: write a whole number and a unit, such as 250ms, 30s or 2m";
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t number = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (number > UINT32_MAX) return "is too long";
        number = number * 10 + (uint64_t)(*p - '0');
    }
    if (p == text) return wrong;
    if (*p == '\0') return "has no unit: write 250ms, 30s or 2m";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(p, units[i].name) != 0) continue;
        if (number > (UINT32_MAX - 1) / units[i].ms) return "is too long";
        *ret_ms = (uint32_t)(number * units[i].ms);
        return NULL;
    }
    return wrong;
}

void duration_add(struct text *text, uint32_t ms)
{
    if (ms % 3600000 == 0 && ms > 0) {
        text_format(text, "%uh", ms / 3600000);
    } else if (ms % 1000 == 0 && ms > 0) {
        text_format(text, "%us", ms / 1000);
    } else {
        text_format(text, "%ums", ms);
    }
}
