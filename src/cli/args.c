/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <quorlock/quorlock.h>

#include <stdlib.h>
#include <string.h>

#include "say.h"

enum option_id {
    OPTION_NODES,
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

struct option {
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

/* Help, manual and parser tell the same story because help and parser read this table. */
static const struct option options[] = {
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
    {OPTION_FENCE, ARGS_RUN, 0, "fence", NULL, "take a fencing token and hand it on in QUORLOCK_FENCE"},
    {OPTION_JSON, REPORTS | ARGS_BOOTSTRAP | ARGS_DOCTOR, 0, "json", NULL, "print the report as JSON"},
    {OPTION_VERBOSE, VERBS, 'v', "verbose", NULL, "tell more on stderr; twice: everything"},
    {OPTION_HELP, EVERYWHERE, 'h', "help", NULL, "print this help"},
    {OPTION_VERSION, ARGS_GLOBAL, 'V', "version", NULL, "print the version"},
};
enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

void args_help(struct text *text, enum args_place place)
{
    static const size_t column = 31;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options[i];
        if (!(option->places & place)) continue;
        size_t start = text->length;
        text_format(text, "  ");
        if (option->letter) text_format(text, "-%c%s", option->letter, option->name ? ", " : "");
        if (option->name) text_format(text, "--%s", option->name);
        if (option->value) text_format(text, " %s", option->value);
        for (const char *line = option->help; line;) {
            const char *end = strchr(line, '\n');
            if (text_columns(text, start) + 2 > column) {
                text_add(text, "\n", 1);
                start = text->length;
            }
            text_pad(text, start, column);
            text_add(text, line, end ? (size_t)(end - line) : strlen(line));
            text_add(text, "\n", 1);
            start = text->length;
            line = end ? end + 1 : NULL;
        }
    }
}

void args_hide(char *text)
{
    for (char *at = strchr(text, '@'); at; at = strchr(at, '@')) {
        /* Back to the scheme, across commas: a password that holds one must not show its front. */
        char *start = text;
        for (char *scheme = strstr(text, "://"); scheme && scheme < at; scheme = strstr(scheme + 3, "://"))
            start = scheme + 3;
        if (start == text && strncmp(text, "--nodes=", 8) == 0) start += 8;
        size_t mask = (size_t)(at - start) < 3 ? (size_t)(at - start) : 3;
        memset(start, '*', mask);
        size_t rest = strlen(at) + 1; /* with the NUL */
        size_t freed = (size_t)(at - start) - mask;
        memmove(start + mask, at, rest);
        memset(start + mask + rest, 0, freed);
        at = start + mask + 1;
    }
}

static bool args_may_hold_uri(const char *word)
{
    return strstr(word, "://") || (word[0] == '-' && strchr(word, '@'));
}

void args_hide_all(char **words, int count)
{
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (args_may_hold_uri(words[i]) || (i > 0 && strcmp(words[i - 1], "--nodes") == 0)) args_hide(words[i]);
}

/* "word://" at the beginning of `text`; 0: there is none. */
static size_t args_scheme(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return n && strncmp(text + n, "://", 3) == 0 ? n + 3 : 0;
}

/*
 * args_show - the word as an error may show it, in a buffer that lives until the next call
 *
 * Of what may be an address only the scheme: where a password stands in a wrong one nobody knows.
 */
static const char *args_show(const char *word)
{
    static char shown[256];
    size_t n_name = strcspn(word, "=:@");
    const char *front = word[0] == '-' && word[n_name] == '=' ? word + n_name : NULL;
    size_t length = front ? (size_t)(front + 1 - word) : 0;
    const char *more = "";
    if (strstr(word, "://") || strchr(word, '@')) {
        length += args_scheme(word + length);
        more = "...";
    } else {
        length = strlen(word);
    }
    if (length > sizeof(shown) - 4) length = sizeof(shown) - 4;
    memcpy(shown, word, length);
    memcpy(shown + length, more, strlen(more) + 1);
    return shown;
}

const char *args_duration(const char *text, uint32_t *ret_ms)
{
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
    if (p == text) return "is no duration: write a whole number and a unit, such as 250ms, 30s or 2m";
    if (*p == '\0') return "has no unit: write 250ms, 30s or 2m";
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(p, units[i].name) != 0) continue;
        if (number > (UINT32_MAX - 1) / units[i].ms) return "is too long";
        *ret_ms = (uint32_t)(number * units[i].ms);
        return NULL;
    }
    return "is no duration: write a whole number and a unit, such as 250ms, 30s or 2m";
}

