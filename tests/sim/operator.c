/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operator.c - what each kind of fault does to servers, links and machines, and what operators do
 *
 * Faults end with the phase of faults, so that liveness can be judged afterwards. Only faults that the plan lets stay
 * go on.
 */
#include "operator.h"

#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "holds.h"
#include "membership.h"
#include "peer.h"
#include "process.h"
#include "trace.h"
#include "user.h"

#define ODD_AGAIN_US 2000u
#define FLIP_BYTES   268u    /* that a master with one key sends to a new replica */
#define FORGETS_US   100000u /* the least time after which a middlebox forgets */

/* What servers run. The first tells scripts no version, and has no PEXPIRE ... GT; the last three have MSETEX. */
static const struct {
    const char *version, *valkey, *denied;
} kinds[] = {{"6.2.14", NULL, NULL}, {MODEL_VERSION, NULL, NULL}, {NULL, "8.1.4", NULL},
             {NULL, "9.1.2", NULL},  {"8.6.3", NULL, NULL},       {"8.6.3", NULL, "MSETEX"}};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct model *site_model(struct site *site)
{
    return server_model(site->world->servers[site->index]);
}

const char *site_command(struct site *site, const char *a, const char *b, const char *c, const char *d)
{
    const char *const words[] = {a, b, c, d};
    size_t n = 0;

    while (n < 4 && words[n] != NULL) n++;
    return model_do(site_model(site), server_wall_us(site->world->servers[site->index]), words, n);
}

/* ---- servers ---- */

void site_look_again(struct site *site)
{
    for (uint32_t key = 0; key < site->world->plan->n_keys; key++) holds_look_again(site, key);
}

static void start(struct site *site)
{
    struct world *world = site->world;

    queue_set(&world->queue, &site->back, NEVER);
    if (!site->down || site->gone) return;
    TRACE(world, "server %u  is up again", site->index);
    site->down = false;
    /* What was released may be there again. */
    site->late |= site->memory == SERVER_OLD;
    site->old |= site->memory == SERVER_OLD;
    if (site->memory != SERVER_KEEPS) holds_forgets(site);
    if (world->phase != PHASE_FAULTS || world_now(world) >= world->plan->active_us) site->loading_us = 0;
    server_launch(world->servers[site->index], site->memory, site->new_replid, site->loading_us);
    actions_server(site, site->memory == SERVER_KEEPS ? "restarts" : site->memory == SERVER_OLD ? "ages" : "forgets");
    site_look_again(site);
}

static void on_back(void *arg)
{
    start(arg);
}

static void crash(struct site *site, const struct plan_fault *fault, uint64_t until_us)
{
    struct world *world = site->world;
    bool old = fault->kind == FAULT_CRASH_OLD || fault->kind == FAULT_PROMOTE;
    /* Another one, empty, under the same name. */
    bool replaced = fault->kind == FAULT_CRASH_EMPTY && fault->nth % 3 == 0 && plan_has(world->plan, FEATURE_NAMES);

    if (site->down) return;
    site->down = true;
    site->gone = fault->for_ever;
    site->memory = old ? SERVER_OLD : fault->kind == FAULT_CRASH_EMPTY ? SERVER_EMPTY : SERVER_KEEPS;
    site->new_replid = fault->kind == FAULT_PROMOTE || (fault->kind == FAULT_CRASH_EMPTY && fault->nth % 2 == 0);
    site->loading_us = fault->kind == FAULT_LOADING ? fault->for_us / 2 : 0;
    server_crash(world->servers[site->index], fault->kind == FAULT_VANISH || (fault->nth % 4 == 0 && old));
    if (fault->kind == FAULT_MOVE || replaced) (void)net_move(world->net, site->index);
    world->totals->of[TOTAL_SERVER_REPLACED] += replaced;
    site->back = (struct moment){.happen = on_back, .arg = site};
    if (!site->gone) queue_set(&world->queue, &site->back, until_us);
}

void site_stop(struct site *site)
{
    if (!site->down) server_crash(site->world->servers[site->index], false);
    site->down = site->gone = true;
    queue_set(&site->world->queue, &site->back, NEVER);
}

