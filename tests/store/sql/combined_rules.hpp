#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <holdfast/store/state_store.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/seed.hpp"

/// Changes of several threads, which share two connections, so they are sent together (ADR 169).
namespace sql_test {

/// What one thread knows of its own name, a number that nobody else changes.
class own_number final : public holdfast::store::transition {
 public:
  own_number(holdfast::store::state_store& at, std::string name)
      : store_(at), name_(std::move(name)) {}

  const std::string* apply(std::string_view record, const holdfast::store::moment&) override {
    const long was = record.empty() ? 0 : std::stol(std::string(record));
    EXPECT_TRUE(possible_.contains(was)) << name_ << " is " << was << ": " << all();
    next_ = std::to_string(was + 1);
    return &next_;
  }
  /// Its answer was lost, and the server may carry it out later.
  void may_have_been_stored() noexcept override { possible_.insert(std::stol(next_)); }
  /// Returns true if the number has grown by one.
  bool grow() {
    const auto outcome = store_.transact(name_, *this);
    if (outcome) {
      possible_ = {std::stol(next_)};
      return true;
    }
    last_ = outcome.error().what;
    if (!outcome.error().outcome_unknown) return false;
    const auto before = possible_;
    for (const long n : before) possible_.insert(n + 1);
    return false;
  }
  const std::string& name() const { return name_; }
  void expect_is(long number) const {
    EXPECT_TRUE(possible_.contains(number)) << name_ << " is " << number << ": " << all();
  }

 private:
  std::string all() const {
    std::string text = last_ + "; it may be";
    for (const long n : possible_) text += " " + std::to_string(n);
    return text;
  }
  holdfast::store::state_store& store_;
  const std::string name_;
  std::set<long> possible_{0};
  std::string next_{};
  std::string last_{};  ///< the last failure
};

/// A trouble, from `begin` to `end`. The threads whose names it hits may have to wait meanwhile.
struct trouble {
  std::function<void()> begin;
  std::function<void()> end{};
  std::set<std::size_t> hits{};
};

/// The server behind a store, and the means to trouble it.
struct server_in_trouble {
  std::function<std::string(const std::string&)> ask;
  std::function<void(const std::string&)> other;  ///< the same over a connection of its own
  harness::fault_proxy& network;                  ///< between the store and the server
  std::string records;                            ///< the table
  /// The table of the names whose changes a trigger refuses, each with an error.
  std::string refusals;
  std::vector<std::string> errors;  ///< as SQL has them
  std::vector<std::string> kills;   ///< statements that end what the store does
};

/// While the troubles come, one after the other, each thread must learn what became of its own
/// change. Threads that are not hit continue meanwhile, and the others when the trouble is over.
inline void expect_each_thread_learns_its_own_outcome(
    holdfast::store::state_store& at, const std::function<std::string(const std::string&)>& record,
    std::vector<trouble> troubles) {
  constexpr std::size_t threads = 12;
  std::vector<own_number> all;
  for (std::size_t i = 0; i < threads; ++i) all.emplace_back(at, "n" + std::to_string(i));
  std::array<std::atomic<long>, threads> grown{};
  std::atomic<bool> over{false};
  std::vector<std::thread> working;
  for (std::size_t i = 0; i < threads; ++i) {
    working.emplace_back([&, i] {
      while (!over) {
        if (all[i].grow()) ++grown[i];
      }
    });
  }
  const auto each_gets_on = [&](const std::set<std::size_t>& but) {
    std::array<long, threads> before{};
    for (std::size_t i = 0; i < threads; ++i) before[i] = grown[i];
    harness::eventually("each of them gets on", [&] {
      for (std::size_t i = 0; i < threads; ++i)
        if (grown[i] == before[i] && !but.contains(i)) return false;
      return true;
    });
  };
  std::mt19937_64 random(harness::seed());
  std::shuffle(troubles.begin(), troubles.end(), random);
  // Then each name has a row. MariaDB keeps others from making any row while a client locks one
  // that does not exist.
  each_gets_on({});
  for (const trouble& now : troubles) {
    now.begin();
    if (now.end) each_gets_on(now.hits), now.end();
    each_gets_on({});
  }
  over = true;
  for (auto& one : working) one.join();
  for (const own_number& one : all) one.expect_is(std::stol(record(one.name())));
}

inline void expect_each_thread_learns_its_own_outcome(holdfast::store::state_store& at,
                                                      const server_in_trouble& there) {
  std::vector<trouble> all;
  for (const auto& error : there.errors) {
    all.push_back({[&] {
                     (void)there.ask("insert into " + there.refusals + " values ('n1', " + error +
                                     "), ('n7', " + error + ")");
                   },
                   [&] { (void)there.ask("delete from " + there.refusals); },
                   {1, 7}});
  }
  for (const auto& kill : there.kills) all.push_back({[&] { (void)there.ask(kill); }});
  all.push_back({[&] {
                   there.other("begin; select 1 from " + there.records +
                               " where name = 'n3' for update");
                 },
                 [&] { there.other("rollback"); },
                 {3}});
  all.push_back({[&] { there.network.with([](auto& r) { r.cut_after(harness::way::down, 0); }); }});
  all.push_back({[&] { there.network.cut(); }});
  expect_each_thread_learns_its_own_outcome(
      at,
      [&](const std::string& name) {
        return there.ask("select record from " + there.records + " where name = '" + name + "'");
      },
      std::move(all));
}

}  // namespace sql_test
