/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin/diagnose.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redis/guard_sets.h"
#include "runtime/options.h"

#define PER_NODE         40u
#define ALL_TOGETHER     4u
#define CLOCK_MOST_US    100000 /* a time daemon does not cause more */
#define CLOCK_LEAST_US   2000
#define CLOCK_LEASE_PART 20 /* of the longest lease */

#define RIGHT(name)     (1u << EXAMINE_##name)
#define RIGHTS_TRACKING (RIGHT(TRACKING) | RIGHT(CACHING) | RIGHT(HELLO))
#define RIGHTS_OPTIONAL                                                                                                \
    (RIGHT(TYPE) | RIGHT(PUBLISH) | RIGHT(SETNAME) | RIGHT(EXISTS) | RIGHT(MSETEX) | RIGHTS_TRACKING)

#define REMEDY_BOOTSTRAP "quorlock bootstrap, if no lock is held on any of the nodes; else wait"
#define REMEDY_RECONFIGURE                                                                                             \
    "give every client the same nodes and the same max lease; to change the guards instead: quorlock "                 \
    "bootstrap --reconfigure"

#define BY_FILE " in its configuration file, and restart it (it has no command CONFIG)"
enum remedy { REMEDY_AOF, REMEDY_FSYNC, REMEDY_POLICY, REMEDY_MEMORY, REMEDY_CLIENTS, REMEDY_IDLE };

size_t diagnose_room(uint32_t n_nodes)
{
    return (size_t)n_nodes * PER_NODE + ALL_TOGETHER;
}

/* diagnose_add - add a finding. */
__attribute__((format(printf, 6, 7))) static void diagnose_add(struct diagnosis *diagnosis, int severity,
                                                               const char *code, const struct diagnose_node *node,
                                                               const char *remedy, const char *format, ...)
{
    struct diagnose_words *words;
    va_list args;

    /* There is room for all. If that were wrong, the last finding would be overwritten. */
    if (diagnosis->n_findings == diagnosis->room) diagnosis->n_findings--;
    words = &diagnosis->words[diagnosis->n_findings];
    snprintf(words->remedy, sizeof(words->remedy), "%s", remedy);
    va_start(args, format);
    vsnprintf(words->text, sizeof(words->text), format, args);
    va_end(args);
    words->finding = (struct quorlock_finding){.severity = severity,
                                               .code = code,
                                               .node = node != NULL ? node->name : NULL,
                                               .text = words->text,
                                               .remedy = words->remedy};
    diagnosis->findings[diagnosis->n_findings++] = &words->finding;
}

