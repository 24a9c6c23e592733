/* SPDX-License-Identifier: BSD-3-Clause */
/* quorlock.hpp against three real servers: test_cpp NODE NODE NODE. */
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <tuple>

#include <unistd.h>

#include <event2/event.h>

#include <quorlock/quorlock.hpp>

/* ---- what the compiler can see ---- */

namespace requirements
{

template <class T> T &a() noexcept;

template <class T, class = void> struct lockable : std::false_type {
};
template <class T>
struct lockable<T, std::void_t<decltype(a<T>().lock()), decltype(a<T>().try_lock()), decltype(a<T>().unlock())>>
    : std::bool_constant<std::is_same_v<decltype(a<T>().try_lock()), bool> &&noexcept(a<T>().unlock())> {
};

using later = std::chrono::duration<float, std::ratio<60>>;
using then = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

template <class T, class = void> struct timed : std::false_type {
};
template <class T>
struct timed<T, std::void_t<decltype(a<T>().try_lock_for(later())), decltype(a<T>().try_lock_until(then()))>>
    : std::is_same<decltype(a<T>().try_lock_for(later())), decltype(a<T>().try_lock_until(then()))> {
};

template <class T, class = void> struct sharable : std::false_type {
};
template <class T>
struct sharable<T, std::void_t<decltype(a<T>().lock_shared()), decltype(a<T>().try_lock_shared_for(later())),
                               decltype(a<T>().try_lock_shared_until(then()))>>
    : std::bool_constant<std::is_same_v<decltype(a<T>().try_lock_shared()), bool> &&noexcept(a<T>().unlock_shared())> {
};

template <class... T>
constexpr bool move_only = ((std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
                             !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>)&&...);

static_assert(lockable<quorlock::lock>::value && timed<quorlock::lock>::value);
static_assert(lockable<quorlock::permit>::value && timed<quorlock::permit>::value);
static_assert(sharable<quorlock::shared>::value && !lockable<quorlock::shared>::value);
static_assert(move_only<quorlock::client, quorlock::lock, quorlock::shared, quorlock::permit, quorlock::candidate,
                        quorlock::observer, quorlock::async::client, quorlock::async::lock>);
static_assert(std::is_error_code_enum_v<quorlock_status>);
#if __cplusplus >= 202002L
[[maybe_unused]] const quorlock::lock_options named{.lease = std::chrono::seconds(10), .fencing = true};
#endif

} // namespace requirements

namespace
{

using namespace std::chrono_literals;
using quorlock::client_options;
using quorlock::lock_options;

void check_at(bool holds, int line, const char *what)
{
    if (holds) return;
    std::fprintf(stderr, "test_cpp.cpp:%d: not so: %s\n", line, what);
    std::abort();
}
#define CHECK(what) check_at((what), __LINE__, #what)

/* The error that the call throws; none: it throws nothing. */
template <class Call> std::error_code thrown_by(Call &&call)
{
    try {
        call();
    } catch (const std::system_error &thrown) {
        CHECK(thrown.code().category() == quorlock::category());
        return thrown.code();
    }
    return {};
}

lock_options of(quorlock::milliseconds lease, quorlock::milliseconds wait = quorlock::forever)
{
    lock_options options;
    options.lease = lease;
    options.wait = wait;
    return options;
}

/* Any client may delete a key by force. */
void break_key(quorlock::client &client, const char *key)
{
    client.break_lock(key, [](const quorlock_break_report &) {});
}

/* That it comes is what is tested; a test that hangs is ended by its limit. */
template <class Condition> void wait_until(Condition &&condition)
{
    while (!condition()) std::this_thread::sleep_for(1ms);
}

void codes_are_of_one_category()
{
    const std::error_code held = QUORLOCK_ERR_HELD;
    CHECK(held == QUORLOCK_ERR_HELD && held != QUORLOCK_ERR_LOST && !std::error_code(QUORLOCK_OK));
    CHECK(held.message() == quorlock_status_text(QUORLOCK_ERR_HELD));
    CHECK(held.category().name() == std::string("quorlock"));
    CHECK(std::error_code(QUORLOCK_ERR_TIMEDOUT) == std::errc::timed_out && held != std::errc::timed_out);
}

void options_are_checked(const client_options &nodes)
{
    quorlock::client client(nodes);
    CHECK(thrown_by([] { quorlock::client none{client_options{}}; }) == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { quorlock::lock(client, {}); }) == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { quorlock::lock(client, "key", of(24h * 365)); }) == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { quorlock::permit(client, "key", 0); }) == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { quorlock::observer(client, "key", nullptr, 1ms); }) == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { quorlock::candidate(client, ""); }) == QUORLOCK_ERR_INVAL);
    for (const auto &[lease, text] : {std::pair(31s, "31000"), std::pair(-1s, "lease: -1000 ms")}) {
        try {
            quorlock::lock(client, "key", of(lease));
            CHECK(false);
        } catch (const std::system_error &thrown) {
            CHECK(thrown.code() == QUORLOCK_ERR_INVAL);
            CHECK(std::string(thrown.what()).find(text) != std::string::npos);
        }
    }
}