static void end_connections(struct site *site)
{
    (void)site_command(site, "CLIENT", "KILL", "TYPE", "normal");
    (void)site_command(site, "CLIENT", "KILL", "TYPE", "pubsub");
}

/* ---- passwords ---- */

void site_password(uint32_t number, char ret[16])
{
    (void)snprintf(ret, 16, "password-%u", number);
}

/* Connections stay when the password changes; that they end now is what hurts. */
static void change_password(struct site *site)
{
    char password[16];

    site_password(site->newest_password, password);
    if (strcmp(password, site->password) == 0) return;
    memcpy(site->password, password, sizeof(password));
    model_manners(site_model(site))->password = site->password;
    if (!site->down) end_connections(site);
}

/* The server has the new one first, or the clients; in the end both have the newest. */
static void rotate(struct site *site, const struct plan_fault *fault, bool ends)
{
    site->newest_password += !ends;
    if (ends || fault->nth % 2 == 0) change_password(site);
    if (ends || fault->nth % 2 != 0) site->told_password = site->newest_password;
}

/* The rest of a flip: the server is a master again, with the memory of before. Or there was none: it has another
 * replication id, because its first replica came, or none was there for long. */
static void flip_back(struct site *site, const struct plan_fault *fault)
{
    struct world *world = site->world;
    struct model_manners *manners = model_manners(site_model(site));

    manners->replica = false;
    if (site->down || site->snapshot == NULL) return;
    manners->replid = rng_mix(world->plan->seed, ++world->runs);
    if (fault->kind == FAULT_FLIP_LIVE && fault->nth % 4 == 1) {
        TRACE(world, "server %u  has another replication id, and its own memory", site->index);
        return;
    }
    TRACE(world, "server %u  is a master again, with older memory", site->index);
    site->late = site->old = true;
    holds_forgets(site);
    model_load(site_model(site), site->snapshot);
    actions_server(site, "ages");
    manners->repl_input += FLIP_BYTES;
    for (uint32_t i = 0; i <= world->plan->n_machines && fault->kind == FAULT_FLIP; i++)
        net_break(world->net, i, site->index, false, 0);
    site_look_again(site);
}

static void snapshot(struct site *site)
{
    if (site->snapshot != NULL) model_forget(site->snapshot);
    site->snapshot = model_save(site_model(site));
    server_snapshot(site->world->servers[site->index]);
}

static void step_clock(struct site *site, int64_t by_us)
{
    struct world *world = site->world;

    if (by_us < 0) {
        site->stepped_back = true;
        model_expire(site_model(site), server_wall_us(world->servers[site->index]));
    }
    skew_step(server_clock(world->servers[site->index]), world_now(world), by_us);
}

/* As soon as the key is free there, so that no lock loses a vote. */
static bool leave_odd(struct site *site, const struct plan_fault *fault)
{
    struct world *world = site->world;
    const char *name = world_full_key(world, fault->key);
    struct server *server = world->servers[site->index];
    struct model_value value;

    if (site->down || model_look(site_model(site), name, strlen(name), server_wall_us(server), &value)) return false;
    switch (fault->nth % 3) {
    case 0: (void)site_command(site, "SET", name, "odd", NULL); break;
    case 1: (void)site_command(site, "HSET", name, "odd", "1"); break;
    default: (void)site_command(site, "RPUSH", name, "odd", NULL); break;
    }
    site_look_again(site);
    return true;
}

/* ---- links ---- */

typedef void (*link_fault)(struct world *, struct fault_run *, const struct plan_fault *, struct net_link *);

static void change_link(struct world *world, struct fault_run *run, const struct plan_fault *fault,
                        struct net_link *link)
{
    uint64_t now_us = world_now(world);
    uint64_t until_us = fault->for_ever ? NEVER : run->until_us;

