/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quorlock.hpp - the library for C++17, header-only: see quorlock.hpp(3)
 *
 * client, lock, shared, permit, candidate and observer wait for results and may be used from any thread; async.hpp has
 * the same for event loops. Objects own what they stand for: they can be moved and not copied, and destroyed in any
 * order. Calls that fail throw std::system_error; with a std::error_code as last argument they write it, and throw
 * nothing. An exception that leaves a function which the library calls in its thread (log, lost, elected ...) ends the
 * program, as one that leaves a thread does: none passes through C.
 */
#ifndef QUORLOCK_QUORLOCK_HPP
#define QUORLOCK_QUORLOCK_HPP

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <quorlock/async.hpp>
#include <quorlock/sync.h>

namespace quorlock
{
using result = quorlock_sync_result;

namespace detail
{
inline lock_options with_shared(lock_options options)
{
    options.c.shared = QUORLOCK_SHARED_ALL;
    return options;
}
inline lock_options with_permits(lock_options options, std::uint32_t count)
{
    options.c.permits = count != 0 ? count : UINT32_MAX; /* C takes 0 for a lock without permits */
    return options;
}

inline result empty_result() noexcept
{
    result got{};
    got.size = sizeof(got);
    got.slot = QUORLOCK_SLOT_NONE;
    return got;
}

/* refuse - make a result that is no answer of the library. */
inline result &refuse(result &got, int status, const std::string &why)
{
    got.status = status;
    got.text[why.copy(got.text, sizeof(got.text) - 1)] = '\0';
    return got;
}
/* The client of C, for locks that may outlive it. */
class door
{
  public:
    hooks calls; /* outlive the thread of the client */
    quorlock_sync_client *client = nullptr;

    /* use - call a function of C with the client; CLOSED: it is closed, or closes. */
    template <class Call> int use(const Call &call)
    {
        std::unique_lock<std::mutex> here(mutex_);
        quorlock_sync_client *const open = client;
        if (open == nullptr) return QUORLOCK_ERR_CLOSED;
        inside_++;
        here.unlock();
        const int status = call(open);
        here.lock();
        if (--inside_ == 0) left_.notify_all();
        return status;
    }
    void close() noexcept
    {
        std::unique_lock<std::mutex> here(mutex_);
        quorlock_sync_client *const closing = std::exchange(client, nullptr);
        left_.wait(here, [this] { return inside_ == 0; });
        here.unlock();
        quorlock_sync_client_close(closing);
    }

