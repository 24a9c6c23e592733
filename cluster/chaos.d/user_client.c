/* SPDX-License-Identifier: BSD-3-Clause */
/* user_client.c - the life of a user: idle, asking, holding, releasing; and its work while it holds */
#include "user_client.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LONG_HOLD_MS_MAX 5000u
#define OVERDUE_MS       15000 /* if a callback is overdue by this much, the library broke a promise */
#define MORE_SIZE        512
#define PAIRS            4 /* one in so many takes a second shared key, if it drew one */
#define WRITERS          4 /* one in so many takes a shared key exclusively */
#define OF(user)         ((user)->chaos)
#define DEAD             2 /* exit status: the library broke a promise */
#define US_IN_MS         UINT64_C(1000)

void user_breach(struct user *user, const char *text)
{
    history_say(history_now_us(), "breach", &user->parts[0].subject, ",\"text\":\"%s\"", text);
}

/* Write the same line for each key. t_us: 0, now. */
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

static void enter_state(struct user *user, enum user_state state)
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

/* Between two operations: drop the handle, and start the next operation after a while. */
static void end_operation(struct user *user)
{
    if (user->kind != NULL) user->kind->drop(user);
    if (OF(user)->stop != 0) {
        enter_state(user, USER_CLOSED);
        (void)event_del(user->timer);
        if (++OF(user)->n_closed == OF(user)->options.n_users) OF(user)->closed(OF(user));
        return;
    }
    enter_state(user, USER_IDLE);
    timer_set(user, RANGE(OF(user), OF(user)->options.think_ms));
}

void user_given_back(struct user *user)
{
    if (user->state != USER_RELEASING) {
        user_breach(user, "a release calls back twice, or unasked");
        return;
    }
    end_operation(user);
}

/* Release keys whose operation the history has ended already. One in five frees the handle without waiting. */
void user_give_back(struct user *user)
{
    enter_state(user, USER_RELEASING);
    if (ONE_IN(OF(user), 5)) {
        end_operation(user);
        return;
    }
    if (user->kind->release(user) == 0) return;
    user_breach(user, "a release is refused");
    end_operation(user);
}

static void release(struct user *user)
{
    /* The history ends the hold before the first node can learn of the release. */
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

/* Return the end of validity as far as it is certain now; it is early by less than a millisecond. */
static uint64_t deadline_read(struct user *user, uint32_t *ret_valid_ms)
{
    uint64_t before_us = history_now_us();

    *ret_valid_ms = user->kind->valid_ms(user);
    return before_us + *ret_valid_ms * US_IN_MS;
}

/* Read first, and write the next value later, so that two owners would damage each other's writes. Readers of a shared
 * key only read. */
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

    timer_set(user, 2 + (uint32_t)(options_draw(&OF(user)->options.seed) % 30));
    /* The callback of the loss is due. */
    if (valid_ms == 0) return;
    if (deadline_us > user->deadline_us + 5000) {
        user->deadline_us = deadline_us;
        say(user, 0, "renewed", ",\"deadline_us\":%" PRIu64, deadline_us);
    }
    if (history_now_us() >= user->hold_until_us) {
        release(user);
        return;
    }
    work(user);
    if (user->kind->pass_on != NULL) user->kind->pass_on(user);
}

void user_passed_on(struct user *user, bool held)
{
    uint32_t valid_ms;
    uint64_t deadline_us = deadline_read(user, &valid_ms);

    user->is_passing = false;
    if (!held) {
        say(user, 0, "lost", ",\"deadline_us\":%" PRIu64, user->deadline_us);
        end_operation(user);
        return;
    }
    if (deadline_us > user->deadline_us) user->deadline_us = deadline_us;
    say(user, 0, "renewed", ",\"deadline_us\":%" PRIu64 ",\"adopted\":1", user->deadline_us);
    if (OF(user)->stop != 0) release(user);
}