    switch (fault->kind) {
    case FAULT_CUT_TO: link->cut_until_us[NET_TO_SERVER] = until_us; break;
    case FAULT_CUT_FROM: link->cut_until_us[NET_TO_CLIENT] = until_us; break;
    case FAULT_CUT: link->cut_until_us[NET_TO_SERVER] = link->cut_until_us[NET_TO_CLIENT] = until_us; break;
    case FAULT_LOSSY: link->lose_one_in = 2 + fault->nth % 8; break;
    case FAULT_PROXY:
        link->proxied = true;
        link->cut_until_us[NET_TO_SERVER] = until_us;
        break;
    case FAULT_FORGET: link->forgets_us = FORGETS_US * (uint64_t)(1 + fault->nth % 32); break;
    case FAULT_SLOW:
        link->slow_us = fault->for_ever ? fault->for_us : until_us - now_us;
        if (fault->nth % 2 != 0) link->slow_us /= 32;
        link->slow_until_us = until_us;
        break;
    case FAULT_REFUSE: link->refuses = true; break;
    case FAULT_HANG: link->drops_syn = true; break;
    case FAULT_SPLIT: link->split_one_in = 1 + fault->nth % 3; break;
    case FAULT_NARROW:
        link->room = 40 + 40 * fault->nth;
        link->bytes_per_ms = 20 * fault->nth;
        break;
    default: break;
    }
}

static void end_link(struct world *world, const struct plan_fault *fault, struct net_link *link)
{
    switch (fault->kind) {
    case FAULT_LOSSY: link->lose_one_in = 0; break;
    case FAULT_FORGET: link->forgets_us = 0; break;
    case FAULT_REFUSE: link->refuses = false; break;
    case FAULT_HANG: link->drops_syn = false; break;
    case FAULT_SPLIT: link->split_one_in = world->plan->split_one_in; break;
    case FAULT_NARROW: link->room = link->bytes_per_ms = 0; break;
    default: break;
    }
}

static void at_link(struct world *world, struct fault_run *run, const struct plan_fault *fault, uint32_t machine,
                    uint32_t server, bool ends)
{
    struct net_link *link = net_link(world->net, machine, server);
    bool cuts = fault->kind == FAULT_CUT || fault->kind == FAULT_CUT_TO || fault->kind == FAULT_PROXY;
    bool breaks = fault->kind == FAULT_RESET || fault->kind == FAULT_RESET_LATE || fault->kind == FAULT_REFUSE ||
                  fault->kind == FAULT_HANG;

    /* What was sent may be executed when its connection has ended and its release has been executed. */
    world->sites[server].late |= fault->kind == FAULT_RESET_LATE || fault->kind == FAULT_SLOW || cuts ||
                                 fault->kind == FAULT_LOSSY || fault->kind == FAULT_NARROW;
    if (cuts && !ends && fault->nth % 2 == 0) net_tear(world->net, machine, server);
    if (ends) {
        end_link(world, fault, link);
    } else {
        change_link(world, run, fault, link);
    }
    net_changed(world->net, machine, server);
    if (!breaks || ends) return;
    net_break(world->net, machine, server, fault->kind == FAULT_RESET_LATE, world->plan->late_us);
}

/* Of every machine to that server, or of that machine to some or all servers. */
static void at_links(struct world *world, struct fault_run *run, const struct plan_fault *fault, bool ends)
{
    bool whole_server = fault->all && (fault->for_ever || fault->nth % 2 == 0);

    for (uint32_t machine = 0; machine <= world->plan->n_machines; machine++) {
        if (!whole_server && machine != fault->machine) continue;
        for (uint32_t server = 0; server < world->plan->n_servers; server++) {
            if (server != fault->server && (whole_server || !fault->all)) continue;
            at_link(world, run, fault, machine, server, ends);
        }
    }
}

/* ---- machines ---- */

static enum opportunity opportunity_of(enum plan_fault_kind kind)
{
    if (kind == FAULT_STALL_CALLBACK || kind == FAULT_KILL_CALLBACK) return AT_CALLBACK;
    if (kind == FAULT_STALL_CLOCK || kind == FAULT_KILL_CLOCK) return AT_CLOCK;
    return kind == FAULT_STALL_SEND || kind == FAULT_KILL_SEND ? AT_SEND : OPPORTUNITIES;
}

