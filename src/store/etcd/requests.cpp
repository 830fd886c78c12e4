#include "store/etcd/requests.hpp"

#include <algorithm>

#include "store/contender_text/text.hpp"
#include "store/etcd/names.hpp"

namespace holdfast::store::etcd {

namespace {

enum comparison { equal = 0, greater = 1 };
enum target { create_revision = 1, mod_revision = 2 };
enum sorting { ascending = 1, by_create_revision = 2 };

wire::Compare compare(std::string key, comparison how, target what) {
  wire::Compare c;
  c.set_key(std::move(key));
  c.set_result(how);
  c.set_target(what);
  return c;
}

/// The contender of a key, whose last part is `node`. Another program's has a lease: without one,
/// the key is no lock, whatever its name looks like.
std::optional<contender> contender_of(const wire::KeyValue& kv, std::string_view node) {
  auto who = contender_at(node);
  const bool of_another = who && !who->owner && node != record_key;
  if (of_another && kv.lease() == 0) return std::nullopt;
  return who;
}

}  // namespace

wire::Compare not_there(std::string key) {
  auto c = compare(std::move(key), equal, create_revision);
  c.set_create_revision(0);
  return c;
}

wire::Compare there(std::string key) {
  auto c = compare(std::move(key), greater, create_revision);
  c.set_create_revision(0);
  return c;
}

wire::Compare as_of_version(std::string key, std::int64_t revision) {
  auto c = compare(std::move(key), equal, mod_revision);
  c.set_mod_revision(revision);
  return c;
}

wire::RequestOp put(std::string key, std::string_view value, std::int64_t lease) {
  wire::RequestOp op;
  auto& p = *op.mutable_request_put();
  p.set_key(std::move(key));
  p.set_value(value.data(), value.size());
  p.set_lease(lease);
  return op;
}

wire::RequestOp put_again(std::string key, std::string_view value) {
  auto op = put(std::move(key), value, 0);
  op.mutable_request_put()->set_ignore_lease(true);
  return op;
}

wire::RequestOp remove(std::string key) {
  wire::RequestOp op;
  op.mutable_request_delete_range()->set_key(std::move(key));
  return op;
}

wire::RangeRequest one(std::string key) {
  wire::RangeRequest r;
  r.set_key(std::move(key));
  return r;
}

wire::RangeRequest all_below(const std::string& prefix) {
  auto r = one(prefix);
  r.set_range_end(end_of(prefix));
  return r;
}

wire::RangeRequest keys_below(const std::string& prefix) {
  auto r = all_below(prefix);
  r.set_keys_only(true);
  r.set_sort_order(ascending);
  r.set_sort_target(by_create_revision);
  return r;
}

std::vector<contender> line_of(const wire::RangeResponse& all, const std::string& prefix) {
  std::vector<contender> line;
  for (const auto& kv : all.kvs()) {
    auto who = contender_of(kv, std::string_view(kv.key()).substr(prefix.size()));
    if (!who) continue;
    const bool first = who->node == record_key;
    line.insert(first ? line.begin() : line.end(), std::move(*who));
  }
  return line;
}

std::string name_in_use(const wire::KeyValue& kv, const std::string& base) {
  const auto below_base = std::string_view(kv.key()).substr(base.size());
  const auto slash = below_base.find('/');
  if (slash == below_base.npos || !contender_of(kv, below_base.substr(slash + 1))) return {};
  return contender_text::unescape(below_base.substr(0, slash));
}

}  // namespace holdfast::store::etcd