void user_refused(struct user *user, const char *status, const char *more)
{
    say(user, 0, "refused", ",\"status\":\"%s\"%s", status, more);
    end_operation(user);
}

void user_granted(struct user *user, bool was_valid, const char *more)
{
    uint32_t valid_ms, hold_ms = RANGE(OF(user), OF(user)->options.hold_ms);
    uint64_t deadline_us;

    if (user->state != USER_ASKING) {
        user_breach(user, "an acquire calls back twice, or unasked");
        return;
    }
    /* Validity may end between the library's last check and this one. A grant without any validity is an error of the
     * library, and is recorded with a deadline that is not after the grant. */
    deadline_us = deadline_read(user, &valid_ms);
    user->deadline_us = deadline_us;
    if (valid_ms == 0 && was_valid) user->deadline_us += 1;
    say(user, deadline_us - valid_ms * US_IN_MS, "granted", ",\"deadline_us\":%" PRIu64 ",\"lease_ms\":%" PRIu32 "%s",
        user->deadline_us, user->lease_ms, more);
    /* One in ten holds longer than its lease, which needs renewal. */
    if (ONE_IN(OF(user), 10)) {
        uint32_t long_ms = user->lease_ms + user->lease_ms / 2;

        hold_ms += long_ms < LONG_HOLD_MS_MAX ? long_ms : LONG_HOLD_MS_MAX;
    }
    user->hold_until_us = deadline_us - valid_ms * US_IN_MS + hold_ms * US_IN_MS;
    for (size_t i = 0; i < user->n_parts; i++) user->parts[i].may_write = false;
    enter_state(user, USER_HOLDING);
    if (OF(user)->stop != 0)
        release(user);
    else
        step(user);
}

void user_asks(struct user *user, const char *more)
{
    enter_state(user, USER_ASKING);
    say(user, 0, "invoke", ",\"wait_ms\":%" PRIu32 ",\"lease_ms\":%" PRIu32 "%s", user->wait_ms, user->lease_ms, more);
}

/* The wait for a lock ends by itself; a few users cancel it earlier. A candidate waits without end, so it is always
 * canceled. */
void user_plan_cancel(struct user *user)
{
    if (user->kind->endless) {
        timer_set(user, user->wait_ms + 1);
    } else if (user->wait_ms > 0 && ONE_IN(OF(user), 25)) {
        timer_set(user, (uint32_t)(options_draw(&OF(user)->options.seed) % user->wait_ms));
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

/* Some take two keys, each shared or exclusive, all or none. */
static void add_second(struct user *user, size_t first)
{
    const struct chaos_options *options = &OF(user)->options;
    size_t second = (size_t)(options_draw(&OF(user)->options.seed) % options->n_keys);

    if (options->modes[first] != MODE_SHARED || options->modes[second] != MODE_SHARED || first == second) return;
    if (ONE_IN(OF(user), PAIRS)) add_part(user, second);
}

/* Draw the key, the kind and the times of the next operation. */
static void choose(struct user *user)
{
    const struct chaos_options *options = &OF(user)->options;
    size_t key = (size_t)(options_draw(&OF(user)->options.seed) % options->n_keys);
    enum chaos_mode mode = options->modes[key];

    user->lease_ms = RANGE(OF(user), options->lease_ms);
    user->wait_ms = ONE_IN(OF(user), 6) ? 0 : RANGE(OF(user), options->wait_ms);
    user->permits = mode == MODE_PERMITS ? options->permits : 0;
    user->kind = mode == MODE_ELECTION ? OF(user)->candidate_kind : OF(user)->lock_kind;
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
    user_plan_cancel(user);
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
    uint32_t limit_ms = OVERDUE_MS;

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
        if (user->ticks_dead * TICK_MS > OVERDUE_MS) {
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
    case USER_IDLE: end_operation(user); break;
    case USER_HOLDING:
        if (!user->is_passing) release(user);
        break;
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