/* length_text - write a time, as "250 ms" or "12.3 s". */
static const char *length_text(char *ret, size_t size, int64_t ms)
{
    if (ms < 1000) {
        snprintf(ret, size, "%" PRId64 " ms", ms);
    } else {
        snprintf(ret, size, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
    }
    return ret;
}

static bool is_master(const struct examine_facts *facts)
{
    return strcmp(facts->role, "master") == 0 && strcmp(facts->mode, "cluster") != 0 &&
           strcmp(facts->mode, "sentinel") != 0;
}

bool diagnose_has_tracking(const struct examine_facts *facts)
{
    return (facts->refused_rights & (RIGHTS_TRACKING | RIGHT(EXISTS))) == 0;
}

/* The version tells it only of a server that permits INFO; clients cannot use the others anyway. */
bool diagnose_has_msetex(const struct examine_facts *facts)
{
    return facts->version[0] != '\0' && ((facts->refused_rights | facts->unknown_rights) & RIGHT(MSETEX)) == 0;
}

/* can_vote - return whether clients count its votes, now or when a quarantine is over. */
static bool can_vote(const struct examine_facts *facts)
{
    return facts->reachable && is_master(facts) && !facts->too_old && facts->write_error[0] == '\0' &&
           facts->no_lua[0] == '\0' && !facts->no_database && (facts->refused_rights & ~RIGHTS_OPTIONAL) == 0 &&
           (facts->refused_names & (1u << EXAMINE_GUARD)) == 0 &&
           (facts->guard.state == EXAMINE_GUARD_THERE || facts->guard.state == EXAMINE_GUARD_NONE);
}

void diagnose_list_rights(char *ret, size_t size, uint32_t rights, bool rule)
{
    size_t used = 0;

    ret[0] = '\0';
    for (unsigned right = 0; right < EXAMINE_RIGHTS; right++) {
        const char *text = examine_right_text((enum examine_right)right);
        int n;

        if ((rights & (1u << right)) == 0) continue;
        n = snprintf(ret + used, size - used, "%s%s", used == 0 ? "" : rule ? " " : ", ", rule ? "+" : "");
        if (n < 0 || (size_t)n >= size - used) return;
        used += (size_t)n;
        for (; *text != '\0' && used + 1 < size; text++) {
            char letter = *text;

            if (rule && letter == ' ') letter = '|';
            if (rule && letter >= 'A' && letter <= 'Z') letter = (char)(letter - 'A' + 'a');
            ret[used++] = letter;
        }
        ret[used] = '\0';
    }
}

/* ---- the kind of server ---- */

static void judge_kind(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (strcmp(facts->mode, "cluster") == 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "cluster", node,
                     "list independent masters, with cluster-enabled no",
                     "it is a node of a Redis Cluster, not an independent master: a failover loses locks");
    }
    if (strcmp(facts->role, "replica") == 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "replica", node,
                     "list independent masters only, or REPLICAOF NO ONE",
                     "it is a replica: it cannot grant locks, and would repeat the vote of its master");
    }
    if (facts->replicas > 0 && is_master(facts)) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_NOTE, "replicas", node,
                     "detach the replicas; or, if one is promoted, give it the address of its master",
                     "%u replica%s attached: a promoted replica lacks the newest locks, and the guard quarantines it",
                     facts->replicas, facts->replicas == 1 ? " is" : "s are");
    }
    if (facts->too_old) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "version", node, "install Redis 6.2, Valkey 7.2 or newer",
                     "%s %s is too old: clients refuse it", facts->kind, facts->version);
    }
}

/* ---- its memory and its disk ---- */

/* The remedies that change settings of the server: with CONFIG, and where the server has no such command. */
static const char *const remedies[][2] = {
    [REMEDY_AOF] = {"CONFIG SET appendonly yes, CONFIG SET appendfsync always, CONFIG REWRITE",
                    "set appendonly yes and appendfsync always" BY_FILE},
    [REMEDY_IDLE] = {"CONFIG SET timeout 0, CONFIG REWRITE", "set timeout 0" BY_FILE},
    [REMEDY_FSYNC] = {"allow CONFIG GET, and set appendfsync always", "set appendfsync always" BY_FILE},
    [REMEDY_POLICY] = {"CONFIG SET maxmemory-policy noeviction, CONFIG REWRITE",
                       "set maxmemory-policy noeviction" BY_FILE},
    [REMEDY_MEMORY] = {"CONFIG SET maxmemory to more, or use other servers for locks",
                       "use other servers for locks, or set maxmemory to more" BY_FILE},
    [REMEDY_CLIENTS] = {"CONFIG SET maxclients to more; CLIENT LIST shows who is connected",
                        "CLIENT LIST shows who is connected; or set maxclients to more" BY_FILE},
};

static const char *remedy_of(const struct examine_facts *facts, enum remedy remedy)
{
    return remedies[remedy][facts->no_config];
}

static void judge_memory(const struct diagnose_set *set, struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (!facts->has_memory || facts->maxmemory == 0) return;
    if (strcmp(facts->policy, "noeviction") != 0) {
        diagnose_add(diagnosis, set->allow_eviction ? QUORLOCK_SEVERITY_WARNING : QUORLOCK_SEVERITY_UNSAFE, "eviction",
                     node, remedy_of(facts, REMEDY_POLICY),
                     "maxmemory-policy is %s: when %" PRIu64 " bytes are used, it evicts locks that are held",
                     facts->policy, facts->maxmemory);
    }
    if (facts->used_memory / 9 >= facts->maxmemory / 10) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "memory", node, remedy_of(facts, REMEDY_MEMORY),
                     "%" PRIu64 " of %" PRIu64 " bytes of maxmemory are used: when all are used, the node can "
                     "grant no locks",
                     facts->used_memory, facts->maxmemory);
    }
}

