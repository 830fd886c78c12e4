#pragma once

#include <holdfast/async.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "wait/acquire.hpp"

namespace holdfast::engine {

/// A wait without a thread, before it is begun.
struct async_request {
  std::shared_ptr<session_impl> session;  ///< let go of when it is begun
  std::shared_ptr<const lock_config> what;
  std::string_view operation;  ///< "mutex", for messages
  time_frame time;
  std::stop_token stop{};
  acquire_params how{};
};

/// One wait without a thread: the steps of wait_steps, with requests that go out together with
/// those of others, and every way to end. Subclasses say what is asked, and who is told. If the
/// store hangs, it ends soon after the deadline all the same: what it has asked is left, and what
/// comes of that is given back.
class pending_wait : public operation {
 public:
  /// `by`, if it is not by the runner that asks the session's store.
  explicit pending_wait(async_request o, engine::runner* by = nullptr);

  next step() final;
  next answer(result<store::permits_reply> reply, boot_time sent) final;
  next take(const store::notification& n) final;
  std::vector<std::string> watched() const final;
  next overdue() final;
  boot_time calls_until() const noexcept final { return limit_; }
  bool broken() noexcept final;

 protected:
  void begin(std::stop_token stop);

  virtual request& asked() = 0;
  /// What comes before the store.
  virtual next come_in() { return at_store(); }
  virtual void won(std::shared_ptr<session_impl> session) = 0;
  /// What is to be sent so that nothing stays behind, if anything.
  virtual std::optional<store::named_command> leaving(const failure& why) = 0;
  void abandon() noexcept;
  /// That for permits: their release, or nothing if the keeper has to send it, behind a call that
  /// was left.
  std::optional<store::named_command> release_of(const failure& why);
  /// … and what, if anything, if the store did not know it any more.
  virtual std::optional<store::permits_command> owed() noexcept { return {}; }
  virtual void fail(failure f) = 0;
  /// As many as a driver may send one after the other.
  virtual std::uint32_t commands_of_a_try() const { return 1; }
  /// Where it is broken: false as long as another thread works for it, and will wake it.
  virtual bool come_out() noexcept { return true; }
  /// Without memory or time for it here, what `leaving` says is the keeper's.
  virtual void leave_to_keeper() noexcept {}
  /// Tells the observer, where the synchronous form does.
  virtual failure observed(failure f) { return f; }
  /// Before the receiver is called.
  virtual void let_go() {}

  next at_store();
  next retry_after(boot_time until);
  next over();
  next end(failure f);
  /// The one that asked to stop, if any did; else one that did not.
  const std::stop_token& stop() const noexcept;
  failure stopped() const;
  std::string_view tried() const noexcept { return operation_; }

  session_impl& session_;
  const std::shared_ptr<const lock_config> config_;
  const acquire_params how_;
  const time_frame time_;
  waits waited_{};

 private:
  struct rouse {
    pending_wait* who;
    void operator()() const { who->stop_soon(); }
  };
  using on_stop = std::optional<std::stop_callback<rouse>>;

  next ask();
  next settle(std::optional<status> ended);
  next succeed();
  next give_up(failure f);
  failure in_vain();
  bool is_try() const noexcept;
  void stop_soon() noexcept;
  void left_unanswered() noexcept;

  std::shared_ptr<session_impl> keeps_session_;
  std::weak_ptr<session_impl> weak_session_;
  const std::string_view operation_;
  const std::stop_token stop_;
  std::stop_token receivers_stop_;
  const std::stop_token closing_;

  on_stop on_stop_;
  on_stop on_receivers_stop_;
  boot_time until_ = forever;
  boot_time limit_ = forever;    ///< no answer is waited for any longer
  boot_time ends_by_ = forever;  ///< the same of a try, which has no limit of its own

  std::unique_ptr<wait_steps> steps_;  // of few: most stand at a local queue
  bool told_early_ = false;
  bool begun_ = false;
  bool unanswered_ = false;
  std::unique_ptr<failure> leaving_;
  std::optional<store::permits_command> owed_{};  ///< … and what was sent behind that
};

/// Something short that is done on the runner's thread.
class short_operation : public operation {
 public:
  explicit short_operation(std::shared_ptr<session_impl> session)
      : short_operation(session, session->runner()) {}
  short_operation(std::shared_ptr<session_impl> session, engine::runner& by)
      : operation(by), session_(std::move(session)), id_(session_->new_owner()) {}
  next answer(result<store::permits_reply>, boot_time) override { return {}; }
  next take(const store::notification&) final { return {}; }
  const store::owner_id& owner() const noexcept final { return id_; }

 protected:
  /// Whether a thread will do it.
  status begin();
  const std::shared_ptr<session_impl> session_;

 private:
  const store::owner_id id_;
};

/// An operation that tells a receiver how it ended.
template <class Base, class T>
class telling : public Base, public detail::operation<T> {
 public:
  using Base::Base;

 protected:
  void tell(result<T> how) {
    const call_limit users{call_limit::none::at_all};
    std::exchange(receiver_, nullptr)->receive(std::move(how));
  }
  void tell_no_memory() noexcept final {
    if (receiver_ != nullptr) tell(without_memory(true));
  }
  detail::receiver<T>* receiver_ = nullptr;
};

template <class Base, class T>
class telling_wait : public telling<Base, T> {
 public:
  using telling<Base, T>::telling;
  void start(detail::receiver<T>& to) final {
    this->receiver_ = &to;
    this->begin(to.stop());
  }

 protected:
  void fail(failure f) override { this->tell(std::move(f)); }
};

template <class T>
class telling_shortly : public telling<short_operation, T> {
 public:
  using telling<short_operation, T>::telling;
  void start(detail::receiver<T>& to) final {
    this->receiver_ = &to;
    if (auto ok = this->begin(); !ok) this->tell(std::move(ok.error()));
  }
};

pending<lease> async_acquire(async_request o);
pending<permit> async_acquire_permit(async_request o);

}  // namespace holdfast::engine
