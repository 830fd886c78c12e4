#include "conformance/matrix.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "conformance/cell.hpp"

namespace conformance {

namespace {

using holdfast::store::capabilities;

constexpr const char* introduction = R"(# Primitives and stores

This page is made by the conformance suite; a test compares it with what the suite runs.
To make it again: `build/gcc/tests/test_conformance --print-matrix > docs/matrix.md`.

## What runs where

The numbers are rules: tests of the conformance suite that run for this primitive on this store.
A dash: the store cannot do that, and the primitive refuses at construction (`unsupported`).
An equals sign: not run, because nothing differs from the store to the left.
The stores with faults are the same stores behind the fault injector of `holdfast/testing.hpp`,
which repeats commands and drops notifications.

)";

constexpr const char* with_options = R"(
## The same with options

Every lock of these suites is made with `linger`, with `unconfirmed_release`, or with a `local_time`
of zero (no lock is passed on inside the process). Left out: rules about renewal that take seconds and,
with `linger`, rules that count the commands for an idle lock.

)";

constexpr const char* narrow = R"(
## Rules for which a few stores are enough

They are about code above the stores' interface, which the other rules reach on every store. They run on
memory, memory with faults, SQLite and one Redis server, and where `HOLDFAST_EVERY_RULE` is set
(`make test-nightly`) on all.

)";

constexpr const char* promises = R"(
## What each store promises

`include/holdfast/store/capabilities.hpp` explains each promise.

)";

bool runs(const std::string& test) {
  static const auto all = left_out();
  return std::none_of(all.begin(), all.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), test.c_str(), 0) == 0;
  });
}

/// Test names end in /store__primitive.
std::map<std::string, int> count_rules() {
  std::map<std::string, int> rules;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = suite.GetTestInfo(t)->name();
      if (!runs(suite.name() + ("." + name))) continue;
      ++rules[name.substr(name.rfind('/') + 1)];
    }
  }
  return rules;
}

/// The rows whose locks have options, or the rows of the stores themselves.
std::vector<row> columns(bool options) {
  std::vector<row> some = rows();
  std::erase_if(some, [&](const row& r) { return bool(r.locks_have) != options; });
  return some;
}

void print_head(std::ostream& out, const std::string& corner, const std::vector<row>& over) {
  out << "| " << corner << " |";
  for (const row& r : over) out << " " << title(r.name) << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < over.size(); ++i) out << "---|";
  out << "\n";
}

template <class Cell>
void print_line(std::ostream& out, const std::string& first, const std::vector<row>& over,
                Cell cell) {
  out << "| " << first << " |";
  for (const row& r : over) out << " " << cell(r) << " |";
  out << "\n";
}

const capabilities& can(const row& r) {
  static std::map<std::string, capabilities> known;
  const auto found = known.find(r.name);
  if (found != known.end()) return found->second;
  return known.emplace(r.name, fresh_store(r).open().can()).first->second;
}

void print_rules(std::ostream& out, const std::vector<row>& over) {
  const auto rules = count_rules();
  print_head(out, "primitive", over);
  for (const primitive& p : primitives()) {
    const auto knows_no_options = [&](const row& r) {
      return r.locks_have && !rules.contains(r.name + "__" + p.name);
    };
    if (std::all_of(over.begin(), over.end(), knows_no_options)) continue;
    print_line(out, "`" + p.name + "`", over, [&](const row& r) {
      const auto found = rules.find(r.name + "__" + p.name);
      if (!(can(r).*p.needs)) return std::string("–");
      if (found == rules.end() && !r.only.primitives.empty()) return std::string("=");
      return found == rules.end() ? std::string(not_run) : std::to_string(found->second);
    });
  }
}

void print_promises(std::ostream& out) {
  using c = capabilities;
  const std::pair<const char*, capability> lines[] = {
      {"fences grow for ever", &c::fences},
      {"waiters are notified", &c::notifications},
      {"order of arrival across processes", &c::fair},
      {"lists the waiters", &c::lists_waiters},
      {"finds deadlocks", &c::finds_deadlocks},
      {"sees a death on this machine at once", &c::sees_death},
      {"no second holder after a failover", &c::survives_failover},
      {"several processes", &c::several_processes},
  };
  const auto over = columns(false);
  print_head(out, "promise", over);
  for (const auto& [words, promise] : lines) {
    print_line(out, words, over,
               [&, p = promise](const row& r) { return can(r).*p ? "yes" : "no"; });
  }
  print_line(out, "longest name, bytes", over, [](const row& r) { return can(r).max_name_bytes; });
}

}  // namespace

std::string title(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string matrix() {
  std::ostringstream out;
  out << introduction;
  print_rules(out, columns(false));
  out << with_options;
  print_rules(out, columns(true));
  out << narrow;
  for (const auto& [rule, about] : narrow_rules()) out << "- `" << rule << "`: " << about << "\n";
  out << promises;
  print_promises(out);
  return out.str();
}

}  // namespace conformance
