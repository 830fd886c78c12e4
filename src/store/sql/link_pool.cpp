#include "store/sql/link_pool.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace holdfast::store::sql {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::nanoseconds shortest_pause = 5ms;
constexpr std::chrono::nanoseconds longest_pause = 1s;
/// A request waits for a pause that ends within this time; otherwise it fails at once.
constexpr std::chrono::nanoseconds short_pause = 100ms;
/// An attempt that failed by itself would fail however long it waits.
constexpr auto never_enough = std::chrono::nanoseconds::max();

}  // namespace

/// One attempt to connect.
class link_pool::attempt {
 public:
  explicit attempt(link_pool& of)
      : of_(of), alone_(of.away_.has_value()), began_(of.clock_.now()), worked_(of.worked_) {
    of_.trying_ = of_.trying_ || alone_;
    ++of_.connecting_;
  }
  ~attempt() {
    const std::lock_guard guard{of_.mutex_};
    --of_.connecting_;
    if (alone_) of_.trying_ = false;
    of_.wake_first();
  }
  attempt(const attempt&) = delete;
  attempt& operator=(const attempt&) = delete;

  void ended(result<std::unique_ptr<row_link>>& made, boot_time deadline) {
    const std::lock_guard guard{of_.mutex_};
    const boot_time now = of_.clock_.now();
    const bool cut_short = !made && (made.error().code == errc::timed_out || now >= deadline);
    if (!made && made.error().code == errc::timed_out) made.error().code = errc::unavailable;
    if (made || made.error().code != errc::unavailable) {
      ++of_.worked_;
      return of_.away_.reset();
    }
    if (of_.worked_ != worked_) return;  // the server came back while this attempt failed
    const std::chrono::nanoseconds lasted = now - began_;
    of_.away_ = made.error();
    of_.next_attempt_at_ = now + base::jittered(std::clamp(lasted, shortest_pause, longest_pause));
    of_.enough_ = cut_short ? 2 * std::max(lasted, shortest_pause) : never_enough;
  }

 private:
  link_pool& of_;
  const bool alone_;
  const boot_time began_;
  const std::uint64_t worked_;  ///< at the beginning of the attempt
};

/// The entry of a thread in the pool's queue. To be used with the pool's mutex held.
/// (request::place says only where a request is.) The first thread wakes the next one when it
/// leaves, so no other thread is woken in vain.
class link_pool::place {
 public:
  place(link_pool& in, bool has_room, bool has_tried, request* mine) : of_(in) {
    const auto before = std::find_if(in.line_.begin(), in.line_.end(), [&](const waiting& w) {
      if (came_back(mine)) return !w.has_room && !w.came_back;
      return has_room && (!w.has_room || (w.has_tried && !has_tried));
    });
    mine_ = in.line_.emplace(before);
    mine_->came_back = came_back(mine);
    if (mine != nullptr) mine->at_ = request::place::queued;
    mine_->has_room = has_room, mine_->has_tried = has_tried, mine_->mine = mine;
  }
  ~place() {
    const bool leads = is_first();
    (is(request::place::queued) ? of_.line_ : of_.taken_).erase(mine_);
    if (leads) of_.wake_first();
  }
  place(const place&) = delete;
  place& operator=(const place&) = delete;

  static bool came_back(const request* mine) noexcept {
    return mine != nullptr && mine->at_ == request::place::back;
  }
  bool is_first() const noexcept { return mine_ == of_.line_.begin(); }
  /// Without a request it is queued.
  bool is(request::place where) const noexcept {
    return (mine_->mine == nullptr ? request::place::queued : mine_->mine->at_) == where;
  }
  void wait(std::unique_lock<std::mutex>& lock, boot_time until) {
    of_.clock_.wait_until(lock, mine_->called, until);
  }

 private:
  link_pool& of_;
  std::list<waiting>::iterator mine_;
};

result<link_pool::loan> link_pool::borrow(boot_time deadline) {
  std::unique_lock lock{mutex_};
  if (auto turn = wait_for_turn(lock, deadline, false); !turn) return std::move(turn.error());
  return serve(lock, loan(*this, nullptr, false), deadline);
}

result<std::optional<link_pool::loan>> link_pool::borrow(boot_time deadline, request& mine) {
  using maybe = std::optional<loan>;
  std::unique_lock lock{mutex_};
  auto turn = wait_for_turn(lock, deadline, false, {}, &mine);
  if (!turn) return std::move(turn.error());
  if (mine.at_ == request::place::back) return maybe();
  auto got = serve(lock, loan(*this, nullptr, false), deadline);
  return got ? result<maybe>(maybe(std::move(*got))) : result<maybe>(std::move(got.error()));
}

// Keeps its room: otherwise other threads would be served first, perhaps until its deadline.
result<link_pool::loan> link_pool::replace(loan broken, boot_time deadline) {
  broken.fill(nullptr, false);
  std::unique_lock lock{mutex_};
  if (auto turn = wait_for_turn(lock, deadline, true); !turn) return std::move(turn.error());
  return serve(lock, std::move(broken), deadline);
}

