/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_system.c - clocks, random bytes, sockets and host names, as struct system_ops asks for them */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "machine_parts.h"
#include "panic.h"

#define NAME_FRONT "node"

/* ---- time and random bytes ---- */

uint64_t machine_shows_us(const struct machine *machine, int which)
{
    return skew_read(&machine->clocks[which], machine->queue->now_us);
}

static uint64_t read_clock(struct machine *machine, int which)
{
    const struct machine_events *events = &machine->events;

    machine->counts.clock_reads++;
    if (!machine->dead && events->reads_clock != NULL) events->reads_clock(events->arg, machine);
    return machine_shows_us(machine, which);
}

static uint64_t boot_us(struct system *system)
{
    return read_clock(system->arg, MACHINE_BOOT);
}

static uint64_t raw_us(struct system *system)
{
    return read_clock(system->arg, MACHINE_RAW);
}

static uint64_t wall_us(struct system *system)
{
    return read_clock(system->arg, MACHINE_WALL);
}

static int draw(struct system *system, void *ret, size_t size, bool wait)
{
    struct machine *machine = system->arg;

    (void)wait;
    if (!machine->dead && machine->events.draws != NULL && !machine->events.draws(machine->events.arg, machine))
        return -1;
    rng_bytes(&machine->random_rng, ret, size);
    return 0;
}

/* None: each draw is looked at as it comes. */
static void *wiped_new(struct system *system, size_t size)
{
    (void)system;
    (void)size;
    return NULL;
}

static void wiped_free(struct system *system, void *memory, size_t size)
{
    (void)system;
    (void)memory;
    (void)size;
}

/* ---- sockets ---- */

struct slot *machine_slot(struct machine *machine, int fd)
{
    uint32_t i = net_fd_index(fd);

    if (i >= machine->slots_room || machine->slots[i].fd != fd)
        panic("machine %u uses descriptor %d, which it does not have", machine->index, fd);
    return &machine->slots[i];
}

static void fill_slot(struct machine *machine, int fd)
{
    uint32_t i = net_fd_index(fd), room = machine->slots_room;

    if (i >= room) {
        machine->slots_room = (i + 1) * 2;
        machine->slots = realloc(machine->slots, machine->slots_room * sizeof(machine->slots[0]));
        if (machine->slots == NULL) panic("no memory for %u descriptors", machine->slots_room);
        for (; room < machine->slots_room; room++) machine->slots[room] = (struct slot){.fd = -1};
    }
    machine->slots[i].fd = fd;
    machine->descriptors++;
}

static int begin_connect(struct system *system, const struct address *address, uint32_t user_timeout_ms)
{
    struct machine *machine = system->arg;
    int fd;

    machine->counts.connects++;
    errno = machine->dead ? ENETUNREACH : EMFILE;
    if (machine->dead || machine->descriptors >= machine->descriptors_limit) return -1;
    fd = net_connect(machine->net, machine->index, address, user_timeout_ms, machine_woken, machine);
    if (fd >= 0) fill_slot(machine, fd);
    return fd;
}

static int finish_connect(struct system *system, int fd)
{
    struct machine *machine = system->arg;

    (void)machine_slot(machine, fd);
    return machine->dead ? ECONNRESET : net_finish(machine->net, fd);
}

/* A dead one believes that all was sent. */
static ssize_t send_bytes(struct system *system, int fd, const void *bytes, size_t size)
{
    struct machine *machine = system->arg;
    const struct machine_events *events = &machine->events;
    ssize_t n;

    (void)machine_slot(machine, fd);
    machine->counts.sends++;
    if (!machine->dead && events->sends != NULL)
        events->sends(events->arg, machine, net_server_of(machine->net, fd), size);
    if (machine->dead) return (ssize_t)size;
    n = net_send(machine->net, fd, bytes, size);
    if (n > 0) machine->counts.bytes_sent += (uint64_t)n;
    return n;
}

static ssize_t receive(struct system *system, int fd, void *ret, size_t size)
{
    struct machine *machine = system->arg;
    ssize_t n;

    (void)machine_slot(machine, fd);
    errno = ECONNRESET;
    n = machine->dead ? -1 : net_recv(machine->net, fd, ret, size);
    machine->counts.received++;
    if (n > 0) machine->counts.bytes_received += (uint64_t)n;
    return n;
}

