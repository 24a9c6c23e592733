/* SPDX-License-Identifier: BSD-3-Clause */
#include "story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *pick(const char *const *names, size_t n, size_t which)
{
    return which < n ? names[which] : "?";
}

#define PICK(names, which) pick(names, sizeof(names) / sizeof((names)[0]), (size_t)(which))

const char *story_op(unsigned op)
{
    static const char *const names[] = {"acquire", "repair", "extend", "release", "peek", "raise"};

    return PICK(names, op);
}

const char *story_outcome(unsigned outcome)
{
    static const char *const names[] = {"yes",   "somebody else's", "missing",   "no such script",
                                        "error", "unknown",         "not queued"};

    return PICK(names, outcome);
}

const char *story_status(int status)
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

const char *story_invariant(enum invariant invariant)
{
    static const char *const names[] = {
        "none",
        "I1 (two reported validities of one key overlap)",
        "I2 (two grants have one token)",
        "I3 (a token does not rise in real time)",
        "I4 (tokens do not rise in the order in which a node was taken)",
        "I5 (reported validity outlives the quorum)",
        "I6 (held after loss, or not told exactly once)",
        "I7 (a vote of another attempt or connection counts)",
        "I8 (a key is left behind)",
        "I9 (a live majority, and nobody is granted)",
        "I10 (an operation is forgotten)",
        "W (a stale write is accepted)",
        "S (whoever waits asks again and again)",
    };

    return PICK(names, invariant);
}

void story_tell(const struct world *world, const char *format, ...)
{
    va_list arguments;

    (void)printf("[%8" PRIu64 ".%03" PRIu64 "] ", world->now_us / 1000, world->now_us % 1000);
    va_start(arguments, format);
    /* A file of two programs is looked at twice in one run; the second time va_start is overlooked. */
    (void)vprintf(format, arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    va_end(arguments);
    (void)putchar('\n');
}

static const char *level_name(enum core_node_state state)
{
    static const char *const names[] = {"connecting", "ready", "quarantined", "down"};

    return PICK(names, state);
}

static const char *phase_name(enum core_phase phase)
{
    static const char *const names[] = {"idle", "asking", "waiting", "granted", "held", "lost"};

    return PICK(names, phase);
}

void story_step(const struct world *world, uint32_t index, const struct core_event *event)
{
    const struct lock *lock = &world->locks[index];
    unsigned client = lock->client;
    const char *phase = phase_name(core_phase_now(lock->core));
    const struct core_tag *tag = &event->reply.tag;

    switch (event->type) {
    case CORE_EV_ACQUIRE: story_tell(world, "client %u lock %u < acquires", client, index); break;
    case CORE_EV_EXTEND:
        story_tell(world, "client %u lock %u < extends to %" PRIu64 " ms", client, index,
                   event->lease_us / 1000);
        break;
    case CORE_EV_RELEASE: story_tell(world, "client %u lock %u < releases", client, index); break;
    case CORE_EV_CANCEL: story_tell(world, "client %u lock %u < cancels", client, index); break;
    case CORE_EV_TIMER: story_tell(world, "client %u lock %u : timer, %s", client, index, phase); break;
    case CORE_EV_NODE:
        story_tell(world, "client %u lock %u : node %u is %s, generation %u", client, index, event->node,
                   level_name(event->state), event->generation);
        break;
    case CORE_EV_REPLY:
        story_tell(world,
                   "client %u lock %u > node %u: %s of attempt %" PRIu64
                   ".%u: %s (generation %u, %s, counter %" PRIu64 ")",
                   client, index, (unsigned)tag->node, story_op(tag->op), tag->attempt, (unsigned)tag->round,
                   story_outcome(event->reply.outcome), event->reply.generation, phase, event->reply.fence);
        break;
    case CORE_EV_BEGIN:
        story_tell(world, "client %u lock %u : there is room for what it wants, %s", client, index, phase);
        break;
    case CORE_EV_ROOM:
        story_tell(world, "client %u lock %u : node %u has room again", client, index, event->node);
        break;
    case CORE_EV_STEP:
        story_tell(world, "client %u lock %u : the clock of node %u has stepped", client, index, event->node);
        break;
    case CORE_EV_NOTICE:
        story_tell(world, "client %u lock %u : node %u tells of a release, %s", client, index, event->node,
                   phase);
        break;
    case CORE_EV_LISTENING:
        story_tell(world, "client %u lock %u : listens to node %u", client, index, event->node);
        break;
    case CORE_EV_WAKE:
        story_tell(world, "client %u lock %u : a lock of the same process gave the keys back", client, index);
        break;
    case CORE_EV_HAND_OFF:
        story_tell(world, "client %u lock %u : goes on for another who stood behind", client, index);
        break;
    case CORE_EV_DISPATCH: break;
    }
}

void story_command(const struct world *world, uint32_t index, const struct core_command *command)
{
    const struct core_tag *tag = &command->tag;

    story_tell(world, "client %u lock %u   %s of attempt %" PRIu64 ".%u -> node %u%s (token %02x%02x%02x)",
               (unsigned)world->locks[index].client, index, story_op(tag->op), tag->attempt,
               (unsigned)tag->round, (unsigned)tag->node, command->use_eval ? ", whole script" : "",
               command->token.bytes[0], command->token.bytes[1], command->token.bytes[2]);
}

void story_tell_of(const struct world *world, uint32_t index, const struct core_completion *tell)
{
    static const char *const losses[] = {"", "expired", "gone", "max hold", "not renewed", "clock stepped"};
    const struct lock *lock = &world->locks[index];
    unsigned client = lock->client;
    uint64_t clock_us = world_client_clock(world, client, world->now_us);
    uint64_t until_us = core_valid_until(lock->core);

    switch (tell->kind) {
    case CORE_NOTIFY_NOTHING: break;
    case CORE_NOTIFY_LOST:
        story_tell(world, "client %u lock %u = LOST (%s)", client, index, PICK(losses, tell->loss));
        break;
    case CORE_NOTIFY_ACQUIRED:
        if (tell->status == CORE_OK) {
            story_tell(world,
                       "client %u lock %u = GRANTED, valid for %" PRId64 " us by its clock (fence %" PRIu64 ")",
                       client, index, (int64_t)(until_us - clock_us), core_fence(lock->core));
        } else {
            story_tell(world, "client %u lock %u = not granted: %s", client, index, story_status(tell->status));
        }
        break;
    case CORE_NOTIFY_EXTENDED:
        story_tell(world, "client %u lock %u = extended: %s", client, index, story_status(tell->status));
        break;
    case CORE_NOTIFY_RELEASED:
        story_tell(world, "client %u lock %u = released: %s%s", client, index, story_status(tell->status),
                   tell->expired ? ", had expired" : "");
        break;
    }
}