static void judge_persistence(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (!facts->has_persistence || !is_master(facts)) return;
    if (!facts->aof) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "persistence", node, remedy_of(facts, REMEDY_AOF),
                     "appendonly is off: a restart loses its locks. The guard makes that safe, at the cost of "
                     "a quarantine");
        return;
    }
    if (facts->aof_broken) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "persistence", node,
                     "read the log of the server; is its disk full?",
                     "the append-only file could not be written: a restart loses the newest locks");
    }
    if (facts->appendfsync[0] == '\0') {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_NOTE, "persistence", node, remedy_of(facts, REMEDY_FSYNC),
                     "appendfsync could not be read (CONFIG GET is refused): unless it is always, a crash of "
                     "the machine loses the newest locks");
    } else if (strcmp(facts->appendfsync, "always") != 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "persistence", node, remedy_of(facts, REMEDY_AOF),
                     "appendfsync is %s: a crash of the machine loses the newest locks. The guard makes that "
                     "safe, at the cost of a quarantine",
                     facts->appendfsync);
    }
}

static void judge_writes(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    if (node->facts->write_error[0] == '\0') return;
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "writes", node,
                 "mend the fault that the server reports: its disk (read its log), maxmemory, or "
                 "min-replicas-to-write",
                 "it refuses to write, so it cannot vote: %s", node->facts->write_error);
}

static void judge_scripts(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    if (node->facts->no_lua[0] == '\0') return;
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "scripts", node,
                 "restart the server, or MODULE LOAD its module lua", "it runs no scripts, so it cannot vote: %s",
                 node->facts->no_lua);
}

/* ---- its guard ---- */

static bool diagnose_is_hash(const char *set)
{
    return strlen(set) == 16 && strspn(set, "0123456789abcdef") == 16;
}

/* reference - return the first node with a guard, or NULL. Other guards are compared with it if the caller expects
 * nothing else. */
static const struct diagnose_node *reference(const struct diagnose_set *set)
{
    for (uint32_t i = 0; i < set->n_nodes; i++) {
        const struct examine_facts *facts = set->nodes[i].facts;

        if (facts->reachable && facts->guard.state == EXAMINE_GUARD_THERE) return &set->nodes[i];
    }
    return NULL;
}

static void judge_guard_set(const struct diagnose_set *set, struct diagnosis *diagnosis,
                            const struct diagnose_node *node)
{
    const struct examine_guard *guard = &node->facts->guard;
    const struct diagnose_node *first = reference(set);
    const struct examine_guard *first_guard = &first->facts->guard;
    char remedy[DIAGNOSE_REMEDY_SIZE];

    if (strcmp(guard->set, set->set) == 0) return;
    if (!set->named && diagnose_is_hash(guard->set)) {
        diagnose_add(
            diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-set", node,
            "write the addresses in the same way in all clients; or name the set: quorlock bootstrap --reconfigure "
            "--set-name NAME, then --set-name NAME at all clients",
            "its guard was made by a client that writes the addresses in another way, or lists another server: clients "
            "of the two lists do not exclude each other");
    } else if (set->named) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-set", node, REMEDY_RECONFIGURE " --set-name NAME",
                     "its guard is for %s%s, and not for %s: clients of the two sets do not exclude each other",
                     diagnose_is_hash(guard->set) ? "a set without a name" : "the set ",
                     diagnose_is_hash(guard->set) ? "" : guard->set, set->set);
    } else if (strcmp(guard->set, first_guard->set) != 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-set", node, REMEDY_RECONFIGURE,
                     "its guard is for the set %s, and that of %s is for %s", guard->set, first->name,
                     first_guard->set);
    } else {
        snprintf(remedy, sizeof(remedy), "give --set-name %s", guard->set);
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_NOTE, "guard-set", node, remedy,
                     "its guard is for the set %s: it refuses clients without that name", guard->set);
    }
}

static void judge_guard_agrees(const struct diagnose_set *set, struct diagnosis *diagnosis,
                               const struct diagnose_node *node)
{
    const struct examine_guard *guard = &node->facts->guard;
    const struct diagnose_node *first = reference(set);
    uint32_t wanted_ms = set->max_lease_ms != 0 ? set->max_lease_ms : first->facts->guard.max_lease_ms;

    if (guard->n_nodes == 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-nodes", node,
                     "run the same 'quorlock bootstrap --reconfigure' again, until it ends with 0",
                     "a reconfiguration was not finished: the node refuses all clients");
    } else if (guard->n_nodes != set->n_nodes) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-nodes", node, REMEDY_RECONFIGURE,
                     "its guard is for %u nodes, and %u are listed here: two majorities may have no node in common",
                     guard->n_nodes, set->n_nodes);
    }
    judge_guard_set(set, diagnosis, node);
    if (guard->max_lease_ms != wanted_ms) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "guard-lease", node, REMEDY_RECONFIGURE,
                     "its guard is for leases up to %u ms, and %s %u ms: a lease may last longer than a quarantine",
                     guard->max_lease_ms, set->max_lease_ms != 0 ? "our max lease is" : "another node's for",
                     wanted_ms);
    }
}

