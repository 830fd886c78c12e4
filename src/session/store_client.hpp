#pragma once

#include <atomic>
#include <functional>
#include <holdfast/options.hpp>
#include <holdfast/store/posting.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "session/callers.hpp"
#include "session/dispatcher.hpp"
#include "session/forks.hpp"
#include "session/outage.hpp"
#include "session/owner_ids.hpp"

namespace holdfast::engine {

/// Until when a refund that failed with `f` may be sent again: a store remembers a refund for a
/// minute, and would count it a second time later.
boot_time refund_repeated_until(const failure& f, boot_time sent) noexcept;

/// The session's interface to its store, and the data that its users share. Every request to the
/// store goes through here. It is counted, refused in a forked child, and waited for no longer than
/// the present call_limit. A request that is abandoned at the limit returns errc::unavailable, and
/// may still be carried out. Thread-safe.
class store_client {
 public:
  store_client(std::unique_ptr<store::session_store> store, session_options options);
  /// In a forked child it leaves everything alone: threads and connections are the parent's.
  ~store_client();
  store_client(const store_client&) = delete;
  store_client& operator=(const store_client&) = delete;

  /// To be called before the client is used. `tell` is called each time a request is sent whose
  /// answer no thread waits for.
  void on_answers_to_come(std::function<void()> tell) { answers_to_come_ = std::move(tell); }

  result<store::permits_reply> permits(std::string_view name, const store::permits_command& c);
  /// As session_store::permits_later. The present call_limit does not bound it. `then` may use this
  /// session, which exists until all answers have arrived.
  void permits_later(std::string_view name, const store::permits_command& c,
                     std::function<void(result<store::permits_reply>)> then);
  void settle();
  /// As posting_store::post, if the store implements that and the clock is the real one; otherwise
  /// returns false.
  bool post(std::string_view name, const store::permits_command& c,
            store::posting_store::listener& then);
  store::posting_store::source answers();
  void collect();
  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c);
  /// Tokens that arrive after the caller has left are refunded.
  result<store::rate_reply> rate(std::string_view name, const store::rate_command& c);
  /// Refunds the tokens of that take. Waits briefly for the store, and then goes on in the
  /// background.
  void refund(std::string_view name, store::rate_command take) noexcept;
  result<std::vector<std::string>> names();
  result<store::bucket_list> buckets(std::string_view name);
  /// Carries out many commands in as few round trips as the store can.
  std::vector<result<store::permits_reply>> permits(std::span<const store::named_command> batch);
  std::vector<result<store::permits_reply>> execute_batch(
      std::span<const store::named_command> batch);
  result<std::vector<store::permits_reply>> acquire_together(
      std::span<const store::named_command> all);
  /// If the answer arrives after the caller has left, the keeper has to release its permit; its
  /// tokens are refunded.
  result<store::admission> admit(const store::named_command& permits, std::string_view limiter,
                                 const store::rate_command& take);
  result<store::identity> identify();
  /// Identifies the store's data: two sessions with the same value use the same locks for the same
  /// names, whatever URLs they were opened by. Empty if the store does not identify itself; nothing
  /// if it is away. Takes a round trip each time, because a restarted server may report another
  /// value.
  std::optional<std::string> place();
  result<store::facts> facts();
  result<std::optional<std::chrono::microseconds>> remembers_for();
  result<store::standing> standing_of(std::string_view name, const store::owner_id& owner);

  const store::capabilities& can() const noexcept { return store_->can(); }
  const std::string& url() const noexcept { return url_; }
  const std::string& peer() const noexcept { return store_->inbox().peer(); }
  const session_options& options() const noexcept { return options_; }
  holdfast::clock& clock() noexcept { return *clock_; }
  boot_time now() const noexcept { return clock_->now(); }
  engine::dispatcher& dispatcher() noexcept { return *dispatcher_; }
  engine::callers& callers() noexcept { return *callers_; }
  engine::outage& outage() noexcept { return outage_; }
  /// Empty in a forked child: its requests are refused, and a thread of the parent may hold the
  /// mutex of the ids.
  store::owner_id new_owner() { return forked() ? store::owner_id{} : ids_.next(); }
  std::uint64_t operations() const noexcept { return operations_.load(std::memory_order_relaxed); }

  /// "host pid program reason": how people see the holder of a name.
  std::string note(std::string_view reason) const;
  std::string full_name(std::string_view name) const {
    return options_.name_prefix + std::string(name);
  }

  /// Order the threads of this process in terms of the C++ memory model, as std::mutex does. What a
  /// thread did before a command that it sent happens before what another thread does after a later
  /// answer or notification, whatever session each uses. The store orders the requests themselves.
  static void publish() noexcept;
  static void observe() noexcept;

  /// Calls the observer; exceptions of the observer are dropped.
  void tell(event& what) noexcept;
  void tell(event&& what) noexcept { tell(what); }
  /// Reports a gap in the notifications, if there was one since the last call.
  void tell_gap() noexcept;

  /// True in a child of the process that made this session.
  bool forked() const noexcept { return maker_.forked(); }
  /// Whether the calling thread has a limit, after which it leaves its calls.
  bool may_be_left() const noexcept;
  /// Whether the calling thread has no time left for a request.
  bool out_of_time() const noexcept { return may_be_left() && now() >= call_limit::present(); }
  /// errc::forked in a child, else success.
  status usable() const;
  /// Completes a failure with its location, for throw_failure.
  failure located(failure f, std::string_view operation, std::string_view name) const;

 private:
  /// To be called before that many commands are sent to the store.
  status begin(std::size_t commands = 1);
  /// Returns the answer, or `left` if there was none at the limit. In that case the call goes on by
  /// itself, and `undo` is called with its result.
  template <class Call, class Undo>
  std::invoke_result_t<Call> in_time(const store::owner_id& owner, const Call& call,
                                     std::invoke_result_t<Call> left, const Undo& undo);
  template <class Call>
  std::invoke_result_t<Call> in_time(const store::owner_id& owner, const Call& call,
                                     std::invoke_result_t<Call> left) {
    return in_time(owner, call, std::move(left), [](const auto&) {});
  }
  void give_back_tokens(std::string_view name, store::rate_command take, boot_time until = forever);

  session_options options_;
  holdfast::clock* clock_;
  const maker maker_;
  std::string note_;
  owner_ids ids_;
  std::atomic<std::uint64_t> operations_{0};
  std::unique_ptr<store::session_store> store_;
  const std::string& url_;         ///< the store's: each event has it
  store::posting_store* posting_;  ///< store_ as a posting_store, null if it is none
  std::unique_ptr<engine::dispatcher> dispatcher_;
  std::function<void()> answers_to_come_;
  // Last, because its threads use everything above.
  engine::outage outage_;
  std::unique_ptr<engine::callers> callers_;
};

}  // namespace holdfast::engine
