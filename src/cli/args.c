/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <quorlock/quorlock.h>

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "duration.h"
#include "hide.h"
#include "say.h"

/* A value for a setting. */
struct given {
    const char *name;    /* where it was given: an option, a variable, or a line of a file */
    char *value;         /* NULL: the option has no value; it may be changed */
    const char *choices; /* "a|b", for set_choice */
    void *setting;
};

struct entry {
    unsigned places;
    char letter;                      /* 0: none */
    const char *name;                 /* NULL: none */
    const char *value;                /* its value in the help; NULL: it takes none */
    int (*set)(const struct given *); /* 0, or EXIT_USAGE after a message */
    size_t setting;                   /* offset in struct settings */
    const char *help;
};

/* ---- values ---- */

static int refuse_range(const struct given *given, uint32_t min_ms, uint32_t max_ms)
{
    struct text text = {0};

    text_format(&text, "%s: \"%s\" is out of range: give ", given->name, hide_shown(given->value));
    duration_add(&text, min_ms);
    text_format(&text, " to ");
    duration_add(&text, max_ms);
    say("%.*s", (int)text.length, text.bytes);
    text_clear(&text);
    return EXIT_USAGE;
}

static int set_duration(const struct given *given, uint32_t min_ms, uint32_t max_ms)
{
    uint32_t ms = 0;
    const char *wrong = duration_read(given->value, &ms);

    if (wrong != NULL) {
        say("%s: \"%s\" %s", given->name, hide_shown(given->value), wrong);
        return EXIT_USAGE;
    }
    if (ms < min_ms || ms > max_ms) return refuse_range(given, min_ms, max_ms);
    *(uint32_t *)given->setting = ms;
    return 0;
}

/* set_wait - set a wait; -n, which has no value, is 0. */
static int set_wait(const struct given *given)
{
    bool now = given->value == NULL || strcmp(given->value, "0") == 0;

    if (!now && strcmp(given->value, "forever") != 0) return set_duration(given, 0, UINT32_MAX - 1);
    *(uint32_t *)given->setting = now ? 0 : QUORLOCK_WAIT_FOREVER;
    return 0;
}

/* args_set_number - set a number; `what` names it in the error. */
static int args_set_number(const struct given *given, uint32_t min, uint32_t max, const char *what)
{
    size_t length = strlen(given->value);
    bool digits = length >= 1 && length <= 9 && strspn(given->value, "0123456789") == length;
    long number = digits ? strtol(given->value, NULL, 10) : -1;

    if (number < (long)min || number > (long)max) {
        say("%s: \"%s\" is no %s: give a number from %u to %u", given->name, hide_shown(given->value), what, min, max);
        return EXIT_USAGE;
    }
    *(uint32_t *)given->setting = (uint32_t)number;
    return 0;
}

/* WITHIN - define a setter that calls `set` with these bounds. */
#define WITHIN(name, set, ...)                                                                                         \
    static int name(const struct given *given)                                                                         \
    {                                                                                                                  \
        return set(given, __VA_ARGS__);                                                                                \
    }

WITHIN(set_lease, set_duration, LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX)
/* Programs that use the library may have shorter leases than the command. */
WITHIN(set_max_lease, set_duration, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX)
WITHIN(set_max_hold, set_duration, LEASE_MS_MIN, HOLD_MS_MAX)
WITHIN(set_keep, set_duration, 1, QUORLOCK_LEASE_MS_MAX)
WITHIN(set_timeout, set_duration, 1, QUORLOCK_TIMEOUT_MS_MAX)
WITHIN(set_interval, set_duration, WATCH_INTERVAL_MS_MIN, 3600000)
WITHIN(set_status, args_set_number, 0, 255, "exit status")
WITHIN(set_permits, args_set_number, 1, QUORLOCK_PERMITS_MAX, "number of permits")
WITHIN(set_in_flight, args_set_number, 1, BENCH_IN_FLIGHT_MAX, "number of locks")
WITHIN(set_seconds, args_set_number, 1, BENCH_SECONDS_MAX, "number of seconds")

