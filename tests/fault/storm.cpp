#include "fault/storm.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <holdfast/holdfast.hpp>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/process.hpp"
#include "harness/resource.hpp"
#include "harness/seed.hpp"
#include "harness/temp_dir.hpp"

namespace fault_test {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t processes = 6;
constexpr std::uint32_t threads = 2;
constexpr std::uint32_t all_readers = 1U << 30;

/// The names, and what they protect.
enum at_name { exclusive, readers_too, two_permits, one, other, names };
constexpr std::array<const char*, names> name_of{"m", "rw", "s", "a", "b"};
constexpr std::array<std::uint32_t, names> capacity_of{1, all_readers, 2, 1, 1};

std::int64_t now_ns() { return clock::now().time_since_epoch().count(); }

void raise_to(std::atomic<std::uint64_t>& most, std::uint64_t value) {
  for (auto seen = most.load(); seen < value;) {
    if (most.compare_exchange_weak(seen, value)) return;
  }
}

/// A resource that a lock protects: it remembers the greatest fence, and refuses smaller ones. In
/// memory shared by processes, which may be killed in the middle of an access.
class site {
 public:
  void begin() {
    pthread_mutexattr_t kind;
    ::pthread_mutexattr_init(&kind);
    ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&guard_, &kind);
    ::pthread_mutexattr_destroy(&kind);
  }
  struct seen {
    bool let_in = false;
    std::uint64_t number = 0;
    std::uint64_t visit = 0;
  };
  seen read(std::uint64_t fence, bool writes) {
    const entry mine(guard_);
    if (!admits(fence, writes)) return {};
    if (writes) last_fence_ = fence;
    return {true, number_, writes ? ++visits_ : visits_};
  }
  struct written {
    bool let_in = false;
    bool others_came = false;  ///< since the read, to write
    bool same_fence = false;   ///< with the same fence
    bool lost = false;         ///< overwrites another process's write since then
  };
  written write(std::uint64_t fence, const seen& before) {
    const entry mine(guard_);
    if (!admits(fence, true)) return {};
    const bool lost = number_ != before.number;
    number_ = before.number + 1;
    const bool others_came = visits_ != before.visit;
    return {true, others_came, others_came && fence == last_fence_, lost};
  }

  /// When a worker was last here.
  std::int64_t used_at() const { return used_at_; }
  void touch() { used_at_ = now_ns(); }

 private:
  struct entry {
    explicit entry(pthread_mutex_t& guard) : of(guard) {
      if (::pthread_mutex_lock(&of) == EOWNERDEAD) ::pthread_mutex_consistent(&of);
    }
    ~entry() { ::pthread_mutex_unlock(&of); }
    entry(const entry&) = delete;
    pthread_mutex_t& of;
  };
  // The order of readers does not matter.
  bool admits(std::uint64_t fence, bool writes) {
    if (fence == 0) return true;  // the store has none
    if (fence < (writes ? greatest_ : greatest_of_writers_)) return false;
    greatest_ = std::max(greatest_, fence);
    if (writes) greatest_of_writers_ = std::max(greatest_of_writers_, fence);
    return true;
  }

  std::atomic<std::int64_t> used_at_;
  pthread_mutex_t guard_;
  std::uint64_t greatest_, greatest_of_writers_, number_, visits_, last_fence_;
};

/// What a worker is inside of.
struct place {
  std::atomic<std::uint64_t> inside;  ///< pid << 32 | name << 1 | alone; 0: of nothing
  std::atomic<std::int64_t> met_at;   ///< when another worker came in too early
};

struct board {
  std::atomic<std::uint32_t> over;
  std::atomic<std::uint64_t> sections, told_lost, failed, refused, fenced_overlaps, same_fences,
      lost_updates, longest_idle_ms, told_late, latest_told_ms;
  std::array<site, names> sites;
  std::array<place, std::size_t{processes} * threads> places;
  std::array<std::atomic<std::int64_t>, processes> went_on_at;  ///< after it was stopped
};

