/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quorlock.hpp - the library for C++17, header-only: see quorlockpp(3)
 *
 * client, lock and guard wait for results and may be used from any thread; async::client and async::lock run on the
 * caller's event loop. Objects own what they stand for: they can be moved, and not copied. Calls that fail throw
 * quorlockpp::error. An exception that leaves a function which the library calls (log, on_lost, a result) ends the
 * program, as one that leaves a thread does: none passes through C. Members named `c` are the options of C; a member
 * beside them that is set goes before.
 */
#ifndef QUORLOCK_QUORLOCK_HPP
#define QUORLOCK_QUORLOCK_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <quorlock/quorlock.h>
#include <quorlock/sync.h>

namespace quorlockpp
{
using std::chrono::milliseconds;

inline constexpr milliseconds forever = milliseconds::max(); /* for `wait` */

class error : public std::runtime_error
{
  public:
    error(int status, const std::string &text)
        : std::runtime_error(std::string(quorlock_status_name(status)) + ": " +
                             (text.empty() ? quorlock_status_text(status) : text)),
          status_(status)
    {
    }
    /* status - return the enum quorlock_status. */
    int status() const noexcept
    {
        return status_;
    }

  private:
    int status_;
};

using result = quorlock_sync_result;
using lost_function = std::function<void(const quorlock_loss &)>;

struct client_options {
    std::vector<std::string> nodes;
    std::string user, password, set_name, key_prefix, owner_label;
    std::string tls_ca, tls_cert, tls_key, tls_name;
    milliseconds max_lease{0}, node_timeout{0}, connect_timeout{0}; /* 0: the default */
    std::function<void(int level, const char *text)> log;           /* runs in the loop's thread */
    quorlock_client_options c{};
    std::shared_ptr<quorlock_settings> settings; /* whose texts are in c; see load() */
};

struct lock_options {
    milliseconds lease{0}, wait{0}, max_hold{0}, keep{0}; /* 0: the default; of wait: try once */
    std::string owner;                                    /* holds of one owner nest */
    std::uint32_t permits = 0;
    bool fencing = false, shared = false, fair = false; /* shared: all keys */
    quorlock_lock_options c{};
};

namespace detail
{
/* fail_if - throw the error of a call. The call, which is an argument, may write the text. */
inline void fail_if(int status, const char *text)
{
    if (status != 0) throw error(status, text);
}

inline std::uint32_t count(milliseconds time)
{
    if (time == forever) return QUORLOCK_WAIT_FOREVER;
    if (time.count() < 0 || time.count() >= milliseconds::rep{QUORLOCK_WAIT_FOREVER})
        throw error(QUORLOCK_ERR_INVAL, "a time of " + std::to_string(time.count()) + " ms is out of range");
    return static_cast<std::uint32_t>(time.count());
}

/* set - set what is given. */
inline void set(std::initializer_list<std::pair<std::uint32_t *, milliseconds>> times)
{
    for (const auto &[to, time] : times)
        if (time.count() != 0) *to = count(time);
}
inline void set(std::initializer_list<std::pair<const char **, const std::string &>> texts)
{
    for (const auto &[to, text] : texts)
        if (!text.empty()) *to = text.c_str();
}

inline std::vector<const char *> pointers(const std::vector<std::string> &texts)
{
    std::vector<const char *> found;
    for (const std::string &text : texts) found.push_back(text.c_str());
    return found;
}

/* What the library needs as long as a client lives. */
struct hooks {
    std::shared_ptr<quorlock_settings> settings;
    std::function<void(int, const char *)> log;
    std::function<void()> closed;
    bool gone = false;
    static void on_log(void *arg, int level, const char *text) noexcept
    {
        static_cast<hooks *>(arg)->log(level, text);
    }
};

/* to_c - return the options of C. They point into `options`, `nodes` and `text`. */
inline quorlock_client_options to_c(const client_options &options, const std::vector<const char *> &nodes, hooks &calls,
                                    std::string &text)
{
    quorlock_client_options c = options.c;
    c.size = sizeof(c);
    if (!nodes.empty() || !options.settings) {
        c.nodes = nodes.data();
        c.n_nodes = nodes.size();
    }
    if (options.settings && !options.password.empty()) c.credentials = nullptr; /* else its file would replace it */
    set({{&c.user, options.user},
         {&c.password, options.password},
         {&c.set_name, options.set_name},
         {&c.key_prefix, options.key_prefix},
         {&c.owner_label, options.owner_label},
         {&c.tls_ca, options.tls_ca},
         {&c.tls_cert, options.tls_cert},
         {&c.tls_key, options.tls_key},
         {&c.tls_name, options.tls_name}});
    set({{&c.max_lease_ms, options.max_lease},
         {&c.node_timeout_ms, options.node_timeout},
         {&c.connect_timeout_ms, options.connect_timeout}});
    calls.settings = options.settings;
    calls.log = options.log;
    c.log = calls.log ? hooks::on_log : nullptr;
    c.log_arg = &calls;
    text.assign(QUORLOCK_SYNC_TEXT_SIZE, '\0');
    c.error = text.data();
    c.error_size = text.size();
    return c;
}

inline quorlock_lock_options to_c(const lock_options &options)
{
    quorlock_lock_options c = options.c;
    c.size = sizeof(c);
    set({{&c.owner, options.owner}});
    set({{&c.lease_ms, options.lease}, {&c.wait_ms, options.wait}, {&c.max_hold_ms, options.max_hold}});
    if (options.keep.count() != 0) c.keep_ms = count(options.keep);
    if (options.permits != 0) c.permits = options.permits;
    if (options.fencing) c.fencing = 1;
    if (options.fair) c.fair = 1;
    if (options.shared) c.shared = QUORLOCK_SHARED_ALL;
    return c;
}

inline result empty_result() noexcept
{
    result got{};
    got.size = sizeof(got);
    return got;
}

template <class Handle> void run_lost(Handle *, const quorlock_loss *loss, void *arg) noexcept
{
    const lost_function lost = *static_cast<lost_function *>(arg); /* it may free the lock */
    if (lost) lost(*loss);
}

/* release - throw LOST if the lock was not held to the end. Another error ends no hold, and is a part of the result. */
inline result release(quorlock_sync_lock *lock)
{
    const bool kept = quorlock_sync_lock_valid_ms(lock) > 0;
    result got = empty_result();
    fail_if(quorlock_sync_lock_release(lock, &got) == QUORLOCK_ERR_LOST || !kept ? QUORLOCK_ERR_LOST : QUORLOCK_OK,
            got.text);
    return got;
}
} // namespace detail

/* load - return the options that environment and files give, as quorlock_settings_load() finds them; "": none named.
 * What the program sets in them goes before. */
inline client_options load(const std::string &set = "", const std::string &file = "")
{
    client_options found;
    quorlock_settings *made = nullptr;
    std::string text(QUORLOCK_SYNC_TEXT_SIZE, '\0');
    const auto name = [](const std::string &given) { return given.empty() ? nullptr : given.c_str(); };
    detail::fail_if(quorlock_settings_load(&made, name(file), name(set), text.data(), text.size()), text.c_str());
    found.settings.reset(made, quorlock_settings_free);
    found.c.size = sizeof(found.c);
    detail::fail_if(quorlock_settings_options(made, &found.c), "the files give a value that this program cannot have");
    return found;
}

/* A client with a thread of its own. Its end closes it; locks may live longer. */
class client
{
  public:
    explicit client(const client_options &options)
    {
        std::string text;
        auto calls = std::make_unique<detail::hooks>();
        const auto nodes = detail::pointers(options.nodes);
        const auto c = detail::to_c(options, nodes, *calls, text);
        quorlock_sync_client *made = nullptr;
        detail::fail_if(quorlock_sync_client_new(&made, &c), text.c_str());
        handle_ = {made, end{std::move(calls)}};
    }
    /* shutdown - end waiting acquires, and let no new one begin; held locks stay held. */
    void shutdown() noexcept
    {
        quorlock_sync_client_shutdown(get());
    }
    quorlock_sync_client *get() const noexcept
    {
        return handle_.get();
    }
    /* with - run work(guard &) while the lock is held, and return what it returns. Throws error if the lock is not
     * granted, and LOST if it was lost while the work ran. What the work throws goes on after the release. */
    template <class Work> auto with(const std::string &key, const lock_options &options, Work &&work);

