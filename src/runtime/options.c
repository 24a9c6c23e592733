/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/options.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/wheel.h"
#include "core/validity.h"

#define MS 1000u

#define REFUSE(error, ...) caller_fail(error, QUORLOCK_ERR_INVAL, __VA_ARGS__)

#define SET_NAME_MAX             64
#define TLS_NAME_MAX             253
#define RESERVED                 "quorlock:"
#define DEFAULT_DRIFT_PPM        10000u
#define DEFAULT_DRIFT_FIXED_MS   2u
#define DEFAULT_RECONNECT_MIN_MS 50u
#define DEFAULT_RECONNECT_MAX_MS 2000u
#define DRIFT_PPM_MAX            200000u
#define DRIFT_FIXED_MS_MAX       60000u
#define RECONNECT_MS_MAX         3600000u
#define CONNECT_TIMEOUT_MS       3000u
#define NODE_TIMEOUT_LOW_US      50000u
#define NODE_TIMEOUT_HIGH_US     1000000u
#define RENEW_GRID_PART          64u           /* of the time between two renewals */
#define RENEW_GRID_US_MAX        WHEEL_SLOT_US /* renewals are due when a slot of the wheel begins */

static int check_range(const char *name, uint64_t value, uint64_t least, uint64_t most, struct quorlock_error *error)
{
    if (value >= least && value <= most) return 0;
    return REFUSE(error, "%s is %llu: it must be %llu to %llu", name, (unsigned long long)value,
                  (unsigned long long)least, (unsigned long long)most);
}

static int check_ranges(const struct quorlock_client_options *options, struct quorlock_error *error)
{
    const struct {
        const char *name;
        uint32_t value, least, most;
    } ranges[] = {
        {"max_lease_ms", options->max_lease_ms, QUORLOCK_LEASE_MS_MIN, QUORLOCK_LEASE_MS_MAX},
        {"drift_ppm", options->drift_ppm, 1, DRIFT_PPM_MAX},
        {"drift_fixed_ms", options->drift_fixed_ms, 1, DRIFT_FIXED_MS_MAX},
        {"node_timeout_ms", options->node_timeout_ms, 0, QUORLOCK_TIMEOUT_MS_MAX},
        {"connect_timeout_ms", options->connect_timeout_ms, 1, QUORLOCK_TIMEOUT_MS_MAX},
        {"reconnect_min_ms", options->reconnect_min_ms, 1, RECONNECT_MS_MAX},
        {"reconnect_max_ms", options->reconnect_max_ms, options->reconnect_min_ms, RECONNECT_MS_MAX},
    };
    int status = 0;

    for (size_t i = 0; status == 0 && i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        status = check_range(ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most, error);
    }
    return status;
}

static void options_fill(uint32_t *value, uint32_t otherwise)
{
    if (*value == 0) *value = otherwise;
    assert(*value != 0);
}

static int check_kinds(const struct quorlock_client_options *options, struct quorlock_error *error)
{
    if (options->policy != QUORLOCK_POLICY_MAJORITY && options->policy != QUORLOCK_POLICY_ALL) {
        return REFUSE(error, "policy is %d: it must be QUORLOCK_POLICY_MAJORITY or QUORLOCK_POLICY_ALL",
                      options->policy);
    }
    if (options->dialect != QUORLOCK_DIALECT_PLAIN && options->dialect != QUORLOCK_DIALECT_REDISSON) {
        return REFUSE(error, "dialect is %d: it must be QUORLOCK_DIALECT_PLAIN or QUORLOCK_DIALECT_REDISSON",
                      options->dialect);
    }
    if (options->guard < QUORLOCK_GUARD_DEFAULT || options->guard > QUORLOCK_GUARD_STRICT) {
        return REFUSE(error, "guard is %d: it must be one of enum quorlock_guard", options->guard);
    }
    return 0;
}

