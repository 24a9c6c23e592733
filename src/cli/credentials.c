/* SPDX-License-Identifier: BSD-3-Clause */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* read_whole - as much of the file as there is room for; how much it was, or -1 with errno. */
static ssize_t read_whole(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t done = 0;
    ssize_t n = fd >= 0 ? 1 : -1;

    while (n > 0 && done < size) {
        n = read(fd, ret + done, size - done);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno == EINTR) n = 1;
    }
    if (fd >= 0) close(fd);
    return n < 0 ? -1 : (ssize_t)done;
}

/* read_file - the first line of the file; NULL, or what is wrong with it. */
static const char *read_file(const char *path, char *ret, size_t size)
{
    ssize_t n = read_whole(path, ret, size - 1);
    size_t length;

    if (n < 0) return strerror(errno);
    ret[n] = '\0';
    length = strcspn(ret, "\r\n");
    if (length > PASSWORD_LENGTH_MAX) return "its first line is longer than the 1000 bytes that a password may have";
    if (length == 0) return "its first line is empty";
    if (memchr(ret, '\0', (size_t)n) != NULL) return "it has a zero byte: it must be text";
    explicit_bzero(ret + length, size - length);
    return NULL;
}

int credentials_read(struct credentials *credentials, const struct settings *settings, char *error, size_t error_size)
{
    const char *wrong = NULL;

    *credentials = (struct credentials){.user = settings->user};
    if (settings->password_file != NULL) {
        wrong = read_file(settings->password_file, credentials->password, sizeof(credentials->password));
        if (wrong != NULL) snprintf(error, error_size, "password file \"%s\": %s", settings->password_file, wrong);
    } else if (settings->password != NULL) {
        if (strlen(settings->password) > PASSWORD_LENGTH_MAX) {
            wrong = "the password is longer than the 1000 bytes that one may have";
            snprintf(error, error_size, "%s", wrong);
        } else {
            memcpy(credentials->password, settings->password, strlen(settings->password) + 1);
        }
    }
    return wrong == NULL ? 0 : QUORLOCK_INVAL;
}

void credentials_wipe(struct credentials *credentials)
{
    explicit_bzero(credentials->password, sizeof(credentials->password));
}
