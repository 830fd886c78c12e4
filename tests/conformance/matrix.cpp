#include "conformance/matrix.hpp"

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
The stores with faults are the same stores behind the fault injector of `holdfast/testing.hpp`,
which repeats commands and drops notices.

)";

constexpr const char* promises = R"(
## What each store promises

What the words mean stands in `include/holdfast/store/capabilities.hpp`.

)";

bool runs(const std::string& test) {
  const auto all = left_out();
  return std::none_of(all.begin(), all.end(), [&](const std::string& pattern) {
    return test.find(pattern.substr(1, pattern.size() - 2)) != test.npos;
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

void print_head(std::ostream& out, const std::string& corner) {
  out << "| " << corner << " |";
  for (const row& r : rows()) out << " " << title(r.name) << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < rows().size(); ++i) out << "---|";
  out << "\n";
}

template <class Cell>
void print_line(std::ostream& out, const std::string& first, Cell cell) {
  out << "| " << first << " |";
  for (const row& r : rows()) out << " " << cell(r) << " |";
  out << "\n";
}

const capabilities& can(const row& r) {
  static std::map<std::string, capabilities> known;
  const auto found = known.find(r.name);
  if (found != known.end()) return found->second;
  return known.emplace(r.name, fresh_store(r).open().can()).first->second;
}

void print_rules(std::ostream& out) {
  const auto rules = count_rules();
  print_head(out, "primitive");
  for (const primitive& p : primitives()) {
    print_line(out, "`" + p.name + "`", [&](const row& r) {
      const auto found = rules.find(r.name + "__" + p.name);
      if (!(can(r).*p.needs)) return std::string("–");
      return found == rules.end() ? std::string(not_run) : std::to_string(found->second);
    });
  }
}

void print_promises(std::ostream& out) {
  using c = capabilities;
  const std::pair<const char*, capability> lines[] = {
      {"fences grow for ever", &c::fences},
      {"waiters are told", &c::notices},
      {"order of arrival across processes", &c::fair},
      {"shows who waits", &c::lists_waiters},
      {"finds deadlocks", &c::finds_deadlocks},
      {"sees a death on this machine at once", &c::sees_death},
      {"no second holder after a failover", &c::survives_failover},
      {"several processes", &c::several_processes},
  };
  print_head(out, "promise");
  for (const auto& [words, promise] : lines) {
    print_line(out, words, [&, p = promise](const row& r) { return can(r).*p ? "yes" : "no"; });
  }
  print_line(out, "longest name, bytes", [](const row& r) { return can(r).max_name_bytes; });
}

}  // namespace

std::string title(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string matrix() {
  std::ostringstream out;
  out << introduction;
  print_rules(out);
  out << promises;
  print_promises(out);
  return out.str();
}

}  // namespace conformance
