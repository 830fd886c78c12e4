#pragma once

#include <holdfast/timed.hpp>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/core.hpp"
#include "engine/hold.hpp"

namespace holdfast::engine {

/// What the store answered to one who has to wait.
struct wait_hint {
  std::chrono::microseconds look_again{};
  std::vector<std::string> watch{};  ///< those whose death would be news
};

/// Something that is asked again and again until it is settled.
class question {
 public:
  virtual ~question() = default;
  /// Settled if it returns nothing. `last`: there will be no other time, leave nothing behind.
  virtual result<std::optional<wait_hint>> ask(bool last) = 0;
  /// True if the notice settles it.
  virtual bool take(const store::notice& n) = 0;
};

/// The one wait loop. Asks, waits for a notice or until it is time to look again, asks again; one
/// last try at the deadline. While the store is away it keeps trying, ever more slowly, until the
/// deadline, or session_options::store_timeout if there is none.
/// Fails with timed_out, cancelled, or what the store said.
status wait_until_settled(core& session, mailroom::slot& slot, question& q, boot_time deadline,
                          std::stop_token stop);

/// When a wait that begins now has to end.
boot_time deadline_of(core& session, wait_time wait) noexcept;

/// Whoever waits without a thread of its own is told so that there may be news for it. From any
/// thread, and with the gate's mutex held.
class waker {
 public:
  virtual void wake() = 0;

 protected:
  ~waker() = default;
};

/// One attempt to get permits.
class acquisition final : public question {
 public:
  /// Without a waker it is a thread's, which sleeps.
  acquisition(core& session, const spec& s, const claim& c, waker* w = nullptr);

  result<std::optional<wait_hint>> ask(bool last) override;
  bool take(const store::notice& n) override;

  /// Asks from another thread while this one stands at the gate, and in the same step gives back
  /// what `leaving` holds. The answer is what the next ask() returns. True if `leaving` held it.
  result<bool> ask_instead_of(const store::owner_id& leaving);

  const grant& granted() const noexcept { return grant_; }
  const store::owner_id& owner() const noexcept { return grant_.owner; }

  /// What the thread before left to this one, after gate::entry::passed.
  std::shared_ptr<hold> take_passed() noexcept { return std::move(passed_); }

  enum class at_gate { waiting, chosen, first, asked, passed, gone };

 private:
  friend class gate;
  void rouse() { waker_ != nullptr ? waker_->wake() : gate_changed_.notify_one(); }
  store::permits_command command() const noexcept;
  result<std::optional<wait_hint>> learn(result<store::permits_reply> reply, boot_time sent);
  failure mismatch(const store::permits_reply& reply) const;

  core& session_;
  const spec& spec_;
  claim claim_;
  grant grant_;
  // One moment on both clocks, the store's and ours: ours is the earlier one, to be safe.
  boot_time sent_{};
  std::int64_t store_now_at_ = 0;
  std::optional<result<std::optional<wait_hint>>> answer_;

  waker* const waker_;
  // Changed with the gate's mutex held.
  std::list<acquisition*>::iterator place_{};
  std::atomic<at_gate> at_gate_{at_gate::waiting};
  std::condition_variable gate_changed_;
  std::shared_ptr<hold> passed_;
};

/// Gets permits: through the gate if the spec has one, then at the store. Whatever it fails with,
/// nothing stays behind: what was won too late is released.
result<lease> acquire(const std::shared_ptr<core>& session, const std::shared_ptr<const spec>& s,
                      const claim& c, wait_time wait, std::stop_token stop);

/// The same without a lease object: nobody renews it, whoever knows the owner id may release it.
result<grant> acquire_detached(core& session, const spec& s, wait_time wait, std::stop_token stop);

}  // namespace holdfast::engine
