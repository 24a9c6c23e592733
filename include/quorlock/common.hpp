/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common.hpp - errors and options of quorlock.hpp and async.hpp, for C++17: see quorlock.hpp(3)
 *
 * Members named `c` are the options of C; a member beside them that is set goes before.
 */
#ifndef QUORLOCK_COMMON_HPP
#define QUORLOCK_COMMON_HPP

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <quorlock/quorlock.h>

namespace quorlock
{
using std::chrono::milliseconds;

inline constexpr milliseconds forever = milliseconds::max(); /* for `wait` */

namespace detail
{
class category final : public std::error_category
{
  public:
    const char *name() const noexcept override { return "quorlock"; }
    std::string message(int status) const override { return quorlock_status_text(status); }
    std::error_condition default_error_condition(int status) const noexcept override
    {
        static constexpr std::pair<int, std::errc> same[] = {
            {QUORLOCK_ERR_INVAL, std::errc::invalid_argument}, {QUORLOCK_ERR_NOMEM, std::errc::not_enough_memory},
            {QUORLOCK_ERR_TIMEDOUT, std::errc::timed_out},     {QUORLOCK_ERR_CANCELED, std::errc::operation_canceled},
            {QUORLOCK_ERR_AUTH, std::errc::permission_denied}, {QUORLOCK_ERR_UNSUPPORTED, std::errc::not_supported}};
        for (const auto &[one, condition] : same)
            if (one == status) return condition;
        return {status, *this};
    }
};
} // namespace detail

/* category - return the category of all errors; their values are of enum quorlock_status. It is one in all libraries
 * of a program, and is never destroyed. */
[[gnu::visibility("default")]] inline const std::error_category &category() noexcept
{
    static const std::error_category &one = *new detail::category;
    return one;
}
} // namespace quorlock

inline std::error_code make_error_code(quorlock_status status) noexcept
{
    return {status, quorlock::category()};
}
template <> struct std::is_error_code_enum<quorlock_status> : std::true_type {
};

namespace quorlock
{
using lost_function = std::function<void(const quorlock_loss &)>;

/* Where the error of a call goes: into the caller's error_code, or it is thrown. */
class errors
{
  public:
    errors() = default;
    errors(std::error_code &code) noexcept : code_(&code) {}
    /* operator() - report the status; return whether it is an error. */
    bool operator()(int status, const char *text) const
    {
        const std::error_code code(status, category());
        if (code_ != nullptr) {
            *code_ = code;
        } else if (status != 0) {
#ifdef __cpp_exceptions
            throw *text != '\0' ? std::system_error(code, text) : std::system_error(code);
#else
            static_cast<void>(text);
            std::abort();
#endif
        }
        return status != 0;
    }
    bool taken() const noexcept
    {
        return code_ != nullptr;
    }

  private:
    std::error_code *code_ = nullptr;
};

/* The keys of a lock: one, or a list, as in {"a", "b"}. */
class keys
{
  public:
    keys(const char *key) : names_{key} {}
    keys(const std::string &key) : names_{key} {}
    keys(std::initializer_list<std::string> names) : names_(names) {}
    keys(std::vector<std::string> names) : names_(std::move(names)) {}
    const std::vector<std::string> &names() const noexcept { return names_; }

