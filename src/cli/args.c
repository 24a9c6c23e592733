/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <quorlock/quorlock.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum option_id {
    OPTION_NODES = 256, /* above every letter */
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_VERBOSE,
    OPTION_JSON,
    OPTION_POLICY,
    OPTION_NODE_TIMEOUT,
    OPTION_DIALECT,
    OPTION_GUARD,
    OPTION_LEASE,
    OPTION_MAX_LEASE,
    OPTION_WAIT,
    OPTION_NOW,
    OPTION_HELD_STATUS,
    OPTION_LABEL,
    OPTION_FENCE,
    OPTION_SET_NAME,
    OPTION_RECONFIGURE,
    OPTION_ALLOW_EVICTION,
};

struct entry {
    enum option_id id;
    unsigned places;
    char letter;       /* 0: none */
    const char *name;  /* NULL: none */
    const char *value; /* what it takes, for the help; NULL: nothing */
    const char *help;
};

enum {
    REPORTS = ARGS_INSPECT | ARGS_BREAK,
    GUARDED = ARGS_RUN | ARGS_BOOTSTRAP | ARGS_DOCTOR,
    VERBS = ARGS_RUN | REPORTS | ARGS_BOOTSTRAP | ARGS_DOCTOR,
    EVERYWHERE = ARGS_GLOBAL | VERBS,
};

/* Help and parser read this one table; a test compares the manual with it. */
static const struct entry entries[] = {
    {OPTION_NODES, EVERYWHERE, 0, "nodes", "URI,URI,...",
     "the Redis servers: redis://[user[:password]@]host[:port][/db],\n"
     "unix:///path or host:port; else QUORLOCK_NODES; else\n"
     "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381"},
    {OPTION_POLICY, ARGS_RUN | REPORTS | ARGS_DOCTOR, 0, "policy", "majority|all",
     "how many nodes make a quorum: more than half (default), or all"},
    {OPTION_LEASE, ARGS_RUN, 0, "lease", "DURATION", "lease of the lock, renewed at every third (default 30s)"},
    {OPTION_MAX_LEASE, GUARDED, 0, "max-lease", "DURATION",
     "longest lease that any client of these nodes uses, the same for\n"
     "all of them; else QUORLOCK_MAX_LEASE; else 30s, or with\n"
     "--reconfigure the present one"},
    {OPTION_WAIT, ARGS_RUN, 0, "wait", "DURATION|0|forever",
     "how long to wait for the lock; 0: try once (default forever)"},
    {OPTION_NOW, ARGS_RUN, 'n', NULL, NULL, "the same as --wait 0"},
    {OPTION_HELD_STATUS, ARGS_RUN, 'E', NULL, "STATUS",
     "exit status when somebody else holds the lock, 0 to 255\n"
     "(default 1)"},
    {OPTION_NODE_TIMEOUT, VERBS, 0, "node-timeout", "DURATION",
     "a node that has not answered by then has no vote (default a\n"
     "tenth of the lease, at least 50ms, at most 1s)"},
    {OPTION_LABEL, ARGS_RUN, 0, "label", "TEXT",
     "readable front of our owner token, at most 64 printable\n"
     "characters without space (default HOST:PID:)"},
    {OPTION_DIALECT, ARGS_RUN | REPORTS, 0, "dialect", "plain|redisson",
     "how the lock is written (default plain)"},
    {OPTION_GUARD, ARGS_RUN, 0, "guard", "connection|strict|off",
     "how a node that lost its memory is kept from voting too\n"
     "early (default connection)"},
    {OPTION_SET_NAME, GUARDED, 0, "set-name", "NAME",
     "name of this set of nodes in their guards, where clients\n"
     "address the nodes differently (default: from the addresses)"},
    {OPTION_ALLOW_EVICTION, ARGS_RUN | ARGS_DOCTOR, 0, "allow-eviction", NULL,
     "only warn of nodes that may evict keys"},
    {OPTION_RECONFIGURE, ARGS_BOOTSTRAP, 0, "reconfigure", NULL,
     "the nodes have a guard, and their number, names or max lease\n"
     "changes; no node votes for the longer of both leases. Given\n"
     "again it finishes what was half done"},
    {OPTION_FENCE, ARGS_RUN, 0, "fence", NULL, "take a fencing token, and pass it to CMD in QUORLOCK_FENCE"},
    {OPTION_JSON, REPORTS | ARGS_BOOTSTRAP | ARGS_DOCTOR, 0, "json", NULL, "print the report as JSON"},
    {OPTION_VERBOSE, VERBS, 'v', "verbose", NULL, "write more to stderr; twice: everything"},
    {OPTION_HELP, EVERYWHERE, 'h', "help", NULL, "print this help"},
    {OPTION_VERSION, ARGS_GLOBAL, 'V', "version", NULL, "print the version"},
};
enum { N_ENTRIES = sizeof(entries) / sizeof(entries[0]) };

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
        if (entry->value != NULL) text_format(text, " %s", entry->value);
        for (const char *line = entry->help; *line != '\0'; line += *line == '\n') {
            size_t length = strcspn(line, "\n");

            if (text_columns(text, start) + 2 > column) {
                text_add(text, "\n", 1);
                start = text->length;
            }
            text_pad(text, start, column);
            text_add(text, line, length);
            text_add(text, "\n", 1);
            start = text->length;
            line += length;
        }
    }
}

