/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <quorlock/quorlock.h>

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "owner.h"
#include "say.h"
#include "settings/hide.h"

struct entry {
    unsigned places;
    char letter;       /* 0: none */
    const char *name;  /* NULL: none */
    const char *value; /* its value in the help; NULL: it takes none */
    int (*set)(
        const struct given *); /* 0, or QUORLOCK_ERR_INVAL with the error; NULL: values_set sets the key `name` */
    size_t setting;            /* offset in struct settings */
    const char *help;
};

/* ---- values ---- */

/* WITHIN - define a setter that calls `set` with these bounds. */
#define WITHIN(name, set, ...)                                                                                         \
    static int name(const struct given *given)                                                                         \
    {                                                                                                                  \
        return set(given, __VA_ARGS__);                                                                                \
    }

WITHIN(set_max_hold, given_duration, LEASE_MS_MIN, HOLD_MS_MAX)
WITHIN(set_keep, given_duration, 1, QUORLOCK_LEASE_MS_MAX)
WITHIN(set_interval, given_duration, WATCH_INTERVAL_MS_MIN, 3600000)
WITHIN(set_status, given_number, 0, 255, "exit status")
WITHIN(set_permits, given_number, 1, QUORLOCK_PERMITS_MAX, "number of permits")

/* set_count - set a count; --once, which has no value, is 1. */
static int set_count(const struct given *given)
{
    if (given->value != NULL) return given_number(given, 1, WATCH_COUNT_MAX, "number of rounds");
    *(uint32_t *)given->setting = 1;
    return 0;
}

static int set_flag(const struct given *given)
{
    *(bool *)given->setting = true;
    return 0;
}

/* set_now - set the wait of -n. */
static int set_now(const struct given *given)
{
    *(uint32_t *)given->setting = QUORLOCK_TRY_ONCE;
    return 0;
}

static int set_more(const struct given *given)
{
    ++*(int *)given->setting;
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
};

