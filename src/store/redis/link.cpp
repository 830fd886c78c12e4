#include "store/redis/link.hpp"

#include <algorithm>
#include <array>
#include <holdfast/store/micros.hpp>
#include <utility>

#include "store/redis/errors.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

/// A request waits for the end of a pause up to this long.
constexpr auto short_pause = 100ms;
/// How long a thread stays awake for its reply while no other thread waits.
constexpr auto longest_awake = 50us;
/// The most posted commands that may be unanswered.
constexpr std::size_t most_posted = 1'000;
/// So many commands fit into the socket buffer, whether or not the server reads.
constexpr std::size_t most_at_once = 32;

failure timed_out(const redis_options& o) {
  return {errc::unavailable,
          "the server did not answer within " + std::to_string(o.command_timeout.count()) +
              " ms; is it stopped, or the network cut?",
          true};
}

void raise(std::atomic<std::int64_t>& to, std::int64_t least) noexcept {
  auto was = to.load(std::memory_order_relaxed);
  while (was < least && !to.compare_exchange_weak(was, least, std::memory_order_relaxed)) {
  }
}

failure copy_of(const failure& f) noexcept try { return f; } catch (...) {
  return without_memory(true);
}

failure broken(std::string why) {
  return {errc::unavailable, "the connection broke: " + std::move(why), true};
}

}  // namespace

status link::open() {
  {
    lock l{mutex_};
    if (auto ok = ensure_connected(l, boot_clock::now() + options_.connect_timeout); !ok) return ok;
  }
  auto looked =
      check_server(*connection_, options_);  // no other thread is here, and it may warn a user
  // The answer to the check may still arrive: it must not be taken for the answer to a later
  // request.
  if (!looked) renew_connection(looked.error(), connections_);
  return looked;
}

void link::renew_connection(failure why, std::uint64_t over) {
  why.outcome_unknown = true;
  {
    const std::lock_guard guard{mutex_};
    if (over != connections_) return;
    break_off(why);
  }
  tell_posted();
}

link::~link() { renew_connection({errc::unavailable, "the session has ended"}, connections_); }

result<link::answer> link::ask(std::span<const message> all, boot_time deadline) {
  auto first = ask_once(all, deadline);
  const bool may_be_repeated =
      std::none_of(all.begin(), all.end(), [](const message& m) { return m.once; });
  if (first || !first.error().outcome_unknown || !may_be_repeated ||
      boot_clock::now() >= deadline) {
    return first;
  }
  // The connection broke before the answer: the server closed an idle connection, or was restarted.
  auto second = ask_once(all, deadline);
  if (second)
    second->repeated = true;
  else
    second.error().outcome_unknown = true;
  return second;
}

result<link::answer> link::ask_once(std::span<const message> all, boot_time deadline) {
  ticket mine;
  for (const auto& m : all) mine.wanted += m.replies;
  mine.deadline = deadline;
  mine.replies.reserve(mine.wanted);
  lock l{mutex_};
  const bool was_connected = connection_ != nullptr;
  if (auto ok = ensure_connected(l, deadline); !ok) return std::move(ok.error());
  // A request sent after its deadline would fail at once, and close the connection with it: no
  // request would ever get a connection.
  if (!was_connected && boot_clock::now() >= deadline)
    return failure{errc::unavailable,
                   "connecting took longer than the time limit of this command: the next command "
                   "finds the connection open"};
  put_in_flight(all, mine);
  if (!flushing_) flush(l);
  wait_for(l, mine);
  tell_posted();
  if (mine.wrong) return std::move(*mine.wrong);
  return answer{std::move(mine.replies), false, mine.over_connection};
}

// ---- until when the server may carry out a command

// Computed from the server's time at its answer, which is in the past: so the server's clock shows
// no less now, and a server with that limit has finished before the caller gives up.
void link::saw_time(std::int64_t now_at, std::uint64_t over) noexcept {
  const auto here = micros(boot_clock::now());
  const std::lock_guard guard{mutex_};
  if (over == connections_) ahead_ = now_at - here;
}

