#include "store/sql/session_locks.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "store/sql/peer_id.hpp"
#include "store/sql/seating.hpp"
#include "store/sql/session_view.hpp"

namespace holdfast::store::sql {

namespace {

using namespace std::chrono_literals;

/// Who has no place at the server; and who has one, should a notice be lost.
constexpr std::int64_t without_place_us = 50'000;
constexpr std::int64_t with_place_us = 1'000'000;

std::int64_t micros(boot_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

boot_time after(boot_time now, std::int64_t us) {
  return saturated_add(now, std::chrono::nanoseconds(std::chrono::microseconds(us)));
}

permits_reply reply_with(permits_outcome outcome) {
  permits_reply r;
  r.outcome = outcome;
  return r;
}

class session_locks final : public session_store, private inbox {
 public:
  session_locks(std::unique_ptr<lock_link> first, connect_lock_link connect,
                session_lock_options options)
      : options_(std::move(options)),
        clock_(options_.clock != nullptr ? *options_.clock : real_clock()),
        seating_({std::move(first), std::move(connect), options_.connections, clock_}),
        wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this] { tidy(); }) {}
  ~session_locks() override;

  const capabilities& can() const noexcept override { return options_.can; }
  const std::string& url() const noexcept override { return options_.url; }
  store::inbox& inbox() noexcept override { return *this; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override;
  std::vector<result<permits_reply>> renew(std::span<const renewal> batch) override;
  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override;
  result<std::vector<std::string>> names() override;

 private:
  const std::string& peer() const noexcept override { return peer_; }
  std::optional<notice> receive(boot_time until) override;
  void interrupt() noexcept override;

  result<permits_reply> carry_out(std::string_view name, const permits_command& c);
  result<permits_reply> acquire(std::string_view name, const permits_command& c);
  result<permits_reply> ask_again(seats::iterator mine, const permits_command& c);
  result<permits_reply> enter(std::string_view name, const permits_command& c);
  permits_reply wait_for(seat mine, const permits_command& c);
  void begin_wait(seat& mine);
  result<permits_reply> resize(const permits_command& c);
  result<permits_reply> evict(const owner_id& owner);
  result<permits_reply> inspect(std::string_view name);
  permits_reply holds(seat& s, std::int64_t lease_us);
  permits_reply queued(seat& s, const permits_command& c);
  permits_reply confirm(const permits_command& c);

  std::optional<notice> look_for_grants(std::vector<pollfd>& still_waiting);
  void wake_receiver() noexcept;
  void ends_at(seat& s, boot_time t);
  void tidy();

  const session_lock_options options_;
  clock& clock_;
  const std::string peer_ = random_peer();
  std::mutex mutex_;
  std::condition_variable changed_;
  seating seating_;
  bool ending_ = false;
  boot_time sleeping_until_ = forever;
  const int wake_fd_;
  std::atomic<bool> interrupted_{false};
  std::thread thread_;
};

session_locks::~session_locks() {
  {
    const std::lock_guard guard{mutex_};
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
  ::close(wake_fd_);
}

// ---- commands
// ------------------------------------------------------------------------------------

result<permits_reply> session_locks::permits(std::string_view name, const permits_command& c) {
  const std::lock_guard guard{mutex_};
  auto reply = carry_out(name, c);
  seating_.forget_what_broke();
  if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
  return reply;
}

result<permits_reply> session_locks::carry_out(std::string_view name, const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const auto mine = seating_.find(c.owner);
      if (mine != seating_.all().end() && mine->held) (void)seating_.link_of(*mine).ping();
      seating_.forget_what_broke();
      return confirm(c);
    }
    case permits_verb::release: {
      const auto mine = seating_.find(c.owner);
      if (mine == seating_.all().end()) return reply_with(permits_outcome::absent);
      const auto was = seating_.give_up(mine);
      if (!was) return was.error();
      return reply_with(*was ? permits_outcome::done : permits_outcome::absent);
    }
    case permits_verb::resize:
      return resize(c);
    case permits_verb::evict:
      return evict(c.owner);
    case permits_verb::inspect:
      return inspect(name);
    case permits_verb::notify:
      break;  // refused at construction
  }
  return failure{errc::internal, "no such command"};
}

// What another session holds ends with its connection only.
result<permits_reply> session_locks::evict(const owner_id& owner) {
  const auto mine = seating_.find(owner);
  if (mine == seating_.all().end()) {
    return failure{errc::unsupported,
                   "a lock of mode=session ends with the connection that holds it, and with it all "
                   "others of that connection: end that one at the server"};
  }
  const auto was = seating_.give_up(mine);
  if (!was) return was.error();
  permits_reply reply = reply_with(permits_outcome::done);
  reply.position = 1;
  return reply;
}

std::vector<result<permits_reply>> session_locks::renew(std::span<const renewal> batch) {
  const std::lock_guard guard{mutex_};
  std::set<lock_link*> asked;
  for (const auto& [name, c] : batch) {
    const auto mine = seating_.find(c.owner);
    if (c.verb != permits_verb::renew || mine == seating_.all().end() || !mine->held) continue;
    if (asked.insert(&seating_.link_of(*mine)).second) (void)seating_.link_of(*mine).ping();
  }
  seating_.forget_what_broke();
  std::vector<result<permits_reply>> replies;
  for (const auto& [name, c] : batch) {
    replies.push_back(c.verb == permits_verb::renew ? confirm(c) : carry_out(name, c));
    seating_.forget_what_broke();
    if (replies.back() && replies.back()->now_at == 0) {
      replies.back()->now_at = micros(clock_.now());
    }
  }
  return replies;
}

result<countdown_reply> session_locks::countdown(std::string_view, const countdown_command& c) {
  if (c.verb == countdown_verb::inspect) return countdown_reply{};
  return failure{errc::unsupported, "mode=session has no latches; use mode=lease"};
}

// The server knows hashes: these are the names of this session.
result<std::vector<std::string>> session_locks::names() {
  const std::lock_guard guard{mutex_};
  std::set<std::string> all;
  for (const seat& s : seating_.all()) all.insert(s.name);
  return std::vector<std::string>(all.begin(), all.end());
}

// What was heard of its connection a moment ago counts as a renewal.
permits_reply session_locks::confirm(const permits_command& c) {
  const auto mine = seating_.find(c.owner);
  if (mine == seating_.all().end()) return reply_with(permits_outcome::absent);
  if (!mine->held) return queued(*mine, c);
  return holds(*mine, c.lease_us);
}

permits_reply session_locks::holds(seat& s, std::int64_t lease_us) {
  const auto now = clock_.now();
  const auto sure_us =
      std::chrono::duration_cast<std::chrono::microseconds>(options_.sure_for).count();
  ends_at(s, after(now, lease_us));
  permits_reply r = reply_with(permits_outcome::granted);
  r.fence = s.fence;
  r.now_at = micros(now);
  r.expires_at = r.now_at + std::min(lease_us, sure_us);
  return r;
}

permits_reply session_locks::queued(seat& s, const permits_command& c) {
  ends_at(s, after(clock_.now(), c.place_us));
  permits_reply r = reply_with(permits_outcome::queued);
  r.position = 1;
  r.look_again_us = s.own ? with_place_us : without_place_us;
  return r;
}

// Only who ends before all others is news to the thread.
void session_locks::ends_at(seat& s, boot_time t) {
  s.ends = t;
  if (t < sleeping_until_) changed_.notify_one();
}

// ---- taking
// --------------------------------------------------------------------------------------

result<permits_reply> session_locks::acquire(std::string_view name, const permits_command& c) {
  const auto mine = seating_.find(c.owner);
  if (mine != seating_.all().end()) return ask_again(mine, c);
  const auto other = seating_.find(c.instead_of);
  bool replaced = false;
  if (c.instead_of && other != seating_.all().end()) {
    const auto was = seating_.give_up(other);
    if (!was) return was.error();
    replaced = *was;
  }
  auto reply = enter(name, c);
  if (reply) reply->replaced = replaced;
  return reply;
}

result<permits_reply> session_locks::ask_again(seats::iterator mine, const permits_command& c) {
  if (mine->waits_at_server()) seating_.hear_of(*mine);
  if (!mine->held && !mine->own) {
    const auto got = seating_.try_now(*mine);
    if (!got) return got.error();
  }
  if (mine->held) return holds(*mine, c.lease_us);
  if (c.wait && !mine->own) begin_wait(*mine);
  if (c.wait) return queued(*mine, c);
  const auto was_in = seating_.give_up(mine);
  if (!was_in) return was_in.error();
  return reply_with(permits_outcome::busy);
}

result<permits_reply> session_locks::enter(std::string_view name, const permits_command& c) {
  seat mine;
  mine.owner = c.owner;
  mine.name = name;
  mine.kind = c.kind;
  mine.capacity = c.capacity;
  mine.weight = c.weight;
  mine.peer = c.peer;
  mine.note = c.note;
  const auto got = seating_.try_now(mine);
  if (!got) return got.error();
  if (!*got && c.wait) return wait_for(std::move(mine), c);
  if (!*got) return reply_with(permits_outcome::busy);
  return holds(seating_.add(std::move(mine)), c.lease_us);
}

permits_reply session_locks::wait_for(seat mine, const permits_command& c) {
  mine.lease_us = c.lease_us;
  begin_wait(mine);
  return queued(seating_.add(std::move(mine)), c);
}

// Whoever gets no connection for it tries again when he looks again.
void session_locks::begin_wait(seat& mine) {
  seating_.begin_wait(mine);
  if (mine.own) wake_receiver();
}

result<permits_reply> session_locks::resize(const permits_command& c) {
  const auto mine = seating_.find(c.owner);
  if (mine == seating_.all().end() || !mine->held) return reply_with(permits_outcome::absent);
  const auto changed = seating_.change(*mine, c.weight);
  if (!changed) return changed.error();
  if (!*changed) return reply_with(permits_outcome::busy);
  return holds(*mine, c.lease_us);
}

// ---- who watches
// ---------------------------------------------------------------------------------

void session_locks::wake_receiver() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof one);
}