/* Help and parser use this table. A test compares it with the manual. */
#define SETTING(name) offsetof(struct settings, name)
static const struct entry entries[] = {
    {EVERYWHERE, 0, "config", "FILE", given_string, SETTING(config),
     "read this configuration file only; else QUORLOCK_CONFIG; else\n"
     "~/.config/quorlock/config and /etc/quorlock.conf"},
    {EVERYWHERE, 0, "set", "NAME", NULL, 0,
     "use section [set NAME] of these files; it overrides the rest of\n"
     "the files; else QUORLOCK_SET"},
    {EVERYWHERE, 0, "nodes", "URI,URI,...", NULL, 0,
     "the Redis servers: redis://[user[:password]@]host[:port][/db],\n"
     "rediss:// for TLS, valkey:// and valkeys:// in the same way,\n"
     "unix:///path or host:port; else\n"
     "QUORLOCK_NODES; else\n"
     "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381"},
    {EVERYWHERE, 0, "user", "NAME", NULL, 0,
     "user at servers whose address has neither user nor password;\n"
     "else QUORLOCK_USER"},
    {EVERYWHERE, 0, "password-file", "FILE", NULL, 0,
     "password at these servers: the first line of FILE, read before\n"
     "each login; else QUORLOCK_PASSWORD; else the file of\n"
     "QUORLOCK_PASSWORD_FILE"},
    {0, 0, "password", "PASSWORD", NULL, 0, ""},
    {EVERYWHERE, 0, "tls-ca", "FILE|DIR", NULL, 0,
     "CA certificates for rediss:// nodes; else QUORLOCK_TLS_CA; else\n"
     "those of the system"},
    {EVERYWHERE, 0, "tls-cert", "FILE", NULL, 0,
     "our certificate, for nodes that ask for one; else\n"
     "QUORLOCK_TLS_CERT"},
    {EVERYWHERE, 0, "tls-key", "FILE", NULL, 0,
     "its key, without a passphrase; else QUORLOCK_TLS_KEY; else in\n"
     "the file of --tls-cert"},
    {EVERYWHERE, 0, "tls-name", "NAME", NULL, 0,
     "the name or address in the nodes' certificates; else\n"
     "QUORLOCK_TLS_NAME; else the host of each node's address"},
    {LOCKS | LISTS | ARGS_DOCTOR, 0, "policy", "majority|all", NULL, 0,
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
     "came; all should ask for it so"},
    {ARGS_RUN, 0, "keep", "DURATION", set_keep, SETTING(keep_ms),
     "nobody else gets the lock earlier than that after its grant,\n"
     "also if CMD takes less time: a job that several machines start\n"
     "at the same minute runs once"},
    {LOCKS, 0, "lease", "DURATION", NULL, 0,
     "lease of the lock, renewed after a third, but not by acquire and\n"
     "renew (default " LEASE_SHOWN ", or the max lease if that is shorter)"},
    {LOCKS, 0, "max-lease", "DURATION", NULL, 0,
     "longest lease of any client of these nodes, the same value for\n"
     "all clients; else QUORLOCK_MAX_LEASE; else " LEASE_SHOWN},
    {ARGS_BOOTSTRAP, 0, "max-lease", "DURATION", NULL, 0,
     "longest lease of any client of these nodes, the same value for\n"
     "all clients; else QUORLOCK_MAX_LEASE; else " LEASE_SHOWN ", or with\n"
     "--reconfigure the present one"},
    {ARGS_DOCTOR, 0, "max-lease", "DURATION", NULL, 0,
     "longest lease of any client of these nodes; else\n"
     "QUORLOCK_MAX_LEASE; else that of the guards"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 0, "wait", "DURATION|0|forever", NULL, 0,
     "longest wait for the lock; 0: try once (default forever)"},
    {ARGS_RUN, 0, "max-hold", "DURATION", set_max_hold, SETTING(max_hold_ms),
     "end renewal when CMD had the lock this long, at least a lease;\n"
     "CMD is ended at most one lease later (default: no limit)"},
    {ARGS_LEADER, 0, "wait", NULL, set_flag, SETTING(wait_leader), "wait until somebody leads"},
    {ARGS_LEADER, 0, "follow", NULL, set_flag, SETTING(follow), "go on, and print a line at each change"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 'n', NULL, NULL, set_now, SETTING(values.wait_ms), "the same as --wait 0"},
    {ARGS_RUN | ARGS_ACQUIRE, 'E', NULL, "STATUS", set_status, SETTING(held_status),
     "exit status if somebody else holds the lock, 0 to 255\n"
     "(default 1)"},
    {EVERYWHERE, 0, "node-timeout", "DURATION", NULL, 0,
     "later answers of a node are not counted (default a tenth of the\n"
     "lease, at least 50ms, at most 1s)"},
    {EVERYWHERE, 0, "connect-timeout", "DURATION", NULL, 0, "a node that connects later counts as down (default 3s)"},
    {ARGS_RUN | ARGS_ACQUIRE | ARGS_CONFIG, 0, "label", "TEXT", NULL, 0,
     "readable front of the owner token, at most 64 printable\n"
     "characters without space; a colon follows it (default\n"
     "HOST:PID:)"},
    {ARGS_ELECT, 0, "advertise", "TEXT", given_string, SETTING(advertise),
     "text for observers while the candidate leads, such as its\n"
     "address; at most 64 printable characters without space (default\n"
     "HOST:PID)"},
    {ARGS_ELECT, 0, "restart", NULL, set_flag, SETTING(restart),
     "when CMD ends by itself: resign, pause, and be a candidate again"},
    {COMMANDS, 0, "group", "auto|wait|end|leave", given_choice, SETTING(group),
     "what to do when CMD has ended, and other processes of its group\n"
     "run. wait: hold the lock until they have ended; end: the same,\n"
     "and send SIGTERM, and SIGKILL after 5s; leave: release the lock.\n"
     "auto (default): leave after an exit, end after a signal"},
    {COMMANDS, 0, "subreaper", NULL, set_flag, SETTING(subreaper),
     "adopt and reap processes of CMD whose parent has ended"},
    {COMMANDS, 0, "contain", "no|pid|cgroup", given_choice, SETTING(contain),
     "end processes that left the group of CMD, too, by a PID\n"
     "namespace, or a cgroup (default no); --group auto means end then"},
    {LOCKS | LISTS | ARGS_DOCTOR, 0, "dialect", "plain|redisson", NULL, 0, "how the lock is written (default plain)"},
    {COMMANDS | LISTS | ARGS_DOCTOR | ARGS_CONFIG, 0, "prefix", "TEXT", NULL, 0,
     "put TEXT in front of every KEY, such as app: for the keys of an\n"
     "application; else QUORLOCK_PREFIX"},
    {LOCKS, 0, "guard", "connection|strict|off", NULL, 0,
     "when to check the guard, which keeps a restarted node from\n"
     "voting too early (default connection)"},
    {GUARDED, 0, "set-name", "NAME", NULL, 0,
     "name of this set of nodes in their guards, needed if clients use\n"
     "different addresses (default: a hash of the addresses)"},
    {LOCKS | ARGS_DOCTOR, 0, "allow-eviction", "yes|no", NULL, 0, "use nodes that may evict keys, and only warn"},
    {ARGS_BOOTSTRAP, 0, "reconfigure", NULL, set_flag, SETTING(reconfigure),
     "replace existing guards, because the number of nodes, their\n"
     "names or the max lease change. No node votes for the longer of\n"
     "both max leases. Run it again if it was interrupted"},
    {ARGS_BOOTSTRAP, 0, "if-needed", NULL, set_flag, SETTING(if_needed), "exit with 0 if the guards are right already"},
    {ARGS_BOOTSTRAP, 0, "dry-run", NULL, set_flag, SETTING(dry_run),
     "with --reconfigure: print the connected clients and the guards\n"
     "that would be written, and write nothing"},
    {ARGS_BOOTSTRAP, 0, "yes", NULL, set_flag, SETTING(yes),
     "do not ask for confirmation with --reconfigure; without it,\n"
     "declare that no lock is held although clients are connected"},
    {ARGS_RUN | STEPS | ARGS_BENCH | ARGS_CONFIG, 0, "fence", "yes|no", NULL, 0,
     "take a fencing token; run passes it to CMD in QUORLOCK_FENCE,\n"
     "acquire prints it; renew and release must have it if acquire had"},
    {STEPS, 0, "token-file", "FILE", given_string, SETTING(token_file),
     "acquire writes the owner token to FILE, which only this user can\n"
     "read, and prints it not; renew and release read its first line"},
    {ARGS_BREAK, 0, "owner", "TOKEN", given_string, SETTING(owner),
     "break only what this owner holds, whose whole token inspect shows"},
    {COMMANDS, 0, "metrics-file", "FILE", given_string, SETTING(metrics_file),
     "write metrics to FILE every 5 seconds and at the end, for the\n"
     "textfile collector of Prometheus' node_exporter"},
    {ARGS_DOCTOR, 0, "acl", "USER", given_string, SETTING(acl),
     "ask no node: print the least rights that USER needs for keys that\n"
     "match the patterns KEY... (default: all), as a line for\n"
     "redis-cli; for locks of the given --dialect"},
    {ARGS_DOCTOR, 0, "no-notices", NULL, set_flag, SETTING(no_notices),
     "with --acl: without the rights for release notices, for clients\n"
     "that do not wait, or may poll"},
    {ARGS_DOCTOR, 0, "ls", NULL, set_flag, SETTING(with_ls), "with --acl: with the rights for ls, too"},
    {ARGS_BENCH | ARGS_CONFIG, 0, "in-flight", "N", NULL, 0,
     "how many locks run at a time, each with its own key, 1 to\n" SHOWN(BENCH_IN_FLIGHT_MAX) " (default " SHOWN(
         BENCH_IN_FLIGHT) ")"},
    {ARGS_BENCH | ARGS_CONFIG, 0, "seconds", "N", NULL, 0,
     "how long to measure, 1 to " SHOWN(BENCH_SECONDS_MAX) " (default " SHOWN(BENCH_SECONDS) ")"},
    {ARGS_LS, 0, "all", NULL, set_flag, SETTING(all),
     "list other strings that expire, too: locks of other programs,\n"
     "perhaps; at most " SHOWN(QUORLOCK_LIST_OTHERS_MAX)},
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
    {EVERYWHERE, 'v', "verbose", NULL, set_more, SETTING(verbose), "write more to stderr; given twice: everything"},
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

/* is_switch - return whether its value may be left out: yes. */
static bool is_switch(const struct entry *entry)
{
    return entry->value != NULL && strcmp(entry->value, "yes|no") == 0;
}

/* takes_argument - return the number for getopt_long. */
static int takes_argument(const struct entry *entry)
{
    return is_switch(entry) ? optional_argument : entry->value != NULL ? required_argument : no_argument;
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
        if (entry->value != NULL) text_format(text, is_switch(entry) ? "[=%s]" : " %s", entry->value);
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

/* offer - list the options for getopt_long. Options of other verbs are among them, so that an error can say so. */
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

/* is_read_later - return whether to pass over the option: those before the verb are read with those behind it. */
static bool is_read_later(const struct entry *entry, enum args_place place)
{
    return place == ARGS_GLOBAL && ((entry->places & place) == 0 || entry->set != set_flag);
}

/* args_take - set an option that getopt_long found, or refuse it. */
static int args_take(struct settings *settings, enum args_place place, const char *word, int got)
{
    int id = got == '?' || got == ':' ? optopt : got;
    const struct entry *entry = args_find(id);
    char name[32] = {'-', (char)id, '\0'};
    static char yes[] = "yes";

    if (id == 0) return refuse_long(place, word);
    if (id >= LONG) snprintf(name, sizeof(name), "--%s", entry->name);
    if (entry == NULL) {
        refuse_unknown(place, name);
    } else if (entry->places == 0) {
        say("%s: a password cannot be an option, because other users see options: give --password-file FILE", name);
    } else if (place != ARGS_GLOBAL && (entry->places & place) == 0) {
        say("%s does not belong to this verb; --help lists the options", name);
    } else if (got == ':') {
        say("%s needs a value: %s %s", name, name, entry->value);
    } else if (got == '?') {
        say("%s takes no value: write it without \"=\"", name);
    } else if (is_read_later(entry, place)) {
        return 0;
    } else {
        struct text error = {0};
        char *value = optarg != NULL ? optarg : is_switch(entry) ? yes : NULL;
        const struct given given = {name, value, entry->value, (char *)settings + entry->setting, &error};
        int status =
            entry->set != NULL ? entry->set(&given) : values_set(&settings->values, entry->name, name, value, &error);

        settings->asked[entry - entries] = optarg != NULL ? optarg : entry->set == set_now ? "0" : yes;
        if (status == 0) return 0;
        say_text(LOG_ERR, &error);
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
        if (status == 0 && place != ARGS_GLOBAL) status = args_add_key(settings, words, got);
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

const char *args_asked(const struct settings *settings, const char *key)
{
    for (size_t i = 0; i < N_ENTRIES; i++) {
        const char *own = entries[i].set == set_now ? "wait" : entries[i].set == NULL ? entries[i].name : NULL;

        if (settings->asked[i] != NULL && own != NULL && strcmp(own, key) == 0) return settings->asked[i];
    }
    return NULL;
}

/* ---- other sources ---- */

/* What the command line gives. */
struct given_words {
    const struct settings *settings;
    enum args_place place;
};

static const char *args_given(const void *arg, const char *key)
{
    const struct given_words *words = arg;

    return args_asked(words->settings, key);
}

/* args_takes - return whether the verb has the option of that key. The key "password", which is no option, counts. */
static bool args_takes(const void *arg, const char *key)
{
    const struct given_words *words = arg;

    /* The --wait of leader, which has a function of its own, is another option. */
    for (size_t i = 0; i < N_ENTRIES; i++) {
        const struct entry *entry = &entries[i];

        if (entry->set == NULL && strcmp(entry->name, key) == 0 && (entry->places & words->place) != 0) return true;
    }
    return strcmp(key, "password") == 0;
}

int args_settle(struct settings *settings, enum args_place place)
{
    const struct given_words words = {settings, place};
    const struct sources_caller caller = {settings->config, "--", args_given, args_takes, &words};
    struct sources *sources = settings->sources;
    int status = sources_settle(sources, &settings->values, &caller);

    for (size_t i = 0; i < sources->n_files; i++) {
        struct text warning = {0};

        sources_warn(sources, i, &warning);
        if (warning.length > 0) say_text(LOG_WARNING, &warning);
    }
    if (status == 0) return 0;
    say_text(LOG_ERR, &sources->error);
    return status == QUORLOCK_ERR_NOMEM ? EXIT_SYSTEM : EXIT_USAGE;
}

/* ---- words out of sight ---- */

/* Hide an owner token of renew, release or break, because whoever has it can release the lock. Its label stays. */
static void hide_token(char *word)
{
    const char *digits = owner_digits(word);

    if (digits != NULL) memset(word + (digits - word), '*', strlen(digits));
}

void args_hide(char **words, int count)
{
    bool takes_token = false;

    for (int i = 1; i < count && strcmp(words[i], "--") != 0; i++) {
        takes_token |=
            strcmp(words[i], "renew") == 0 || strcmp(words[i], "release") == 0 || strcmp(words[i], "break") == 0;
    }
    for (int i = 1; i < count && takes_token; i++) hide_token(words[i]);
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strstr(words[i], "://") != NULL || (words[i][0] == '-' && strchr(words[i], '@') != NULL) ||
            (i > 0 && strcmp(words[i - 1], "--nodes") == 0))
            hide_addresses(words[i]);
}
