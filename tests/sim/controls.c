/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * controls.c - rules broken on purpose, which the judge must notice
 *
 * A control that never fires proves nothing. So each has a minimum of hits, and a bound of runs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controls.h"

#ifdef QUORLOCK_MUTANTS

#include "promises/mutant.h"
#include "trace.h"

#define CPU_S_MAX 20 /* of a run that may crash: what was written over may also make it endless */

/*
 * A control switches on one or two faults of promises/list. Without a fault the register takes every write. With CRASH
 * each run has a process of its own, which must end by a signal or by a sanitizer.
 *
 * These rules have no control here, because no invariant broke in thousands of runs:
 *
 * - Rule 3.4, as I5: servers do what a late renewal asks, so a quorum has the key. I6 breaks instead.
 * - Rule 5.3: an attempt asks a node on one connection only, and renewals and releases carry the token to all nodes.
 * The model breaks this rule, and redis.test_fence_wire tests the script.
 * - Rule 7.5: where nodes answer, their reports of slots lead to another slot. unit.test_core_permits breaks this rule.
 *
 * Faults that users met and this simulator cannot make, with the tests that cover them: TLS and its files
 * (redis.test_tls), rights that are taken away and come back (redis.test_refusals), the thread of a lookup and fork()
 * (unit.test_resolve, redis.test_sync_end), the warden and the command's child (redis.test_supervision). The
 * threads of the sync functions have a simulator of their own, in threads/.
 */
struct control {
    const char *name;
    const char *rule; /* the rule of src/protocol.md that it breaks; "-": callbacks or memory */
    const char *mutants[2];
    enum plan_bias bias;
    enum invariant invariant;
    uint32_t minimum, runs_max;
};

/* Rule 1.7 is coded twice. Its controls break the node, which ends all requests with their connection. A core without
 * the rule is noticed by unit tests of the core only, because the node lets no older reply through. */
