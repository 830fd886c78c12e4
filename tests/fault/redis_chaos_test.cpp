#ifdef HOLDFAST_WITH_REDIS
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/redis_fleet.hpp"
#include "harness/seed.hpp"

// Processes that are killed at any moment, on servers to which everything happens that happens to
// servers. A few of the faults each time; all of them, over and over, for so many
// HOLDFAST_CHAOS_SECONDS in each test.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;
using harness::eventually;
using harness::redis_server;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t workers = 6;
constexpr const char* name = "m";
constexpr const char* impatient = "?command_timeout=300ms&connect_timeout=300ms";

/// What all processes of a round write to.
struct board {
  std::atomic<std::uint32_t> over;        ///< each is to come in once more, and to go
  std::atomic<std::uint64_t> failed;      ///< calls that found the store away
  std::atomic<std::uint64_t> longest_ms;  ///< that somebody was not let in
};

class survivor {
 public:
  explicit survivor(const std::vector<std::string>& args)
      : at_(args[1]),
        board_(args[1] + "-board"),
        number_(static_cast<std::uint32_t>(std::stoul(args[2]))),
        random_(std::stoull(args[3]), number_) {
    eventually("the store",
               [&] { return tried([&] { session_ = holdfast::open(args[0], options()); }); });
  }

  void work() {
    holdfast::mutex plain{*session_, name};
    holdfast::fair_mutex fair{*session_, name};
    for (bool last = false; !last;) {
      last = board_->over != 0;
      bool let_in = false;
      while (!let_in)
        (void)tried(
            [&] { let_in = use(random_.one_in(2) ? plain : static_cast<holdfast::mutex&>(fair)); });
      note_the_wait();
    }
  }

 private:
  static holdfast::session_options options() {
    holdfast::session_options o;
    o.lease = 600ms;
    o.store_timeout = 500ms;
    return o;
  }

  /// A store that is away is what all of this is about; whatever else there is ends the process.
  template <class Call>
  bool tried(Call call) {
    try {
      return call(), true;
    } catch (const holdfast::error& e) {
      if (!e.retryable()) throw;
      ++board_->failed;
      return false;
    }
  }

  bool use(holdfast::mutex& m) {
    auto held = random_.one_in(4) ? m.try_acquire_for(1ms) : std::optional(m.acquire());
    const bool let_in = held && at_.guarded_use({.worker = number_, .fence = held->fence()});
    if (held) (void)held->release();
    return let_in;
  }

  void note_the_wait() {
    const auto waited = std::chrono::ceil<std::chrono::milliseconds>(clock::now() - let_in_at_);
    let_in_at_ = clock::now();
    const auto ms = static_cast<std::uint64_t>(waited.count());
    for (auto seen = board_->longest_ms.load(); seen < ms;) {
      if (board_->longest_ms.compare_exchange_weak(seen, ms)) return;
    }
  }

  harness::resource at_;
  harness::shared<board> board_;
  const std::uint32_t number_;
  harness::random random_;
  std::optional<holdfast::session> session_;
  clock::time_point let_in_at_ = clock::now();
};

// URL PAGE WORKER SEED
const harness::role survivor_role{"survivor", [](const std::vector<std::string>& args) {
                                    survivor(args).work();
                                    return 0;
                                  }};

/// The processes of one round, and what they do it to.
class crew {
 public:
  crew(std::string url, harness::random& random) : url_(std::move(url)), random_(random) {
    for (std::uint32_t i = 0; i < workers; ++i) all_.push_back(start(i));
  }

