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
#include "store/sql/seats.hpp"

namespace holdfast::store::sql {

namespace {

using namespace std::chrono_literals;

/// Who has no place at the server; and who has one, should a notice be lost.
constexpr std::int64_t without_place_us = 50'000;
constexpr std::int64_t with_place_us = 1'000'000;
/// How often, and how soon, somebody is told to end a wait.
constexpr int most_interrupts = 100;
constexpr int interrupt_again_ms = 5;

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
        connect_(std::move(connect)),
        home_(std::move(first)),
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
  result<permits_reply> wait_for(seat mine, const permits_command& c);
  result<permits_reply> resize(const permits_command& c);
  result<permits_reply> evict(const owner_id& owner);
  result<permits_reply> inspect(std::string_view name);
  permits_reply holds(seat& s, std::int64_t lease_us);
  permits_reply queued(seat& s, const permits_command& c);
  permits_reply confirm(const permits_command& c);

  lock_link& link_of(const seat& s) const { return s.own ? *s.own : *home_; }
  bool home_is_free_for(const seat& wants) const;
  result<bool> try_now(seat& s);
  status use_home();
  std::unique_ptr<lock_link> take_spare();
  std::size_t connections() const;
  void hear_of(seat& s);
  void end_wait(lock_link& of);
  result<bool> give_up(seats::iterator s);
  void forget_what_broke();
  std::optional<notice> look_for_grants(std::vector<pollfd>& still_waiting);
  void wake_receiver() noexcept;
  void ends_at(seat& s, boot_time t);
  void tidy();