/* A new member of the options does not compile here until it is checked, too. */
void each_option_reaches_c()
{
    lock_options lock;
    quorlock_lock_options of_lock;
    CHECK(quorlock::detail::to_c(lock, of_lock).empty());
    CHECK(of_lock.wait_ms == quorlock::detail::no_limit && of_lock.lease_ms == 0 && of_lock.keep_ms == 0);
    auto &[lease, wait, max_hold, keep, owner, label, fencing, fair, lost, c] = lock;
    std::tie(lease, wait, max_hold, keep) = std::make_tuple(1ms, 2ms, 3ms, 4ms);
    std::tie(owner, label, fencing, fair) = std::make_tuple("5", "6", true, true);
    std::tie(c.renew_ms, c.lease_ms) = std::make_tuple(7U, 99U);
    lost = [](const quorlock_loss &) {};
    CHECK(quorlock::detail::to_c(lock, of_lock).empty());
    CHECK(of_lock.lease_ms == 1 && of_lock.wait_ms == 2 && of_lock.max_hold_ms == 3 && of_lock.keep_ms == 4);
    CHECK(std::string(of_lock.owner) + of_lock.label == "56" && of_lock.renew_ms == 7);
    CHECK(of_lock.fencing != 0 && of_lock.fair != 0);

    client_options client;
    auto &[nodes, user, password, set, prefix, with, ca, cert, key, name, max_lease, node, connect, log, more, kept] =
        client;
    nodes = {"0"};
    std::tie(user, password, set, prefix, with) = std::make_tuple("1", "2", "3", "4", "5");
    std::tie(ca, cert, key, name) = std::make_tuple("6", "7", "8", "9");
    std::tie(max_lease, node, connect) = std::make_tuple(10ms, 11ms, 12ms);
    log = [](int, const char *) {};
    more.drift_ppm = 13;
    quorlock::detail::hooks calls;
    quorlock_client_options got;
    const auto pointers = quorlock::detail::pointers(nodes);
    CHECK(quorlock::detail::to_c(client, pointers, calls, got).empty());
    const char *const texts[] = {got.nodes[0],    got.user,   got.password, got.set_name, got.key_prefix,
                                 got.owner_label, got.tls_ca, got.tls_cert, got.tls_key,  got.tls_name};
    for (std::size_t i = 0; i < std::size(texts); i++) CHECK(std::string(texts[i]) == std::to_string(i));
    CHECK(got.max_lease_ms == 10 && got.node_timeout_ms == 11 && got.connect_timeout_ms == 12 && got.drift_ppm == 13);
    CHECK(got.n_nodes == 1 && got.log != nullptr);
    kept = {nullptr, [](quorlock_settings *) {}};
    CHECK(quorlock::detail::to_c(client, pointers, calls, got).empty());
    CHECK(got.n_nodes == 1 && calls.settings.use_count() == 2);
}