/* what: "the owner label", for messages. */
static int options_check_label(const char *what, const char *label, struct quorlock_error *error)
{
    if (label != NULL && strlen(label) > OPTIONS_LABEL_MAX) {
        return REFUSE(error, "%s has %zu characters: at most %d", what, strlen(label), OPTIONS_LABEL_MAX);
    }
    for (const char *at = label; at != NULL && *at != '\0'; at++) {
        if (isgraph((unsigned char)*at) != 0) continue;
        return REFUSE(error, "%s \"%s\" has the byte 0x%02x: only printable ASCII without space", what, label,
                      (unsigned)(unsigned char)*at);
    }
    return 0;
}

static int check_texts(const struct quorlock_client_options *options, struct quorlock_error *error)
{
    int status = options_check_label("the owner label", options->owner_label, error);

    if (status != 0) return status;
    if (options->set_name != NULL && (*options->set_name == '\0' || strlen(options->set_name) > SET_NAME_MAX ||
                                      strchr(options->set_name, '|') != NULL)) {
        return REFUSE(error, "the set's name is \"%.80s\": 1 to %d characters, without |", options->set_name,
                      SET_NAME_MAX);
    }
    if (options->key_prefix != NULL && strlen(options->key_prefix) > QUORLOCK_KEY_LENGTH_MAX) {
        return REFUSE(error, "key_prefix has %zu bytes: at most %d", strlen(options->key_prefix),
                      QUORLOCK_KEY_LENGTH_MAX);
    }
    return 0;
}

static int check_tls(const struct quorlock_client_options *options, struct quorlock_error *error)
{
    const struct {
        const char *name, *value;
    } texts[] = {{"tls_ca", options->tls_ca},
                 {"tls_cert", options->tls_cert},
                 {"tls_key", options->tls_key},
                 {"tls_name", options->tls_name}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].value != NULL && *texts[i].value == '\0') return REFUSE(error, "%s is empty", texts[i].name);
    }
    if (options->tls_name != NULL && strlen(options->tls_name) > TLS_NAME_MAX) {
        return REFUSE(error, "tls_name has %zu characters: at most %d", strlen(options->tls_name), TLS_NAME_MAX);
    }
    if (options->tls_key != NULL && options->tls_cert == NULL) {
        return REFUSE(error, "tls_key is given and tls_cert is not: give both");
    }
    return 0;
}

int options_client(struct quorlock_client_options *ret, const struct quorlock_client_options *given,
                   struct quorlock_error *error)
{
    struct quorlock_client_options options;
    int status;

    if (given == NULL) return REFUSE(error, "options is NULL: the nodes are needed");
    status = caller_copy(&options, sizeof(options), given, given->size, "quorlock_client_options", error);
    if (status != 0) return status;
    if (options.n_nodes == 0 || options.n_nodes > QUORLOCK_NODES_MAX || options.nodes == NULL) {
        return REFUSE(error, "%zu node addresses: give 1 to %d", options.n_nodes, QUORLOCK_NODES_MAX);
    }
    if (options.guard == QUORLOCK_GUARD_DEFAULT) options.guard = QUORLOCK_GUARD_CONNECTION;
    options_fill(&options.max_lease_ms, QUORLOCK_LEASE_MS_DEFAULT);
    options_fill(&options.drift_ppm, DEFAULT_DRIFT_PPM);
    options_fill(&options.drift_fixed_ms, DEFAULT_DRIFT_FIXED_MS);
    /* A long node timeout means a distant server. */
    options_fill(&options.connect_timeout_ms,
                 options.node_timeout_ms > CONNECT_TIMEOUT_MS ? options.node_timeout_ms : CONNECT_TIMEOUT_MS);
    options_fill(&options.reconnect_min_ms, DEFAULT_RECONNECT_MIN_MS);
    options_fill(&options.reconnect_max_ms, options.reconnect_min_ms > DEFAULT_RECONNECT_MAX_MS
                                                ? options.reconnect_min_ms
                                                : DEFAULT_RECONNECT_MAX_MS);
    status = check_kinds(&options, error);
    if (status == 0) status = check_texts(&options, error);
    if (status == 0) status = check_tls(&options, error);
    if (status == 0) status = check_ranges(&options, error);
    if (status != 0) return status;
    assert(options.guard != QUORLOCK_GUARD_DEFAULT);
    assert(options.reconnect_min_ms > 0 && options.reconnect_min_ms <= options.reconnect_max_ms);
    assert(options.drift_ppm > 0 && options.drift_fixed_ms > 0);
    *ret = options;
    return 0;
}

