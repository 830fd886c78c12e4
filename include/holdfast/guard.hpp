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

/// The resource's side of a lock: writes that it refuses if they come from a former holder, or from
/// somebody who did not see the latest state. Asked for by name; nothing here talks to a store.
namespace holdfast::guard {

/// A write with a fence, as one statement for any SQL database: it changes no row if somebody with
/// a greater fence has written before, which a former holder sees by the number of changed rows.
///
///     update stock set left_over = left_over - 1, fence = 4711 where (id = 7) and fence <= 4711
///
/// `table`, `assignments`, `which` and `column` go into the text as they are: they are the
/// program's own, with placeholders for whatever comes from elsewhere. The column is a bigint that
/// is not null and begins with 0. Throws errc::invalid_argument if a part is empty, or the fence is
/// 0 (an empty lease).
std::string fenced_update(std::string_view table, std::string_view assignments,
                          std::string_view which, std::uint64_t fence,
                          std::string_view column = "fence");

/// The same for a Redis key: the words of one EVAL, for any client, which sets the value of a hash
/// (fields `value` and `fence`) and answers 1, or 0 and leaves it alone if somebody with a greater
/// fence has written before. The fence is compared as text: Lua would round it.
std::vector<std::string> fenced_set(std::string_view key, std::string_view value,
                                    std::uint64_t fence);

/// What to compare in a transaction of the program's own on the same etcd or ZooKeeper: the key of
/// the lease. The key is deleted before another session can acquire, so a former holder changes
/// nothing. Threads of one process that hand over share the key; only the fence differs.
///
///     etcd       compare: key, target CREATE, result EQUAL, create_revision = created
///     etcdctl    create("KEY") = "CREATED"
///     ZooKeeper  zoo_check_op_init(&step, key, -1) in a multi
///
/// Good until the lease ends, or is upgraded or downgraded. No round trip. Throws errc::lost if it
/// has ended, errc::invalid_argument if it is empty, errc::unsupported for a store without such
/// keys.
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

/// The optimistic loop: `read()` gives what is there now (with its version), and `write(seen)`
/// replaces it if it is still that, and says by `true` that it did
/// (`update … set version = version + 1 where id = 7 and version = :seen`). Returns what the
/// write was based on. Throws errc::busy after so many attempts; what the functions throw goes
/// through. Blocks while it pauses, with nothing held.
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