void a_file_gives_options(const client_options &nodes)
{
    char name[] = "/tmp/quorlock-cpp-XXXXXX";
    std::FILE *file = fdopen(mkstemp(name), "w");
    std::string text = "set = c\n[set c]\npolicy = all\npassword-file = " + std::string(name) + "\nnodes = ";

    for (const std::string &node : nodes.nodes) text += node + ",";
    CHECK(file != nullptr && std::fputs(text.c_str(), file) >= 0 && std::fclose(file) == 0);
    CHECK(quorlock::load("c", name).c.policy == QUORLOCK_POLICY_ALL);
    CHECK(quorlock::load("", name).c.n_nodes == nodes.nodes.size());
    CHECK(thrown_by([&] { quorlock::load("d", name); }) == QUORLOCK_ERR_INVAL);
    {
        auto options = quorlock::load("c", name);
        const auto forgotten = options.settings.use_count();
        options.c.policy = QUORLOCK_POLICY_MAJORITY;
        options.c.guard = QUORLOCK_GUARD_OFF;
        options.password = "no server has it";
        quorlock::client client(options);
        CHECK(options.settings.use_count() == forgotten + 1);
        options = {};
        options.nodes = nodes.nodes;
        CHECK(options.c.policy == 0 && !options.settings);
    }
    text.clear();
    for (const std::string &node : nodes.nodes) text += node + " ";
    CHECK(setenv("QUORLOCK_NODES", text.c_str(), 1) == 0);
    {
        quorlock::client client;
        CHECK(quorlock::lock(client, "file", of(10s)).try_lock());
    }
    CHECK(unsetenv("QUORLOCK_NODES") == 0);
    std::error_code code;
    std::remove(name);
    CHECK(quorlock::load("c", name, code).nodes.empty() && code == QUORLOCK_ERR_INVAL);
}

/* ---- locks ---- */

void a_lock_is_held_and_released(const client_options &nodes)
{
    quorlock::client client(nodes);
    lock_options options = of(10s);
    options.fencing = true;
    quorlock::lock first(client, {"one", "two"}, options), other(client, std::string("two"), of(10s, 0ms));
    {
        const std::unique_lock<quorlock::lock> held(first);
        CHECK(first.valid() > 0ms && first.valid() <= 10s);
        CHECK(first.granted().fence > 0 && first.granted().token[0] != '\0' && first.get() != nullptr);
        CHECK(thrown_by([&] { other.lock(); }) == QUORLOCK_ERR_HELD);
        CHECK(!other.try_lock() && other.valid() == 0ms);
        first.check();
        CHECK(first.extend(20s).valid_ms > 10000 && first.valid() > 10s);
        CHECK(thrown_by([&] { first.extend(-1s); }) == QUORLOCK_ERR_INVAL);
        CHECK(thrown_by([&] { first.lock(); }) == QUORLOCK_ERR_STATE); /* it would wait for itself */
    }
    CHECK(first.valid() == 0ms && first.granted().fence == 0 && first.get() == nullptr);
    CHECK(thrown_by([&] { first.check(); }) == QUORLOCK_ERR_LOST);
    CHECK(thrown_by([&] { first.release(); }) == QUORLOCK_ERR_STATE);
    CHECK(other.try_lock());
    CHECK(other.release().status == 0);
    other.unlock(); /* nothing to do */
    quorlock::client moved_to(std::move(client));
    quorlock::lock again(moved_to, "one");
    again = quorlock::lock(moved_to, std::vector<std::string>{"two"});
    std::unique_lock<quorlock::lock> held(again);
    quorlock::lock moved(std::move(again));
    CHECK(moved.valid() > 0ms && again.valid() == 0ms);
    held.release();
    moved.release();
}

