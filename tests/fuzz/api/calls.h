/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - the calls that are drawn, and the callbacks that they are given
 */
#ifndef TESTS_FUZZ_API_CALLS_H
#define TESTS_FUZZ_API_CALLS_H

#include "fuzz.h"

/* calls_inside - what a callback does, about that handle or none: nothing, a call, or a few. */
void calls_inside(struct fuzz *, struct fuzz_handle *, struct draw *);
/* calls_in_log - what the log hook does. */
void calls_in_log(struct fuzz *, const struct fuzz_client *, struct draw *);
/* calls_close - closes the client where it is open. */
void calls_close(struct fuzz *, struct fuzz_client *);

/* Of fuzz.c. */
void fuzz_on_result(quorlock *, const struct quorlock_result *, void *op);
void fuzz_on_report(int status, const struct quorlock_report *, void *op);
void fuzz_on_examination(int status, const struct quorlock_examination *, void *op);
void fuzz_on_lost(quorlock *, const struct quorlock_loss *, void *handle);
void fuzz_on_log(void *client, int level, const char *text);
void fuzz_on_closed(void *client);

#endif
