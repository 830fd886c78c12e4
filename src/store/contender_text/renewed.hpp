#pragma once

#include <atomic>
#include <cstdint>
#include <holdfast/result.hpp>
#include <memory>
#include <mutex>

namespace holdfast::store::contender_text {

/// The shared session, or lease, on which all nodes of a session depend at the servers: when it is
/// over(), the next call that needs it begins another one. Thread-safe.
template <class Session>
class renewed {
 public:
  using link = std::shared_ptr<Session>;

  /// The latest one, even if it is over; null before the first.
  link present() const {
    const std::lock_guard guard{mutex_};
    return link_;
  }

  /// Returns a session that is not over. If necessary, `begin` makes it, and gets the former one.
  /// That may take long; present() does not wait for it. Callers that waited for a failed attempt
  /// make no attempt of their own: otherwise, while the servers do not answer, the last of many
  /// callers would wait for the attempts of all.
  template <class Begin>
  result<link> current(Begin begin) {
    if (const auto now = present(); now && !now->over()) return now;
    const auto failed_before = failed_.load();
    link former;  // destroyed after the lock: its end waits for its thread
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
  std::atomic<std::uint64_t> failed_{0};  ///< failed attempts to begin one
  failure why_{};                         ///< of the last of them
  mutable std::mutex mutex_;
  link link_;
};

}  // namespace holdfast::store::contender_text
