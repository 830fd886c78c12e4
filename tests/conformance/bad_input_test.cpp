#include <optional>
#include <thread>
#include <utility>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"

// Invalid names, durations, reasons, kinds and URLs, and valid ones that look invalid. A clear
// error before anything is changed, the same on every store.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using holdfast::errc;
using holdfast::lease;

// They look dangerous, and are names like others.
std::vector<std::string> dangerous_names(std::size_t longest) {
  return {" ",
          "'",
          "\"",
          "'; drop table locks; --",
          "%",
          "%s%n",
          "%41",
          "{}",
          "{a}b",
          "[1]",
          "*",
          "?",
          "..",
          "../../etc/passwd",
          "/",
          "\\",
          "$(id)",
          "`id`",
          "-rf",
          "NULL",
          "null",
          "0",
          "caf\xc3\xa9",
          "\xe4\xb8\xad\xe6\x96\x87",
          "\xf0\x9f\x94\x92",
          "\xf0\x9d\x92\xb3",
          "a b  c",
          std::string(longest, 'a'),
          std::string(longest - 1, '\\') + "\""};
}

class bad_input : public suite {
 protected:
  /// Makes the primitive of this cell, and uses it once.
  void use(const std::string& name, holdfast::lock_options o = {}) const {
    const auto& p = GetParam().primitive;
    if (p == "recursive_mutex") {
      holdfast::recursive_mutex m{here_, name, o};
      m.lock();
    } else if (p == "counting_semaphore") {
      holdfast::counting_semaphore s{here_, name, 2, o};
      s.acquire();
    } else if (p == "expiring_semaphore") {
      // The lease is that of the permit, so of the call.
      const auto lease = std::exchange(o.lease, 0ms);
      holdfast::expiring_semaphore s{here_, name, 2, o};
      s.release(s.acquire(lease == 0ms ? 1h : lease).id);
    } else if (p == "latch") {
      holdfast::latch l{here_, name, 1};
      l.arrive_and_wait();
      l.remove();
    } else if (p == "election") {
      EXPECT_TRUE(holdfast::election(here_, name, {.note = o.reason, .lease = o.lease}).campaign());
    } else if (p == "rate_limiter") {
      holdfast::rate_limiter l{here_, name, {{.tokens = 1, .per = 1us}}};
      EXPECT_TRUE(l.peek());
    } else {
      (void)make_exclusive(p, here_, name, o)->acquire();
    }
  }
  bool takes_no_options() const {
    const auto& p = GetParam().primitive;
    return p == "latch" || p == "rate_limiter";
  }
  errc refusal(const std::string& name, holdfast::lock_options o = {}) const {
    return reason_of([&] { use(name, o); });
  }
};

INSTANTIATE_TEST_SUITE_P(stores, bad_input,
                         testing::ValuesIn(cells({"mutex", "recursive_mutex", "fair_mutex",
                                                  "shared_mutex", "semaphore", "counting_semaphore",
                                                  "expiring_semaphore", "latch", "rate_limiter",
                                                  "election"})),
                         cell_name);