/* ---- passwords out of sight ---- */

void args_hide(char *text)
{
    for (char *at = strchr(text, '@'); at != NULL; at = strchr(at, '@')) {
        /* Back to the scheme, across commas: a password that holds one must not show its front. */
        size_t option = text[0] == '-' ? strcspn(text, "=@") : 0;
        char *start = text + (text[option] == '=' ? option + 1 : 0);
        char *scheme = strstr(text, "://");
        size_t mask, freed, rest = strlen(at) + 1; /* with the NUL */

        for (; scheme != NULL && scheme < at; scheme = strstr(scheme + 3, "://")) start = scheme + 3;
        mask = (size_t)(at - start) < 3 ? (size_t)(at - start) : 3;
        freed = (size_t)(at - start) - mask;
        memset(start, '*', mask);
        memmove(start + mask, at, rest);
        memset(start + mask + rest, 0, freed);
        at = start + mask + 1;
    }
}

static bool may_hold_uri(const char *word, const char *before)
{
    return strstr(word, "://") != NULL || (word[0] == '-' && strchr(word, '@') != NULL) ||
           strcmp(before, "--nodes") == 0;
}

void args_hide_all(char **words, int count)
{
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (may_hold_uri(words[i], i > 0 ? words[i - 1] : "")) args_hide(words[i]);
}

/* scheme_length - of "word://" at the beginning of `text`; 0: there is none. */
static size_t scheme_length(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n > 0 && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

/*
 * shown - the word as an error may show it, in a buffer that lives until the next call
 *
 * A word that may be an address is cut behind its scheme: a wrong one may have a password anywhere.
 */
static const char *shown(const char *word)
{
    static char buffer[256];
    size_t n_name = strcspn(word, "=:@");
    size_t length = word[0] == '-' && word[n_name] == '=' ? n_name + 1 : 0;
    const char *more = "";

    if (strstr(word, "://") != NULL || strchr(word, '@') != NULL) {
        length += scheme_length(word + length);
        more = "...";
    } else {
        length = strlen(word);
    }
    if (length > sizeof(buffer) - 4) length = sizeof(buffer) - 4;
    memcpy(buffer, word, length);
    memcpy(buffer + length, more, strlen(more) + 1);
    return buffer;
}

/* ---- values ---- */

const char *args_duration(const char *text, uint32_t *ret_ms)
{
    static const char *const wrong =
        "is no duration: write a whole number and a unit, such as 250ms, 30s or 2m";
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t number = 0;
    const char *p = text;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (number > UINT32_MAX) return "is too long";
        number = number * 10 + (uint64_t)(*p - '0');
    }
    if (p == text) return wrong;
    if (*p == '\0') return "has no unit: write 250ms, 30s or 2m";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(p, units[i].name) != 0) continue;
        if (number > (UINT32_MAX - 1) / units[i].ms) return "is too long";
        *ret_ms = (uint32_t)(number * units[i].ms);
        return NULL;
    }
    return wrong;
}