int options_buggify(uint64_t *ret, const char *text, struct quorlock_error *error)
{
    uint64_t seed = 0;

    if (text == NULL) return 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || seed > (UINT64_MAX - 9) / 10) {
            return REFUSE(error, "QUORLOCK_BUGGIFY is \"%.80s\": give a seed, a whole number from 1 on, or unset it",
                          text);
        }
        seed = 10 * seed + (uint64_t)(*at - '0');
    }
    *ret = seed;
    return 0;
}

uint32_t options_quorum(int policy, uint32_t n_nodes)
{
    uint32_t quorum = policy == QUORLOCK_POLICY_ALL ? n_nodes : n_nodes / 2 + 1;

    /* Any two quorums have a node in common. */
    assert(quorum <= n_nodes && 2 * quorum > n_nodes);
    return quorum;
}

int options_bootstrap(struct quorlock_bootstrap_options *ret, const struct quorlock_bootstrap_options *given,
                      struct quorlock_error *error)
{
    int status = 0;

    *ret = (struct quorlock_bootstrap_options){.size = sizeof(*ret)};
    if (given != NULL) status = caller_copy(ret, sizeof(*ret), given, given->size, "quorlock_bootstrap_options", error);
    if (status == 0 && ret->reconfigure != 0 && ret->if_needed != 0) {
        return caller_fail(error, QUORLOCK_ERR_INVAL,
                           "if_needed goes without reconfigure, which writes the guards in any case");
    }
    return status;
}

bool options_max_lease_given(const struct quorlock_client_options *given)
{
    size_t end = offsetof(struct quorlock_client_options, max_lease_ms) + sizeof(given->max_lease_ms);

    return given->size >= end && given->max_lease_ms != 0;
}

/* The node's name for the key is the prefix and the key. The library's own names begin with the word, or have it behind
 * the prefix. */
static bool is_reserved(const char *prefix, const char *key)
{
    const char *reserved = RESERVED;

    assert(key != NULL);
    if (strncmp(key, reserved, strlen(reserved)) == 0) return true;
    for (; prefix != NULL && *prefix != '\0' && *reserved != '\0'; prefix++, reserved++) {
        if (*prefix != *reserved) return false;
    }
    return strncmp(key, reserved, strlen(reserved)) == 0;
}

int options_key(const char *key, const struct quorlock_client_options *client, struct quorlock_error *error)
{
    size_t length = key == NULL ? 0 : strlen(key);
    size_t prefix = client->key_prefix == NULL ? 0 : strlen(client->key_prefix);

    if (length == 0) return REFUSE(error, "the key is empty: give it a name");
    if (length + prefix > QUORLOCK_KEY_LENGTH_MAX) {
        return REFUSE(error, "the key has %zu bytes with its prefix: at most %d", length + prefix,
                      QUORLOCK_KEY_LENGTH_MAX);
    }
    if (is_reserved(client->key_prefix, key)) {
        return REFUSE(error,
                      "the key \"%s%.64s\" begins with \"" RESERVED "\", which is kept for the library: "
                      "choose another name",
                      prefix > 0 ? client->key_prefix : "", key);
    }
    return 0;
}

static int options_check_keys(const struct quorlock_client_options *client, const char *const *keys, size_t n_keys,
                              struct quorlock_error *error)
{
    if (keys == NULL || n_keys == 0) {
        return REFUSE(error, "no key: a lock needs one");
    }
    if (n_keys > QUORLOCK_KEYS_MAX) {
        return REFUSE(error, "%zu keys: a lock has at most %d keys", n_keys, QUORLOCK_KEYS_MAX);
    }
    for (size_t i = 0; i < n_keys; i++) {
        int status = options_key(keys[i], client, error);

        if (status != 0) return status;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(keys[i], keys[k]) != 0) continue;
            return REFUSE(error, "keys %zu and %zu are the same, \"%.100s\": name each once", k + 1, i + 1, keys[i]);
        }
    }
    return 0;
}