/* set_count - set a count; --once, which has no value, is 1. */
static int set_count(const struct given *given)
{
    if (given->value != NULL) return args_set_number(given, 1, WATCH_COUNT_MAX, "number of rounds");
    *(uint32_t *)given->setting = 1;
    return 0;
}

static int set_flag(const struct given *given)
{
    *(bool *)given->setting = true;
    return 0;
}

/* set_switch - set a switch. A file may turn it on, and the command line may turn it off again. */
static int set_switch(const struct given *given)
{
    bool on = given->value == NULL || strcmp(given->value, "yes") == 0;

    if (!on && strcmp(given->value, "no") != 0) {
        say("%s: \"%s\" is unknown: give yes or no", given->name, hide_shown(given->value));
        return EXIT_USAGE;
    }
    *(bool *)given->setting = on;
    return 0;
}

static int set_more(const struct given *given)
{
    ++*(int *)given->setting;
    return 0;
}

/* set_string - set a text; the library checks it. */
static int set_string(const struct given *given)
{
    *(const char **)given->setting = given->value;
    return 0;
}

/* set_choice - set the index of the word in the choices, which is the library's number of a policy or dialect. */
static int set_choice(const struct given *given)
{
    const char *word = given->choices;
    struct text all = {0};

    for (int place = 0; word != NULL; place++) {
        size_t length = strcspn(word, "|");

        if (strncmp(given->value, word, length) == 0 && given->value[length] == '\0') {
            *(int *)given->setting = place;
            text_clear(&all);
            return 0;
        }
        text_format(&all, "%s%.*s", place == 0 ? "" : word[length] == '|' ? ", " : " or ", (int)length, word);
        word = word[length] == '|' ? word + length + 1 : NULL;
    }
    say("%s: \"%s\" is unknown: give %.*s", given->name, hide_shown(given->value), (int)all.length, all.bytes);
    text_clear(&all);
    return EXIT_USAGE;
}

static int args_set_guard(const struct given *given)
{
    int *guard = given->setting;
    int status = set_choice(given);

    if (status == 0)
        *guard = *guard == 0 ? QUORLOCK_GUARD_CONNECTION : *guard == 1 ? QUORLOCK_GUARD_STRICT : QUORLOCK_GUARD_OFF;
    return status;
}

/* wrong_address - return the error of an address, or NULL. The library checks one address at a time, so it cannot find
 * these errors of a list. */
static const char *wrong_address(const char *address, size_t length)
{
    size_t scheme = hide_scheme_length(address);

    if (length == 0) return "is empty: write URI,URI,... such as 127.0.0.1:6379,127.0.0.1:6380";
    if (memchr(address, ' ', length) != NULL)
        return "has a blank: write URI,URI,... without any, %20 where one belongs";
    if (scheme == 0 && memchr(address, '@', length) != NULL)
        return "has an @ and does not begin with redis://, rediss://, valkey://, valkeys:// or unix://: write a comma "
               "in a user name or "
               "a password as %2C";
    if (scheme > 0 && strncasecmp(address, "unix", 4) != 0 &&
        memmem(address + scheme, length - scheme, "://", 3) != NULL)
        return "has :// twice: write commas between addresses";
    return NULL;
}

/* set_nodes - set the addresses, without blanks around them and without a comma at the end. */
static int set_nodes(const struct given *given)
{
    static const char blanks[] = " \t\r\n";
    size_t n = 1, number = 1;
    char *end = given->value + strlen(given->value), *to = given->value;

    while (end > given->value && strchr(blanks, end[-1]) != NULL) end--;
    if (end > given->value && end[-1] == ',') end--;
    *end = '\0';
    for (const char *p = given->value; *p != '\0'; p++) n += *p == ',';
    for (const char *address = given->value; number <= n; number++) {
        size_t length, whole;
        const char *wrong;

        address += strspn(address, blanks);
        length = whole = strcspn(address, ",");
        while (length > 0 && strchr(blanks, address[length - 1]) != NULL) length--;
        wrong = wrong_address(address, length);
        if (wrong != NULL) {
            say("%s: address %zu of %zu %s", given->name, number, n, wrong);
            return EXIT_USAGE;
        }
        memmove(to, address, length);
        address += whole + 1;
        to += length;
        *to++ = number < n ? ',' : '\0';
    }
    if (to < end) memset(to, 0, (size_t)(end - to)); /* it may be a part of a password */
    *(char **)given->setting = given->value;
    return 0;
}

