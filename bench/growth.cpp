#include "bench/growth.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/workers.hpp"
#include "bench/workload.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

struct step {
  std::size_t number;
  std::string_view text;
};
constexpr std::array<step, 6> steps{{{10, "10"},
                                     {100, "100"},
                                     {1'000, "1,000"},
                                     {10'000, "10,000"},
                                     {100'000, "100,000"},
                                     {1'000'000, "1,000,000"}}};

constexpr std::size_t samples = 500;
constexpr std::size_t hand_overs = 100;
constexpr std::size_t most_sessions = 1'000;
constexpr std::size_t most_waiters = 10'000;
/// On stores other than Redis a whole record is decoded, and written again, for each waiter.
constexpr std::size_t most_waiters_in_a_record = 1'000;

outcome outcome_of(std::vector<std::int64_t> took) {
  std::sort(took.begin(), took.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(took[(took.size() - 1) * percent / 100]) / 1e3;
  };
  outcome o;
  o.p50_us = at(50);
  o.p99_us = at(99);
  o.acquired = static_cast<double>(took.size());
  return o;
}

template <class F>
outcome timed(F operation) {
  std::vector<std::int64_t> took(samples);
  for (auto& one : took) {
    const auto began = now_ns();
    operation();
    one = now_ns() - began;
  }
  return outcome_of(std::move(took));
}

/// Each measurement goes out as a row of a median, with the memory of each element.
class series {
 public:
  series(std::string_view name, const std::function<void(const row&)>& say)
      : name_(name), say_(say), memory_(memory_in_use()) {}

  void tell(const step& at, outcome o) const {
    const auto gained = std::max<std::int64_t>(memory_in_use() - memory_, 0);
    o.bytes_each = static_cast<double>(gained) / static_cast<double>(at.number);
    row r;
    r.workload = name_;
    r.subject = at.text;
    r.median = o;
    r.rounds = 1;
    say_(r);
  }

 private:
  const std::string_view name_;
  const std::function<void(const row&)>& say_;
  const std::int64_t memory_;
};

/// This many leases, acquired and released by several threads, each of which keeps its part.
class crowd {
 public:
  crowd(holdfast::session& s, std::string prefix, holdfast::lock_options how)
      : session_(s), prefix_(std::move(prefix)), how_(std::move(how)) {
    how_.unconfirmed_release = true;
  }
  ~crowd() {
    by_all([](std::vector<holdfast::lease>& mine, std::size_t) { mine.clear(); });
  }
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;

  void grow_to(std::size_t number) {
    by_all([&](std::vector<holdfast::lease>& mine, std::size_t part) {
      for (auto i = mine.size() * parts + part; i < number; i += parts) {
        holdfast::mutex lock{session_, prefix_ + std::to_string(i), how_};
        mine.push_back(lock.acquire());
      }
    });
  }
  holdfast::lease& any(std::size_t i) {
    auto& mine = held_[i % parts];
    return mine[i / parts % mine.size()];
  }

 private:
  static constexpr std::size_t parts = 8;

  template <class F>
  void by_all(F work) {
    std::vector<std::thread> threads;
    threads.reserve(parts);
    for (std::size_t p = 0; p < parts; ++p) {
      threads.emplace_back([&, p] { work(held_[p], p); });
    }
    for (auto& t : threads) t.join();
  }

  holdfast::session& session_;
  const std::string prefix_;
  holdfast::lock_options how_;
  std::array<std::vector<holdfast::lease>, parts> held_;
};

// Nobody renews them: only the number of names matters here.
void grow_names(const std::string& url, std::size_t most, const series& to) {
  auto there = holdfast::open(url);
  auto here = holdfast::open(url);
  holdfast::lock_options how;
  how.lease = 1h;
  how.renew = false;
  crowd all{there, "bench:name:", how};
  holdfast::mutex free{here, "bench:free"};
  for (const auto& at : steps) {
    if (at.number > most) return;
    all.grow_to(at.number);
    to.tell(at, timed([&] { free.lock(), free.unlock(); }));
  }
}

void grow_leases(const std::string& url, std::size_t most, const series& to) {
  auto here = holdfast::open(url);
  holdfast::lock_options how;
  how.lease = 30s;
  crowd all{here, "bench:lease:", how};
  for (const auto& at : steps) {
    if (at.number > most) return;
    all.grow_to(at.number);
    std::size_t next = 0;
    to.tell(at, timed([&] { all.any(next += 7919).extend(30s); }));
  }
}

/// This many wait; the first ones acquire it one after the other; the others give up.
outcome pass_on(holdfast::session& s, std::size_t waiters) {
  holdfast::fair_mutex lock{s, "bench:queue"};
  auto first = lock.acquire();
  std::vector<std::int64_t> had_it;
  std::atomic<std::size_t> over{0};
  std::stop_source rest;
  const auto wanted = std::min(waiters, hand_overs);
  had_it.reserve(waiters + 1);  // a callback holds the lock while it writes
  for (std::size_t i = 0; i < waiters; ++i) {
    async_acquire(lock, {}, rest.get_token()).start([&](holdfast::result<holdfast::lease> got) {
      if (got) {
        had_it.push_back(now_ns());
        if (had_it.size() > wanted) rest.request_stop();
        (void)got->release();
      }
      ++over;
      over.notify_all();
    });
  }
  while (s.show("bench:queue").waiters.size() < waiters) std::this_thread::yield();
  had_it.push_back(now_ns());
  (void)first.release();
  for (auto n = over.load(); n < waiters; n = over.load()) over.wait(n);
  std::vector<std::int64_t> took(wanted);
  for (std::size_t i = 0; i < wanted; ++i) took[i] = had_it[i + 1] - had_it[i];
  return outcome_of(std::move(took));
}

void grow_waiters(const std::string& url, std::size_t most, const series& to) {
  auto here = holdfast::open(url);
  for (const auto& at : steps) {
    if (at.number > most) return;
    to.tell(at, pass_on(here, at.number));
  }
}

void raise_limit_of_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// Each has a lease, so none of them is idle. A server that accepts no more of them ends the series.
void grow_sessions(const std::string& url, std::size_t most, const series& to) {
  raise_limit_of_descriptors();
  auto here = holdfast::open(url);
  holdfast::mutex free{here, "bench:free"};
  std::vector<std::pair<holdfast::session, holdfast::lease>> all;
  for (const auto& at : steps) {
    if (at.number > most) return;
    while (all.size() < at.number) {
      try {
        auto s = holdfast::open(url);
        auto l = holdfast::mutex(s, "bench:session:" + std::to_string(all.size())).acquire();
        all.emplace_back(std::move(s), std::move(l));
      } catch (const holdfast::error& e) {
        std::fprintf(stderr, "sessions end at %zu: %s\n", all.size(), e.what());
        return;
      }
    }
    to.tell(at, timed([&] { free.lock(), free.unlock(); }));
  }
}

}  // namespace

void measure_growth(const std::string& url, std::size_t most,
                    const std::function<void(const row&)>& say) {
  const bool queues = holdfast::open(url).can().fair;
  const bool in_a_record = !scheme_of(url).starts_with("redis");
  grow_names(url, most, {"names", say});
  grow_leases(url, std::min<std::size_t>(most, 100'000), {"leases", say});
  if (queues) {
    const auto longest = in_a_record ? most_waiters_in_a_record : most_waiters;
    grow_waiters(url, std::min(most, longest), {"waiters", say});
  }
  grow_sessions(url, std::min(most, most_sessions), {"sessions", say});
}

}  // namespace bench
