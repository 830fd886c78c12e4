#pragma once

#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <mutex>
#include <stop_token>

#include "engine/hold.hpp"

namespace holdfast::engine {

/// The readers of one process and one name, who share one hold at the store: the first asks for it,
/// who comes while it is held joins, the last gives it back. Once a writer waits, here or (a notice
/// says so) elsewhere, nobody joins any more: the next reader asks for a new hold, behind the
/// writer. Thread-safe.
class reader_group {
 public:
  explicit reader_group(clock& on) : clock_(on) {}

  /// For a reader. `passes_writers`: it joins also if a writer waits.
  result<lease> enter(const std::shared_ptr<core>& session, const std::shared_ptr<const spec>& s,
                      const claim& c, bool passes_writers, wait_time wait, std::stop_token stop);

  /// A writer of this process waits, for as long as this lives.
  class writer {
   public:
    explicit writer(reader_group& at);
    ~writer();
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

   private:
    reader_group& at_;
  };

  /// Somebody elsewhere waits for what this owner holds.
  void wanted(const store::owner_id& held);

  /// True if nobody else has this hold; then nobody will join it.
  bool keep_alone(const hold& mine);

 private:
  class turn;
  std::shared_ptr<hold> join(const spec& s, bool passes_writers);

  clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::weak_ptr<hold> current_;
  bool asking_ = false;
  std::size_t waiting_ = 0;
  unsigned writers_ = 0;
  store::owner_id wanted_{};
};

}  // namespace holdfast::engine