void link::saw_after(std::int64_t after) noexcept { raise(after_, after); }

void link::put_out(const message& m, ticket& t) {
  out_ += m.bytes;
  if (!m.stamped) return;
  std::string word = "9999999999999999";
  if (ahead_) {
    const auto now = micros(boot_clock::now()) + *ahead_;
    const auto due = micros(t.deadline) + *ahead_;
    const auto until = std::max({due, on_their_way_until_ + 1, after_.load() + 1});
    word = std::to_string(until);
    if (on_their_way_until_ >= now) word += ' ' + std::to_string(on_their_way_until_);
    t.carried_out_until = std::max(t.carried_out_until, until);
  }
  out_ += '$' + std::to_string(word.size()) + "\r\n" + word + "\r\n";
}

void link::put_in_flight(std::span<const message> all, ticket& t) {
  const std::size_t before = out_.size();
  try {
    for (const auto& m : all) put_out(m, t);
    in_flight_.push_back(&t);
  } catch (...) {
    out_.resize(before);
    throw;
  }
}

// ---- posted commands, for which no thread waits

bool link::post(const message& command, listener& then) {
  {
    lock l{mutex_};
    if (!connection_ || posted_.size() >= most_posted) return false;
    put(l, command, then);
  }
  tell_posted();
  return true;
}

bool link::post_now(const message& command, listener& then) {
  lock l{mutex_};
  if (!connection_ || leading_ || flushing_ || in_flight_.size() >= most_at_once) return false;
  put(l, command, then);
  return true;
}

void link::put(lock& l, const message& command, listener& then) {
  std::list<ticket> one(1);
  ticket& t = one.front();
  t.wanted = 1;
  t.replies.reserve(1);
  t.deadline = boot_clock::now() + options_.command_timeout;
  t.place = one.begin();
  put_in_flight({&command, 1}, t);
  t.then = std::move(then);
  posted_.splice(posted_.end(), one);
  if (!flushing_) flush(l);
}

std::shared_ptr<const connection> link::to_read() {
  const std::lock_guard guard{mutex_};
  return leading_ ? nullptr : connection_;
}

// Another thread that comes meanwhile waits for a moment, and then goes on reading.
void link::collect() {
  ticket* finished = nullptr;
  lock l{mutex_};
  if (!leading_ && connection_ && !posted_.empty()) {
    leading_ = true;
    std::vector<resp_value> replies;
    failure problem{};
    const auto from = connection_;
    l.unlock();
    const bool alive = read_some(*from, reading::glance, replies, problem);
    l.lock();
    if (connection_ == from) {
      hand_out(replies, finished);
      if (!alive) break_off(problem);
      fail_overdue();
    }
    pass_lead_on();
  }
  l.unlock();
  wake_all(finished, nullptr);
  tell_posted();
}

// Replies come in order: when the reply to this PING is here, so are all earlier ones.
void link::settle() {
  std::unique_lock l{mutex_};
  const bool waiting = !posted_.empty();
  l.unlock();
  const message ping{"*1\r\n$4\r\nPING\r\n"};
  if (waiting) (void)ask_once({&ping, 1}, boot_clock::now() + options_.command_timeout);
  tell_posted();
}

void link::lay_by(ticket& posted) noexcept {
  to_tell_.splice(to_tell_.end(), posted_, posted.place);
  something_to_tell_.store(true, std::memory_order_relaxed);
}

// The thread that reads calls this only when it has finished reading: a listener may send a request
// over this link.
void link::tell_posted() noexcept {
  if (!something_to_tell_.load(std::memory_order_relaxed)) return;
  std::list<ticket> over;
  std::unique_lock l{mutex_};
  over.swap(to_tell_);
  something_to_tell_.store(false, std::memory_order_relaxed);
  l.unlock();
  for (auto& t : over) {
    try {
      if (t.wrong)
        t.then(std::move(*t.wrong));
      else
        t.then(answer{std::move(t.replies), false, t.over_connection});
    } catch (...) {
      // The listener has no memory for the answer, as if the answer had been lost. The other
      // listeners get theirs.
    }
  }
}

