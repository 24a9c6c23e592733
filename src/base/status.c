/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/quorlock.h>

const char *quorlock_version(void)
{
    return QUORLOCK_VERSION;
}

/* By -status. */
static const struct text {
    const char *name, *text;
} texts[] = {
    [-QUORLOCK_OK] = {"OK", "success"},
    [-QUORLOCK_ERR_INVAL] = {"INVAL", "invalid argument"},
    [-QUORLOCK_ERR_NOMEM] = {"NOMEM", "out of memory"},
    [-QUORLOCK_ERR_BUSY] = {"BUSY", "another operation of this lock is in flight"},
    [-QUORLOCK_ERR_STATE] = {"STATE", "not possible in the present state of the lock"},
    [-QUORLOCK_ERR_HELD] = {"HELD", "somebody else holds the lock"},
    [-QUORLOCK_ERR_NOQUORUM] = {"NOQUORUM", "too few nodes can vote"},
    [-QUORLOCK_ERR_TIMEDOUT] = {"TIMEDOUT", "the wait ended without a result"},
    [-QUORLOCK_ERR_LOST] = {"LOST", "the lock was lost"},
    [-QUORLOCK_ERR_CANCELED] = {"CANCELED", "canceled by the caller"},
    [-QUORLOCK_ERR_CLOSED] = {"CLOSED", "the client is closed"},
    [-QUORLOCK_ERR_AUTH] = {"AUTH",
                            "the nodes refuse our credentials or rights, or their certificates are not accepted"},
    [-QUORLOCK_ERR_FOREIGN] = {"FOREIGN", "the key holds a value of another type or dialect"},
    [-QUORLOCK_ERR_PROTO] = {"PROTO", "the nodes do not speak Redis as expected"},
    [-QUORLOCK_ERR_UNSUPPORTED] = {"UNSUPPORTED", "not supported by this version or build"},
};

static const struct text *status_words(int status)
{
    static const struct text unknown = {"UNKNOWN", "not a status of quorlock"};

    return status <= 0 && status > -(int)(sizeof(texts) / sizeof(*texts)) ? &texts[-status] : &unknown;
}

const char *quorlock_status_name(int status)
{
    return status_words(status)->name;
}

const char *quorlock_status_text(int status)
{
    return status_words(status)->text;
}
