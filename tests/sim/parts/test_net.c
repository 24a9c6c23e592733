/* SPDX-License-Identifier: BSD-3-Clause */
/* test_net.c - each fault of the network does what net.h says */
#include "net_fixture.h"

NET_TEST(bytes_arrive_in_order_in_pieces)
{
    char text[4001] = "";

    open_one(f);
    net_link(f->net, 0, 0)->split_one_in = 2;
    for (int i = 0; i < 1000; i++) snprintf(text + strlen(text), 5, "%4d", i % 1000);
    for (size_t sent = 0; sent + 100 <= strlen(text);) {
        ssize_t n = net_send(f->net, f->fd, text + sent, 100);

        assert_true(n > 0);
        sent += (size_t)n;
        pass(f, 10);
    }
    pass(f, 100 * MS);
    assert_true(f->n_heard > 3900);
    assert_memory_equal(f->heard, text, f->n_heard);
    assert_true(f->inputs > 20);
    assert_int_equal(listen_to(f), EAGAIN);
    assert_int_equal(f->n_said, f->n_heard + f->inputs);
    net_close(f->net, f->fd, false);
    pass(f, SECOND);
    assert_int_equal(f->gone, 1);
}

NET_TEST(a_connect_can_be_refused)
{
    net_link(f->net, 0, 0)->refuses = true;
    dial(f, 0, 1, 6379);
    pass(f, 100 * MS);
    assert_int_equal(net_ready(f->net, f->fd), WATCH_READ | WATCH_WRITE);
    assert_int_equal(net_finish(f->net, f->fd), ECONNREFUSED);
    net_close(f->net, f->fd, false);
    /* A port, or a process, that is not there. */
    dial(f, 0, 2, 1234);
    pass(f, 100 * MS);
    assert_int_equal(net_finish(f->net, f->fd), ECONNREFUSED);
    net_close(f->net, f->fd, false);
    net_listen(f->net, 1, NULL);
    dial(f, 0, 2, 6379);
    pass(f, 100 * MS);
    assert_int_equal(net_finish(f->net, f->fd), ECONNREFUSED);
    net_close(f->net, f->fd, false);
    assert_int_equal(f->accepted, 0);
}

NET_TEST(a_connect_can_hang)
{
    /* The second try succeeds, after a second. */
    net_link(f->net, 0, 0)->drops_syn = true;
    dial(f, 0, 1, 6379);
    pass(f, 900 * MS);
    assert_int_equal(net_ready(f->net, f->fd), 0);
    net_heal(f->net);
    pass(f, 200 * MS);
    assert_int_equal(net_ready(f->net, f->fd), WATCH_WRITE);
    net_close(f->net, f->fd, false);
    /* Where nobody is, and where the answers are lost, none does. */
    for (uint32_t last_byte = 1; last_byte < 100; last_byte += 98) {
        cut(f, NET_TO_CLIENT, NEVER);
        dial(f, 0, last_byte, 6379);
        pass(f, TIMEOUT * MS - 1);
        assert_int_equal(net_ready(f->net, f->fd), 0);
        pass(f, 1);
        assert_int_equal(net_finish(f->net, f->fd), ETIMEDOUT);
        net_close(f->net, f->fd, false);
    }
    assert_int_equal(f->accepted, 1);
}

NET_TEST(a_full_socket_takes_no_more)
{
    char bytes[100] = "";

    open_one(f);
    net_link(f->net, 0, 0)->room = 150;
    net_freeze(f->net, 0, true);
    assert_int_equal(net_send(f->net, f->fd, bytes, 100), 100);
    assert_int_equal(net_send(f->net, f->fd, bytes, 100), 50);
    assert_int_equal(net_send(f->net, f->fd, bytes, 100), -1);
    assert_int_equal(errno, EAGAIN);
    /* They have arrived, but the process does not read them. */
    pass(f, 60 * SECOND);
    assert_int_equal(net_ready(f->net, f->fd), 0);
    f->woken = 0;
    net_freeze(f->net, 0, false);
    assert_int_equal(f->n_heard, 150);
    assert_int_equal(f->woken, 1);
    assert_int_equal(net_ready(f->net, f->fd), WATCH_WRITE);
}