/* set_secret - set a password from the environment or a file. Other users could see an option. */
static int set_secret(const struct given *given)
{
    *(char **)given->setting = given->value;
    return 0;
}

/* set_key - do nothing: args_add_key adds the key. */
static int set_key(const struct given *given)
{
    (void)given;
    return 0;
}

/* set_mode - do nothing: args_add_key adds the key and its mode. */
static int set_mode(const struct given *given)
{
    (void)given;
    return 0;
}

/* ---- options ---- */

enum {
    COMMANDS = ARGS_COMMANDS,
    REPORTS = ARGS_REPORTS,
    LISTS = REPORTS | ARGS_LS,
    LOCKS = ARGS_LOCKING | ARGS_CONFIG,
    KEYED = COMMANDS | REPORTS,
    STEPS = ARGS_ACQUIRE | ARGS_RENEW | ARGS_RELEASE,
    GUARDED = LOCKS | ARGS_BOOTSTRAP | ARGS_DOCTOR,
    EVERYWHERE = (ARGS_GLOBAL << (N_VERBS + 1)) - 1,
    VERBS = EVERYWHERE - ARGS_GLOBAL,
};

/* Help and parser use this table. A test compares it with the manual. */
#define SETTING(name) offsetof(struct settings, name)
static const struct entry entries[] = {
    {EVERYWHERE, 0, "config", "FILE", set_string, SETTING(config),
     "read this configuration file only; else QUORLOCK_CONFIG; else\n"
     "~/.config/quorlock/config and /etc/quorlock.conf"},
    {EVERYWHERE, 0, "set", "NAME", set_string, SETTING(set),
     "use section [set NAME] of these files; it overrides the rest of\n"
     "the files; else QUORLOCK_SET"},
    {EVERYWHERE, 0, "nodes", "URI,URI,...", set_nodes, SETTING(nodes),
     "the Redis servers: redis://[user[:password]@]host[:port][/db],\n"
     "rediss:// for TLS, valkey:// and valkeys:// in the same way,\n"
     "unix:///path or host:port; else\n"
     "QUORLOCK_NODES; else\n"
     "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381"},
    {EVERYWHERE, 0, "user", "NAME", set_string, SETTING(user),
     "user at servers whose address has neither user nor password;\n"
     "else QUORLOCK_USER"},
    {EVERYWHERE, 0, "password-file", "FILE", set_string, SETTING(password_file),
     "password at these servers: the first line of FILE, read before\n"
     "each login; else QUORLOCK_PASSWORD; else the file of\n"
     "QUORLOCK_PASSWORD_FILE"},
    {0, 0, "password", "PASSWORD", set_secret, SETTING(password), ""},
    {EVERYWHERE, 0, "tls-ca", "FILE|DIR", set_string, SETTING(tls_ca),
     "CA certificates for rediss:// nodes; else QUORLOCK_TLS_CA; else\n"
     "those of the system"},
    {EVERYWHERE, 0, "tls-cert", "FILE", set_string, SETTING(tls_cert),
     "our certificate, for nodes that ask for one; else\n"
     "QUORLOCK_TLS_CERT"},
    {EVERYWHERE, 0, "tls-key", "FILE", set_string, SETTING(tls_key),
     "its key, without a passphrase; else QUORLOCK_TLS_KEY; else in\n"
     "the file of --tls-cert"},
    {EVERYWHERE, 0, "tls-name", "NAME", set_string, SETTING(tls_name),
     "the name or address in the nodes' certificates; else\n"
     "QUORLOCK_TLS_NAME; else the host of each node's address"},
    {LOCKS | LISTS | ARGS_DOCTOR, 0, "policy", "majority|all", set_choice, SETTING(policy),
     "how many nodes make a quorum: more than half (default), or all"},
    {KEYED, 0, "key", "KEY", set_key, 0, "a key, also one that begins with -"},
    {ARGS_RUN, 0, "shared", "KEY", set_mode, SETTING(shared),
     "lock KEY shared: others may hold it shared at the same time,\n"
     "and nobody exclusively"},
    {ARGS_RUN, 0, "exclusive", "KEY", set_mode, 0,
     "lock KEY exclusively, as keys without an option; for use\n"
     "beside --shared"},
    {ARGS_RUN, 0, "permits", "K", set_permits, SETTING(permits),
     "KEY has K permits, 1 to 64, the same number for all clients;\n"
     "take one of them. CMD gets its number, the slot, in\n"
     "QUORLOCK_SLOT"},
    {ARGS_RUN, 0, "fair", NULL, set_flag, SETTING(fair),
     "clients that wait get the lock in the order in which they\n"
     "came; all should ask for it so. Not with --permits"},
    {ARGS_RUN, 0, "keep", "DURATION", set_keep, SETTING(keep_ms),
     "nobody else gets the lock earlier than that after its grant,\n"
     "also if CMD takes less time: a job that several machines start\n"
     "at the same minute runs once"},
    {LOCKS, 0, "lease", "DURATION", set_lease, SETTING(lease_ms),
     "lease of the lock, renewed after a third, but not by acquire and\n"
     "renew (default " LEASE_SHOWN ", or the max lease if that is shorter)"},
    {LOCKS, 0, "max-lease", "DURATION", set_max_lease, SETTING(max_lease_ms),
     "longest lease of any client of these nodes, the same value for\n"
     "all clients; else QUORLOCK_MAX_LEASE; else " LEASE_SHOWN},
    {ARGS_BOOTSTRAP, 0, "max-lease", "DURATION", set_max_lease, SETTING(max_lease_ms),
     "longest lease of any client of these nodes, the same value for\n"
     "all clients; else QUORLOCK_MAX_LEASE; else " LEASE_SHOWN ", or with\n"
     "--reconfigure the present one"},
    {ARGS_DOCTOR, 0, "max-lease", "DURATION", set_max_lease, SETTING(max_lease_ms),
     "longest lease of any client of these nodes; else\n"
     "QUORLOCK_MAX_LEASE; else that of the guards"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 0, "wait", "DURATION|0|forever", set_wait, SETTING(wait_ms),
     "longest wait for the lock; 0: try once (default forever)"},
    {ARGS_RUN, 0, "max-hold", "DURATION", set_max_hold, SETTING(max_hold_ms),
     "end renewal when CMD had the lock this long, at least a lease;\n"
     "CMD is ended at most one lease later (default: no limit)"},
    {ARGS_LEADER, 0, "wait", NULL, set_flag, SETTING(wait_leader), "wait until somebody leads"},
    {ARGS_LEADER, 0, "follow", NULL, set_flag, SETTING(follow), "go on, and print a line at each change"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 'n', NULL, NULL, set_wait, SETTING(wait_ms), "the same as --wait 0"},
    {ARGS_RUN | ARGS_ACQUIRE, 'E', NULL, "STATUS", set_status, SETTING(held_status),
     "exit status if somebody else holds the lock, 0 to 255\n"
     "(default 1)"},
    {VERBS, 0, "node-timeout", "DURATION", set_timeout, SETTING(node_timeout_ms),
     "later answers of a node are not counted (default a tenth of the\n"
     "lease, at least 50ms, at most 1s)"},
    {VERBS, 0, "connect-timeout", "DURATION", set_timeout, SETTING(connect_timeout_ms),
     "a node that connects later counts as down (default 3s)"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 0, "label", "TEXT", set_string, SETTING(label),
     "readable front of the owner token, at most 64 printable\n"
     "characters without space; a colon follows it (default\n"
     "HOST:PID:)"},
    {ARGS_ELECT, 0, "advertise", "TEXT", set_string, SETTING(advertise),
     "text for observers while the candidate leads, such as its\n"
     "address; at most 64 printable characters without space (default\n"
     "HOST:PID)"},
    {ARGS_ELECT, 0, "restart", NULL, set_flag, SETTING(restart),
     "when CMD ends by itself: resign, pause, and be a candidate again"},
    {COMMANDS, 0, "group", "auto|wait|end|leave", set_choice, SETTING(group),
     "what to do when CMD has ended, and other processes of its group\n"
     "run. wait: hold the lock until they have ended; end: the same,\n"
     "and send SIGTERM, and SIGKILL after 5s; leave: release the lock.\n"
     "auto (default): leave after an exit, end after a signal"},
    {COMMANDS, 0, "subreaper", NULL, set_flag, SETTING(subreaper),
     "adopt and reap processes of CMD whose parent has ended"},
    {LOCKS | LISTS | ARGS_DOCTOR, 0, "dialect", "plain|redisson", set_choice, SETTING(dialect),
     "how the lock is written (default plain)"},
    {COMMANDS | LISTS | ARGS_DOCTOR | ARGS_CONFIG, 0, "prefix", "TEXT", set_string, SETTING(prefix),
     "put TEXT in front of every KEY, such as app: for the keys of an\n"
     "application; else QUORLOCK_PREFIX"},
    {LOCKS, 0, "guard", "connection|strict|off", args_set_guard, SETTING(guard),
     "when to check the guard, which keeps a restarted node from\n"
     "voting too early (default connection)"},
    {GUARDED, 0, "set-name", "NAME", set_string, SETTING(set_name),
     "name of this set of nodes in their guards, needed if clients use\n"
     "different addresses (default: a hash of the addresses)"},
    {LOCKS | ARGS_DOCTOR, 0, "allow-eviction", "yes|no", set_switch, SETTING(allow_eviction),
     "use nodes that may evict keys, and only warn"},
    {ARGS_BOOTSTRAP, 0, "reconfigure", NULL, set_flag, SETTING(reconfigure),
     "replace existing guards, because the number of nodes, their\n"
     "names or the max lease change. No node votes for the longer of\n"
     "both max leases. Run it again if it was interrupted"},
    {ARGS_BOOTSTRAP, 0, "if-needed", NULL, set_flag, SETTING(if_needed), "exit with 0 if the guards are right already"},
    {ARGS_BOOTSTRAP, 0, "dry-run", NULL, set_flag, SETTING(dry_run),
     "with --reconfigure: print the connected clients and the guards\n"
     "that would be written, and write nothing"},
    {ARGS_BOOTSTRAP, 0, "yes", NULL, set_flag, SETTING(yes), "with --reconfigure: do not ask for confirmation"},
    {ARGS_RUN | STEPS | ARGS_BENCH | ARGS_CONFIG, 0, "fence", "yes|no", set_switch, SETTING(fence),
     "take a fencing token; run passes it to CMD in QUORLOCK_FENCE,\n"
     "acquire prints it; renew and release must have it if acquire had"},
    {STEPS, 0, "token-file", "FILE", set_string, SETTING(token_file),
     "acquire writes the owner token to FILE, which only this user can\n"
     "read, and prints it not; renew and release read its first line"},
    {COMMANDS, 0, "metrics-file", "FILE", set_string, SETTING(metrics_file),
     "write metrics to FILE every 5 seconds and at the end, for the\n"
     "textfile collector of Prometheus' node_exporter"},
    {ARGS_DOCTOR, 0, "acl", "USER", set_string, SETTING(acl),
     "ask no node: print the least rights that USER needs for keys that\n"
     "match the patterns KEY... (default: all), as a line for\n"
     "redis-cli; for locks of the given --dialect"},
    {ARGS_DOCTOR, 0, "no-notices", NULL, set_flag, SETTING(no_notices),
     "with --acl: without the rights for release notices, for clients\n"
     "that do not wait, or may poll"},
    {ARGS_DOCTOR, 0, "ls", NULL, set_flag, SETTING(with_ls), "with --acl: with the rights for ls, too"},
    {ARGS_BENCH | ARGS_CONFIG, 0, "in-flight", "N", set_in_flight, SETTING(in_flight),
     "how many locks run at a time, each with its own key, 1 to\n" SHOWN(BENCH_IN_FLIGHT_MAX) " (default " SHOWN(
         BENCH_IN_FLIGHT) ")"},
    {ARGS_BENCH | ARGS_CONFIG, 0, "seconds", "N", set_seconds, SETTING(seconds),
     "how long to measure, 1 to " SHOWN(BENCH_SECONDS_MAX) " (default " SHOWN(BENCH_SECONDS) ")"},
    {ARGS_WATCH, 0, "interval", "DURATION", set_interval, SETTING(interval_ms),
     "time between two polls of a key, 250ms to 1h (default 1s);\n"
     "several keys take turns, at most four a second"},
    {ARGS_WATCH, 0, "count", "N", set_count, SETTING(count), "end after N polls of every key"},
    {ARGS_WATCH, 0, "once", NULL, set_count, SETTING(count), "the same as --count 1"},
    {LISTS | ARGS_BOOTSTRAP | ARGS_DOCTOR | ARGS_BENCH | ARGS_CONFIG, 0, "json", NULL, set_flag, SETTING(json),
     "print the report as JSON"},
    {COMMANDS | ARGS_ACQUIRE | ARGS_INSPECT, 'q', "quiet", NULL, set_flag, SETTING(quiet),
     "do not report who holds the lock, neither while waiting nor at\n"
     "the end; inspect prints nothing, and exits with 0 if the lock is\n"
     "held, 1 if it is free"},
    {VERBS, 'v', "verbose", NULL, set_more, SETTING(verbose), "write more to stderr; given twice: everything"},
    {EVERYWHERE, 'h', "help", NULL, set_flag, SETTING(help), "print this help"},
    {ARGS_GLOBAL, 'V', "version", NULL, set_flag, SETTING(version), "print the version"},
};
enum { N_ENTRIES = sizeof(entries) / sizeof(entries[0]) };
_Static_assert(N_ENTRIES <= ARGS_OPTIONS_MAX, "raise ARGS_OPTIONS_MAX");