  private:
    std::mutex mutex_{};
    std::condition_variable left_{};
    unsigned inside_ = 0;
};

template <class Look> struct reader {
    Look &look;
    std::exception_ptr thrown{};
    /* run - show a report to the reader at arg, in the thread that asked; what it throws waits there. */
    template <class Report> static void run(int, const Report *report, void *arg) noexcept
    {
        auto *const one = static_cast<reader *>(arg);
#ifdef __cpp_exceptions
        if (one->thrown) return;
        try {
            one->look(*report);
        } catch (...) {
            one->thrown = std::current_exception();
        }
#else
        one->look(*report);
#endif
    }
};
} // namespace detail

/* load - return the options that environment and files give, as quorlock_settings_load() finds them; "": none named.
 * What the program sets in them goes before. */
inline client_options load(const std::string &set = "", const std::string &file = "", errors to = {})
{
    client_options found;
    quorlock_settings *made = nullptr;
    quorlock_error error{};
    const auto name = [](const std::string &given) { return given.empty() ? nullptr : given.c_str(); };
    if (to(quorlock_settings_load(&made, name(file), name(set), &error), error.text)) return found;
    found.settings.reset(made, quorlock_settings_free);
    found.c.size = sizeof(found.c);
    to(quorlock_settings_options(made, &found.c, &error), error.text);
    return found;
}

class exclusive;
using lock = exclusive; /* a class cannot have a member function of its own name */

/* A client with a thread of its own. Its end closes it. */
class client
{
  public:
    client() : client(load()) {}
    explicit client(const client_options &options, errors to = {})
    {
        auto made = std::make_shared<detail::door>();
        made->client = detail::new_client<quorlock_sync_client>(quorlock_sync_client_new, options, made->calls, to);
        door_ = {made.get(), end{made}};
    }
    /* shutdown - end waiting acquires, and let no new one begin; held locks stay held. */
    void shutdown() noexcept { quorlock_sync_client_shutdown(get()); }
    /* set_credentials - for later logins at nodes whose address has neither. */
    void set_credentials(const std::string &user, const std::string &password, errors to = {})
    {
        quorlock_error error{};
        const int status = quorlock_sync_client_set_credentials(get(), nullptr, user.c_str(), password.c_str(), &error);

        to(status, error.text);
    }
    /*
     * inspect    - run look(const quorlock_inspect_report &) in this thread
     * break_lock - run look(const quorlock_break_report &); with an owner break only what that one has
     * list       - run look(const quorlock_list_report &), once or more often
     *
     * What `look` throws goes on from here.
     */
    template <class Look> void inspect(const std::string &key, Look &&look, errors to = {}) const
    {
        ask<quorlock_inspect_report>(key, look, to, [&](auto run, void *arg) {
            return quorlock_sync_client_inspect(get(), key.c_str(), run, arg);
        });
    }
    template <class Look>
    void break_lock(const std::string &key, Look &&look, const std::string &owner = "", errors to = {})
    {
        ask<quorlock_break_report>(key, look, to, [&](auto run, void *arg) {
            return quorlock_sync_client_break(get(), key.c_str(), owner.empty() ? nullptr : owner.c_str(), run, arg);
        });
    }
    template <class Look> void list(const std::string &pattern, Look &&look, errors to = {}) const
    {
        ask<quorlock_list_report>(pattern, look, to, [&](auto run, void *arg) {
            return quorlock_sync_client_list(get(), pattern.empty() ? nullptr : pattern.c_str(), run, arg);
        });
    }
    /* with - run work(lock &) while the lock is held, and return what it returns. Throws if the lock is not granted,
     * and LOST if it was lost while the work ran. What the work throws goes on after the release. */
    template <class Work> auto with(const keys &names, const lock_options &options, Work &&work);
    quorlock_sync_client *get() const noexcept { return door_ ? door_->client : nullptr; }

  private:
    friend class hold;
    struct end {
        std::shared_ptr<detail::door> kept;
        void operator()(detail::door *door) const noexcept { door->close(); }
    };
    template <class Report, class Look, class Call>
    static void ask(const std::string &what, Look &look, errors to, const Call &call)
    {
        detail::reader<Look> reader{look};
        const int status = call(&detail::reader<Look>::template run<Report>, static_cast<void *>(&reader));
        if (reader.thrown) std::rethrow_exception(reader.thrown);
        to(status, what.c_str());
    }
    std::unique_ptr<detail::door, end> door_;
};

/* What lock, shared and permit have in common. Each thread that acquires has a hold of its own; a thread without one
 * sees the only hold there is. The end of the object releases all. */
class hold
{
  public:
    /* acquire - wait for the lock, for `wait` of the options at most. */
    result acquire(errors to = {}) { return report(take(of_->options.wait, nullptr), to); }
    /* release - end the hold. LOST: it was not held to the end. What a node that does not answer still has is released
     * later, which is no error. */
    result release(errors to = {})
    {
        result got = leave(quorlock_sync_lock_release, true);
        to(got.status != QUORLOCK_ERR_NOQUORUM ? got.status : QUORLOCK_OK, got.text);
        return got;
    }
    /* extend - renew now, with a lease at least as long as the present one; 0: as long. */
    result extend(milliseconds lease = milliseconds(0), errors to = {})
    {
        result got = detail::empty_result();
        std::uint32_t lease_ms = 0;
        const std::string wrong = detail::set({{"lease", &lease_ms, lease}});
        if (!wrong.empty()) return report(detail::refuse(got, QUORLOCK_ERR_INVAL, wrong), to);
        got.status = quorlock_sync_lock_extend(now().handle.get(), lease_ms, &got);
        return report(got, to);
    }
    /* detach - stop holding the lock without releasing it; adopt - hold it, by the owner token that detach returned. */
    result detach(errors to = {}) { return report(leave(quorlock_sync_lock_detach, false), to); }
    result adopt(const std::string &token, errors to = {}) { return report(take(milliseconds(0), token.c_str()), to); }
    /* cancel - end what threads wait for; false: they wait for nothing. */
    bool cancel()
    {
        bool any = false;
        std::unique_lock<std::mutex> here(of_->mutex);
        const auto all = of_->all;
        here.unlock();
        for (const auto &one : all) any |= quorlock_sync_lock_cancel(one.second.handle.get()) == 0;
        return any;
    }
    /* valid - how long the lock is still valid; 0: not held, do not act. Never waits. */
    milliseconds valid() const { return milliseconds(quorlock_sync_lock_valid_ms(now().handle.get())); }
    /* check - LOST if the lock is not held any more. Call it before each step that must not happen twice. */
    void check(errors to = {}) const
    {
        const bool lost = valid().count() == 0, named = of_ && !of_->names.names().empty();
        const std::string key = lost && named ? "\"" + of_->names.names().front() + '"' : "";
        to(lost ? QUORLOCK_ERR_LOST : QUORLOCK_OK, key.c_str());
    }
    /* granted - return the result of the grant: fencing token (fence), owner token, slot. */
    result granted() const
    {
        const auto found = now().granted;
        return found ? *found : detail::empty_result();
    }
    /* get - return the handle of C, which this hold has; nullptr: there is no hold. */
    quorlock_sync_lock *get() const { return now().handle.get(); }