struct common_ground {
  explicit common_ground(const std::string& folder) : all(folder + "/board") {
    for (const char* const name : name_of)
      believed.push_back(std::make_unique<harness::resource>(folder + "/" + name));
  }
  harness::shared<board> all;
  /// In time of its own: the sections of workers that were sure of their lock from beginning to
  /// end.
  std::vector<std::unique_ptr<harness::resource>> believed;
};

// ---- one of the threads

/// The locks around a section.
struct part {
  at_name name = exclusive;
  std::uint64_t fence = 0;
  std::uint32_t weight = 1;
  bool writes() const { return weight == capacity_of[name]; }
};

holdfast::lock_options options_of(const holdfast::session& s, std::uint32_t worker,
                                  harness::random& random) {
  holdfast::lock_options o;
  o.unconfirmed_release = worker % 3 == 1;
  if (worker % 2 == 1) o.local_time = 0us;
  if (worker % 4 == 2) o.max_bypass = 0;
  const auto& can = s.can();
  constexpr std::array lingers{20'000us, 200'000us};
  if (worker % 4 == 3 && can.notifications && can.tells_holders) o.linger = random.pick(lingers);
  return o;
}

class contestant {
 public:
  contestant(const holdfast::session& s, const std::string& folder, std::uint32_t worker,
             std::uint64_t seed)
      : ground_(folder), worker_(worker), random_(seed, worker) {
    const auto& can = s.can();
    const auto o = options_of(s, worker, random_);
    plain_.emplace(s, name_of[exclusive], o);
    auto without_linger = o;
    without_linger.linger = 0us;
    const holdfast::lock_options unset;
    auto without_local_queue = without_linger;
    without_local_queue.local_time = unset.local_time;
    without_local_queue.max_bypass = unset.max_bypass;
    if (can.fair) fair_.emplace(s, name_of[exclusive], without_local_queue);
    if (can.shared)
      shared_.emplace(s, name_of[readers_too],
                      holdfast::shared_mutex_options{{without_local_queue}, {}});
    if (can.semaphore) permits_.emplace(s, name_of[two_permits], 2, without_local_queue);
    a_.emplace(s, name_of[one], without_linger);
    b_.emplace(s, name_of[other], without_linger);
    both_.emplace(std::vector<holdfast::multi_member>{*a_, *b_});
  }

  /// Until the storm is over, and once more then.
  void work() {
    for (bool last = false; !last;) {
      last = ground_.all->over != 0;
      while (!tried()) {
      }
    }
  }

 private:
  /// A store that is away is the subject of this test; any other error ends the process.
  bool tried() try {
    asked_ = now_ns();
    return section();
  } catch (const holdfast::error& e) {
    auto& b = *ground_.all;
    if (!e.retryable() && !e.lease_gone()) throw;
    ++(e.lease_gone() ? b.told_lost : b.failed);
    return false;
  }

  bool section() {
    switch (random_.between(0, 4)) {
      case 0:
        return in(exclusive, *plain_);
      case 1:
        return fair_ ? in(exclusive, *fair_) : in(one, *a_);
      case 2:
        return shared_ ? shared() : in(other, *b_);
      case 3:
        return permits_ ? permit() : in(exclusive, *plain_);
      default:
        return several();
    }
  }

  template <class Lock>
  bool in(at_name name, Lock& l) {
    auto held = random_.one_in(4) ? l.try_acquire_for(a_while()) : std::optional(l.acquire());
    if (!held) return false;
    inside(*held, {{{name, held->fence(), 1}}});
    return true;
  }
  bool shared() {
    auto& l = *shared_;
    const bool writes = random_.one_in(3);
    auto held = writes ? std::optional(l.acquire()) : l.try_acquire_shared_for(1s);
    if (!held) return false;
    inside(*held, {{{readers_too, held->fence(), writes ? all_readers : 1}}});
    return true;
  }
  bool permit() {
    const std::uint32_t weight = random_.between(1U, 2U);
    auto held = permits_->acquire(weight);
    inside(held, {{{two_permits, 0, weight}}});
    return true;
  }
  bool several() {
    auto held =
        random_.one_in(4) ? both_->try_acquire_for(a_while()) : std::optional(both_->acquire());
    if (!held) return false;
    const auto fences = held->fences();
    inside(*held, {{{one, fences[0], 1}, {other, fences[1], 1}}});
    return true;
  }
  milliseconds a_while() { return milliseconds(random_.between(1, 300)); }

