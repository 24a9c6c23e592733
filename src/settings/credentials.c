/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/login.h"
#include "settings/text.h"

/* credentials_read_whole - read the file, at most `size` bytes; return the number of bytes, or -1 with errno. */
static ssize_t credentials_read_whole(int fd, char *ret, size_t size)
{
    size_t done = 0;
    ssize_t n = 1;

    while (n > 0 && done < size) {
        n = read(fd, ret + done, size - done);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno == EINTR) n = 1;
    }
    return n < 0 ? -1 : (ssize_t)done;
}

/* read_line - read the first line; return NULL, or the error. */
static const char *read_line(int fd, char *ret, size_t size)
{
    ssize_t n = fd >= 0 ? credentials_read_whole(fd, ret, size - 1) : -1;
    size_t length;

    if (n < 0) return strerror(errno);
    ret[n] = '\0';
    if (text_has_mark(ret)) return TEXT_MARK_WRONG;
    length = strcspn(ret, "\r\n");
    if (length > PASSWORD_LENGTH_MAX) return "its first line is longer than the 1000 bytes that a password may have";
    if (length == 0) return "its first line is empty";
    if (memchr(ret, '\0', (size_t)n) != NULL) return "it has a zero byte: it must be text";
    explicit_bzero(ret + length, size - length);
    return NULL;
}

static bool is_regular(int fd)
{
    struct stat file;

    return fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

int credentials_read(struct credentials *credentials, const struct values *values, char *error, size_t error_size)
{
    const char *wrong = NULL;

    *credentials = (struct credentials){.user = values->client.user};
    if (values->password_file != NULL) {
        int fd = open(values->password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        bool denied = errno == EACCES;

        wrong = read_line(fd, credentials->password, sizeof(credentials->password));
        if (wrong != NULL)
            snprintf(error, error_size, "password file \"%s\": %s%s", values->password_file, wrong,
                     fd < 0 && denied ? ": give this user a group that may read it; see SERVICES in "
                                        "quorlock-operations(7)"
                                      : "");
        /* A pipe, as <(COMMAND) makes, can be read only once. */
        credentials->again = is_regular(fd);
        if (fd >= 0) close(fd);
    } else if (values->client.password != NULL) {
        if (strlen(values->client.password) > PASSWORD_LENGTH_MAX) {
            wrong = "the password is longer than 1000 bytes";
            snprintf(error, error_size, "%s", wrong);
        } else {
            memcpy(credentials->password, values->client.password, strlen(values->client.password) + 1);
        }
    }
    return wrong == NULL ? 0 : QUORLOCK_ERR_INVAL;
}

/* log_in - log in with the password in the file. This does not block, even if a pipe has replaced the file. */
static int log_in(quorlock_credentials *to, const char *user, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool other = fd >= 0 && !is_regular(fd);
    char password[PASSWORD_LENGTH_MAX + 2], why[256];
    const char *wrong = other ? "it is not a regular file any more" : read_line(fd, password, sizeof(password));
    int status;

    if (fd >= 0) close(fd);
    if (wrong == NULL) {
        status = quorlock_credentials_set(to, user, password);
    } else {
        snprintf(why, sizeof(why), "password file \"%.100s\": %s", path, wrong);
        status = quorlock_credentials_refuse(to, why);
    }
    explicit_bzero(password, sizeof(password));
    return status;
}

int credentials_again(quorlock_credentials *to, const char *node, void *arg)
{
    const struct values *values = arg;

    (void)node;
    return log_in(to, values->client.user, values->password_file);
}

int quorlock_credentials_read_file(quorlock_credentials *to, const char *node, void *path)
{
    (void)node;
    return path != NULL ? log_in(to, to->user_before, path) : quorlock_credentials_refuse(to, "there is no path");
}

void credentials_give(struct quorlock_client_options *options, const struct credentials *credentials,
                      const struct values *values)
{
    options->user = credentials->user;
    options->password = credentials->password;
    if (!credentials->again) return;
    options->credentials = credentials_again;
    options->credentials_arg = (void *)(uintptr_t)values;
}

void credentials_wipe(struct credentials *credentials)
{
    explicit_bzero(credentials->password, sizeof(credentials->password));
}
