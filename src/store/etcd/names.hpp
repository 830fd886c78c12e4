#pragma once

#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <optional>
#include <string>
#include <string_view>

/// The layout of names and contenders in etcd's keys: the same as of etcd's own `Mutex` (Go package
/// `concurrency`, and `etcdctl lock`), PREFIX/NAME/LEASE. Behind the lease in hexadecimal digits,
/// holdfast adds the description of the contender; several of one session may be queued for one
/// name.
///
///     /locks/order%2F1000/694d7c9a2f1e3b05.hf1.m.1.1.0123456789abcdef0123456789abcdef
///
/// The order is that of the revisions in which the keys were created.
namespace holdfast::store::etcd {

/// A name as one part of a key: `%XX` for `/`, `%` and control characters.
std::string escape(std::string_view name);

/// The end of the range of all keys that begin with `prefix`, as etcd expects it.
std::string end_of(std::string prefix);

/// The entry of a contender with that lease, below its name.
std::string place_for(std::int64_t lease, const contender& who);

inline constexpr std::string_view record_key = "record";

/// The contender of that entry: one of holdfast's, the record of a latch, or another program with a
/// lease, which wants all permits. Nothing if it is not an entry.
std::optional<contender> contender_at(std::string_view node);

/// The value of an entry: its start time, which etcd does not know, and the contender data.
std::string value_of(const contender_data& says);
contender_data contender_data_of(std::string_view value, std::int64_t create_revision);

}  // namespace holdfast::store::etcd