static uint64_t again_us(const struct world *world, const struct plan_fault *fault)
{
    return fault->nth % 2 == 0 ? NEVER : world_now(world) + fault->for_us;
}

/* Not beyond the time of faults. */
static uint64_t left_us(const struct world *world, const struct plan_fault *fault)
{
    uint64_t most_us = world->plan->active_us > world_now(world) ? world->plan->active_us - world_now(world) : 0;

    return fault->for_us < most_us ? fault->for_us : most_us;
}

void operator_strike(struct process *process, enum opportunity opportunity)
{
    struct world *world = process->world;

    for (uint32_t i = 0; i < world->plan->n_faults && process->armed[opportunity] != 0; i++) {
        const struct plan_fault *fault = &world->plan->faults[i];
        struct fault_run *run = &world->faults[i];

        if (!run->armed || fault->machine != process->index || opportunity_of(fault->kind) != opportunity) continue;
        if (++run->count < fault->nth) continue;
        run->armed = false;
        process->armed[opportunity]--;
        world->totals->faults[fault->kind]++;
        TRACE(world, "FAULT f%u %s", i, plan_fault_text(fault->kind));
        process->stood_at_look = opportunity != AT_CALLBACK;
        if (fault->kind == FAULT_STALL_CALLBACK || fault->kind == FAULT_STALL_CLOCK || fault->kind == FAULT_STALL_SEND)
            process_stall(process, left_us(world, fault), false);
        else
            process_kill(process, false, again_us(world, fault));
        return;
    }
}

/* All its clocks lose that time. */
static void pause_all(struct process *process, uint64_t for_us)
{
    if (!process->alive || process->inside || world_now(process->world) < process->stands_until_us) return;
    machine_pause(process->machine, for_us);
    process_stall(process, for_us, false);
}

static void limit(struct process *process, uint32_t more)
{
    machine_limit_descriptors(process->machine,
                              more == UINT32_MAX ? more : machine_descriptors(process->machine) + more);
}

struct break_call {
    struct user_client *client;
    uint32_t key;
};

static void break_now(void *arg)
{
    struct fault_run *run = arg;
    const struct plan_fault *fault = &run->world->plan->faults[run->index];
    struct user_client *client = &run->world->clients[fault->machine];

    if (client->state == CLIENT_OPEN) (void)user_break(client, fault->key);
}

/* Lookups hang, fail, or come behind the end of the try that began them. */
static void confuse_names(struct machine *machine, uint32_t nth)
{
    static const uint64_t means_us[] = {NEVER, 1000, 3000000};

    machine_names(machine, means_us[nth % 3], nth % 3 == 1);
}

static void at_machine(struct world *world, struct fault_run *run, const struct plan_fault *fault)
{
    struct process *process = &world->processes[fault->machine];
    uint64_t for_us = run->until_us - world_now(world);

    if (!process->alive) return;
    switch (fault->kind) {
    case FAULT_STALL: process_stall(process, for_us, false); break;
    case FAULT_SUSPEND: process_stall(process, for_us, true); break;
    case FAULT_PAUSE: pause_all(process, for_us); break;
    case FAULT_KILL: process_kill(process, false, again_us(world, fault)); break;
    case FAULT_KILL_HOST: process_kill(process, true, again_us(world, fault)); break;
    case FAULT_LOOKUP: confuse_names(process->machine, fault->nth); break;
    case FAULT_NO_MEMORY:
        process->no_memory_until_us = run->until_us;
        process->no_memory_one_in = 1 + fault->nth % 8;
        break;
    case FAULT_NO_DESCRIPTORS: limit(process, fault->nth % 3); break;
    case FAULT_NO_RANDOM:
        process->no_random_until_us = run->until_us;
        process->no_random_one_in = fault->nth % 4 == 0 ? 2 : 1;
        break;
    case FAULT_BREAK: machine_call(process->machine, break_now, run); break;
    default: break;
    }
}

/* ---- the operator's own client ---- */