static const struct control controls[] = {
    {"same-token", "1.1", {"same-token"}, BIAS_LATE_EXECUTION, I1_EXCLUSION, 1, 6000},
    {"no-second-check", "1.5", {"no-second-check"}, BIAS_LATE_CLIENT, I1_EXCLUSION, 1, 2000},
    {"old-time-at-dispatch", "1.5", {"dispatch-by-an-old-time"}, BIAS_LATE_CLIENT, I6_TOLD_ONCE, 1, 2000},
    {"late-renewal-i6", "3.4", {"late-renewal"}, BIAS_LATE_RENEWAL, I6_TOLD_ONCE, 1, 2000},
    {"unconditional-delete", "2.2", {"script-release-of-others"}, BIAS_NONE, I1_EXCLUSION, 1, 2000},
    {"unconditional-delete-together", "2.2", {"script-batch-release-of-others"}, BIAS_BEAT, I1_EXCLUSION, 1, 2000},
    {"half-quorum", "1.4", {"half-quorum"}, BIAS_NONE, I1_EXCLUSION, 1, 2000},
    {"no-guard", "4.1", {"script-guard-same-run"}, BIAS_LOSS, I1_EXCLUSION, 1, 2000},
    {"push-ignored", "4.9", {"push-ignored"}, BIAS_LOSS, I1_EXCLUSION, 1, 2000},
    {"told-is-a-verdict", "3.11", {"told-is-a-verdict"}, BIAS_FLOOD, I11_OWN_LOAD, 1, 400},
    {"flip-unseen", "4.15", {"script-flip-unseen"}, BIAS_LOSS, I1_EXCLUSION, 1, 2000},
    {"quarantined-votes", "4.3", {"quarantined-votes"}, BIAS_LOSS, I1_EXCLUSION, 1, 2000},
    {"quarantined-votes-i7", "4.3", {"quarantined-votes"}, BIAS_LOSS, I7_FOREIGN_VOTE, 1, 2000},
    {"twins-unseen", "4.8", {"twins-vote"}, BIAS_TWINS, I1_EXCLUSION, 1, 2000},
    {"no-write-back", "5.2", {"no-write-back"}, BIAS_TOKENS, I3_RISES, 1, 2000},
    {"no-write-back-i2", "5.2", {"no-write-back", "script-no-floor"}, BIAS_TOKENS, I2_UNIQUE, 1, 2000},
    {"pure-counters-i2", "5.4", {"script-no-floor"}, BIAS_TOKENS_LOST, I2_UNIQUE, 1, 2000},
    {"pure-counters-i3", "5.4", {"script-no-floor"}, BIAS_TOKENS_LOST, I3_RISES, 1, 2000},
    {"pure-counters-i4", "5.4", {"script-no-floor"}, BIAS_TOKENS_LOST, I4_ORDER, 1, 2000},
    {"token-unchecked", "15.2", {NULL}, BIAS_OUTSIDE, STALE_WRITE, 1, 2000},
    {"no-back-off-storm", "6.1", {"no-back-off"}, BIAS_CALM, REQUEST_STORM, 3, 400},
    {"lost-wake", "6.11", {"lost-wake"}, BIAS_CALM, I9_LIVENESS, 3, 400},
    {"believes-one", "6.3", {"believes-one"}, BIAS_ODD, I9_LIVENESS, 3, 400},
    {"wakes-in-vain", "2.10", {"wakes-in-vain"}, BIAS_CALM, REQUEST_STORM, 3, 400},
    {"odd-key-believed", "6.4", {"odd-key-believed"}, BIAS_ODD, I9_LIVENESS, 3, 100},
    {"release-paid-once", "2.4", {"release-paid-once-only"}, BIAS_DEBTS, I8_LEFT_BEHIND, 3, 150},
    {"release-that-found-nothing", "2.6", {"nothing-found-is-final"}, BIAS_PACKETS, I14_GIVEN_UP, 3, 600},
    {"closed-in-order", "2.5", {"unanswered-ends-in-order"}, BIAS_PACKETS, I14_GIVEN_UP, 1, 2000},
    {"busy-release", "2.4", {"release-after-a-passing-error"}, BIAS_DEBTS, I8_LEFT_BEHIND, 3, 150},
    {"walk-stops-half-way", "3.5", {"walk-stops-half-way"}, BIAS_NESTS, I6_TOLD_ONCE, 3, 300},
    {"never-overdue", "6.2", {"never-overdue"}, BIAS_FROZEN, I9_LIVENESS, 3, 100},
    {"waits-for-late", "1.10", {"waits-for-late"}, BIAS_FROZEN, I9_LIVENESS, 3, 100},
    {"no-back-off", "6.5", {"no-back-off"}, BIAS_CROWD, I9_LIVENESS, 1, 60},
    {"dropped-releases", "2.4", {"release-that-never-left-forgotten"}, BIAS_FLOOD, I8_LEFT_BEHIND, 1, 100},
    {"queue-forgets-the-next", "6.13", {"queue-forgets-the-next"}, BIAS_LIVENESS, I9_LIVENESS, 3, 2000},
    {"cancel-after-close", "-", {"cancel-after-close"}, BIAS_LIVES, I6_TOLD_ONCE, 1, 2000},
    {"debt-on-a-full-ring", "14.1", {"release-without-room-forgotten"}, BIAS_FLOOD, I8_LEFT_BEHIND, 1, 100},
    {"reconfigure-without-closing", "4.13", {"reconfigure-without-closing"}, BIAS_MEMBERS, I1_EXCLUSION, 1, 2000},
    {"reconfigure-at-once", "4.13", {"script-reconfigure-at-once"}, BIAS_MEMBERS, I1_EXCLUSION, 1, 2000},
    {"believes-for-ever", "6.3", {"believes-for-ever"}, BIAS_LIVENESS, I9_LIVENESS, 1, 2000},
    {"use-after-free", "-", {"handle-freed-in-its-callback"}, BIAS_LIVES, CRASH, 1, 100},
    {"walk-on-what-is-gone", "-", {"walk-on-what-is-gone"}, BIAS_LIVES, CRASH, 1, 1000},
    {"loss-behind-callbacks", "3.5", {"loss-behind-other-callbacks"}, BIAS_LATE_CLIENT, I6_TOLD_ONCE, 1, 500},
    {"guard-by-its-front", "4.10", {"guard-by-its-front"}, BIAS_NONE, I7_FOREIGN_VOTE, 1, 2000},
    {"max-lease-invented", "4.6", {"script-max-lease-invented"}, BIAS_LOSS, I1_EXCLUSION, 1, 400},
    {"reply-of-another", "1.7", {"one-reply-of-the-connection-before"}, BIAS_RECONNECTS, I5_QUORUM_HOLDS, 1, 100},
    {"replies-of-others", "1.7", {"reply-of-the-connection-before"}, BIAS_LATE_EXECUTION, I9_LIVENESS, 1, 100},
    {"resurrect-i1", "3.4", {"resurrect"}, BIAS_LOSS, I1_EXCLUSION, 1, 8000},
    {"resurrect-i6", "3.4", {"resurrect"}, BIAS_LATE_CLIENT, I6_TOLD_ONCE, 1, 200},
    {"shortening-extend", "3.3", {"script-extend-shortens"}, BIAS_LATE_EXTEND, I5_QUORUM_HOLDS, 1, 6000},
    {"uptime-guard", "4.2", {"script-guard-by-uptime"}, BIAS_LOSS, I1_EXCLUSION, 1, 1000},
    {"twins-forgotten", "4.8", {"twins-one-after-the-other"}, BIAS_TWINS, I1_EXCLUSION, 1, 2000},
    {"candidate-stands-at-once", "13.1", {"candidate-stands-at-once"}, BIAS_ELECTION, I16_ONE_LEADER, 1, 8000},
    {"candidate-leads-on", "13.1", {"candidate-leads-after-its-loss"}, BIAS_ELECTION, I16_ONE_LEADER, 1, 2000},
    {"observer-believes-any-term", "13.3", {"observer-believes-any-term"}, BIAS_ELECTION, I17_TERMS_RISE, 1, 2000},
    {"stale-round-trips", "6.2", {"stale-round-trips"}, BIAS_FARTHER, I9_LIVENESS, 1, 1000},
    {"stale-round-trips-storm", "6.2", {"stale-round-trips"}, BIAS_FARTHER, REQUEST_STORM, 1, 200},
    {"permits-counted", "7.1", {"permits-counted-by-each-node"}, BIAS_PERMITS, I12_PERMITS, 3, 400},
    {"any-number-of-permits", "7.7", {"number-of-permits-ignored"}, BIAS_PERMITS, I12_PERMITS, 3, 400},
    {"slot-by-nodes", "7.3", {"slot-named-by-each-node", "other-slot-is-no-fault"}, BIAS_SCENES, I10_FORGOTTEN, 1, 100},
    {"no-sentinel", "8.2", {"script-no-sentinel"}, BIAS_SHARED, I13_READERS, 3, 400},
    {"readers-by-another-clock", "8.3", {"script-readers-by-another-clock"}, BIAS_SHARED, I13_READERS, 3, 400},
    {"endless-intent", "8.6", {"script-queue-never-forgets"}, BIAS_SHARED, I9_LIVENESS, 3, 400},
    {"repaired-at-renewals-only", "3.10", {"repaired-at-renewals-only"}, BIAS_SCENES, SERVERS_KEEP, 1, 400},
    {"renewals-need-memory", "3.1", {"script-renewal-needs-memory"}, BIAS_SCENES, SERVERS_KEEP, 1, 100},
    {"endless-intent-i10", "8.6", {"script-queue-never-forgets"}, BIAS_SCENES, I10_FORGOTTEN, 1, 200},
    {"credentials-of-the-start", "1.12", {"credentials-of-the-start"}, BIAS_PASSWORDS, I9_LIVENESS, 3, 100},
    {"refused-login-ends-the-wait", "1.12", {"refused-login-ends-the-wait"}, BIAS_PASSWORDS, UNEXPLAINED, 3, 400},
    {"keep-forgotten", "10.1", {"keep-forgotten"}, BIAS_KEEP, I18_KEPT, 3, 100},
    {"keep-without-end", "10.1", {"script-kept-key-keeps-its-expiry"}, BIAS_KEEP, I18_KEPT, 3, 100},
    {"adopt-without-asking", "11.2", {"adopt-without-asking"}, BIAS_PASSING, I5_QUORUM_HOLDS, 3, 400},
    {"adopt-without-asking-i1", "11.2", {"adopt-without-asking"}, BIAS_PASSING, I1_EXCLUSION, 1, 2000},
    {"passes-by-the-queue", "9.1", {"script-queue-not-looked-at"}, BIAS_FAIR, I15_ORDER_OF_COMING, 3, 400},
    {"passes-by-permit-queue", "9.7", {"script-permit-queue-not-looked-at"}, BIAS_FAIR, I15_ORDER_OF_COMING, 3, 400},
    {"queue-by-the-wall-clock", "9.8", {"script-queue-clock-goes-back"}, BIAS_FAIR, I15_ORDER_OF_COMING, 3, 400},
    {"dead-in-the-queue", "9.4", {"script-queue-never-forgets"}, BIAS_NONE, I9_LIVENESS, 1, 2000},
    {"no-turn-for-readers", "8.5", {"script-no-turn"}, BIAS_SCENES, I10_FORGOTTEN, 1, 100},
};

