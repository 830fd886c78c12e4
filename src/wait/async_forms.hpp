#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "wait/pending_wait.hpp"

/// The asynchronous forms of most operations, each used in a line or two: a command with the
/// meaning of its reply, a request that is repeated until it is settled, a short piece of work, and
/// a conversion of another operation's result.
namespace holdfast::engine {

/// A short piece of work, done on the thread of the session's runner.
template <class T>
class pending_work final : public telling_shortly<T> {
 public:
  pending_work(std::shared_ptr<session_impl> session, std::function<result<T>()> work)
      : telling_shortly<T>(std::move(session)), work_(std::move(work)) {}
  operation::next step() override {
    this->tell(work_());
    return {.over = true};
  }

 private:
  const std::function<result<T>()> work_;
};

template <class T = done>
pending<T> async_do(std::shared_ptr<session_impl> session,
                    std::type_identity_t<std::function<result<T>()>> work) {
  return pending<T>(std::make_shared<pending_work<T>>(std::move(session), std::move(work)));
}

/// Translates the reply to a command into the operation's result.
template <class T>
using meaning = std::function<result<T>(store::permits_reply&)>;

/// One command, sent once, in one round trip with other operations' commands.
template <class T>
class pending_reply final : public telling_shortly<T> {
 public:
  pending_reply(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> what,
                std::string_view operation, const store::permits_command& c, meaning<T> m)
      : telling_shortly<T>(std::move(session)),
        config_(std::move(what)),
        operation_(operation),
        asks_(c),
        meaning_(std::move(m)) {}
  operation::next step() override { return {.ask = store::named_command{config_->name, asks_}}; }
  operation::next answer(result<store::permits_reply> reply, boot_time) override {
    auto learned = reply ? meaning_(*reply) : result<T>(std::move(reply.error()));
    if (!learned) {
      learned = this->session_->located(std::move(learned.error()), operation_, config_->name);
    }
    this->tell(std::move(learned));
    return {.over = true};
  }

 private:
  const std::shared_ptr<const lock_config> config_;
  const std::string_view operation_;
  const store::permits_command asks_;
  const meaning<T> meaning_;
};

/// A request that leaves nothing at the store when it ends without success, or that has a leave(),
/// which removes it.
template <class T, class Pointer>
class pending_request : public telling_wait<pending_wait, T> {
 public:
  using outcome = std::function<result<T>(Pointer)>;
  pending_request(async_request o, const store::owner_id& owner, Pointer q, outcome f)
      : telling_wait<pending_wait, T>(std::move(o)),
        request_(std::move(q)),
        owner_(owner),
        outcome_(std::move(f)) {}
  const store::owner_id& owner() const noexcept override { return owner_; }

 protected:
  void let_go() override { request_.reset(); }

  Pointer request_;

 private:
  request& asked() override { return *request_; }
  void won(std::shared_ptr<session_impl> session) override {
    const std::string_view tried = this->tried();
    result<T> how = outcome_(std::move(request_));
    if (how) return this->tell(std::move(how));
    this->tell(session->located(std::move(how.error()), tried, this->config_->name));
  }
  std::optional<store::named_command> leaving(const failure& why) override {
    if constexpr (requires(Pointer q) { q->leave(why); }) request_->leave(why);
    return std::nullopt;
  }

  const store::owner_id owner_;
  const outcome outcome_;
};

/// Repeats the request until it is settled, and then passes it to `outcome`, which makes the
/// result. Whatever `outcome` captures lives as long as the operation.
template <class T, class Pointer>
pending<T> async_ask(async_request o, const store::owner_id& owner, Pointer q,
                     typename pending_request<T, Pointer>::outcome f) {
  return pending<T>(std::make_shared<pending_request<T, Pointer>>(std::move(o), owner, std::move(q),
                                                                  std::move(f)));
}

/// The outcome of a request without a value of its own.
inline constexpr auto nothing_more = [](const auto&) -> status { return done{}; };

/// Another operation, whose value is converted by `make`.
template <class From, class To, class F>
class pending_made final : public detail::relay<From, To> {
 public:
  pending_made(pending<From> from, F make)
      : detail::relay<From, To>(std::move(from)), make_(std::move(make)) {}

  void receive(result<From> how) noexcept override {
    const auto self = std::move(this->self_);
    if (!how) return this->to_->receive(std::move(how.error()));
    this->to_->receive(made_of(std::move(*how)));
  }

 private:
  result<To> made_of(From value) noexcept try { return make_(std::move(value)); } catch (...) {
    return without_memory(true);
  }

  F make_;
};

template <class To, class From, class F>
pending<To> async_then(pending<From> from, F make) {
  return pending<To>(std::make_shared<pending_made<From, To, F>>(std::move(from), std::move(make)));
}

/// Operations one after the other, up to the first that fails. At least one is required.
class pending_in_turn final : public detail::relay<done, done> {
 public:
  explicit pending_in_turn(std::vector<pending<done>> all)
      : relay(std::move(all.front())), all_(std::move(all)) {}

  void receive(status how) noexcept override {
    auto self = std::move(self_);
    if (!how || begun_ == all_.size()) return to_->receive(std::move(how));
    self_ = std::move(self);
    detail::start_or_fail([this] { return std::move(all_[begun_++]); }, *this);
  }

 private:
  std::vector<pending<done>> all_;
  std::size_t begun_ = 1;
};

inline pending<done> async_in_turn(std::vector<pending<done>> all) {
  return pending<done>(std::make_shared<pending_in_turn>(std::move(all)));
}

}  // namespace holdfast::engine
