#pragma once

#include <condition_variable>
#include <functional>
#include <holdfast/clock.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "store/sql/row_link.hpp"

namespace holdfast::store::sql {

/// A few connections for all threads of a session: made when needed, kept while they work. First
/// come, first served: when a connection is given back, a new request must not take it from a
/// thread that has waited for it, perhaps to its deadline.
/// After the server could not be reached, one thread at a time tries to connect. The longer its
/// attempt lasted, the longer is the pause after it: otherwise connections whose requests have
/// given up would queue at a server that is slow to accept them, and later ones would wait behind
/// them. If the last attempt ended because its request had no more time, a request with twice as
/// much time as that attempt lasted does not wait for that pause.
/// A thread with a connection may carry out requests of threads that still wait for one, together
/// with its own ("flat combining").
/// Thread-safe.
class link_pool {
 public:
  /// Fails with errc::timed_out if it ended before the deadline because there was no more time.
  using connect = std::function<result<std::unique_ptr<row_link>>(boot_time deadline)>;

  link_pool(connect make, std::size_t most, clock& on = real_clock())
      : make_(std::move(make)), most_(most), clock_(on) {
    idle_.reserve(most + 1);  // room for one added link as well: giving back allocates nothing
  }

  /// A connection for the life of this object. It goes back into the pool if it still works.
  class loan {
   public:
    loan(link_pool& from, std::unique_ptr<row_link> link, bool used)
        : pool_(&from), link_(std::move(link)), used_(used) {}
    loan(loan&& from) noexcept
        : pool_(std::exchange(from.pool_, nullptr)),
          link_(std::move(from.link_)),
          used_(from.used_) {}
    loan& operator=(loan&& from) noexcept {
      std::swap(pool_, from.pool_);
      std::swap(link_, from.link_);
      std::swap(used_, from.used_);
      return *this;
    }
    ~loan() {
      if (pool_ != nullptr) pool_->give_back(std::move(link_));
    }
    void fill(std::unique_ptr<row_link> link, bool used) noexcept {
      link_ = std::move(link);
      used_ = used;
    }
    row_link& operator*() const noexcept { return *link_; }
    row_link* operator->() const noexcept { return link_.get(); }
    /// True if it has been used before: the server may have closed it meanwhile.
    bool used() const noexcept { return used_; }

   private:
    link_pool* pool_;
    std::unique_ptr<row_link> link_;
    bool used_;
  };

  /// What a waiting thread needs a connection for. Another thread that has a connection may take
  /// the request, and gives it back when it has tried it. `at_` says where the request is.
  class request {
   public:
    request() = default;
    request(const request&) = delete;
    request& operator=(const request&) = delete;

   protected:
    ~request() = default;

   private:
    friend link_pool;
    enum class place { queued, taken, back } at_ = place::queued;
  };
  class taken;

  /// Waits for a connection until the deadline, if the maximum is in use. During a long pause it
  /// fails with the failure of the last attempt.
  result<loan> borrow(boot_time deadline);

  /// The same. Returns no connection if another thread has taken the request, and gave it back.
  /// Then a second call queues the request ahead of all that were never taken.
  result<std::optional<loan>> borrow(boot_time deadline, request& mine);

  enum class wish { take, leave, enough };
  /// Asks `wanted` about each waiting request, from the first in the queue on, until it returns
  /// wish::enough, and moves those for which it returns wish::take to `into`. `wanted` runs under
  /// the pool's mutex, and must not throw. The threads of these requests wait until `into` is
  /// destroyed. Allocates nothing.
  template <class Wanted>
  void take(taken& into, Wanted wanted) noexcept;

  /// Another connection in place of a broken one, ahead of all threads that wait for their first
  /// one.
  result<loan> replace(loan broken, boot_time deadline);

  /// Adds a connection that was made elsewhere.
  void add(std::unique_ptr<row_link> link);

  /// Closes the idle connections: one of them turned out to be dead, so all of them may be.
  void drop_idle();

 private:
  class attempt;
  class place;
  /// A thread that waits for a connection.
  struct waiting {
    std::condition_variable called{};
    bool has_room = false;   ///< counts as in use
    bool has_tried = false;  ///< the server refused it another connection
    bool came_back = false;  ///< another thread had taken its request
    request* mine = nullptr;
    waiting* taken_next = nullptr;  ///< taken by the same thread, after this one
  };
  /// Waits until the thread may take a connection or make one, or until its request came back. A
  /// thread whose connection was refused tries again at `again_at`.
  status wait_for_turn(std::unique_lock<std::mutex>& lock, boot_time deadline, bool has_room,
                       std::optional<boot_time> again_at = {}, request* mine = nullptr);
  result<std::unique_ptr<row_link>> connect_now(std::unique_lock<std::mutex>& lock,
                                                boot_time deadline);
  result<loan> serve(std::unique_lock<std::mutex>& held, loan given, boot_time deadline);
  void leads_to(std::int64_t server);
  failure not_served(bool full) const;
  /// How many of the threads that count as in use are queued without a connection, because theirs
  /// broke or was refused.
  std::size_t without_link() const noexcept;
  void wake_first() noexcept;
  void give_back(std::unique_ptr<row_link> link) noexcept;

  const connect make_;
  const std::size_t most_;
  clock& clock_;
  std::mutex mutex_;
  /// The waiting threads, in this order: those that have room and may connect at once, those that
  /// have room and were refused, those whose request came back, and all others.
  std::list<waiting> line_;
  std::list<waiting> taken_;  ///< those whose requests another thread has taken
  std::vector<std::unique_ptr<row_link>> idle_;
  std::int64_t server_ = 0;  ///< of the newest connection; connections to another one are closed
  std::size_t in_use_ = 0;
  std::size_t connecting_ = 0;         ///< of those in use, being made
  std::optional<failure> away_;        ///< the server could not be reached …
  boot_time next_attempt_at_{};        ///< … and is tried again then, …
  std::chrono::nanoseconds enough_{};  ///< … or earlier by a caller with so much time
  bool trying_ = false;
  std::uint64_t worked_ = 0;  ///< attempts that reached the server
};

/// The requests that a thread has taken from others. Gives them back when it is destroyed.
class link_pool::taken {
 public:
  explicit taken(link_pool& from) : pool_(from) {}
  taken(const taken&) = delete;
  taken& operator=(const taken&) = delete;
  ~taken() {
    if (first_ == nullptr) return;
    const std::lock_guard guard{pool_.mutex_};
    for (waiting* w = first_; w != nullptr; w = w->taken_next) {
      w->mine->at_ = request::place::back;
      w->called.notify_one();
    }
  }

 private:
  friend link_pool;
  void add(waiting& one) noexcept {
    (last_ == nullptr ? first_ : last_->taken_next) = &one;
    last_ = &one;
  }
  link_pool& pool_;
  waiting* first_ = nullptr;
  waiting* last_ = nullptr;
};

template <class Wanted>
void link_pool::take(taken& into, Wanted wanted) noexcept {
  const std::lock_guard guard{mutex_};
  for (auto next = line_.begin(); next != line_.end();) {
    const auto at = next++;
    const wish so = at->mine == nullptr ? wish::leave : wanted(*at->mine);
    if (so == wish::enough) break;
    if (so == wish::leave) continue;
    into.add(*at);
    at->mine->at_ = request::place::taken;
    taken_.splice(taken_.end(), line_, at);
  }
  if (into.first_ != nullptr)
    wake_first();  // the first may have been called, and was taken before it acted
}

}  // namespace holdfast::store::sql