  const session_lock_options options_;
  clock& clock_;
  const connect_lock_link connect_;
  const std::string peer_ = random_peer();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<lock_link> home_;
  std::vector<std::unique_ptr<lock_link>> spare_;
  seats seats_;
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
  forget_what_broke();
  if (reply && reply->now_at == 0) reply->now_at = micros(clock_.now());
  return reply;
}

result<permits_reply> session_locks::carry_out(std::string_view name, const permits_command& c) {
  switch (c.verb) {
    case permits_verb::acquire:
      return acquire(name, c);
    case permits_verb::renew: {
      const auto mine = find(seats_, c.owner);
      if (mine != seats_.end() && mine->held) (void)link_of(*mine).ping();
      forget_what_broke();
      return confirm(c);
    }
    case permits_verb::release: {
      const auto mine = find(seats_, c.owner);
      if (mine == seats_.end()) return reply_with(permits_outcome::absent);
      const auto was = give_up(mine);
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
  const auto mine = find(seats_, owner);
  if (mine == seats_.end()) {
    return failure{errc::unsupported,
                   "a lock of mode=session ends with the connection that holds it, and with it all "
                   "others of that connection: end that one at the server"};
  }
  const auto was = give_up(mine);
  if (!was) return was.error();
  permits_reply reply = reply_with(permits_outcome::done);
  reply.position = 1;
  return reply;
}

std::vector<result<permits_reply>> session_locks::renew(std::span<const renewal> batch) {
  const std::lock_guard guard{mutex_};
  std::set<lock_link*> asked;
  for (const auto& [name, c] : batch) {
    const auto mine = find(seats_, c.owner);
    if (c.verb != permits_verb::renew || mine == seats_.end() || !mine->held) continue;
    if (asked.insert(&link_of(*mine)).second) (void)link_of(*mine).ping();
  }
  forget_what_broke();
  std::vector<result<permits_reply>> replies;
  for (const auto& [name, c] : batch) {
    replies.push_back(c.verb == permits_verb::renew ? confirm(c) : carry_out(name, c));
    if (replies.back() && replies.back()->now_at == 0) {
      replies.back()->now_at = micros(clock_.now());
    }
  }
  forget_what_broke();
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
  for (const seat& s : seats_) all.insert(s.name);
  return std::vector<std::string>(all.begin(), all.end());
}

// What was heard of its connection a moment ago counts as a renewal.
permits_reply session_locks::confirm(const permits_command& c) {
  const auto mine = find(seats_, c.owner);
  if (mine == seats_.end()) return reply_with(permits_outcome::absent);
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
  const auto mine = find(seats_, c.owner);
  if (mine != seats_.end()) return ask_again(mine, c);
  const auto other = find(seats_, c.instead_of);
  bool replaced = false;
  if (c.instead_of && other != seats_.end()) {
    const auto was = give_up(other);
    if (!was) return was.error();
    replaced = *was;
  }
  auto reply = enter(name, c);
  if (reply) reply->replaced = replaced;
  return reply;
}

result<permits_reply> session_locks::ask_again(seats::iterator mine, const permits_command& c) {
  if (mine->waits_at_server()) hear_of(*mine);
  if (!mine->held && !mine->own) {
    const auto got = try_now(*mine);
    if (!got) return got.error();
  }
  if (mine->held) return holds(*mine, c.lease_us);
  if (c.wait) return queued(*mine, c);
  const auto was_in = give_up(mine);
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
  const auto got = try_now(mine);
  if (!got) return got.error();
  if (!*got && c.wait) return wait_for(std::move(mine), c);
  if (!*got) return reply_with(permits_outcome::busy);
  return holds(seats_.emplace_back(std::move(mine)), c.lease_us);
}

result<permits_reply> session_locks::wait_for(seat mine, const permits_command& c) {
  mine.own = take_spare();
  if (mine.own && !mine.own->begin(mine.name, mine.mode())) mine.own.reset();
  mine.lease_us = c.lease_us;
  if (mine.own) wake_receiver();
  return queued(seats_.emplace_back(std::move(mine)), c);
}

// A connection that holds a lock gets it again whoever waits for it: who comes second goes over
// another one, and behind those who wait.
bool session_locks::home_is_free_for(const seat& wants) const {
  return std::none_of(seats_.begin(), seats_.end(), [&](const seat& s) {
    return s.held && !s.own && s.name == wants.name && s.owner != wants.owner;
  });
}

result<bool> session_locks::try_now(seat& s) {
  if (auto ok = use_home(); !ok) return std::move(ok.error());
  if (!home_is_free_for(s)) s.own = take_spare();
  if (!home_is_free_for(s) && !s.own) return false;
  auto at = link_of(s).try_lock(s.name, s.mode());
  // The server ends connections that were not used for long.
  if (!at && !s.own && !home_->usable() && use_home()) at = home_->try_lock(s.name, s.mode());
  if (at && *at) {
    s.held = true;
    s.fence = static_cast<std::uint64_t>(**at);
    return true;
  }
  if (s.own && s.own->usable()) spare_.push_back(std::move(s.own));
  s.own.reset();
  if (!at) return at.error();
  return false;
}

result<permits_reply> session_locks::resize(const permits_command& c) {
  const auto mine = find(seats_, c.owner);
  if (mine == seats_.end() || !mine->held) return reply_with(permits_outcome::absent);
  seat wanted;
  wanted.capacity = mine->capacity;
  wanted.weight = c.weight;
  if (wanted.mode() != mine->mode()) {
    if (wanted.mode() == lock_mode::exclusive && !mine->own && !home_is_free_for(*mine)) {
      return reply_with(permits_outcome::busy);
    }
    const auto at = link_of(*mine).change(mine->name, wanted.mode());
    if (!at) return at.error();
    if (!*at) return reply_with(permits_outcome::busy);
    if (wanted.mode() == lock_mode::exclusive) mine->fence = static_cast<std::uint64_t>(**at);
  }
  mine->weight = c.weight;
  return holds(*mine, c.lease_us);
}

// ---- connections
// ---------------------------------------------------------------------------------

status session_locks::use_home() {
  if (home_->usable()) return done{};
  forget_what_broke();
  auto made = connect_();
  if (!made) return std::move(made.error());
  home_ = std::move(*made);
  return done{};
}

std::size_t session_locks::connections() const {
  const auto used =
      std::count_if(seats_.begin(), seats_.end(), [](const seat& s) { return s.own != nullptr; });
  return 1 + spare_.size() + static_cast<std::size_t>(used);
}

// Null: there are as many as may be, or the server takes no more.
std::unique_ptr<lock_link> session_locks::take_spare() {
  while (!spare_.empty()) {
    auto last = std::move(spare_.back());
    spare_.pop_back();
    if (last->usable() && last->ping()) return last;
  }
  if (connections() >= options_.connections) return nullptr;
  auto made = connect_();
  return made ? std::move(*made) : nullptr;
}

// If its wait is over: it holds, or has no place any more.
void session_locks::hear_of(seat& s) {
  if (!s.own->over()) return;
  const auto at = s.own->end();
  if (at && *at) {
    s.held = true;
    s.fence = static_cast<std::uint64_t>(**at);
    return;
  }
  s.own.reset();  // may have got it all the same
}

// Who is told to end a wait before he has begun it does not hear: so he is told again.
void session_locks::end_wait(lock_link& of) {
  for (int i = 0; i < most_interrupts && of.usable(); ++i) {
    if (!use_home() || !home_->interrupt(of)) break;
    pollfd one{of.fd(), POLLIN, 0};
    if (::poll(&one, 1, interrupt_again_ms) > 0 && of.over()) break;
  }
  (void)of.end();
}

// True if it held or waited. A wait that was ended may have got the lock in that moment, also where
// the server says that it was ended; and what ended it may come late, and end the unlock instead.
result<bool> session_locks::give_up(seats::iterator s) {
  seat gone = std::move(*s);
  seats_.erase(s);
  if (!gone.held && !gone.own) return true;
  const bool waited = !gone.held;
  if (waited) end_wait(*gone.own);
  lock_link& on = link_of(gone);
  auto was = on.unlock(gone.name, gone.mode());
  if (!was && on.usable()) was = on.unlock(gone.name, gone.mode());
  if (gone.own && was && on.usable()) spare_.push_back(std::move(gone.own));
  return waited ? result<bool>(true) : was;
}

// With its connection the server takes what it held.
void session_locks::forget_what_broke() {
  const bool home = home_->usable();
  std::erase_if(seats_, [&](const seat& s) { return s.own ? !s.own->usable() : s.held && !home; });
  std::erase_if(spare_, [](const auto& link) { return !link->usable(); });
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
  for (seat& s : seats_) {
    if (!s.waits_at_server()) continue;
    hear_of(s);
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
    const auto first = std::min_element(
        seats_.begin(), seats_.end(), [](const seat& a, const seat& b) { return a.ends < b.ends; });
    sleeping_until_ = first == seats_.end() ? forever : first->ends;
    if (clock_.now() < sleeping_until_) {
      clock_.wait_until(lock, changed_, sleeping_until_);
      continue;
    }
    (void)give_up(first);
    forget_what_broke();
  }
}

// ---- for people
// ----------------------------------------------------------------------------------

// As the engine writes it of a session of our own: host, number, program.
std::string note_of(const lock_user& u) {
  return (u.host.empty() ? "-" : u.host) + ' ' + std::to_string(u.connection) + ' ' +
         (u.program.empty() ? "-" : u.program);
}

// Nobody knows the owner id of another session's: its connection's number stands for it.
owner_id id_of(const lock_user& u) { return {static_cast<std::uint64_t>(u.connection) << 32, 1}; }

result<permits_reply> session_locks::inspect(std::string_view name) {
  if (auto ok = use_home(); !ok) return std::move(ok.error());
  const auto users = home_->users(name);
  if (!users) return users.error();
  permits_reply reply;
  std::set<std::int64_t> ours;
  for (const seat& s : seats_) {
    if (s.name != name) continue;
    if (s.held || s.own) ours.insert(link_of(s).id());
    if (s.held) {
      reply.found.holders.push_back({s.owner, s.weight, s.fence, micros(s.ends),
                                     static_cast<std::int64_t>(s.fence), s.peer, s.note});
    } else {
      reply.found.queue.push_back({s.owner, s.weight, 0, 0, micros(s.ends), 0, s.peer, s.note});
    }
    reply.found.last_fence = std::max(reply.found.last_fence, s.fence);
  }
  for (const lock_user& u : *users) {
    if (ours.contains(u.connection)) continue;
    if (u.holds) reply.found.holders.push_back({id_of(u), 1, 0, 0, 0, {}, note_of(u)});
    if (!u.holds) reply.found.queue.push_back({id_of(u), 1, 0, 0, 0, 0, {}, note_of(u)});
  }
  reply.found.capacity = reply.found.holders.empty() && reply.found.queue.empty() ? 0 : 1;
  return reply;
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
