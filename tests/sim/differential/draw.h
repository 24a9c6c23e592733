/* SPDX-License-Identifier: BSD-3-Clause */
/* draw.h - random commands: of an operator, of a peer, and of the library itself */
#pragma once

#include "redis/dialect/dialect.h"
#include "redis/wire/bytes.h"
#include "sim/parts/model.h"
#include "sim/parts/rng.h"

#define DRAW_KEYS 5

extern const char *const draw_keys[DRAW_KEYS];

struct draw {
    struct rng rng;
    uint64_t wall_ms;
    const struct model *model; /* its guard is what clients have seen */
    char ids[2][41];           /* of the model's process */
};

/* draw_command - appends one command, or those of a transaction. */
void draw_command(struct draw *, struct bytes *);
