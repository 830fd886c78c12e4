#pragma once

#include <holdfast/holdfast.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

/// The primitives under common interfaces: one holder at a time, and the standard's lockables.
namespace conformance {

/// Anything that grants one lease at a time.
class exclusive {
 public:
  virtual ~exclusive() = default;
  virtual holdfast::lease acquire(std::stop_token stop = {}) = 0;
  virtual std::optional<holdfast::lease> try_acquire() = 0;
  virtual std::optional<holdfast::lease> try_acquire_for(std::chrono::nanoseconds timeout,
                                                         std::stop_token stop = {}) = 0;
};

/// mutex, fair_mutex, shared_mutex (as writer), semaphore (of five, all five at once).
std::unique_ptr<exclusive> make_exclusive(const std::string& primitive, holdfast::session s,
                                          const std::string& name,
                                          const holdfast::lock_options& options = {});

/// Anything that meets TimedLockable; itself TimedLockable.
class lockable {
 public:
  virtual ~lockable() = default;
  virtual void lock() = 0;
  virtual bool try_lock() = 0;
  virtual bool try_lock_for(std::chrono::nanoseconds timeout) = 0;
  virtual bool lock(std::stop_token stop) = 0;
  virtual void unlock() = 0;
  virtual std::uint64_t fence() = 0;
  virtual void check() = 0;
  virtual std::stop_token lost() = 0;
  virtual const std::string& name() = 0;
};

/// mutex, fair_mutex, recursive_mutex, shared_mutex.
std::unique_ptr<lockable> make_lockable(const std::string& primitive, holdfast::session s,
                                        const std::string& name,
                                        const holdfast::lock_options& options = {});

/// The reason of the error that `action` throws; the test fails if there is none.
holdfast::errc reason_of(const std::function<void()>& action);

}  // namespace conformance
