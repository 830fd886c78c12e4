#include "bench/several.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <thread>

#include "bench/shared_state.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

double micros(std::chrono::nanoseconds d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

double quantile(std::vector<double>& all, double q) {
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(all.size() - 1) * q);
  std::nth_element(all.begin(), all.begin() + at, all.end());
  return all[static_cast<std::size_t>(at)];
}

struct contender {
  std::string name;
  std::function<void()> lock_and_unlock;
};

double p50_of_round(const contender& c, std::chrono::nanoseconds length) {
  std::vector<double> took;
  for (auto now = clock::now(), end = now + length; now < end;) {
    c.lock_and_unlock();
    const auto then = clock::now();
    took.push_back(micros(then - now));
    now = then;
  }
  return quantile(took, 0.5);
}

std::vector<holdfast::session> open_all(const std::vector<std::string>& urls) {
  std::vector<holdfast::session> all;
  all.reserve(urls.size());
  for (const auto& url : urls) all.push_back(holdfast::open(url));
  return all;
}

/// From the moment when all begin until the first one has acquired it.
double first_of(std::vector<std::unique_ptr<holdfast::redlock>>& all) {
  std::atomic<std::size_t> ready{0};
  std::atomic<bool> go{false};
  std::atomic<std::int64_t> first{0};
  clock::time_point began;
  std::vector<std::jthread> workers;
  workers.reserve(all.size());
  for (auto& lock : all) {
    workers.emplace_back([&] {
      ++ready;
      go.wait(false);
      const auto held = lock->acquire();
      std::int64_t nobody = 0;
      first.compare_exchange_strong(nobody, (clock::now() - began) / 1ns);
    });
  }
  while (ready < all.size()) std::this_thread::yield();
  began = clock::now();
  go = true;
  go.notify_all();
  workers.clear();
  return micros(std::chrono::nanoseconds(first));
}

void measure_settling(const std::vector<std::string>& urls, std::chrono::nanoseconds length) {
  const auto session = holdfast::open(urls.front());
  const double trip = p50_of_round({"", [&] { (void)session.show("bench:nothing"); }}, length / 10);
  std::vector<std::unique_ptr<holdfast::redlock>> three;
  for (int i = 0; i < 3; ++i) {
    three.push_back(std::make_unique<holdfast::redlock>(open_all(urls), "bench:contended"));
    (void)three.back()->acquire().release();
  }
  std::vector<double> took;
  for (const auto end = clock::now() + length; clock::now() < end;) took.push_back(first_of(three));
  const double p50 = quantile(took, 0.5), p99 = quantile(took, 0.99);
  std::printf(
      "\nThree contenders at the same moment, until the first has it: p50 %.0f us, p99 %.0f us; ",
      p50, p99);
  std::printf("a round trip is %.0f us: %.1f and %.1f of them.\n", trip, p50 / trip, p99 / trip);
}

}  // namespace

void measure_several(const std::vector<std::string>& urls, std::chrono::milliseconds length,
                     unsigned rounds) {
  const auto nodes = open_all(urls);
  holdfast::mutex one{nodes.front(), "bench:one"};
  std::vector<std::unique_ptr<holdfast::mutex>> eight;
  std::vector<holdfast::multi_member> members;
  for (int i = 0; i < 8; ++i) {
    eight.push_back(
        std::make_unique<holdfast::mutex>(nodes.front(), "{bench}:" + std::to_string(i)));
    members.emplace_back(*eight.back());
  }
  holdfast::multi_lock all{members};
  holdfast::redlock quorum{nodes, "bench:quorum"}, alone{{nodes.front()}, "bench:alone"};
  const auto both = [](auto& lock) { return [&lock] { lock.lock(), lock.unlock(); }; };
  std::vector<contender> who{{"mutex", both(one)},
                             {"multi_lock of 8 names", both(all)},
                             {"redlock of 1 store", both(alone)},
                             {"redlock of all stores", both(quorum)}};
  if (auto raw = raw_quorum(urls)) who.push_back({"the least for all stores", std::move(raw)});
  std::vector<std::vector<double>> seen(who.size());
  for (unsigned r = 0; r < rounds; ++r) {
    for (std::size_t i = 0; i < who.size(); ++i) {
      seen[i].push_back(p50_of_round(who[i], length / rounds));
    }
  }
  const double baseline = quantile(seen[0], 0.5);
  std::printf("| %zu stores, lock and unlock | p50 us | to a mutex |\n|---|--:|--:|\n",
              urls.size());
  for (std::size_t i = 0; i < who.size(); ++i) {
    const double p50 = quantile(seen[i], 0.5);
    std::printf("| %s | %.1f | %.2f x |\n", who[i].name.c_str(), p50, p50 / baseline);
  }
  measure_settling(urls, length);
}

}  // namespace bench