/* find_name - return the option of that long name, or NULL. */
static const struct entry *find_name(const char *name)
{
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (entries[i].name != NULL && strcmp(entries[i].name, name) == 0) return &entries[i];
    return NULL;
}

/* takes_argument - return the number for getopt_long. */
static int takes_argument(const struct entry *entry)
{
    return entry->set == set_switch ? optional_argument : entry->value != NULL ? required_argument : no_argument;
}

/* getopt_long returns the letter of an option, or for a long option LONG plus the index of its entry. */
enum { LONG = 256 };

void args_help(struct text *text, enum args_place place)
{
    static const size_t column = 31;

    for (size_t i = 0; i < N_ENTRIES; i++) {
        const struct entry *entry = &entries[i];
        size_t start = text->length;

        if ((entry->places & place) == 0) continue;
        text_format(text, "  ");
        if (entry->letter != 0) text_format(text, "-%c%s", entry->letter, entry->name != NULL ? ", " : "");
        if (entry->name != NULL) text_format(text, "--%s", entry->name);
        if (entry->value != NULL) text_format(text, entry->set == set_switch ? "[=%s]" : " %s", entry->value);
        for (const char *line = entry->help; *line != '\0'; line += *line == '\n') {
            size_t length = strcspn(line, "\n");

            if (text_columns(text, start) + 2 > column) {
                text_add(text, "\n", 1);
                start = text->length;
            }
            text_pad(text, start, column);
            text_format(text, "%.*s\n", (int)length, line);
            start = text->length;
            line += length;
        }
    }
}

