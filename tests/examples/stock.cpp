/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stock.cpp - one of several programs works under a lock, with quorlock.hpp
 *
 * usage: stock NODE...
 */
#include <cstdio>

#include <quorlock/quorlock.hpp>

using namespace std::chrono_literals;

int main(int argc, char **argv)
{
    try {
        quorlock::client_options nodes;
        nodes.nodes.assign(argv + 1, argv + argc);
        quorlock::client client(nodes);

        quorlock::lock_options options;
        options.lease = 10s;
        options.wait = 5s;
        options.fencing = true;
        const int left = client.with("stock", options, [](quorlock::lock &held) {
            int items = 3;
            while (items > 1) {
                held.check(); /* throws if the lock is lost */
                items--;      /* UPDATE stock SET ... WHERE fence <= the token */
            }
            std::printf("token %d, valid for %d ms\n", held.granted().fence > 0,
                        static_cast<int>(held.valid().count()));
            return items;
        });
        std::printf("%d left\n", left);
    } catch (const std::exception &failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        return 1;
    }
    return 0;
}