static int check_owner(const char *owner, struct quorlock_error *error)
{
    size_t length = owner != NULL ? strnlen(owner, QUORLOCK_OWNER_LENGTH_MAX + 1) : 1;

    if (length == 0) {
        return REFUSE(error, "owner is empty: give it a name, or NULL for a lock that does not nest");
    }
    if (length > QUORLOCK_OWNER_LENGTH_MAX) {
        return REFUSE(error, "owner is longer than %d bytes", QUORLOCK_OWNER_LENGTH_MAX);
    }
    return 0;
}

static int check_lock_label(const struct quorlock_lock_options *options, const struct quorlock_client_options *client,
                            struct quorlock_error *error)
{
    if (options->label == NULL) return 0;
    if (*options->label == '\0') return REFUSE(error, "the label is empty: give it a text, or leave it out");
    if (client->dialect == QUORLOCK_DIALECT_REDISSON) {
        return REFUSE(error, "the label \"%.64s\" has no place in the redisson dialect: its owners are <uuid>:<number>",
                      options->label);
    }
    return options_check_label("the label", options->label, error);
}

int options_advertise(const char *text, struct quorlock_error *error)
{
    if (text == NULL) return 0;
    if (*text == '\0') return REFUSE(error, "the advertised text is empty: give it a text, or leave it out");
    return options_check_label("the advertised text", text, error);
}

/* One tenth of the lease, within bounds, and short enough for two tries of a renewal. */
static uint64_t default_node_timeout_us(uint64_t lease_us, uint64_t spare_us)
{
    uint64_t timeout_us = lease_us / 10;

    if (timeout_us < NODE_TIMEOUT_LOW_US) timeout_us = NODE_TIMEOUT_LOW_US;
    if (timeout_us > NODE_TIMEOUT_HIGH_US) timeout_us = NODE_TIMEOUT_HIGH_US;
    if (2 * timeout_us > spare_us) timeout_us = spare_us / 2;
    if (timeout_us < MS) timeout_us = MS;
    assert(timeout_us <= NODE_TIMEOUT_HIGH_US);
    return timeout_us;
}

static uint64_t renew_us_of(uint64_t lease_us, uint32_t renew_ms)
{
    if (renew_ms == QUORLOCK_RENEW_NEVER) return CORE_NEVER;
    return renew_ms == 0 ? lease_us / 3 : (uint64_t)renew_ms * MS;
}

/* Rule 3.7. A renewal that times out once is tried again, and this must end before the loss is reported:
 * renew + 2 x node timeout + lost margin <= lease - allowance. Return the longest margin; 0: there is no room. */
static uint64_t margin_max_us(const struct core_config *config, uint64_t node_timeout_us)
{
    uint64_t allowance_us = validity_allowance_us(config->lease_us, config->drift_ppm, config->drift_fixed_us);
    uint64_t useful_us = validity_sub(config->lease_us, allowance_us);

    assert(node_timeout_us > 0);
    if (config->holder.renew_us == CORE_NEVER) return validity_sub(useful_us, 1);
    return validity_sub(useful_us, config->holder.renew_us + 2 * node_timeout_us);
}

uint32_t options_lost_margin_max_ms(const struct quorlock_client_options *client, uint32_t lease_ms, uint32_t renew_ms)
{
    uint64_t lease_us = (uint64_t)lease_ms * MS;
    struct core_config config = {.lease_us = lease_us,
                                 .drift_ppm = client->drift_ppm,
                                 .drift_fixed_us = (uint64_t)client->drift_fixed_ms * MS,
                                 .holder.renew_us = renew_us_of(lease_us, renew_ms)};
    /* A timeout that was not chosen becomes as short as the margin needs. */
    uint64_t node_timeout_us = client->node_timeout_ms == 0 ? MS : (uint64_t)client->node_timeout_ms * MS;

    return (uint32_t)(margin_max_us(&config, node_timeout_us) / MS);
}