/* is_another - return whether the entry is for another place, and another entry of the same name is offered here. */
static bool is_another(const struct entry *entry, enum args_place place)
{
    if ((entry->places & place) != 0 || entry->name == NULL) return false;
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if ((entries[i].places & place) == 0 && &entries[i] >= entry) continue;
        if (entries[i].name != NULL && strcmp(entries[i].name, entry->name) == 0) return true;
    }
    return false;
}

/* offer - list the options for getopt_long. Options of other places are among them, so that an error can say so. */
static void offer(enum args_place place, struct option *names, char *letters)
{
    /* '+' stops at the first operand; '-' returns each operand as the value of option 1, also under
       POSIXLY_CORRECT. With ':' a missing value differs from an unknown option. */
    *letters++ = place == ARGS_GLOBAL ? '+' : '-';
    *letters++ = ':';
    for (size_t i = 0; i < N_ENTRIES; i++) {
        const struct entry *entry = &entries[i];

        if (is_another(entry, place)) continue;
        if (entry->letter != 0) *letters++ = entry->letter;
        if (entry->letter != 0 && entry->value != NULL) *letters++ = ':';
        if (entry->name == NULL) continue;
        *names++ = (struct option){entry->name, takes_argument(entry), NULL, LONG + (int)i};
    }
    *letters = '\0';
    *names = (struct option){0};
}