NET_TEST(bytes_wait_until_a_cut_ends)
{
    open_one(f);
    cut(f, NET_TO_SERVER, 3 * SECOND);
    say(f, "x");
    pass(f, 3 * SECOND);
    assert_int_equal(f->n_heard, 0);
    pass(f, SECOND);
    assert_string_equal(f->heard, "x");
    /* Its end may come earlier than was said. */
    cut(f, NET_TO_CLIENT, NEVER);
    say(f, "y");
    pass(f, 3 * SECOND);
    assert_string_equal(f->heard, "xy");
    (void)listen_to(f);
    assert_string_equal(f->said, "+x");
    cut(f, NET_TO_CLIENT, 0);
    pass(f, 100 * SECOND);
    assert_int_equal(listen_to(f), EAGAIN);
    assert_string_equal(f->said, "+x+y");
}

NET_TEST(a_long_cut_ends_a_connection_that_has_sent)
{
    open_one(f);
    cut(f, NET_TO_SERVER, NEVER);
    say(f, "x");
    pass(f, TIMEOUT * MS - 1);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, 1);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    net_close(f->net, f->fd, false);
    pass(f, SECOND);
    assert_int_equal(f->gone, 0);
    cut(f, NET_TO_SERVER, 0);
    pass(f, SECOND);
    assert_int_equal(f->gone, 1);
    assert_int_equal(f->n_heard, 0);
}

NET_TEST(probes_end_an_idle_connection_after_19_seconds)
{
    open_one(f);
    cut(f, NET_TO_CLIENT, 18 * SECOND);
    pass(f, 40 * SECOND);
    assert_int_equal(listen_to(f), EAGAIN);
    cut(f, NET_TO_CLIENT, NEVER);
    pass(f, 8 * SECOND);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, 11 * SECOND);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    assert_int_equal(net_send(f->net, f->fd, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
}

NET_TEST(a_hang_up_comes_behind_the_bytes_before_it)
{
    open_one(f);
    net_reply(f->conn, "bye", 3);
    net_hang_up(f->conn);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, SECOND);
    assert_int_equal(net_ready(f->net, f->fd), WATCH_READ | WATCH_WRITE);
    assert_true(net_has_input(f->net, f->fd));
    assert_int_equal(listen_to(f), 0);
    assert_string_equal(f->said, "bye");
    /* What is sent then is answered by a reset. */
    say(f, "x");
    pass(f, SECOND);
    assert_int_equal(net_send(f->net, f->fd, "x", 1), -1);
    assert_int_equal(errno, ECONNRESET);
    assert_int_equal(net_send(f->net, f->fd, "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    net_close(f->net, f->fd, false);
    assert_int_equal(f->n_heard + f->gone, 0);
}

NET_TEST(a_process_that_ends_takes_its_connections_along)
{
    unsigned n_reset = 0;

    for (int i = 0; i < 40; i++) {
        dial(f, 0, 1, 6379);
        pass(f, 100 * MS);
        net_ended(f->net, 0, false);
        net_listen(f->net, 0, NULL);
        pass(f, 100 * MS);
        n_reset += listen_to(f) == ECONNRESET;
        assert_int_not_equal(listen_to(f), EAGAIN);
        net_close(f->net, f->fd, false);
        listen_at(f, 0);
    }
    assert_in_range(n_reset, 5, 35);
    assert_int_equal(f->gone, 0);
}

/* The host of two connections vanishes: one has something on its way; the other, which is returned, is idle. */
static int lose_host(struct fixture *f)
{
    int idle;

    open_one(f);
    idle = f->fd;
    dial(f, 0, 1, 6379);
    pass(f, 100 * MS);
    net_ended(f->net, 0, true);
    say(f, "x");
    return idle;
}

NET_TEST(a_host_vanishes_in_silence)
{
    int idle = lose_host(f);

    pass(f, TIMEOUT * MS - 1);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, 1);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    net_close(f->net, f->fd, false);
    f->fd = idle;
    pass(f, 13 * SECOND);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, SECOND);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    assert_int_equal(f->n_heard, 0);
}

NET_TEST(a_host_that_is_back_knows_no_connection)
{
    int idle = lose_host(f);

    pass(f, 2900 * MS);
    listen_at(f, 0);
    pass(f, 500 * MS);
    assert_int_equal(listen_to(f), ECONNRESET);
    f->fd = idle;
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, 20 * SECOND);
    assert_int_equal(listen_to(f), ECONNRESET);
    assert_int_equal(f->n_heard, 0);
}

NET_TEST(late_bytes_are_executed_after_a_reset)
{
    for (int late = 0; late < 2; late++) {
        f->n_heard = f->gone = f->accepted = 0;
        open_one(f);
        say(f, "late");
        net_break(f->net, 0, 0, late != 0, 30 * SECOND);
        assert_int_equal(listen_to(f), ECONNRESET);
        net_close(f->net, f->fd, false);
        pass(f, 29 * SECOND);
        /* Not late: it may have broken in the middle. */
        assert_in_range(f->n_heard, 0, late != 0 ? 0 : 3);
        assert_int_equal(f->gone, late != 0 ? 0 : 1);
        pass(f, 2 * SECOND);
        if (late != 0) assert_int_equal(f->n_heard, 4);
        assert_int_equal(f->gone, 1);
    }
}

