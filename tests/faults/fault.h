/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - which of the faults that ./make has put into the library is on
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FAULTS_MAX (512 * 512)

extern int fault_on;
extern unsigned char fault_reached[FAULTS_MAX];

static inline bool fault_is(int number)
{
    fault_reached[number] = 1;
    return number == fault_on;
}

/* fault_read - take the text and the hash of the script from the folder of the variable FAULT_SCRIPTS, if it is there.
 */
void fault_read(const char *name, char *text, size_t size, char *hash);