/* guards_of - judge all guards together. UNKNOWN: a node that was not reached may have let clients vote. Bootstrap
 * finds that out before it writes. */
static enum guard_set guards_of(const struct diagnose_set *set)
{
    const struct diagnose_node *first = reference(set);
    uint32_t lease_ms = first != NULL ? first->facts->guard.max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT;
    struct guard_sets sets = {0};

    for (uint32_t i = 0; i < set->n_nodes; i++) {
        const struct examine_facts *facts = set->nodes[i].facts;
        const struct examine_guard *guard = &facts->guard;
        bool none = guard->state == EXAMINE_GUARD_NONE, there = guard->state == EXAMINE_GUARD_THERE;
        enum guard_set one = none || guard->first_ms != 0 ? GUARD_SET_FIRST : GUARD_SET_OLDER;

        guard_sets_add(&sets, facts->reachable && (none || there) ? one : GUARD_SET_UNKNOWN,
                       none ? (uint64_t)lease_ms + 1 : guard->first_ms);
    }
    return guard_sets_judge(&sets, lease_ms);
}

static const char *remedy_of_quarantine(const struct diagnose_set *set, enum quarantine_cause cause)
{
    if (cause == QUARANTINE_CLIENT)
        return "quorlock bootstrap, if no client with that max lease holds a lock; else wait. Give all clients the "
               "same max lease";
    if (cause == QUARANTINE_FIRST && guards_of(set) != GUARD_SET_OLDER) return REMEDY_BOOTSTRAP;
    return "none is needed: it ends by itself";
}

static void judge_quarantine(const struct diagnose_set *set, struct diagnosis *diagnosis,
                             const struct diagnose_node *node)
{
    const struct examine_guard *guard = &node->facts->guard;
    const char *remedy = remedy_of_quarantine(set, guard->cause);
    char left[32], why[DIAGNOSE_TEXT_SIZE - 64];

    if (guard->quarantine_ms <= 0) return;
    length_text(left, sizeof(left), guard->quarantine_ms);
    if (guard->stale && guard->cause == QUARANTINE_REPLICATION) {
        diagnose_add(
            diagnosis, QUORLOCK_SEVERITY_WARNING, "quarantine", node, "none is needed: it ends by itself",
            "its replication id changed since a client last saw it, so its votes may be ignored for %s from the "
            "next contact on: " QUARANTINE_ID_CHANGES,
            left);
        return;
    }
    if (guard->stale && guard->cause == QUARANTINE_RESTART) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "quarantine", node, remedy,
                     "it was restarted since a client last saw it: its votes will be ignored for %s from the next "
                     "contact on, because it may have lost its locks",
                     left);
        return;
    }
    quarantine_describe(why, sizeof(why), guard->cause, guard->wanted_ms, guard->until_ms, guards_of(set));
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "quarantine", node, remedy,
                 "quarantined for %s more, its votes are ignored: %s", left, why);
}

static void judge_missing(const struct diagnose_set *set, struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    if (guards_of(set) == GUARD_SET_OLDER) {
        diagnose_add(
            diagnosis, QUORLOCK_SEVERITY_WARNING, "guard-missing", node,
            "none is needed: the next client quarantines it",
            "it has no guard, and other nodes have one: it lost its data, and its votes will be ignored for one max "
            "lease from the next contact on");
    } else {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "guard-missing", node, REMEDY_BOOTSTRAP,
                     "it has no guard yet: the first client waits one max lease, because locks may be held");
    }
}

