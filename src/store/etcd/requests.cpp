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
    auto who = contender_at(std::string_view(kv.key()).substr(prefix.size()));
    if (!who) continue;
    const bool first = who->node == record_key;
    line.insert(first ? line.begin() : line.end(), std::move(*who));
  }
  return line;
}

std::string name_in_use(std::string_view below_base) {
  const auto slash = below_base.find('/');
  if (slash == below_base.npos || !contender_at(below_base.substr(slash + 1))) return {};
  return contender_text::unescape(below_base.substr(0, slash));
}

}  // namespace holdfast::store::etcd
