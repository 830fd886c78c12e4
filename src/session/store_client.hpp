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

/// Until when a refund that failed so may be sent again: a store remembers it for a minute, and
/// would count it again later.
boot_time refund_repeated_until(const failure& f, boot_time sent) noexcept;

/// What a session says to its store, and what both ends need to know of it. Everything that goes
/// to the store goes through here: counted, refused in a forked child, and waited for no longer
/// than the present call_limit says. What is left so is errc::unavailable, and may still be carried
/// out. Thread-safe.
class store_client {
 public:
  store_client(std::unique_ptr<store::session_store> store, session_options options);
  /// In a forked child it leaves everything alone: threads and connections are the parent's.
  ~store_client();
  store_client(const store_client&) = delete;
  store_client& operator=(const store_client&) = delete;

  /// Before it is used: `tell` is called each time something is sent whose answer nobody waits for.
  void on_answers_to_come(std::function<void()> tell) { answers_to_come_ = std::move(tell); }

  result<store::permits_reply> permits(std::string_view name, const store::permits_command& c);
  /// As session_store::permits_later. `then` may use this session: it lasts until all have come.
  void permits_later(std::string_view name, const store::permits_command& c,
                     std::function<void(result<store::permits_reply>)> then);
  void settle();
  /// As posting_store::post, where the store is one and the time is the real one; else false.
  bool post(std::string_view name, const store::permits_command& c,
            store::posting_store::listener& then);
  store::posting_store::source answers();
  void collect();
  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c);
  /// Tokens that come when nobody waits for them any more go back.
  result<store::rate_reply> rate(std::string_view name, const store::rate_command& c);
  /// Gives back what that take got. Waits for the store for a moment only, and then goes on behind.
  void refund(std::string_view name, store::rate_command take) noexcept;
  result<std::vector<std::string>> names();
  result<store::bucket_list> buckets(std::string_view name);
  /// Many of them in as few round trips as the store can.
  std::vector<result<store::permits_reply>> permits(std::span<const store::named_command> batch);
  std::vector<result<store::permits_reply>> execute_batch(
      std::span<const store::named_command> batch);
  result<std::vector<store::permits_reply>> acquire_together(
      std::span<const store::named_command> all);
  /// Its permit is the keeper's to give back if it comes when nobody waits for it any more; its
  /// tokens go back.
  result<store::admission> admit(const store::named_command& permits, std::string_view limiter,
                                 const store::rate_command& take);
  result<store::identity> identify();
  /// What two sessions have in common whose names are the same locks, whatever URLs they were
  /// opened by. Empty if the store does not say; nothing if it is away. A round trip each time: a
  /// server that is started anew says something else.
  std::optional<std::string> place();
  result<store::facts> facts();
  result<std::optional<std::chrono::microseconds>> remembers_for();
  result<store::standing> standing_of(std::string_view name, const store::owner_id& owner);

  const store::capabilities& can() const noexcept { return store_->can(); }
  const std::string& url() const noexcept { return store_->url(); }
  const std::string& peer() const noexcept { return store_->inbox().peer(); }
  const session_options& options() const noexcept { return options_; }
  holdfast::clock& clock() noexcept { return *clock_; }
  boot_time now() const noexcept { return clock_->now(); }
  engine::dispatcher& dispatcher() noexcept { return *dispatcher_; }
  engine::callers& callers() noexcept { return *callers_; }
  engine::outage& outage() noexcept { return outage_; }
  /// In a child none: what asks is refused, and a thread of the parent may have the ids' mutex.
  store::owner_id new_owner() { return forked() ? store::owner_id{} : ids_.next(); }
  std::uint64_t operations() const noexcept { return operations_.load(std::memory_order_relaxed); }

  /// "host pid program reason": how people see the holder of a name.
  std::string note(std::string_view reason) const;
  std::string full_name(std::string_view name) const {
    return options_.name_prefix + std::string(name);
  }

  /// What a thread of this process did before a command that it sent happens before what another
  /// one does after an answer or notification that it had later, whatever session each uses. The
  /// store orders them; these say so in terms of the memory model, as std::mutex promises.
  static void publish() noexcept;
  static void observe() noexcept;

  /// To the observer; what it throws stays there.
  void tell(event& what) noexcept;
  void tell(event&& what) noexcept { tell(what); }

  /// True in a child of the process that made this session.
  bool forked() const noexcept { return maker_.forked(); }
  /// Whether the calling thread has no time left to ask anything.
  bool out_of_time() const noexcept { return may_be_left() && now() >= call_limit::present(); }
  /// errc::forked in a child, else nothing.
  status usable() const;
  /// Completes a failure with where it happened, for throw_failure.
  failure located(failure f, std::string_view operation, std::string_view name) const;

 private:
  /// Before so many commands go to the store.
  status begin(std::size_t commands = 1);
  bool may_be_left() const noexcept;
  /// The answer, or `left` if there was none at the limit: then the call goes on by itself, and
  /// `undo` is called with what came of it.
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
  store::posting_store* posting_;  ///< the same, if it is one
  std::unique_ptr<engine::dispatcher> dispatcher_;
  std::function<void()> answers_to_come_;
  // Last: its threads use everything above.
  engine::outage outage_;
  std::unique_ptr<engine::callers> callers_;
};

}  // namespace holdfast::engine