static void judge_guard(const struct diagnose_set *set, struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (!is_master(facts) || facts->no_database) return;
    switch (facts->guard.state) {
    case EXAMINE_GUARD_UNKNOWN:
        /* If the right is missing, judge_rights or judge_names reports it. */
        if ((facts->refused_names & (1u << EXAMINE_GUARD)) != 0 || (facts->refused_rights & RIGHT(GET)) != 0) return;
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "guard-unread", node,
                     "wait until the server has loaded its data; check that quorlock:guard is a string",
                     "its guard could not be read: %s",
                     facts->guard_error[0] != '\0' ? facts->guard_error : "unexpected reply");
        break;
    case EXAMINE_GUARD_NONE: judge_missing(set, diagnosis, node); break;
    case EXAMINE_GUARD_FOREIGN:
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "guard-format", node,
                     "use the newest quorlock everywhere; or, if no program needs the key, DEL quorlock:guard",
                     "the key quorlock:guard has no guard that this version can read: clients refuse the node");
        break;
    case EXAMINE_GUARD_THERE:
        judge_guard_agrees(set, diagnosis, node);
        judge_quarantine(set, diagnosis, node);
        break;
    }
}

/* ---- missing rights ---- */

/* The server knows best: a certificate may be a user, too. */
static const char *diagnose_user(const struct diagnose_node *node)
{
    if (node->facts->user[0] != '\0') return node->facts->user;
    return node->user != NULL ? node->user : "default";
}

static void judge_database(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const char *user = diagnose_user(node);
    char remedy[DIAGNOSE_REMEDY_SIZE];

    if (!node->facts->no_database) return;
    snprintf(remedy, sizeof(remedy), "ACL SETUSER %s alldbs", user);
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "rights", node, remedy,
                 "user \"%s\" may not use this database: it cannot vote for us", user);
}

static void judge_rights(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    static const struct {
        uint32_t rights;
        int severity;
        const char *effect;
    } kinds[] = {
        {~RIGHTS_OPTIONAL, QUORLOCK_SEVERITY_WARNING, "it cannot vote for us"},
        {RIGHT(PUBLISH), QUORLOCK_SEVERITY_NOTE, "waiters get no release notices, and poll"},
        {RIGHTS_TRACKING, QUORLOCK_SEVERITY_WARNING,
         "it cannot tell clients that its guard is gone, so after FLUSHALL it votes for a second owner (but with "
         "--guard strict)"},
        {RIGHT(EXISTS), QUORLOCK_SEVERITY_NOTE,
         "holders learn at their next renewal only, and waiters by polls, that a lock was deleted"},
        {RIGHT(MSETEX), QUORLOCK_SEVERITY_NOTE,
         "lists of keys, and fenced or strict locks taken together, cost it twice the CPU"},
        {RIGHT(TYPE), QUORLOCK_SEVERITY_NOTE, "quorlock break fails"},
        {RIGHT(SETNAME), QUORLOCK_SEVERITY_NOTE, "our connections have no name in CLIENT LIST"}};
    const uint32_t refused = node->facts->refused_rights;
    const char *user = diagnose_user(node);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const uint32_t unknown = kinds[i].rights & refused & node->facts->unknown_rights;
        const uint32_t denied = kinds[i].rights & refused & ~unknown;
        char list[160], remedy[DIAGNOSE_REMEDY_SIZE];

        if (denied != 0) {
            diagnose_list_rights(list, sizeof(list), denied, true);
            snprintf(remedy, sizeof(remedy), "ACL SETUSER %s %s", user, list);
            diagnose_list_rights(list, sizeof(list), denied, false);
            diagnose_add(diagnosis, kinds[i].severity, "rights", node, remedy, "user \"%s\" may not run %s: %s", user,
                         list, kinds[i].effect);
        }
        if (unknown != 0) {
            diagnose_list_rights(list, sizeof(list), unknown, false);
            diagnose_add(diagnosis, kinds[i].severity, "rights", node,
                         "undo its rename-command; or connect to the server itself, where a proxy is in between",
                         "it has no command %s: %s", list, kinds[i].effect);
        }
    }
}

