#include <algorithm>
#include <holdfast/clock.hpp>
#include <holdfast/guard.hpp>
#include <random>

#include "lease/hold.hpp"
#include "session/session_impl.hpp"
#include "session/sleeper.hpp"

namespace holdfast::guard {

namespace {

// Compares decimal numbers without leading zeros: the longer one is greater; of equal length, the
// one later in digit order.
constexpr std::string_view set_script = R"(
local last = redis.call('HGET', KEYS[1], 'fence') or '0'
local mine = ARGV[1]
if #mine < #last or (#mine == #last and mine < last) then return 0 end
redis.call('HSET', KEYS[1], 'value', ARGV[2], 'fence', mine)
return 1)";

void require(bool ok, std::string what) {
  if (ok) return;
  failure f{errc::invalid_argument, std::move(what)};
  f.operation = "guard";
  throw_failure(std::move(f));
}

void require_fence(std::uint64_t fence) {
  require(fence != 0, "the fence is 0: the lease is empty, or was given back");
}

}  // namespace

std::string fenced_update(std::string_view table, std::string_view assignments,
                          std::string_view which, std::uint64_t fence, std::string_view column) {
  require_fence(fence);
  require(!table.empty() && !assignments.empty() && !which.empty() && !column.empty(),
          "a fenced update needs a table, assignments, rows and a column for the fence");
  const std::string mine = std::to_string(fence);
  std::string sql = "update ";
  sql.append(table).append(" set ").append(assignments).append(", ");
  sql.append(column).append(" = ").append(mine).append(" where (").append(which).append(") and ");
  return sql.append(column).append(" <= ").append(mine);
}

std::vector<std::string> fenced_set(std::string_view key, std::string_view value,
                                    std::uint64_t fence) {
  require_fence(fence);
  require(!key.empty(), "the key is empty");
  return {"EVAL",           std::string(set_script), "1",
          std::string(key), std::to_string(fence),   std::string(value)};
}

store::standing standing_of(const lease& held) {
  const engine::hold* const it = engine::hold::behind(held);
  require(it != nullptr, "the lease is empty, or was given back");
  it->check();
  const auto session = it->session();
  require(session != nullptr, "the lease was given back");
  auto there = session->standing_of(it->name(), it->owner());
  if (!there) throw_failure(session->located(std::move(there.error()), "guard", it->name()));
  return std::move(*there);
}

void detail::pause(const retries& how, unsigned attempt) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  const auto first = saturated_nanoseconds(how.first_pause);
  const auto longest = saturated_nanoseconds(how.longest_pause);
  if (std::min(first, longest) <= first.zero()) return;
  const auto times = std::int64_t{1} << std::min(attempt - 1, 20U);
  const auto most = first > longest / times ? longest : first * times;
  std::uniform_int_distribution<std::int64_t> any(most.count() / 2, most.count());
  auto& clock = real_clock();
  engine::sleeper(clock).sleep(saturated_add(clock.now(), std::chrono::nanoseconds(any(random))));
}

void detail::give_up(unsigned attempts) {
  failure f{errc::busy, "other programs changed the row during all " + std::to_string(attempts) +
                            " attempts: use a lock, or allow more attempts"};
  f.operation = "compare_and_update";
  throw_failure(std::move(f));
}

}  // namespace holdfast::guard
