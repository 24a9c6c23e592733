/* SPDX-License-Identifier: BSD-3-Clause */
#include "election/elections.h"

/* ---- the turn ---- */

static void elections_begin_turn(struct turn *turn)
{
    struct elections *all = CONTAINER_OF(turn, struct elections, turn);

    all->budget = all->due.count;
}

static bool elections_next_in_turn(struct turn *turn)
{
    struct elections *all = CONTAINER_OF(turn, struct elections, turn);
    struct member *member;

    if (all->budget == 0 || all->due.count == 0) return false;
    all->budget--;
    member = FIRST_OF(&all->due, struct member, in_due);
    list_remove(&all->due, &member->in_due);
    runtime_batch(all->runtime, false);
    member->take_turn(member);
    return true;
}

static void elections_end_turn(struct turn *turn)
{
    (void)turn;
}

static bool elections_waits(struct turn *turn, bool closing)
{
    (void)closing;
    return CONTAINER_OF(turn, struct elections, turn)->due.count > 0;
}

/* ---- life ---- */

void elections_start(struct elections *all, struct runtime *runtime, struct locks *locks, struct admin *admin)
{
    all->runtime = runtime;
    all->locks = locks;
    all->admin = admin;
    all->turn = (struct turn){.begin = elections_begin_turn,
                              .next = elections_next_in_turn,
                              .end = elections_end_turn,
                              .waits = elections_waits};
    runtime_add_turn(runtime, &all->turn);
}

void elections_close(struct elections *all)
{
    LIST_EACH (struct member, member, &all->members, in_all) member->close(member);
}

void elections_stop(struct elections *all)
{
    struct member *member;

    while ((member = FIRST_OF(&all->members, struct member, in_all)) != NULL) member->destroy(member);
}

int elections_check(struct elections *all, const void *ret, const char *what)
{
    if (all->runtime->closing) return runtime_fail_plainly(all->runtime, QUORLOCK_ERR_CLOSED);
    if (ret == NULL) {
        return runtime_fail(all->runtime, QUORLOCK_ERR_INVAL, "ret is NULL: there is no place for the %s", what);
    }
    if (all->runtime->options.dialect == QUORLOCK_DIALECT_PLAIN) return 0;
    return runtime_fail(all->runtime, QUORLOCK_ERR_UNSUPPORTED,
                        "the redisson dialect has no elections: its locks have no fencing tokens, and a term is one. "
                        "Use a client of the plain dialect");
}

/* ---- members ---- */

static void seed(struct runtime *runtime, struct backoff_jitter *jitter)
{
    unsigned char bytes[sizeof(jitter->state)];

    /* Jitter is no secret. */
    jitter->state = runtime_now_us(runtime);
    if (random_draw(&runtime->random, &runtime->system, bytes, sizeof(bytes)) == 0) backoff_seed(jitter, bytes);
}

void member_join(struct member *member, struct elections *all, void (*wake)(struct waker *))
{
    runtime_start_waker(all->runtime, &member->waker, wake);
    member->all = all;
    seed(all->runtime, &member->jitter);
    list_add(&all->members, &member->in_all);
}

void member_leave(struct member *member)
{
    list_remove(&member->all->members, &member->in_all);
    list_remove(&member->all->due, &member->in_due);
    runtime_stop_waker(&member->waker);
}

void member_wants_turn(struct member *member)
{
    list_add(&member->all->due, &member->in_due);
    runtime_run_soon(member->all->runtime);
}