static void judge_names(const struct diagnose_set *set, struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    static const struct {
        const char *what, *name, *effect,
            *rule; /* the prefix stands before the name, and behind the sign of the rule */
        int severity;
    } names[EXAMINE_NAMES] = {
        [EXAMINE_LOCK] = {"every key", "", "locks outside the patterns of this user are refused", "~KEY",
                          QUORLOCK_SEVERITY_WARNING},
        [EXAMINE_GUARD] = {"the key", "quorlock:guard", "it cannot vote for us", "~quorlock:guard",
                           QUORLOCK_SEVERITY_WARNING},
        [EXAMINE_FENCE] = {"every key", "quorlock:fence:KEY", "locks on other keys get no fencing tokens",
                           "~quorlock:fence:*", QUORLOCK_SEVERITY_WARNING},
        [EXAMINE_CHANNEL] = {"the channels", "quorlock:released:KEY", "waiters get no release notices, and poll",
                             "&quorlock:released:*", QUORLOCK_SEVERITY_NOTE},
    };
    const uint32_t refused = node->facts->refused_names;
    const char *user = diagnose_user(node);

    for (unsigned i = 0; i < EXAMINE_NAMES; i++) {
        /* A user that may use the guard was set up for quorlock. If its locks are limited to some keys, that is
         * intended. */
        bool meant = (refused & (1u << EXAMINE_GUARD)) == 0 && (refused & (1u << EXAMINE_LOCK)) != 0;
        const char *prefix = i == EXAMINE_GUARD ? "" : set->prefix;
        const char *name = i == EXAMINE_LOCK && *prefix != '\0' ? "KEY" : names[i].name;
        char remedy[DIAGNOSE_REMEDY_SIZE];

        if ((refused & (1u << i)) == 0) continue;
        snprintf(remedy, sizeof(remedy), "ACL SETUSER %s %c%s%s", user, *names[i].rule, prefix, names[i].rule + 1);
        diagnose_add(diagnosis, meant ? QUORLOCK_SEVERITY_NOTE : names[i].severity, "names", node, remedy,
                     "user \"%s\" may not use %s%s%s%s: %s", user, names[i].what, *name != '\0' ? " " : "", prefix,
                     name, names[i].effect);
    }
}

static void judge_connection(struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (!facts->loopback && !facts->tls) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_NOTE, "plain-text", node,
                     "use a private network, or rediss:// with its tls-port",
                     "the connection is not encrypted: password, keys and tokens can be read on the way");
    }
    if (facts->idle_s[0] != '\0' && strcmp(facts->idle_s, "0") != 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_NOTE, "idle-limit", node, remedy_of(facts, REMEDY_IDLE),
                     "it ends connections that were quiet for %s s (timeout): after each such end a holder is not told "
                     "for up to a second that its key is gone",
                     facts->idle_s);
    }
    if (facts->has_clients && facts->maxclients > 0 &&
        (uint64_t)facts->clients * 10 >= (uint64_t)facts->maxclients * 8) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "clients", node, remedy_of(facts, REMEDY_CLIENTS),
                     "%u of %u clients are connected: above that number clients are refused", facts->clients,
                     facts->maxclients);
    }
}

static void judge_node(const struct diagnose_set *set, struct diagnosis *diagnosis, const struct diagnose_node *node)
{
    const struct examine_facts *facts = node->facts;

    if (!facts->reachable) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "unreachable", node,
                     "start the server; check the network, the address and the password", "%s",
                     facts->error[0] != '\0' ? facts->error : "no answer");
        return;
    }
    if (strcmp(facts->mode, "sentinel") == 0) {
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "sentinel", node, "give the address of the server itself",
                     "it is a Sentinel, not a Redis server: it has no keys");
        return;
    }
    judge_kind(diagnosis, node);
    judge_memory(set, diagnosis, node);
    judge_persistence(diagnosis, node);
    judge_writes(diagnosis, node);
    judge_scripts(diagnosis, node);
    judge_guard(set, diagnosis, node);
    judge_database(diagnosis, node);
    judge_rights(diagnosis, node);
    judge_names(set, diagnosis, node);
    judge_connection(diagnosis, node);
}

/* ---- all together ---- */

static void judge_twins(const struct diagnose_set *set, struct diagnosis *diagnosis)
{
    for (uint32_t i = 1; i < set->n_nodes; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const struct examine_facts *one = set->nodes[k].facts, *two = set->nodes[i].facts;

            if (two->run_id[0] == '\0' || strcmp(one->run_id, two->run_id) != 0) continue;
            diagnose_add(diagnosis, QUORLOCK_SEVERITY_UNSAFE, "same-server", &set->nodes[i], "list each server once",
                         "%s and %s are one server: it would vote twice", set->nodes[k].name, set->nodes[i].name);
            break;
        }
    }
}

