// SPDX-License-Identifier: BSD-3-Clause

// A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
//
// c++ -std=c++17 example.cpp -o example; cluster/chaos --client ./example
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using std::string;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock; // CLOCK_MONOTONIC

static volatile std::sig_atomic_t stop;

static string setting(const string &name)
{
    const char *value = std::getenv(("QUORLOCK_CHAOS_" + name).c_str());
    return value != nullptr ? value : "";
}

static std::mt19937_64 dice(std::strtoull(setting("SEED").c_str(), nullptr, 10));

static std::vector<string> list(const string &name)
{
    std::vector<string> items;
    std::istringstream text(setting(name));
    for (string item; std::getline(text, item, ',');) items.push_back(item);
    return items;
}

static std::chrono::milliseconds pick(const string &name)
{
    const string range = setting(name + "_MS");
    const int low = std::stoi(range), high = std::stoi(range.substr(range.find('-') + 1));
    return std::chrono::milliseconds(std::uniform_int_distribution<>(low, high)(dice));
}

// Write one line of the history; return the last word of the answer, the value of the register.
static long long say(const string &event, const string &more)
{
    string answer;
    std::cout << R"({"event":")" << event << '"' << more << '}' << std::endl;
    if (!std::getline(std::cin, answer)) std::exit(1); // the harness is gone
    return std::stoll(answer.substr(answer.rfind(' ') + 1));
}

static string of(const string &key)
{
    return R"(,"key":")" + key + '"';
}

static bool says_yes(const string &address, const string &command)
{
    const timeval patience{0, 100000};
    const size_t colon = address.rfind(':');
    addrinfo hints{}, *node = nullptr;
    char reply[100];
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &node) != 0)
        return false;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool yes =
        connect(fd, node->ai_addr, node->ai_addrlen) == 0 && send(fd, command.data(), command.size(), MSG_NOSIGNAL) > 0;
    yes = yes && recv(fd, reply, sizeof reply, 0) == 5 && reply[0] == '+';
    close(fd);
    freeaddrinfo(node);
    return yes;
}

// The number of nodes that say yes.
static size_t everywhere(const string &command)
{
    size_t votes = 0;
    for (const string &node : list("NODES")) votes += says_yes(node, command + "\r\n");
    return votes;
}

static void work(const string &key, steady::time_point end)
{
    const auto end_us = std::chrono::duration_cast<std::chrono::microseconds>(end.time_since_epoch()).count();
    say("granted", of(key) + ",\"deadline_us\":" + std::to_string(end_us));
    long long value = say("read", of(key));
    const auto until = std::min(end, steady::now() + pick("HOLD"));
    for (; steady::now() < until && stop == 0; std::this_thread::sleep_for(10ms)) {
        value = say("write", of(key) + ",\"value\":" + std::to_string(value + 1));
    }
    say(steady::now() < end ? "released" : "lost", of(key)); // before any node hears of it
}

static void operate(const string &key)
{
    const auto lease = pick("LEASE");
    const string owner = std::to_string(dice());
    say("invoke", of(key));
    const auto end = steady::now() + lease * 99 / 100 - 2ms; // less what clocks may differ by
    const size_t votes = everywhere("SET " + key + ' ' + owner + " NX PX " + std::to_string(lease.count()));
    if (votes > list("NODES").size() / 2 && steady::now() < end) {
        work(key, end);
    } else {
        say("refused", of(key) + R"(,"status":"HELD")");
    }
    everywhere("EVAL \"return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])\" 1 " + key + ' ' +
               owner);
}

int main()
{
    const std::vector<string> keys = list("KEYS");
    std::signal(SIGTERM, [](int) { stop = 1; });
    say("hello", R"(,"version":1,"program":"example.cpp")");
    for (; stop == 0; std::this_thread::sleep_for(pick("THINK"))) operate(keys.at(dice() % keys.size()));
}
