#include "store/zookeeper/client.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/hex.hpp"

namespace holdfast::store::zookeeper {

using namespace std::chrono_literals;

bool leader_answered(int rc) {
  return rc == ZOK || rc == ZNONODE || rc == ZNODEEXISTS || rc == ZBADVERSION || rc == ZNOTEMPTY ||
         rc == ZNOAUTH;
}

// ---- requests

namespace {

using owned = std::unique_ptr<requests::token>;

owned take(const void* data) {
  return owned(static_cast<requests::token*>(const_cast<void*>(data)));
}

/// A thread that reads the clock later than planned was stopped, and the client's threads with it.
/// They now process the answers that have arrived meanwhile: they get as long as the delay was, but
/// at most this.
constexpr std::chrono::nanoseconds longest_last_look = std::chrono::milliseconds(100);

template <class Condition>
void wait_for(clock& on, std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
              boot_time until, Condition so) {
  while (!so() && on.now() < until) on.wait_until(lock, changed, until);
  const boot_time over = on.now();
  const boot_time at_last = over + std::min(over - until, longest_last_look);
  while (!so() && on.now() < at_last) on.wait_until(lock, changed, at_last);
}

}  // namespace

std::unique_ptr<requests::token> requests::expect(std::size_t i) {
  return owned(new token{shared_from_this(), i});
}

void requests::sent(owned t, int rc) noexcept {
  if (rc == ZOK) return (void)t.release();  // the completion owns it, and may have taken it by now
  answer a;
  a.rc = rc;
  t->of->put(t->index, std::move(a));
}

void requests::note_answers(std::shared_ptr<session_time> in, boot_time sent) {
  time_ = std::move(in);
  sent_ = sent;
}

void requests::put(std::size_t i, answer a) noexcept {
  if (time_ && leader_answered(a.rc)) time_->answered(sent_);
  const std::lock_guard guard{mutex_};
  answers_[i] = std::move(a);
  if (--missing_ == 0) changed_.notify_one();
}

std::vector<answer> requests::wait(clock& on, boot_time until) {
  std::unique_lock lock{mutex_};
  wait_for(on, lock, changed_, until, [this] { return missing_ == 0; });
  return answers_;
}

// Without memory for the answer, the request counts as one that could not even be made.
template <class Fill>
void requests::answered(int rc, const struct Stat* stat, const void* data, Fill fill) noexcept {
  const auto t = take(data);
  answer a;
  a.rc = rc;
  if (stat != nullptr) a.stat = *stat;
  try {
    fill(a, *t->of);
  } catch (...) {
    a = {};
    a.rc = ZMARSHALLINGERROR;
  }
  t->of->put(t->index, std::move(a));
}

void requests::on_void(int rc, const void* data) noexcept { on_stat(rc, nullptr, data); }

void requests::on_stat(int rc, const struct Stat* stat, const void* data) noexcept {
  answered(rc, stat, data, [](answer&, requests&) {});
}

void requests::on_data(int rc, const char* value, int size, const struct Stat* stat,
                       const void* data) noexcept {
  answered(rc, stat, data, [&](answer& a, requests&) {
    if (value != nullptr && size > 0) a.text.assign(value, static_cast<std::size_t>(size));
  });
}

void requests::on_names(int rc, const String_vector* names, const void* data) noexcept {
  answered(rc, nullptr, data, [&](answer& a, requests&) {
    for (int i = 0; names != nullptr && i < names->count; ++i) a.names.emplace_back(names->data[i]);
  });
}

void requests::on_text(int rc, const char* text, const void* data) noexcept {
  on_text_stat(rc, text, nullptr, data);
}

void requests::on_text_stat(int rc, const char* text, const struct Stat* stat,
                            const void* data) noexcept {
  answered(rc, stat, data, [&](answer& a, requests&) {
    if (text != nullptr) a.text = text;
  });
}

void requests::on_made(int rc, const void* data) noexcept {
  answered(rc, nullptr, data, [](answer& a, requests& of) { a.text = of.path_made_; });
}

// ---- connection

namespace {

void say_nothing(const char*) {}

/// The client takes any bytes for the offer of a session. When a session breaks, it connects again
/// after a 60th of the session's time: at once, and for ever, if that is no whole millisecond.
constexpr std::chrono::milliseconds shortest_session{60};

failure no_thread(const std::system_error& e) {
  return {errc::unavailable, "no thread for ZooKeeper's client: " + std::string(e.what()) +
                                 "; raise the limit of threads (ulimit -u, pids cgroup)"};
}

// The client starts two threads, and ends the program if it does not get them.
status has_two_threads() {
  std::mutex mutex;
  std::vector<std::jthread> both;
  const std::lock_guard until_both_are_there{mutex};
  try {
    while (both.size() < 2) both.emplace_back([&] { const std::lock_guard waits{mutex}; });
  } catch (const std::system_error& e) {
    return no_thread(e);
  }
  return done{};
}

failure no_zookeeper(const std::string& hosts) {
  const std::string at = (hosts.find(',') == hosts.npos ? "" : "one of ") + hosts;
  return {errc::unavailable,
          "what answers at " + at + " is no ZooKeeper, or one that only reads; is the port right?"};
}

bool is_host_unknown(int error) { return error == ENOENT || error == EINVAL || error == EAGAIN; }

}  // namespace

result<std::shared_ptr<connection>> connection::open(const zookeeper_options& o) {
  // Disables the client's log. It belongs to the whole program, and so does the C library's time
  // zone lock, which the client takes for every line: a child forked at that moment would wait for
  // the lock for ever.
  zoo_set_debug_level(ZooLogLevel{});
  if (auto ok = has_two_threads(); !ok) return std::move(ok.error());
  std::shared_ptr<connection> c(new connection(o));
  std::unique_lock not_yet{c->in_use_};
  c->handle_ =
      zookeeper_init2(o.hosts.c_str(), &connection::on_session, static_cast<int>(o.session.count()),
                      nullptr, c.get(), 0, &say_nothing);
  if (c->handle_ == nullptr) {
    const int error = errno;
    return failure{errc::unavailable,
                   is_host_unknown(error)
                       ? "the host names of the servers cannot be resolved: " + o.hosts
                       : "cannot be reached: " + std::string(std::strerror(error))};
  }
  // Otherwise the client's thread looks up the names before each request: an unreachable name
  // server would block all requests of the session, although its connection works.
  (void)zoo_set_servers_resolution_delay(c->handle_, -1);
  if (!o.user.empty()) {
    const std::string who = o.user + ":" + o.password;
    (void)zoo_add_auth(c->handle_, "digest", who.data(), static_cast<int>(who.size()),
                       &connection::on_auth, c.get());
  }
  not_yet.unlock();
  try {
    c->speaks_ = std::thread([of = c.get()] { of->speak(); });
  } catch (const std::system_error& e) {
    return no_thread(e);
  }
  return c;
}

// Ends the session, so that its entries are removed at once.
connection::~connection() {
  std::unique_lock lock{mutex_};
  ending_ = true;
  changed_.notify_all();
  while (closing_) changed_.wait(lock);
  lock.unlock();
  if (speaks_.joinable()) speaks_.join();
  close();
  time_->end();  // the client's thread may still report answers, when the clock is gone
}

// Preferably called by the client's thread that reports answers: then the client reports all
// remaining answers before this returns. Closed by another thread, it would report no more.
void connection::close() {
  std::unique_lock lock{in_use_};
  zhandle_t* const client = std::exchange(handle_, nullptr);
  lock.unlock();
  if (client != nullptr) (void)zookeeper_close(client);
}

void connection::on_session(zhandle_t* handle, int type, int state, const char*, void* context) {
  if (type != ZOO_SESSION_EVENT || zoo_get_context(handle) == nullptr) return;
  auto& self = *static_cast<connection*>(context);
  const std::chrono::milliseconds agreed{zoo_recv_timeout(handle)};
  const bool no_time = state == ZOO_CONNECTED_STATE && agreed < shortest_session;
  if (no_time || state == ZOO_READONLY_STATE) {  // nobody asked for a session that only reads
    const std::lock_guard guard{self.mutex_};
    self.foreign_ = true;
  } else if (state == ZOO_CONNECTED_STATE) {
    self.time_->agreed(agreed);
    peer_address at;
    at.size = sizeof at.bytes;
    auto* const room = reinterpret_cast<sockaddr*>(&at.bytes);
    if (zookeeper_get_connected_host(handle, room, &at.size) == nullptr) at.size = 0;
    const std::lock_guard guard{self.mutex_};
    self.session_ = static_cast<std::uint64_t>(zoo_client_id(handle)->client_id);
    self.member_ = at;
  }
  self.changed(state, handle);
}

void connection::on_auth(int rc, const void* data) {
  if (rc == ZAUTHFAILED) {
    const_cast<connection*>(static_cast<const connection*>(data))
        ->changed(ZOO_AUTH_FAILED_STATE, nullptr);
  }
}

void connection::changed(int state, zhandle_t* to_close) {
  std::unique_lock lock{mutex_};
  connected_ |= state == ZOO_CONNECTED_STATE && !foreign_;
  if (state == ZOO_CONNECTED_STATE) away_since_.reset();
  if (state == ZOO_CONNECTING_STATE && connected_ && !away_since_)
    away_since_ = options_.clock->now();
  expired_ |= state == ZOO_EXPIRED_SESSION_STATE;
  refused_ |= state == ZOO_AUTH_FAILED_STATE;
  changed_.notify_all();
  if (!is_over()) return;
  const bool mine = to_close != nullptr && !ending_;
  if (mine) closing_ = true;
  lock.unlock();
  call_all();
  if (!mine) return;
  zoo_set_context(to_close, nullptr);  // later events are not for this object
  close();
  lock.lock();
  closing_ = false;
  changed_.notify_all();
}

// Runs as long as the session lasts. Before it is connected the client sends nothing anyway.
void connection::speak() {
  auto& on = *options_.clock;
  std::weak_ptr<requests> unanswered;
  second other;  // destroyed without the mutex
  std::unique_lock lock{mutex_};
  boot_time looked{};
  while (!ending_ && !is_over()) {
    const bool looks = away_since_ || other.session;
    const boot_time at = time_->speaks_at();
    const boot_time looks_at = looks ? looked + time_->session() / 6 : forever;
    const boot_time now = on.now();
    if (!connected_) {
      changed_.wait(lock);
    } else if (now < std::min(at, looks_at)) {
      on.wait_until(lock, changed_, std::min(at, looks_at));
    } else {
      lock.unlock();
      if (now >= at) speak_once(unanswered);
      if (now >= looks_at) end_if_refused(other), looked = now;
      lock.lock();
    }
  }
}

// The member answers this request by itself. While one such request has no answer, no other is
// sent. Lack of memory counts as a missing answer.
void connection::speak_once(std::weak_ptr<requests>& unanswered) try {
  const boot_time now = options_.clock->now();
  if (!unanswered.expired()) return (void)time_->sent(now);
  const auto one = std::make_shared<requests>(1);
  unanswered = one;
  (void)asks(*one, now);
  auto token = one->expect(0);
  const auto kept = keep();
  const int rc = handle_ == nullptr ? int{ZINVALIDSTATE}
                                    : zoo_aexists(handle_, "/", 0, &requests::on_stat, token.get());
  requests::sent(std::move(token), rc);
} catch (...) {
  (void)time_->sent(options_.clock->now());
}

// Servers that have lost data (they were restored from a backup, for example) refuse a client that
// has seen later changes, and do not tell it why: it would try for ever. So a session that has been
// away for its whole time begins another one. If the servers accept that one, and not this one for
// half of that time, this one is over. While no server answers, it goes on.
void connection::end_if_refused(second& other) noexcept try {
  const auto away = away_for(), session = time_->session();
  const boot_time now = options_.clock->now();
  const bool failed = other.session && (other.session->over() || other.session->away_for() > 0ns);
  if (away < session || failed) {
    other = {};
  } else if (!other.session) {
    if (is_ending()) return;  // a host name may take long to resolve
    if (auto begun = open(options_)) other.session = std::move(*begun);
  } else if (!other.accepted_at) {
    if (other.session->session() != 0) other.accepted_at = now;
  } else if (now - *other.accepted_at >= session / 2) {
    give_up(session);
  }
} catch (...) {
  return;  // no memory: looks again soon
}

// A session that has got in meanwhile after all goes on: it may have a lock again.
void connection::give_up(std::chrono::nanoseconds session) {
  {
    const std::lock_guard guard{mutex_};
    if (!away_since_ || options_.clock->now() - *away_since_ < session) return;
    expired_ = true;
    changed_.notify_all();
  }
  call_all();
}

bool connection::is_ending() const {
  const std::lock_guard guard{mutex_};
  return ending_;
}

std::chrono::nanoseconds connection::away_for() const {
  const std::lock_guard guard{mutex_};
  return away_since_ ? options_.clock->now() - *away_since_ : std::chrono::nanoseconds{};
}

status connection::wait_connected(boot_time until) {
  std::unique_lock lock{mutex_};
  wait_for(*options_.clock, lock, changed_, until, [this] { return connected_ || is_over(); });
  if (refused_) return explain(ZAUTHFAILED, options_, false);
  if (foreign_) return no_zookeeper(options_.hosts);
  if (connected_) return done{};
  return failure{
      errc::unavailable,
      "no server accepted the session within " + std::to_string(options_.connect_timeout.count()) +
          " ms: are the servers up, does a majority of them see each other, and do they accept "
          "more connections from this host (maxClientCnxns)?"};
}

bool connection::over() const {
  const std::lock_guard guard{mutex_};
  return is_over();
}

std::optional<failure> connection::foreign() const {
  const std::lock_guard guard{mutex_};
  if (!foreign_) return std::nullopt;
  return no_zookeeper(options_.hosts);
}

bool connection::refused() const {
  const std::lock_guard guard{mutex_};
  return refused_;
}

boot_time connection::asks(requests& all, boot_time now) {
  all.note_answers(time_, now);
  return time_->sent(now);
}

void connection::leave_if_silent() noexcept {
  std::unique_lock lock{mutex_};
  const peer_address member = member_;
  lock.unlock();
  if (member.size == 0) return;
  (void)shut_down_silent(member, options_.command_timeout, sockets_of_others_);
}

std::uint64_t connection::session() const noexcept {
  const std::lock_guard guard{mutex_};
  return session_;
}

std::string connection::id() const { return base::in_hex(session()); }

// The numbers of watches are unique in the program: the number from an ended session means nothing
// to the next session.
void* connection::watch(alarm call) {
  static std::atomic<std::uintptr_t> last{0};
  const std::uintptr_t id = ++last;
  const std::lock_guard guard{mutex_};
  alarms_.emplace(id, std::move(call));
  return reinterpret_cast<void*>(id);
}

void connection::unwatch(void* context) {
  const std::lock_guard guard{mutex_};
  alarms_.erase(reinterpret_cast<std::uintptr_t>(context));
}

// Session events reach every watch, too: changed() handles them.
void connection::on_watch(zhandle_t* handle, int type, int, const char*, void* context) {
  if (type == ZOO_SESSION_EVENT) return;
  auto* const self = static_cast<connection*>(const_cast<void*>(zoo_get_context(handle)));
  if (self == nullptr) return;
  std::unique_lock lock{self->mutex_};
  const auto at = self->alarms_.extract(reinterpret_cast<std::uintptr_t>(context));
  lock.unlock();
  if (at) at.mapped()();
}

void connection::call_all() {
  std::unique_lock lock{mutex_};
  const auto all = std::exchange(alarms_, {});
  lock.unlock();
  for (const auto& [id, call] : all) call();
}

failure explain(int rc, const zookeeper_options& o, bool writes) {
  const std::string said = zerror(rc);
  switch (rc) {
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
      return {errc::unavailable, "no answer (" + said + "): is a majority of the servers up?",
              writes};
    case ZSESSIONMOVED:
      return {errc::unavailable,
              "the request came over a server that the session has left (" + said +
                  "): the client goes on at another server, so try again",
              writes};
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZCLOSING:
      return {errc::unavailable,
              "the session has ended (" + said + "); the next call opens another", writes};
    case ZNOAUTH:
    case ZINVALIDACL:
      return {errc::not_permitted,
              (o.user.empty() ? "not allowed without a user" : "not allowed for '" + o.user + "'") +
                  std::string(" (" + said + "): check the ACL of ") +
                  (o.base.empty() ? "/" : o.base)};
    case ZAUTHFAILED:
      return {errc::not_permitted, "the server refuses '" + o.user + "' (" + said + ")"};
    case ZUNIMPLEMENTED:
      return {errc::unsupported,
              "the server is older than ZooKeeper 3.5, which is the first with "
              "containers (" +
                  said + ")"};
    case ZMARSHALLINGERROR:  // counts as a missing answer, even for a read
      return {errc::overloaded, "this process has no memory for it (" + said + ")", true};
    case ZNOTREADONLY:
      return {errc::unavailable, "the server is cut off from the majority (" + said + ")"};
    default:
      return {errc::unavailable, "the server answered: " + said, writes};
  }
}

}  // namespace holdfast::store::zookeeper