void waits_end_in_time(const client_options &nodes)
{
    using clock = std::chrono::steady_clock;
    quorlock::client client(nodes);
    quorlock::lock first(client, "time", of(10s)), other(client, "time", of(10s, 50ms));
    std::unique_lock<quorlock::lock> held(first);
    const auto began = clock::now();
    CHECK(!other.try_lock_for(20ms) && clock::now() - began >= 20ms);
    CHECK(!other.try_lock_until(began + 60ms) && clock::now() - began >= 60ms);
    CHECK(!other.try_lock_for(std::chrono::duration<double>(-1)) && !other.try_lock_until(began));
    std::error_code code;
    CHECK(!other.try_lock(code) && code == QUORLOCK_ERR_HELD);
    CHECK(!other.try_lock_for(1ms, code) && bool(code));
    other.acquire(code); /* for 50 ms */
    CHECK(code == QUORLOCK_ERR_HELD || code == QUORLOCK_ERR_TIMEDOUT);
    auto waits = std::async(std::launch::async, [&] {
        const std::unique_lock<quorlock::lock> got(other, std::chrono::hours::max());
        return got.owns_lock() && other.valid() > 0ms;
    });
    held.unlock();
    CHECK(waits.get());
    CHECK(other.try_lock(code) && !code);
    CHECK(quorlock::detail::rounded(std::chrono::microseconds(1001)) == 2ms);
    CHECK(quorlock::detail::rounded(std::chrono::duration<float, std::ratio<3600>>(1)) == 1h);
    CHECK(quorlock::detail::rounded(std::chrono::hours::max()) == quorlock::forever);
}

/* Each hold needs the options again, when the caller's texts are gone. */
void options_are_kept(const client_options &nodes)
{
    quorlock::client client(nodes);
    std::optional<lock_options> options(std::in_place);
    auto label = std::make_unique<std::string>("a-label-of-the-caller");
    options->c.label = label->c_str();
    quorlock::lock lock(client, "kept", *options);
    options.reset();
    label.reset();
    lock.lock();
    CHECK(std::string(lock.granted().token).find("a-label-of-the-caller") == 0);
}