  void until_they_got_somewhere() {
    const auto until = at_.count().entries + random_.between<std::uint64_t>(50, 1'000);
    eventually("progress", [&] { return at_.count().entries >= until; });
  }
  /// Or have found another server.
  void until_they_failed(std::uint64_t most) {
    const auto failures = board_->failed + random_.between<std::uint64_t>(0, most);
    const auto visits = at_.count().entries + 2 * workers;
    eventually("failures",
               [&] { return board_->failed >= failures || at_.count().entries >= visits; });
  }
  void kill_one() {
    const auto victim = random_.between<std::uint32_t>(0, workers - 1);
    all_[victim].kill();
    all_[victim] = start(victim);
    ++kills_;
  }
  /// Everybody comes in once more, and goes.
  void finish() {
    board_->over = 1;
    eventually("everybody to finish", [&] {
      return std::all_of(all_.begin(), all_.end(), [](child& c) { return c.ended(); });
    });
    for (auto& c : all_) EXPECT_EQ(c.wait(), 0);
  }

  int kills() const { return kills_; }
  std::uint64_t longest_ms() const { return board_->longest_ms; }
  std::uint64_t failed() const { return board_->failed; }
  const harness::resource& at() const { return at_; }

 private:
  child start(std::uint32_t number) {
    return child("survivor", {url_, page_, std::to_string(number), std::to_string(random_.bits())});
  }

  const std::string url_;
  harness::random& random_;
  harness::temp_dir dir_;
  const std::string page_ = dir_.file("resource");
  harness::resource at_{page_};
  harness::shared<board> board_{page_ + "-board"};
  std::vector<child> all_;
  int kills_ = 0;
};

struct fault {
  const char* what;
  std::function<void(crew&)> happen;
};

std::chrono::seconds time_to_spend() {
  const char* const given = std::getenv("HOLDFAST_CHAOS_SECONDS");
  return std::chrono::seconds(given == nullptr ? 0 : std::atoi(given));
}

/// How often one may come in while another is inside who does not know yet that it was passed over.
/// As long as one server decides, a fault can do that to each process once.
enum class unaware { once_a_fault, while_two_decide };

/// The faults in any order, and kills in between.
void one_round(const std::string& url, std::vector<fault> faults, harness::random& random,
               unaware allowed) {
  crew c(url, random);
  std::shuffle(faults.begin(), faults.end(), random.generator());
  if (time_to_spend() == 0s) faults.resize(faults.size() / 2);
  for (const auto& f : faults) {
    for (int kills = random.between(1, 2); kills > 0; --kills) {
      c.until_they_got_somewhere();
      c.kill_one();
    }
    c.until_they_got_somewhere();
    std::cout << "  " << f.what << std::flush;
    f.happen(c);
  }
  c.until_they_got_somewhere();
  c.finish();
  const auto t = c.at().count();
  const auto history = c.at().history();
  const auto wrong = harness::violations(history, {});
  EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
  if (allowed == unaware::once_a_fault) {
    EXPECT_LE(t.overlaps, workers * faults.size());
  }
  std::cout << "\n  killed " << c.kills() << ", failed calls " << c.failed() << ", let in "
            << history.size() << ", overlaps at the fenced resource " << wrong.size()
            << ", met unaware " << t.overlaps << ", refused by the fence " << t.refused
            << ", longest without " << c.longest_ms() << " ms\n";
  auto s = holdfast::open(url);
  eventually("that nothing stays behind", [&] { return s.names().empty(); });
}

void storm(const std::string& url, unaware allowed, const std::vector<fault>& faults) {
  harness::random random;
  const auto begin = clock::now();
  int round = 0;
  do {
    std::cout << "seed " << harness::seed() << ", round " << ++round << ":\n";
    one_round(url, faults, random, allowed);
  } while (!testing::Test::HasFailure() && clock::now() - begin < time_to_spend());
}

void stop_until_felt(redis_server& s, crew& c, std::uint64_t failures) {
  s.stop();
  c.until_they_failed(failures);
  s.resume();
}

void hang_up(const redis_server& s) {
  s.ask({"CLIENT", "KILL", "TYPE", "normal"});
  s.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
}

TEST(redis_chaos, on_one_server_nothing_overlaps_and_nobody_is_stuck) {
  redis_server server;
  const auto stop = [&](crew& c) { stop_until_felt(server, c, 24); };
  storm(server.tcp_url(impatient), unaware::once_a_fault,
        {{"stopped", stop},
         {"stopped", stop},
         {"hung up", [&](crew&) { hang_up(server); }},
         {"flushed", [&](crew&) { server.ask({"FLUSHALL"}); }},
         {"scripts flushed", [&](crew&) { server.ask({"SCRIPT", "FLUSH"}); }},
         {"restarted empty", [&](crew&) { server.kill(), server.start(); }},
         {"away", [&](crew& c) { server.kill(), c.until_they_failed(24), server.start(); }}});
}

class redis_chaos_sentinels : public testing::Test {
 protected:
  static std::string of_replication(const redis_server& s, const std::string& field) {
    return s.field({"INFO", "replication"}, field);
  }
  // A former primary goes on as one until the sentinels tell it.
  void until_well() {
    eventually("one primary, and replicas of it", [&] {
      return of_replication(fleet_.primary(), "role") == "master" &&
             of_replication(fleet_.primary(), "connected_slaves") == "2";
    });
  }
  void replace_the_primary() {
    auto& before = fleet_.primary();
    fleet_.fail_over();
    before.start();
    before.ask({"REPLICAOF", "127.0.0.1", std::to_string(fleet_.primary().port())});
    until_well();
  }
  harness::redis_sentinels fleet_{500};
};

TEST_F(redis_chaos_sentinels, nothing_overlaps_at_the_fenced_resource_and_nobody_is_stuck) {
  storm(fleet_.url(impatient), unaware::while_two_decide,
        {{"primary killed", [&](crew&) { replace_the_primary(); }},
         {"primary stopped",
          [&](crew& c) { stop_until_felt(fleet_.primary(), c, 24), until_well(); }},
         {"hung up", [&](crew&) { hang_up(fleet_.primary()); }}});
}

class redis_chaos_cluster : public testing::Test {
 protected:
  redis_server& owner() const { return cluster_.owner(slot_); }
  redis_server& another_primary() const {
    for (const auto& n : cluster_.nodes()) {
      const bool primary = n->field({"INFO", "replication"}, "role") == "master";
      if (primary && n.get() != &owner()) return *n;
    }
    throw std::logic_error("there are three");
  }
  void replace_the_owner() {
    auto& before = owner();
    before.kill();
    eventually("another owner", [&] { return cluster_.is_served(slot_); });
    before.start();
    cluster_.until_well();
  }
  harness::redis_cluster cluster_{1'000};
  const int slot_ = cluster_.slot_of(std::string("holdfast:{") + name + "}");
};

TEST_F(redis_chaos_cluster, nothing_overlaps_at_the_fenced_resource_and_nobody_is_stuck) {
  storm(
      cluster_.url(impatient), unaware::while_two_decide,
      {{"owner killed", [&](crew&) { replace_the_owner(); }},
       {"owner stopped", [&](crew& c) { stop_until_felt(owner(), c, 40), cluster_.until_well(); }},
       {"slot moved", [&](crew&) { cluster_.move(slot_, another_primary()); }},
       {"hung up", [&](crew&) { hang_up(owner()); }}});
}

}  // namespace
#endif