#define N_CONTROLS (sizeof(controls) / sizeof(controls[0]))

static void mend(struct world *world)
{
    (void)mutant_choose(NULL);
    world->register_checks = true;
    world->judged = UINT32_MAX;
}

static void break_rule(struct world *world, const struct control *control)
{
    mend(world);
    for (size_t i = 0; i < 2 && control->mutants[i] != NULL; i++) {
        if (!mutant_choose(control->mutants[i])) (void)printf("sim: there is no fault %s\n", control->mutants[i]);
    }
    world->register_checks = control->mutants[0] != NULL;
    world->judged = 1u << control->invariant;
}

static bool run_seed(struct world *world, uint64_t seed, enum plan_bias bias)
{
    static struct plan plan;
    static struct totals ignored;

    plan_make(&plan, seed, bias, 0);
    return world_run(world, &plan, &ignored);
}

/* survives - run the seed in a process of its own. False: a signal or a sanitizer ended it. */
static bool survives(struct world *world, uint64_t seed, enum plan_bias bias)
{
    const struct rlimit no_core = {0};
    const struct rlimit cpu_s = {.rlim_cur = CPU_S_MAX, .rlim_max = CPU_S_MAX};
    int status = 0;
    pid_t child;

    (void)fflush(NULL);
    child = fork();
    if (child < 0) {
        (void)fprintf(stderr, "sim: cannot fork: %s\n", strerror(errno));
        exit(2);
    }
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)setrlimit(RLIMIT_CPU, &cpu_s);
        if (freopen("/dev/null", "w", stderr) != NULL) (void)run_seed(world, seed, bias);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return status == 0;
}

