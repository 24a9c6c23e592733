/* SPDX-License-Identifier: BSD-3-Clause */
/* candidate_client.c - users that are candidates of an election, and the observers of elections */
#include "candidate_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE_SIZE     256
#define HIDDEN_DIGITS 32 /* the end of an owner token, which is never written */

/* ---- candidates ---- */

static void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    struct user *user = arg;
    char more[MORE_SIZE];

    if (candidate != user->candidate) {
        user_breach(user, "another candidate is elected");
        return;
    }
    (void)snprintf(more, sizeof(more), ",\"term\":%" PRIu64 ",\"fence\":%" PRIu64, term, term);
    if (term == 0) user_breach(user, "elected without a term");
    user_granted(user, true, more);
}

static void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    struct user *user = arg;

    if (candidate != user->candidate) {
        user_breach(user, "another candidate is deposed");
        return;
    }
    user_lost(user, loss);
}

static void on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct user *user = arg;

    (void)text;
    if (candidate != user->candidate) {
        user_breach(user, "another candidate has ended");
    } else if (user->state == USER_ASKING) {
        /* It was canceled, or got no quorum. */
        user_refused(user, status == QUORLOCK_OK ? "RESIGNED" : quorlock_status_name(status), "");
    } else {
        user_given_back(user);
    }
}

static int ask(struct user *user)
{
    char name[QUORLOCK_ADVERTISE_LENGTH_MAX + 1];
    const struct quorlock_candidate_options options = {.size = sizeof(options),
                                                       .advertise = name,
                                                       .lease_ms = user->lease_ms,
                                                       .elected = on_elected,
                                                       .deposed = on_deposed,
                                                       .ended = on_ended,
                                                       .arg = user};

    (void)snprintf(name, sizeof(name), user->parts[0].subject.user != 0 ? "%s.%" PRIu32 : "%s",
                   user->chaos->options.name, user->parts[0].subject.user);
    if (quorlock_candidate_new(&user->candidate, user->chaos->client, user->parts[0].subject.key, &options) != 0) {
        (void)fprintf(stderr, "chaos_client: no candidate: %s\n", quorlock_client_error(user->chaos->client));
        exit(1);
    }
    return quorlock_candidate_stand(user->candidate);
}

static int resign(struct user *user)
{
    return quorlock_candidate_resign(user->candidate);
}

static void cancel(struct user *user)
{
    (void)quorlock_candidate_resign(user->candidate);
}

/* After a loss the candidate continues, which is a new operation in the history; or it resigns. */
static void stand_again(struct user *user)
{
    if (user->chaos->stop != 0 || ONE_IN(user->chaos, 2)) {
        user_give_back(user);
        return;
    }
    user_asks(user, ",\"again\":true");
    user_plan_cancel(user);
}

static uint32_t valid_ms(const struct user *user)
{
    return quorlock_candidate_valid_ms(user->candidate);
}

static uint64_t term(const struct user *user)
{
    return quorlock_candidate_term(user->candidate);
}

static void drop(struct user *user)
{
    quorlock_candidate_free(user->candidate);
    user->candidate = NULL;
}

const struct user_kind candidate_kind = {.endless = true,
                                         .ask = ask,
                                         .cancel = cancel,
                                         .release = resign,
                                         .lost = stand_again,
                                         .valid_ms = valid_ms,
                                         .fence = term,
                                         .drop = drop};

/* ---- observers ---- */

static struct {
    quorlock_observer *observers[CHAOS_LIST_MAX];
    struct history_subject subjects[CHAOS_LIST_MAX];
} all;

static void on_changed(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    static const char *const states[] = {"unknown", "none", "known"};
    const struct history_subject *subject = arg;
    size_t length = leader->owner != NULL ? strlen(leader->owner) : 0;

    (void)observer;
    if (length > HIDDEN_DIGITS) length -= HIDDEN_DIGITS;
    if (leader->state == QUORLOCK_LEADER_KNOWN) {
        history_say(history_now_us(), "observed", subject,
                    ",\"term\":%" PRIu64 ",\"state\":\"known\",\"leader\":\"%.*s\"", leader->term, (int)length,
                    leader->owner != NULL ? leader->owner : "");
        return;
    }
    history_say(history_now_us(), "observed", subject, ",\"term\":%" PRIu64 ",\"state\":\"%s\"", leader->term,
                states[leader->state]);
}

int observers_begin(struct chaos *chaos)
{
    for (size_t i = 0; i < chaos->options.n_keys; i++) {
        const struct quorlock_observer_options options = {
            .size = sizeof(options), .changed = on_changed, .arg = &all.subjects[i]};

        if (chaos->options.modes[i] != MODE_ELECTION) continue;
        all.subjects[i] = (struct history_subject){.key = chaos->options.keys[i], .mode = "election"};
        if (quorlock_observer_new(&all.observers[i], chaos->client, chaos->options.keys[i], &options) == 0) continue;
        (void)fprintf(stderr, "chaos_client: no observer: %s\n", quorlock_client_error(chaos->client));
        return -1;
    }
    return 0;
}

void observers_end(void)
{
    for (size_t i = 0; i < CHAOS_LIST_MAX; i++) {
        quorlock_observer_free(all.observers[i]);
        all.observers[i] = NULL;
    }
}
