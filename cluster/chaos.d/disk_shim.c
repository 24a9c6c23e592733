/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk_shim.c - preloaded into a Redis server, makes its disk slow or full
 *
 * QUORLOCK_CHAOS_DISK names a file that holds a struct disk. A write to the file changes the disk of the running server
 * at once; its counters tell what the server has met. Only regular files are affected. As on a real disk, the write
 * that reaches the end is cut short, and the next one is refused. Without the variable nothing changes.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "shim.h"

#define LOOK_MS 2

struct disk {
    _Atomic int64_t stall_ms;   /* how long each fsync takes */
    _Atomic int64_t room_bytes; /* free space on the disk; below 0: unlimited */
    _Atomic int64_t stalled;    /* fsyncs that were delayed */
    _Atomic int64_t refused;    /* writes that were cut short or refused */
};

static struct disk *disk;

__attribute__((constructor)) static void disk_map(void)
{
    disk = shim_map("QUORLOCK_CHAOS_DISK", sizeof(*disk));
}

/* Return how many bytes of a write still fit, and take them from the free space. */
static size_t take_room(size_t size)
{
    int64_t room = atomic_load(&disk->room_bytes), taken;

    do {
        if (room < 0) return size;
        taken = (uint64_t)room < size ? room : (int64_t)size;
    } while (!atomic_compare_exchange_weak(&disk->room_bytes, &room, room - taken));
    return (size_t)taken;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    struct stat status;
    size_t room = size;

    if (disk != NULL && atomic_load(&disk->room_bytes) >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        room = take_room(size);
        if (room < size) atomic_fetch_add(&disk->refused, 1);
        if (room == 0 && size > 0) {
            errno = ENOSPC;
            return -1;
        }
    }
    return syscall(SYS_write, fd, bytes, room);
}

static int64_t now_ms(void)
{
    struct timespec now;

    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The delay ends early when the disk is reset to normal. */
static void stall(void)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    int64_t begun_ms = now_ms();

    if (disk == NULL || atomic_load(&disk->stall_ms) <= 0) return;
    atomic_fetch_add(&disk->stalled, 1);
    while (now_ms() - begun_ms < atomic_load(&disk->stall_ms)) (void)nanosleep(&look, NULL);
}

int fsync(int fd)
{
    stall();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    stall();
    return (int)syscall(SYS_fdatasync, fd);
}