// ---- connecting

status link::ensure_connected(lock& l, boot_time deadline) {
  while (!connection_) {
    const auto now = boot_clock::now();
    if (connecting_) {
      if (now >= deadline)
        return failure{errc::unavailable,
                       "there is no connection yet: the attempt to connect is still under way"};
      connected_.wait_for(l, std::min<std::chrono::nanoseconds>(deadline - now, 100ms));
    } else if (last_problem_ && now < pause_.until()) {
      if (std::min(deadline, now + short_pause) < pause_.until()) return *last_problem_;
      connected_.wait_for(l, pause_.until() - now);
    } else {
      connect_now(l);
      if (!connection_) return last_problem_ ? *last_problem_ : broken("it was closed again");
    }
  }
  return done{};
}

void link::connect_now(lock& l) {
  connecting_ = true;
  l.unlock();
  auto made = [&]() -> result<std::unique_ptr<connection>> {
    try {
      auto there = greet(options_, purpose::commands);
      if (there && options_.commands_go_to) options_.commands_go_to((*there)->server);
      return there;
    } catch (...) {
      return without_memory(true);
    }
  }();
  l.lock();
  connecting_ = false;
  if (made) {
    connection_ = std::move(*made);
    ++connections_;
    ahead_ = connection_->ahead_us;
    out_.clear();
    last_problem_.reset();
  } else {
    pause_before_next(std::move(made.error()));
  }
  connected_.notify_all();
}

void link::pause_before_next(failure why) noexcept {
  pause_.begin(std::exchange(useful_, false), boot_clock::now());
  last_problem_ = std::move(why);
  // A request that was not sent changed nothing. Lack of memory counts as a missing answer, so that
  // a waiter asks again.
  last_problem_->outcome_unknown = last_problem_->code == errc::overloaded;
}

// ---- writing

namespace {

// A transport may need memory to describe the failure.
io write_or_fail(transport& to, std::string_view bytes, std::chrono::milliseconds within) noexcept
    try {
  return write_all(to, bytes, {boot_clock::now() + within});
} catch (...) {
  return io::failed;
}

}  // namespace

// One thread writes at a time. It also writes what other threads add meanwhile.
void link::flush(lock& l) noexcept {
  flushing_ = true;
  std::string bytes;
  while (!out_.empty() && connection_) {
    bytes.clear();
    bytes.swap(out_);
    const auto to = connection_;
    l.unlock();
    const auto wrote = write_or_fail(*to->wire, bytes, options_.command_timeout);
    l.lock();
    if (wrote == io::done || connection_ != to) continue;
    break_off_as(
        [&] { return wrote == io::again ? timed_out(options_) : broken(to->wire->problem()); });
  }
  flushing_ = false;
}

// ---- reading

void link::wait_for(lock& l, ticket& mine) noexcept {
  if (leading_ || mine.over) {
    l.unlock();
    if ((mine.wake.wait() & lead_on) == 0) return;
    l.lock();
    mine.wake.clear(lead_on);
  }
  lead(l, mine);
}

// Reads for all threads until its own replies are there, then lets the next thread read.
void link::lead(lock& l, ticket& mine) noexcept {
  leading_ = true;
  std::vector<resp_value> replies;
  ticket* finished = nullptr;
  failure problem{};
  while (!mine.over) {
    const auto from = connection_;
    // The answer may have arrived although the deadline is over, if this process was stopped: reads
    // once more without waiting.
    const bool overdue = is_overdue();
    bool alive = false;
    if (from) {
      const bool alone = in_flight_.back() == &mine;
      const auto how = overdue ? reading::glance : alone ? reading::awake : reading::asleep;
      l.unlock();
      alive = read_some(*from, how, replies, problem);
      l.lock();
    }
    if (from && connection_ == from) {
      hand_out(replies, finished);
      if (!alive) break_off(problem);
      if (overdue) fail_overdue();
    }
    replies.clear();
    if (finished == nullptr || (finished == &mine && mine.next_woken == nullptr)) {
      finished = nullptr;
      continue;
    }
    l.unlock();
    wake_all(finished, &mine);
    l.lock();
  }
  pass_lead_on();
  l.unlock();
}

