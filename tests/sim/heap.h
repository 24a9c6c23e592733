/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h - what is going to happen, in order of true time; at one instant in order of planning
 */
#ifndef QUORLOCK_SIM_HEAP_H
#define QUORLOCK_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum happening_type {
    HAPPEN_ARRIVE,   /* a request reaches its server: index, serial */
    HAPPEN_ANSWER,   /* an answer reaches its client: index, serial */
    HAPPEN_TIMEOUT,  /* a request's own deadline: index, serial */
    HAPPEN_STALL,    /* is the oldest request unanswered for too long? client, node, serial is the generation */
    HAPPEN_CLOSED,   /* the client sees its connection end: client, node, serial is the generation */
    HAPPEN_GREET,    /* a handshake is at the server: client, node, serial is the try */
    HAPPEN_CONNECT,  /* a handshake ends: client, node, serial is the try */
    HAPPEN_GUARD,    /* a quarantine ends, perhaps: client, node, index is the stage, serial the generation */
    HAPPEN_RETRY,    /* connect again: client, node, serial is the try */
    HAPPEN_TIMER,    /* a lock's timer: index, serial is its life */
    HAPPEN_DISPATCH, /* callbacks of a lock: index, serial is its life */
    HAPPEN_ACT,      /* a contender's next act: index, serial */
    HAPPEN_EXPIRY,   /* a key may expire: node, index is the key */
    HAPPEN_FAULT,    /* index, serial is the part of it */
    HAPPEN_WRITE,    /* a write reaches the register: index is the grant */
    HAPPEN_RESTART,  /* node, serial is its life */
    HAPPEN_BIRTH,    /* client */
    HAPPEN_SUBSCRIBE, /* a subscription reaches its server: index is the lock, node, serial */
    HAPPEN_LISTENING, /* its confirmation reaches the client: the same */
    HAPPEN_NOTICE,    /* a notice reaches the client: the same, and holder_id */
    HAPPEN_PHASE,
};

struct happening {
    uint64_t at_us;
    uint64_t order;
    uint64_t holder_id;
    uint32_t index;
    uint32_t serial;
    uint8_t type;
    uint8_t client;
    uint8_t node;
};

struct heap {
    struct happening *items;
    size_t n;
    size_t capacity;
    uint64_t planned;
};

void heap_clear(struct heap *);
void heap_free(struct heap *);
/* heap_push - plans one; its order is set here. Ends the program when memory is out. */
void heap_push(struct heap *, struct happening);
/* heap_pop - takes the first; false when nothing is left. */
bool heap_pop(struct heap *, struct happening *);

#endif
