/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine_memory.c - blocks that are counted, known by their machine, and poisoned before and after
 *
 * Small ones stay poisoned for a while after they are freed: what reads them reads no address and no sane number, and
 * what writes to them is found. A sanitizer finds both at once, and has all blocks back for it.
 */
#include <stdlib.h>
#include <string.h>

#include "machine_parts.h"
#include "panic.h"

#define FRESH 0xa5
#define FREED 0xdb

#ifdef __SANITIZE_ADDRESS__
#define KEPT_SIZE 0u
#else
#define KEPT_SIZE 4096u
#endif

/* In front of the block, aligned as malloc does. */
#define FRONT ((sizeof(struct block) + 15) & ~(size_t)15)

static struct block *block_of(const struct machine *machine, void *bytes)
{
    struct block *block = (struct block *)(void *)((char *)bytes - FRONT);

    if (block->machine != machine) panic("machine %u frees what it did not allocate, or twice", machine->index);
    return block;
}

static void put_in(struct machine *machine, struct block *block)
{
    block->previous = NULL;
    block->next = machine->blocks;
    if (block->next != NULL) block->next->previous = block;
    machine->blocks = block;
    machine->n_blocks++;
}

static void take_out(struct machine *machine, struct block *block)
{
    if (block->next != NULL) block->next->previous = block->previous;
    if (block->previous != NULL)
        block->previous->next = block->next;
    else
        machine->blocks = block->next;
    machine->n_blocks--;
}

static void *allocate(void *arg, size_t size)
{
    struct machine *machine = arg;
    const struct machine_events *events = &machine->events;
    struct block *block;

    machine->counts.allocations++;
    if (!machine->dead && events->allocates != NULL && !events->allocates(events->arg, machine, size)) return NULL;
    block = malloc(FRONT + size);
    if (block == NULL) panic("no memory for %zu bytes of machine %u", size, machine->index);
    block->size = size;
    block->machine = machine;
    put_in(machine, block);
    return memset((char *)block + FRONT, FRESH, size);
}

static void forget(struct machine *machine, struct block *block)
{
    const char *bytes = (const char *)block + FRONT;

    /* Each byte is as the one before it. */
    if (block->size > 0 && ((unsigned char)*bytes != FREED || memcmp(bytes, bytes + 1, block->size - 1) != 0))
        panic("machine %u wrote into %zu bytes that it had freed", machine->index, block->size);
    free(block);
}

static void keep_freed(struct machine *machine, struct block *block)
{
    struct block **place = &machine->freed[machine->freed_at++ % FREED_KEPT];

    if (*place != NULL) forget(machine, *place);
    *place = block;
}

static void release(void *arg, void *bytes)
{
    struct machine *machine = arg;
    struct block *block;

    if (bytes == NULL) return;
    block = block_of(machine, bytes);
    take_out(machine, block);
    block->machine = NULL;
    memset(bytes, FREED, block->size);
    if (block->size <= KEPT_SIZE)
        keep_freed(machine, block);
    else
        free(block);
}

/* Always another place, so that an old pointer into it shows. */
static void *reallocate(void *arg, void *bytes, size_t size)
{
    void *moved = allocate(arg, size);
    size_t known;

    if (bytes == NULL || moved == NULL) return moved;
    known = block_of(arg, bytes)->size;
    memcpy(moved, bytes, known < size ? known : size);
    release(arg, bytes);
    return moved;
}

void machine_memory_init(struct machine *machine)
{
    machine->hooks =
        (struct alloc_hooks){.allocate = allocate, .reallocate = reallocate, .release = release, .arg = machine};
    machine->alloc = (struct alloc){.hooks = machine->hooks};
}

void machine_memory_free(struct machine *machine)
{
    struct block *next;

    for (struct block *block = machine->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    machine->blocks = NULL;
    machine->n_blocks = 0;
    for (uint32_t i = 0; i < FREED_KEPT; i++) {
        if (machine->freed[i] != NULL) forget(machine, machine->freed[i]);
        machine->freed[i] = NULL;
    }
}

const struct alloc_hooks *machine_allocator(struct machine *machine)
{
    return &machine->hooks;
}

size_t machine_blocks(const struct machine *machine)
{
    return machine->n_blocks;
}