  private:
    struct end {
        std::unique_ptr<detail::hooks> calls; /* outlives the thread */
        void operator()(quorlock_sync_client *handle) const noexcept
        {
            quorlock_sync_client_close(handle);
        }
    };
    std::unique_ptr<quorlock_sync_client, end> handle_;
};

/* A lock on one or more keys. Its end releases it. */
class lock
{
  public:
    lock(const client &owner, const std::vector<std::string> &keys, const lock_options &options = {})
    {
        std::string text(QUORLOCK_SYNC_TEXT_SIZE, '\0');
        const auto names = detail::pointers(keys);
        const auto c = detail::to_c(options);
        quorlock_sync_lock *made = nullptr;
        int status = quorlock_sync_lock_new(&made, owner.get(), names.data(), names.size(), &c, &text[0], text.size());
        detail::fail_if(status, text.c_str());
        handle_.reset(made);
    }
    result acquire()
    {
        result got = detail::empty_result();
        detail::fail_if(quorlock_sync_lock_acquire(get(), &got), got.text);
        return got;
    }
    /* release - throws LOST if the lock was not held to the end. */
    result release()
    {
        return detail::release(get());
    }
    /* cancel - end an acquire of another thread; false: there is none. */
    bool cancel() noexcept
    {
        return quorlock_sync_lock_cancel(get()) == 0;
    }
    /* valid - how long the lock is still valid; 0: not held, do not act. Never waits. */
    milliseconds valid() const noexcept
    {
        return milliseconds(quorlock_sync_lock_valid_ms(get()));
    }
    /* on_lost - set what runs at a loss, in the loop's thread; not to be called there. */
    void on_lost(lost_function lost)
    {
        auto next = std::make_unique<lost_function>(std::move(lost));
        quorlock_sync_lock_set_on_lost(get(), detail::run_lost, next.get());
        handle_.get_deleter().lost = std::move(next); /* the former one does not run any more */
    }
    quorlock_sync_lock *get() const noexcept
    {
        return handle_.get();
    }

