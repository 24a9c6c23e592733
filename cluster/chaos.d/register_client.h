/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register_client.h - the resource that the lock protects: a counter that looks at fencing tokens
 *
 * The register is its own journal: one JSON line an access, the last line is its state. A line is one write
 * to the file, so a client killed in the middle leaves the register either before or after the access, and
 * the journal is part of the checked history. A file lock makes one access atomic, as a database would; it is
 * not held between a client's read and its write: that is the job of the lock under test.
 */
#ifndef QUORLOCK_CHAOS_REGISTER_CLIENT_H
#define QUORLOCK_CHAOS_REGISTER_CLIENT_H

#include <stdint.h>

struct register_access {
    const char *client;
    const char *key;
    uint64_t fence;        /* 0: the client has no token */
    uint64_t value;        /* what a write stores; what a read found */
    uint64_t deadline_us;  /* of the client's validity, for the journal */
    uint64_t (*now)(void); /* clock of the history */
};

enum register_outcome { REGISTER_ACCEPTED, REGISTER_REFUSED, REGISTER_BROKEN };

/* register_open - the journal of a key in a folder; -1 with errno. The caller closes it. */
int register_open(const char *folder, const char *key);

/* register_read - the value; the register remembers the token, so that no older one can write any more. */
enum register_outcome register_read(int fd, struct register_access *access);

/* register_write - stores a value, unless a newer token was seen. BROKEN: the file cannot be used. */
enum register_outcome register_write(int fd, struct register_access *access);

#endif
