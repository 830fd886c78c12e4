#pragma once

#include <etcd/etcd.pb.h>

#include <holdfast/store/contender_store.hpp>
#include <string>
#include <string_view>
#include <vector>

/// Builds the parts of etcd's transactions, and reads their answers. Pure functions.
namespace holdfast::store::etcd {

wire::Compare not_there(std::string key);
wire::Compare there(std::string key);
wire::Compare as_of_version(std::string key, std::int64_t mod_revision);

wire::RequestOp put(std::string key, std::string_view value, std::int64_t lease);
/// Keeps the present lease of the key.
wire::RequestOp put_again(std::string key, std::string_view value);
wire::RequestOp remove(std::string key);

wire::RangeRequest one(std::string key);
/// In the order of the keys.
wire::RangeRequest all_below(const std::string& prefix);
/// In the order of creation, without the values.
wire::RangeRequest keys_below(const std::string& prefix);

/// The contenders among the keys below `prefix`; the record of a latch first.
std::vector<contender> line_of(const wire::RangeResponse& all, const std::string& prefix);

/// The name in the key BASE NAME/ENTRY, if that is an entry; otherwise empty.
std::string name_in_use(const wire::KeyValue& kv, const std::string& base);

}  // namespace holdfast::store::etcd
