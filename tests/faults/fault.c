/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>

int fault_on = -1;
unsigned char fault_reached[FAULTS_MAX];

/* Before the scripts are read. */
__attribute__((constructor(201))) static void choose(void)
{
    const char *number = getenv("FAULT");

    if (number != NULL) fault_on = atoi(number);
}

/* Tell which faults the program could have met. */
__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("FAULT_REACHED");
    FILE *file = path == NULL ? NULL : fopen(path, "we");

    if (file == NULL) return;
    fwrite(fault_reached, 1, sizeof(fault_reached), file);
    fclose(file);
}

static void read_file(const char *name, const char *suffix, char *ret, size_t size)
{
    const char *folder = getenv("FAULT_SCRIPTS");
    char path[4096];
    FILE *file;

    if (folder == NULL) return;
    snprintf(path, sizeof(path), "%s/%s%s", folder, name, suffix);
    file = fopen(path, "re");
    if (file == NULL) return;
    if (fread(ret, 1, size, file) != size) abort();
    fclose(file);
}

void fault_read(const char *name, char *text, size_t size, char *hash)
{
    read_file(name, ".lua", text, size);
    read_file(name, ".sha", hash, 40);
}