/* args_duration_within - a duration for `name`, at least min_ms and at most max_ms. */
static int args_duration_within(const char *name, const char *value, uint32_t min_ms, uint32_t max_ms,
                                uint32_t *ret_ms)
{
    uint32_t ms = 0;
    const char *wrong = args_duration(value, &ms);
    if (wrong) {
        say("%s: \"%s\" %s", name, args_show(value), wrong);
        return EXIT_USAGE;
    }
    if (ms < min_ms || ms > max_ms) {
        say("%s: \"%s\" is out of range: give %ums to %us", name, args_show(value), min_ms, max_ms / 1000);
        return EXIT_USAGE;
    }
    *ret_ms = ms;
    return 0;
}

struct choice {
    const char *name;
    int value;
};

static int args_choose(const char *name, const char *value, const struct choice *choices, int *ret)
{
    struct text all = {0};
    for (const struct choice *c = choices; c->name; c++) {
        if (strcmp(c->name, value) == 0) {
            *ret = c->value;
            text_clear(&all);
            return 0;
        }
        text_format(&all, "%s%s", c == choices ? "" : c[1].name ? ", " : " or ", c->name);
    }
    say("%s: \"%s\" is unknown: give %.*s", name, args_show(value), all.failed ? 0 : (int)all.length,
        all.failed ? "" : all.bytes);
    text_clear(&all);
    return EXIT_USAGE;
}

static int args_wait(const char *name, const char *value, uint32_t *ret_ms)
{
    if (strcmp(value, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    if (strcmp(value, "forever") == 0) {
        *ret_ms = QUORLOCK_WAIT_FOREVER;
        return 0;
    }
    return args_duration_within(name, value, 0, UINT32_MAX - 1, ret_ms);
}

static int args_status(const char *name, const char *value, int *ret_status)
{
    int number = 0;
    size_t length = strlen(value);
    bool good = length >= 1 && length <= 3;
    for (size_t i = 0; good && i < length; i++) {
        good = value[i] >= '0' && value[i] <= '9';
        if (good) number = number * 10 + (value[i] - '0');
    }
    if (!good || number > 255) {
        say("%s: \"%s\" is no exit status: give a number from 0 to 255", name, args_show(value));
        return EXIT_USAGE;
    }
    *ret_status = number;
    return 0;
}

/* What the library could not tell so well, for it sees one address at a time; NULL: nothing. */
static const char *args_wrong_address(const char *address, size_t length)
{
    size_t scheme = args_scheme(address);
    if (length == 0) return "is empty: write URI,URI,... such as 127.0.0.1:6379,127.0.0.1:6380";
    if (memchr(address, ' ', length))
        return "has a blank: write URI,URI,... without any, %20 where one belongs";
    if (!scheme && memchr(address, '@', length))
        return "has an @ and does not begin with redis:// or unix://: write a comma in a user name or a "
               "password "
               "as %2C";
    if (scheme && address[0] == 'r' && memmem(address + scheme, length - scheme, "://", 3))
        return "has :// twice: write commas between addresses";
    return NULL;
}

static int args_nodes(const char *name, const char *value, const char **ret_nodes)
{
    size_t n = 1, at = 1;
    for (const char *p = value; *p; p++) n += *p == ',';
    for (const char *address = value; address; at++) {
        size_t length = strcspn(address, ",");
        const char *wrong = args_wrong_address(address, length);
        if (wrong) {
            say("%s: address %zu of %zu %s", name, at, n, wrong);
            return EXIT_USAGE;
        }
        address = address[length] ? address + length + 1 : NULL;
    }
    *ret_nodes = value;
    return 0;
}

static int args_set_choice(struct settings *settings, enum option_id id, const char *name, const char *value)
{
    static const struct choice policies[] = {{"majority", QUORLOCK_MAJORITY}, {"all", QUORLOCK_ALL}, {NULL, 0}};
    static const struct choice dialects[] = {
        {"plain", QUORLOCK_DIALECT_PLAIN}, {"redisson", QUORLOCK_DIALECT_REDISSON}, {NULL, 0}};
    static const struct choice guards[] = {{"connection", QUORLOCK_GUARD_CONNECTION},
                                           {"strict", QUORLOCK_GUARD_STRICT},
                                           {"off", QUORLOCK_GUARD_OFF},
                                           {NULL, 0}};
    if (id == OPTION_POLICY) return args_choose(name, value, policies, &settings->policy);
    if (id == OPTION_DIALECT) return args_choose(name, value, dialects, &settings->dialect);
    return args_choose(name, value, guards, &settings->guard);
}

static int args_set_value(struct settings *settings, enum option_id id, const char *name, const char *value)
{
    switch (id) {
    case OPTION_NODES: return args_nodes(name, value, &settings->nodes);
    case OPTION_POLICY:
    case OPTION_DIALECT:
    case OPTION_GUARD: return args_set_choice(settings, id, name, value);
    case OPTION_LEASE:
        return args_duration_within(name, value, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX,
                                    &settings->lease_ms);
    case OPTION_MAX_LEASE:
        return args_duration_within(name, value, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX,
                                    &settings->max_lease_ms);
    case OPTION_NODE_TIMEOUT:
        return args_duration_within(name, value, 1, QUORLOCK_LEASE_MS_MAX, &settings->node_timeout_ms);
    case OPTION_WAIT: return args_wait(name, value, &settings->wait_ms);
    case OPTION_HELD_STATUS: return args_status(name, value, &settings->held_status);
    case OPTION_SET_NAME: settings->set_name = value; return 0;
    default: settings->label = value; return 0; /* OPTION_LABEL: the library knows what a label may hold */
    }
}

static void args_set_flag(struct settings *settings, enum option_id id)
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

/* args_find - the option of a word "-x", "-xVALUE", "--name" or "--name=VALUE"; *ret_value is the text behind
 * it, or NULL. Flags of one letter are not bundled: "-nv" is an error, not a guess. */
static const struct option *args_find(const char *word, const char **ret_value)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options[i];
        const char *rest = NULL;
        if (word[1] == '-') {
            size_t length = option->name ? strlen(option->name) : 0;
            if (length && strncmp(word + 2, option->name, length) == 0) rest = word + 2 + length;
            if (!rest || (*rest != '\0' && *rest != '=')) continue;
            *ret_value = *rest ? rest + 1 : NULL;
            return option;
        }
        if (option->letter && word[1] == option->letter) {
            if (!option->value && word[2] != '\0') continue;
            *ret_value = word[2] ? word + 2 : NULL;
            return option;
        }
    }
    return NULL;
}

