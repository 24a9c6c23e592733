/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/wire/errors.h"

#include <stdio.h>
#include <string.h>

#define ERROR_TEXT_SIZE 160
#define ERROR_CLUSTER   "list independent masters, not cluster nodes"
#define ERROR_RIGHTS    "give this user the right by ACL SETUSER: 'quorlock doctor --acl USER' prints what it needs"
#define ERROR_RENAMED   "is it renamed or removed? 'quorlock doctor' names what is missing"

struct error_row {
    const char *front; /* the first word of the reply; or, with a space in it, the beginning of the text */
    struct error_class class;
    const char *remedy;
};

static const struct error_row error_rows[] = {
    {"LOADING", {FAULT_TEMPORARY, false, true}, NULL},
    {"MASTERDOWN", {FAULT_TEMPORARY, false, true}, NULL},
    {"TRYAGAIN", {FAULT_TEMPORARY, false, false}, NULL},
    {"BUSY", {FAULT_TEMPORARY, false, false}, NULL},
    {"READONLY", {FAULT_REPLICA, false, true}, "it is a replica: list independent masters only"},
    {"NOAUTH",
     {FAULT_LOGIN, false, true},
     "write the password into the address: redis://:PASSWORD@host:port or redis://USER:PASSWORD@host:port"},
    {"WRONGPASS", {FAULT_LOGIN, false, true}, NULL},
    /* Valkey 9.1 has rights to databases, too. */
    {"NOPERM No permissions to access database",
     {FAULT_AUTH, false, false},
     "let this user use it: ACL SETUSER USER alldbs"},
    {"NOPERM", {FAULT_AUTH, false, false}, ERROR_RIGHTS},
    /* A missing right inside a script, as reported by Redis 7.2 and later and Valkey, by 7.0, and by 6. */
    {"ERR ACL failure in script", {FAULT_AUTH, false, false}, ERROR_RIGHTS},
    {"ERR The user executing the script", {FAULT_AUTH, false, false}, ERROR_RIGHTS},
    {"The user executing the script", {FAULT_AUTH, false, false}, ERROR_RIGHTS},
    /* rename-command removed the command; outside scripts, in scripts of Redis 7, and of older ones. */
    {"ERR unknown command", {FAULT_AUTH, false, false}, ERROR_RENAMED},
    {"ERR Unknown Redis command", {FAULT_AUTH, false, false}, ERROR_RENAMED},
    {"Unknown Redis command", {FAULT_AUTH, false, false}, ERROR_RENAMED},
    {"ERR Unknown command called from script", {FAULT_AUTH, false, false}, ERROR_RENAMED}, /* Valkey's */
    {"Unknown command called from script", {FAULT_AUTH, false, false}, ERROR_RENAMED},
    /* Lua is a module of Valkey 9.1, which can be unloaded. */
    {"ERR Could not find scripting engine",
     {FAULT_OTHER, false, false},
     "its module lua is not loaded: restart the server, or MODULE LOAD it"},
    {"OOM", {FAULT_REFUSED, false, false}, "the server is at its maxmemory"},
    {"MISCONF", {FAULT_REFUSED, false, false}, "the server cannot write its data to disk"},
    {"NOREPLICAS", {FAULT_REFUSED, false, false}, "see min-replicas-to-write of the server"},
    {"ERR max number of clients", {FAULT_REFUSED, false, false}, "see maxclients of the server"},
    {"DENIED", {FAULT_REFUSED, false, false}, "the server is in protected mode: set a password or bind"},
    {"NOSCRIPT", {FAULT_TEMPORARY, true, false}, NULL},
    {"GUARD", {FAULT_GUARD, false, true}, NULL},
    {"PERMITS",
     {FAULT_CONFIG, false, false},
     "all clients of a name must give the same number; it can be changed while no permit is held"},
    {"FENCE", {FAULT_REFUSED, false, false}, "delete the key quorlock:fence:KEY while nobody holds the lock KEY"},
    {"WRONGTYPE", {FAULT_FOREIGN, false, false}, NULL},
    {"MOVED", {FAULT_CLUSTER, false, false}, ERROR_CLUSTER},
    {"ASK", {FAULT_CLUSTER, false, false}, ERROR_CLUSTER},
    {"CROSSSLOT", {FAULT_CLUSTER, false, false}, ERROR_CLUSTER},
    {"CLUSTERDOWN", {FAULT_CLUSTER, false, false}, ERROR_CLUSTER},
};