/* set_duration - a duration for `name`, at least min_ms and at most max_ms. */
static int set_duration(const char *name, const char *value, uint32_t min_ms, uint32_t max_ms, uint32_t *ret_ms)
{
    uint32_t ms = 0;
    const char *wrong = args_duration(value, &ms);

    if (wrong != NULL) {
        say("%s: \"%s\" %s", name, shown(value), wrong);
        return EXIT_USAGE;
    }
    if (ms < min_ms || ms > max_ms) {
        say("%s: \"%s\" is out of range: give %ums to %us", name, shown(value), min_ms, max_ms / 1000);
        return EXIT_USAGE;
    }
    *ret_ms = ms;
    return 0;
}

static int set_lease(const char *name, const char *value, uint32_t *ret_ms)
{
    return set_duration(name, value, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX, ret_ms);
}

static int set_wait(const char *name, const char *value, uint32_t *ret_ms)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "forever") != 0)
        return set_duration(name, value, 0, UINT32_MAX - 1, ret_ms);
    *ret_ms = value[0] == '0' ? 0 : QUORLOCK_WAIT_FOREVER;
    return 0;
}

static int set_status(const char *name, const char *value, int *ret_status)
{
    size_t length = strlen(value);
    long number =
        strspn(value, "0123456789") == length && length >= 1 && length <= 3 ? strtol(value, NULL, 10) : -1;

    if (number < 0 || number > 255) {
        say("%s: \"%s\" is no exit status: give a number from 0 to 255", name, shown(value));
        return EXIT_USAGE;
    }
    *ret_status = (int)number;
    return 0;
}

struct choice {
    const char *name;
    int value;
};

/* set_choice - one of the choices, of which the last has no name. */
static int set_choice(const char *name, const char *value, const struct choice *choices, int *ret)
{
    struct text all = {0};

    for (const struct choice *c = choices; c->name != NULL; c++) {
        text_format(&all, "%s%s", c == choices ? "" : c[1].name != NULL ? ", " : " or ", c->name);
        if (strcmp(c->name, value) != 0) continue;
        *ret = c->value;
        text_clear(&all);
        return 0;
    }
    say("%s: \"%s\" is unknown: give %.*s", name, shown(value), (int)all.length,
        all.length > 0 ? all.bytes : "");
    text_clear(&all);
    return EXIT_USAGE;
}

/* wrong_address - what the library cannot say so well, for it sees one address at a time; NULL: nothing. */
static const char *wrong_address(const char *address, size_t length)
{
    size_t scheme = scheme_length(address);

    if (length == 0) return "is empty: write URI,URI,... such as 127.0.0.1:6379,127.0.0.1:6380";
    if (memchr(address, ' ', length) != NULL)
        return "has a blank: write URI,URI,... without any, %20 where one belongs";
    if (scheme == 0 && memchr(address, '@', length) != NULL)
        return "has an @ and does not begin with redis:// or unix://: write a comma in a user name or a "
               "password as %2C";
    if (scheme > 0 && address[0] == 'r' && memmem(address + scheme, length - scheme, "://", 3) != NULL)
        return "has :// twice: write commas between addresses";
    return NULL;
}

