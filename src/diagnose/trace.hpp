#pragma once

#include <holdfast/timed.hpp>
#include <memory>
#include <stop_token>

#include "diagnose/deadlock_watch.hpp"
#include "lease/hold.hpp"
#include "session/session_impl.hpp"

namespace holdfast::engine {

/// One acquisition by the calling thread, for the debug options of its session: the locks that the
/// thread holds already, and its wait, until this object is destroyed. Within another trace of the
/// same thread it does nothing: they are one acquisition.
class trace {
 public:
  trace(const std::shared_ptr<session_impl>& session, const lock_config& s, const acquire_params& c,
        wait_time wait, std::stop_token stop);
  ~trace();
  trace(const trace&) = delete;
  trace& operator=(const trace&) = delete;

  /// The token that ends the wait: the caller's stop, or a deadlock.
  std::stop_token stop() const noexcept { return stop_; }
  /// The acquisition has succeeded: this thread holds the lock.
  static void got(const lease& l);
  /// The same for the std style, in which this thread has to unlock itself.
  static void got_in_std_style(const lease& l);
  /// Replaces the failure of a wait that deadlock detection has stopped.
  static failure judged(failure f);

 private:
  struct pass_on {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  /// Watches nothing yet. With this constructor done, the destructor runs even if the other one
  /// throws.
  trace(const std::shared_ptr<session_impl>& session, wait_time wait, std::stop_token stop);
  void watch(const lock_config& s, const acquire_params& c);

  const std::shared_ptr<session_impl>& session_;
  const wait_time wait_;
  std::stop_token stop_;
  bool outermost_ = false;
  std::shared_ptr<blocked> who_;
  std::unique_ptr<std::stop_callback<pass_on>> callers_;
};

}  // namespace holdfast::engine