static int64_t clock_limit_us(const struct diagnose_set *set)
{
    const struct diagnose_node *first = reference(set);
    uint32_t lease_ms = set->max_lease_ms != 0 ? set->max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT;
    int64_t limit_us;

    if (first != NULL) lease_ms = first->facts->guard.max_lease_ms;
    limit_us = (int64_t)lease_ms * 1000 / CLOCK_LEASE_PART;
    if (limit_us > CLOCK_MOST_US) return CLOCK_MOST_US;
    return limit_us < CLOCK_LEAST_US ? CLOCK_LEAST_US : limit_us;
}

static bool has_clock(const struct diagnose_node *node)
{
    return node->facts->reachable && node->facts->has_clock;
}

static bool is_off(const struct diagnose_node *node, int64_t limit_us)
{
    int64_t off_us = node->facts->offset_us;

    if (off_us < 0) off_us = -off_us;
    return off_us > limit_us + node->facts->offset_error_us;
}

static void judge_clock(struct diagnosis *diagnosis, const struct diagnose_node *node, int64_t offset_us,
                        const char *whose)
{
    char off[32];

    length_text(off, sizeof(off), (offset_us < 0 ? -offset_us : offset_us) / 1000);
    diagnose_add(
        diagnosis, QUORLOCK_SEVERITY_WARNING, "clock", node,
        "run a time daemon (chrony, ntpd) on both, which slews and never steps",
        "%s clock is %s %s this machine's: quarantines and fencing tokens depend on these clocks, and a step of a "
        "clock ends leases early or late",
        whose, off, offset_us > 0 ? "ahead of" : "behind");
}

/* judge_clocks - compare the clocks. If the nodes' clocks agree with each other but not with ours, that is one finding.
 */
static void judge_clocks(const struct diagnose_set *set, struct diagnosis *diagnosis)
{
    const struct diagnose_node *low = NULL, *high = NULL;
    int64_t limit_us = clock_limit_us(set);
    uint32_t n_clocks = 0, n_off = 0;
    bool agree;

    for (uint32_t i = 0; i < set->n_nodes; i++) {
        const struct diagnose_node *node = &set->nodes[i];

        if (!has_clock(node)) continue;
        n_clocks++;
        n_off += is_off(node, limit_us);
        if (low == NULL || node->facts->offset_us < low->facts->offset_us) low = node;
        if (high == NULL || node->facts->offset_us > high->facts->offset_us) high = node;
    }
    if (low == NULL || high == NULL) return;
    agree = high->facts->offset_us - low->facts->offset_us <=
            limit_us + (int64_t)high->facts->offset_error_us + (int64_t)low->facts->offset_error_us;
    if (agree && n_clocks > 1 && n_off == n_clocks) {
        judge_clock(diagnosis, NULL, low->facts->offset_us, "every node's");
        return;
    }
    for (uint32_t i = 0; i < set->n_nodes; i++) {
        if (!has_clock(&set->nodes[i]) || !is_off(&set->nodes[i], limit_us)) continue;
        judge_clock(diagnosis, &set->nodes[i], set->nodes[i].facts->offset_us, "its");
    }
    if (!agree) {
        char apart[32];
        length_text(apart, sizeof(apart), (high->facts->offset_us - low->facts->offset_us) / 1000);
        diagnose_add(diagnosis, QUORLOCK_SEVERITY_WARNING, "clocks", NULL,
                     "run a time daemon (chrony, ntpd) on every node, with the same source",
                     "the clocks of %s and %s are %s apart", low->name, high->name, apart);
    }
}

/* vote_in_ms - return how long until its votes count; 0: now. Without a guard that time begins with the next contact.
 */
static int64_t vote_in_ms(const struct diagnose_set *set, const struct examine_facts *facts)
{
    const struct diagnose_node *first = reference(set);

    if (facts->guard.state == EXAMINE_GUARD_THERE) return facts->guard.quarantine_ms;
    if (set->max_lease_ms != 0) return (int64_t)set->max_lease_ms + 1;
    return (int64_t)(first != NULL ? first->facts->guard.max_lease_ms : QUORLOCK_LEASE_MS_DEFAULT) + 1;
}

