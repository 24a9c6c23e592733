/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * acl.c - quorlock doctor --acl: the least rights that locks need, as a line for redis-cli
 *
 * A test removes each right in turn, and expects a lock that cannot be taken, a waiter that is not woken, a shorter
 * message, or a denial in the server's log.
 */
#include <string.h>

#include "cli.h"
#include "say.h"

/* When a rule is needed: in one of the named dialects, and only with all other named conditions. */
enum { PLAIN = 1, REDISSON = 2, NOTICES = 4, DATABASE = 8, LIST = 16 };

struct rules {
    unsigned when;
    const char *text;
};

static const struct rules commands[] = {
    {PLAIN | REDISSON, "+info +time +get +set +pttl +pexpire +type +eval +evalsha +client|setname "
                       "+client|tracking +client|caching +exists"},
    {PLAIN, "+del +mget"}, /* MGET, as PUBSUB NUMPAT, saves work when locks are released together */
    {PLAIN, "+zadd +zrem +zscore +zcount +zrange +zrangebyscore"}, /* for shared keys; exclusive locks
                                                                                look for readers */
    {REDISSON, "+hexists +hscan +hget +hset +hdel"},
    {PLAIN | REDISSON | DATABASE, "+select"},
    {PLAIN | REDISSON | NOTICES, "+publish +pubsub|numsub +subscribe +unsubscribe +ping"},
    {PLAIN | REDISSON | NOTICES, "+pubsub|numpat"},
    {REDISSON | NOTICES, "+lrange"},
    {PLAIN | LIST, "+scan +getrange"},
    {REDISSON | LIST, "+scan +hlen +hkeys"},
};
/* @ is replaced by the prefix, % by the pattern. */
static const struct rules names[] = {
    {PLAIN | REDISSON, "~@%"},
    {PLAIN | REDISSON, "~@quorlock:fence:%"}, /* waiters read the counter, also without fencing */
    {PLAIN, "~@quorlock:readers:%"},
    {PLAIN, "~@quorlock:intents:%"},
    {PLAIN, "~@quorlock:queue:%"},
    {PLAIN, "~@quorlock:permits:%"},
    {PLAIN, "~@quorlock:slot:*:%"},
    {PLAIN, "~@quorlock:fence:quorlock:slot:*:%"},
    {PLAIN | NOTICES, "&@quorlock:released:%"},
    {PLAIN | NOTICES, "&@quorlock:released:quorlock:turn:*:%"},
    {REDISSON | NOTICES, "~redisson_lock_queue:{@%}"},
    {REDISSON | NOTICES, "&redisson_lock__channel:{@%}"},
    {REDISSON | NOTICES, "&redisson_lock__channel:{@%}:*"},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]), N_NAMES = sizeof(names) / sizeof(names[0]) };

/* has_database - return whether an address has another database than 0. */
static bool has_database(const char *nodes)
{
    for (const char *address = nodes; *address != '\0'; address += *address == ',') {
        size_t length = strcspn(address, ",");
        const char *at = memrchr(address, '@', length), *scheme = strstr(address, "://");
        const char *place = at != NULL ? at + 1 : scheme != NULL && scheme < address + length ? scheme + 3 : address;
        const char *database = strncmp(address, "unix://", 7) == 0 ? strstr(address, "?db=") : strchr(place, '/');

        if (database != NULL && database < address + length) {
            database += strcspn(database, "=/") + 1;
            database += strspn(database, "0");
            if (*database >= '1' && *database <= '9') return true;
        }
        address += length;
    }
    return false;
}

static bool is_needed(const struct rules *rules, unsigned wanted)
{
    unsigned dialects = PLAIN | REDISSON;

    return (rules->when & wanted & dialects) != 0 && (rules->when & ~dialects & ~wanted) == 0;
}

/* acl_add_name - add a rule for a pattern behind a prefix. One key pattern and one channel pattern allow all that
 * begins with the prefix. Redisson puts a key into braces if it has none; keys that match * may have some. */