static int set_nodes(const char *name, const char *value, const char **ret_nodes)
{
    size_t n = 1, number = 1;

    for (const char *p = value; *p != '\0'; p++) n += *p == ',';
    for (const char *address = value; number <= n; number++) {
        size_t length = strcspn(address, ",");
        const char *wrong = wrong_address(address, length);

        if (wrong != NULL) {
            say("%s: address %zu of %zu %s", name, number, n, wrong);
            return EXIT_USAGE;
        }
        address += length + 1;
    }
    *ret_nodes = value;
    return 0;
}

static int set_value(struct settings *settings, enum option_id id, const char *name, const char *value)
{
    static const struct choice policies[] = {{"majority", QUORLOCK_MAJORITY}, {"all", QUORLOCK_ALL}, {NULL, 0}};
    static const struct choice dialects[] = {
        {"plain", QUORLOCK_DIALECT_PLAIN}, {"redisson", QUORLOCK_DIALECT_REDISSON}, {NULL, 0}};
    static const struct choice guards[] = {{"connection", QUORLOCK_GUARD_CONNECTION},
                                           {"strict", QUORLOCK_GUARD_STRICT},
                                           {"off", QUORLOCK_GUARD_OFF},
                                           {NULL, 0}};

    switch (id) {
    case OPTION_NODES: return set_nodes(name, value, &settings->nodes);
    case OPTION_POLICY: return set_choice(name, value, policies, &settings->policy);
    case OPTION_DIALECT: return set_choice(name, value, dialects, &settings->dialect);
    case OPTION_GUARD: return set_choice(name, value, guards, &settings->guard);
    case OPTION_LEASE: return set_lease(name, value, &settings->lease_ms);
    case OPTION_MAX_LEASE: return set_lease(name, value, &settings->max_lease_ms);
    case OPTION_NODE_TIMEOUT:
        return set_duration(name, value, 1, QUORLOCK_LEASE_MS_MAX, &settings->node_timeout_ms);
    case OPTION_WAIT: return set_wait(name, value, &settings->wait_ms);
    case OPTION_HELD_STATUS: return set_status(name, value, &settings->held_status);
    case OPTION_SET_NAME: settings->set_name = value; return 0;
    default: settings->label = value; return 0; /* OPTION_LABEL: the library knows what a label may hold */
    }
}

static void set_flag(struct settings *settings, enum option_id id)
{
    switch (id) {
    case OPTION_HELP: settings->help = true; break;
    case OPTION_VERSION: settings->version = true; break;
    case OPTION_JSON: settings->json = true; break;
    case OPTION_FENCE: settings->fence = true; break;
    case OPTION_RECONFIGURE: settings->reconfigure = true; break;
    case OPTION_ALLOW_EVICTION: settings->allow_eviction = true; break;
    case OPTION_NOW: settings->wait_ms = 0; break;
    default: settings->verbose++; break;
    }
}

/* ---- words ---- */

/* offer - the options as getopt_long takes them: also those of other places, to say that they do not belong
 * here. */
static void offer(enum args_place place, struct option *names, char *letters)
{
    /* '+' stops at the first operand; '-' returns each operand as the value of option 1, also under
       POSIXLY_CORRECT.
       With ':' a missing value differs from an unknown option. */
    *letters++ = place == ARGS_GLOBAL ? '+' : '-';
    *letters++ = ':';
    for (size_t i = 0; i < N_ENTRIES; i++) {
        const struct entry *entry = &entries[i];

        if (entry->letter != 0) *letters++ = entry->letter;
        if (entry->letter != 0 && entry->value != NULL) *letters++ = ':';
        if (entry->name == NULL) continue;
        *names++ = (struct option){entry->name, entry->value != NULL, NULL, (int)entry->id};
    }
    *letters = '\0';
    *names = (struct option){0};
}

/* find - by what getopt_long makes of an option: the letter that was given, or the id. */
static const struct entry *find(int got)
{
    for (size_t i = 0; i < N_ENTRIES; i++)
        if ((int)entries[i].id == got || (entries[i].letter != 0 && entries[i].letter == got))
            return &entries[i];
    return NULL;
}