static int check_schedule(struct core_config *config, uint32_t node_timeout_ms, struct quorlock_error *error)
{
    uint64_t allowance_us = validity_allowance_us(config->lease_us, config->drift_ppm, config->drift_fixed_us);
    uint64_t margin_us = config->holder.lost_margin_us;
    uint64_t useful_us = validity_sub(config->lease_us, allowance_us);
    uint64_t renew_us = config->holder.renew_us == CORE_NEVER ? 0 : config->holder.renew_us;

    if (margin_us == 0) {
        margin_us = validity_lost_margin_us(config->lease_us, config->drift_ppm, config->drift_fixed_us);
        /* A lease of a few milliseconds has no room for the usual margin. */
        if (margin_us > useful_us / 4) config->holder.lost_margin_us = margin_us = useful_us / 4;
    }
    config->node_timeout_us = (uint64_t)node_timeout_ms * MS;
    if (node_timeout_ms == 0) {
        config->node_timeout_us =
            default_node_timeout_us(config->lease_us, validity_sub(useful_us, renew_us + margin_us));
    }
    if (margin_us > 0 && margin_us <= margin_max_us(config, config->node_timeout_us)) return 0;
    if (renew_us + margin_us >= useful_us) {
        return REFUSE(
            error,
            "renewal begins after %llu ms and a loss is reported %llu ms before the end, but the lease of %llu "
            "ms has only %llu beside the allowance for drift. Choose a longer lease",
            (unsigned long long)(renew_us / MS), (unsigned long long)(margin_us / MS),
            (unsigned long long)(config->lease_us / MS), (unsigned long long)(useful_us / MS));
    }
    return REFUSE(
        error,
        "a renewal could come too late: it begins after %llu ms, may take two node timeouts of %llu ms, and a "
        "loss is reported %llu ms before the end; of the lease of %llu ms, %llu are left for that beside the "
        "allowance for drift. Choose a longer lease, or a node timeout of at most %llu ms",
        (unsigned long long)(renew_us / MS), (unsigned long long)(config->node_timeout_us / MS),
        (unsigned long long)(margin_us / MS), (unsigned long long)(config->lease_us / MS),
        (unsigned long long)(useful_us / MS), (unsigned long long)((useful_us - renew_us - margin_us) / 2 / MS));
}

/* Each renewal of a lock renews its counter, too. A counter with a shorter life than the lease could expire while the
 * lock is held, and the next token might be lower. */
static int check_fence_ttl(const struct quorlock_lock_options *options, uint32_t max_lease_ms,
                           struct quorlock_error *error)
{
    if (options->fence_ttl_ms == 0 || options->fence_ttl_ms >= max_lease_ms) return 0;
    return REFUSE(error,
                  "fence_ttl_ms is %u: at least max_lease_ms, %u, so that no counter ends while its lock is held",
                  options->fence_ttl_ms, max_lease_ms);
}

static int check_min_valid(const struct core_config *config, const struct quorlock_lock_options *options,
                           struct quorlock_error *error)
{
    uint64_t useful_us = validity_sub(
        config->lease_us, validity_allowance_us(config->lease_us, config->drift_ppm, config->drift_fixed_us));

    if (config->holder.min_valid_us < useful_us) return 0;
    return REFUSE(error,
                  "min_valid_ms is %u, but of the lease of %u ms only %llu are left after the "
                  "allowance for drift: no grant could be that good",
                  options->min_valid_ms, options->lease_ms, (unsigned long long)(useful_us / MS));
}

/* A bit for each key. */
static uint64_t mask_of(size_t n_keys)
{
    assert(n_keys > 0 && n_keys <= QUORLOCK_KEYS_MAX);
    return n_keys >= 64 ? UINT64_MAX : (UINT64_C(1) << n_keys) - 1;
}

