/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examine.h - asks one server everything that matters to its locks, over a short connection of its own
 *
 * No server is refused: replicas, cluster nodes, Sentinels and old versions are examined like any other.
 * Nothing is written. A right is probed by a command that the server refuses for its arguments after it has
 * checked the rights, or by one that reads or deletes a key that does not exist.
 */
#pragma once

#include <stdint.h>

#include "base/alloc.h"
#include "redis/examine_read.h"
#include "redis/link/config.h"

struct examine;
struct system;

/* An examination lasts at most as long as a try to connect, and so many times the timeout of a question. */
#define EXAMINE_QUESTIONS 2u

struct examine_config {
    struct system *system;
    const struct alloc *alloc;
    struct link_config link; /* nothing is logged */
    const char *key_prefix;  /* kept by the caller as long as the examination */
    void (*done)(void *arg);
    void *arg;
};

/* examine_start - begins; *facts is filled until done, which is called once, from the loop. After done, or
 * after examine_cancel, the examination is gone; the facts are the caller's all along. NULL: out of memory. */
struct examine *examine_start(const struct examine_config *, struct examine_facts *facts);
void examine_cancel(struct examine *);
