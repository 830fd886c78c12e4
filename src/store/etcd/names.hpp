#pragma once

#include <cstdint>
#include <holdfast/store/contender_store.hpp>
#include <optional>
#include <string>
#include <string_view>

/// How names and contenders stand among etcd's keys: as those of etcd's own `Mutex` (Go package
/// `concurrency`, and `etcdctl lock`), PREFIX/NAME/LEASE. Behind the lease in hexadecimal digits
/// ours say what they are; several of one session may be queued for one name.
///
///     /locks/order%2F1000/694d7c9a2f1e3b05.hf1.m.1.1.0123456789abcdef0123456789abcdef
///
/// The order is that of the revisions in which the keys were made.
namespace holdfast::store::etcd {

/// A name as one part of a key: `%XX` for `/`, `%` and control characters.
std::string escape(std::string_view name);

/// What etcd calls the end of the range of all keys that begin with `prefix`.
std::string end_of(std::string prefix);

/// The place of a contender below its name, for one with that lease.
std::string place_for(std::int64_t lease, const contender& who);

inline constexpr std::string_view record_key = "record";

/// What stands at that place: one of ours, the record of a latch, or another program with a lease,
/// which wants all of it. Nothing if it is nobody's place.
std::optional<contender> contender_at(std::string_view node);

/// What is written at a place: since when, which etcd does not know, and the contender data.
std::string value_of(const contender_data& says);
contender_data contender_data_of(std::string_view value, std::int64_t create_revision);

}  // namespace holdfast::store::etcd
