/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - a model and a real server side by side: the same connections, the same bytes, the same clock
 *
 * The real server's wall clock stops, except where the test moves it, by a preloaded library. So nothing is
 * compared with a tolerance: each reply is the same to the byte, but for run ids, which are mapped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "integration/cluster.h"
#include "sim/parts/model.h"

#define PAIR_CONNS    4
#define PAIR_IDS_MAX  32
#define PAIR_ID       40
#define PAIR_TEXT_MAX 1024
#define PAIR_INFO_MAX 16384

struct heard {
    char *bytes;
    size_t used, room;
};

struct pair_conn {
    int fd;
    struct session *session;
    struct heard model, real;
    bool hung_up; /* by the model */
};

/* Faults that the model is given, to see that they are noticed. */
enum pair_wrong { RIGHT, WRONG_CLOCK, WRONG_MEMORY, WRONG_SCRIPTS, WRONG_NOTICES, WRONG_PUSHES };

struct pair {
    struct cluster cluster;
    struct model *model;
    int64_t *clock_us; /* of the real server */
    uint64_t wall_us;
    struct pair_conn conns[PAIR_CONNS];
    struct {
        char real[PAIR_ID + 1], model[PAIR_ID + 1];
    } ids[PAIR_IDS_MAX];
    size_t n_ids;
    int blocker;                  /* the connection whose script runs */
    char version[32], valkey[32]; /* of the real server; "": it is no Valkey */
    bool real_is_7_0;
    enum pair_wrong wrong;
    char difference[4 * PAIR_TEXT_MAX]; /* "": none */
};

/* pair_open - start both. wrong: the fault of the model; RIGHT: none. */
void pair_open(struct pair *, enum pair_wrong);
void pair_close(struct pair *);
void pair_reconnect(struct pair *, size_t conn);
void pair_advance(struct pair *, uint64_t by_us);
struct server *pair_server(struct pair *);
/* pair_tell - send a command to the real server only, on that connection. */
void pair_tell(struct pair *, size_t conn, const char *const *words);
/* pair_refused - connect again, which both must refuse. False: they differ. */
bool pair_refused(struct pair *, size_t conn);
/* pair_block, pair_unblock - begin and end a script in the real server, which answers BUSY meanwhile. */
void pair_block(struct pair *);
void pair_unblock(struct pair *);
/* pair_ask - send bytes on that connection of both, and compare the replies. False: they differ, and pair->difference
 * says how. */
bool pair_ask(struct pair *, size_t conn, const char *bytes, size_t size);
/* pair_learn_ids - give the model the ids of the real server, which have changed. */
void pair_learn_ids(struct pair *);
/* pair_info_text - read a section of INFO. pair_info - read one of its fields. */
void pair_info_text(struct pair *, bool real, const char *section, char *ret, size_t size);
void pair_info(struct pair *, bool real, const char *section, const char *field, char *ret, size_t size);
