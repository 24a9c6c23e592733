/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * news.c - what a waiting lock heard of releases (rules 6.7, 6.10 and 6.11)
 *
 * Each node publishes a release, and names the holder, so that a waiter is woken once. What a server reports by itself
 * is a hint: the key changed, most often by a renewal. A hint only brings the next poll forward. The node's next one
 * counts when it has named another holder since, or after another poll.
 */
#include "news.h"

#include <assert.h>

static uint32_t news_bit(uint32_t index)
{
    return UINT32_C(1) << index;
}

void news_begin(struct news *news)
{
    if (news->state == NEWS_OLD) news->hints = 0; /* rule 6.10: this attempt is a poll */
    news->state = NEWS_OLD;
    news->keys = 0;
}

void news_end(struct news *news)
{
    news->nodes = 0;
    news->published = false;
}

bool news_is_known(const struct news *news, uint64_t holder_id)
{
    return holder_id != 0 && holder_id == news->id && news->state != NEWS_FRESH;
}

/* A known release is news if it reached the node only after the node had refused because of that holder. With permits a
 * refusal names only one of several holders. */
static bool reached_late(struct core_lock *lock, const struct core_node *node, bool arbiter)
{
    if (lock->news.state == NEWS_DRAWN) return false;
    if (arbiter && lock->config->permits != 0) return true;
    if (node->vote == CORE_VOTE_PENDING) lock->news.state = NEWS_REPEATED;
    return core_named_by(node) == lock->news.id;
}

bool news_hear(struct core_lock *lock, uint32_t index, bool arbiter, uint64_t holder_id)
{
    struct news *news = &lock->news;

    assert(index < lock->config->n_nodes);
    if (news_is_known(news, holder_id) && !reached_late(lock, &lock->nodes[index], arbiter)) return false;
    if (news->state == NEWS_DRAWN && !arbiter) return false; /* rule 6.8 */
    news->id = holder_id;
    news->state = NEWS_FRESH;
    news->nodes |= news_bit(index);
    return true;
}

bool news_is_of_quorum(const struct core_lock *lock)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < lock->config->n_nodes; i++) n += (lock->news.nodes & news_bit(i)) != 0;
    return n >= lock->config->quorum;
}

/* Readers change the key whenever one comes or goes. If the node named no holder, the key was ours. */
bool news_awaits_hint(const struct core_lock *lock, uint32_t index)
{
    const struct core_node *node = &lock->nodes[index];

    assert(index < lock->config->n_nodes);
    return core_named_by(node) != 0 && !node->asked.holder.readers && (lock->news.hints & news_bit(index)) == 0;
}

bool news_take_hint(struct core_lock *lock, uint32_t index)
{
    if (!news_awaits_hint(lock, index)) return false;
    lock->news.hints |= news_bit(index);
    lock->news.id = core_named_by(&lock->nodes[index]);
    lock->news.keys |= 1; /* it has no other: see wait_watches */
    if (lock->news.state != NEWS_DRAWN) lock->news.state = NEWS_FRESH;
    return true;
}

void news_on_refusal(struct core_lock *lock, uint32_t index)
{
    const struct core_node *node = &lock->nodes[index];
    struct news *news = &lock->news;
    uint64_t holder_id = core_named_by(node);

    if (news->state == NEWS_REPEATED && holder_id == news->id) news->state = NEWS_FRESH;
    if (holder_id != node->asked.holder.before_id) news->hints &= ~news_bit(index);
    if (news->hints != 0 && holder_id == news->id) news->id = 0; /* it was no release: that is still to come */
}
