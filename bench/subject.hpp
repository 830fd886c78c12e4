#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {
class session;
}

namespace bench {

/// Where a run takes place.
struct place {
  std::filesystem::path
      folder;       ///< for the files of the baselines; beside the store's file if it has one
  std::string url;  ///< holdfast's store
  /// The options of holdfast's locks: "" for the defaults, "linger", "fifo" (max_bypass = 0),
  /// "unconfirmed" (unconfirmed_release), "election" (of a leader, in place of a mutex).
  std::string_view variant{};
};

/// The greatest number of locks, which are numbered from 0.
inline constexpr unsigned max_locks = 16;

/// One thread's handle of one lock.
class handle {
 public:
  virtual ~handle() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
};

/// The handle of anything that the standard calls BasicLockable.
template <class Lock>
class grip_of final : public handle {
 public:
  explicit grip_of(Lock& l) : lock_{l} {}
  void lock() override { lock_.lock(); }
  void unlock() override { lock_.unlock(); }

 private:
  Lock& lock_;
};

/// A way to lock, in one process. Thread-safe.
class subject {
 public:
  virtual ~subject() = default;
  /// For the calling thread.
  virtual std::unique_ptr<handle> grip(unsigned lock) = 0;
  /// Commands sent to a store since it was opened, if it counts them.
  virtual std::uint64_t store_operations() const { return 0; }
  /// holdfast's own.
  virtual holdfast::session* session() { return nullptr; }
};

/// A subject whose handles are made from the store's URL and a number.
template <class Grip>
class locks final : public subject {
 public:
  explicit locks(const place& at) : url_{at.url} {}
  std::unique_ptr<handle> grip(unsigned lock) override {
    return std::make_unique<Grip>(url_, lock);
  }

 private:
  std::string url_;
};
template <class Grip>
std::unique_ptr<subject> open_locks(const place& at) {
  return std::make_unique<locks<Grip>>(at);
}

/// The processor time that the store's server has spent since it began, if the server reports it;
/// otherwise 0.
std::int64_t store_cpu_ns(std::string_view url);

/// holdfast, or a baseline: what people would use in its place. A new baseline (a Redis loop, say)
/// is a file with three functions and a line in subjects.cpp.
struct subject_kind {
  std::string_view name;
  bool counts_operations;
  /// Whether it makes sense beside this store.
  bool (*fits)(std::string_view url);
  /// Whether it works between processes.
  bool (*across_processes)(const place&);
  /// Called once, before any process opens it.
  void (*prepare)(const place&);
  std::unique_ptr<subject> (*open)(const place&);
};

/// holdfast first.
std::span<const subject_kind> all_subjects();
/// Null if there is none of that name.
const subject_kind* find_subject(std::string_view name);

/// Why this store has no such locks of ours; empty if it has.
std::string refusal_of(const place&);

/// The scheme of a URL: the part before the colon.
std::string_view scheme_of(std::string_view url);

/// Functions that several kinds share.
inline bool on_one_host(std::string_view url) {
  return scheme_of(url) == "sqlite" || scheme_of(url) == "memory";
}
inline bool everywhere(std::string_view) { return true; }
inline bool always(const place&) { return true; }
inline void nothing(const place&) {}

extern const subject_kind holdfast_subject;
extern const subject_kind fair_mutex_baseline;
extern const subject_kind metrics_baseline;
extern const subject_kind std_baseline;
extern const subject_kind flock_baseline;
extern const subject_kind pthread_baseline;
extern const subject_kind sqlite_row_baseline;
extern const subject_kind sqlite_transaction_baseline;
extern const subject_kind memcached_add_baseline;
extern const subject_kind redis_loop_baseline;
extern const subject_kind redis_push_baseline;
extern const subject_kind etcd_recipe_baseline;
extern const subject_kind zookeeper_recipe_baseline;
extern const subject_kind postgres_row_baseline;
extern const subject_kind listen_notify_baseline;
extern const subject_kind postgres_advisory_baseline;
extern const subject_kind mariadb_row_baseline;
extern const subject_kind mariadb_user_lock_baseline;

}  // namespace bench