static void acl_add_name(struct text *text, const char *rule, const char *prefix, const char *pattern)
{
    bool every = strcmp(pattern, "*") == 0, any = *prefix == '\0' && every, whole = every && !any && rule[1] == '@';
    bool bare = strchr(rule, '{') != NULL && (any || strchr(prefix, '{') != NULL || strchr(pattern, '{') != NULL);

    if (whole && *rule == '~' && rule[2] != '%') return;
    if (every && strstr(rule, ":turn:") != NULL) return; /* as of "released" */
    if (whole) rule = *rule == '~' ? "~@%" : "&@%";
    text_format(text, " ");
    for (bool done = false; *rule != '\0' && !done; rule++) {
        if (*rule == '@')
            text_format(text, "%s", prefix);
        else if (*rule == '%')
            text_format(text, "%s", pattern);
        else if (!bare || strchr("{}", *rule) == NULL)
            text_format(text, "%c", *rule);
        done = bare && any && *rule == '%';
    }
}

static void acl_add_line(struct text *text, const struct settings *settings, const char *const *patterns,
                         size_t n_patterns)
{
    unsigned wanted = (settings->values.client.dialect == QUORLOCK_DIALECT_REDISSON ? REDISSON : PLAIN) |
                      (settings->no_notices ? 0 : NOTICES) | (has_database(settings->values.nodes) ? DATABASE : 0) |
                      (settings->with_ls ? LIST : 0);
    const char *prefix = settings->values.client.key_prefix != NULL ? settings->values.client.key_prefix : "";
    bool every = strcmp(patterns[0], "*") == 0, all = every && *prefix == '\0';

    /* Beside ~* the server accepts no other key pattern. */
    text_format(text, "ACL SETUSER %s on resetkeys resetchannels -@all %s", settings->acl,
                all ? "~*" : "~quorlock:guard");
    if (!every && (wanted & PLAIN) != 0) text_format(text, " ~%squorlock:clock", prefix); /* of the queues */
    for (size_t i = 0; i < n_patterns; i++)
        for (size_t k = 0; k < N_NAMES; k++)
            if (is_needed(&names[k], wanted) && !(all && names[k].text[0] == '~'))
                acl_add_name(text, names[k].text, prefix, patterns[i]);
    for (size_t k = 0; k < N_COMMANDS; k++)
        if (is_needed(&commands[k], wanted)) text_format(text, " %s", commands[k].text);
    text_format(text, "\n");
}

/* check_word - refuse a text that would not be one word of the line. */
static bool check_word(const char *what, const char *word)
{
    if (*word != '\0' && strpbrk(word, " \t\r\n\"'\\") == NULL) return true;
    say("%s \"%s\": write it without blanks, quotes and backslashes", what, word);
    return false;
}

int acl_print(const struct settings *settings)
{
    static const char *const all[] = {"*"};
    const char *const *patterns = settings->n_words > 0 ? settings->words : all;
    size_t n_patterns = settings->n_words > 0 ? settings->n_words : 1;
    struct text text = {0};
    bool good = check_word("--acl", settings->acl), every = false;
    int status;

    if (good && settings->values.client.key_prefix != NULL && *settings->values.client.key_prefix != '\0')
        good = check_word("--prefix", settings->values.client.key_prefix);
    for (size_t i = 0; i < n_patterns && good; i++) {
        good = check_word("key", patterns[i]);
        every |= strcmp(patterns[i], "*") == 0;
    }
    if (every) {
        patterns = all;
        n_patterns = 1;
    }
    if (!good) return EXIT_USAGE;
    /* The user of the line could read more than keys with the prefix. */
    if (settings->values.client.key_prefix != NULL && strpbrk(settings->values.client.key_prefix, "*?[]") != NULL) {
        say("--prefix \"%s\": a rule of an ACL takes *, ?, [ and ] for any characters; choose a prefix without them",
            settings->values.client.key_prefix);
        return EXIT_USAGE;
    }
    acl_add_line(&text, settings, patterns, n_patterns);
    status = put(&text);
    if (status == 0)
        say("give this line to redis-cli on every node, and give the user a password: ACL SETUSER %s >PASSWORD",
            settings->acl);
    return status;
}