  private:
    struct end {
        std::unique_ptr<lost_function> lost;
        void operator()(quorlock_sync_lock *handle) const noexcept
        {
            quorlock_sync_lock_free(handle);
        }
    };
    std::unique_ptr<quorlock_sync_lock, end> handle_;
};

/* Holds a lock, which must live longer: acquires it when made, releases it at its end. */
class guard
{
  public:
    explicit guard(lock &held) : granted_(held.acquire()), held_(held.get())
    {
    }
    milliseconds valid() const noexcept
    {
        return milliseconds(quorlock_sync_lock_valid_ms(held_.get()));
    }
    /* check - throw LOST if the lock is not held any more. Call it before each step that must not happen twice. */
    void check() const
    {
        detail::fail_if(valid() > milliseconds(0) ? QUORLOCK_OK : QUORLOCK_ERR_LOST, "");
    }
    /* release - release now; throws LOST if the lock was not held to the end. */
    void release()
    {
        detail::release(held_.release());
    }
    /* granted - the result of the acquire: fencing token (fence), owner token, slot. */
    const result &granted() const noexcept
    {
        return granted_;
    }

  private:
    struct give_back {
        void operator()(quorlock_sync_lock *held) const noexcept
        {
            quorlock_sync_lock_release(held, nullptr);
        }
    };
    result granted_;
    std::unique_ptr<quorlock_sync_lock, give_back> held_;
};

template <class Work> auto client::with(const std::string &key, const lock_options &options, Work &&work)
{
    lock one(*this, {key}, options);
    guard held(one);
    if constexpr (std::is_void_v<std::invoke_result_t<Work, guard &>>) {
        std::forward<Work>(work)(held);
        held.release();
    } else {
        auto found = std::forward<Work>(work)(held);
        held.release();
        return found;
    }
}

/* The same by callbacks, on the caller's event loop and in its thread. */
namespace async
{
using result_function = std::function<void(const quorlock_result &)>;

/* Its end begins to close it; the loop must run until that is done. */
class client
{
  public:
    client(event_base *base, const client_options &options)
        : client([base](auto **ret, const auto *c) { return quorlock_client_new(ret, base, c); }, options)
    {
    }
    /* On another loop: new_on(quorlock_client **, const quorlock_client_options *) calls quorlock_client_new_on_loop().
     */
    template <class NewOn>
    client(NewOn new_on, const client_options &options)
        : calls_(std::make_shared<detail::hooks>()), handle_(nullptr, end{})
    {
        std::string text;
        const auto nodes = detail::pointers(options.nodes);
        const auto c = detail::to_c(options, nodes, *calls_, text);
        auto kept = std::make_unique<shared>(calls_); /* until it is closed */
        quorlock_client *made = nullptr;
        detail::fail_if(new_on(&made, &c), text.c_str());
        handle_ = {made, end{kept.release()}};
    }
    /* close - release all locks, and run `closed` when all is done. */
    void close(std::function<void()> closed)
    {
        calls_->closed = std::move(closed);
        handle_.reset();
    }
    quorlock_client *get() const noexcept
    {
        return handle_.get();
    }

