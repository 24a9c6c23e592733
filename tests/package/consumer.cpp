/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in C++ that has nothing but what is installed: both ways to use the library, each on the nodes given. */
#include <event2/event.h>
#include <quorlock/sync.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

struct Close {
    void operator()(quorlock_sync_client *client) const { quorlock_sync_client_close(client); }
    void operator()(quorlock_sync_lock *lock) const { quorlock_sync_lock_free(lock); }
    void operator()(event_base *base) const { event_base_free(base); }
};

void check(int status, const std::string &what)
{
    if (status != QUORLOCK_OK) throw std::runtime_error(std::string(quorlock_status_name(status)) + ": " + what);
}

/* With a loop of its own: a lock with a fencing token, and a loss that must not come. */
void hold(const quorlock_client_options &nodes)
{
    quorlock_error error;
    quorlock_sync_client *client = nullptr;
    check(quorlock_sync_client_new(&client, &nodes, &error), error.text);
    std::unique_ptr<quorlock_sync_client, Close> client_owner(client);

    quorlock_lock_options options = {};
    options.size = sizeof(options);
    options.wait_ms = 10000;
    options.fencing = 1;
    const char *key = "report";
    quorlock_sync_lock *lock = nullptr;
    check(quorlock_sync_lock_new(&lock, client, &key, 1, &options, &error), error.text);
    std::unique_ptr<quorlock_sync_lock, Close> lock_owner(lock);

    quorlock_sync_result result = {};
    result.size = sizeof(result);
    auto lost = [](quorlock_sync_lock *, const quorlock_loss *loss, void *) { std::printf("lost: %s\n", loss->text); };
    quorlock_sync_lock_set_on_lost(lock, lost, nullptr);
    check(quorlock_sync_lock_acquire(lock, &result), result.text);
    std::printf("valid for %u ms, token %d\n", quorlock_sync_lock_valid_ms(lock), result.fence > 0);
    check(quorlock_sync_lock_release(lock, &result), result.text);
    std::printf("released\n");
}

/* On a loop of the caller's. */
void look(const quorlock_client_options &nodes)
{
    quorlock_error error;
    std::unique_ptr<event_base, Close> base(event_base_new());
    quorlock_client *client = nullptr;
    check(quorlock_client_new(&client, base.get(), &nodes, &error), error.text);
    auto report = [](int status, const quorlock_inspect_report *said, void *arg) {
        std::printf("report: %s, %u answered\n", status == 0 && said->held == 0 ? "free" : "not free", said->answered);
        quorlock_client_close(static_cast<quorlock_client *>(arg), nullptr, nullptr);
    };
    check(quorlock_client_inspect(client, "report", report, client), quorlock_client_error(client));
    event_base_dispatch(base.get());
}

} // namespace

int main(int argc, char **argv)
{
    quorlock_client_options nodes = {};
    nodes.size = sizeof(nodes);
    nodes.nodes = argv + 1;
    nodes.n_nodes = static_cast<size_t>(argc - 1);
    nodes.node_timeout_ms = 5000; /* a machine that is busy is no fault */
    try {
        hold(nodes);
        look(nodes);
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
    return 0;
}
