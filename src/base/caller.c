/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/caller.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRUCT_SIZE_MAX 4096u

int caller_fail(struct quorlock_error *error, int status, const char *format, ...)
{
    va_list args;

    *error = (struct quorlock_error){.status = status};
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}

int caller_check(size_t least, size_t known, const void *given, size_t size, const char *what,
                 struct quorlock_error *error)
{
    const unsigned char *bytes = given;

    if (size < least || size > STRUCT_SIZE_MAX) {
        return caller_fail(error, QUORLOCK_ERR_INVAL, "%s.size is %zu: set it to sizeof(struct %s)", what, size, what);
    }
    for (size_t i = known; i < size; i++) {
        if (bytes[i] == 0) continue;
        return caller_fail(error, QUORLOCK_ERR_INVAL,
                           "%s has a non-zero byte at offset %zu, which this library (%s) does not know: fill "
                           "the struct with zeros first, or use a newer library",
                           what, i, QUORLOCK_VERSION);
    }
    return 0;
}

int caller_copy(void *ret, size_t known, const void *given, size_t size, const char *what, struct quorlock_error *error)
{
    int status = caller_check(sizeof(size_t), known, given, size, what, error);

    if (status != 0) return status;
    memset(ret, 0, known);
    memcpy(ret, given, size < known ? size : known);
    return 0;
}

int caller_report(struct quorlock_error *ret, int status, const char *text)
{
    if (ret == NULL) return status;
    if (*text == '\0') text = quorlock_status_text(status);
    ret->status = status;
    snprintf(ret->text, sizeof(ret->text), "%s", status != 0 ? text : "");
    return status;
}
