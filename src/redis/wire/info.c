/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/info.h"

#include <stdlib.h>
#include <string.h>

#include "redis/wire/errors.h"

bool info_field(const char *text, size_t length, const char *field, char *ret, size_t size)
{
    size_t n_field = strlen(field);
    const char *at = text, *end = text + length;

    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((line_end != NULL ? line_end : end) - at);

        if (n > n_field && memcmp(at, field, n_field) == 0 && at[n_field] == ':') {
            const char *value = at + n_field + 1;

            n -= n_field + 1;
            if (n > 0 && value[n - 1] == '\r') n--;
            error_printable(ret, size, value, n);
            return true;
        }
        if (line_end == NULL) break;
        at = line_end + 1;
    }
    return false;
}

static bool is_older(const char *version, unsigned major, unsigned minor)
{
    char *end = NULL;
    unsigned long at = strtoul(version, &end, 10);

    if (at != major) return at < major;
    return *end != '.' || strtoul(end + 1, NULL, 10) < minor;
}

bool info_server(const char *text, size_t length, struct info_server *ret, char *version, size_t size)
{
    /* Valkey reports a redis_version, too, so its own field is looked for first. */
    if (info_field(text, length, "valkey_version", version, size))
        *ret = (struct info_server){.kind = "Valkey", .major = 7, .minor = 2};
    else if (info_field(text, length, "redis_version", version, size))
        *ret = (struct info_server){.kind = "Redis", .major = 6, .minor = 2};
    else
        return false;
    ret->too_old = is_older(version, ret->major, ret->minor);
    return true;
}

void info_other(const struct reply *reply, char *ret, size_t size)
{
    ret[0] = '\0';
    if (reply->self.type != REPLY_MAP) return;
    for (size_t i = 0; i + 1 < reply->n_elements; i += 2) {
        const struct reply_item *value = &reply->elements[i + 1];

        if (!reply_is(&reply->elements[i], "server") || value->text == NULL) continue;
        if (!reply_is(value, "redis") && !reply_is(value, "valkey"))
            error_printable(ret, size, value->text, value->length);
        return;
    }
}

void info_mode(const char *text, size_t length, char *ret, size_t size)
{
    if (!info_field(text, length, "redis_mode", ret, size)) (void)info_field(text, length, "server_mode", ret, size);
}