/* quorum_by - return the node whose vote completes the quorum, when quarantines end; NULL: no quorum is possible. */
static const struct diagnose_node *quorum_by(const struct diagnose_set *set)
{
    for (uint32_t i = 0; i < set->n_nodes; i++) {
        const struct diagnose_node *node = &set->nodes[i];
        int64_t last_ms = vote_in_ms(set, node->facts);
        uint32_t sooner = 0, by_then = 0;

        if (!can_vote(node->facts)) continue;
        for (uint32_t k = 0; k < set->n_nodes; k++) {
            if (!can_vote(set->nodes[k].facts)) continue;
            sooner += vote_in_ms(set, set->nodes[k].facts) < last_ms;
            by_then += vote_in_ms(set, set->nodes[k].facts) <= last_ms;
        }
        if (sooner < set->quorum && by_then >= set->quorum) return node;
    }
    return NULL;
}

/* judge_quorum_to_come - report that there will be a quorum, but not now. */
static void judge_quorum_to_come(const struct diagnose_set *set, struct diagnosis *diagnosis,
                                 const struct diagnose_node *last)
{
    const struct examine_facts *facts = last->facts;
    bool begins = facts->guard.state == EXAMINE_GUARD_NONE || facts->guard.stale;
    bool none = facts->guard.state == EXAMINE_GUARD_NONE;
    enum quarantine_cause cause = none ? QUARANTINE_FIRST : facts->guard.cause;
    bool ends = cause == QUARANTINE_CLIENT || (cause == QUARANTINE_FIRST && guards_of(set) != GUARD_SET_OLDER);
    const char *remedy = ends ? remedy_of_quarantine(set, cause) : "wait: quarantines end by themselves";
    uint32_t voters = 0;
    char left[32];

    for (uint32_t i = 0; i < set->n_nodes; i++) {
        voters += can_vote(set->nodes[i].facts) && vote_in_ms(set, set->nodes[i].facts) <= 0;
    }
    length_text(left, sizeof(left), vote_in_ms(set, facts));
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_OUTAGE, "no-quorum", NULL, remedy,
                 "only %u of %u nodes can vote now, %u are needed: no lock can be taken for %s%s", voters, set->n_nodes,
                 set->quorum, left, begins ? " from the next contact on" : "");
}

static void judge_quorum(const struct diagnose_set *set, struct diagnosis *diagnosis)
{
    const struct diagnose_node *last = quorum_by(set);
    uint32_t reachable = 0, voters = 0;

    if (last != NULL) {
        if (vote_in_ms(set, last->facts) > 0) judge_quorum_to_come(set, diagnosis, last);
        return;
    }
    for (uint32_t i = 0; i < set->n_nodes; i++) {
        reachable += set->nodes[i].facts->reachable;
        voters += can_vote(set->nodes[i].facts);
    }
    diagnose_add(diagnosis, QUORLOCK_SEVERITY_OUTAGE, "no-quorum", NULL, "follow the remedies for the other nodes",
                 "only %u of %u nodes %s, %u are needed: no lock can be taken",
                 (reachable < set->quorum ? reachable : voters), set->n_nodes,
                 reachable < set->quorum ? "can be reached" : "can vote", set->quorum);
}

/* sort - sort by insertion, which keeps the order of equal findings. */
static void sort(struct diagnosis *diagnosis)
{
    for (size_t i = 1; i < diagnosis->n_findings; i++) {
        const struct quorlock_finding *finding = diagnosis->findings[i];
        size_t at = i;

        for (; at > 0 && diagnosis->findings[at - 1]->severity < finding->severity; at--) {
            diagnosis->findings[at] = diagnosis->findings[at - 1];
        }
        diagnosis->findings[at] = finding;
    }
}

void diagnose(const struct diagnose_set *set, struct diagnosis *ret)
{
    ret->n_findings = 0;
    judge_quorum(set, ret);
    judge_twins(set, ret);
    for (uint32_t i = 0; i < set->n_nodes; i++) judge_node(set, ret, &set->nodes[i]);
    judge_clocks(set, ret);
    sort(ret);
}

int diagnose_severity(const struct diagnosis *diagnosis)
{
    return diagnosis->n_findings > 0 ? diagnosis->findings[0]->severity : QUORLOCK_SEVERITY_NOTE;
}