NET_TEST(a_healed_link_is_as_fast_as_before)
{
    char bytes[1000] = "";

    open_one(f);
    net_link(f->net, 0, 0)->bytes_per_ms = 1;
    for (int i = 0; i < 8; i++) {
        net_send(f->net, f->fd, bytes, sizeof(bytes));
        pass(f, MS);
    }
    net_heal(f->net);
    pass(f, 300 * MS);
    assert_int_equal(f->n_heard, 8 * sizeof(bytes));
    f->n_heard = 0;
    net_link(f->net, 0, 0)->bytes_per_ms = 1000;
    net_send(f->net, f->fd, bytes, sizeof(bytes));
    pass(f, 10 * MS);
    assert_int_equal(f->n_heard, sizeof(bytes));
}

/* The answer was on its way when the host vanished, and the host that is back has nothing to send again. */
NET_TEST(an_answer_of_a_host_that_vanished_is_lost)
{
    open_one(f);
    net_link(f->net, 0, 0)->delay_us[NET_TO_CLIENT] = SECOND;
    say(f, "x");
    pass(f, 10 * MS);
    assert_string_equal(f->heard, "x");
    net_ended(f->net, 0, true);
    pass(f, 4 * SECOND);
    listen_at(f, 0);
    pass(f, 30 * SECOND);
    assert_int_equal(listen_to(f), ECONNRESET);
    assert_string_equal(f->said, "");
}

NET_TEST(narrow_and_slow_links_take_their_time)
{
    char bytes[1000] = "";

    open_one(f);
    net_link(f->net, 0, 0)->bytes_per_ms = 10;
    net_send(f->net, f->fd, bytes, sizeof(bytes));
    pass(f, 99 * MS);
    assert_int_equal(f->n_heard, 0);
    pass(f, 20 * MS);
    assert_int_equal(f->n_heard, sizeof(bytes));
    net_link(f->net, 0, 0)->bytes_per_ms = 0;
    net_link(f->net, 0, 0)->slow_us = SECOND;
    net_link(f->net, 0, 0)->slow_until_us = f->queue.now_us + 10;
    say(f, "x");
    pass(f, SECOND);
    assert_int_equal(f->n_heard, sizeof(bytes));
    pass(f, 20 * MS);
    assert_int_equal(f->n_heard, sizeof(bytes) + 1);
}

NET_TEST(a_process_that_dies_is_noticed_and_a_host_is_not)
{
    for (int host = 0; host < 2; host++) {
        f->n_heard = f->gone = f->accepted = 0;
        open_one(f);
        say(f, "last");
        net_die(f->net, 0, host != 0);
        pass(f, 200 * SECOND);
        assert_int_equal(f->n_heard, 4);
        assert_int_equal(f->gone, host != 0 ? 0 : 1);
        pass(f, 200 * SECOND);
        assert_int_equal(f->gone, 1);
    }
}

/* The process that answered the handshake is not the one that listens now. */
NET_TEST(a_handshake_does_not_survive_a_restart)
{
    net_link(f->net, 0, 0)->delay_us[NET_TO_CLIENT] = SECOND;
    dial(f, 0, 1, 6379);
    pass(f, 100 * MS);
    net_ended(f->net, 0, false);
    listen_at(f, 0);
    pass(f, 60 * SECOND);
    assert_int_equal(listen_to(f), ECONNRESET);
    assert_int_equal(f->accepted, 0);
}

NET_TEST(a_server_that_moves_answers_elsewhere)
{
    uint32_t before = net_address(f->net, 0), after;
    int stale;

    open_one(f);
    stale = f->fd;
    after = net_move(f->net, 0);
    assert_int_equal(net_address(f->net, 0), after);
    dial(f, 0, before, 6379);
    pass(f, 3 * SECOND);
    assert_int_equal(net_ready(f->net, f->fd), 0);
    dial(f, 0, after, 6379);
    pass(f, SECOND);
    assert_int_equal(net_ready(f->net, f->fd), WATCH_WRITE);
    f->fd = stale;
    pass(f, 20 * SECOND);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    net_close(f->net, stale, false);
    pass(f, 400 * SECOND);
    assert_int_equal(f->gone, 1);
}
