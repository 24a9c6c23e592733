/* SPDX-License-Identifier: BSD-3-Clause */
#include <quorlock/quorlock.h>

const char *quorlock_version(void)
{
    return QUORLOCK_VERSION;
}

const char *quorlock_status_name(int status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
    case value: return #name;
        QUORLOCK_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    default: return "UNKNOWN";
    }
}

const char *quorlock_status_text(int status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
    case value: return text;
        QUORLOCK_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    default: return "not a status of quorlock";
    }
}