static void bootstrap_now(void *arg)
{
    struct world *world = arg;
    struct user_client *client = &world->clients[world->plan->n_clients];

    if (client->state != CLIENT_OPEN || client->pending > 0 || !world->bootstraps) return;
    world->rewrites |= world->bootstrap_again;
    (void)user_bootstrap(client, world->bootstrap_again);
    world->bootstrap_again = true;
}

static void on_operator(void *arg)
{
    struct world *world = arg;
    struct process *process = &world->processes[world->plan->n_machines];

    if (world->bootstraps && process->alive) machine_call(process->machine, bootstrap_now, world);
    if (world->phase < PHASE_STOPPED)
        queue_set(&world->queue, &world->operator_moment, world_now(world) + world->plan->operator_again_us);
}

bool operator_is_needed(const struct world *world)
{
    const struct plan *plan = world->plan;

    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (plan->faults[i].kind == FAULT_RECONFIGURE) return true;
    }
    return plan_has(plan, FEATURE_BOOTSTRAP);
}

static void reconfigure(struct world *world)
{
    world->bootstraps = world->bootstrap_again = true;
    world->reconfigures++;
    membership_begin(world);
    queue_set(&world->queue, &world->operator_moment, world_now(world));
}

/* ---- faults ---- */

static void flush(struct site *site)
{
    /* A server that refuses to write refuses this. */
    if (strcmp(site_command(site, "DEL", "", NULL, NULL), "0") != 0) return;
    holds_forgets(site);
    (void)site_command(site, "FLUSHALL", NULL, NULL, NULL);
    actions_server(site, "forgets");
    site_look_again(site);
}

static void at_server(struct world *world, struct fault_run *run, const struct plan_fault *fault)
{
    struct site *site = &world->sites[fault->server];
    struct server *server = world->servers[fault->server];
    struct model_manners *manners = model_manners(site_model(site));
    uint64_t until_us = fault->for_ever ? NEVER : run->until_us;

    switch (fault->kind) {
    case FAULT_CRASH_OLD:
    case FAULT_PROMOTE:
    case FAULT_FLIP:
    case FAULT_FLIP_LIVE:
        if (!site->down) snapshot(site);
        if (fault->kind == FAULT_FLIP || fault->kind == FAULT_FLIP_LIVE) manners->replica = fault->nth % 2 == 0;
        break;
    case FAULT_FREEZE:
        if (site->frozen_until_us < until_us) site->frozen_until_us = until_us;
        site->late = true;
        server_halt(server, site->frozen_until_us);
        break;
    case FAULT_BUSY: server_busy(server, until_us); break;
    case FAULT_FULL: manners->full = true; break;
    case FAULT_MISCONF: manners->misconf = true; break;
    case FAULT_MUTE: manners->no_publish = true; break;
    case FAULT_STEP_BACK: step_clock(site, -(int64_t)fault->for_us); break;
    case FAULT_STEP_FORWARD: step_clock(site, (int64_t)fault->for_us); break;
    case FAULT_ROTATE: rotate(site, fault, false); break;
    case FAULT_KILL_CLIENTS: end_connections(site); break;
    case FAULT_FORGET_SCRIPTS: (void)site_command(site, "SCRIPT", "FLUSH", NULL, NULL); break;
    case FAULT_FLUSH:
        for (uint32_t i = 0; i < world->plan->n_servers; i++) {
            if (i == fault->server || (fault->all && !world->plan->changes)) flush(&world->sites[i]);
        }
        break;
    case FAULT_ODD:
        if (!leave_odd(site, fault) && world->phase < PHASE_STOPPED)
            queue_set(&world->queue, &run->begin, world_now(world) + ODD_AGAIN_US);
        break;
    default: crash(site, fault, run->until_us); break;
    }
}

static bool is_at_link(enum plan_fault_kind kind)
{
    return kind >= FAULT_CUT_TO && kind <= FAULT_NARROW;
}

static bool is_at_machine(enum plan_fault_kind kind)
{
    return (kind >= FAULT_LOOKUP && kind <= FAULT_NO_RANDOM) || kind == FAULT_BREAK;
}

