/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c - runs every file of a corpus folder through a fuzz target
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1u << 20);
    size_t size;

    if (file == NULL || data == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    size = fread(data, 1, 1u << 20, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    const struct dirent *entry;

    if (folder == NULL) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 64;
    }
    while ((entry = readdir(folder)) != NULL) {
        char path[4096];

        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        replayed += replay(path);
    }
    closedir(folder);
    printf("%d inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}
