/* SPDX-License-Identifier: BSD-3-Clause */
#include "owner.h"

#include <quorlock/quorlock.h>

#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { TOKEN_DIGITS = 40, TOKEN_SHOWN = 8, LABEL_SHOWN = 65, NUMBER_DIGITS = 19, HOLDER_SHOWN = 128 };

/* The library's name of a read-write lock of Redisson, before its mode. */
#define READ_WRITE "RReadWriteLock:"

static const char hex_digits[] = "0123456789abcdef";

/* redisson_colon - return the index of the colon in <uuid>:<number>; 0: it is not a Redisson owner. */
static size_t redisson_colon(const char *owner, size_t length)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    size_t at = 0, digits;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (i > 0 && owner[at++] != '-') return 0;
        if (strspn(owner + at, hex_digits) != parts[i]) return 0;
        at += parts[i];
    }
    digits = owner[at] == ':' ? strspn(owner + at + 1, "0123456789") : 0;
    return digits > 0 && digits <= NUMBER_DIGITS && at + 1 + digits == length ? at : 0;
}

/* chars_length - return the size of the first n characters, in UTF-8 or as \xNN of the library. */
static size_t chars_length(const char *text, size_t n)
{
    size_t length = 0;

    for (; n > 0 && text[length] != '\0'; n--) {
        bool escaped = strncmp(text + length, "\\x", 2) == 0 && strspn(text + length + 2, hex_digits) >= 2;

        length += escaped ? 4 : 1;
        while (!escaped && ((unsigned char)text[length] & 0xc0) == 0x80) length++;
    }
    return length;
}

const char *owner_digits(const char *owner)
{
    size_t length = strlen(owner);
    const char *digits = owner + (length >= TOKEN_DIGITS ? length - TOKEN_DIGITS : 0);

    return strspn(digits, hex_digits) == TOKEN_DIGITS ? digits : NULL;
}

void owner_short(struct text *text, const char *owner)
{
    size_t length = strlen(owner);
    size_t colon = redisson_colon(owner, length);
    const char *digits = owner_digits(owner);
    size_t label = digits != NULL ? (size_t)(digits - owner) : 0;

    if (label > LABEL_SHOWN) label = LABEL_SHOWN;
    if (length == 0) {
        text_format(text, "\"\""); /* an empty token would be invisible */
    } else if (strcmp(owner, OWNER_READERS) == 0) {
        text_format(text, "readers");
    } else if (colon != 0) {
        text_format(text, "%.*s%s", TOKEN_SHOWN, owner, owner + colon);
    } else if (strncmp(owner, READ_WRITE, strlen(READ_WRITE)) == 0 && length <= LABEL_SHOWN) {
        text_format(text, "%s", owner);
    } else {
        text_add(text, owner, label + chars_length(owner + label, TOKEN_SHOWN));
    }
}

/* This command would wait for its own parent, which waits for this command. */
static const char parent[] = "; that is the quorlock around this command (QUORLOCK_OWNER), which keeps the lock until "
                             "the command ends: lock a key once only";
static const char parent_reads[] = "; the quorlock around this command (QUORLOCK_OWNER) is one of them if it locks the "
                                   "key shared, and keeps it until the command ends: lock a key once only";

/* around_owner - return the owner token of the quorlock around this command, or NULL. */
static const char *around_owner(void)
{
    const char *around = getenv("QUORLOCK_OWNER");

    return around != NULL && *around != '\0' ? around : NULL;
}

/* around_locks - return whether the quorlock around this command locks one of these keys. */
static bool around_locks(const struct settings *settings)
{
    const char *line = getenv("QUORLOCK_KEYS");

    while (line != NULL && *line != '\0') {
        size_t length = strcspn(line, "\n");

        for (size_t i = 0; i < settings->n_words; i++)
            if (strlen(settings->words[i]) == length && strncmp(settings->words[i], line, length) == 0) return true;
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    return false;
}

const char *owner_parent(const struct settings *settings, const char *holder)
{
    const char *around = around_owner();

    if (around == NULL) return "";
    if (strcmp(holder, OWNER_READERS) == 0) return around_locks(settings) ? parent_reads : "";
    return quorlock_owner_equals(holder, around) != 0 ? parent : "";
}

const char *owner_parent_in(const struct settings *settings, const char *message)
{
    const char *around = around_owner();
    struct text named = {0};
    bool found;

    if (around == NULL) return "";
    if (strstr(message, "\" is held by readers ") != NULL) return around_locks(settings) ? parent_reads : "";
    text_format(&named, " held by ");
    owner_short(&named, around);
    text_format(&named, " ");
    found = !named.failed && memmem(message, strlen(message), named.bytes, named.length) != NULL;
    text_clear(&named);
    return found ? parent : "";
}

const char *owner_kept(const char *holder)
{
    bool kept = holder != NULL && strncmp(holder, OWNER_KEPT, strlen(OWNER_KEPT)) == 0;

    return kept ? holder + strlen(OWNER_KEPT) : NULL;
}

void owner_whole(struct text *text, const char *holder)
{
    size_t length = chars_length(holder, HOLDER_SHOWN);

    if (length == 0) text_format(text, "\"\"");
    text_add_safe(text, holder, length);
    if (holder[length] != '\0') text_format(text, "...");
}