/* As of a std::mutex: an object excludes threads, whatever they name first. */
void threads_exclude_each_other(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::lock a(client, "left", of(10s)), b(client, "right", of(10s));
    std::array<std::thread, 4> threads;
    std::atomic<int> inside{0};
    int n = 0;
    for (std::size_t i = 0; i < threads.size(); i++) {
        threads[i] = std::thread([&, i] {
            for (int round = 0; round < 5; round++) {
                const std::scoped_lock<quorlock::lock, quorlock::lock> held(i % 2 != 0 ? a : b, i % 2 != 0 ? b : a);
                CHECK(inside++ == 0 && a.valid() > 0ms && b.valid() > 0ms);
                n++;
                CHECK(--inside == 0);
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(n == 20);
    /* A thread without a hold of its own sees, and may end, the only one. */
    std::unique_lock<quorlock::lock> held(a);
    std::thread([&a, moved = std::move(held)]() mutable {
        CHECK(a.valid() > 0ms);
        moved.unlock();
    }).join();
    CHECK(a.valid() == 0ms && a.try_lock());
}

/* A thread whose lock was lost must not end the hold of the next one, of which it knows nothing. */
void a_late_unlock_ends_no_other_hold(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::lock lock(client, "late", of(2s));
    lock.lock();
    break_key(client, "late");
    std::promise<void> looked;
    std::thread next([&] {
        lock.lock();
        looked.get_future().wait();
        lock.check();
        lock.release();
    });
    wait_until([&] { return lock.valid() == 0ms; });
    wait_until([&] { /* of another one */
                     bool held = false;
                     client.inspect("late", [&](const quorlock_inspect_report &said) { held = said.held != 0; });
                     return held;
    });
    CHECK(lock.valid() == 0ms);
    lock.unlock();
    looked.set_value();
    next.join();
}

void readers_share_and_writers_do_not(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::shared reads(client, "shared", of(10s)), more(client, "shared", of(10s));
    quorlock::lock writes(client, "shared", of(10s));
    {
        const std::shared_lock<quorlock::shared> held(reads), second(more);
        std::thread([&] { /* of the same object */
                          const std::shared_lock<quorlock::shared> third(reads, std::try_to_lock);
                          CHECK(third.owns_lock() && reads.valid() > 0ms && !writes.try_lock());
        })
            .join();
        CHECK(reads.valid() > 0ms && more.valid() > 0ms && !writes.try_lock_for(1ms));
    }
    const std::unique_lock<quorlock::lock> held(writes);
    CHECK(!reads.try_lock_shared() && !reads.try_lock_shared_for(1ms));
    CHECK(!more.try_lock_shared_until(std::chrono::system_clock::now() + 1ms));
}

void permits_are_counted(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::permit first(client, "pool", 2, of(10s)), other(client, "pool", 2, of(10s));
    const std::scoped_lock<quorlock::permit> held(first);
    std::thread([&] { /* each thread has its own */
                      CHECK(first.try_lock() && first.slot() <= 1);
                      const std::uint32_t mine = first.slot();
                      std::thread([&] { CHECK(first.valid() == 0ms); }).join(); /* which of the two? */
                      CHECK(!other.try_lock());
                      first.unlock();
                      CHECK(other.try_lock() && other.slot() == mine);
    })
        .join();
    CHECK(first.slot() != other.slot());
}

void work_returns_throws_and_is_told_of_a_loss(const client_options &nodes)
{
    quorlock::client client(nodes);
    int runs = 0;
    CHECK(client.with("work", of(10s), [](quorlock::lock &held) { return held.valid() > 0ms; }));
    client.with("work", of(10s), [&](quorlock::lock &) { runs++; });
    try {
        client.with("work", of(10s), [](quorlock::lock &) { throw std::runtime_error("mine"); });
        CHECK(false);
    } catch (const std::runtime_error &thrown) {
        CHECK(std::string(thrown.what()) == "mine");
    }
    client.with("work", of(10s), [&](quorlock::lock &) {
        runs++;
        CHECK(thrown_by([&] { client.with("work", of(0ms, 0ms), [&](quorlock::lock &) { runs = 99; }); }) ==
              QUORLOCK_ERR_HELD);
    });
    CHECK(runs == 2);
    CHECK(thrown_by([&] { client.with("work", of(10s), [&](quorlock::lock &) { break_key(client, "work"); }); }) ==
          QUORLOCK_ERR_LOST);
    const auto broken = [&](quorlock::lock &) {
        break_key(client, "work");
        return true;
    };
    CHECK(thrown_by([&] { client.with("work", of(10s), broken); }) == QUORLOCK_ERR_LOST);
    CHECK(thrown_by([&] {
              client.with("work", of(2s), [&](quorlock::lock &held) {
                  break_key(client, "work");
                  for (;; std::this_thread::sleep_for(1ms)) held.check();
              });
          }) == QUORLOCK_ERR_LOST);
}

void a_loss_runs_a_lambda(const client_options &nodes)
{
    std::string lines, text;
    client_options logs = nodes;
    logs.log = [&lines](int, const char *line) { lines += line; };
    std::optional<quorlock::client> client(logs);
    lock_options options = of(2s);
    std::atomic<bool> told{false};
    options.lost = [&](const quorlock_loss &loss) {
        text = loss.text;
        told = true;
    };
    std::optional<quorlock::lock> lost(std::in_place, *client, "lost", options);
    lost->lock();
    break_key(*client, "lost");
    wait_until([&] { return told.load(); });
    CHECK(!text.empty() && lost->valid() == 0ms);
    CHECK(thrown_by([&] { lost->release(); }) == QUORLOCK_ERR_LOST);
    /* The function may end the lock. */
    options.lost = [&, kept = std::string("captured, and too long to be stored in place")](const quorlock_loss &) {
        lost.reset();
        text = kept;
        told = true;
    };
    told = false;
    lost.emplace(*client, "lost", options);
    lost->lock();
    break_key(*client, "lost");
    wait_until([&] { return told.load(); });
    CHECK(text.substr(0, 8) == "captured" && !lost);
    client.reset();
    CHECK(!lines.empty());
}

void a_lock_is_passed_on(const client_options &nodes)
{
    quorlock::client client(nodes), next_client(nodes);
    lock_options options = of(10s);
    options.fencing = true;
    quorlock::lock first(client, {"pass", "on"}, options), next(next_client, {"on", "pass"}, options);
    quorlock::permit none(client, "pass", 3);
    none.lock();
    CHECK(thrown_by([&] { none.detach(); }) == QUORLOCK_ERR_UNSUPPORTED && none.valid() > 0ms);
    none.release();
    CHECK(thrown_by([&] { first.detach(); }) == QUORLOCK_ERR_STATE);
    first.lock();
    const std::uint64_t fence = first.granted().fence;
    const quorlock::result passed = first.detach();
    CHECK(first.valid() == 0ms && !first.try_lock() && passed.fence == fence);
    CHECK(next.adopt(passed.token).fence == fence && next.valid() > 0ms);
    next.unlock();
    CHECK(first.try_lock());
    first.unlock();
    std::error_code code;
    first.adopt(passed.token, code);
    CHECK(code == QUORLOCK_ERR_LOST);
}

void a_wait_can_be_canceled(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::lock lock(client, "cancel", of(10s));
    CHECK(!lock.cancel());
    const std::scoped_lock<quorlock::lock> held(lock);
    auto waits = std::async(std::launch::async, [&] { return thrown_by([&] { lock.lock(); }); });
    wait_until([&] { return lock.cancel(); });
    CHECK(waits.get() == QUORLOCK_ERR_CANCELED && lock.valid() > 0ms);
    waits = std::async(std::launch::async, [&] { return thrown_by([&] { lock.lock(); }); });
    client.shutdown();
    CHECK(waits.get() == QUORLOCK_ERR_CLOSED && lock.valid() > 0ms);
}

/* ---- the other calls of a client ---- */

void reports_are_shown(const client_options &nodes)
{
    quorlock::client client(nodes);
    quorlock::lock lock(client, "report", of(10s));
    const std::scoped_lock<quorlock::lock> held(lock);
    const std::string token = lock.granted().token;
    int seen = 0;
    client.break_lock(
        "report", [&](const quorlock_break_report &said) { seen += said.held; }, "somebody else");
    client.inspect("report",
                   [&](const quorlock_inspect_report &said) { seen += said.held != 0 && said.holder == token; });
    client.list("rep*", [&](const quorlock_list_report &said) { seen += said.n_locks == 1; });
    CHECK(seen == 3);
    try {
        client.inspect("report", [](const quorlock_inspect_report &) { throw std::runtime_error("mine"); });
        CHECK(false);
    } catch (const std::runtime_error &thrown) {
        CHECK(std::string(thrown.what()) == "mine");
    }
    std::error_code code;
    client.inspect(
        "", [](const quorlock_inspect_report &) {}, code);
    CHECK(code == QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { client.list(std::string(99999, 'x'), [](const quorlock_list_report &) {}); }) ==
          QUORLOCK_ERR_INVAL);
    CHECK(thrown_by([&] { client.set_credentials("user", "no server has it"); }) == std::error_code());
}

void codes_come_instead_of_exceptions(const client_options &nodes)
{
    std::error_code code;
    quorlock::client none(client_options{}, code);
    CHECK(code == QUORLOCK_ERR_INVAL && none.get() == nullptr);
    quorlock::lock nothing(none, "code", {}, code);
    CHECK(code == QUORLOCK_ERR_CLOSED && nothing.valid() == 0ms);
    CHECK(!nothing.try_lock(code) && code == QUORLOCK_ERR_CLOSED);
    quorlock::client client(nodes, code);
    CHECK(!code);
    quorlock::lock lock(client, "code", of(10s), code);
    CHECK(!code && lock.acquire(code).status == 0 && !code);
    lock.check(code);
    CHECK(!code);
    lock.extend(1ms, code);
    CHECK(code == QUORLOCK_ERR_INVAL);
    break_key(client, "code");
    CHECK(lock.release(code).status == QUORLOCK_ERR_LOST && code == QUORLOCK_ERR_LOST);
    lock.check(code);
    CHECK(code == QUORLOCK_ERR_LOST);
    quorlock::candidate candidate(client, "", {}, code);
    CHECK(code == QUORLOCK_ERR_INVAL && candidate.stand(code) == 0 && code == QUORLOCK_ERR_INVAL);
    candidate.resign(code);
    CHECK(code == QUORLOCK_ERR_INVAL);
    quorlock::observer observer(
        client, "", [](const quorlock_leader &) {}, 0ms, code);
    CHECK(code == QUORLOCK_ERR_INVAL);
}

void candidates_lead_in_turn(const client_options &nodes)
{
    quorlock::client client(nodes);
    std::atomic<int> elected{0}, ended{0}, deposed{0};
    std::atomic<bool> seen{false};
    const auto options = [&](const char *text) {
        quorlock::candidate_options made;
        made.advertise = text;
        made.lease = 10s;
        made.elected = [&](std::uint64_t term) { elected += term > 0; };
        made.deposed = [&](const quorlock_loss &loss) { deposed += loss.text != nullptr; };
        made.ended = [&](std::error_code why, const char *) { ended += !why; };
        return made;
    };
    std::optional<quorlock::observer> observer(std::in_place, client, "leader", [&](const quorlock_leader &leader) {
        if (leader.text != nullptr && leader.text == std::string("second")) seen = true;
    });
    std::optional<quorlock::candidate> first(std::in_place, client, "leader", options("first"));
    quorlock::candidate second(client, "leader", options("second"));
    CHECK(thrown_by([&] { first->resign(); }) == QUORLOCK_ERR_STATE);
    const std::uint64_t term = first->stand();
    CHECK(term > 0 && first->term() == term && first->valid() > 0ms && second.valid() == 0ms);
    auto next = std::async(std::launch::async, [&] { return second.stand(); });
    first->resign();
    CHECK(next.get() > term && first->valid() == 0ms && second.term() > term);
    wait_until([&] { return seen.load(); });
    CHECK(elected == 2 && ended == 1 && deposed == 0);
    auto waits = std::async(std::launch::async, [&] { return thrown_by([&] { first->stand(); }); });
    wait_until([&] {
        std::error_code code;
        first->resign(code);
        return !code;
    });
    CHECK(waits.get() == QUORLOCK_ERR_CANCELED);
    break_key(client, "leader");
    wait_until([&] { return deposed == 1; });
    observer.reset();
    first.reset();
}

/* A candidate may be ended by its own function. */
void a_candidate_ends_itself(const client_options &nodes)
{
    quorlock::client client(nodes);
    std::optional<quorlock::candidate> candidate;
    quorlock::candidate_options options;
    std::promise<std::string> ended;
    options.elected = [&, kept = std::string("captured, and too long to be stored in place")](std::uint64_t) {
        candidate.reset();
        ended.set_value(kept);
    };
    candidate.emplace(client, "itself", options);
    quorlock_sync_candidate *const handle = candidate->get();
    CHECK(handle != nullptr);
    std::error_code code;
    candidate->stand(code);
    CHECK(code == QUORLOCK_ERR_CANCELED && ended.get_future().get().substr(0, 8) == "captured");
}

void objects_end_in_any_order(const client_options &nodes)
{
    std::optional<quorlock::client> client(nodes);
    quorlock::lock held(*client, "order", of(10s)), waits(*client, "order", of(10s));
    quorlock::shared reads(*client, "order-shared");
    quorlock::candidate candidate(*client, "order-leader");
    quorlock::observer observer(*client, "order-leader", [](const quorlock_leader &) {});
    held.lock();
    CHECK(candidate.stand() > 0);
    auto waiting = std::async(std::launch::async, [&] { return thrown_by([&] { waits.lock(); }); });
    client.reset();
    CHECK(waiting.get() == QUORLOCK_ERR_CLOSED);
    CHECK(held.valid() == 0ms && candidate.valid() == 0ms && candidate.term() == 0);
    CHECK(thrown_by([&] { reads.lock_shared(); }) == QUORLOCK_ERR_CLOSED);
    CHECK(thrown_by([&] { waits.try_lock(); }) == QUORLOCK_ERR_CLOSED);
    CHECK(thrown_by([&] { candidate.stand(); }) == QUORLOCK_ERR_CLOSED);
    std::error_code code;
    held.release(code);
    CHECK(bool(code));
    waits.unlock();
    client.emplace(nodes);
    quorlock::lock alone(*client, "order"); /* no handle of C is left */
    client.reset();
    CHECK(thrown_by([&] { alone.lock(); }) == QUORLOCK_ERR_CLOSED);
}

/* Whether a call of another thread comes before, in or after the end of the client: it ends, and says so. */
void a_client_ends_under_its_locks(const client_options &nodes)
{
    for (int round = 0; round < 5; round++) {
        std::optional<quorlock::client> client(nodes);
        quorlock::lock lock(*client, "under", of(10s));
        std::atomic<int> calls{0};
        std::thread thread([&] {
            for (std::error_code code; code != QUORLOCK_ERR_CLOSED; calls++)
                if (lock.try_lock(code)) lock.unlock();
        });
        wait_until([&] { return calls > round; });
        client.reset();
        thread.join();
    }
}

/* ---- on a loop of the caller's ---- */

/* Two locks: the second gets the key when the first gives it back, and is lost. */
void callbacks_are_lambdas(const client_options &nodes)
{
    event_base *const base = event_base_new();
    std::string said;
    {
        quorlock::async::client client(base, nodes);
        std::optional<quorlock::async::lock> second;
        quorlock::async::lock first(client, "async", of(10s)), left(client, {"left"});
        lock_options options = of(2s, 20s);
        options.lost = [&](const quorlock_loss &) {
            said += "lost ";
            second.reset();
            client.close([&said] { said += "closed"; });
        };
        second.emplace(client, "async", options);
        CHECK(thrown_by([&] { first.release(); }) == QUORLOCK_ERR_STATE);
        first.acquire([&](const quorlock_result &got) {
            CHECK(got.status == 0 && first.valid() > 0ms && first.fence() == 0);
            said += "first ";
            first.extend(20s, [&](const quorlock_result &longer) {
                CHECK(longer.status == 0 && first.valid() > 10s);
                said += "longer ";
                first.release([&](const quorlock_result &done) { CHECK(done.status == 0 && first.valid() == 0ms); });
            });
            second->acquire([&](const quorlock_result &granted) {
                CHECK(granted.status == 0);
                said += "second ";
                CHECK(quorlock_client_break(
                          client.get(), "async", nullptr, [](int, const quorlock_break_report *, void *) {}, nullptr) ==
                      0);
            });
        });
        std::error_code code;
        first.acquire(nullptr, code);
        CHECK(code == QUORLOCK_ERR_BUSY);
        first.extend(-1s, nullptr, code);
        CHECK(code == QUORLOCK_ERR_INVAL);
        event_base_dispatch(base);
        CHECK(said == "first longer second lost closed");
        CHECK(left.valid() == 0ms && !left.cancel()); /* it outlives its client */
        CHECK(thrown_by([&] { left.acquire(nullptr); }) == QUORLOCK_ERR_CLOSED);
    }
    {
        quorlock::async::client ends(
            [base](auto **ret, auto... with) { return quorlock_client_new(ret, base, with...); }, nodes);
        CHECK(thrown_by([&] { quorlock::async::client none(base, client_options{}); }) == QUORLOCK_ERR_INVAL);
    }
    event_base_dispatch(base); /* until it is closed */
    event_base_free(base);
}

} // namespace

int main(int argc, char **argv)
{
    client_options nodes;
    nodes.nodes.assign(argv + 1, argv + argc);
    codes_are_of_one_category();
    options_are_checked(nodes);
    each_option_reaches_c();
    a_file_gives_options(nodes);
    for (const auto test :
         {a_lock_is_held_and_released, waits_end_in_time, options_are_kept, threads_exclude_each_other,
          a_late_unlock_ends_no_other_hold, readers_share_and_writers_do_not, permits_are_counted,
          work_returns_throws_and_is_told_of_a_loss, a_loss_runs_a_lambda, a_lock_is_passed_on, a_wait_can_be_canceled,
          reports_are_shown, codes_come_instead_of_exceptions, candidates_lead_in_turn, a_candidate_ends_itself,
          objects_end_in_any_order, a_client_ends_under_its_locks, callbacks_are_lambdas})
        test(nodes);
    std::puts("all hold");
    return 0;
}