/* args_find - return the entry for a result of getopt_long, or NULL. */
static const struct entry *args_find(int got)
{
    size_t i = got >= LONG ? (size_t)(got - LONG) : 0;

    while (got < LONG && i < N_ENTRIES && entries[i].letter != got) i++;
    return i < N_ENTRIES ? &entries[i] : NULL;
}

static void refuse_unknown(enum args_place place, const char *name)
{
    say("%s: no such option; --help lists them%s", name,
        (place & KEYED) != 0 ? "; for a key that begins with - write --key KEY" : "");
}

/* refuse_long - refuse an abbreviation of several options, or of none. */
static int refuse_long(enum args_place place, const char *word)
{
    size_t length = strcspn(word, "=");
    struct text candidates = {0};

    for (size_t i = 0; i < N_ENTRIES && length > 2; i++) {
        const char *name = entries[i].name;

        /* An option that differs by verb has several entries: name it once. */
        if (name == NULL || strncmp(name, word + 2, length - 2) != 0 || find_name(name) != &entries[i]) continue;
        text_format(&candidates, "%s--%s", candidates.length == 0 ? "" : " or ", name);
    }
    if (candidates.length > 0) {
        say("%.*s is ambiguous: write %.*s", (int)length, word, (int)candidates.length, candidates.bytes);
    } else {
        refuse_unknown(place, hide_shown(word));
    }
    text_clear(&candidates);
    return EXIT_USAGE;
}

