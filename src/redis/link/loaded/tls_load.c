/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_load.c - tls.h by the module, which is loaded at the first use and stays; for one thread */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "quorlock/quorlock.h"
#include "redis/link/loaded/tls_module.h"

static const struct tls_module *module;

/* Write the module's file, by the program's own place, so that both may be moved together. */
static bool find_module(char *ret, size_t size)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (n < 0) return false;
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    return (size_t)snprintf(ret, size, "%s/" TLS_MODULE_FILE, program) < size;
}

/* Return NULL with the reason if it cannot be used. */
static const struct tls_module *load_module(const char **ret_why)
{
    char file[PATH_MAX];
    const struct tls_module *found;
    void *handle;

    *ret_why = "/proc/self/exe does not tell where quorlock is";
    if (!find_module(file, sizeof(file))) return NULL;
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    found = handle != NULL ? dlsym(handle, TLS_MODULE_SYMBOL) : NULL;
    *ret_why = found == NULL ? dlerror() : TLS_MODULE_FILE " is of another version";
    return found != NULL && strcmp(found->version, QUORLOCK_VERSION) == 0 ? found : NULL;
}

int tls_new(struct tls **ret, struct system *system, const struct tls_config *config, char *error, size_t error_size)
{
    const char *why;

    if (module == NULL) module = load_module(&why);
    if (module == NULL) {
        snprintf(error, error_size, "TLS needs a file that is installed with quorlock " QUORLOCK_VERSION ": %s", why);
        return QUORLOCK_ERR_UNSUPPORTED;
    }
    return module->create(ret, system, config, error, error_size);
}

void tls_free(struct tls *tls)
{
    if (tls != NULL) module->free(tls);
}

struct conn_layer *tls_open(struct tls *tls, struct conn *conn, const struct uri *uri)
{
    return module->open(tls, conn, uri);
}
