/* SPDX-License-Identifier: BSD-3-Clause */
#include "register_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512

struct register_state {
    uint64_t value; /* last value accepted */
    uint64_t seen;  /* newest token accepted */
};

int register_open(const char *folder, const char *key)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/%s.jsonl", folder, key);

    if (length < 0 || (size_t)length >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int lock(int fd, int operation)
{
    int status;

    do status = flock(fd, operation);
    while (status != 0 && errno == EINTR);
    return status;
}

/* The number behind a name in a line of the journal, which we wrote ourselves. */
static int line_number(const char *line, const char *name, uint64_t *ret_number)
{
    const char *at = strstr(line, name);

    if (at == NULL) return -1;
    *ret_number = strtoull(at + strlen(name), NULL, 10);
    return 0;
}

static int load(int fd, struct register_state *ret_state)
{
    char tail[LINE_MAX_BYTES + 1];
    struct register_state state = {0, 0};
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > LINE_MAX_BYTES ? size - LINE_MAX_BYTES : 0;
    ssize_t length;
    char *line;

    if (size < 0) return -1;
    length = pread(fd, tail, LINE_MAX_BYTES, from);
    if (length != size - from || (length > 0 && tail[length - 1] != '\n')) return -1;
    if (length > 0) {
        tail[length - 1] = 0;
        line = strrchr(tail, '\n');
        line = line == NULL ? tail : line + 1;
        if (line_number(line, "\"now\":", &state.value) != 0) return -1;
        if (line_number(line, "\"seen\":", &state.seen) != 0) return -1;
    }
    *ret_state = state;
    return 0;
}

static int append(int fd, const struct register_access *access, const char *event, const struct register_state *state)
{
    char line[LINE_MAX_BYTES];
    int length =
        snprintf(line, sizeof(line),
                 "{\"t_us\":%" PRIu64 ",\"client\":\"%s\",\"event\":\"%s\",\"key\":\"%s\",\"deadline_us\":%" PRIu64
                 ",\"fence\":%" PRIu64 ",\"value\":%" PRIu64 ",\"now\":%" PRIu64 ",\"seen\":%" PRIu64 "}\n",
                 access->now(), access->client, event, access->key, access->deadline_us, access->fence, access->value,
                 state->value, state->seen);

    if (length < 0 || (size_t)length >= sizeof(line)) return -1;
    return write(fd, line, (size_t)length) == length ? 0 : -1;
}

static enum register_outcome visit(int fd, struct register_access *access, int writes)
{
    enum register_outcome outcome = REGISTER_BROKEN;
    struct register_state state;
    const char *event;

    if (lock(fd, LOCK_EX) != 0) return REGISTER_BROKEN;
    if (load(fd, &state) != 0) goto done;
    if (access->fence < state.seen) {
        outcome = REGISTER_REFUSED;
        event = writes != 0 ? "write_refused" : "read_refused";
        if (writes == 0) access->value = state.value;
    } else {
        outcome = REGISTER_ACCEPTED;
        event = writes != 0 ? "write" : "read";
        state.seen = access->fence;
        if (writes != 0)
            state.value = access->value;
        else
            access->value = state.value;
    }
    if (append(fd, access, event, &state) != 0) outcome = REGISTER_BROKEN;
done:
    (void)lock(fd, LOCK_UN);
    return outcome;
}

enum register_outcome register_read(int fd, struct register_access *access)
{
    return visit(fd, access, 0);
}

enum register_outcome register_write(int fd, struct register_access *access)
{
    return visit(fd, access, 1);
}
