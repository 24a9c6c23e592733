/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/values.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "settings/duration.h"
#include "settings/hide.h"

/* ---- values ---- */

int given_refuse(const struct given *given, const char *wrong)
{
    text_format(given->error, "%s: \"%s\" %s", given->name, hide_shown(given->value), wrong);
    return QUORLOCK_ERR_INVAL;
}

int given_duration(const struct given *given, uint32_t min_ms, uint32_t max_ms)
{
    uint32_t ms = 0;
    const char *wrong = duration_read(given->value, &ms);

    if (wrong != NULL) return given_refuse(given, wrong);
    if (ms < min_ms || ms > max_ms) {
        given_refuse(given, "is out of range: give ");
        duration_add(given->error, min_ms);
        text_format(given->error, " to ");
        duration_add(given->error, max_ms);
        return QUORLOCK_ERR_INVAL;
    }
    *(uint32_t *)given->setting = ms;
    return 0;
}

int given_number(const struct given *given, uint32_t min, uint32_t max, const char *what)
{
    size_t length = strlen(given->value);
    bool digits = length >= 1 && length <= 9 && strspn(given->value, "0123456789") == length;
    long number = digits ? strtol(given->value, NULL, 10) : -1;

    if (number < (long)min || number > (long)max) {
        given_refuse(given, "is no ");
        text_format(given->error, "%s: give a number from %u to %u", what, min, max);
        return QUORLOCK_ERR_INVAL;
    }
    *(uint32_t *)given->setting = (uint32_t)number;
    return 0;
}

int given_string(const struct given *given)
{
    *(const char **)given->setting = given->value;
    return 0;
}

int given_choice(const struct given *given)
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
    given_refuse(given, "is unknown: give ");
    text_add(given->error, all.bytes, all.length);
    text_clear(&all);
    return QUORLOCK_ERR_INVAL;
}

static int set_wait(const struct given *given)
{
    uint32_t *wait_ms = given->setting;
    int status = 0;

    *wait_ms = 0;
    if (strcmp(given->value, "forever") == 0) return 0;
    if (strcmp(given->value, "0") != 0) status = given_duration(given, 0, UINT32_MAX - 1);
    if (status == 0 && *wait_ms == 0) *wait_ms = QUORLOCK_TRY_ONCE;
    return status;
}

static int set_switch(const struct given *given)
{
    bool on = strcmp(given->value, "yes") == 0;

    if (!on && strcmp(given->value, "no") != 0) return given_refuse(given, "is unknown: give yes or no");
    *(uint32_t *)given->setting = on;
    return 0;
}

static int set_guard(const struct given *given)
{
    int *guard = given->setting;
    int status = given_choice(given);

    if (status == 0)
        *guard = *guard == 0 ? QUORLOCK_GUARD_CONNECTION : *guard == 1 ? QUORLOCK_GUARD_STRICT : QUORLOCK_GUARD_OFF;
    return status;
}

static int set_lease(const struct given *given)
{
    return given_duration(given, LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX);
}

/* Programs that use the library may have shorter leases than the command. */
static int set_max_lease(const struct given *given)
{
    return given_duration(given, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX);
}

static int set_timeout(const struct given *given)
{
    return given_duration(given, 1, QUORLOCK_TIMEOUT_MS_MAX);
}

static int set_in_flight(const struct given *given)
{
    return given_number(given, 1, BENCH_IN_FLIGHT_MAX, "number of locks");
}

static int set_seconds(const struct given *given)
{
    return given_number(given, 1, BENCH_SECONDS_MAX, "number of seconds");
}

/* wrong_address - return the error of an address, or NULL. The library checks one address at a time, so it cannot find
 * these errors of a list. */
static const char *wrong_address(const char *address, size_t length)
{
    size_t scheme = hide_scheme_length(address);

    if (length == 0) return "is empty: write URI,URI,... such as 127.0.0.1:6379,127.0.0.1:6380";
    if (strchr("\"'#", address[0]) != NULL)
        return "begins with a quote or with #: write addresses without quotes, and no comment behind them";
    if (scheme == 0 && memchr(address, '@', length) != NULL)
        return "has an @ and does not begin with redis://, rediss://, valkey://, valkeys:// or unix://: write a comma "
               "or a blank in a user name or a password as %2C or %20";
    if (scheme > 0 && strncasecmp(address, "unix", 4) != 0 &&
        memmem(address + scheme, length - scheme, "://", 3) != NULL)
        return "has :// twice: write commas between addresses";
    return NULL;
}

/* join_addresses - put one comma between addresses that commas or blanks separate. A comma at the end is ignored; two
 * commas stay, because an address is missing between them. */
static void join_addresses(char *text)
{
    static const char blanks[] = " \t\r\n", separators[] = " \t\r\n,";
    const char *from = text + strspn(text, blanks), *end = text + strlen(text);
    char *to = text;

    while (*from != '\0') {
        size_t length = strcspn(from, separators), gap = strspn(from + length, separators), commas = 0;

        for (size_t i = 0; i < gap; i++) commas += from[length + i] == ',';
        memmove(to, from, length);
        to += length;
        from += length + gap;
        if (*from != '\0' && commas == 0) commas = 1;
        if (*from == '\0' && commas > 0) commas--;
        memset(to, ',', commas);
        to += commas;
    }
    memset(to, 0, (size_t)(end - to)); /* it may be a part of a password */
}

