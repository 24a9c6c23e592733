/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compact.h - locks that are held, or lost and not released yet, and have nothing under way
 *
 * A small record in the handle's block (core/compact.h) stands for the claim, whose memory serves other locks. The
 * handle's waker has the deadline of the record. When the deadline comes, or the caller extends or releases, the claim
 * is made again from the record; when all is quiet, the record takes its place again.
 *
 * Renewal, loss and release must not depend on memory that happens to be free. So each claim that becomes compact gives
 * its block to those that are expanded, and 64 blocks are kept for these alone (claim.c). When all blocks are in use
 * and memory is out:
 *
 * - A renewal waits in order for a block. One is free when its nodes have answered, or after a node timeout.
 * - A loss is reported in time from the record, without votes.
 * - An extend fails with NOMEM; the lock stays held and renewed.
 * - A release ends with NOQUORUM, and the keys expire.
 *
 * A lock with a named owner is never compact, because its handles share a claim; nor is one of a client that makes
 * faults up (buggify.h).
 */
#pragma once

#include "lock/handle.h"

/* compact_claim - replace the claim by a record in its handle, where nothing is under way; else do nothing. The claim
 * may be gone afterwards. */
void compact_claim(struct claim *);
/* compact_expand - make the claim of a compact lock again; the caller steps it next. NULL: out of memory. */
struct claim *compact_expand(struct quorlock_lock *);
/* compact_drop - end the hold of a compact lock without memory; its keys expire.
 * compact_release - the same, with a callback. */
void compact_drop(struct quorlock_lock *);
void compact_release(struct quorlock_lock *, const struct lock_callback *);
/* compact_wake - serve the deadline of a compact lock.
 * compact_begin_admitted - renew it, now that there is room; see struct admission.
 * compact_node_revived - look whether it needs a repair, for a node was restarted, or connected anew.
 * compact_clock_stepped - as claim_clock_stepped. */
void compact_wake(struct quorlock_lock *);
bool compact_begin_admitted(struct quorlock_lock *);
void compact_node_revived(struct quorlock_lock *);
void compact_clock_stepped(struct quorlock_lock *, uint32_t node, uint64_t before_us);