static bool has_input(struct system *system, int fd)
{
    struct machine *machine = system->arg;

    (void)machine_slot(machine, fd);
    return !machine->dead && net_has_input(machine->net, fd);
}

static void keep_sending(struct system *system, int fd)
{
    struct machine *machine = system->arg;

    if (!machine->dead) net_keep_sending(machine->net, fd);
}

static void close_socket(struct system *system, int fd, bool reset)
{
    struct machine *machine = system->arg;
    struct slot *slot = machine_slot(machine, fd);

    if (slot->watch != NULL) panic("machine %u closes descriptor %d, which it watches", machine->index, fd);
    slot->fd = -1;
    machine->descriptors--;
    if (machine->dead) return;
    if (machine->events.closes != NULL)
        machine->events.closes(machine->events.arg, machine, net_is_owed(machine->net, fd));
    net_close(machine->net, fd, reset);
}

/* ---- host names ---- */

static uint32_t name_server(const char *name)
{
    size_t front = strlen(NAME_FRONT);

    if (strncmp(name, NAME_FRONT, front) != 0) panic("nobody is called %s", name);
    return (uint32_t)strtoul(name + front, NULL, 10);
}

static void lookup_cancel(struct lookup *lookup)
{
    struct machine *machine = lookup->machine;

    machine_due(&lookup->due, NULL);
    queue_set(machine->queue, &lookup->moment, NEVER);
    list_remove(&machine->lookups, &lookup->at);
    alloc_free(&machine->alloc, lookup);
}

static void run_lookup(struct due *due)
{
    struct lookup *lookup = CONTAINER_OF(due, struct lookup, due);
    struct machine *machine = lookup->machine;
    struct addresses answer = {.why = "no such host"};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&answer.at[0].storage;
    void (*done)(void *, const struct addresses *) = lookup->done;
    void *arg = lookup->arg;

    if (!machine->names_fail && !machine->dead) {
        answer.n = 1;
        answer.at[0].length = sizeof(*v4);
        v4->sin_family = AF_INET;
        v4->sin_port = htons(lookup->port);
        v4->sin_addr.s_addr = htonl(NET_SUBNET | net_address(machine->net, lookup->server));
    }
    lookup_cancel(lookup);
    done(arg, &answer);
}

static void on_answer(void *arg)
{
    struct lookup *lookup = arg;

    machine_due(&lookup->due, &lookup->machine->pending);
    machine_soon(lookup->machine);
}

static void await_answer(struct lookup *lookup)
{
    struct machine *machine = lookup->machine;
    uint64_t mean_us = machine->names_us;

    if (machine_lives(machine) && (mean_us != NEVER || machine->dead))
        queue_set(machine->queue, &lookup->moment,
                  machine->queue->now_us + (machine->dead ? 0 : rng_long_tail(&machine->lookup_rng, mean_us)));
}

void machine_lookups_set(struct machine *machine)
{
    LIST_EACH (struct lookup, lookup, &machine->lookups, at) {
        if (lookup->due.in == NULL) await_answer(lookup);
    }
}

static struct lookup *lookup_start(struct system *system, const char *name, uint16_t port,
                                   void (*done)(void *, const struct addresses *), void *arg)
{
    struct machine *machine = system->arg;
    struct lookup *lookup = alloc_zero(system->alloc, sizeof(*lookup));

    machine->counts.lookups++;
    if (lookup == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    *lookup = (struct lookup){.due.run = run_lookup,
                              .machine = machine,
                              .moment = {.happen = on_answer, .arg = lookup},
                              .server = name_server(name),
                              .port = port,
                              .done = done,
                              .arg = arg};
    list_add(&machine->lookups, &lookup->at);
    await_answer(lookup);
    return lookup;
}

const struct system_ops machine_ops = {.boot_us = boot_us,
                                       .raw_us = raw_us,
                                       .wall_us = wall_us,
                                       .alarm_new = machine_alarm_new,
                                       .alarm_set = machine_alarm_set,
                                       .alarm_free = machine_alarm_free,
                                       .random = draw,
                                       .wiped_new = wiped_new,
                                       .wiped_free = wiped_free,
                                       .connect = begin_connect,
                                       .finish = finish_connect,
                                       .send = send_bytes,
                                       .recv = receive,
                                       .has_input = has_input,
                                       .keep_sending = keep_sending,
                                       .close = close_socket,
                                       .lookup = lookup_start,
                                       .lookup_cancel = lookup_cancel};
