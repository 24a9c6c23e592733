/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/configfile.h"

#include <quorlock/quorlock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings/text.h"

static const char blanks[] = " \t\r";

/* trim - cut blanks at the end, and return the text without blanks at the beginning. */
static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && strchr(blanks, end[-1]) != NULL) *--end = '\0';
    return text + strspn(text, blanks);
}

struct config_item *configfile_find(const struct configfile *file, const char *set, const char *key)
{
    for (size_t i = 0; i < file->n_items; i++) {
        struct config_item *item = &file->items[i];

        if (item->key != NULL && strcmp(item->key, key) == 0 && strcmp(item->set, set) == 0) return item;
    }
    return NULL;
}

/* configfile_fail - keep the error, and return its status. */
__attribute__((format(printf, 3, 4))) static int configfile_fail(struct configfile *file, int status,
                                                                 const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = vasprintf(&file->error, format, list);
    va_end(list);
    if (length >= 0) return status;
    file->error = NULL;
    return QUORLOCK_ERR_NOMEM;
}

static int configfile_refuse(struct configfile *file, unsigned line, const char *why)
{
    return configfile_fail(file, QUORLOCK_ERR_INVAL, "%s:%u: %s", file->path, line, why);
}

/* add_set - read a line that begins with a bracket. */
static int add_set(struct configfile *file, char *text, unsigned line)
{
    char *end = text + strlen(text) - 1, *name = text + 1 + strspn(text + 1, blanks);
    bool named = *end == ']' && strncmp(name, "set", 3) == 0 && strchr(blanks, name[3]) != NULL;

    if (named) {
        *end = '\0';
        name = trim(name + 3);
    }
    if (!named || *name == '\0' || strpbrk(name, blanks) != NULL)
        return configfile_refuse(file, line,
                                 "a line that begins with [ must be [set NAME], with a name without blanks");
    file->items[file->n_items++] = (struct config_item){.set = name, .line = line};
    return 0;
}

/* add_value - read a line KEY = VALUE. No message shows the line: a wrong line may have a password anywhere. */
static int add_value(struct configfile *file, char *text, unsigned line)
{
    char *sign = strchr(text, '='), *key, *value;
    const char *set = file->n_items > 0 ? file->items[file->n_items - 1].set : "";
    const struct config_item *first;

    if (sign == NULL)
        return configfile_refuse(file, line, "no \"=\": write KEY = VALUE, [set NAME], or # and a comment");
    *sign = '\0';
    key = trim(text);
    value = trim(sign + 1);
    if (*key == '\0' || strspn(key, "abcdefghijklmnopqrstuvwxyz-") != strlen(key))
        return configfile_refuse(file, line, "no key before \"=\": a key has small letters and - only");
    first = configfile_find(file, set, key);
    if (first != NULL)
        return configfile_fail(file, QUORLOCK_ERR_INVAL, "%s:%u: %.40s is in line %u already", file->path, line, key,
                               first->line);
    file->items[file->n_items++] = (struct config_item){.set = set, .key = key, .value = value, .line = line};
    return 0;
}

int configfile_parse(struct configfile *file, const char *path, char *bytes, size_t length)
{
    size_t n_lines = 1;
    char *next = bytes;
    int status = 0;

    for (size_t i = 0; i < length; i++) n_lines += bytes[i] == '\n';
    *file = (struct configfile){.path = strdup(path), .bytes = bytes, .items = calloc(n_lines, sizeof(*file->items))};
    if (file->path == NULL || file->items == NULL) return QUORLOCK_ERR_NOMEM;
    if (text_has_mark(bytes)) return configfile_refuse(file, 1, TEXT_MARK_WRONG);
    for (unsigned line = 1; status == 0 && next < bytes + length; line++) {
        char *text = next, *end = memchr(next, '\n', length - (size_t)(next - bytes));

        if (end == NULL) end = bytes + length;
        *end = '\0';
        next = end + 1;
        if (strlen(text) != (size_t)(end - text))
            return configfile_refuse(file, line, "a zero byte: the file must be text");
        text = trim(text);
        if (*text == '[') {
            status = add_set(file, text, line);
        } else if (*text != '\0' && *text != '#') {
            status = add_value(file, text, line);
        }
    }
    return status;
}

/* configfile_read_whole - read the whole file; the caller frees the bytes, which end with a NUL. NULL with errno: it
 * failed.
 */
static char *configfile_read_whole(int fd, size_t *ret_length)
{
    char *bytes = malloc(CONFIGFILE_SIZE_MAX + 2);
    ssize_t n = 1;

    for (*ret_length = 0; bytes != NULL && n != 0 && *ret_length <= CONFIGFILE_SIZE_MAX;) {
        n = read(fd, bytes + *ret_length, CONFIGFILE_SIZE_MAX + 1 - *ret_length);
        if (n > 0) *ret_length += (size_t)n;
        if (n >= 0 || errno == EINTR) continue;
        explicit_bzero(bytes, *ret_length);
        free(bytes);
        return NULL;
    }
    if (bytes != NULL) bytes[*ret_length] = '\0';
    return bytes;
}

int configfile_read(struct configfile *file, const char *path, bool needed)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat found = {0};
    size_t length = 0;
    char *bytes;
    int status = 0;

    *file = (struct configfile){0};
    if (fd < 0 && !needed && (errno == ENOENT || errno == ENOTDIR)) return 0;
    bytes = fd >= 0 && fstat(fd, &found) == 0 ? configfile_read_whole(fd, &length) : NULL;
    if (bytes == NULL) {
        status = errno == EMFILE || errno == ENFILE || errno == ENOMEM ? QUORLOCK_ERR_NOMEM : QUORLOCK_ERR_INVAL;
        status = configfile_fail(file, status, "configuration file %s: %s", path, strerror(errno));
    }
    if (fd >= 0) close(fd);
    if (bytes == NULL) return status;
    if (length > CONFIGFILE_SIZE_MAX) {
        explicit_bzero(bytes, length);
        free(bytes);
        return configfile_fail(file, QUORLOCK_ERR_INVAL, "configuration file %s: it is longer than %d bytes", path,
                               CONFIGFILE_SIZE_MAX);
    }
    status = configfile_parse(file, path, bytes, length);
    file->is_public = (found.st_mode & S_IROTH) != 0;
    return status;
}

void configfile_clear(struct configfile *file)
{
    free(file->path);
    free(file->bytes);
    free(file->items);
    free(file->error);
    *file = (struct configfile){0};
}