void session_locks::interrupt() noexcept {
  interrupted_ = true;
  wake_receiver();
}

std::optional<notice> session_locks::receive(boot_time until) {
  while (!interrupted_.exchange(false)) {
    std::vector<pollfd> waiting{{wake_fd_, POLLIN, 0}};
    if (auto granted = look_for_grants(waiting)) return granted;
    const auto left = std::min<std::chrono::nanoseconds>(until - clock_.now(), 24h);
    if (left <= 0ns) break;
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    (void)::ppoll(waiting.data(), waiting.size(), &timeout, nullptr);
    std::uint64_t count = 0;
    (void)!::read(wake_fd_, &count, sizeof count);
  }
  return std::nullopt;
}

std::optional<notice> session_locks::look_for_grants(std::vector<pollfd>& still_waiting) {
  const std::lock_guard guard{mutex_};
  for (seat& s : seating_.all()) {
    if (!s.waits_at_server()) continue;
    seating_.hear_of(s);
    if (s.waits_at_server()) still_waiting.push_back({s.own->fd(), POLLIN, 0});
    if (!s.held) continue;
    const auto granted = holds(s, s.lease_us);
    return notice{notice_kind::granted, s.name, s.owner, s.fence, granted.expires_at, peer_};
  }
  return std::nullopt;
}