// A request that fails, or finds no memory, gives its room back. A server without room for another
// connection may work well: a refused request waits for a connection that is in use, and sometimes
// tries again, as connections of other clients end, too.
result<link_pool::loan> link_pool::serve(std::unique_lock<std::mutex>& held, loan given,
                                         boot_time deadline) {
  loan room = std::move(given);
  std::unique_lock lock = std::move(held);  // unlocked before `room` is destroyed, which locks it
  while (idle_.empty()) {
    auto made = connect_now(lock, deadline);
    if (made) {
      room.fill(std::move(*made), false);
      return room;
    }
    lock.lock();
    // A connection may have been given back while this one was refused.
    const bool is_alone = idle_.empty() && in_use_ == connecting_ + without_link() + 1;
    auto turn =
        made.error().code != errc::unavailable || is_alone
            ? status(std::move(made.error()))
            : wait_for_turn(lock, deadline, true, clock_.now() + base::jittered(longest_pause));
    if (!turn) return std::move(turn.error());
  }
  room.fill(std::move(idle_.back()), true);
  idle_.pop_back();
  return room;
}

result<std::unique_ptr<row_link>> link_pool::connect_now(std::unique_lock<std::mutex>& lock,
                                                         boot_time deadline) {
  attempt mine(*this);
  lock.unlock();
  auto made = make_(deadline);
  mine.ended(made, deadline);
  if (made && *made) leads_to((*made)->server_number());
  return made;
}

// The address leads to another server now, and the former one may still be there, and accept
// writes. A session that used both would find its locks on one of them only.
void link_pool::leads_to(std::int64_t server) {
  {
    const std::lock_guard guard{mutex_};
    if (std::exchange(server_, server) == server) return;
  }
  drop_idle();
}

// Waits for an idle connection, or for the permission to make one. Only the first in the queue
// takes it. During a pause that is too long for them, all fail, whatever their position, unless a
// connection may be given back.
status link_pool::wait_for_turn(std::unique_lock<std::mutex>& lock, boot_time deadline,
                                bool has_room, std::optional<boot_time> again_at, request* wanted) {
  const boot_time tries_at = again_at.value_or(boot_time::min());
  place mine(*this, has_room, again_at.has_value(), wanted);
  while (!mine.is(request::place::back)) {
    if (mine.is(request::place::taken)) {
      mine.wait(lock, forever);
      continue;
    }
    const boot_time now = clock_.now();
    const bool full = !has_room && in_use_ >= most_, first = mine.is_first();
    boot_time until = deadline;
    if (!full) {
      const bool has_time = now >= next_attempt_at_ || deadline - now >= enough_;
      const bool may_try = !trying_ && has_time && now >= tries_at;
      const bool possible = !idle_.empty() || !away_ || may_try;
      if (possible && first) {
        if (!has_room) ++in_use_;
        return done{};
      }
      if (!possible && !trying_) {
        const bool in_vain = again_at || std::min(deadline, now + short_pause) < next_attempt_at_;
        if (in_vain && in_use_ == connecting_ + without_link()) return *away_;
        if (first) until = std::min(deadline, std::max(next_attempt_at_, tries_at));
      }
    }
    if (now >= deadline) return not_served(full);
    mine.wait(lock, until);
  }
  return done{};
}

std::size_t link_pool::without_link() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(line_.begin(), line_.end(), [](const waiting& w) { return w.has_room; }));
}

// Without a free connection or room there is no need to wake it: give_back() wakes it later.
void link_pool::wake_first() noexcept {
  if (line_.empty()) return;
  waiting& first = line_.front();
  if (first.has_room || in_use_ < most_) first.called.notify_one();
}

failure link_pool::not_served(bool full) const {
  if (away_ && (trying_ || !full)) return *away_;
  const std::string all = std::to_string(most_) + " connections of this session";
  return {errc::unavailable,
          (full ? "all " + all + " are in use" : "other requests waited longer for the " + all) +
              "; raise connections=, or find out why the server is slow"};
}

void link_pool::add(std::unique_ptr<row_link> link) {
  const std::lock_guard guard{mutex_};
  server_ = link->server_number();
  idle_.push_back(std::move(link));
}

void link_pool::give_back(std::unique_ptr<row_link> link) noexcept {
  const std::lock_guard guard{mutex_};
  --in_use_;
  const bool has_room = idle_.size() < idle_.capacity();
  const bool is_good = link && link->usable() && link->server_number() == server_;
  if (has_room && is_good) idle_.push_back(std::move(link));
  wake_first();
}

// Closes them one by one, which takes no memory. Closing a connection may take a while.
void link_pool::drop_idle() {
  std::unique_lock lock{mutex_};
  for (auto left = idle_.size(); left > 0 && !idle_.empty(); --left) {
    auto oldest = std::move(idle_.front());
    idle_.erase(idle_.begin());
    lock.unlock();
    oldest.reset();
    lock.lock();
  }
}

}  // namespace holdfast::store::sql
