#pragma once

#include <holdfast/async.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "wait/acquire.hpp"

namespace holdfast::engine {

/// The parameters of an asynchronous wait that has not begun yet.
struct async_request {
  std::shared_ptr<session_impl> session;  ///< released when the operation has begun
  std::shared_ptr<const lock_config> what;
  std::string_view operation;  ///< "mutex", for messages
  time_frame time;
  std::stop_token stop{};
  acquire_params how{};
};

/// One asynchronous wait: the steps of wait_steps, whose requests go out together with those of
/// other operations, and every way to end. A subclass defines the request and the receiver. If the
/// store hangs, the wait ends soon after its deadline all the same: the unanswered request is
/// abandoned, and whatever it acquires is released.
class pending_wait : public operation {
 public:
  /// `by`: the runner to use, if not the session's.
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
  /// The step before the first request to the store; by default there is none.
  virtual next come_in() { return at_store(); }
  virtual void won(std::shared_ptr<session_impl> session) = 0;
  /// The command to send so that nothing stays at the store, if any.
  virtual std::optional<store::named_command> leaving(const failure& why) = 0;
  void abandon() noexcept;
  /// That command for permits: their release. Returns nothing if the keeper has to send it, after a
  /// call that was abandoned.
  std::optional<store::named_command> release_of(const failure& why);
  /// The command to send if the store did not know the released owner any more, if any.
  virtual std::optional<store::permits_command> owed() noexcept { return {}; }
  virtual void fail(failure f) = 0;
  /// The number of commands of one try that a driver may send one after the other.
  virtual std::uint32_t commands_of_a_try() const { return 1; }
  /// Prepares the end after a lack of memory. Returns false while another thread works for this
  /// operation; that thread will wake it.
  virtual bool come_out() noexcept { return true; }
  /// Passes the clean-up to the keeper, if this operation has no memory or no time for it.
  virtual void leave_to_keeper() noexcept {}
  /// Reports the failure to the observer, if the synchronous form does.
  virtual failure observed(failure f) { return f; }
  /// Frees what the operation holds in this process. Called before the receiver is.
  virtual void let_go() {}

  next at_store();
  next retry_after(boot_time until);
  next over();
  next end(failure f);
  /// The stop token on which a stop was requested, if any; otherwise one without a request.
  const std::stop_token& stop() const noexcept;
  failure stopped() const;
  std::string_view tried() const noexcept { return operation_; }

  session_impl& session_;
  const std::shared_ptr<const lock_config> config_;
  const acquire_params how_;
  const time_frame time_;
  const std::stop_token stop_;  ///< of the caller
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
  std::stop_token receivers_stop_;
  const std::stop_token closing_;

  on_stop on_stop_;
  on_stop on_receivers_stop_;
  boot_time until_ = forever;
  boot_time limit_ = forever;  ///< time limit for any single answer
  /// The time by which a try ends; like `limit_`, but also set if the call has no limit.
  boot_time ends_by_ = forever;

  // Allocated late, because most operations wait in a local queue.
  std::unique_ptr<wait_steps> steps_;
  bool told_early_ = false;
  bool begun_ = false;
  bool unanswered_ = false;
  std::unique_ptr<failure> leaving_;
  std::optional<store::permits_command> owed_{};  ///< the command that was sent after the release
};

/// A short operation, done on the runner's thread.
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
  /// Queues the operation. Fails if no thread will run it.
  status begin();
  const std::shared_ptr<session_impl> session_;

 private:
  const store::owner_id id_;
};

/// An operation that passes its result to a receiver.
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
