// SPDX-License-Identifier: BSD-3-Clause

// A chaos client with locks of redis-plus-plus, started by cluster/chaos --client; quorlock-chaos(7) has the lines.
//
// As careful as redis-plus-plus lets its user be: RedLock over RedLockMutex, which uses scripts, as its documentation
// advises; ttl(), which says how long the lock is valid, is looked at before each access, and it is extended at half of
// the lease. Not RedMutex, which renews by itself: it does not show the validity. A failed extend is a loss, for it
// takes the lock back from the nodes. A node that does not answer is an exception in each call. The connections get
// time limits, without which one frozen server would stop everything.
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>
#include <sw/redis++/version.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using std::string;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock; // CLOCK_MONOTONIC
using std::chrono::milliseconds;
using namespace sw::redis;
using Lock = RedLock<RedLockMutex>;

static volatile std::sig_atomic_t stop;
static std::vector<std::shared_ptr<Redis>> nodes;

static string setting(const string &name)
{
    const char *value = std::getenv(("QUORLOCK_CHAOS_" + name).c_str());
    return value != nullptr ? value : "";
}

static std::mt19937_64 dice(std::strtoull(setting("SEED").c_str(), nullptr, 10));

static int draw(int low, int high)
{
    return std::uniform_int_distribution<>(low, high)(dice);
}

static milliseconds pick(const string &name)
{
    const string range = setting(name + "_MS");
    return milliseconds(draw(std::stoi(range), std::stoi(range.substr(range.find('-') + 1))));
}

static std::vector<string> list(const string &name)
{
    std::vector<string> items;
    std::istringstream text(setting(name));
    for (string item; std::getline(text, item, ',');) items.push_back(item);
    return items;
}

// Write one line of the history; return the last word of the answer, the value of the register.
static long long say(const string &event, const string &more)
{
    string answer;
    std::cout << R"({"event":")" << event << '"' << more << '}' << std::endl;
    if (!std::getline(std::cin, answer)) std::exit(1); // the harness is gone
    return std::stoll(answer.substr(answer.rfind(' ') + 1));
}

static string until(const Lock &lock)
{
    const auto now = steady::now(); // before it looks at its clock: too early, never too late
    const auto end = now + lock.ttl();
    return ",\"deadline_us\":" +
           std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(end.time_since_epoch()).count());
}

static void give_back(Lock &lock)
{
    try {
        lock.unlock();
    } catch (const Error &) { // a node does not answer; the nodes after it were not asked
    }
}

// With a lock of its own for each try, because each has one value: a late unlock of a try must not take back the next
// one.
static std::unique_ptr<Lock> acquire(RedLockMutex &mutex, milliseconds lease, milliseconds wait)
{
    for (const auto give_up = steady::now() + wait;; std::this_thread::sleep_for(milliseconds(draw(0, 200)))) {
        auto lock = std::make_unique<Lock>(mutex, std::defer_lock);
        try {
            if (lock->try_lock(lease)) return lock;
        } catch (const Error &) { // a node does not answer; the nodes before it have said yes
            give_back(*lock);
        }
        if (steady::now() >= give_up || stop != 0) return nullptr;
    }
}

// Read first, write what follows from it later. Return the status of a loss.
static string hold(Lock &lock, const string &of, milliseconds lease, milliseconds length)
{
    const auto end = steady::now() + length;
    long long next = 0;
    for (; steady::now() < end && stop == 0; std::this_thread::sleep_for(milliseconds(draw(2, 31)))) {
        if (lock.owns_lock() && lock.ttl() < lease / 2) {
            try {
                if (!lock.extend_lock(lease)) return "EXTEND";
                say("renewed", of + until(lock));
            } catch (const Error &) { // a node does not answer; held as long as before
            }
        }
        if (!lock.owns_lock()) return "EXPIRED";
        next = 1 + (next == 0 ? say("read", of) : say("write", of + ",\"value\":" + std::to_string(next)));
    }
    return lock.owns_lock() ? "" : "EXPIRED";
}

static void operate(const string &key)
{
    const string of = R"(,"key":")" + key + '"';
    const milliseconds lease = pick("LEASE"), wait = draw(1, 6) == 1 ? 0ms : pick("WAIT");
    // Now and then a job longer than its lease, which lives by extend_lock.
    const milliseconds length = pick("HOLD") + (draw(1, 10) == 1 ? lease * 3 / 2 : 0ms);
    RedLockMutex mutex(nodes.begin(), nodes.end(), key);
    say("invoke", of);
    const auto lock = acquire(mutex, lease, wait);
    if (lock == nullptr) {
        say("refused", of + R"(,"status":"HELD")");
        return;
    }
    say("granted", of + until(*lock));
    const string why = hold(*lock, of, lease, length);
    say(why.empty() ? "released" : "lost", why.empty() ? of : of + R"(,"status":")" + why + '"');
    give_back(*lock);
}

int main()
{
    for (const string &node : list("NODES")) {
        ConnectionOptions options;
        options.host = node.substr(0, node.rfind(':'));
        options.port = std::stoi(node.substr(node.rfind(':') + 1));
        options.connect_timeout = options.socket_timeout = 100ms;
        nodes.push_back(std::make_shared<Redis>(options));
    }
    const std::vector<string> keys = list("KEYS");
    std::signal(SIGTERM, [](int) { stop = 1; });
    say("hello", R"(,"version":1,"program":"redis-plus-plus )" + std::to_string(VERSION_MAJOR) + '.' +
                     std::to_string(VERSION_MINOR) + '.' + std::to_string(VERSION_PATCH) + '"');
    for (; stop == 0; std::this_thread::sleep_for(pick("THINK"))) operate(keys.at(dice() % keys.size()));
}
