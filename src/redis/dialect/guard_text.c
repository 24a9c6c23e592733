/* SPDX-License-Identifier: BSD-3-Clause */
#include "redis/dialect/guard_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/wire/errors.h"

#define COPY_SIZE 512
#define PARTS_MAX 13u /* of format 2 */

/* Of a first contact; --yes because whoever reads this is connected. */
#define BOOTSTRAP_DECLARES "; 'quorlock bootstrap --yes' ends that at once, where no lock is held on any of the nodes"
#define BOOTSTRAP_ENDS     "; 'quorlock bootstrap' ends that at once, where none of them is held"

/* As the scripts write them. */
static const char *const causes[] = {
    [QUARANTINE_NONE] = "none",
    [QUARANTINE_UNKNOWN] = "unknown",
    [QUARANTINE_FIRST] = "first",
    [QUARANTINE_RESTART] = "restart",
    [QUARANTINE_RECONFIGURE] = "reconfigure",
    [QUARANTINE_CLIENT] = "client",
    [QUARANTINE_REPLICATION] = "replication",
};

bool guard_text_number(const char *text, uint64_t *ret)
{
    unsigned long long number;
    char *end = NULL;

    if (*text < '0' || *text > '9') return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *ret = number;
    return true;
}

static bool short_number(const char *text, uint32_t *ret)
{
    uint64_t number;

    if (!guard_text_number(text, &number) || number > UINT32_MAX) return false;
    *ret = (uint32_t)number;
    return true;
}

static bool guard_text_copy(char *ret, size_t size, const char *text)
{
    size_t length = strlen(text);

    if (length >= size) return false;
    memcpy(ret, text, length + 1);
    return true;
}

/* Split the text at the bars; return the number of parts, or PARTS_MAX + 1 if there are more. */
static size_t split(char *text, char *part[PARTS_MAX])
{
    size_t n = 0;

    for (char *bar = text; text != NULL; text = bar) {
        bar = strchr(text, '|');
        if (bar != NULL) *bar++ = '\0';
        if (n == PARTS_MAX) return n + 1;
        part[n++] = text;
    }
    return n;
}

enum quarantine_cause quarantine_cause_read(const char *text, size_t length, uint32_t *ret_wanted_ms)
{
    char word[32];
    size_t name;

    *ret_wanted_ms = 0;
    if (length >= sizeof(word)) return QUARANTINE_UNKNOWN;
    memcpy(word, text, length);
    word[length] = '\0';
    name = strcspn(word, ":");
    if (word[name] == ':' && !short_number(word + name + 1, ret_wanted_ms)) return QUARANTINE_UNKNOWN;
    word[name] = '\0';
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strcmp(word, causes[i]) == 0) return (enum quarantine_cause)i;
    }
    return QUARANTINE_UNKNOWN;
}

/* Read the parts that format 2 has behind `till`. */
static bool read_rest(char *part[], struct guard_text *ret)
{
    uint32_t none;

    ret->declared = strcmp(part[1], "declared") == 0;
    ret->cause = quarantine_cause_read(part[3], strlen(part[3]), &none);
    return short_number(part[0], &ret->longest_ms) && guard_text_number(part[2], &ret->made_ms) &&
           short_number(part[4], &ret->wanted_ms) && guard_text_number(part[5], &ret->wanted_till_ms);
}

bool guard_text_read(const char *text, size_t length, struct guard_text *ret)
{
    char whole[COPY_SIZE], *part[PARTS_MAX] = {NULL};
    size_t n;

    *ret = (struct guard_text){.cause = QUARANTINE_UNKNOWN};
    if (length >= sizeof(whole) || memchr(text, '\0', length) != NULL) return false;
    error_printable(whole, sizeof(whole), text, length);
    n = split(whole, part);
    if (n < 7 || !short_number(part[1], &ret->n_nodes) || !guard_text_copy(ret->set, sizeof(ret->set), part[2]) ||
        !short_number(part[3], &ret->max_lease_ms) || !guard_text_copy(ret->run_id, sizeof(ret->run_id), part[4]) ||
        !guard_text_copy(ret->replid, sizeof(ret->replid), part[5]) || !guard_text_number(part[6], &ret->till_ms))
        return false;
    if (strcmp(part[0], "2") == 0) return n == PARTS_MAX && read_rest(part + 7, ret);
    ret->longest_ms = ret->max_lease_ms;
    return strcmp(part[0], "1") == 0 && (n == 7 || (n == 8 && short_number(part[7], &ret->longest_ms)));
}

uint64_t guard_text_end_ms(const struct guard_text *guard)
{
    return guard->wanted_till_ms > guard->till_ms ? guard->wanted_till_ms : guard->till_ms;
}

enum quarantine_cause guard_text_cause(const struct guard_text *guard)
{
    return guard->wanted_till_ms > guard->till_ms ? QUARANTINE_CLIENT : guard->cause;
}

uint64_t guard_text_first_ms(const struct guard_text *guard, uint64_t now_ms)
{
    return guard->cause == QUARANTINE_FIRST && guard->till_ms > now_ms ? guard->till_ms - now_ms : 0;
}

const char *guard_length(char *ret, size_t size, uint64_t ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;

    while (ms % units[i].ms != 0 || ms < units[i].ms) {
        if (++i == sizeof(units) / sizeof(units[0]) - 1) break;
    }
    snprintf(ret, size, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].name);
    return ret;
}

/* Write ", until 2026-11-26 08:21:30 UTC", by the node's clock. */
static void describe_until(char *ret, size_t size, uint64_t until_ms)
{
    char date[CLOCK_DATE_SIZE];

    ret[0] = '\0';
    if (until_ms != 0 && clock_date(date, until_ms)) snprintf(ret, size, ", until %s UTC", date);
}

static const char *describe_first(enum guard_set set)
{
    switch (set) {
    case GUARD_SET_OLDER:
        return "it had no guard, and other nodes have one: it lost its memory, and locks that it forgot may be held";
    case GUARD_SET_LOST: return "its guard is gone: it lost its memory, and locks that it forgot may be held";
    case GUARD_SET_FIRST: return "first contact: it had no guard, and locks may be held" BOOTSTRAP_DECLARES;
    case GUARD_SET_UNKNOWN: break;
    }
    return "first contact: it had no guard, and locks may be held";
}

void quarantine_describe(char *ret, size_t size, enum quarantine_cause cause, uint32_t wanted_ms, uint64_t until_ms,
                         enum guard_set set)
{
    const char *why = "it restarted, or is new, and may have lost its memory";
    const char *ends = BOOTSTRAP_ENDS;
    char length[24], until[64];

    if (set == GUARD_SET_FIRST) ends = ", which is of a first contact" BOOTSTRAP_DECLARES;
    if (set == GUARD_SET_LOST) ends = "";
    if (cause == QUARANTINE_CLIENT) {
        describe_until(until, sizeof(until), until_ms);
        snprintf(ret, size, "for a client with a max lease of %s%s: its leases may be older than the guard%s",
                 guard_length(length, sizeof(length), wanted_ms), until, ends);
        return;
    }
    if (cause == QUARANTINE_FIRST) why = describe_first(set);
    if (cause == QUARANTINE_RESTART) why = "it restarted and may have lost its memory";
    if (cause == QUARANTINE_REPLICATION) why = "its replication id changed: " QUARANTINE_ID_CHANGES;
    if (cause == QUARANTINE_RECONFIGURE)
        why = "set up anew by 'quorlock bootstrap --reconfigure': leases from before it may be held";
    snprintf(ret, size, "%s", why);
}
