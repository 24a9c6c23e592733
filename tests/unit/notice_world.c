/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "notice_world.h"

void notices_act(struct notices *notices)
{
    struct subscriber *subscriber = notices->subscriber;
    switch (notices->act) {
    case ACT_NONE: break;
    case ACT_STOP: subscriber_stop(subscriber); break;
    case ACT_RESTART:
        subscriber_stop(subscriber);
        subscriber_start(subscriber);
        break;
    case ACT_FREE:
        notices->world.freed = true;
        notices->subscriber = NULL;
        subscriber_free(subscriber);
        break;
    case ACT_LISTEN: assert_int_equal(subscriber_listen(subscriber, "z", 1), SUBSCRIBER_ASKED); break;
    case ACT_FORGET: subscriber_forget(subscriber, "a", 1); break;
    }
}

static void on_line(struct world *world, const char *line)
{
    struct notices *notices = (struct notices *)(void *)world;
    if (!notices->act_at || strcmp(line, notices->act_at) != 0) return;
    notices->act_at = NULL;
    notices_act(notices);
}

/* Any bytes, on one line. */
static void tell(struct notices *notices, const char *what, const char *channel, size_t length,
                 const char *payload, size_t payload_length)
{
    char line[1024];
    size_t n = (size_t)snprintf(line, sizeof line, "%s", what);
    for (int part = 0; part < 2; part++) {
        const char *bytes = part ? payload : channel;
        size_t left = part ? payload_length : length;
        if (!bytes) continue;
        line[n++] = ' ';
        for (; left && n + 5 < sizeof line; left--, bytes++) {
            if (*bytes > ' ' && *bytes <= '~')
                line[n++] = *bytes;
            else
                n += (size_t)snprintf(line + n, 5, "\\x%02x", (unsigned)(unsigned char)*bytes);
        }
    }
    line[n] = '\0';
    world_tell(&notices->world, line);
}

static void on_open(void *arg, uint32_t index)
{
    struct notices *notices = arg;
    assert_int_equal(index, 3);
    assert_true(subscriber_is_open(notices->subscriber));
    assert_string_equal(subscriber_why(notices->subscriber), "");
    for (const char *want = notices->wants; want && *want; want++)
        assert_int_equal(subscriber_listen(notices->subscriber, want, 1), SUBSCRIBER_ASKED);
    tell(notices, "open", NULL, 0, NULL, 0);
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    struct notices *notices = arg;
    assert_int_equal(index, 3);
    assert_false(subscriber_is_open(notices->subscriber));
    assert_int_equal(subscriber_listen(notices->subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
    assert_string_equal(why, subscriber_why(notices->subscriber));
    snprintf(notices->why, sizeof notices->why, "%s", why);
    tell(notices, "closed", NULL, 0, NULL, 0);
    assert_string_equal(why, notices->why); /* also where the callback freed the subscriber */
}

static void on_listening(void *arg, uint32_t index, const char *channel, size_t length)
{
    assert_int_equal(index, 3);
    tell(arg, "listening", channel, length, NULL, 0);
}

static void on_refused(void *arg, uint32_t index, const char *channel, size_t length, const char *why)
{
    struct notices *notices = arg;
    assert_int_equal(index, 3);
    snprintf(notices->why, sizeof notices->why, "%s", why);
    tell(arg, "refused", channel, length, NULL, 0);
    assert_true(*channel != '\0'); /* also where the callback changed the list it stood in */
}

static void on_message(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                       size_t payload_length)
{
    assert_int_equal(index, 3);
    tell(arg, "message", channel, length, payload, payload_length);
}

void notices_begin(struct notices *notices)
{
    memset(notices, 0, sizeof *notices);
    world_open(&notices->world);
    notices->world.on_line = on_line;
    notices->config = (struct subscriber_config){
        .index = 3, .timeout_ms = 10000, .reconnect_min_ms = 2, .reconnect_max_ms = 20, .now_us = clock_us};
}

struct subscriber *notices_create(struct notices *notices)
{
    const struct subscriber_events events = {on_open,    on_closed,  on_listening,
                                             on_refused, on_message, notices->log ? notices->log : world_log,
                                             notices};
    if (!notices->world.uri.host) world_uri(&notices->world, "127.0.0.1", "");
    notices->config.uri = &notices->world.uri;
    notices->subscriber = subscriber_new(notices->world.base, &notices->world.alloc, &notices->config, &events);
    return notices->subscriber;
}

void notices_start(struct notices *notices)
{
    assert_non_null(notices_create(notices));
    assert_string_equal(subscriber_why(notices->subscriber), "stopped");
    subscriber_start(notices->subscriber);
    subscriber_start(notices->subscriber);
    assert_int_equal(notices->world.told, 0);
    assert_false(subscriber_is_open(notices->subscriber));
}

void notices_begin_with(struct notices *notices, const char *wants, const struct fake_step *script)
{
    notices_begin(notices);
    notices->wants = wants;
    fake_play(notices->world.server, script);
    notices_start(notices);
}

void notices_end(struct notices *notices)
{
    subscriber_free(notices->subscriber);
    notices->world.freed = true;
    world_close(&notices->world);
}

unsigned times_in(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
    return n;
}