static int args_option(struct settings *settings, enum args_place place, char **words, int count, int *index)
{
    const char *word = words[*index];
    const char *value = NULL;
    const struct option *option = args_find(word, &value);
    if (!option) {
        say("%s: no such option; --help lists them", args_show(word));
        return EXIT_USAGE;
    }
    char name[32] = {'-', option->letter, '\0'};
    if (word[1] == '-') {
        name[1] = '-';
        strncpy(name + 2, option->name, sizeof(name) - 3);
    }
    if (!(option->places & place)) {
        say("%s does not belong %s; --help lists what does", name,
            place == ARGS_GLOBAL ? "before the verb" : "to this verb");
        return EXIT_USAGE;
    }
    if (!option->value) {
        if (value) {
            say("%s takes no value: write it without \"=\"", name);
            return EXIT_USAGE;
        }
        args_set_flag(settings, option->id);
        return 0;
    }
    if (!value) {
        if (*index + 1 >= count || strcmp(words[*index + 1], "--") == 0) {
            say("%s needs a value: %s %s", name, name, option->value);
            return EXIT_USAGE;
        }
        value = words[++*index];
    }
    return args_set_value(settings, option->id, name, value);
}

/* An address where a key belongs is one whose --nodes was forgotten: no message may tell its password. */
static int args_keys(const char *const *words, int count)
{
    static const char *const schemes[] = {"redis://", "rediss://", "unix://"};
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
            if (strncmp(words[i], schemes[k], strlen(schemes[k])) != 0) continue;
            say("\"%s...\" is an address and no key: write --nodes URI,URI,...", schemes[k]);
            return EXIT_USAGE;
        }
    return 0;
}

int args_parse(struct settings *settings, enum args_place place, char **words, int count, int *ret_next)
{
    int kept = 0, i = 0;
    for (; i < count; i++) {
        if (words[i][0] != '-' || words[i][1] == '\0') {
            if (place == ARGS_GLOBAL) break;
            words[kept++] = words[i];
            continue;
        }
        if (strcmp(words[i], "--") == 0) {
            if (place != ARGS_GLOBAL) settings->command = words + i + 1;
            break;
        }
        int status = args_option(settings, place, words, count, &i);
        if (status) return status;
    }
    if (place != ARGS_GLOBAL) {
        settings->words = (const char *const *)words;
        settings->n_words = (size_t)kept;
    }
    *ret_next = i;
    return args_keys(settings->words, place == ARGS_GLOBAL ? 0 : kept);
}

int args_environment(struct settings *settings)
{
    const char *nodes = getenv("QUORLOCK_NODES");
    const char *max_lease = getenv("QUORLOCK_MAX_LEASE");
    settings->nodes_asked = settings->nodes != NULL;
    if (!settings->nodes) {
        settings->nodes = "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381";
        if (nodes && *nodes) {
            int status = args_nodes("QUORLOCK_NODES", nodes, &settings->nodes);
            if (status) return status;
        }
    }
    if (!settings->max_lease_ms && max_lease && *max_lease)
        return args_duration_within("QUORLOCK_MAX_LEASE", max_lease, QUORLOCK_LEASE_MS_MIN,
                                    QUORLOCK_LEASE_MS_MAX, &settings->max_lease_ms);
    return 0;
}
