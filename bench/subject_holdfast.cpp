#include <array>
#include <holdfast/holdfast.hpp>
#include <optional>

#include "bench/subject.hpp"

namespace bench {
namespace {

/// A fair_mutex has no local queue, and refuses its options.
holdfast::lock_options options_for(std::string_view variant, bool fair = false) {
  holdfast::lock_options o;
  if (variant == "linger" && !fair) o.linger = std::chrono::seconds{1};
  if (variant == "fifo" && !fair) o.max_bypass = 0;
  if (variant == "unconfirmed") o.unconfirmed_release = true;
  return o;
}

/// The leader holds it.
class leader_grip final : public handle {
 public:
  leader_grip(const holdfast::session& s, unsigned lock)
      : election_{s, "bench:election:" + std::to_string(lock)} {}
  void lock() override { mine_ = election_.campaign(); }
  void unlock() override { (void)mine_.resign(); }

 private:
  holdfast::election election_;
  holdfast::leadership mine_;
};

/// One session a process, one mutex object a name, as programs have it.
template <class Mutex>
class holdfast_locks final : public subject {
 public:
  explicit holdfast_locks(const place& at, holdfast::session_options o = {})
      : session_{holdfast::open(at.url, std::move(o))}, elects_{at.variant == "election"} {
    for (unsigned i = 0; i < max_locks; ++i) {
      mutexes_[i].emplace(session_, "bench:" + std::to_string(i),
                          options_for(at.variant, std::is_same_v<Mutex, holdfast::fair_mutex>));
    }
  }
  std::unique_ptr<handle> grip(unsigned lock) override {
    if (elects_) return std::make_unique<leader_grip>(session_, lock);
    return std::make_unique<grip_of<Mutex>>(*mutexes_[lock]);
  }
  std::uint64_t store_operations() const override { return session_.store_operations(); }
  holdfast::session* session() override { return &session_; }

 private:
  holdfast::session session_;
  const bool elects_;
  std::array<std::optional<Mutex>, max_locks> mutexes_;
};

bool several_processes(const place& at) { return holdfast::open(at.url).can().several_processes; }

// Slot stores have no queue.
bool has_queue(std::string_view url) {
  return scheme_of(url) != "memcached" && url.find("dialect=") == url.npos &&
         url.find("mode=session") == url.npos;
}

template <class Mutex>
std::unique_ptr<subject> open_holdfast(const place& at) {
  return std::make_unique<holdfast_locks<Mutex>>(at);
}

/// On other stores than these, the measurement would be one of the store.
bool counts_there(std::string_view url) {
  return scheme_of(url) == "memory" || scheme_of(url).starts_with("redis");
}

std::unique_ptr<subject> open_counted(const place& at) {
  const auto counted = std::make_shared<holdfast::metrics>();
  return std::make_unique<holdfast_locks<holdfast::mutex>>(
      at, holdfast::session_options{.observer = counted});
}

}  // namespace

std::string refusal_of(const place& at) {
  try {
    holdfast::session session{holdfast::open(at.url)};
    holdfast::mutex{session, "bench:0", options_for(at.variant)};
  } catch (const holdfast::error& e) {
    if (e.code() != holdfast::errc::unsupported) throw;
    return e.what();
  }
  return {};
}

const subject_kind holdfast_subject{
    .name = "holdfast",
    .counts_operations = true,
    .fits = everywhere,
    .across_processes = several_processes,
    .prepare = nothing,
    .open = open_holdfast<holdfast::mutex>,
};

// Without the local queue: each thread has an entry in the store's queue.
const subject_kind fair_mutex_baseline{
    .name = "fair_mutex",
    .counts_operations = true,
    .fits = has_queue,
    .across_processes = several_processes,
    .prepare = nothing,
    .open = open_holdfast<holdfast::fair_mutex>,
};

// The cost of metrics: the same locks, with an observer that counts.
const subject_kind metrics_baseline{
    .name = "metrics",
    .counts_operations = true,
    .fits = counts_there,
    .across_processes = several_processes,
    .prepare = nothing,
    .open = open_counted,
};

}  // namespace bench
