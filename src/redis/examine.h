/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examine.h - ask one server everything that matters to its locks, over a short connection of its own
 *
 * No server is refused: replicas, cluster nodes, Sentinels and old versions are examined like any other. Nothing is
 * written. To test a right, it sends a command whose arguments the server refuses after it has checked the right, or a
 * command that reads or deletes a key that does not exist.
 */
#pragma once

#include <stdint.h>

#include "base/alloc.h"
#include "redis/examine_read.h"
#include "redis/link/config.h"

struct examine;
struct system;

/* An examination lasts at most as long as one try to connect and this many timeouts of a question. */
#define EXAMINE_QUESTIONS 2u

struct examine_config {
    struct system *system;
    const struct alloc *alloc;
    struct link_config link; /* its log function is not used */
    const char *key_prefix;  /* must live as long as the examination */
    void (*done)(void *arg);
    void *arg;
};

/* examine_start - start an examination. *facts is filled until done() is called, once, from the loop. After done(), or
 * examine_cancel, the examination is gone; the facts belong to the caller all the time. NULL: out of memory. */
struct examine *examine_start(const struct examine_config *, struct examine_facts *facts);
void examine_cancel(struct examine *);
