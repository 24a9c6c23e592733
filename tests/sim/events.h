/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.h - what is going to happen, in order of true time; at one instant in order of planning
 */
#ifndef QUORLOCK_SIM_EVENTS_H
#define QUORLOCK_SIM_EVENTS_H

#include <stdbool.h>

#include "../../src/base/heap.h"

enum event_type {
    EVENT_ARRIVE,    /* a request reaches its server: index, serial */
    EVENT_ANSWER,    /* an answer reaches its client: index, serial */
    EVENT_TIMEOUT,   /* a request's own deadline: index, serial */
    EVENT_STALL,     /* is the oldest request unanswered for too long? client, node, serial is the generation */
    EVENT_CLOSED,    /* the client sees its connection end: client, node, serial is the generation */
    EVENT_GREET,     /* a handshake is at the server: client, node, serial is the try */
    EVENT_CONNECT,   /* a handshake ends: client, node, serial is the try */
    EVENT_GUARD,     /* a quarantine ends, perhaps: client, node, index is the stage, serial the generation */
    EVENT_RETRY,     /* connect again: client, node, serial is the try */
    EVENT_TIMER,     /* a lock's timer: index, serial is its life */
    EVENT_DISPATCH,  /* callbacks of a lock: index, serial is its life */
    EVENT_ACT,       /* an actor's next act: index, serial */
    EVENT_EXPIRY,    /* a key may expire: node, index is the key */
    EVENT_FAULT,     /* index, serial is the part of it */
    EVENT_WRITE,     /* a write reaches the register: index is the grant */
    EVENT_RESTART,   /* node, serial is its life */
    EVENT_BIRTH,     /* client */
    EVENT_SUBSCRIBE, /* a subscription reaches its server: index is the lock, node, serial */
    EVENT_LISTENING, /* its confirmation reaches the client: the same */
    EVENT_NOTICE,    /* a notice reaches the client: the same, and holder_id */
    EVENT_PHASE,
};

struct event {
    struct heap_entry entry; /* first; by time and order of planning */
    uint64_t at_us;
    uint64_t holder_id;
    uint32_t index;
    uint32_t serial;
    uint8_t type;
    uint8_t client;
    uint8_t node;
    struct event *next; /* in the list of free ones */
};

struct events {
    struct heap heap;
    struct alloc alloc;
    struct event *free;
    uint64_t planned;
};

void events_clear(struct events *);
void events_free(struct events *);
/* events_plan - plans one more. Ends the program when memory is out. */
void events_plan(struct events *, const struct event *);
/* events_next - takes the first; false when none is left. */
bool events_next(struct events *, struct event *);

#endif
