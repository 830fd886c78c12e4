#include <algorithm>
#include <charconv>
#include <holdfast/session.hpp>
#include <tuple>

#include "base/names.hpp"
#include "diagnose/deadlock_watch.hpp"
#include "primitive/common.hpp"
#include "primitive/rate_rules.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

using primitive::describe;

namespace {

bool has_died(const std::string& peer, const store::permits_reply& reply) {
  const auto& dead = reply.blockers;
  return !peer.empty() && std::find(dead.begin(), dead.end(), peer) != dead.end();
}

void describe_permits(const store::permits_reply& reply, name_info& info) {
  const auto& r = reply.found;
  if (reply.outcome == store::permits_outcome::kind_mismatch && r.kind != store::kind::latch) {
    info.kind = to_string(r.kind);
  }
  if (r.holders.empty() && r.queue.empty()) return;
  info.kind = to_string(r.kind);
  info.capacity = r.capacity;
  info.remaining = r.capacity;
  for (const auto& h : r.holders) {
    info.remaining -= std::min(info.remaining, h.weight);
    info.holders.push_back(describe(h, reply.now_at));
    info.holders.back().fence = engine::public_fence(h.fence);
    info.holders.back().died = has_died(h.peer, reply);
  }
  for (const auto& w : r.queue) {
    info.waiters.push_back(describe(w, reply.now_at));
    info.waiters.back().died = has_died(w.peer, reply);
  }
}

void describe_countdown(const store::countdown_reply& reply, name_info& info) {
  const auto& r = reply.found;
  if (r.count == 0) return;
  info.kind = to_string(store::kind::latch);
  info.capacity = r.count;
  info.remaining = r.remaining;
  for (const auto& w : r.waiting) info.waiters.push_back(describe(w, reply.now_at));
}

std::string checked_name(const engine::session_impl& session, std::string_view what,
                         std::string_view name) {
  std::string full = session.full_name(name);
  if (auto ok = base::check_name(name, session.can().max_name_bytes); !ok) {
    throw_failure(session.located(std::move(ok.error()), what, full));
  }
  return full;
}

status check_options(const session_options& o, const store::capabilities& can) {
  if (auto ok = base::check_lease(o.lease, can); !ok) return ok;
  if (o.store_timeout < std::chrono::milliseconds::zero()) {
    return failure{errc::invalid_argument, "store_timeout is negative"};
  }
  if (!o.detect_deadlocks || can.finds_deadlocks) return done{};
  return failure{errc::unsupported,
                 "this store cannot show which session waits for which, so detect_deadlocks would "
                 "find nothing: docs/matrix.md lists the stores that can"};
}

}  // namespace

session::session(std::unique_ptr<store::session_store> store, session_options options)
    : impl_(engine::session_impl::make(std::move(store), std::move(options))) {
  if (auto ok = check_options(impl_->options(), impl_->can()); !ok) {
    throw_failure(impl_->located(std::move(ok.error()), "open", ""));
  }
}

const store::capabilities& session::can() const noexcept { return impl_->can(); }
const std::string& session::url() const noexcept { return impl_->url(); }
std::uint64_t session::store_operations() const noexcept { return impl_->operations(); }

