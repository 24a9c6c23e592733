/* SPDX-License-Identifier: BSD-3-Clause */
#include "notice_fixture.h"

#include <stdio.h>
#include <string.h>

void notice_fixture_act(struct node_fixture *f)
{
    struct subscriber *subscriber = f->subscriber;

    switch (f->act) {
    case ACT_NONE: break;
    case ACT_STOP: subscriber_stop(subscriber); break;
    case ACT_RESTART:
        subscriber_stop(subscriber);
        subscriber_start(subscriber);
        break;
    case ACT_FREE:
        f->freed = true;
        f->subscriber = NULL;
        subscriber_free(subscriber);
        break;
    case ACT_LISTEN: assert_int_equal(subscriber_listen(subscriber, "z", 1), SUBSCRIBER_ASKED); break;
    case ACT_FORGET: subscriber_forget(subscriber, "a", 1); break;
    }
}

static void on_line(struct node_fixture *f, const char *line)
{
    if (f->act_at == NULL || strcmp(line, f->act_at) != 0) return;
    f->act_at = NULL;
    notice_fixture_act(f);
}

/* Any bytes, on one line. */
static void trace_line(struct node_fixture *f, const char *what, const char *channel, size_t length,
                       const char *payload, size_t payload_length)
{
    char line[1024];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s", what);

    for (int part = 0; part < 2; part++) {
        const char *bytes = part != 0 ? payload : channel;
        size_t left = part != 0 ? payload_length : length;

        if (bytes == NULL) continue;
        line[n++] = ' ';
        for (; left != 0 && n + 5 < sizeof(line); left--, bytes++) {
            if (*bytes > ' ' && *bytes <= '~')
                line[n++] = *bytes;
            else
                n += (size_t)snprintf(line + n, 5, "\\x%02x", (unsigned)(unsigned char)*bytes);
        }
    }
    line[n] = '\0';
    node_fixture_trace(f, line);
}

static void on_open(void *arg, uint32_t index)
{
    struct node_fixture *f = arg;

    assert_int_equal(index, 3);
    assert_true(subscriber_is_open(f->subscriber));
    for (const char *want = f->wants; want != NULL && *want != '\0'; want++)
        assert_int_equal(subscriber_listen(f->subscriber, want, 1), SUBSCRIBER_ASKED);
    trace_line(f, "open", NULL, 0, NULL, 0);
}

static void on_closed(void *arg, uint32_t index, const char *why)
{
    struct node_fixture *f = arg;

    assert_int_equal(index, 3);
    assert_false(subscriber_is_open(f->subscriber));
    assert_int_equal(subscriber_listen(f->subscriber, "a", 1), SUBSCRIBER_NOT_OPEN);
    snprintf(f->why, sizeof(f->why), "%s", why);
    trace_line(f, "closed", NULL, 0, NULL, 0);
    assert_string_equal(why, f->why); /* also where the callback freed the subscriber */
}

static void on_listening(void *arg, uint32_t index, const char *channel, size_t length)
{
    assert_int_equal(index, 3);
    trace_line(arg, "listening", channel, length, NULL, 0);
}

static void on_refused(void *arg, uint32_t index, const char *channel, size_t length, const char *why)
{
    struct node_fixture *f = arg;

    assert_int_equal(index, 3);
    snprintf(f->why, sizeof(f->why), "%s", why);
    trace_line(arg, "refused", channel, length, NULL, 0);
    assert_true(*channel != '\0'); /* also where the callback changed the list it stood in */
}

static void on_message(void *arg, uint32_t index, const char *channel, size_t length, const char *payload,
                       size_t payload_length)
{
    assert_int_equal(index, 3);
    trace_line(arg, "message", channel, length, payload, payload_length);
}

void notice_fixture_begin(struct node_fixture *f)
{
    node_fixture_open(f);
    f->on_line = on_line;
    f->config.link.client_name = NULL;
}

struct subscriber *notice_fixture_create(struct node_fixture *f)
{
    const struct subscriber_events events = {.open = on_open,
                                             .closed = on_closed,
                                             .listening = on_listening,
                                             .refused = on_refused,
                                             .message = on_message,
                                             .arg = f};

    if (f->uri.host == NULL) node_fixture_uri(f, "127.0.0.1", "");
    f->subscriber = subscriber_new(&f->system, &f->alloc, 3, &f->config.link, &events);
    return f->subscriber;
}

void notice_fixture_start(struct node_fixture *f)
{
    assert_non_null(notice_fixture_create(f));
    subscriber_start(f->subscriber);
    subscriber_start(f->subscriber);
    assert_int_equal(f->trace_length, 0);
    assert_false(subscriber_is_open(f->subscriber));
}

void notice_fixture_begin_with(struct node_fixture *f, const char *wants, const struct fake_step *script)
{
    notice_fixture_begin(f);
    f->wants = wants;
    fake_play(f->server, script);
    notice_fixture_start(f);
}
