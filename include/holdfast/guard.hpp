#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/identity.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// For the resource that a lock protects: writes that are refused if they come from a former
/// holder, or from a program that has not read the latest state. Include this header by name.
/// Nothing here talks to a lock store.
namespace holdfast::guard {

/// A fenced write, as one statement for any SQL database. It changes no row if a holder with a
/// greater fence has already written. A former holder notices this by the number of changed rows.
///
///     update stock set left_over = left_over - 1, fence = 4711 where (id = 7) and fence <= 4711
///
/// `table`, `assignments`, `which` and `column` go into the text as they are. So write them in your
/// program, with placeholders for input from elsewhere. The column must be
/// `bigint not null default 0`. Throws errc::invalid_argument if a part is empty, or the fence is 0
/// (an empty lease).
std::string fenced_update(std::string_view table, std::string_view assignments,
                          std::string_view which, std::uint64_t fence,
                          std::string_view column = "fence");

/// The same for a Redis key: the arguments of one EVAL, for any client. It sets the fields `value`
/// and `fence` of a hash, and returns 1. If a holder with a greater fence has already written, it
/// changes nothing, and returns 0. The fence is compared as text, because Lua would round the
/// number. Throws errc::invalid_argument if the key is empty, or the fence is 0.
std::vector<std::string> fenced_set(std::string_view key, std::string_view value,
                                    std::uint64_t fence);

/// The key of a lease, to compare in your own transaction on the same etcd or ZooKeeper. The store
/// deletes the key before another session can acquire the lock, so a former holder's transaction
/// fails. Threads of one process that pass the lock on share the key; only the fence differs.
///
///     etcd       compare: key, target CREATE, result EQUAL, create_revision = created
///     etcdctl    create("KEY") = "CREATED"
///     ZooKeeper  zoo_check_op_init(&step, key, -1) in a multi
///
/// Valid until the lease ends, or is upgraded or downgraded. No round trip. Throws errc::lost if
/// the lease has ended, errc::invalid_argument if it is empty, errc::unsupported for a store
/// without such keys.
store::standing standing_of(const lease& held);

/// How often compare_and_update() tries, and how long it waits in between: a random time that grows
/// from the first to the longest.
struct retries {
  unsigned attempts = 20;
  std::chrono::microseconds first_pause{500};
  std::chrono::microseconds longest_pause{50'000};
};

namespace detail {
void pause(const retries& how, unsigned attempt);
[[noreturn]] void give_up(unsigned attempts);
}  // namespace detail

/// An optimistic loop. `read()` returns the present row with its version. `write(seen)` replaces
/// the row if it still has that version, and returns true if it did
/// (`update … set version = version + 1 where id = 7 and version = :seen`). Returns the row on
/// which the write was based. Throws errc::busy when all attempts have failed; exceptions of the
/// two functions are passed on. It blocks during its pauses, and holds nothing meanwhile.
template <class Read, class Write>
auto compare_and_update(Read&& read, Write&& write, const retries& how = {}) {
  for (unsigned attempt = 1; attempt <= how.attempts; ++attempt) {
    auto seen = read();
    if (write(seen)) return seen;
    if (attempt < how.attempts) detail::pause(how, attempt);
  }
  detail::give_up(how.attempts);
}

}  // namespace holdfast::guard
