#include "conformance/exclusive.hpp"

#include <gtest/gtest.h>

#include "conformance/cell.hpp"

namespace conformance {

using holdfast::lease;
using holdfast::lock_options;
using holdfast::session;

namespace {

template <class Lock>
class exclusive_of final : public exclusive {
 public:
  template <class... Args>
  explicit exclusive_of(Args&&... args) : lock_(std::forward<Args>(args)...) {}
  lease acquire(std::stop_token stop) override { return lock_.acquire(stop); }
  std::optional<lease> try_acquire() override { return lock_.try_acquire(); }
  std::optional<lease> try_acquire_for(std::chrono::nanoseconds t, std::stop_token stop) override {
    return lock_.try_acquire_for(t, stop);
  }

 private:
  Lock lock_;
};

class whole_semaphore final : public exclusive {
 public:
  whole_semaphore(session s, const std::string& name, const lock_options& o)
      : semaphore_(std::move(s), name, all, o) {}
  lease acquire(std::stop_token stop) override { return semaphore_.acquire(all, stop); }
  std::optional<lease> try_acquire() override { return semaphore_.try_acquire(all); }
  std::optional<lease> try_acquire_for(std::chrono::nanoseconds t, std::stop_token stop) override {
    return semaphore_.try_acquire_for(t, all, stop);
  }

 private:
  static constexpr std::uint32_t all = 5;
  holdfast::semaphore semaphore_;
};

template <class Lock>
class lockable_of final : public lockable {
 public:
  template <class... Args>
  explicit lockable_of(Args&&... args) : lock_(std::forward<Args>(args)...) {}
  void lock() override { lock_.lock(); }
  bool try_lock() override { return lock_.try_lock(); }
  bool try_lock_for(std::chrono::nanoseconds t) override { return lock_.try_lock_for(t); }
  bool lock(std::stop_token stop) override { return lock_.lock(stop); }
  void unlock() override { lock_.unlock(); }
  std::uint64_t fence() override { return lock_.fence(); }
  void check() override { lock_.check(); }
  std::stop_token lost() override { return lock_.lost(); }
  const std::string& name() override { return lock_.name(); }

 private:
  Lock lock_;
};

// Longer than any test waits: an owner that gets the lock was notified, and did not wait until the
// time was over.
lock_options lingering(lock_options o) {
  o.linger = std::chrono::hours(1);
  return o;
}

holdfast::shared_mutex_options shared_options(const lock_options& o) {
  holdfast::shared_mutex_options all;
  static_cast<lock_options&>(all) = o;
  return all;
}

}  // namespace

std::unique_ptr<exclusive> make_exclusive(const std::string& primitive, session s,
                                          const std::string& name, const lock_options& own) {
  using namespace holdfast;
  const lock_options o = of_row(own);
  if (primitive == "mutex") return std::make_unique<exclusive_of<mutex>>(s, name, o);
  if (primitive == "lingering_mutex") {
    return std::make_unique<exclusive_of<mutex>>(s, name, lingering(o));
  }
  if (primitive == "fair_mutex") return std::make_unique<exclusive_of<fair_mutex>>(s, name, o);
  if (primitive == "semaphore") return std::make_unique<whole_semaphore>(s, name, o);
  if (primitive == "shared_mutex") {
    return std::make_unique<exclusive_of<shared_mutex>>(s, name, shared_options(o));
  }
  throw std::invalid_argument(primitive + " is not exclusive");
}

std::unique_ptr<lockable> make_lockable(const std::string& primitive, session s,
                                        const std::string& name, const lock_options& own) {
  using namespace holdfast;
  const lock_options o = of_row(own);
  if (primitive == "mutex") return std::make_unique<lockable_of<mutex>>(s, name, o);
  if (primitive == "lingering_mutex") {
    return std::make_unique<lockable_of<mutex>>(s, name, lingering(o));
  }
  if (primitive == "fair_mutex") return std::make_unique<lockable_of<fair_mutex>>(s, name, o);
  if (primitive == "recursive_mutex") {
    return std::make_unique<lockable_of<recursive_mutex>>(s, name, o);
  }
  if (primitive == "shared_mutex") {
    return std::make_unique<lockable_of<shared_mutex>>(s, name, shared_options(o));
  }
  throw std::invalid_argument(primitive + " is not lockable");
}

holdfast::errc reason_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const holdfast::error& e) {
    EXPECT_FALSE(e.operation().empty()) << e.what();
    return e.reason();
  }
  ADD_FAILURE() << "nothing was thrown";
  return holdfast::errc::internal;
}

}  // namespace conformance
