/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_config.c - configuration files
 *
 * Any bytes are a file, or lines are made of keys, signs, values and addresses with a secret. The parser returns 0, or
 * INVAL with an error; what checks the values returns 0, or 64 after one message. Neither text ever shows a password.
 */
#include "feed.h"

#include <sys/mman.h>
#include <unistd.h>

#include "settings/sources.h"

#define FILE_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* make_line - KEY = VALUE for the most part. */
static void make_line(struct feed *feed, char *line, size_t size)
{
    static const char *const fronts[] = {"nodes = ",
                                         "nodes=redis://",
                                         "password = ",
                                         "set=a",
                                         "[set a]",
                                         "[set ",
                                         "]",
                                         "lease = 1s",
                                         "lease=",
                                         "wait = 0",
                                         "# ",
                                         "fence = yes",
                                         "fence=",
                                         "json=1",
                                         "user = u",
                                         "label=",
                                         "policy = all",
                                         "=",
                                         "  ",
                                         "\t",
                                         "\r",
                                         "seconds = 9",
                                         "max-lease=2m",
                                         "guard = strict",
                                         "in-flight = 3"};
    uint8_t n = feed_byte(feed) % 24;
    uint8_t what = feed_byte(feed);

    line[0] = '\0';
    if (what < sizeof(fronts) / sizeof(fronts[0])) snprintf(line, size, "%s", fronts[what]);
    while (n-- > 0 && feed->left > 0 && strlen(line) + 16 < size) feed_add(feed, line, size);
}

/* make_file - its length; it ends with a NUL. *ret_secret: whether a password is in it that must not be shown. */
static size_t make_file(struct feed *feed, char *file, bool *ret_secret)
{
    bool any_bytes = feed_byte(feed) % 4 == 0;
    size_t length = 0;

    *ret_secret = false;
    if (any_bytes) {
        length = feed->left < FILE_SIZE - 1 ? feed->left : FILE_SIZE - 1;
        memcpy(file, feed->data, length);
    }
    while (!any_bytes && feed->left > 0 && length + 512 < FILE_SIZE) {
        char line[256];
        const char *address;
        bool secret;

        make_line(feed, line, sizeof(line));
        address = strstr(line, "redis://");
        secret = strncmp(line, "password", 8) == 0 ||
                 (strncmp(line, "nodes", 5) == 0 && address != NULL && feed_is_secret(address));
        if (strstr(line, FEED_SECRET) != NULL) {
            /* What is no password may be shown, and then nothing is known. */
            if (!secret) continue;
            *ret_secret = true;
        }
        length += (size_t)snprintf(file + length, FILE_SIZE - length, "%s\n", line);
    }
    file[length] = '\0';
    return length;
}

static void check_items(const struct configfile *file, const char *bytes, size_t length)
{
    for (size_t i = 0; i < file->n_items; i++) {
        const struct config_item *item = &file->items[i];

        CHECK(item->line > 0 && item->set != NULL);
        if (item->key == NULL) continue;
        CHECK(item->key >= bytes && item->value > item->key);
        CHECK(item->value + strlen(item->value) <= bytes + length);
        CHECK(configfile_find(file, item->set, item->key) == item);
    }
}

static const char *nothing_asked(const void *arg, const char *key)
{
    (void)arg;
    (void)key;
    return NULL;
}

static bool takes_all(const void *arg, const char *key)
{
    (void)arg;
    return key[0] != '\0';
}

/* Through the file system, as command and library read it. */
static void settle(const char *bytes, size_t length, bool secret)
{
    char path[64];
    const struct sources_caller caller = {path, "", nothing_asked, takes_all, NULL};
    struct sources sources = {0};
    struct values values = values_begin();
    int fd = memfd_create("config", MFD_CLOEXEC);
    int status;

    CHECK(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    status = sources_settle(&sources, &values, &caller);
    CHECK(close(fd) == 0);
    CHECK(status == 0 || status == QUORLOCK_ERR_INVAL);
    CHECK((status == 0) == (sources.error.length == 0));
    CHECK(status != 0 || values.nodes != NULL);
    if (status == 0) status = sources_check(&sources);
    CHECK((status == 0) == (sources.error.length == 0));
    text_add(&sources.error, "", 1);
    CHECK(!secret || !feed_shows_secret(sources.error.bytes));
    if (values.nodes != NULL) sources_forget(&sources, &values);
    sources_clear(&sources);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct configfile file;
    char bytes[FILE_SIZE];
    bool secret;
    size_t length = make_file(&feed, bytes, &secret);
    char *copy = malloc(length + 1);
    int status;

    CHECK(copy != NULL);
    memcpy(copy, bytes, length + 1);
    status = configfile_parse(&file, "FILE", copy, length);
    CHECK(status == 0 || status == QUORLOCK_ERR_INVAL);
    CHECK((status == 0) == (file.error == NULL));
    CHECK(!secret || file.error == NULL || !feed_shows_secret(file.error));
    check_items(&file, copy, length);
    configfile_clear(&file);
    settle(bytes, length, secret);
    return 0;
}
