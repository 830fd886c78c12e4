#pragma once

#include <holdfast/store/contender_store.hpp>
#include <string>
#include <string_view>
#include <vector>

/// The layout of names, contenders and their data in the tree. A name is a node below the base
/// path, its contenders are ephemeral sequential nodes below it:
///
///     /locks/order%2F1000/hf1.m.1.1.0123456789abcdef0123456789abcdef__lock__0000000042
///                             │ │ │ └ owner id                      │       └ order
///                             │ │ └ weight                          └ which others it excludes
///                             │ └ capacity
///                             └ kind: m, s, p (permits), l (a waiter at a latch), e (election)
///
/// kazoo's Lock, WriteLock and ReadLock look for `__lock__` and `__rlock__`.
namespace holdfast::store::zookeeper {

/// A name as one part of a path: `%XX` for characters that ZooKeeper refuses there.
std::string escape(std::string_view name);
/// The name of a contender's node, without the number that the server appends.
std::string node_prefix(const contender& who);

/// Whether the server has used up the numbers of a name's nodes. At 2^31 − 1 its counter stays
/// (with requests under way it may also go on at −2^31, and then return): later nodes have no
/// order.
bool counter_used_up(std::string_view node);

/// The contenders among the children of a name, in order of arrival, even if the counter has passed
/// 2^31 − 1; `record` first, if it exists. Omits nodes that are not contenders.
std::vector<contender> in_order(const std::vector<std::string>& children);

inline constexpr std::string_view record_node = "record";
/// The node above the number of the record's life (records.cpp).
inline constexpr std::string_view life_node = "life";

}  // namespace holdfast::store::zookeeper