/* Rule 10.4. The lease covers the keep time: after the death of its owner nobody else keeps the keys. */
static int check_keep(const struct quorlock_lock_options *options, const struct quorlock_client_options *client,
                      struct quorlock_error *error)
{
    uint32_t keep_ms = options->keep_ms;
    uint32_t most_ms = client->max_lease_ms;

    if (keep_ms == 0) return 0;
    if (client->dialect == QUORLOCK_DIALECT_REDISSON) {
        return caller_fail(error, QUORLOCK_ERR_UNSUPPORTED,
                           "the redisson dialect has no keep_ms: leave keep_ms out, or use the plain dialect");
    }
    if (options->permits != 0 || options->shared != 0) {
        return REFUSE(error, "keep_ms is for exclusive locks without permits: choose one of both");
    }
    if (keep_ms > most_ms) {
        return REFUSE(error, "keep_ms is %u: at most max_lease_ms, %u. Raise max_lease_ms for all clients of the nodes",
                      keep_ms, most_ms);
    }
    if (options->lease_ms == 0 || keep_ms <= options->lease_ms) return 0;
    return REFUSE(error,
                  "keep_ms is %u, but the lease has only %u ms: the lease keeps the keys if their owner dies. Choose a "
                  "longer lease",
                  keep_ms, options->lease_ms);
}

static int check_fair(const struct quorlock_lock_options *options, const struct quorlock_client_options *client,
                      struct quorlock_error *error)
{
    if (options->fair == 0 || client->dialect != QUORLOCK_DIALECT_REDISSON) return 0;
    return caller_fail(error, QUORLOCK_ERR_UNSUPPORTED,
                       "the redisson dialect has no fair waiting: leave fair out, or use the plain dialect");
}

/* A lease that was not chosen is made long enough to keep the keys. */
static uint32_t default_lease_ms(uint32_t keep_ms, uint32_t most_ms)
{
    assert(keep_ms <= most_ms);
    if (keep_ms > QUORLOCK_LEASE_MS_DEFAULT) return keep_ms;
    return most_ms < QUORLOCK_LEASE_MS_DEFAULT ? most_ms : QUORLOCK_LEASE_MS_DEFAULT;
}

/* Check permits, shared keys and the keep time. */
static int options_check_mode(const struct quorlock_lock_options *options, const struct quorlock_client_options *client,
                              size_t n_keys, struct quorlock_error *error)
{
    uint64_t keys = mask_of(n_keys);
    int status = check_keep(options, client, error);

    if (status == 0) status = check_fair(options, client, error);
    if (status != 0 || (options->permits == 0 && options->shared == 0)) return status;
    if (client->dialect == QUORLOCK_DIALECT_REDISSON) {
        return caller_fail(error, QUORLOCK_ERR_UNSUPPORTED,
                           "the redisson dialect has neither permits nor shared locks: Redisson's own have other rules "
                           "and are left alone. Use the plain dialect");
    }
    if (options->permits > QUORLOCK_PERMITS_MAX)
        return REFUSE(error, "permits is %u: 1 to %d", options->permits, QUORLOCK_PERMITS_MAX);
    if (options->permits != 0 && options->shared != 0)
        return REFUSE(error,
                      "a lock with permits is one of several holders, and not shared beside: choose one of both");
    if (options->permits != 0 && n_keys != 1)
        return REFUSE(error, "permits belong to one name, but %zu keys are given", n_keys);
    if (options->shared != QUORLOCK_SHARED_ALL && (options->shared & ~keys) != 0)
        return REFUSE(error, "shared has bits for more than the %zu keys", n_keys);
    return 0;
}

static void config_set_mode(struct core_config *config, const struct quorlock_lock_options *options, size_t n_keys)
{
    config->permits = options->permits;
    config->shared = options->shared & mask_of(n_keys);
    config->reads = options->shared != 0 && config->shared == mask_of(n_keys);
    config->holder.keep_us = (uint64_t)options->keep_ms * MS;
    config->fair = options->fair != 0;
    assert(!config->reads || config->permits == 0);
}

