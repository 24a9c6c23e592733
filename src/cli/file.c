/* SPDX-License-Identifier: BSD-3-Clause */
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_check(const char *path)
{
    struct stat there;

    if (lstat(path, &there) != 0) return errno == ENOENT;
    if (S_ISREG(there.st_mode)) return true;
    errno = S_ISDIR(there.st_mode) ? EISDIR : EEXIST;
    return false;
}

static bool file_write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

bool file_write(const char *path, mode_t mode, const char *bytes, size_t length)
{
    size_t size = strlen(path) + sizeof(".XXXXXX");
    char *name = malloc(size);
    bool written = false;
    int fd = -1, error;

    if (name == NULL || !file_check(path)) goto done;
    snprintf(name, size, "%s.XXXXXX", path);
    fd = mkstemp(name);
    if (fd < 0) goto done;
    written = file_write_all(fd, bytes, length) && fchmod(fd, mode) == 0 && rename(name, path) == 0;
done:
    error = errno;
    if (fd >= 0 && !written) unlink(name);
    if (fd >= 0) close(fd);
    free(name);
    errno = error;
    return written;
}

const char *file_why(void)
{
    return errno == EEXIST ? "it is not a regular file: give the file itself" : strerror(errno);
}