static void begin(struct fault_run *run)
{
    struct world *world = run->world;
    const struct plan_fault *fault = &world->plan->faults[run->index];

    if (opportunity_of(fault->kind) != OPPORTUNITIES) {
        run->armed = true;
        world->processes[fault->machine].armed[opportunity_of(fault->kind)]++;
        return;
    }
    if (!run->begun) world->totals->faults[fault->kind]++;
    if (!run->begun)
        TRACE(world, "FAULT f%u %s (server %u, machine %u, key %u%s, for %llu us)", run->index,
              plan_fault_text(fault->kind), fault->server, fault->machine, fault->key, fault->all ? ", all" : "",
              (unsigned long long)(run->until_us - world_now(world)));
    run->begun = true;
    if (fault->kind == FAULT_PEER_KEY)
        peer_takes(world, fault);
    else if (fault->kind == FAULT_RECONFIGURE)
        reconfigure(world);
    else if (is_at_link(fault->kind))
        at_links(world, run, fault, false);
    else if (is_at_machine(fault->kind))
        at_machine(world, run, fault);
    else
        at_server(world, run, fault);
}

static void end(struct fault_run *run)
{
    struct world *world = run->world;
    const struct plan_fault *fault = &world->plan->faults[run->index];
    struct site *site = &world->sites[fault->server];
    struct model_manners *manners = model_manners(site_model(site));
    struct process *process = &world->processes[fault->machine];

    queue_set(&world->queue, &run->end, NEVER);
    if (!run->begun || run->ended) return;
    run->ended = true;
    switch (fault->kind) {
    case FAULT_FULL: manners->full = false; break;
    case FAULT_MISCONF: manners->misconf = false; break;
    case FAULT_MUTE: manners->no_publish = false; break;
    case FAULT_ROTATE: rotate(site, fault, true); break;
    case FAULT_FLIP:
    case FAULT_FLIP_LIVE: flip_back(site, fault); break;
    case FAULT_CRASH_OLD:
    case FAULT_PROMOTE: crash(site, fault, world_now(world) + 1); break;
    case FAULT_LOOKUP:
        if (process->alive) machine_names(process->machine, 1000, false);
        break;
    case FAULT_NO_DESCRIPTORS:
        if (process->alive) limit(process, UINT32_MAX);
        break;
    default:
        if (is_at_link(fault->kind)) at_links(world, run, fault, true);
        break;
    }
}

static void on_begin(void *arg)
{
    begin(arg);
}

static void on_end(void *arg)
{
    end(arg);
}

bool operator_is_out(const struct world *world, uint32_t server)
{
    if (world->sites[server].gone) return true;
    for (uint32_t i = 0; i < world->plan->n_faults; i++) {
        const struct plan_fault *fault = &world->plan->faults[i];

        if (fault->for_ever && !fault->left_out && fault->server == server && fault->kind != FAULT_ODD &&
            fault->kind != FAULT_SLOW)
            return true;
    }
    return false;
}

/* ---- the beginning, and the end of the time of faults ---- */

static void read_field(struct site *site, const char *section, const char *field, char ret[64])
{
    const char *at = strstr(site_command(site, "INFO", section, NULL, NULL), field);

    (void)snprintf(ret, 64, "%s", at == NULL ? "" : at + strlen(field));
    ret[strcspn(ret, "\r\n")] = '\0';
}

/* As if they had been bootstrapped long ago. */
static void write_guard(struct site *site)
{
    const struct plan *plan = site->world->plan;
    char run_id[64];
    char replid[64];
    char guard[256];
    const struct plan_set *set = &plan->sets[0];

    read_field(site, "server", "run_id:", run_id);
    read_field(site, "replication", "master_replid:", replid);
    (void)snprintf(guard, sizeof(guard), "2|%u|%s|%u|%s|%s|0|%u|declared|0|none|0|0", set->n, site->world->set_name,
                   set->max_lease_ms, run_id, replid, set->max_lease_ms);
    (void)site_command(site, "SET", "quorlock:guard", guard, NULL);
}