static bool errors_begins(const char *text, size_t length, const char *front)
{
    size_t n = strlen(front);

    if (length < n || memcmp(text, front, n) != 0) return false;
    return strchr(front, ' ') != NULL || length == n || text[n] == ' ';
}

static const struct error_row *errors_find(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof(error_rows) / sizeof(error_rows[0]); i++)
        if (errors_begins(text, length, error_rows[i].front)) return &error_rows[i];
    return NULL;
}

/*
 * Before Redis 7 an error inside a script arrives wrapped: "ERR Error running script (call to f_...): @user_script:3:
 * -READONLY You can't write ...", or, if the script returned it, "@user_script: 3: -READONLY You can't write ...". The
 * error that matters is behind a colon.
 */
static const struct error_row *row_of(const char *text, size_t length)
{
    bool wrapped =
        errors_begins(text, length, "ERR Error running script") || errors_begins(text, length, "@user_script: ");
    const struct error_row *row = errors_find(text, length);

    for (size_t i = 0; wrapped && row == NULL && i + 2 < length; i++) {
        size_t at = i + 2 + (text[i + 2] == '-');

        if (text[i] == ':' && text[i + 1] == ' ') row = errors_find(text + at, length - at);
    }
    return row;
}

struct error_class error_classify(const char *text, size_t length)
{
    const struct error_row *row = row_of(text, length);

    if (row != NULL) return row->class;
    return (struct error_class){.fault = FAULT_OTHER};
}

char *error_printable(char *ret, size_t size, const char *text, size_t length)
{
    size_t n = 0;

    for (; n < length && n + 1 < size; n++) {
        unsigned char byte = (unsigned char)text[n];

        ret[n] = (byte < 0x20 || byte == 0x7f) ? '?' : text[n];
    }
    ret[n] = '\0';
    return ret;
}

void error_describe(char *ret, size_t size, const char *what, const char *text, size_t length)
{
    static const char echo[] = "with args beginning with";
    const char *cut = memmem(text, length, echo, sizeof(echo) - 1);
    const struct error_row *row;
    char clean[ERROR_TEXT_SIZE];

    if (cut != NULL) length = (size_t)(cut - text);
    while (length != 0 && (text[length - 1] == ' ' || text[length - 1] == ',')) length--;
    row = row_of(text, length);
    error_printable(clean, sizeof(clean), text, length);
    if (row != NULL && row->remedy != NULL)
        snprintf(ret, size, "%s: %s (%s)", what, clean, row->remedy);
    else
        snprintf(ret, size, "%s: %s", what, clean);
}

void error_foreign(char *ret, size_t size, const char *type, size_t length, enum error_no no)
{
    static const struct {
        const char *ours, *other, *remedy;
    } dialects[] = {
        [ERROR_NO_STRING] = {"string", "hash",
                             "is it a lock of Redisson? Then give --dialect redisson (QUORLOCK_DIALECT_REDISSON)"},
        [ERROR_NO_HASH] = {"hash", "string",
                           "is it a lock of the plain dialect? Then give --dialect plain (QUORLOCK_DIALECT_PLAIN)"},
    };
    char clean[32];

    if (type == NULL) {
        snprintf(ret, size, "the value of the key is not a %s: another type, or another dialect", dialects[no].ours);
        return;
    }
    error_printable(clean, sizeof(clean), type, length);
    snprintf(ret, size, "the key holds a %s, not a %s: %s", clean, dialects[no].ours,
             strcmp(clean, dialects[no].other) == 0 ? dialects[no].remedy : "it is not a lock");
}

void error_foreign_key(char *ret, size_t size, const char *type, size_t type_length, const char *key, size_t key_length)
{
    char clean_type[32], clean_key[ERROR_TEXT_SIZE];

    error_printable(clean_type, sizeof(clean_type), type, type_length);
    error_printable(clean_key, sizeof(clean_key), key, key_length);
    snprintf(ret, size, "the key \"%s\" holds a %s, not a string: quorlock did not write it; delete it", clean_key,
             clean_type);
}
