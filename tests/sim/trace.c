/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *pick(const char *const *names, size_t n, size_t which)
{
    return which < n ? names[which] : "?";
}

#define PICK(names, which) pick(names, sizeof(names) / sizeof((names)[0]), (size_t)(which))

const char *trace_op(unsigned op)
{
    static const char *const names[] = {[OP_ACQUIRE] = "acquire", [OP_REPAIR] = "repair", [OP_EXTEND] = "extend",
                                        [OP_RELEASE] = "release", [OP_PEEK] = "peek",     [OP_RAISE] = "raise"};

    return PICK(names, op);
}

const char *trace_outcome(unsigned outcome)
{
    static const char *const names[] = {"yes",   "held by another", "missing",   "no such script",
                                        "error", "unknown",         "not queued"};

    return PICK(names, outcome);
}

const char *trace_status(int status)
{
    switch (status) {
    case CORE_OK: return "ok";
    case CORE_INVAL: return "refused by configuration";
    case CORE_BUSY: return "busy";
    case CORE_STATE: return "wrong state";
    case CORE_HELD_BY_OTHER: return "held by another";
    case CORE_NOQUORUM: return "no quorum";
    case CORE_TIMEDOUT: return "timed out";
    case CORE_LOST_LOCK: return "lost";
    case CORE_CANCELED: return "canceled";
    case CORE_CLOSED: return "closed";
    default: return "?";
    }
}

const char *trace_invariant(enum invariant invariant)
{
    static const char *const names[] = {
        "none",
        "I1 (two reported validities of one key overlap)",
        "I2 (two grants have one token)",
        "I3 (a token does not rise in real time)",
        "I4 (tokens do not rise in the order in which a node was taken)",
        "I5 (reported validity outlives the quorum)",
        "I6 (held after loss, or not notified exactly once)",
        "I7 (a vote of another attempt or connection counts)",
        "I8 (a key is left behind)",
        "I9 (a live majority, and no lock is granted)",
        "I10 (an operation is forgotten)",
        "W (a stale write is accepted)",
        "S (waiters send too many requests)",
    };

    return PICK(names, invariant);
}

static void begin_line(const struct world *world)
{
    (void)printf("[%8" PRIu64 ".%03" PRIu64 "] ", world->now_us / 1000, world->now_us % 1000);
}

void trace_line(const struct world *world, const char *format, ...)
{
    va_list arguments;

    begin_line(world);
    va_start(arguments, format);
    /* A file of two programs is looked at twice in one run; the second time va_start is overlooked. */
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    (void)putchar('\n');
}

/* A line of what a lock does or learns. */
static void lock_line(const struct world *world, const struct lock *lock, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void lock_line(const struct world *world, const struct lock *lock, const char *format, ...)
{
    va_list arguments;

    begin_line(world);
    (void)printf("client %u lock %u ", (unsigned)lock->client, lock->index);
    va_start(arguments, format);
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    (void)putchar('\n');
}

static const char *state_name(enum node_state state)
{
    static const char *const names[] = {"connecting", "ready", "quarantined", "down"};

    return PICK(names, state);
}

static const char *phase_name(enum core_phase phase)
{
    static const char *const names[] = {"idle", "asking", "waiting", "granted", "held", "lost"};

    return PICK(names, phase);
}

void trace_step(const struct world *world, const struct lock *lock, const struct core_event *event)
{
    const char *phase = phase_name(core_phase_now(lock->core));
    const struct core_tag *tag = &event->reply.tag;

    switch (event->type) {
    case CORE_EV_ACQUIRE: lock_line(world, lock, "< acquires"); break;
    case CORE_EV_EXTEND: lock_line(world, lock, "< extends to %" PRIu64 " ms", event->extend.lease_us / 1000); break;
    case CORE_EV_RELEASE: lock_line(world, lock, "< releases"); break;
    case CORE_EV_CANCEL: lock_line(world, lock, "< cancels"); break;
    case CORE_EV_TIMER: lock_line(world, lock, ": timer, %s", phase); break;
    case CORE_EV_NODE:
        lock_line(world, lock, ": node %u is %s, generation %u", event->node.index, state_name(event->node.state),
                  event->node.generation);
        break;
    case CORE_EV_REPLY:
        lock_line(world, lock, "> node %u: %s of attempt %" PRIu64 ".%u: %s (generation %u, %s, counter %" PRIu64 ")",
                  (unsigned)tag->node, trace_op(tag->op), tag->attempt, (unsigned)tag->round,
                  trace_outcome(event->reply.outcome), event->reply.generation, phase, event->reply.fence);
        break;
    case CORE_EV_BEGIN: lock_line(world, lock, ": there is room for what it wants, %s", phase); break;
    case CORE_EV_ROOM: lock_line(world, lock, ": node %u has room again", event->room.node); break;
    case CORE_EV_STEP: lock_line(world, lock, ": the clock of node %u has stepped", event->step.node); break;
    case CORE_EV_NOTICE: lock_line(world, lock, ": node %u reports a release, %s", event->notice.node, phase); break;
    case CORE_EV_LISTENING: lock_line(world, lock, ": listens to node %u", event->listening.node); break;
    case CORE_EV_WAKE: lock_line(world, lock, ": a lock of the same process released the keys"); break;
    case CORE_EV_HAND_OFF: lock_line(world, lock, ": is handed off to a successor"); break;
    case CORE_EV_DISPATCH: break;
    }
}

void trace_command(const struct world *world, const struct lock *lock, const struct core_command *command)
{
    const struct core_tag *tag = &command->tag;

    lock_line(world, lock, "  %s of attempt %" PRIu64 ".%u -> node %u%s (token %02x%02x%02x)", trace_op(tag->op),
              tag->attempt, (unsigned)tag->round, (unsigned)tag->node, command->use_eval ? ", by EVAL" : "",
              command->token.bytes[0], command->token.bytes[1], command->token.bytes[2]);
}

void trace_completion(const struct world *world, const struct lock *lock, const struct core_completion *completion)
{
    static const char *const losses[] = {"", "expired", "gone", "max hold", "not renewed", "clock stepped"};
    uint64_t clock_us = world_client_clock(world, lock->client, world->now_us);
    uint64_t until_us = core_valid_until(lock->core);

    switch (completion->kind) {
    case CORE_NOTIFY_NOTHING: break;
    case CORE_NOTIFY_LOST: lock_line(world, lock, "= LOST (%s)", PICK(losses, completion->loss)); break;
    case CORE_NOTIFY_ACQUIRED:
        if (completion->status == CORE_OK) {
            lock_line(world, lock, "= GRANTED, valid for %" PRId64 " us by its clock (fence %" PRIu64 ")",
                      (int64_t)(until_us - clock_us), core_fence(lock->core));
        } else {
            lock_line(world, lock, "= not granted: %s", trace_status(completion->status));
        }
        break;
    case CORE_NOTIFY_EXTENDED: lock_line(world, lock, "= extended: %s", trace_status(completion->status)); break;
    case CORE_NOTIFY_RELEASED:
        lock_line(world, lock, "= released: %s%s", trace_status(completion->status),
                  completion->expired ? ", had expired" : "");
        break;
    }
}
