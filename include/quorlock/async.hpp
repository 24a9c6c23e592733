/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * async.hpp - the same by callbacks, on the caller's event loop and in its thread, for C++17: see quorlock.hpp(3)
 */
#ifndef QUORLOCK_ASYNC_HPP
#define QUORLOCK_ASYNC_HPP

#include <quorlock/common.hpp>

namespace quorlock
{
/* The same by callbacks, on the caller's event loop and in its thread. */
namespace async
{
using result_function = std::function<void(const quorlock_result &)>;

/* Its end begins to close it; the loop must run until that is done. */
class client
{
  public:
    client(event_base *base, const client_options &options, errors to = {})
        : client([base](auto **ret, auto... with) { return quorlock_client_new(ret, base, with...); }, options, to)
    {
    }
    /* On another loop: new_on(quorlock_client **, const quorlock_client_options *, quorlock_error *) calls
     * quorlock_client_new_on_loop(). */
    template <class NewOn>
    client(NewOn new_on, const client_options &options, errors to = {})
        : calls_(std::make_shared<detail::hooks>()), handle_(nullptr, end{})
    {
        auto kept = std::make_unique<keeper>(calls_); /* until it is closed */
        quorlock_client *made = detail::new_client<quorlock_client>(new_on, options, *calls_, to);
        if (made != nullptr) handle_ = {made, end{kept.release()}};
    }
    /* close - release all locks, and run `closed` when all is done. */
    void close(std::function<void()> closed)
    {
        calls_->closed = std::move(closed);
        handle_.reset();
    }
    quorlock_client *get() const noexcept { return handle_.get(); }

  private:
    friend class lock;
    using keeper = std::shared_ptr<detail::hooks>;
    struct end {
        keeper *kept = nullptr;
        void operator()(quorlock_client *handle) const noexcept { quorlock_client_close(handle, on_closed, kept); }
    };
    static void on_closed(void *arg) noexcept
    {
        const std::unique_ptr<keeper> calls(static_cast<keeper *>(arg));
        (*calls)->gone = true;
        if ((*calls)->closed) (*calls)->closed();
    }
    keeper calls_;
    std::unique_ptr<quorlock_client, end> handle_;
};

/* A lock; it may live longer than its client. */
class lock
{
  public:
    lock(const client &owner, const keys &names, const lock_options &options = {}, errors to = {})
        : client_(owner.get()), handle_(nullptr, end{owner.calls_, std::make_unique<lost_function>(options.lost)})
    {
        quorlock_lock_options c;
        quorlock_lock *made = nullptr;
        const auto list = detail::pointers(names.names());
        const std::string wrong = detail::to_c(options, c);
        if (!wrong.empty()) {
            to(QUORLOCK_ERR_INVAL, wrong.c_str());
        } else if (!failed(client_ == nullptr ? QUORLOCK_ERR_CLOSED
                                              : quorlock_lock_new(&made, client_, list.data(), list.size(), &c),
                           to)) {
            if (options.lost) quorlock_lock_set_on_lost(made, detail::run_lost, handle_.get_deleter().lost.get());
            handle_.reset(made);
        }
    }
    /* acquire, extend, release - `done` runs later, exactly once, unless the call fails. */
    void acquire(result_function done, errors to = {})
    {
        start(std::move(done), to, [](auto... with) { return quorlock_lock_acquire(with...); });
    }
    void extend(milliseconds lease, result_function done, errors to = {})
    {
        std::uint32_t lease_ms = 0;
        const std::string wrong = detail::set({{"lease", &lease_ms, lease}});
        if (!wrong.empty()) return static_cast<void>(to(QUORLOCK_ERR_INVAL, wrong.c_str()));
        start(std::move(done), to,
              [lease_ms](auto *handle, auto... with) { return quorlock_lock_extend(handle, lease_ms, with...); });
    }
    void release(result_function done = nullptr, errors to = {})
    {
        start(std::move(done), to, [](auto... with) { return quorlock_lock_release(with...); });
    }
    bool cancel() noexcept { return !gone() && quorlock_lock_cancel(get()) == 0; }
    milliseconds valid() const noexcept { return milliseconds(gone() ? 0 : quorlock_lock_valid_ms(get())); }
    std::uint64_t fence() const noexcept { return gone() ? 0 : quorlock_lock_fence(get()); }
    quorlock_lock *get() const noexcept { return handle_.get(); }

  private:
    struct end {
        std::shared_ptr<detail::hooks> calls;
        std::unique_ptr<lost_function> lost;
        void operator()(quorlock_lock *handle) const noexcept
        {
            if (calls->gone) return; /* the end of its client has freed it */
            quorlock_lock_set_on_lost(handle, nullptr, nullptr);
            quorlock_lock_free(handle);
        }
    };
    bool gone() const noexcept { return handle_.get_deleter().calls->gone; }
    bool failed(int status, errors to) const
    {
        return to(status, gone() || client_ == nullptr ? "" : quorlock_client_error(client_));
    }
    template <class Call> void start(result_function done, errors to, const Call &call)
    {
        auto kept = std::make_unique<result_function>(std::move(done));
        if (failed(gone() ? QUORLOCK_ERR_CLOSED : call(get(), run_done, static_cast<void *>(kept.get())), to)) return;
        static_cast<void>(kept.release()); /* run_done frees it */
    }
    static void run_done(quorlock_lock *, const quorlock_result *got, void *arg) noexcept
    {
        const std::unique_ptr<result_function> done(static_cast<result_function *>(arg));
        if (*done) (*done)(*got);
    }
    quorlock_client *client_;
    std::unique_ptr<quorlock_lock, end> handle_;
};

} // namespace async
} // namespace quorlock
#endif
