/* SPDX-License-Identifier: BSD-3-Clause */
/* futex.h - threads of one process that sleep until a number in memory changes */
#pragma once

/*
 * futex_wait - sleep while the word has that value; may return early
 * futex_wait_for - the same, but for that time at most
 * futex_wake - wake one thread that sleeps on the word, which may be gone: the address is not read
 * futex_yield - let other threads run first, such as those that were woken
 */
void futex_wait(const void *word, unsigned value);
void futex_wait_for(const void *word, unsigned value, unsigned most_us);
void futex_wake(const void *word);
void futex_yield(void);