/* args_take - set an option that getopt_long found, or refuse it. */
static int args_take(struct settings *settings, enum args_place place, const char *word, int got)
{
    int id = got == '?' || got == ':' ? optopt : got;
    const struct entry *entry = args_find(id);
    char name[32] = {'-', (char)id, '\0'};

    if (id == 0) return refuse_long(place, word);
    if (id >= LONG) snprintf(name, sizeof(name), "--%s", entry->name);
    if (entry == NULL) {
        refuse_unknown(place, name);
    } else if (entry->set == set_secret) {
        say("%s: a password cannot be an option, because other users see options: give --password-file FILE", name);
    } else if ((entry->places & place) == 0) {
        say("%s does not belong %s; --help lists the options", name,
            place == ARGS_GLOBAL ? "before the verb" : "to this verb");
    } else if (got == ':') {
        say("%s needs a value: %s %s", name, name, entry->value);
    } else if (got == '?') {
        say("%s takes no value: write it without \"=\"", name);
    } else {
        struct given given = {name, optarg, entry->value, (char *)settings + entry->setting};

        settings->asked[entry - entries] = optarg != NULL ? optarg : entry->set == set_wait ? "0" : "yes";
        return entry->set(&given);
    }
    return EXIT_USAGE;
}

/* args_check_keys - refuse an address among the keys, which lacks --nodes. The message must not show its password. */
static int args_check_keys(const char *const *words, size_t n_words)
{
    static const char *const schemes[] = {"redis://", "rediss://", "valkey://", "valkeys://", "unix://"};

    for (size_t i = 0; i < n_words; i++)
        for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
            if (strncmp(words[i], schemes[k], strlen(schemes[k])) != 0) continue;
            say("\"%s...\" is an address, not a key: write --nodes URI,URI,...", schemes[k]);
            return EXIT_USAGE;
        }
    return 0;
}