  protected:
    hold(const client &owner, keys names, const lock_options &options, errors to)
        : of_(new object{owner.door_.get_deleter().kept, std::move(names), options})
    {
        result got = detail::empty_result();
        /* Each handle needs these texts. */
        if (options.owner.empty() && options.c.owner != nullptr) of_->options.owner = options.c.owner;
        if (options.label.empty() && options.c.label != nullptr) of_->options.label = options.c.label;
        make(options.wait, got);
        report(got, to);
    }
    /* attempt - acquire; that the lock cannot be had now is an error only for who takes its code. Nor is an outage, for
     * std::lock() tries all locks but one, and waits for the one that it did not get. */
    bool attempt(milliseconds wait, errors to)
    {
        const result got = take(wait, nullptr);
        const bool later = got.status == QUORLOCK_ERR_HELD || got.status == QUORLOCK_ERR_TIMEDOUT ||
                           got.status == QUORLOCK_ERR_NOQUORUM;
        if (later && !to.taken()) return false;
        return report(got, to).status == 0;
    }
    void end() noexcept { leave(quorlock_sync_lock_release, true); }

  private:
    struct grip {
        std::shared_ptr<quorlock_sync_lock> handle{};
        std::shared_ptr<const result> granted{}; /* nullptr: it waits for the grant */
    };
    struct object {
        std::shared_ptr<detail::door> door;
        keys names;
        lock_options options;
        std::mutex mutex{}; /* of `all`; no thread waits for the library with it */
        std::map<std::thread::id, grip> all{};
    };
    static result report(const result &got, errors to)
    {
        to(got.status, got.text);
        return got;
    }
    /* now - return the hold of this thread, or the only one. */
    grip now() const
    {
        if (!of_) return {};
        const std::lock_guard<std::mutex> here(of_->mutex);
        const auto own = of_->all.find(std::this_thread::get_id());
        if (own != of_->all.end()) return own->second;
        grip found;
        for (const auto &one : of_->all) {
            if (one.second.granted == nullptr) continue;
            if (found.handle) return {};
            found = one.second;
        }
        return found;
    }
    /* make - make a handle of C with this wait; nullptr: the result has the error. */
    std::shared_ptr<quorlock_sync_lock> make(milliseconds wait, result &got) const
    {
        quorlock_lock_options c;
        quorlock_sync_lock *made = nullptr;
        const auto list = detail::pointers(of_->names.names());
        const std::string wrong = detail::to_c(of_->options, c);
        c.wait_ms = detail::wait_of(wait);
        if (!wrong.empty()) {
            detail::refuse(got, QUORLOCK_ERR_INVAL, wrong);
            return nullptr;
        }
        quorlock_error error{};
        const int status = of_->door->use([&](quorlock_sync_client *client) {
            return quorlock_sync_lock_new(&made, client, list.data(), list.size(), &c, &error);
        });
        if (status != 0) detail::refuse(got, status, error.text);
        auto &lost = of_->options.lost;
        if (made != nullptr && lost) quorlock_sync_lock_set_on_lost(made, detail::run_lost, &lost);
        return {made, quorlock_sync_lock_free};
    }
    /* take - acquire or, with a token, adopt. */
    result take(milliseconds wait, const char *token)
    {
        result got = detail::empty_result();
        const auto thread = std::this_thread::get_id();
        const auto handle = make(wait, got);
        if (got.status != 0) return got;
        std::unique_lock<std::mutex> here(of_->mutex);
        if (!of_->all.insert({thread, grip{handle}}).second)
            return detail::refuse(got, QUORLOCK_ERR_STATE, "this thread holds the lock already");
        here.unlock();
        token != nullptr ? quorlock_sync_lock_adopt(handle.get(), token, &got)
                         : quorlock_sync_lock_acquire(handle.get(), &got);
        here.lock();
        if (got.status != 0) {
            of_->all.erase(thread);
        } else {
            of_->all[thread].granted = std::make_shared<result>(got);
        }
        return got;
    }
    /* leave - end the hold by release or detach. */
    result leave(int (*call)(quorlock_sync_lock *, result *), bool ends)
    {
        result got = detail::empty_result();
        const auto handle = now().handle;
        if (!handle) return detail::refuse(got, QUORLOCK_ERR_STATE, "this thread does not hold the lock");
        got.status = call(handle.get(), &got);
        if (!ends && got.status != 0) return got;
        const std::lock_guard<std::mutex> here(of_->mutex);
        auto &every = of_->all;
        const auto same = [&](const auto &one) { return one.second.handle == handle; };
        const auto found = std::find_if(every.begin(), every.end(), same);
        if (found != every.end()) every.erase(found);
        return got;
    }
    std::unique_ptr<object> of_;
};

/* A lock on one or more keys: Lockable and TimedLockable, for std::unique_lock and std::scoped_lock. */
class exclusive : public hold
{
  public:
    exclusive(const client &owner, keys names, const lock_options &options = {}, errors to = {})
        : hold(owner, std::move(names), options, to)
    {
    }
    void lock() { acquire(); }
    bool try_lock(errors to = {}) { return attempt(milliseconds(0), to); }
    template <class Rep, class Period> bool try_lock_for(const std::chrono::duration<Rep, Period> &time, errors to = {})
    {
        return attempt(detail::rounded(time), to);
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end, errors to = {})
    {
        return attempt(detail::until(end), to);
    }
    void unlock() noexcept { end(); }
};

/* Keys that readers share: SharedLockable, for std::shared_lock; a `lock` on them is the writer. */
class shared : public hold
{
  public:
    shared(const client &owner, keys names, const lock_options &options = {}, errors to = {})
        : hold(owner, std::move(names), detail::with_shared(options), to)
    {
    }
    void lock_shared() { acquire(); }
    bool try_lock_shared(errors to = {}) { return attempt(milliseconds(0), to); }
    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time, errors to = {})
    {
        return attempt(detail::rounded(time), to);
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &end, errors to = {})
    {
        return attempt(detail::until(end), to);
    }
    void unlock_shared() noexcept { end(); }
};