  private:
    std::vector<std::string> names_;
};

struct client_options {
    std::vector<std::string> nodes{};
    std::string user{}, password{}, set_name{}, key_prefix{}, owner_label{};
    std::string tls_ca{}, tls_cert{}, tls_key{}, tls_name{};
    milliseconds max_lease{0}, node_timeout{0}, connect_timeout{0}; /* 0: the default */
    std::function<void(int level, const char *text)> log{};         /* runs in the loop's thread */
    quorlock_client_options c{};
    std::shared_ptr<quorlock_settings> settings{}; /* whose texts are in c; see load() */
};

struct lock_options {
    milliseconds lease{0};        /* 0: the default */
    milliseconds wait = forever;  /* of acquire() and lock(); 0: try once */
    milliseconds max_hold{0};     /* 0: no limit */
    milliseconds keep{0};         /* 0: not at all */
    std::string owner{}, label{}; /* holds of one owner nest */
    bool fencing = false, fair = false;
    lost_function lost{}; /* runs at a loss, in the loop's thread */
    quorlock_lock_options c{};
};

namespace detail
{
inline constexpr std::uint32_t try_once = QUORLOCK_TRY_ONCE, no_limit = 0;
inline constexpr milliseconds longest{UINT32_MAX - 1};

inline std::uint32_t wait_of(milliseconds time) noexcept
{
    if (time > longest) return no_limit;
    return time.count() <= 0 ? try_once : static_cast<std::uint32_t>(time.count());
}

/* rounded - return the time in milliseconds, not less, for a wait. */
template <class Rep, class Period> milliseconds rounded(const std::chrono::duration<Rep, Period> &time)
{
    const double ms = std::ceil(std::chrono::duration<double, std::milli>(time).count());
    if (ms > static_cast<double>(longest.count())) return forever;
    return ms > 0 ? milliseconds(static_cast<milliseconds::rep>(ms)) : milliseconds(0);
}

template <class Clock, class Duration> milliseconds until(const std::chrono::time_point<Clock, Duration> &end)
{
    const auto now = Clock::now();
    return end > now ? rounded(end - now) : milliseconds(0);
}

/* set - set what is given. Of times: return what is wrong, or "". */
struct time_option {
    const char *name;
    std::uint32_t *to;
    milliseconds time;
};
inline std::string set(std::initializer_list<time_option> times)
{
    for (const auto &[name, to, time] : times) {
        if (time.count() < 0 || time > longest)
            return std::string(name) + ": " + std::to_string(time.count()) + " ms is out of range";
        if (time.count() != 0) *to = static_cast<std::uint32_t>(time.count());
    }
    return "";
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
    static void on_log(int level, const char *text, void *arg) noexcept { static_cast<hooks *>(arg)->log(level, text); }
};

/* to_c - fill the options of C, which point into `options` and `nodes`; return what is wrong, or "". */
inline std::string to_c(const client_options &options, const std::vector<const char *> &nodes, hooks &calls,
                        quorlock_client_options &c)
{
    c = options.c;
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
    calls.settings = options.settings;
    calls.log = options.log;
    if (calls.log) {
        c.log = hooks::on_log;
        c.log_arg = &calls;
    }
    return set({{"max_lease", &c.max_lease_ms, options.max_lease},
                {"node_timeout", &c.node_timeout_ms, options.node_timeout},
                {"connect_timeout", &c.connect_timeout_ms, options.connect_timeout}});
}

inline std::string to_c(const lock_options &options, quorlock_lock_options &c)
{
    c = options.c;
    c.size = sizeof(c);
    set({{&c.owner, options.owner}, {&c.label, options.label}});
    if (options.fencing) c.fencing = 1;
    if (options.fair) c.fair = 1;
    c.wait_ms = wait_of(options.wait);
    return set({{"lease", &c.lease_ms, options.lease},
                {"max_hold", &c.max_hold_ms, options.max_hold},
                {"keep", &c.keep_ms, options.keep}});
}

/* new_client - make a client by a function of C; nullptr: it failed. */
template <class Client, class New> Client *new_client(New make, const client_options &options, hooks &calls, errors to)
{
    quorlock_client_options c;
    quorlock_error error{};
    const auto nodes = pointers(options.nodes);
    const std::string wrong = to_c(options, nodes, calls, c);
    Client *made = nullptr;
    if (wrong.empty()) {
        to(make(&made, &c, &error), error.text);
    } else {
        to(QUORLOCK_ERR_INVAL, wrong.c_str());
    }
    return made;
}

/* run_lost - run the function at arg: a copy of it, because it may end the object that it belongs to. */
template <class Handle> void run_lost(Handle *, const quorlock_loss *loss, void *arg) noexcept
{
    const lost_function lost = *static_cast<lost_function *>(arg);
    lost(*loss);
}
} // namespace detail
} // namespace quorlock
#endif
