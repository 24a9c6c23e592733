/* SPDX-License-Identifier: BSD-3-Clause */
/* quorlock.hpp against three real servers: test_cpp NODE NODE NODE. */
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <thread>
#include <tuple>

#include <unistd.h>

#include <event2/event.h>

#include <quorlock/quorlock.hpp>

namespace
{

using namespace std::chrono_literals;
using quorlockpp::client_options;
using quorlockpp::error;
using quorlockpp::guard;
using quorlockpp::lock_options;

void check_at(bool holds, int line, const char *what)
{
    if (holds) return;
    std::fprintf(stderr, "test_cpp.cpp:%d: not so: %s\n", line, what);
    std::abort();
}
#define CHECK(what) check_at((what), __LINE__, #what)

/* The status of what the call throws; 0: it throws nothing. */
template <class Call> int status_of(Call &&call)
{
    try {
        call();
    } catch (const error &thrown) {
        return thrown.status();
    }
    return 0;
}

lock_options of(quorlockpp::milliseconds lease, quorlockpp::milliseconds wait = 0ms)
{
    lock_options options;
    options.lease = lease;
    options.wait = wait;
    return options;
}

/* Any client may delete a key by force. */
void break_key(const quorlockpp::client &client, const char *key)
{
    CHECK(quorlock_sync_client_break(
              client.get(), key, nullptr, [](int, const quorlock_report *, void *) {}, nullptr) == 0);
}

void options_are_checked(const client_options &nodes)
{
    quorlockpp::client client(nodes);
    CHECK(status_of([] { quorlockpp::client none{client_options{}}; }) == QUORLOCK_ERR_INVAL);
    CHECK(status_of([&] { quorlockpp::lock(client, {}); }) == QUORLOCK_ERR_INVAL);
    CHECK(status_of([&] { quorlockpp::lock(client, {"key"}, of(-1ms)); }) == QUORLOCK_ERR_INVAL);
    CHECK(status_of([&] { quorlockpp::lock(client, {"key"}, of(24h * 365)); }) == QUORLOCK_ERR_INVAL);
    try {
        quorlockpp::lock(client, {"key"}, of(31s));
        CHECK(false);
    } catch (const error &thrown) {
        CHECK(std::string(thrown.what()).find("31000") != std::string::npos);
    }
}

/* A new member of the options does not compile here until it is checked, too. */
void each_option_reaches_c()
{
    lock_options lock;
    auto &[lease, wait, max_hold, keep, owner, permits, fencing, shared, fair, c] = lock;
    std::tie(lease, wait, max_hold, keep) = std::make_tuple(1ms, 2ms, 3ms, 4ms);
    std::tie(owner, permits, fencing, shared, fair) = std::make_tuple("5", 6U, true, true, true);
    std::tie(c.renew_ms, c.lease_ms) = std::make_tuple(7U, 99U);
    const quorlock_lock_options of_lock = quorlockpp::detail::to_c(lock);
    CHECK(of_lock.lease_ms == 1 && of_lock.wait_ms == 2 && of_lock.max_hold_ms == 3 && of_lock.keep_ms == 4);
    CHECK(std::string(of_lock.owner) == "5" && of_lock.permits == 6 && of_lock.renew_ms == 7);
    CHECK(of_lock.fencing != 0 && of_lock.shared == QUORLOCK_SHARED_ALL && of_lock.fair != 0);

    client_options client;
    auto &[nodes, user, password, set, prefix, label, ca, cert, key, name, max_lease, node, connect, log, more, kept] =
        client;
    nodes = {"0"};
    std::tie(user, password, set, prefix, label) = std::make_tuple("1", "2", "3", "4", "5");
    std::tie(ca, cert, key, name) = std::make_tuple("6", "7", "8", "9");
    std::tie(max_lease, node, connect) = std::make_tuple(10ms, 11ms, 12ms);
    log = [](int, const char *) {};
    more.drift_ppm = 13;
    quorlockpp::detail::hooks calls;
    std::string text;
    const auto pointers = quorlockpp::detail::pointers(nodes);
    const quorlock_client_options got = quorlockpp::detail::to_c(client, pointers, calls, text);
    const char *const texts[] = {got.nodes[0],    got.user,   got.password, got.set_name, got.key_prefix,
                                 got.owner_label, got.tls_ca, got.tls_cert, got.tls_key,  got.tls_name};
    for (std::size_t i = 0; i < std::size(texts); i++) CHECK(std::string(texts[i]) == std::to_string(i));
    CHECK(got.max_lease_ms == 10 && got.node_timeout_ms == 11 && got.connect_timeout_ms == 12 && got.drift_ppm == 13);
    CHECK(got.n_nodes == 1 && got.log != nullptr);
    kept = {nullptr, [](quorlock_settings *) {}};
    CHECK(quorlockpp::detail::to_c(client, pointers, calls, text).n_nodes == 1 && calls.settings.use_count() == 2);
}

void a_file_gives_options(const client_options &nodes)
{
    char name[] = "/tmp/quorlock-cpp-XXXXXX";
    std::FILE *file = fdopen(mkstemp(name), "w");
    std::string text = "set = c\n[set c]\npolicy = all\npassword-file = " + std::string(name) + "\nnodes = ";

    for (const std::string &node : nodes.nodes) text += node + ",";
    CHECK(file != nullptr && std::fputs(text.c_str(), file) >= 0 && std::fclose(file) == 0);
    CHECK(quorlockpp::load("c", name).c.policy == QUORLOCK_POLICY_ALL);
    CHECK(quorlockpp::load("", name).c.n_nodes == nodes.nodes.size());
    CHECK(status_of([&] { quorlockpp::load("d", name); }) == QUORLOCK_ERR_INVAL);
    {
        auto options = quorlockpp::load("c", name);
        const auto forgotten = options.settings.use_count();
        options.c.policy = QUORLOCK_POLICY_MAJORITY;
        options.c.guard = QUORLOCK_GUARD_OFF;
        options.password = "no server has it";
        quorlockpp::client client(options);
        CHECK(options.settings.use_count() == forgotten + 1);
        options = {};
        options.nodes = nodes.nodes;
        CHECK(options.c.policy == 0 && !options.settings);
    }
    std::remove(name);
    CHECK(status_of([&] { quorlockpp::load("c", name); }) == QUORLOCK_ERR_INVAL);
}

void a_guard_holds_and_releases(const client_options &nodes)
{
    quorlockpp::client client(nodes);
    lock_options options = of(10s);
    options.fencing = true;
    quorlockpp::lock first(client, {"one", "two"}, options), other(client, {"two"});
    {
        guard held(first);
        CHECK(held.valid() > 0ms && held.valid() <= 10s);
        CHECK(held.granted().fence > 0 && held.granted().token[0] != '\0' && held.granted().slot == 0);
        CHECK(status_of([&] { other.acquire(); }) == QUORLOCK_ERR_HELD);
        guard moved(std::move(held));
        moved.check();
        CHECK(moved.valid() > 0ms);
    }
    CHECK(first.valid() == 0ms);
    CHECK(status_of([&] { first.release(); }) == QUORLOCK_ERR_LOST);
    other.acquire();
    other.release();
    CHECK(status_of([&] { other.acquire(), other.acquire(); }) == QUORLOCK_ERR_STATE);
    other.release();
    quorlockpp::client moved_to(std::move(client));
    quorlockpp::lock again(moved_to, {"one"});
    again = quorlockpp::lock(moved_to, {"two"});
    guard(again).release();
}

void work_returns_throws_and_is_told_of_a_loss(const client_options &nodes)
{
    quorlockpp::client client(nodes);
    int runs = 0;
    CHECK(client.with("work", of(10s), [](guard &held) { return held.valid() > 0ms; }));
    client.with("work", of(10s), [&](guard &) { runs++; });
    try {
        client.with("work", of(10s), [](guard &) { throw std::runtime_error("mine"); });
        CHECK(false);
    } catch (const std::runtime_error &thrown) {
        CHECK(std::string(thrown.what()) == "mine");
    }
    client.with("work", of(10s), [&](guard &) {
        runs++;
        CHECK(status_of([&] { client.with("work", {}, [&](guard &) { runs = 99; }); }) == QUORLOCK_ERR_HELD);
    });
    CHECK(runs == 2);
    CHECK(status_of([&] { client.with("work", of(10s), [&](guard &) { break_key(client, "work"); }); }) ==
          QUORLOCK_ERR_LOST);
    CHECK(status_of([&] {
              client.with("work", of(2s), [&](guard &held) {
                  break_key(client, "work");
                  for (;; std::this_thread::sleep_for(1ms)) held.check();
              });
          }) == QUORLOCK_ERR_LOST);
}

void a_loss_runs_a_lambda(const client_options &nodes)
{
    std::string lines;
    client_options logs = nodes;
    logs.log = [&lines](int, const char *text) { lines += text; };
    quorlockpp::client client(logs);
    quorlockpp::lock lost(client, {"lost"}, of(2s));
    std::string text;
    lost.on_lost([&text](const quorlock_loss &loss) { text = loss.text; });
    lost.acquire();
    break_key(client, "lost");
    while (lost.valid() > 0ms) std::this_thread::sleep_for(1ms);
    lost.on_lost(nullptr); /* after this the lambda does not run, or has ended */
    CHECK(!text.empty());
    CHECK(status_of([&] { lost.release(); }) == QUORLOCK_ERR_LOST);
    client.shutdown();
    CHECK(status_of([&] { lost.acquire(); }) == QUORLOCK_ERR_CLOSED);
    {
        const quorlockpp::client ends(std::move(client));
    }
    CHECK(!lines.empty());
    CHECK(lost.valid() == 0ms); /* it outlives its client */
}

/* Two locks on a loop of the caller's: the second gets the key when the first gives it back, and is lost. */
void callbacks_are_lambdas(const client_options &nodes)
{
    event_base *const base = event_base_new();
    std::string said;
    {
        quorlockpp::async::client client(base, nodes);
        quorlockpp::async::lock first(client, {"async"}, of(10s)), left(client, {"left"});
        auto second = std::make_unique<quorlockpp::async::lock>(client, std::vector<std::string>{"async"}, of(2s, 20s));
        CHECK(status_of([&] { first.release(); }) == QUORLOCK_ERR_STATE);
        second->on_lost([&](const quorlock_loss &) {
            said += "lost ";
            second.reset();
            client.close([&said] { said += "closed"; });
        });
        first.acquire([&](const quorlock_result &got) {
            CHECK(got.status == 0 && first.valid() > 0ms && first.fence() == 0);
            said += "first ";
            first.release([&](const quorlock_result &done) { CHECK(done.status == 0 && first.valid() == 0ms); });
            second->acquire([&](const quorlock_result &granted) {
                CHECK(granted.status == 0);
                said += "second ";
                CHECK(quorlock_client_break(
                          client.get(), "async", nullptr, [](int, const quorlock_report *, void *) {}, nullptr) == 0);
            });
        });
        CHECK(status_of([&] { first.acquire(nullptr); }) == QUORLOCK_ERR_BUSY);
        event_base_dispatch(base);
        CHECK(said == "first second lost closed");
        CHECK(left.valid() == 0ms && !left.cancel()); /* it outlives its client */
        CHECK(status_of([&] { left.acquire(nullptr); }) == QUORLOCK_ERR_CLOSED);
    }
    {
        quorlockpp::async::client ends([base](auto **ret, const auto *c) { return quorlock_client_new(ret, base, c); },
                                       nodes);
        CHECK(status_of([&] { quorlockpp::async::client none(base, client_options{}); }) == QUORLOCK_ERR_INVAL);
    }
    event_base_dispatch(base); /* until it is closed */
    event_base_free(base);
}

} // namespace

int main(int argc, char **argv)
{
    client_options nodes;
    nodes.nodes.assign(argv + 1, argv + argc);
    options_are_checked(nodes);
    each_option_reaches_c();
    a_file_gives_options(nodes);
    a_guard_holds_and_releases(nodes);
    work_returns_throws_and_is_told_of_a_loss(nodes);
    a_loss_runs_a_lambda(nodes);
    callbacks_are_lambdas(nodes);
    std::puts("all hold");
    return 0;
}
