/* SPDX-License-Identifier: BSD-3-Clause */
/* test_net_loss.c - what is lost is sent again, also for a connection that was closed, and what is not */
#include "net_fixture.h"

#define TRIES 40

static void again(struct fixture *f, uint64_t seed)
{
    net_reset(f->net, seed, MACHINES, SERVERS);
    for (uint32_t i = 0; i < SERVERS; i++) listen_at(f, i);
    memset(f->heard, 0, sizeof(f->heard));
    memset(f->said, 0, sizeof(f->said));
    f->n_heard = f->n_said = f->gone = f->accepted = 0;
    open_one(f);
}

static void cut_both(struct fixture *f, uint64_t for_us)
{
    cut(f, NET_TO_SERVER, for_us);
    cut(f, NET_TO_CLIENT, for_us);
}

NET_TEST(lost_bytes_are_sent_again_after_pauses_that_double)
{
    static const struct {
        uint64_t cut_ms, least_ms, most_ms;
    } rows[] = {{100, 200, 230}, {300, 600, 640}, {1000, 1400, 1490}, {2900, 3000, 3190}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        again(f, i);
        cut(f, NET_TO_SERVER, rows[i].cut_ms * MS);
        say(f, "x");
        pass(f, rows[i].least_ms * MS - 1);
        assert_int_equal(f->n_heard, 0);
        pass(f, (rows[i].most_ms - rows[i].least_ms) * MS);
        assert_string_equal(f->heard, "x");
    }
}

NET_TEST(a_lossy_link_delays_bytes_and_keeps_their_order)
{
    uint64_t latest_us = 0;

    open_one(f);
    net_link(f->net, 0, 0)->lose_one_in = 3;
    for (size_t i = 0; i < 50; i++) {
        uint64_t sent_us = f->queue.now_us;

        say(f, i % 2 == 0 ? "a" : "b");
        while (f->n_heard == i && queue_next(&f->queue, sent_us + 60 * SECOND)) continue;
        assert_int_equal(f->heard[i], i % 2 == 0 ? 'a' : 'b');
        if (f->queue.now_us - sent_us > latest_us) latest_us = f->queue.now_us - sent_us;
    }
    assert_in_range(latest_us, 200 * MS, 60 * SECOND);
}

/* Its release, which it had sent behind, is executed or not: the answer to the first bytes is met by a reset. */
NET_TEST(what_was_closed_in_order_arrives_behind_its_successor)
{
    unsigned n_first = 0, n_both = 0;

    for (uint64_t seed = 0; seed < TRIES; seed++) {
        again(f, seed);
        cut_both(f, 2800 * MS);
        say(f, "SET");
        pass(f, SECOND);
        say(f, "DEL");
        pass(f, 1700 * MS);
        net_close(f->net, f->fd, false);
        pass(f, 110 * MS);
        dial(f, 0, 1, 6379);
        pass(f, 50 * MS);
        say(f, "new");
        pass(f, 10 * MS);
        assert_string_equal(f->heard, "new");
        assert_false(net_is_resent(f->conn));
        pass(f, 10 * SECOND);
        n_first += strcmp(f->heard, "newSET") == 0;
        n_both += strcmp(f->heard, "newSETDEL") == 0;
        assert_int_equal(f->gone, 1);
    }
    assert_in_range(n_first, TRIES / 8, TRIES);
    assert_in_range(n_both, TRIES / 8, TRIES);
    assert_int_equal(n_first + n_both, TRIES);
}

NET_TEST(a_kernel_gives_up_on_a_closed_connection)
{
    open_one(f);
    cut_both(f, TIMEOUT * MS + 500 * MS);
    say(f, "x");
    net_close(f->net, f->fd, false);
    expect_gone(f, 299, 319);
}

/* The second time something was not read, and then a close in order resets, too. */
NET_TEST(a_reset_takes_back_what_has_not_left)
{
    for (int unread = 0; unread < 2; unread++) {
        again(f, 1);
        if (unread != 0) {
            say(f, "first");
            pass(f, SECOND);
            f->n_heard = 0;
        }
        cut_both(f, SECOND);
        say(f, "x");
        pass(f, 100 * MS);
        net_close(f->net, f->fd, unread == 0);
        expect_gone(f, 290, 310);
    }
}

NET_TEST(a_process_that_dies_sends_again_only_what_it_was_to_keep)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        again(f, 1);
        cut_both(f, SECOND);
        say(f, "x");
        if (keeps != 0) net_keep_sending(f->net, f->fd);
        pass(f, 100 * MS);
        net_die(f->net, 0, false);
        pass(f, 10 * SECOND);
        assert_int_equal(f->n_heard, keeps);
    }
}

NET_TEST(a_proxy_may_go_on_behind_a_reset)
{
    unsigned n = 0;

    for (uint64_t seed = 0; seed < TRIES; seed++) {
        again(f, seed);
        net_link(f->net, 0, 0)->proxied = true;
        cut(f, NET_TO_SERVER, SECOND);
        say(f, "x");
        pass(f, 100 * MS);
        net_close(f->net, f->fd, true);
        pass(f, 30 * SECOND);
        n += f->n_heard > 0;
    }
    assert_in_range(n, TRIES / 8, TRIES - TRIES / 8);
}

NET_TEST(a_cut_tears_a_write)
{
    const char text[] = "0123456789";

    open_one(f);
    say(f, text);
    net_tear(f->net, 0, 0);
    cut(f, NET_TO_SERVER, SECOND);
    assert_in_range(f->n_heard, 1, sizeof(text) - 2);
    assert_memory_equal(f->heard, text, f->n_heard);
    pass(f, SECOND);
    assert_in_range(f->n_heard, 1, sizeof(text) - 2);
    pass(f, SECOND);
    assert_string_equal(f->heard, text);
}

NET_TEST(a_middlebox_forgets_an_idle_connection)
{
    open_one(f);
    net_link(f->net, 0, 0)->forgets_us = 3 * SECOND;
    for (size_t i = 1; i < 5; i++) {
        say(f, "x");
        pass(f, 2 * SECOND);
        assert_int_equal(f->n_heard, i);
    }
    pass(f, 2 * SECOND);
    say(f, "y");
    pass(f, TIMEOUT * MS - 1);
    assert_int_equal(listen_to(f), EAGAIN);
    pass(f, 1);
    assert_int_equal(listen_to(f), ETIMEDOUT);
    net_close(f->net, f->fd, false);
    assert_int_equal(f->n_heard, 4);
    /* Others pass. */
    dial(f, 0, 1, 6379);
    pass(f, SECOND);
    say(f, "z");
    pass(f, SECOND);
    assert_string_equal(f->heard, "xxxxz");
    assert_int_equal(f->gone, 0);
}
