/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_held.c - what many locks cost that are held and renewed
 *
 * usage: bench_held LOCKS SECONDS LEASE_MS NODE,NODE,...
 *
 * Takes so many locks at once, holds them, and prints as JSON how long the taking took, the memory of this process for
 * each at the end, as the library asked for it (blocks and bytes) and as the process got it (rss), and the part of that
 * which is its key's bytes, also the memory of a handle that is idle, and while they are held: the CPU of client and
 * nodes, what the nodes were asked, the validity that was left at least, and how many locks were lost. Beside it what
 * the baseline's CPU is for one request to all nodes, 256 of them at a time, before and after.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <malloc.h>
#include <quorlock/quorlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/raw.h"
#include "bench/slice.h"
#include "program.h"

#define RAW_IN_FLIGHT 256
#define RAW_SPAN_NS   250000000u
#define LOOK_US       100000
#define LOOK_PART     100u /* of the locks are looked at each time: each in ten seconds */
#define LOCKS_MAX     10000000u

struct held {
    struct event_base *base;
    quorlock_client *client;
    struct raw *raw;
    struct one {
        quorlock_lock *lock;
    } * locks;
    uint32_t n_locks, seconds, lease_ms;
    char prefix[64];
    size_t key_bytes; /* of all keys */
    uint32_t answers, granted;
    uint32_t lost;
    uint32_t least_valid_ms, next_look;
    uint64_t look_cpu_ns; /* is not the client's */
    double raw_request_us;
    struct slice taking, holding;
    struct memory {
        size_t blocks, bytes; /* of the library */
        size_t rss;
    } now, before, idle, held;
};

