#pragma once

#include <holdfast/timed.hpp>
#include <memory>
#include <stop_token>

#include "diagnose/deadlock_watch.hpp"
#include "lease/hold.hpp"
#include "session/session_impl.hpp"

namespace holdfast::engine {

/// One acquisition by the calling thread, as the debug options of its session see it: what it has
/// already, and that it waits, until this ends. Within another one of the same thread it does
/// nothing: they are one.
class trace {
 public:
  trace(const std::shared_ptr<session_impl>& session, const lock_config& s, const acquire_params& c,
        wait_time wait, std::stop_token stop);
  ~trace();
  trace(const trace&) = delete;
  trace& operator=(const trace&) = delete;

  /// What ends the wait: the caller's, or that it would be for ever.
  std::stop_token stop() const noexcept { return stop_; }
  /// What became of it: this thread has it.
  static void got(const lease& l);
  /// … and has to unlock it itself.
  static void got_in_std_style(const lease& l);
  /// A wait of this thread that ended so: by what it really was.
  static failure judged(failure f);

 private:
  struct pass_on {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  /// Of nothing yet: what is made of it ends with it, also if the rest cannot be made.
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