void operator_begin(struct world *world)
{
    const struct plan *plan = world->plan;
    bool cold = plan_has(plan, FEATURE_COLD) || plan_has(plan, FEATURE_BOOTSTRAP);

    for (uint32_t i = 0; i < plan->sets[0].n && !cold; i++) {
        if (plan->clients[0].guard != QUORLOCK_GUARD_OFF) write_guard(&world->sites[i]);
    }
    for (uint32_t i = 0; i < plan->n_servers; i++) {
        struct model_manners *manners = model_manners(site_model(&world->sites[i]));
        size_t kind = rng_mix(plan->seed, i) % N_KINDS;

        manners->no_info_in_scripts = plan->no_info;
        manners->lost_permille = plan->lost_permille;
        manners->push_one_in = plan->push_one_in;
        if (plan->bias == BIAS_PASSWORDS) {
            world->sites[i].newest_password = world->sites[i].told_password = 1;
            change_password(&world->sites[i]);
        }
        manners->version = kinds[kind].version;
        manners->valkey = kinds[kind].valkey;
        manners->denied = (plan->untracked >> i & 1u) != 0 ? "CLIENT|TRACKING" : kinds[kind].denied;
        for (uint32_t machine = 0; machine <= plan->n_machines; machine++) {
            struct net_link *link = net_link(world->net, machine, i);

            link->delay_us[NET_TO_SERVER] = link->delay_us[NET_TO_CLIENT] = plan->servers[i].delay_us;
            link->split_one_in = plan->split_one_in;
            link->steady = plan->calm;
        }
    }
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];
        struct fault_run *run = &world->faults[i];

        if (fault->left_out) continue;
        run->until_us = fault->at_us + fault->for_us + 1;
        if (run->until_us > plan->active_us && !fault->for_ever) run->until_us = plan->active_us;
        if (run->until_us <= fault->at_us) run->until_us = fault->at_us + 1;
        run->begin = (struct moment){.happen = on_begin, .arg = run};
        run->end = (struct moment){.happen = on_end, .arg = run};
        queue_set(&world->queue, &run->begin, fault->at_us);
        if (!fault->for_ever) queue_set(&world->queue, &run->end, run->until_us);
    }
    world->operator_moment = (struct moment){.happen = on_operator, .arg = world};
    world->bootstraps = plan_has(plan, FEATURE_BOOTSTRAP);
    if (world->bootstraps) queue_set(&world->queue, &world->operator_moment, 1);
}

void operator_heal(struct world *world)
{
    const struct plan *plan = world->plan;

    /* A guard of a reconfigure that was half done may be there again, also of the one that goes on now. */
    world->bootstraps |= (world->reconfigures > 0 || world->rewrites) && plan->loses_memory;
    world->bootstraps_after_heal = world->bootstraps && world->clients[plan->n_clients].pending > 0;
    if (operator_is_needed(world)) queue_set(&world->queue, &world->operator_moment, world_now(world));

    for (uint32_t i = 0; i < plan->n_faults; i++) {
        if (!plan->faults[i].for_ever) end(&world->faults[i]);
        world->faults[i].armed = false;
    }
    membership_heal(world);
    if (!plan->calm) net_heal(world->net);
    for (uint32_t i = 0; i < plan->n_servers; i++) {
        struct site *site = &world->sites[i];

        model_manners(site_model(site))->loading = false;
        for (uint32_t machine = 0; machine <= plan->n_machines && !plan->calm; machine++)
            net_changed(world->net, machine, i);
        start(site);
    }
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const struct plan_fault *fault = &plan->faults[i];

        if (fault->for_ever && !fault->left_out && is_at_link(fault->kind))
            at_links(world, &world->faults[i], fault, false);
    }
    for (uint32_t i = 0; i < plan->n_machines; i++) {
        struct process *process = &world->processes[i];

        memset(process->armed, 0, sizeof(process->armed));
        if (!process->alive) queue_set(&world->queue, &process->birth, world_now(world) + 1);
    }
}