/* resident - bytes of memory that this process has. */
static size_t resident(void)
{
    char line[256];
    FILE *file = fopen("/proc/self/statm", "re");
    char *second;

    /* In pages: all of it, then what is resident. */
    if (file == NULL || fgets(line, sizeof(line), file) == NULL) program_fail("/proc/self/statm cannot be read");
    fclose(file);
    second = strchr(line, ' ');
    return second != NULL ? strtoul(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* ---- the library's memory ---- */

static void *count_in(struct memory *memory, void *block)
{
    if (block == NULL) return NULL;
    memory->blocks++;
    memory->bytes += malloc_usable_size(block);
    return block;
}

static void count_out(struct memory *memory, void *block)
{
    if (block == NULL) return;
    memory->blocks--;
    memory->bytes -= malloc_usable_size(block);
}

static void *allocate(void *memory, size_t size)
{
    return count_in(memory, malloc(size));
}

static void *reallocate(void *memory, void *block, size_t size)
{
    void *moved;

    count_out(memory, block);
    moved = realloc(block, size);
    if (moved == NULL) (void)count_in(memory, block);
    return count_in(memory, moved);
}

static void release(void *memory, void *block)
{
    count_out(memory, block);
    free(block);
}

static struct memory look(const struct held *held)
{
    struct memory memory = held->now;

    memory.rss = resident();
    return memory;
}

static void on_lost(quorlock_lock *lock, const struct quorlock_loss *loss, void *arg)
{
    struct held *held = arg;

    held->lost++;
}

static void on_acquired(quorlock_lock *lock, const struct quorlock_result *result, void *arg)
{
    struct held *held = arg;

    held->granted += result->status == QUORLOCK_OK;
    if (++held->answers == held->n_locks) event_base_loopbreak(held->base);
}

static void take(struct held *held)
{
    struct quorlock_lock_options options = {.size = sizeof(options), .lease_ms = held->lease_ms};

    held->locks = malloc(held->n_locks * sizeof(*held->locks));
    if (held->locks == NULL) program_fail("no memory");
    /* So that they are in memory before the library's are. */
    memset(held->locks, 0xff, held->n_locks * sizeof(*held->locks));
    held->before = look(held);
    slice_begin(&held->taking);
    for (uint32_t i = 0; i < held->n_locks; i++) {
        char name[96];
        const char *key = name;

        held->key_bytes += (size_t)snprintf(name, sizeof(name), "%s%u", held->prefix, i);
        if (quorlock_lock_new(&held->locks[i].lock, held->client, &key, 1, &options) != 0)
            program_fail(quorlock_client_error(held->client));
        quorlock_lock_set_on_lost(held->locks[i].lock, on_lost, held);
    }
    held->idle = look(held);
    for (uint32_t i = 0; i < held->n_locks; i++) {
        if (quorlock_lock_acquire(held->locks[i].lock, on_acquired, held) != 0)
            program_fail(quorlock_client_error(held->client));
    }
    event_base_dispatch(held->base);
    slice_end(&held->taking);
    if (held->granted < held->n_locks) program_fail("not every lock was granted");
}

static uint64_t cpu_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) program_fail("no clock");
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* on_look - the locks in turn, so many at a time. */
static void on_look(evutil_socket_t fd, short what, void *arg)
{
    struct held *held = arg;
    uint64_t begun_ns = cpu_ns();

    for (uint32_t i = 0; i < held->n_locks / LOOK_PART + 1; i++) {
        uint32_t valid_ms = quorlock_lock_valid_ms(held->locks[held->next_look].lock);

        if (valid_ms < held->least_valid_ms) held->least_valid_ms = valid_ms;
        held->next_look = (held->next_look + 1) % held->n_locks;
    }
    held->look_cpu_ns += cpu_ns() - begun_ns;
}

/* hold - a function of its own, for callgrind. */
__attribute__((noinline)) static void hold(struct held *held)
{
    struct timeval span = {.tv_sec = held->seconds}, pause = {.tv_usec = LOOK_US};
    struct event *timer = event_new(held->base, -1, EV_PERSIST, on_look, held);

    held->least_valid_ms = held->lease_ms;
    if (timer == NULL || event_add(timer, &pause) != 0) program_fail("no timer");
    raw_usage(held->raw, NULL);
    slice_begin(&held->holding);
    event_base_loopexit(held->base, &span);
    event_base_dispatch(held->base);
    slice_end(&held->holding);
    held->held = look(held);
    held->holding.cpu_ns -= held->look_cpu_ns;
    raw_usage(held->raw, &held->holding.usage);
    event_free(timer);
}

/* measure_raw - the CPU of this process for one request to all nodes: half of a raw cycle. */
static void measure_raw(struct held *held)
{
    static struct slice slice;

    raw_run(held->raw, RAW_SPAN_NS, &slice);
    if (slice.cycles > 0) held->raw_request_us += (double)slice.cpu_ns / 1000 / (double)slice.cycles / 2 / 2;
}

static double seconds_of(const struct slice *slice)
{
    return (double)(slice->ended_ns - slice->begun_ns) / 1e9;
}

static void tell_memory(const struct held *held)
{
    const struct memory *before = &held->before, *idle = &held->idle, *last = &held->held;
    double n_locks = held->n_locks;

    printf(
        "{\"rss_bytes_per_lock\": %.0f, \"rss_bytes_per_idle\": %.0f, \"key_bytes\": %.1f, \"blocks_per_lock\": %.3f, "
        "\"bytes_per_lock\": %.1f, \"blocks_per_idle\": %.3f, \"bytes_per_idle\": %.1f, ",
        (double)(last->rss - before->rss) / n_locks, (double)(idle->rss - before->rss) / n_locks,
        (double)held->key_bytes / n_locks, (double)(last->blocks - before->blocks) / n_locks,
        (double)(last->bytes - before->bytes) / n_locks, (double)(idle->blocks - before->blocks) / n_locks,
        (double)(idle->bytes - before->bytes) / n_locks);
}

static void tell(const struct held *held)
{
    const struct slice *holding = &held->holding;
    double seconds = seconds_of(holding), n_locks = held->n_locks;
    double renewals = n_locks * seconds / ((double)held->lease_ms / 3000);

    tell_memory(held);
    printf("\"locks\": %u, \"lease_ms\": %u, \"take_s\": %.3f, \"held_s\": %.3f, "
           "\"client_cpu_share\": %.5f, \"client_cpu_us_per_renewal\": %.3f, \"raw_cpu_us_per_request\": %.3f, "
           "\"server_cpu_us_per_renewal\": %.3f, \"server_commands_per_renewal\": %.3f, "
           "\"server_bytes_per_renewal\": %.1f, \"least_valid_ms\": %u, \"lost\": %u}\n",
           held->n_locks, held->lease_ms, seconds_of(&held->taking), seconds, (double)holding->cpu_ns / 1e9 / seconds,
           (double)holding->cpu_ns / 1000 / renewals, held->raw_request_us, holding->usage.cpu_us / renewals,
           (double)holding->usage.commands / renewals, (double)holding->usage.bytes / renewals, held->least_valid_ms,
           held->lost);
}

int main(int argc, char **argv)
{
    static struct held held;
    const struct alloc_hooks memory = {
        .allocate = allocate, .reallocate = reallocate, .release = release, .arg = &held.now};
    struct raw_options options = {.in_flight = RAW_IN_FLIGHT, .lease_ms = 30000};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 5) {
        fprintf(stderr, "usage: bench_held LOCKS SECONDS LEASE_MS NODE,NODE,...\n");
        return 64;
    }
    if (!program_number(&held.n_locks, argv[1], LOCKS_MAX) || !program_number(&held.seconds, argv[2], 3600) ||
        !program_number(&held.lease_ms, argv[3], 30000))
        program_fail("a number is wrong or too large");
    options.nodes = argv[4];
    snprintf(held.prefix, sizeof(held.prefix), "quorlock-bench:%08ld:", (long)getpid());
    options.prefix = "quorlock-bench:raw:";
    held.raw = raw_new(&options);
    if (held.raw == NULL || raw_ready(held.raw) == 0) program_fail("no node answers");
    measure_raw(&held);
    held.base = program_loop();
    held.client =
        program_client_on(held.base, argv[4], (struct quorlock_client_options){.guard = QUORLOCK_GUARD_OFF}, &memory);
    take(&held);
    hold(&held);
    quorlock_client_close(held.client, NULL, NULL);
    event_base_dispatch(held.base);
    measure_raw(&held);
    tell(&held);
    event_base_free(held.base);
    free(held.locks);
    raw_free(held.raw);
    return 0;
}
