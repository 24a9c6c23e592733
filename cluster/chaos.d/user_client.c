/* SPDX-License-Identifier: BSD-3-Clause */
/* user_client.c - the life of a user: idle, asking, holding, releasing, and what it does while it holds */
#include "user_client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LONG_HOLD_MS_MAX 5000u
#define PATIENCE_MS      15000 /* beyond what the library was given: then a promise is broken */
#define MORE_SIZE        512
#define PAIRS            4 /* one in so many takes a second key where it has drawn one */
#define WRITERS          4 /* one in so many takes a shared key exclusively */
#define OF(user)         ((user)->chaos)
#define DEAD             2 /* exit status: a promise is broken */
#define US_IN_MS         UINT64_C(1000)

void user_breach(struct user *user, const char *text)
{
    history_say(history_now_us(), "breach", &user->parts[0].subject, ",\"text\":\"%s\"", text);
}

/* The same of each key. t_us: 0, now. */
__attribute__((format(printf, 4, 5))) static void say(struct user *user, uint64_t t_us, const char *event,
                                                      const char *format, ...)
{
    char more[MORE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(more, sizeof(more), format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < user->n_parts; i++)
        history_say(t_us != 0 ? t_us : history_now_us(), event, &user->parts[i].subject, "%s", more);
}

static void turn(struct user *user, enum user_state state)
{
    user->state = state;
    user->ticks = 0;
    user->ticks_dead = 0;
}

static void timer_set(struct user *user, uint32_t after_ms)
{
    struct timeval wait = {.tv_sec = (time_t)(after_ms / 1000), .tv_usec = (suseconds_t)(after_ms % 1000) * 1000};

    (void)event_add(user->timer, &wait);
}

/* Between two operations: the handle goes, and the next operation is due after a while. */
static void rest(struct user *user)
{
    if (user->kind != NULL) user->kind->drop(user);
    if (OF(user)->stop != 0) {
        turn(user, USER_CLOSED);
        (void)event_del(user->timer);
        if (++OF(user)->n_closed == OF(user)->options.n_users) OF(user)->closed(OF(user));
        return;
    }
    turn(user, USER_IDLE);
    timer_set(user, RANGE(OF(user), OF(user)->options.think_ms));
}

void user_given_back(struct user *user)
{
    if (user->state != USER_RELEASING) {
        user_breach(user, "a release calls back twice, or unasked");
        return;
    }
    rest(user);
}

/* Gives back what the history has ended already. Now and then the handle is freed without waiting. */
void user_give_back(struct user *user)
{
    turn(user, USER_RELEASING);
    if (ONE_IN(OF(user), 5)) {
        rest(user);
        return;
    }
    if (user->kind->release(user) == 0) return;
    user_breach(user, "a release is refused");
    rest(user);
}

static void release(struct user *user)
{
    /* The window ends before the first node can learn of it. */
    say(user, 0, "released", ",\"deadline_us\":%" PRIu64 ",\"fence\":%" PRIu64, user->deadline_us,
        user->kind->fence(user));
    user_give_back(user);
}

void user_lost(struct user *user, const struct quorlock_loss *loss)
{
    if (user->state != USER_HOLDING) {
        user_breach(user, "a loss callback without a hold");
        return;
    }
    say(user, 0, "lost", ",\"deadline_us\":%" PRIu64 ",\"reason\":%d,\"valid_ms\":%" PRIu32, user->deadline_us,
        loss->reason, loss->remaining_ms);
    if (user->kind->valid_ms(user) != 0) user_breach(user, "validity is left after the loss");
    user->kind->lost(user);
}

/* The end of validity as it can be promised now; earlier than the truth by less than a millisecond. */
static uint64_t deadline_read(struct user *user, uint32_t *ret_valid_ms)
{
    uint64_t before_us = history_now_us();

    *ret_valid_ms = user->kind->valid_ms(user);
    return before_us + *ret_valid_ms * US_IN_MS;
}

/* Reads first, writes what follows from it later: the damage of two owners would show. Readers of a shared key read. */
static void work(struct user *user)
{
    struct user_part *part = &user->parts[user->next_part++ % user->n_parts];
    struct history_access access = {
        .subject = &part->subject, .fence = user->kind->fence(user), .deadline_us = user->deadline_us};

    if (!part->may_write || part->shared) {
        part->may_write = history_read(&access);
        part->next_value = access.value + 1;
    } else {
        access.value = part->next_value;
        part->may_write = history_write(&access);
        if (part->may_write) part->next_value++;
    }
}

static void step(struct user *user)
{
    uint32_t valid_ms;
    uint64_t deadline_us = deadline_read(user, &valid_ms);

    timer_set(user, 2 + (uint32_t)(chaos_random(OF(user)) % 30));
    /* The callback of the loss is due. */
    if (valid_ms == 0) return;
    if (deadline_us > user->deadline_us + 5000) {
        user->deadline_us = deadline_us;
        say(user, 0, "renewed", ",\"deadline_us\":%" PRIu64, deadline_us);
    }
    if (history_now_us() >= user->hold_until_us)
        release(user);
    else
        work(user);
}

void user_refused(struct user *user, const char *status, const char *more)
{
    say(user, 0, "refused", ",\"status\":\"%s\"%s", status, more);
    rest(user);
}

void user_granted(struct user *user, bool was_valid, const char *more)
{
    uint32_t valid_ms, hold_ms = RANGE(OF(user), OF(user)->options.hold_ms);
    uint64_t deadline_us;

    if (user->state != USER_ASKING) {
        user_breach(user, "an acquire calls back twice, or unasked");
        return;
    }
    /* Validity can end between the library's last look and ours; a grant without any validity is another
     * thing, and shows as a deadline that is not after the grant. */
    deadline_us = deadline_read(user, &valid_ms);
    user->deadline_us = deadline_us;
    if (valid_ms == 0 && was_valid) user->deadline_us += 1;
    say(user, deadline_us - valid_ms * US_IN_MS, "granted", ",\"deadline_us\":%" PRIu64 ",\"lease_ms\":%" PRIu32 "%s",
        user->deadline_us, user->lease_ms, more);
    /* Now and then a job longer than its lease, which lives by renewal. */
    if (ONE_IN(OF(user), 10)) {
        uint32_t long_ms = user->lease_ms + user->lease_ms / 2;

        hold_ms += long_ms < LONG_HOLD_MS_MAX ? long_ms : LONG_HOLD_MS_MAX;
    }
    user->hold_until_us = deadline_us - valid_ms * US_IN_MS + hold_ms * US_IN_MS;
    for (size_t i = 0; i < user->n_parts; i++) user->parts[i].may_write = false;
    turn(user, USER_HOLDING);
    if (OF(user)->stop != 0)
        release(user);
    else
        step(user);
}

void user_asks(struct user *user, const char *more)
{
    turn(user, USER_ASKING);
    say(user, 0, "invoke", ",\"wait_ms\":%" PRIu32 ",\"lease_ms\":%" PRIu32 "%s", user->wait_ms, user->lease_ms, more);
}

/* A lock's wait ends by itself, but for a user that changes its mind. A candidate's does not. */
void user_patience(struct user *user)
{
    if (user->kind == &candidate_kind) {
        timer_set(user, user->wait_ms + 1);
    } else if (user->wait_ms > 0 && ONE_IN(OF(user), 25)) {
        timer_set(user, (uint32_t)(chaos_random(OF(user)) % user->wait_ms));
    }
}

static void add_part(struct user *user, size_t key)
{
    static const char *const words[] = {NULL, "permits", "shared", "election"};
    struct user_part *part = &user->parts[user->n_parts++];
    enum chaos_mode mode = OF(user)->options.modes[key];

    part->shared = mode == MODE_SHARED && !ONE_IN(OF(user), WRITERS);
    part->subject.key = OF(user)->options.keys[key];
    part->subject.mode = mode == MODE_SHARED && !part->shared ? NULL : words[mode];
    part->subject.slot = 0;
}

/* Now and then two keys that are locked shared or exclusive, each in its way, all or none. */
static void add_second(struct user *user, size_t first)
{
    const struct chaos_options *options = &OF(user)->options;
    size_t second = (size_t)(chaos_random(OF(user)) % options->n_keys);

    if (options->modes[first] != MODE_SHARED || options->modes[second] != MODE_SHARED || first == second) return;
    if (ONE_IN(OF(user), PAIRS)) add_part(user, second);
}

/* What this operation is about. */
static void choose(struct user *user)
{
    const struct chaos_options *options = &OF(user)->options;
    size_t key = (size_t)(chaos_random(OF(user)) % options->n_keys);
    enum chaos_mode mode = options->modes[key];

    user->lease_ms = RANGE(OF(user), options->lease_ms);
    user->wait_ms = ONE_IN(OF(user), 6) ? 0 : RANGE(OF(user), options->wait_ms);
    user->permits = mode == MODE_PERMITS ? options->permits : 0;
    user->kind = mode == MODE_ELECTION ? &candidate_kind : &lock_kind;
    user->n_parts = 0;
    add_part(user, key);
    add_second(user, key);
}

static void ask(struct user *user)
{
    int status;

    choose(user);
    user_asks(user, "");
    status = user->kind->ask(user);
    if (status != 0) {
        user_refused(user, quorlock_status_name(status), "");
        return;
    }
    user_patience(user);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct user *user = arg;

    (void)fd;
    (void)what;
    switch (user->state) {
    case USER_IDLE: ask(user); break;
    case USER_HOLDING: step(user); break;
    case USER_ASKING: user->kind->cancel(user); break;
    case USER_RELEASING:
    case USER_CLOSED: break;
    }
}

void user_tick(struct user *user)
{
    uint32_t limit_ms = PATIENCE_MS;

    if (user->state == USER_CLOSED) return;
    user->ticks++;
    if (user->state == USER_IDLE) limit_ms += OF(user)->options.think_ms.max;
    if (user->state == USER_ASKING) limit_ms += user->wait_ms;
    if (user->state == USER_HOLDING) {
        limit_ms = UINT32_MAX;
        if (user->kind->valid_ms(user) == 0)
            user->ticks_dead++;
        else
            user->ticks_dead = 0;
        if (user->ticks_dead * TICK_MS > PATIENCE_MS) {
            user_breach(user, "validity ended long ago without a loss callback");
            exit(DEAD);
        }
    }
    if (user->ticks > limit_ms / TICK_MS) {
        user_breach(user, user->state == USER_ASKING ? "an acquire never calls back" : "a release never calls back");
        exit(DEAD);
    }
}

void user_stop(struct user *user)
{
    switch (user->state) {
    case USER_IDLE: rest(user); break;
    case USER_HOLDING: release(user); break;
    case USER_ASKING: user->kind->cancel(user); break;
    case USER_RELEASING:
    case USER_CLOSED: break;
    }
}

int user_begin(struct user *user, struct chaos *chaos, uint32_t number)
{
    user->chaos = chaos;
    user->parts[0].subject.key = chaos->options.keys[0];
    user->parts[0].subject.user = chaos->options.n_users > 1 ? number + 1 : 0;
    user->parts[1].subject.user = number + 1 + chaos->options.n_users;
    user->timer = event_new(chaos->base, -1, 0, on_timer, user);
    if (user->timer == NULL) return -1;
    timer_set(user, RANGE(chaos, chaos->options.think_ms));
    return 0;
}
