/* SPDX-License-Identifier: BSD-3-Clause */
/* test_retry.c - the pauses between tries to connect */
#include "redis/link/retry.h"
#include "test.h"

#define MS                              UINT64_C(1000)
#define MIN_MS                          50u
#define MAX_MS                          300u
#define ASSERT_PAUSE(pause_us, most_ms) assert_in_range((pause_us), (most_ms)*MS / 2, (most_ms)*MS)

TEST(each_failure_doubles_the_pause_up_to_the_longest)
{
    struct retry retry = {.min_ms = MIN_MS, .max_ms = MAX_MS};

    ASSERT_PAUSE(retry_pause_us(&retry, 0, false), 50);
    ASSERT_PAUSE(retry_pause_us(&retry, 0, false), 100);
    ASSERT_PAUSE(retry_pause_us(&retry, 0, false), 200);
    for (int i = 0; i < 100; i++) ASSERT_PAUSE(retry_pause_us(&retry, 0, false), MAX_MS);
}

TEST(a_connection_that_lasted_is_made_again_at_once)
{
    struct retry retry = {.min_ms = MIN_MS, .max_ms = MAX_MS};

    for (int i = 0; i < 5; i++) (void)retry_pause_us(&retry, 0, false);
    ASSERT_PAUSE(retry_pause_us(&retry, MIN_MS * MS - 1, false), MAX_MS);
    assert_int_equal(retry_pause_us(&retry, MIN_MS * MS, false), 0);
    ASSERT_PAUSE(retry_pause_us(&retry, 0, false), 50);
}

TEST(a_server_that_will_refuse_us_again_is_tried_seldom)
{
    struct retry retry = {.min_ms = MIN_MS, .max_ms = MAX_MS};

    ASSERT_PAUSE(retry_pause_us(&retry, MIN_MS * MS, true), MAX_MS);
    ASSERT_PAUSE(retry_pause_us(&retry, 0, false), MAX_MS);
}
