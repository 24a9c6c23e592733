/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/caller.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STRUCT_SIZE_MAX 4096u

int caller_fail(struct caller_error *error, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return status;
}

int caller_check(size_t least, size_t known, const void *given, size_t size, const char *what,
                 struct caller_error *error)
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

int caller_copy(void *ret, size_t known, const void *given, size_t size, const char *what, struct caller_error *error)
{
    int status = caller_check(sizeof(size_t), known, given, size, what, error);

    if (status != 0) return status;
    memset(ret, 0, known);
    memcpy(ret, given, size < known ? size : known);
    return 0;
}

/* A size of 0 was forgotten by the caller. That is itself the error to report, so the buffer is used then, too. */
void caller_report(const struct quorlock_client_options *given, const char *text)
{
    size_t end = offsetof(struct quorlock_client_options, error_size) + sizeof(given->error_size);

    if (given == NULL || (given->size != 0 && given->size < end) || given->error == NULL) return;
    if (given->error_size > 0) snprintf(given->error, given->error_size, "%s", text);
}
