/* SPDX-License-Identifier: BSD-3-Clause */
/* election_fixture.h - candidates and observers of one election, and their callbacks */
#pragma once

#include <quorlock/election.h>

#include "fixture.h"

#define NAME "election"

/* A candidate, and what its callbacks recorded. */
struct seat {
    quorlock_candidate *candidate;
    int elected, deposed, ended;
    int status; /* of the end */
    uint64_t term;
    uint64_t elected_us, deposed_us;
    uint32_t remaining_ms;
    char text[TEXT_SIZE];
    bool free_when_elected, free_when_deposed;
};

/* An observer, and the leader that it reported last. */
struct watcher {
    quorlock_observer *observer;
    int calls;
    struct quorlock_leader leader; /* its texts are below */
    char text[TEXT_SIZE], owner[TEXT_SIZE];
    uint64_t newest;
    bool free_when_told;
};

/* CANDIDATE - options that record in a seat. */
#define CANDIDATE(...)                                                                                                 \
    (struct quorlock_candidate_options)                                                                                \
    {                                                                                                                  \
        .size = sizeof(struct quorlock_candidate_options), .elected = on_elected, .deposed = on_deposed,               \
        .ended = on_ended, __VA_ARGS__                                                                                 \
    }

/* no_seats - no candidate was made yet. sit: makes one, which must not lead beside another one made by it. */
void no_seats(void);
void no_more_checks(void); /* no candidate may be asked any more */
void sit(struct seat *, quorlock_client *, const char *advertise, uint32_t lease_ms);
void sit_with(struct seat *, quorlock_client *, const struct quorlock_candidate_options *);
void stand(struct seat *);
void resign(struct seat *);
void on_elected(quorlock_candidate *, uint64_t term, void *seat);
void on_deposed(quorlock_candidate *, const struct quorlock_loss *, void *seat);
void on_ended(quorlock_candidate *, int status, const char *text, void *seat);

/* observe - fails the test where terms fall. */
void observe(struct watcher *, quorlock_client *, uint32_t poll_ms);
void on_leader(quorlock_observer *, const struct quorlock_leader *, void *watcher);
/* Conditions for await(): it knows the leader of the latest term; that nobody leads; that it does not know. */
bool knows_of(void *watcher);
bool knows_none(void *watcher);
bool knows_nothing(void *watcher);
