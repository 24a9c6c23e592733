/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/futex.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What fails needs no answer: who waits looks at the word again. */

void futex_wait(const void *word, unsigned value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void futex_wait_for(const void *word, unsigned value, unsigned most_us)
{
    /* The kernel's struct timespec for this call, whatever that of the C library is. */
    const struct {
        long seconds, nanoseconds;
    } most = {(long)(most_us / 1000000u), (long)(most_us % 1000000u) * 1000};

    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &most);
}

void futex_wake(const void *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

void futex_yield(void)
{
    (void)sched_yield();
}
