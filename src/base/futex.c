/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/futex.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What fails needs no answer: who waits looks at the word again. */

void futex_wait(const void *word, unsigned value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

void futex_wake(const void *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}