/* refuse_long - an abbreviation of several options, or of none. */
static int refuse_long(const char *word)
{
    size_t length = strcspn(word, "=");
    struct text candidates = {0};

    for (size_t i = 0; i < N_ENTRIES && length > 2; i++) {
        const char *name = entries[i].name;

        if (name == NULL || strncmp(name, word + 2, length - 2) != 0) continue;
        text_format(&candidates, "%s--%s", candidates.length == 0 ? "" : " or ", name);
    }
    if (candidates.length > 0) {
        say("%.*s is ambiguous: write %.*s", (int)length, word, (int)candidates.length, candidates.bytes);
    } else {
        say("%s: no such option; --help lists them", shown(word));
    }
    text_clear(&candidates);
    return EXIT_USAGE;
}

/* take - what getopt_long found, or could not make sense of. */
static int take(struct settings *settings, enum args_place place, const char *word, int got)
{
    int id = got == '?' || got == ':' ? optopt : got;
    const struct entry *entry = find(id);
    char name[32] = {'-', (char)id, '\0'};

    if (id == 0) return refuse_long(word);
    if (id >= OPTION_NODES) snprintf(name, sizeof(name), "--%s", entry->name);
    if (entry == NULL) {
        say("%s: no such option; --help lists them", name);
    } else if ((entry->places & place) == 0) {
        say("%s does not belong %s; --help lists what does", name,
            place == ARGS_GLOBAL ? "before the verb" : "to this verb");
    } else if (got == ':') {
        say("%s needs a value: %s %s", name, name, entry->value);
    } else if (got == '?') {
        say("%s takes no value: write it without \"=\"", name);
    } else if (entry->value != NULL) {
        return set_value(settings, entry->id, name, optarg);
    } else {
        set_flag(settings, entry->id);
        return 0;
    }
    return EXIT_USAGE;
}

/* check_keys - an address among the keys lacks its --nodes: no message may show its password. */
static int check_keys(const char *const *words, size_t n_words)
{
    static const char *const schemes[] = {"redis://", "rediss://", "unix://"};

    for (size_t i = 0; i < n_words; i++)
        for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
            if (strncmp(words[i], schemes[k], strlen(schemes[k])) != 0) continue;
            say("\"%s...\" is an address and no key: write --nodes URI,URI,...", schemes[k]);
            return EXIT_USAGE;
        }
    return 0;
}

int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next)
{
    struct option names[N_ENTRIES + 1];
    char letters[2 * N_ENTRIES + 3];
    int got, end = 1;

    while (end < count && strcmp(words[end], "--") != 0) end++;
    offer(place, names, letters);
    optind = 0; /* 0 and not 1: glibc forgets the words before */
    opterr = 0;
    settings->words = (const char *const *)words + 1;
    settings->n_words = 0;
    while ((got = getopt_long(end, words, letters, names, NULL)) != -1) {
        int status = 0;

        if (got == 1) {
            words[optind - 1] = words[++settings->n_words];
            words[settings->n_words] = optarg;
        } else {
            status = take(settings, place, words[optind - 1], got);
        }
        if (status != 0) return status;
    }
    if (place != ARGS_GLOBAL && end < count) settings->command = words + end + 1;
    *ret_next = optind;
    return check_keys(settings->words, settings->n_words);
}

int args_environment(struct settings *settings)
{
    const char *nodes = getenv("QUORLOCK_NODES");
    const char *max_lease = getenv("QUORLOCK_MAX_LEASE");
    int status = 0;

    settings->nodes_asked = settings->nodes != NULL;
    if (settings->nodes == NULL) {
        settings->nodes = "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381";
        if (nodes != NULL && *nodes != '\0') status = set_nodes("QUORLOCK_NODES", nodes, &settings->nodes);
    }
    if (status == 0 && settings->max_lease_ms == 0 && max_lease != NULL && *max_lease != '\0')
        status = set_lease("QUORLOCK_MAX_LEASE", max_lease, &settings->max_lease_ms);
    return status;
}