namespace {

// Work that the synchronous and the asynchronous functions share.

result<std::vector<std::string>> names_like(engine::session_impl& session,
                                            std::string_view pattern) {
  auto all = session.names();
  if (!all) return session.located(std::move(all.error()), "names", pattern);
  const std::string& prefix = session.options().name_prefix;
  std::vector<std::string> ours;
  for (const auto& name : *all) {
    if (!name.starts_with(prefix) || engine::is_wait_mark(name)) continue;
    auto rest = name.substr(prefix.size());
    if (base::matches(pattern, rest)) ours.push_back(std::move(rest));
  }
  std::sort(ours.begin(), ours.end());
  return ours;
}

result<name_info> look_at(engine::session_impl& session, const std::string& full) {
  name_info info;
  info.name = full;
  const auto permits = session.permits(full, {});
  if (!permits) return session.located(permits.error(), "show", full);
  info.last_fence = engine::public_fence(permits->found.last_fence);
  describe_permits(*permits, info);
  if (!info.kind.empty()) return info;
  const auto countdown = session.countdown(full, {});
  if (!countdown) return session.located(countdown.error(), "show", full);
  describe_countdown(*countdown, info);
  return info;
}

rate_bucket describe_bucket(store::bucket b, std::int64_t now_at) {
  rate_bucket shown;
  shown.key = primitive::rate_rules::parts_of(b.id);
  shown.rule = std::move(shown.key.front());
  shown.key.erase(shown.key.begin());
  if (b.damaged) {
    shown.error = "the bucket is damaged";
    return shown;
  }
  const std::chrono::microseconds unchanged{std::max<std::int64_t>(now_at - b.at, 0)};
  store::refill(b, now_at);
  const auto state = store::describe(b, 0, now_at);
  shown.limit = static_cast<std::uint64_t>(state.limit);
  shown.remaining = static_cast<std::uint64_t>(state.remaining);
  shown.tokens = static_cast<std::uint64_t>(b.rule.gain);
  shown.per = std::chrono::microseconds{b.rule.unit * b.rule.step_us};
  shown.full_in = std::chrono::microseconds{state.full_us};
  shown.unchanged_for = unchanged;
  return shown;
}

result<std::vector<rate_bucket>> buckets_of(engine::session_impl& session, const std::string& full,
                                            std::size_t most) {
  auto list = session.buckets(full);
  if (!list) return session.located(std::move(list.error()), "buckets", full);
  std::vector<rate_bucket> found;
  for (store::bucket& b : list->buckets)
    if (b.damaged || !store::is_full(b, list->now_at))
      found.push_back(describe_bucket(std::move(b), list->now_at));
  const auto left = [](const rate_bucket& b) {
    if (!b.error.empty()) return -1.0;
    return static_cast<double>(b.remaining) / static_cast<double>(b.limit);
  };
  std::sort(found.begin(), found.end(), [&](const rate_bucket& a, const rate_bucket& b) {
    const double mine = left(a), others = left(b);
    return mine != others ? mine < others : std::tie(b.full_in, a.key) < std::tie(a.full_in, b.key);
  });
  if (found.size() > most) found.resize(most);
  return found;
}

result<std::size_t> evict(engine::session_impl& session, const std::string& full,
                          const store::owner_id& owner) {
  auto reply = session.permits(full, {.verb = store::permits_verb::evict, .owner = owner});
  if (!reply) return session.located(std::move(reply.error()), "force_release", full);
  return std::size_t{reply->position};
}

result<std::size_t> evict_all(engine::session_impl& session, const std::string& full,
                              std::string_view short_id) {
  const auto found = session.permits(full, {});
  if (!found) return session.located(found.error(), "force_release", full);
  std::vector<store::owner_id> owners;
  // A barrier's waiters take part as well, so the whole barrier is broken.
  if (found->found.kind == store::kind::barrier && short_id.empty()) owners.emplace_back();
  // A short id has to match completely: a prefix could match several holders.
  for (const auto& h : found->found.holders) {
    if (short_id.empty() || short_id == primitive::short_id_of(h.owner)) owners.push_back(h.owner);
  }
  std::size_t removed = 0;
  for (const auto& owner : owners) {
    auto some = evict(session, full, owner);
    if (!some) return some;
    removed += *some;
  }
  return removed;
}

}  // namespace

std::vector<std::string> session::names(std::string_view pattern) const {
  return names_like(*impl_, pattern).value();
}

pending<std::vector<std::string>> async_names(const session& s, std::string pattern) {
  return engine::async_do<std::vector<std::string>>(
      s.impl(), [session = s.impl().get(), pattern = std::move(pattern)] {
        return names_like(*session, pattern);
      });
}

store::facts session::facts() const {
  auto found = impl_->facts();
  if (!found) throw_failure(impl_->located(std::move(found.error()), "facts", ""));
  return std::move(*found);
}

name_info session::show(std::string_view name) const {
  return look_at(*impl_, checked_name(*impl_, "show", name)).value();
}

std::vector<rate_bucket> session::buckets(std::string_view name, std::size_t most) const {
  return buckets_of(*impl_, checked_name(*impl_, "buckets", name), most).value();
}

pending<name_info> async_show(const session& s, std::string name) {
  return engine::async_do<name_info>(
      s.impl(), [session = s.impl().get(), full = checked_name(*s.impl(), "show", name)] {
        return look_at(*session, full);
      });
}

std::size_t session::force_release(std::string_view name, std::string_view short_id) const {
  return evict_all(*impl_, checked_name(*impl_, "force_release", name), short_id).value();
}

pending<std::size_t> async_force_release(const session& s, std::string name, std::string short_id) {
  return engine::async_do<std::size_t>(
      s.impl(), [session = s.impl().get(), full = checked_name(*s.impl(), "force_release", name),
                 short_id = std::move(short_id)] { return evict_all(*session, full, short_id); });
}

}  // namespace holdfast
