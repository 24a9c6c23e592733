/* SPDX-License-Identifier: BSD-3-Clause */
#include "election_fixture.h"

#include <inttypes.h>

static uint64_t latest_term;
static struct seat *seats[16]; /* whose windows must not overlap */
static size_t n_seats;

void on_elected(quorlock_candidate *candidate, uint64_t term, void *arg)
{
    struct seat *seat = arg;

    assert_false(fixture.inside_call);
    seat->elected++;
    seat->term = term;
    seat->elected_us = clock_us();
    assert_int_equal(quorlock_candidate_term(candidate), term);
    assert_true(quorlock_candidate_valid_ms(candidate) > 0);
    if (term <= latest_term) fail_msg("term %" PRIu64 " after %" PRIu64, term, latest_term);
    latest_term = term;
    for (size_t i = 0; i < n_seats; i++) {
        if (seats[i] == seat || seats[i]->candidate == NULL) continue;
        if (quorlock_candidate_valid_ms(seats[i]->candidate) > 0) fail_msg("two candidates lead");
    }
    if (!seat->free_when_elected) return;
    seat->candidate = NULL;
    quorlock_candidate_free(candidate);
}

void on_deposed(quorlock_candidate *candidate, const struct quorlock_loss *loss, void *arg)
{
    struct seat *seat = arg;

    seat->deposed++;
    seat->deposed_us = clock_us();
    seat->remaining_ms = loss->remaining_ms;
    assert_true(strlen(loss->text) > 0);
    assert_int_equal(quorlock_candidate_valid_ms(candidate), 0);
    assert_int_equal(quorlock_candidate_term(candidate), 0);
    if (!seat->free_when_deposed) return;
    seat->candidate = NULL;
    quorlock_candidate_free(candidate);
}

void on_ended(quorlock_candidate *candidate, int status, const char *text, void *arg)
{
    struct seat *seat = arg;

    assert_false(fixture.inside_call);
    seat->ended++;
    seat->status = status;
    snprintf(seat->text, sizeof(seat->text), "%s", text);
    /* It goes with its client, while candidates of other clients may still be elected. */
    if (status == QUORLOCK_ERR_CLOSED) seat->candidate = NULL;
}

void sit_with(struct seat *seat, quorlock_client *client, const struct quorlock_candidate_options *options)
{
    memset(seat, 0, sizeof(*seat));
    if (quorlock_candidate_new(&seat->candidate, client, NAME, options) != 0)
        fail_msg("%s", quorlock_client_error(client));
    assert_true(n_seats < LENGTH(seats));
    seats[n_seats++] = seat;
}

void sit(struct seat *seat, quorlock_client *client, const char *advertise, uint32_t lease_ms)
{
    sit_with(seat, client,
             &CANDIDATE(.advertise = advertise, .lease_ms = lease_ms, .arg = seat, .renew_ms = lease_ms / 5));
}

void stand(struct seat *seat)
{
    fixture.inside_call = true;
    assert_int_equal(quorlock_candidate_stand(seat->candidate), 0);
    fixture.inside_call = false;
}

void resign(struct seat *seat)
{
    fixture.inside_call = true;
    assert_int_equal(quorlock_candidate_resign(seat->candidate), 0);
    fixture.inside_call = false;
}

void no_seats(void)
{
    latest_term = 0;
    n_seats = 0;
}

void no_more_checks(void)
{
    n_seats = 0;
}

/* ---- an observer, and what it was told ---- */

void on_leader(quorlock_observer *observer, const struct quorlock_leader *leader, void *arg)
{
    struct watcher *watcher = arg;

    assert_false(fixture.inside_call);
    watcher->calls++;
    watcher->leader = *leader;
    snprintf(watcher->text, sizeof(watcher->text), "%s", leader->text != NULL ? leader->text : "");
    snprintf(watcher->owner, sizeof(watcher->owner), "%s", leader->owner != NULL ? leader->owner : "");
    if (leader->term < watcher->newest) fail_msg("term %" PRIu64 " after %" PRIu64, leader->term, watcher->newest);
    watcher->newest = leader->term;
    assert_int_equal(leader->text != NULL, leader->state == QUORLOCK_LEADER_KNOWN);
    if (!watcher->free_when_told) return;
    watcher->observer = NULL;
    quorlock_observer_free(observer);
}

void observe(struct watcher *watcher, quorlock_client *client, uint32_t poll_ms)
{
    const struct quorlock_observer_options options = {
        .size = sizeof(options), .changed = on_leader, .arg = watcher, .poll_ms = poll_ms};

    memset(watcher, 0, sizeof(*watcher));
    fixture.inside_call = true;
    if (quorlock_observer_new(&watcher->observer, client, NAME, &options) != 0)
        fail_msg("%s", quorlock_client_error(client));
    fixture.inside_call = false;
}

bool knows_of(void *arg)
{
    const struct watcher *watcher = arg;

    return watcher->leader.state == QUORLOCK_LEADER_KNOWN && latest_term != 0 && watcher->leader.term == latest_term;
}

bool knows_none(void *arg)
{
    const struct watcher *watcher = arg;

    return watcher->calls > 0 && watcher->leader.state == QUORLOCK_LEADER_NONE;
}

bool knows_nothing(void *arg)
{
    const struct watcher *watcher = arg;

    return watcher->calls > 0 && watcher->leader.state == QUORLOCK_LEADER_UNKNOWN;
}
