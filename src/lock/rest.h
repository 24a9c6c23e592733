/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rest.h - locks that rest: held, or lost and not released yet, with nothing under way
 *
 * A small record (core/rest.h) stands for the claim, whose block serves others. The handle has the record's deadline. A
 * claim is made from it when that comes, or the caller extends or releases, and goes back to it when all is quiet.
 *
 * What a lock needs to be renewed, lost and released must not depend on memory that is there by then. So each claim
 * that goes to rest gives its block to the claims that come back, which have 64 for themselves (claim.c). Where all are
 * in use, and memory is out: renewals wait in order for a block, of which each is back when the nodes have answered, or
 * after a node timeout; a loss is told in time from the record, without votes; an extend fails with NOMEM, and the lock
 * stays held and renewed; a release ends with NOQUORUM, and leaves the keys to their leases.
 *
 * Not for locks with an owner, whose handles share a claim, and not where troubles are made up.
 */
#pragma once

#include "lock/handle.h"

/* rest_begin - a claim's end, where its lock can rest; else nothing. */
void rest_begin(struct claim *);
/* rest_end - the claim of a lock that rests; it is to be stepped next. NULL: out of memory. */
struct claim *rest_end(struct quorlock *);
/* rest_drop - it is held no more, and the keys are left to their leases. rest_release: the same, with a callback. */
void rest_drop(struct quorlock *);
void rest_release(struct quorlock *, const struct lock_callback *);
/* rest_wake - its deadline came. rest_begin_admitted: there is room for its renewal; see struct admission.
 * rest_node_revived: another life of a node was met, so it may need a repair. rest_clock_stepped: as
 * claim_clock_stepped. */
void rest_wake(struct quorlock *);
bool rest_begin_admitted(struct quorlock *);
void rest_node_revived(struct quorlock *);
void rest_clock_stepped(struct quorlock *, uint32_t node, uint64_t before_us);