TEST_P(bad_input, impossible_names_are_refused_and_change_nothing) {
  const std::size_t longest = here_.can().max_name_bytes;
  const std::pair<const char*, std::string> cases[] = {
      {"empty", ""},
      {"too long", std::string(longest + 1, 'a')},
      {"far too long", std::string(65'536, 'a')},
      {"line feed", "a\nb"},
      {"carriage return", "a\r\nb"},
      {"tab", "a\tb"},
      {"zero byte", "a\0b"s},
      {"escape", "\x1b[31mred"},
      {"delete", "a\x7f"},
      {"a C1 control character", "a\xc2\x9b"},
      {"half a character", "caf\xc3"},
      {"a stray continuation", "\x80"},
      {"Latin-1", "caf\xe9"},
      {"overlong", "\xc0\xaf"},
      {"a surrogate", "\xed\xa0\x80"},
      {"beyond Unicode", "\xf4\x90\x80\x80"},
      {"not UTF-8 at all", "\xff\xfe"},
  };
  for (const auto& [what, name] : cases) EXPECT_EQ(refusal(name), errc::invalid_name) << what;
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(bad_input, names_with_dangerous_characters_can_be_used) {
  for (const auto& name : dangerous_names(here_.can().max_name_bytes)) {
    EXPECT_NO_THROW(use(name)) << name;
  }
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(bad_input, leases_that_are_impossible_are_refused) {
  if (takes_no_options()) return use(name_);
  for (const auto bad : {-1ms, 1ms, 99ms, std::chrono::milliseconds(24h * 31) + 1ms,
                         std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_EQ(refusal(name_, {.lease = bad}), errc::invalid_argument) << bad.count();
    if (bad < 100ms && GetParam().primitive != "election") {
      EXPECT_EQ(refusal(name_, {.max_hold = bad}), errc::invalid_argument) << bad.count();
    }
  }
  EXPECT_NO_THROW(use(name_, {.lease = lease_of(100ms)}));
  EXPECT_NO_THROW(use(name_, {.lease = std::chrono::seconds(here_.can().max_lease_s)}));
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(bad_input, reasons_that_are_not_printable_are_refused) {
  if (takes_no_options()) return use(name_);
  for (const auto& bad : {std::string(201, 'r'), "a\nb"s, "\x1b[2J"s, "caf\xe9"s, "a\0b"s}) {
    EXPECT_EQ(refusal(name_, {.reason = bad}), errc::invalid_argument) << bad;
  }
  for (const auto& good : {std::string(200, 'r'), "'; --"s, "\"%s\" {} \\"s, "\xf0\x9f\x94\x92"s}) {
    EXPECT_NO_THROW(use(name_, {.reason = good})) << good;
  }
}

TEST_P(bad_input, its_errors_name_the_operation_the_name_and_the_store) {
  try {
    use("bad\nname");
    FAIL() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.operation(), GetParam().primitive);
    EXPECT_FALSE(e.store().empty());
    EXPECT_NE(std::string(e.what()).find("control characters"), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos)
        << "a message goes to terminals and logs: " << e.what();
    EXPECT_FALSE(e.retryable());
    EXPECT_FALSE(e.outcome_unknown());
    EXPECT_FALSE(e.lease_gone());
    EXPECT_EQ(e.code(), errc::invalid_name);
  }
}

// Rules that depend on the store and not on the primitive.
class used_names : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, used_names, testing::ValuesIn(cells({"mutex"})), cell_name);

TEST_P(used_names, are_distinct_locks_with_any_special_characters) {
  const auto there = another();
  for (const auto& name : dangerous_names(here_.can().max_name_bytes)) {
    const lease held = holdfast::mutex(here_, name).acquire();
    EXPECT_FALSE(holdfast::mutex(there, name).try_acquire()) << name;
    EXPECT_EQ(here_.names(), std::vector<std::string>{name});
    EXPECT_EQ(here_.show(name).name, name);
    EXPECT_EQ(holders(), 0u);
  }
}

TEST_P(used_names, are_checked_together_with_their_prefix) {
  const std::size_t longest = here_.can().max_name_bytes;
  const auto make = [&](const std::string& prefix, const std::string& name) {
    holdfast::mutex(another({.name_prefix = prefix}), name).lock();
  };
  EXPECT_EQ(reason_of([&] { make("p:", std::string(longest - 1, 'a')); }), errc::invalid_name);
  EXPECT_EQ(reason_of([&] { make("p\n:", "a"); }), errc::invalid_name);
  EXPECT_EQ(reason_of([&] { make("p:", ""); }), errc::invalid_name);
  EXPECT_NO_THROW(make("p:", std::string(longest - 2, 'a')));
}

TEST_P(used_names, refuse_another_kind_by_its_name_and_change_nothing) {
  const auto& can = here_.can();
  holdfast::mutex a_mutex{here_, "kind"};
  holdfast::counting_semaphore a_semaphore{here_, "kind", 3};
  std::optional<holdfast::shared_mutex> a_shared;
  std::optional<holdfast::latch> a_latch;
  std::optional<holdfast::rate_limiter> a_limiter;
  std::vector<std::pair<const char*, std::function<void()>>> uses{
      {"mutex", [&] { (void)a_mutex.try_acquire(); }},
      {"semaphore", [&] { (void)a_semaphore.try_acquire(); }}};
  if (can.shared) {
    a_shared.emplace(here_, "kind");
    uses.emplace_back("shared_mutex", [&] { (void)a_shared->try_acquire_shared(); });
  }
  if (can.latch) {
    a_latch.emplace(here_, "kind", 3);
    uses.emplace_back("latch", [&] { a_latch->count_down(); });
    uses.emplace_back("latch", [&] { (void)a_latch->remaining(); });
    uses.emplace_back("latch", [&] { a_latch->remove(); });
  }
  if (can.rate_limiter) {
    a_limiter.emplace(here_, "kind", std::vector<holdfast::rate_rule>{{.tokens = 1, .per = 1h}});
    uses.emplace_back("rate_limiter", [&] { (void)a_limiter->try_take(); });
  }
  const auto all_but = [&](const std::string& kind) {
    for (const auto& [other, action] : uses) {
      if (other == kind) continue;
      EXPECT_EQ(reason_of(action), errc::kind_mismatch) << other << " on " << kind;
    }
    EXPECT_EQ(here_.show("kind").kind, kind);
  };
  {
    const lease held = a_mutex.acquire();
    all_but("mutex");
  }
  a_semaphore.acquire();
  all_but("semaphore");
  a_semaphore.release();
  if (a_shared) {
    const lease held = a_shared->acquire_shared();
    all_but("shared_mutex");
  }
  if (a_latch) {
    a_latch->count_down();
    all_but("latch");
    a_latch->remove();
  }
  EXPECT_TRUE(a_mutex.try_acquire());
  if (!a_limiter) return;
  EXPECT_TRUE(a_limiter->try_take());
  all_but("rate_limiter");
}

TEST_P(used_names, refuse_another_capacity_and_report_the_right_one) {
  holdfast::counting_semaphore three{here_, "capacity", 3};
  holdfast::counting_semaphore four{here_, "capacity", 4};
  three.acquire();
  try {
    (void)four.try_acquire();
    FAIL() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::capacity_mismatch);
    EXPECT_NE(std::string(e.what()).find('3'), std::string::npos) << e.what();
    EXPECT_EQ(e.name(), "capacity");
  }
  EXPECT_EQ(here_.show("capacity").remaining, 2u);
}

}  // namespace
}  // namespace conformance
