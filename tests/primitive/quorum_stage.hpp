#pragma once

#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/stage.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"

/// N stores over memory on one clock that stands still, and clients that each have a way of their
/// own to every store: it may be cut, or hang. A store can restart empty.
namespace quorum_test {

using namespace std::chrono_literals;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

/// A store that has forgotten everything before its latest start.
class forgetful final : public harness::passing_on {
 public:
  using starts = std::shared_ptr<std::atomic<int>>;
  forgetful(std::unique_ptr<holdfast::store::session_store> inner, starts s)
      : passing_on(std::move(inner)), starts_(std::move(s)) {}

  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    return inner_->permits(std::string(name) + "#" + std::to_string(*starts_), c);
  }

 private:
  const starts starts_;
};

class world {
 public:
  explicit world(std::size_t n) {
    static std::atomic<int> number{0};
    const auto id = "memory:quorum-" + std::to_string(++number) + "-";
    for (std::size_t i = 0; i < n; ++i) {
      urls_.push_back(id + std::to_string(i));
      starts_.push_back(std::make_shared<std::atomic<int>>(0));
      keeps_.push_back(open(i, nullptr));
    }
  }

  std::size_t size() const { return urls_.size(); }
  holdfast::session open(std::size_t node, std::shared_ptr<engine_test::script> way) const {
    holdfast::session_options o;
    o.clock = clock;
    o.observer = seen;
    o.decorate = [this, node, way](std::unique_ptr<holdfast::store::session_store> inner)
        -> std::unique_ptr<holdfast::store::session_store> {
      auto made = std::make_unique<forgetful>(std::move(inner), starts_[node]);
      if (!way) return made;
      holdfast::testing::fault_plan plan;
      plan.choose = [way](auto, auto, auto v) { return way->choose(v); };
      return holdfast::testing::faulty(plan, clock)(std::move(made));
    };
    return holdfast::open(urls_[node], o);
  }
  void restart_empty(std::size_t node) { ++*starts_[node]; }
  /// The number of nodes that report it as held.
  std::size_t held_at() const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < size(); ++i) n += holders(i);
    return n;
  }
  std::size_t holders(std::size_t node) const { return keeps_[node].show("job").holders.size(); }
  void until_free() const {
    harness::eventually("free everywhere", [&] { return held_at() == 0; });
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<engine_test::recorder> seen = std::make_shared<engine_test::recorder>();

 private:
  std::vector<std::string> urls_;
  std::vector<forgetful::starts> starts_;
  std::vector<holdfast::session> keeps_;
};

/// A client that wants the lock, and its ways to the nodes.
struct client {
  explicit client(const world& w, holdfast::redlock_options o = {}) : lock(open(w), "job", o) {}
  ~client() {
    for (auto& way : ways) way->let_go();
  }

  std::vector<holdfast::session> open(const world& w) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      ways.push_back(std::make_shared<engine_test::script>());
      sessions.push_back(w.open(i, ways.back()));
    }
    return sessions;
  }
  /// Nodes whose bit is set are cut off in this way.
  void cut(unsigned nodes, fault how = fault::drop_request) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const bool is_cut = (nodes >> i & 1U) != 0;
      for (const auto v : {verb::acquire, verb::renew, verb::release}) {
        ways[i]->set(v, is_cut ? how : fault::none);
      }
    }
  }

  /// Returns when all requests, also those that were not waited for, have been carried out.
  void settle() {
    for (std::size_t i = 0; i < sessions.size(); ++i) settle(i);
  }
  void settle(std::size_t node) {
    holdfast::mutex behind_them(sessions[node], "sentinel");
    (void)async_acquire(behind_them, 0s).future().get();
  }

  std::vector<std::shared_ptr<engine_test::script>> ways;
  std::vector<holdfast::session> sessions;
  holdfast::redlock lock;
};

/// acquire() and release() in both of their forms, with the interface of the synchronous one.
enum class form : std::uint8_t { by_a_thread, without_a_thread };

class in_form {
 public:
  explicit in_form(form f) : without_a_thread_(f == form::without_a_thread) {}

  holdfast::quorum_lease acquire(holdfast::redlock& of, std::stop_token stop = {}) const {
    if (!without_a_thread_) return of.acquire(std::move(stop));
    return async_acquire(of, {}, std::move(stop)).future().get().value();
  }
  std::optional<holdfast::quorum_lease> try_acquire(holdfast::redlock& of) const {
    return without_a_thread_ ? in_time(of, 0s) : of.try_acquire();
  }
  std::optional<holdfast::quorum_lease> try_acquire_for(holdfast::redlock& of,
                                                        std::chrono::nanoseconds wait) const {
    return without_a_thread_ ? in_time(of, wait) : of.try_acquire_for(wait);
  }
  std::error_code release(holdfast::quorum_lease held) const {
    if (!without_a_thread_) return held.release();
    const auto how = async_release(std::move(held)).future().get();
    return how ? std::error_code{} : make_error_code(how.error().code);
  }

 private:
  static std::optional<holdfast::quorum_lease> in_time(holdfast::redlock& of,
                                                       holdfast::wait_limit limit) {
    auto got = async_acquire(of, limit).future().get();
    if (got) return std::move(*got);
    const auto why = got.error().code;
    if (why == holdfast::errc::busy || why == holdfast::errc::timed_out) return std::nullopt;
    throw holdfast::error(std::move(got.error()));
  }
  const bool without_a_thread_;
};

inline const char* name_of(form f) {
  return f == form::by_a_thread ? "by_a_thread" : "without_a_thread";
}

/// Advances the clock until the result is there.
template <class Future>
auto get(const world& w, Future& f) {
  harness::eventually("the end of it", [&] {
    if (f.wait_for(0s) == std::future_status::ready) return true;
    harness::to_next_wake(*w.clock, 1s);
    return false;
  });
  return f.get();
}

inline unsigned ones(unsigned bits) { return static_cast<unsigned>(__builtin_popcount(bits)); }

}  // namespace quorum_test
