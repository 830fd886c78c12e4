#pragma once

#include <holdfast/async.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "engine/acquire.hpp"

namespace holdfast::engine {

/// What somebody wants to wait for without a thread.
struct order {
  std::shared_ptr<core> session;  ///< let go of when it is begun
  std::shared_ptr<const spec> what;
  std::string_view operation;  ///< "mutex", for messages
  time_frame time;
  std::stop_token stop{};
};

/// One wait without a thread: the steps of wait_steps, with questions that go out together with
/// those of others, and every way to end. Subclasses say what is asked, and who is told. If the
/// store hangs, that is told soon after the deadline all the same, and what is under way goes on:
/// what comes of it is given back.
class pending_wait : public errand {
 public:
  explicit pending_wait(order o);

  next step() final;
  next answer(result<store::permits_reply> reply, boot_time sent) final;
  next take(const store::notice& n) final;
  std::vector<std::string> watched() const final;
  void overdue() final;

 protected:
  void begin(std::stop_token stop);

  virtual question& asked() = 0;
  virtual claim asks_for() const { return {}; }
  /// What comes before the store.
  virtual next come_in() { return at_store(); }
  virtual void won(std::shared_ptr<core> session) = 0;
  /// What is to be sent so that nothing stays behind, if anything.
  virtual std::optional<store::renewal> leaving(const failure& why) = 0;
  /// That for permits: their release, or nothing if the keeper has to send it, behind a call that
  /// was left.
  std::optional<store::renewal> release_of(const failure& why);
  /// … and what after the answer to that, if anything.
  virtual std::optional<store::renewal> after_leaving(const store::permits_reply&) { return {}; }
  virtual void fail(failure f) = 0;
  /// Whether the wait can end while the runner's thread is stuck …
  virtual bool can_be_left() const { return true; }
  /// As many as a driver may send one after the other.
  virtual std::uint32_t commands_of_a_try() const { return 1; }
  /// … and how it is told then, by another thread: with nothing that is the runner's.
  virtual void fail_overdue(failure f) {
    fail(session_.located(observed(std::move(f)), operation_, spec_->name));
  }
  /// Before the receiver is told: true for one thread only.
  bool may_tell() noexcept { return !told_.exchange(true); }
  /// Tells the observer, where the synchronous form does.
  virtual failure observed(failure f) { return f; }
  /// Before anybody is told.
  virtual void let_go() {}

  next at_store();
  next look_again(boot_time until);
  next over();
  next end(failure f);
  /// The one that asked to stop, if any did; else one that did not.
  const std::stop_token& stop() const noexcept;
  failure stopped() const;
  std::string_view tried() const noexcept { return operation_; }

  core& session_;
  const std::shared_ptr<const spec> spec_;
  const time_frame time_;
  waits waited_{};

 private:
  struct rouse {
    errand* who;
    void operator()() const { who->wake(); }
  };
  using on_stop = std::optional<std::stop_callback<rouse>>;

  void abandon();
  next ask();
  next settle(std::optional<status> ended);
  next succeed();
  next give_up(failure f);

  std::shared_ptr<core> keeps_session_;
  std::weak_ptr<core> weak_session_;
  const std::string_view operation_;
  const std::stop_token stop_;
  std::stop_token receivers_stop_;
  const std::stop_token closing_;

  std::atomic<bool> told_{false};
  std::atomic<wait_steps::heard> heard_{};

  // Of the runner's thread.
  on_stop on_stop_;
  on_stop on_receivers_stop_;
  boot_time until_ = forever;
  boot_time limit_ = forever;          ///< no answer is waited for any longer
  std::unique_ptr<wait_steps> steps_;  // of few: most stand at a gate
  bool told_early_ = false;
  bool begun_ = false;
  std::unique_ptr<failure> leaving_;
};

/// Something short that is done on the runner's thread.
class chore : public errand {
 public:
  explicit chore(std::shared_ptr<core> session)
      : errand(session->runner()), session_(std::move(session)), id_(session_->ids().next()) {}
  next answer(result<store::permits_reply>, boot_time) override { return {}; }
  next take(const store::notice&) final { return {}; }
  const store::owner_id& owner() const noexcept final { return id_; }

 protected:
  /// Whether somebody will do it.
  status begin();
  const std::shared_ptr<core> session_;

 private:
  const store::owner_id id_;
};

/// An errand that tells a receiver how it ended.
template <class Base, class T>
class telling : public Base, public detail::operation<T> {
 public:
  using Base::Base;

 protected:
  void tell(result<T> how) {
    const call_limit users{call_limit::none::at_all};
    std::exchange(receiver_, nullptr)->receive(std::move(how));
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
  void fail(failure f) final { this->tell(std::move(f)); }
};

/// One command, which goes out together with those of others.
template <class T>
class pending_command : public telling<chore, T> {
 public:
  using telling<chore, T>::telling;
  void start(detail::receiver<T>& to) final {
    this->receiver_ = &to;
    if (auto ok = this->begin(); !ok) this->tell(std::move(ok.error()));
  }
  errand::next step() final {
    auto question = ask();
    if (!question) return {.over = true};
    return {.ask = question};
  }
  errand::next answer(result<store::permits_reply> reply, boot_time) final {
    this->tell(learn(std::move(reply)));
    return {.over = true};
  }

 protected:
  /// What to send; if nothing, the receiver has been told.
  virtual std::optional<store::renewal> ask() = 0;
  virtual result<T> learn(result<store::permits_reply> reply) = 0;
};

pending<lease> async_acquire(order o, const claim& c);
pending<permit> async_acquire_detached(order o);

}  // namespace holdfast::engine