void link::pass_lead_on() noexcept {
  ticket* const next = next_to_lead();
  leading_ = next != nullptr;
  if (next != nullptr) next->wake.set(lead_on);
}

link::ticket* link::next_to_lead() const noexcept {
  const auto next =
      std::find_if(in_flight_.begin(), in_flight_.end(), [](const ticket* t) { return !t->then; });
  return next == in_flight_.end() ? nullptr : *next;
}

// Reads all available bytes, and waits for some if there are none. Returns false if no more bytes
// will arrive, or if memory is lacking.
bool link::read_some(connection& c, reading how, std::vector<resp_value>& replies,
                     failure& problem) noexcept try {
  return read_now(c, how, replies, problem);
} catch (...) {
  problem = without_memory(true);
  return false;
}

bool link::read_now(connection& c, reading how, std::vector<resp_value>& replies,
                    failure& problem) {
  std::array<char, 32 * 1024> buffer;
  io_result r{io::again};
  if (how == reading::glance) r = c.wire->read(buffer, false);
  if (how == reading::awake) {
    r = awake_.wait([&] { return c.wire->read(buffer, false); }, boot_clock::now, longest_awake);
  }
  if (how != reading::glance && r.status == io::again) r = c.wire->read(buffer, true);
  if (r.status == io::again) return true;
  if (r.status != io::done) {
    problem = broken(r.status == io::closed ? "the server closed it" : c.wire->problem());
    return false;
  }
  c.reader.put(std::string_view(buffer.data(), r.bytes));
  resp_value v;
  while (true) {
    const auto got = c.reader.next(v);
    if (got == resp_reader::progress::need_more) return true;
    if (got == resp_reader::progress::broken) return problem = broken(c.reader.problem()), false;
    if (v.type != resp_type::push) replies.push_back(std::move(v));
  }
}

// Does not allocate: the tickets have room for their replies.
void link::hand_out(std::vector<resp_value>& replies, ticket*& finished) noexcept {
  for (auto& r : replies) {
    if (in_flight_.empty())
      return break_off_as([] { return broken("the server sent an answer without a request"); });
    ticket& t = *in_flight_.front();
    t.replies.push_back(std::move(r));
    if (t.replies.size() < t.wanted) continue;
    t.over = true;
    t.over_connection = connections_;
    useful_ = useful_ || !t.replies.front().is_error();
    in_flight_.pop_front();
    if (t.then) {
      lay_by(t);
    } else {
      t.next_woken = std::exchange(finished, &t);
    }
  }
}

bool link::is_overdue() const noexcept {
  return !in_flight_.empty() && boot_clock::now() >= in_flight_.front()->deadline;
}

void link::fail_overdue() noexcept {
  if (is_overdue()) break_off_as([&] { return timed_out(options_); });
}

template <class Why>
void link::break_off_as(Why why) noexcept {
  failure f = without_memory(true);
  try {
    f = why();
  } catch (...) {
    // No memory for the message: the failure says that instead.
  }
  break_off(f);
}

// Wakes the threads with the mutex held: one of the tickets may belong to the thread that reads,
// which goes away without waiting to be woken.
void link::break_off(const failure& why) noexcept {
  if (connection_) {
    connection_->wire->shut_down();
    pause_before_next(copy_of(why));
  }
  connection_.reset();
  out_.clear();
  for (ticket* t : in_flight_) {
    t->over = true;
    t->wrong = copy_of(why);
    on_their_way_until_ = std::max(on_their_way_until_, t->carried_out_until);
    if (t->then)
      lay_by(*t);
    else
      t->wake.set(settled);
  }
  in_flight_.clear();
}

// A woken thread may destroy its ticket at once.
void link::wake_all(ticket*& finished, const ticket* but) noexcept {
  while (finished != nullptr) {
    ticket* const t = std::exchange(finished, finished->next_woken);
    if (t != but) t->wake.set(settled);
  }
}

}  // namespace holdfast::store::redis