static uint32_t renew_grid_us(uint64_t renew_us)
{
    assert(renew_us > 0);
    if (renew_us == CORE_NEVER) return 0;
    return renew_us / RENEW_GRID_PART < RENEW_GRID_US_MAX ? (uint32_t)(renew_us / RENEW_GRID_PART) : RENEW_GRID_US_MAX;
}

/* What the core relies on. */
static void config_check(const struct core_config *config)
{
    (void)config; /* without assertions */
    assert(config->node_timeout_us > 0 && config->node_timeout_us < CORE_TIME_MAX_US);
    assert(config->holder.renew_us == CORE_NEVER || config->holder.renew_us < config->lease_us);
    assert(config->holder.min_valid_us < config->lease_us && config->holder.lost_margin_us < config->lease_us);
    assert(!config->reads || config->shared != 0);
    assert(config->permits == 0 || config->shared == 0);
    assert(config->holder.keep_us == 0 || (config->permits == 0 && config->shared == 0));
}

uint64_t options_wait_us(uint32_t wait_ms)
{
    if (wait_ms == 0) return CORE_NEVER;
    return wait_ms == QUORLOCK_TRY_ONCE ? 0 : (uint64_t)wait_ms * MS;
}

/* Rule 4.6. */
int options_lock(struct core_config *ret, struct quorlock_lock_options *ret_options,
                 const struct quorlock_client_options *client, const char *const *keys, size_t n_keys,
                 const struct quorlock_lock_options *given, struct quorlock_error *error)
{
    struct quorlock_lock_options options = {.size = sizeof(options)};
    struct core_config config = {.n_nodes = (uint32_t)client->n_nodes,
                                 .quorum = options_quorum(client->policy, (uint32_t)client->n_nodes),
                                 .drift_ppm = client->drift_ppm,
                                 .connect_us = (uint64_t)client->connect_timeout_ms * MS,
                                 .drift_fixed_us = (uint64_t)client->drift_fixed_ms * MS};
    uint32_t most_ms = client->max_lease_ms;
    int status = 0;

    if (given != NULL)
        status = caller_copy(&options, sizeof(options), given, given->size, "quorlock_lock_options", error);
    if (status == 0) status = options_check_keys(client, keys, n_keys, error);
    if (status == 0) status = check_owner(options.owner, error);
    if (status == 0) status = check_lock_label(&options, client, error);
    if (status == 0) status = check_fence_ttl(&options, most_ms, error);
    if (status == 0) status = options_check_mode(&options, client, n_keys, error);
    if (status != 0) return status;
    options_fill(&options.fence_ttl_ms, QUORLOCK_FENCE_TTL_MS_DEFAULT);
    options_fill(&options.lease_ms, default_lease_ms(options.keep_ms, most_ms));
    status = check_range("the lease in ms", options.lease_ms, QUORLOCK_LEASE_MS_MIN, most_ms, error);
    if (status != 0) return status;
    config.lease_us = (uint64_t)options.lease_ms * MS;
    config.holder.renew_us = renew_us_of(config.lease_us, options.renew_ms);
    config.holder.renew_grid_us = renew_grid_us(config.holder.renew_us);
    config.holder.wait_us = options_wait_us(options.wait_ms);
    config.holder.min_valid_us = (uint64_t)options.min_valid_ms * MS;
    config.holder.lost_margin_us = (uint64_t)options.lost_margin_ms * MS;
    config.fencing = options.fencing != 0;
    config_set_mode(&config, &options, n_keys);
    config.told = client->guard != QUORLOCK_GUARD_OFF && n_keys == 1 && config.permits == 0 && config.shared == 0;
    config.holder.max_hold_us = options.max_hold_ms == 0 ? CORE_NEVER : (uint64_t)options.max_hold_ms * MS;
    status = check_schedule(&config, client->node_timeout_ms, error);
    if (status == 0) status = check_min_valid(&config, &options, error);
    if (status != 0) return status;
    config_check(&config);
    *ret = config;
    *ret_options = options;
    return 0;
}