static bool holds(struct world *world, const struct control *control, uint64_t seed)
{
    if (control->invariant == CRASH) return survives(world, seed, control->bias);
    return run_seed(world, seed, control->bias);
}

/* is_sound - run the seed with all rules kept: nothing may be found, so the broken rule was the cause. */
static bool is_sound(struct world *world, const struct control *control, uint64_t seed)
{
    bool held;

    mend(world);
    held = run_seed(world, seed, control->bias);
    if (!held) {
        (void)printf("sim: seed %" PRIu64 " violates %s with every rule kept: %s\n", seed,
                     trace_invariant(world->violation.invariant), world->violation.text);
        (void)printf("  replay: sim_controls --seed %" PRIu64 " --trace --bias %d\n", seed, (int)control->bias);
    }
    break_rule(world, control);
    return held;
}

/* The number of seeds that are skipped, because they show nothing with the plans of today, and took most of the time.
 * If the plans change, later seeds are searched all the same. */
static const struct {
    const char *control;
    uint32_t seeds;
} skips[] = {
    {"old-time-at-dispatch", 890},
    {"late-renewal-i6", 360},
    {"no-write-back-i2", 650},
    {"reconfigure-at-once", 550},
    {"believes-for-ever", 400},
    {"reconfigure-without-closing", 550},
    {"walk-on-what-is-gone", 310},
    {"resurrect-i1", 6305},
    {"shortening-extend", 630},
    {"candidate-stands-at-once", 4850},
    {"guard-by-its-front", 1080},
    {"flip-unseen", 660},
    {"no-guard", 195},
    {"no-write-back", 150},
    {"same-token", 120},
    {"no-second-check", 75},
    {"twins-forgotten", 50},
    {"dropped-releases", 30},
    {"debt-on-a-full-ring", 30},
};

