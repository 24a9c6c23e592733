/* SPDX-License-Identifier: BSD-3-Clause */
/* shim.h - shared by the preloaded shims: the memory through which the harness controls them while they run */
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Map the file that the environment variable names. NULL: no such variable, or the file is shorter than size. */
static inline void *shim_map(const char *variable, size_t size)
{
    const char *path = getenv(variable);
    void *mapped = MAP_FAILED;
    struct stat status;
    int fd;

    if (path == NULL) return NULL;
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &status) == 0 && status.st_size >= (off_t)size)
        mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    return mapped != MAP_FAILED ? mapped : NULL;
}