/*
 * args_add_key - if getopt_long found a key, move it to the front of the words
 *
 * If the key of --shared was forgotten, the option behind it must not become the key. So a key that begins with - is
 * written behind "=".
 */
static int args_add_key(struct settings *settings, char **words, int got)
{
    const struct entry *entry = got >= LONG ? &entries[got - LONG] : NULL;
    bool moded = entry != NULL && entry->set == set_mode;

    if (got != 1 && !moded && (entry == NULL || entry->set != set_key)) return 0;
    if (moded && optarg == words[optind - 1] && optarg[0] == '-') {
        say("--%s needs a key, and \"%s\" looks like an option: write --%s KEY, or --%s=%s if that is the key",
            entry->name, hide_shown(optarg), entry->name, entry->name, hide_shown(optarg));
        return EXIT_USAGE;
    }
    if (moded && entry->setting == SETTING(shared) && settings->n_words < 64)
        settings->shared |= UINT64_C(1) << settings->n_words;
    words[optind - 1] = words[++settings->n_words];
    words[settings->n_words] = optarg;
    return 0;
}

/* read_options - read the options of the words. words[end] must be NULL, because some versions of getopt_long look for
 * it. */
static int read_options(struct settings *settings, enum args_place place, char **words, int end)
{
    struct option names[N_ENTRIES + 1];
    char letters[2 * N_ENTRIES + 3];
    int got, status = 0;

    offer(place, names, letters);
    optind = 0; /* 0 instead of 1 makes glibc forget the previous words */
    opterr = 0;
    while (status == 0 && (got = getopt_long(end, words, letters, names, NULL)) != -1) {
        status = got == 1 ? 0 : args_take(settings, place, words[optind - 1], got);
        if (status == 0) status = args_add_key(settings, words, got);
    }
    return status;
}

int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next)
{
    char *behind;
    int status, end = 1;

    while (end < count && strcmp(words[end], "--") != 0) end++;
    settings->words = (const char *const *)words + 1;
    settings->n_words = 0;
    behind = words[end];
    words[end] = NULL;
    status = read_options(settings, place, words, end);
    words[end] = behind;
    if (status != 0) return status;
    *ret_next = optind;
    if ((place & COMMANDS) != 0 && end < count) settings->command = words + end + 1;
    /* Verbs without a command have more keys behind "--". */
    while ((place & COMMANDS) == 0 && place != ARGS_GLOBAL && ++end < count) {
        char *other = words[++settings->n_words];

        words[settings->n_words] = words[end];
        words[end] = other;
    }
    return args_check_keys(settings->words, settings->n_words);
}

const char *args_asked(const struct settings *settings, const char *name)
{
    const struct entry *entry = find_name(name);

    /* Another entry of the same setting, such as -n for --wait, counts too. */
    for (size_t i = 0; i < N_ENTRIES; i++)
        if (entries[i].setting == entry->setting && settings->asked[i] != NULL) return settings->asked[i];
    return NULL;
}

bool args_knows(const char *name)
{
    return find_name(name) != NULL;
}

bool args_takes(enum args_place place, const char *name)
{
    const struct entry *first = find_name(name);
    unsigned places = 0;

    /* Entries of one name count only if they have the same setter: the --wait of leader is another option. */
    for (const struct entry *entry = first; entry < entries + N_ENTRIES; entry++)
        if (entry->set == first->set && entry->name != NULL && strcmp(entry->name, name) == 0) places |= entry->places;
    return (places & place) != 0 || first->set == set_secret;
}

int args_set(struct settings *settings, const char *name, const char *origin, char *value)
{
    const struct entry *entry = find_name(name);
    struct given given = {origin, value, entry->value, (char *)settings + entry->setting};

    return entry->set(&given);
}
