/* SPDX-License-Identifier: BSD-3-Clause */
/* news.h - what a waiting lock heard of releases: see struct news */
#pragma once

#include "state.h"

/* news_begin - an attempt begins: what was heard so far is old. */
void news_begin(struct news *);
/* news_end - the attempt has ended, and a wait begins. */
void news_end(struct news *);
/* news_is_known - tell whether the latest attempt began, or its pause was drawn, after that holder's release. */
bool news_is_known(const struct news *, uint64_t holder_id);
/* news_hear - take a release that the node published, and tell whether it is news (rule 6.7). */
bool news_hear(struct core_lock *, uint32_t node, bool arbiter, uint64_t holder_id);
/* news_is_of_quorum - tell whether a quorum has published a release since the wait began. */
bool news_is_of_quorum(const struct core_lock *);
/* news_awaits_hint - tell whether a change that this node's server reports would count. */
bool news_awaits_hint(const struct core_lock *, uint32_t node);
/* news_take_hint - take such a report, and tell whether it counts (rule 6.10). */
bool news_take_hint(struct core_lock *, uint32_t node);
/* news_on_refusal - the node has named a holder. */
void news_on_refusal(struct core_lock *, uint32_t node);
