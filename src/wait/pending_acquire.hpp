#pragma once

#include "local/local_queue.hpp"
#include "wait/pending_wait.hpp"

namespace holdfast::engine {

/// acquire(), as an operation of the runner.
class pending_acquire : public pending_wait {
 public:
  explicit pending_acquire(async_request o);

  const store::owner_id& owner() const noexcept final { return acquisition_.owner(); }

 protected:
  /// Called with a lease of the lock that the process holds already.
  virtual void won(lease mine) = 0;
  using pending_wait::won;

  next come_in() override;
  next won_in_local_queue(lease mine);
  void let_go() override { acquisition_.leave_turn(); }
  failure observed(failure f) final { return gave_up(session_, *config_, time_, std::move(f)); }

  void leave_to_keeper() noexcept final { abandon(); }
  bool come_out() noexcept final;

  acquisition acquisition_;

 private:
  request& asked() final { return acquisition_; }
  next on_entry(local_queue::entry in);
  std::optional<store::named_command> leaving(const failure& why) final;

  bool in_line_ = false;
};

/// An acquisition whose result is a lease.
class pending_lease : public telling_wait<pending_acquire, lease> {
 public:
  using telling_wait::telling_wait;

 protected:
  void won(lease mine) override { tell(std::move(mine)); }
  void won(std::shared_ptr<session_impl> session) override {
    tell(begin_lease(std::move(session)));
  }
  lease begin_lease(std::shared_ptr<session_impl> session) {
    return acquisition_.begin_lease(std::move(session), config_, waited_);
  }
};

}  // namespace holdfast::engine
