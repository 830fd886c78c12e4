#include "harness/crowd.hpp"

#include <gtest/gtest.h>

#include <holdfast/guard.hpp>

#include "harness/eventually.hpp"
#include "harness/process.hpp"

namespace harness {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;

namespace {

std::string where(const lease& held) {
  const auto at = holdfast::guard::standing_of(held);
  return at.key + ' ' + std::to_string(at.created);
}

/// Acquires the lock and reports its fence; then, for each line, reports whether it still holds the
/// lock, or where the hold is stored.
const role holder{"lock-holder", [](const auto& args) {
                    auto session = holdfast::open(args.at(0));
                    holdfast::mutex lock{session, "job"};
                    const lease held = lock.acquire();
                    say(std::to_string(held.fence()));
                    for (auto line = hear(); !line.empty(); line = hear()) {
                      try {
                        held.check();
                        say(line == "where" ? where(held) : "held");
                      } catch (const holdfast::error& e) {
                        say(e.reason() == errc::lost ? "lost" : e.what());
                      }
                    }
                    return 0;
                  }};

}  // namespace

holdfast::error thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const holdfast::error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return holdfast::error({});
}

crowd::crowd(const std::vector<std::string>& urls) {
  for (const auto& url : urls) {
    const auto worker = static_cast<std::uint32_t>(threads_.size());
    threads_.emplace_back([this, url, worker] { work(url, worker); });
  }
}

crowd::~crowd() { stop(); }

void crowd::stop() {
  over_ = true;
  for (auto& t : threads_) {
    if (t.joinable()) t.join();
  }
}

std::size_t crowd::holds() const {
  const std::lock_guard guard{mutex_};
  return history_.size();
}

void crowd::until_more(std::size_t by) const {
  const auto now = holds();
  eventually("the crowd goes on", [&] { return holds() >= now + by; });
}

std::vector<std::string> crowd::violations() {
  stop();
  return harness::violations(history_, {});
}

void crowd::work(const std::string& url, std::uint32_t worker) {
  auto session = holdfast::open(url);
  holdfast::fair_mutex lock{session, "job"};
  while (!over_) {
    try {
      const auto held = lock.try_acquire_for(500ms);
      if (held) note(*held, worker);
    } catch (const holdfast::error&) {
      // The store is away; the crowd does not judge for how long.
    }
  }
}

// Only work done while the lease reports that it is held counts.
void crowd::note(const lease& held, std::uint32_t worker) {
  const auto begin = ++ticks_;
  std::this_thread::yield();
  const auto end = ++ticks_;
  if (held.state() == lease_state::lost) return;
  const std::lock_guard guard{mutex_};
  history_.push_back({.begin = begin, .end = end, .worker = worker, .fence = held.fence()});
}

}  // namespace harness