static uint32_t skipped(const struct control *control)
{
    for (size_t i = 0; i < sizeof(skips) / sizeof(skips[0]); i++) {
        if (strcmp(skips[i].control, control->name) == 0) return skips[i].seeds;
    }
    return 0;
}

static bool run_control(struct world *world, const struct control *control, uint64_t first_seed)
{
    uint32_t hits = 0;
    uint32_t runs = 0;
    uint64_t hit_seed = 0;
    const char *invariant = trace_invariant(control->invariant);
    bool sound = true;

    first_seed += skipped(control);
    break_rule(world, control);
    for (; runs < control->runs_max && hits < control->minimum && sound; runs++) {
        if (holds(world, control, first_seed + runs)) continue;
        hits++;
        hit_seed = first_seed + runs;
        sound = is_sound(world, control, hit_seed);
    }
    (void)printf("%-30s  %-5s %-3.*s %8u %6u %8u   %s (seed %" PRIu64 ")%s\n", control->name, control->rule,
                 (int)strcspn(invariant, " "), invariant, runs, hits, control->minimum,
                 hits >= control->minimum ? "caught" : "NOT CAUGHT", hit_seed,
                 sound ? "" : ", and violated WITHOUT the control");
    (void)fflush(stdout);
    return sound && hits >= control->minimum;
}

static bool breaks(const struct control *control, const char *fault)
{
    for (size_t i = 0; i < 2 && control->mutants[i] != NULL; i++) {
        if (strcmp(control->mutants[i], fault) == 0) return true;
    }
    return false;
}

bool controls_run(struct world *world, uint64_t first_seed, const char *name)
{
    /* Where promises/run has switched a fault on, its controls are tests that fail when they notice it. */
    const char *fault = getenv("MUTANT");
    bool all = true, any = false;

    if (fault != NULL && *fault == '\0') fault = NULL;
    (void)printf("%-30s  %-5s %-3s %8s %6s %8s\n", "control", "rule", "inv", "runs", "hits", "minimum");
    for (size_t i = 0; i < N_CONTROLS; i++) {
        bool caught;

        if (name != NULL && strcmp(controls[i].name, name) != 0) continue;
        if (fault != NULL && !breaks(&controls[i], fault)) continue;
        caught = run_control(world, &controls[i], first_seed);
        all &= caught;
        any |= caught;
    }
    mend(world);
    return fault != NULL ? !any : all;
}

bool controls_set(struct world *world, const char *name, enum plan_bias *ret_bias)
{
    for (size_t i = 0; i < N_CONTROLS; i++) {
        if (strcmp(controls[i].name, name) != 0) continue;
        break_rule(world, &controls[i]);
        *ret_bias = controls[i].bias;
        return true;
    }
    return false;
}

#else

bool controls_run(struct world *world, uint64_t first_seed, const char *name)
{
    (void)world;
    (void)first_seed;
    (void)name;
    (void)fputs("sim: this build cannot break rules; sim_controls can\n", stderr);
    return false;
}

bool controls_set(struct world *world, const char *name, enum plan_bias *ret_bias)
{
    (void)ret_bias;
    return controls_run(world, 0, name);
}

#endif