  private:
    friend class lock;
    using shared = std::shared_ptr<detail::hooks>;
    struct end {
        shared *kept = nullptr;
        void operator()(quorlock_client *handle) const noexcept
        {
            quorlock_client_close(handle, on_closed, kept);
        }
    };
    static void on_closed(void *arg) noexcept
    {
        const std::unique_ptr<shared> calls(static_cast<shared *>(arg));
        (*calls)->gone = true;
        if ((*calls)->closed) (*calls)->closed();
    }
    shared calls_;
    std::unique_ptr<quorlock_client, end> handle_;
};

/* A lock; it may live longer than its client. */
class lock
{
  public:
    lock(const client &owner, const std::vector<std::string> &keys, const lock_options &options = {})
        : client_(owner.get()), handle_(nullptr, end{owner.calls_, nullptr})
    {
        const auto names = detail::pointers(keys);
        const auto c = detail::to_c(options);
        quorlock_lock *made = nullptr;
        check(client_ == nullptr ? QUORLOCK_ERR_CLOSED
                                 : quorlock_lock_new(&made, client_, names.data(), names.size(), &c));
        handle_.reset(made);
    }
    /* acquire, release - `done` runs later, exactly once, unless the call throws. */
    void acquire(result_function done)
    {
        start(quorlock_lock_acquire, std::move(done));
    }
    void release(result_function done = nullptr)
    {
        start(quorlock_lock_release, std::move(done));
    }
    bool cancel() noexcept
    {
        return !gone() && quorlock_lock_cancel(get()) == 0;
    }
    milliseconds valid() const noexcept
    {
        return milliseconds(gone() ? 0 : quorlock_lock_valid_ms(get()));
    }
    std::uint64_t fence() const noexcept
    {
        return gone() ? 0 : quorlock_lock_fence(get());
    }
    void on_lost(lost_function lost)
    {
        auto next = std::make_unique<lost_function>(std::move(lost));
        if (!gone()) quorlock_lock_set_on_lost(get(), detail::run_lost, next.get());
        handle_.get_deleter().lost = std::move(next);
    }
    quorlock_lock *get() const noexcept
    {
        return handle_.get();
    }

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
    bool gone() const noexcept
    {
        return handle_.get_deleter().calls->gone;
    }
    void check(int status) const
    {
        detail::fail_if(status, gone() || client_ == nullptr ? "" : quorlock_client_error(client_));
    }
    void start(int (*call)(quorlock_lock *, quorlock_lock_cb, void *), result_function done)
    {
        auto kept = std::make_unique<result_function>(std::move(done));
        check(gone() ? QUORLOCK_ERR_CLOSED : call(get(), run_done, kept.get()));
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
} // namespace quorlockpp
#endif
