#pragma once

#include <atomic>
#include <cstdint>
#include <holdfast/result.hpp>
#include <memory>
#include <mutex>

namespace holdfast::store::contender_text {

/// What all nodes of a session hang on at the servers: when it is over(), the next call that needs
/// it begins another one. Thread-safe.
template <class Session>
class renewed {
 public:
  using link = std::shared_ptr<Session>;

  /// The latest, be it over or not; null before the first.
  link present() const {
    const std::lock_guard guard{mutex_};
    return link_;
  }

  /// One that is not over; if need be, `begin` makes it, and is told of the former one. That may
  /// last: meanwhile present() can be asked. Those that wait for an attempt that fails make no
  /// attempt of their own: while the servers hang, the last of many would wait for all of them.
  template <class Begin>
  result<link> current(Begin begin) {
    if (const auto now = present(); now && !now->over()) return now;
    const auto failed_before = failed_.load();
    link former;  // outlives the lock: its end waits for its thread
    const std::lock_guard one_at_a_time{beginning_};
    former = present();
    if (former && !former->over()) return former;
    if (failed_ != failed_before) return failure(why_);
    result<link> begun = begin(former.get());
    if (!begun) {
      why_ = begun.error();
      ++failed_;
      return begun;
    }
    const std::lock_guard guard{mutex_};
    link_ = std::move(*begun);
    return link_;
  }

 private:
  std::mutex beginning_;
  std::atomic<std::uint64_t> failed_{0};  ///< attempts to begin one
  failure why_{};                         ///< the last of them
  mutable std::mutex mutex_;
  link link_;
};

}  // namespace holdfast::store::contender_text