/* One of `count` permits of a name; Lockable and TimedLockable, too. */
class permit : public exclusive
{
  public:
    permit(const client &owner, const std::string &name, std::uint32_t count, const lock_options &options = {},
           errors to = {})
        : exclusive(owner, name, detail::with_permits(options, count), to)
    {
    }
    /* slot - return which one the latest grant gave, 0 to count - 1; QUORLOCK_SLOT_NONE: there is no grant. */
    std::uint32_t slot() const { return granted().slot; }
};

template <class Work> auto client::with(const keys &names, const lock_options &options, Work &&work)
{
    exclusive held(*this, names, options);
    std::unique_lock<exclusive> guard(held);
    if constexpr (std::is_void_v<std::invoke_result_t<Work, exclusive &>>) {
        std::forward<Work>(work)(held);
        guard.release()->release();
    } else {
        auto found = std::forward<Work>(work)(held);
        guard.release()->release();
        return found;
    }
}
struct candidate_options {
    std::string advertise{};
    milliseconds lease{0};                             /* 0: the default */
    std::function<void(std::uint64_t term)> elected{}; /* these run in the loop's thread */
    lost_function deposed{};
    std::function<void(std::error_code why, const char *text)> ended{};
    quorlock_candidate_options c{};
};

/* A candidate of an election, whose leader has a lock on the key `name`. Its end resigns. */
class candidate
{
  public:
    candidate(const client &owner, const std::string &name, const candidate_options &options = {}, errors to = {})
        : handle_(nullptr, end{std::make_unique<candidate_options>(options)})
    {
        candidate_options &told = *handle_.get_deleter().told;
        quorlock_candidate_options c = told.c;
        quorlock_sync_candidate *made = nullptr;
        quorlock_error error{};
        c.size = sizeof(c);
        if (told.elected || told.deposed || told.ended) c.arg = &told;
        if (told.elected) c.elected = on_elected;
        if (told.deposed) c.deposed = on_deposed;
        if (told.ended) c.ended = on_ended;
        detail::set({{&c.advertise, told.advertise}});
        const std::string wrong = detail::set({{"lease", &c.lease_ms, told.lease}});
        if (!wrong.empty()) {
            to(QUORLOCK_ERR_INVAL, wrong.c_str());
            return;
        }
        to(quorlock_sync_candidate_new(&made, owner.get(), name.c_str(), &c, &error), error.text);
        handle_.reset(made);
    }
    /* stand - wait until the candidate leads, and return the term. Deposed, it stands again by itself. */
    std::uint64_t stand(errors to = {})
    {
        std::uint64_t term = 0;
        to(quorlock_sync_candidate_stand(get(), &term), "");
        return term;
    }
    /* resign - end the candidacy, and wait for the end; a `stand` that waits ends with CANCELED. */
    void resign(errors to = {}) { to(quorlock_sync_candidate_resign(get()), ""); }
    /* valid - how long it still leads; 0: do not act. term - in which it leads; 0: it does not. */
    milliseconds valid() const noexcept { return milliseconds(quorlock_sync_candidate_valid_ms(get())); }
    std::uint64_t term() const noexcept { return quorlock_sync_candidate_term(get()); }
    quorlock_sync_candidate *get() const noexcept { return handle_.get(); }