static int set_nodes(const struct given *given)
{
    const char *address = given->value;
    size_t n = 1;

    join_addresses(given->value);
    for (const char *p = given->value; *p != '\0'; p++) n += *p == ',';
    for (size_t number = 1; number <= n; number++) {
        size_t length = strcspn(address, ",");
        const char *wrong = wrong_address(address, length);

        if (wrong != NULL) {
            text_format(given->error, "%s: address %zu of %zu %s", given->name, number, n, wrong);
            return QUORLOCK_ERR_INVAL;
        }
        address += length + 1;
    }
    *(char **)given->setting = given->value;
    return 0;
}

/* ---- keys ---- */

#define VALUE(name)  offsetof(struct values, name)
#define CLIENT(name) offsetof(struct values, client.name)
const struct value_key value_keys[N_VALUE_KEYS] = {
    {"set", "QUORLOCK_SET", NULL, NULL, given_string, VALUE(set), NULL},
    {"nodes", "QUORLOCK_NODES", NULL, "127.0.0.1:6379,127.0.0.1:6380,127.0.0.1:6381", set_nodes, VALUE(nodes), NULL},
    {"user", "QUORLOCK_USER", NULL, NULL, given_string, CLIENT(user), NULL},
    {"password", "QUORLOCK_PASSWORD", "password-file", NULL, given_string, CLIENT(password), NULL},
    {"password-file", "QUORLOCK_PASSWORD_FILE", "password", NULL, given_string, VALUE(password_file), NULL},
    {"tls-ca", "QUORLOCK_TLS_CA", NULL, "those of the system", given_string, CLIENT(tls_ca), NULL},
    {"tls-cert", "QUORLOCK_TLS_CERT", NULL, NULL, given_string, CLIENT(tls_cert), NULL},
    {"tls-key", "QUORLOCK_TLS_KEY", "tls-cert", NULL, given_string, CLIENT(tls_key), NULL},
    {"tls-name", "QUORLOCK_TLS_NAME", NULL, "the host of each address", given_string, CLIENT(tls_name), NULL},
    {"policy", NULL, NULL, "majority", given_choice, CLIENT(policy), "majority|all"},
    {"lease", NULL, NULL, LEASE_SHOWN ", or the max lease if that is shorter", set_lease, VALUE(lease_ms), NULL},
    {"max-lease", "QUORLOCK_MAX_LEASE", NULL, LEASE_SHOWN, set_max_lease, CLIENT(max_lease_ms), NULL},
    {"wait", NULL, NULL, "forever", set_wait, VALUE(wait_ms), NULL},
    {"node-timeout", NULL, NULL, "a tenth of the lease, at least 50ms, at most 1s", set_timeout,
     CLIENT(node_timeout_ms), NULL},
    {"connect-timeout", NULL, NULL, "3s, or the node timeout if that is more", set_timeout, CLIENT(connect_timeout_ms),
     NULL},
    {"label", NULL, NULL, "HOST:PID:", given_string, CLIENT(owner_label), NULL},
    {"dialect", NULL, NULL, "plain", given_choice, CLIENT(dialect), "plain|redisson"},
    {"prefix", "QUORLOCK_PREFIX", NULL, NULL, given_string, CLIENT(key_prefix), NULL},
    {"guard", NULL, NULL, "connection", set_guard, CLIENT(guard), "connection|strict|off"},
    {"set-name", NULL, NULL, "a hash of the addresses", given_string, CLIENT(set_name), NULL},
    {"allow-eviction", NULL, NULL, "no", set_switch, CLIENT(allow_eviction), NULL},
    {"fence", NULL, NULL, "no", set_switch, VALUE(fence), NULL},
    {"in-flight", NULL, NULL, SHOWN(BENCH_IN_FLIGHT), set_in_flight, VALUE(in_flight), NULL},
    {"seconds", NULL, NULL, SHOWN(BENCH_SECONDS), set_seconds, VALUE(seconds), NULL},
};

size_t values_place(const char *key)
{
    size_t i = 0;

    while (i < N_VALUE_KEYS && strcmp(value_keys[i].key, key) != 0) i++;
    return i;
}

int values_set(struct values *values, const char *key, const char *name, char *value, struct text *error)
{
    const struct value_key *found = &value_keys[values_place(key)];
    const struct given given = {name, value, found->choices, (char *)values + found->setting, error};

    return found->set(&given);
}

struct values values_begin(void)
{
    return (struct values){
        .client.size = sizeof(struct quorlock_client_options), .in_flight = BENCH_IN_FLIGHT, .seconds = BENCH_SECONDS};
}

void values_nodes(struct quorlock_client_options *options, const char **nodes, char *list)
{
    char *rest = list;

    options->nodes = nodes;
    options->n_nodes = 0;
    for (const char *node; (node = strsep(&rest, ",")) != NULL; options->n_nodes++)
        if (options->n_nodes < QUORLOCK_NODES_MAX) nodes[options->n_nodes] = node;
}
