/* SPDX-License-Identifier: BSD-3-Clause */
/* said.h - replaces what the command says things by: prints nothing, and keeps the latest text */
#ifndef TESTS_FUZZ_SAID_H
#define TESTS_FUZZ_SAID_H

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "cli/say.h"

static struct {
    unsigned times;
    char text[8192];
} said;

void say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(said.text, sizeof(said.text), format, list);
    va_end(list);
    said.times++;
}

void say_at(int priority, const char *format, ...)
{
    (void)priority;
    (void)format;
}

void say_text(int priority, struct text *text)
{
    if (priority == LOG_ERR) {
        snprintf(said.text, sizeof(said.text), "%.*s", (int)text->length, text->length > 0 ? text->bytes : "");
        said.times++;
    }
    text_clear(text);
}

#endif