  template <class Held>
  void inside(const Held& held, const std::vector<part>& parts) {
    held.check();
    std::vector<std::uint64_t> begun;
    for (const auto& p : parts) {
      begun.push_back(ground_.believed[p.name]->tick());
      come_in(p);
    }
    {
      const std::stop_callback told{held.lost(), [this] { is_told(); }};
      use(parts);
    }
    std::vector<std::uint64_t> ended;
    for (const auto& p : parts) ended.push_back(ground_.believed[p.name]->tick());
    is_told();
    mine().inside = 0;
    for (const auto& p : parts) ground_.all->sites[p.name].touch();
    held.check();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& p = parts[i];
      ground_.believed[p.name]->record({.worker = worker_,
                                        .fence = p.fence,
                                        .weight = p.weight,
                                        .capacity = capacity_of[p.name]},
                                       begun[i], ended[i]);
    }
    ++ground_.all->sections;
  }

  void come_in(const part& p) {
    auto& b = *ground_.all;
    auto& at = b.sites[p.name];
    const auto now = now_ns();
    const auto waited_since =
        std::max({asked_, at.used_at(), b.went_on_at[worker_ / threads].load()});
    raise_to(b.longest_idle_ms,
             static_cast<std::uint64_t>(std::max<std::int64_t>(now - waited_since, 0) / 1'000'000));
    at.touch();
    if (p.name == two_permits) return;
    const auto says = static_cast<std::uint64_t>(p.name) << 1;
    for (auto& other : b.places) {
      const auto inside = other.inside.load();
      if (inside == 0 || &other == &mine() || (inside & 0xfffffffe) != says) continue;
      if (!p.writes() && (inside & 1) == 0) continue;
      if (!harness::can_act(static_cast<pid_t>(inside >> 32))) continue;
      std::int64_t nobody = 0;
      other.met_at.compare_exchange_strong(nobody, now);
    }
    mine().met_at = 0;
    mine().inside = static_cast<std::uint64_t>(::getpid()) << 32 | says | (p.writes() ? 1 : 0);
  }

  // A loss is reported late if that happens after another worker came in, unless this process did
  // not run.
  void is_told() {
    auto& b = *ground_.all;
    const auto met_at = mine().met_at.exchange(-1);
    if (met_at <= 0 || b.went_on_at[worker_ / threads] >= met_at) return;
    ++b.told_late;
    raise_to(b.latest_told_ms, static_cast<std::uint64_t>((now_ns() - met_at) / 1'000'000));
  }

  void use(const std::vector<part>& parts) {
    auto& b = *ground_.all;
    std::vector<site::seen> seen;
    for (const auto& p : parts) {
      seen.push_back(p.name == two_permits ? site::seen{true}
                                           : b.sites[p.name].read(p.fence, p.writes()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random_.between(0, 3'000)));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& p = parts[i];
      if (!seen[i].let_in) ++b.refused;
      if (!seen[i].let_in || !p.writes() || p.name == two_permits) continue;
      const auto written = b.sites[p.name].write(p.fence, seen[i]);
      b.refused += !written.let_in;
      b.fenced_overlaps += written.others_came;
      b.same_fences += written.same_fence;
      b.lost_updates += written.lost;
    }
  }

  place& mine() { return ground_.all->places[worker_]; }

  common_ground ground_;
  const std::uint32_t worker_;
  harness::random random_;
  std::optional<holdfast::mutex> plain_, a_, b_;
  std::optional<holdfast::fair_mutex> fair_;
  std::optional<holdfast::shared_mutex> shared_;
  std::optional<holdfast::semaphore> permits_;
  std::optional<holdfast::multi_lock> both_;
  std::int64_t asked_ = 0;
};

// Arguments: URL FOLDER PROCESS SEED LEASE_MS.
const harness::role contestants{
    "contestants", [](const std::vector<std::string>& args) {
      holdfast::session_options o;
      o.lease = milliseconds(std::stoll(args[4]));
      o.store_timeout = 500ms;
      std::optional<holdfast::session> session;
      harness::eventually("the store", [&] {
        try {
          session = holdfast::open(args[0], o);
        } catch (const holdfast::error& e) {
          if (!e.retryable()) throw;
        }
        return session.has_value();
      });
      const auto first = static_cast<std::uint32_t>(std::stoul(args[2])) * threads;
      std::vector<std::jthread> all;
      for (std::uint32_t i = 0; i < threads; ++i) {
        all.emplace_back(
            [&, i] { contestant(*session, args[1], first + i, std::stoull(args[3])).work(); });
      }
      return 0;
    }};

// ---- the troublemaker

std::chrono::seconds time_to_spend() {
  const char* const given = std::getenv("HOLDFAST_CHAOS_SECONDS");
  return std::chrono::seconds(given == nullptr ? 0 : std::atoi(given));
}
bool in_short() { return time_to_spend() == 0s; }

class referee {
 public:
  explicit referee(const storm_at& at) : at_(at) {
    for (auto& s : ground_.all->sites) s.begin();
    for (std::uint32_t i = 0; i < processes; ++i) all_.push_back(start(i));
  }

  void until_they_got_somewhere() {
    const auto until =
        ground_.all->sections + random_.between<std::uint64_t>(20, in_short() ? 40 : 200);
    try {
      harness::eventually("progress", [&] { return ground_.all->sections >= until; });
    } catch (const std::exception&) {
      std::cout << "nobody gets on:\n" << how_it_stands();
      throw;
    }
  }
  void kill_one() {
    const auto victim = a_process();
    all_[victim].kill();
    all_[victim] = start(victim);
    ++faults_;
  }
  void stop_one() {
    const auto victim = a_process();
    all_[victim].stop();
    pass(in_short() ? at_.lease / 2 : 2 * at_.lease);
    ground_.all->went_on_at[victim] = now_ns();
    all_[victim].resume();
    ++faults_;
  }
  void make(const trouble& t) {
    t.begins();
    if (t.ends) {
      pass(in_short() ? 500ms : 2s);
      t.ends();
    }
    ++faults_;
  }
  /// Half of the troubles, in any order.
  std::vector<trouble> some() {
    auto all = at_.troubles;
    std::shuffle(all.begin(), all.end(), random_.generator());
    all.resize((all.size() + 1) / 2);
    return all;
  }
  /// Any trouble.
  void make_any() {
    const int what = random_.between(0, 5);
    if (what == 0 || (what > 1 && at_.troubles.empty() && what % 2 == 0)) return kill_one();
    if (what == 1 || at_.troubles.empty()) return stop_one();
    make(random_.pick(at_.troubles));
  }
  void finish() {
    ground_.all->over = 1;
    harness::eventually("everybody to finish", [&] {
      return std::all_of(all_.begin(), all_.end(), [](auto& c) { return c.ended(); });
    });
    for (auto& c : all_) {
      if (const int code = c.wait(); code != 0)
        wrong_.push_back("ended with " + std::to_string(code));
    }
  }

  scorecard card() {
    const auto& b = *ground_.all;
    scorecard c;
    c.store = at_.store;
    c.sections = b.sections;
    c.faults = faults_;
    c.told_lost = b.told_lost;
    c.failed = b.failed;
    c.refused = b.refused;
    c.fenced_overlaps = b.fenced_overlaps;
    c.same_fences = b.same_fences;
    c.lost_updates = b.lost_updates;
    c.longest_idle_ms = b.longest_idle_ms;
    c.told_late = b.told_late;
    c.latest_told_ms = b.latest_told_ms;
    for (int i = 0; i < names; ++i) judge(static_cast<at_name>(i), c);
    c.wrong = wrong_;
    c.left_behind = left_behind();
    return c;
  }

 private:
  harness::child start(std::uint32_t number) {
    return harness::child("contestants", {at_.urls[number % at_.urls.size()], dir_.path().string(),
                                          std::to_string(number), std::to_string(random_.bits()),
                                          std::to_string(at_.lease.count())});
  }
  std::string how_it_stands() {
    std::string text;
    for (std::uint32_t i = 0; i < processes; ++i) {
      text +=
          "  process " + std::to_string(i) +
          (all_[i].ended() ? " has ended\n" : " runs, pid " + std::to_string(all_[i].pid()) + "\n");
    }
    const auto s = holdfast::open(at_.urls.front());
    for (const char* const name : name_of) {
      const auto there = s.show(name);
      text += std::string("  ") + name + ":";
      for (const auto& h : there.holders) text += " held by " + std::to_string(h.pid);
      for (const auto& w : there.waiters) text += ", " + std::to_string(w.pid) + " waits";
      text += '\n';
    }
    return text;
  }
  std::uint32_t a_process() { return random_.between<std::uint32_t>(0, processes - 1); }
  void pass(milliseconds most) {
    std::this_thread::sleep_for(milliseconds(random_.between<std::int64_t>(10, most.count())));
  }

  void judge(at_name name, scorecard& c) {
    harness::history_rules rules;
    rules.capacity = capacity_of[name];
    rules.readers_share = name == readers_too;
    for (auto& text : harness::violations(ground_.believed[name]->history(), rules)) {
      const bool overlap = text.starts_with("overlap");
      if (!overlap && name == two_permits) continue;  // it shows no fence
      ++(overlap ? c.believed_overlaps : c.shrunken_fences);
      if (wrong_.size() < 5) wrong_.push_back(std::string(name_of[name]) + ": " + text);
    }
  }
  std::uint64_t left_behind() const {
    const auto s = holdfast::open(at_.urls.front());
    std::vector<std::string> left;
    try {
      harness::eventually("nothing is left behind", [&] { return (left = s.names()).empty(); });
    } catch (const std::exception&) {
      return left.size();
    }
    return 0;
  }

  const storm_at& at_;
  harness::temp_dir dir_;
  common_ground ground_{dir_.path().string()};
  harness::random random_;
  std::vector<harness::child> all_;
  std::uint64_t faults_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace

scorecard storm(const storm_at& at) {
  std::cout << "seed " << harness::seed() << '\n';
  const auto begin = clock::now();
  referee r(at);
  if (in_short()) {
    r.until_they_got_somewhere();
    r.kill_one();
    for (const auto& t : r.some()) {
      r.until_they_got_somewhere();
      std::cout << "  " << t.what << std::endl;
      r.make(t);
    }
    r.until_they_got_somewhere();
    r.stop_one();
  }
  while (clock::now() - begin < time_to_spend()) {
    r.until_they_got_somewhere();
    r.make_any();
  }
  r.until_they_got_somewhere();
  r.finish();
  auto card = r.card();
  card.seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(clock::now() - begin).count());
  std::cout << scorecard::header() << card.row();
  for (const auto& w : card.wrong) std::cout << "  " << w << '\n';
  if (card.same_fences > 0)
    std::cout << "  the same fence twice: " << card.same_fences << " times\n";
  return card;
}

std::string scorecard::header() {
  return "| store | s | sections | faults | overlaps, both sure | overlaps at the fenced resource "
         "| "
         "lost updates | fences not grown | refused by the fence | reported losses | late "
         "reports "
         "| longest idle | left behind |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
}

std::string scorecard::row() const {
  std::string text = "| " + store;
  for (const auto n : {seconds, sections, faults, believed_overlaps, fenced_overlaps, lost_updates,
                       shrunken_fences, refused, told_lost}) {
    text += " | " + std::to_string(n);
  }
  text += " | " + std::to_string(told_late);
  if (told_late > 0) text += " (" + std::to_string(latest_told_ms) + " ms)";
  return text + " | " + std::to_string(longest_idle_ms) + " ms | " + std::to_string(left_behind) +
         " |\n";
}

}  // namespace fault_test