// Gives up what nobody renews and who asks no more: the server would keep it.
void session_locks::tidy() {
  std::unique_lock lock{mutex_};
  while (!ending_) {
    const auto first =
        std::min_element(seating_.all().begin(), seating_.all().end(),
                         [](const seat& a, const seat& b) { return a.ends < b.ends; });
    sleeping_until_ = first == seating_.all().end() ? forever : first->ends;
    if (clock_.now() < sleeping_until_) {
      clock_.wait_until(lock, changed_, sleeping_until_);
      continue;
    }
    (void)seating_.give_up(first);
    seating_.forget_what_broke();
  }
}

// ---- for people
// ----------------------------------------------------------------------------------

result<permits_reply> session_locks::inspect(std::string_view name) {
  const auto home = seating_.home();
  if (!home) return home.error();
  const auto users = (*home)->users(name);
  if (!users) return users.error();
  return view_of(name, seating_, *users);
}

}  // namespace

std::unique_ptr<session_store> over_session_locks(std::unique_ptr<lock_link> first,
                                                  connect_lock_link connect,
                                                  session_lock_options options) {
  return std::make_unique<session_locks>(std::move(first), std::move(connect), std::move(options));
}

capabilities session_capabilities(bool shared) noexcept {
  capabilities c;
  c.shared = shared;
  c.fair = c.semaphore = c.unit_permits = c.latch = c.preferences = c.expiring = false;
  c.fences = c.notices = c.survives_failover = false;
  return c;
}

}  // namespace holdfast::store::sql
