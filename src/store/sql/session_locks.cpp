#include "store/sql/session_locks.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <holdfast/store/wake_time.hpp>
#include <mutex>
#include <thread>

#include "base/random.hpp"
#include "base/readiness.hpp"
#include "base/wake_fd.hpp"
#include "store/sql/session_lock_service.hpp"

namespace holdfast::store::sql {

namespace {

using namespace std::chrono_literals;

class session_locks final : public session_store, private inbox {
 public:
  session_locks(std::unique_ptr<lock_link> first, connect_lock_link connect,
                session_lock_options options)
      : options_(std::move(options)),
        clock_(*options_.clock),
        service_({std::move(first), std::move(connect), options_.connections, clock_},
                 options_.sure_for, clock_),
        thread_([this] { tidy(); }) {}
  ~session_locks() override;

  const capabilities& can() const noexcept override { return options_.can; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return *this; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override;
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override;
  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override;
  result<std::vector<std::string>> names() override;

 private:
  /// Access to the service for one call, which may wait for the server for long.
  class in_service {
   public:
    explicit in_service(session_locks& of) : of_(of) { of_.mutex_.lock(); }
    in_service(const in_service&) = delete;
    in_service& operator=(const in_service&) = delete;
    ~in_service() {
      of_.mutex_.unlock();
      of_.call_who_found_it_busy();
    }

   private:
    session_locks& of_;
  };

  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notification> receive(boot_time until) override;
  void interrupt() noexcept override;

  std::optional<notification> look_for_grants(std::vector<pollfd>& still_waiting);
  void tell_threads() noexcept;
  void rouse_tidy() noexcept;
  void call_who_found_it_busy() noexcept;
  void tidy();
  std::optional<boot_time> tidy_up();

  const session_lock_options options_;
  clock& clock_;
  const std::string peer_ = base::random_id();
  std::mutex mutex_;
  session_lock_service service_;
  bool ending_ = false;
  store::wake_time wake_time_;  ///< of the thread that tidies
  // That thread sleeps with a mutex of its own: it leaves the service as every call does.
  std::mutex sleep_mutex_;
  std::condition_variable roused_changed_;
  bool roused_ = false;
  const base::wake_fd wake_;
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> found_it_busy_{false};  ///< the receiver did, and polls again when woken
  std::thread thread_;
};

session_locks::~session_locks() {
  {
    const std::lock_guard guard{mutex_};
    ending_ = true;
  }
  rouse_tidy();
  thread_.join();
}

result<permits_reply> session_locks::permits(std::string_view name, const permits_command& c) {
  const in_service now{*this};
  auto reply = service_.permits(name, c);
  tell_threads();
  return reply;
}

std::vector<result<permits_reply>> session_locks::execute_batch(
    std::span<const named_command> batch) {
  const in_service now{*this};
  auto replies = service_.execute_batch(batch);
  tell_threads();
  return replies;
}

result<countdown_reply> session_locks::countdown(std::string_view, const countdown_command& c) {
  if (c.verb == countdown_verb::inspect) return countdown_reply{};
  return failure{errc::unsupported, "mode=session has no latches; use mode=lease"};
}

// The server knows only hashes of names: returns the names of this session.
result<std::vector<std::string>> session_locks::names() {
  const in_service now{*this};
  return service_.names();
}

// ---- the threads that watch

// The threads must know only of a new waiter, and of an entry that ends before all others.
void session_locks::tell_threads() noexcept {
  if (service_.began_to_wait()) wake_.set();
  if (wake_time_.comes_before(service_.first_end())) rouse_tidy();
}

void session_locks::rouse_tidy() noexcept {
  const std::lock_guard guard{sleep_mutex_};
  roused_ = true;
  roused_changed_.notify_one();
}

void session_locks::call_who_found_it_busy() noexcept {
  if (found_it_busy_.exchange(false)) wake_.set();
}

void session_locks::interrupt() noexcept {
  interrupted_ = true;
  wake_.set();
}

std::optional<notification> session_locks::receive(boot_time until) {
  while (!interrupted_.exchange(false)) {
    std::vector<pollfd> waiting{{wake_.fd(), POLLIN, 0}};
    if (auto granted = look_for_grants(waiting)) return granted;
    const auto left = std::min<std::chrono::nanoseconds>(until - clock_.now(), 24h);
    if (left <= 0ns) break;
    (void)base::sleep_until_ready(waiting, base::next_sleep(left));
    (void)wake_.clear();
  }
  return std::nullopt;
}

// The thread that has the mutex may wait for a server that does not answer, but the receiver must
// not wait longer than its caller allows.
std::optional<notification> session_locks::look_for_grants(std::vector<pollfd>& still_waiting) {
  found_it_busy_ = true;
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (!lock) return std::nullopt;
  found_it_busy_ = false;
  auto granted = service_.next_grant();
  if (granted) granted->peer = peer_;
  for (const int fd : service_.waiting_at()) still_waiting.push_back({fd, POLLIN, 0});
  tell_threads();
  return granted;
}

void session_locks::tidy() {
  while (const auto until = tidy_up()) {
    std::unique_lock lock{sleep_mutex_};
    if (!roused_) clock_.wait_until(lock, roused_changed_, *until);
    roused_ = false;
  }
}

// Returns the time of the next call; nothing at the end of the session.
std::optional<boot_time> session_locks::tidy_up() {
  const in_service now{*this};
  if (ending_) return std::nullopt;
  try {
    return wake_time_.sleep_until(service_.give_up_late(), clock_.now());
  } catch (...) {
    return clock_.now() + 10ms;  // no memory: tries again soon
  }
}

}  // namespace

std::unique_ptr<session_store> over_session_locks(std::unique_ptr<lock_link> first,
                                                  connect_lock_link connect,
                                                  session_lock_options options) {
  return std::make_unique<session_locks>(std::move(first), std::move(connect), std::move(options));
}

capabilities session_capabilities(bool shared, const link_options& o) noexcept {
  capabilities c;
  c.try_takes_ms = static_cast<std::uint32_t>(o.command_timeout.count());
  c.shared = shared;
  c.fair = c.semaphore = c.unit_permits = c.latch = c.preferences = c.expiring = false;
  c.fences = c.notifications = c.survives_failover = false;
  return c;
}

}  // namespace holdfast::store::sql