  private:
    struct end {
        std::unique_ptr<candidate_options> told;
        void operator()(quorlock_sync_candidate *handle) const noexcept { quorlock_sync_candidate_free(handle); }
    };
    /* Copies, because a function may end the candidate. */
    static void on_elected(quorlock_candidate *, std::uint64_t term, void *arg) noexcept
    {
        const auto elected = static_cast<candidate_options *>(arg)->elected;
        elected(term);
    }
    static void on_deposed(quorlock_candidate *, const quorlock_loss *loss, void *arg) noexcept
    {
        const auto deposed = static_cast<candidate_options *>(arg)->deposed;
        deposed(*loss);
    }
    static void on_ended(quorlock_candidate *, int status, const char *text, void *arg) noexcept
    {
        const auto ended = static_cast<candidate_options *>(arg)->ended;
        ended({status, category()}, text != nullptr ? text : "");
    }
    std::unique_ptr<quorlock_sync_candidate, end> handle_;
};

/* Reports who leads, now and at every change, to a function that runs in the loop's thread. */
class observer
{
  public:
    using function = std::function<void(const quorlock_leader &)>;
    observer(const client &owner, const std::string &name, function changed, milliseconds poll = milliseconds(0),
             errors to = {})
        : handle_(nullptr, end{std::make_unique<function>(std::move(changed))})
    {
        quorlock_observer_options c{};
        quorlock_sync_observer *made = nullptr;
        quorlock_error error{};
        c.size = sizeof(c);
        c.changed = on_changed;
        c.arg = handle_.get_deleter().changed.get();
        const std::string wrong = detail::set({{"poll", &c.poll_ms, poll}});
        if (!wrong.empty()) {
            to(QUORLOCK_ERR_INVAL, wrong.c_str());
            return;
        }
        to(quorlock_sync_observer_new(&made, owner.get(), name.c_str(), &c, &error), error.text);
        handle_.reset(made);
    }
    quorlock_sync_observer *get() const noexcept { return handle_.get(); }

  private:
    struct end {
        std::unique_ptr<function> changed;
        void operator()(quorlock_sync_observer *handle) const noexcept { quorlock_sync_observer_free(handle); }
    };
    static void on_changed(quorlock_observer *, const quorlock_leader *leader, void *arg) noexcept
    {
        const function changed = *static_cast<function *>(arg);
        changed(*leader);
    }
    std::unique_ptr<quorlock_sync_observer, end> handle_;
};
} // namespace quorlock
#endif
