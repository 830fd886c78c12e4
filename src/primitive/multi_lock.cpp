#include <algorithm>
#include <functional>
#include <holdfast/multi_lock.hpp>
#include <span>
#include <utility>

#include "primitive/common.hpp"
#include "primitive/multi_member.hpp"
#include "wait/async_forms.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast {

using engine::wanted;

namespace {

constexpr std::string_view operation = "multi_lock";

[[noreturn]] void fail_about(const wanted& about, failure f) {
  throw_failure(about.session->located(std::move(f), operation, about.what->name));
}

std::string store_of(const wanted& w) { return engine::store_in_order(w.session->url()); }

// Each "memory:" without a name is a store of its own.
bool same_store(const wanted& a, const wanted& b) {
  if (a.session == b.session) return true;
  return store_of(a) == store_of(b) && a.session->url() != "memory:";
}

bool in_order(const wanted& a, const wanted& b) {
  const auto of = [](const wanted& w) { return std::pair(store_of(w), w.what->name); };
  const auto first = of(a), second = of(b);
  if (first != second) return first < second;
  return std::less<>{}(&*a.session, &*b.session);  // two stores of the same name: "memory:"
}

bool same_terms(const engine::lock_config& a, const engine::lock_config& b) {
  return a.lease == b.lease && a.renew == b.renew && a.max_hold == b.max_hold;
}

void check_members(const std::vector<wanted>& all) {
  if (all.empty()) {
    throw_failure({errc::invalid_argument, "a multi_lock needs at least one member", false,
                   std::string(operation)});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& w = all[i];
    if (!same_terms(*w.what, *all.front().what)) {
      fail_about(
          w, {errc::invalid_argument,
              "its lease, renew or max_hold is not that of the first member: they end together, "
              "so give all of them the same"});
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (all[j].what->name != w.what->name || !same_store(all[j], w)) continue;
      fail_about(w, {errc::invalid_argument, std::string(engine::member_twice)});
    }
  }
}

multi_lease lease_of(std::vector<lease> taken, std::span<const std::size_t> given_as) {
  std::vector<lease> members(taken.size());
  for (std::size_t i = 0; i < taken.size(); ++i) members[given_as[i]] = std::move(taken[i]);
  return detail::access::make<multi_lease>(std::move(members));
}

}  // namespace

struct multi_lock::state {
  std::vector<wanted> all;            ///< in the order of acquisition
  std::vector<std::size_t> given_as;  ///< the index of each among the given members
  primitive::by_thread<multi_lease> holds;

  explicit state(std::vector<multi_member>&& members) {
    std::vector<std::pair<wanted, std::size_t>> order;
    order.reserve(members.size());
    for (const auto& m : members) order.emplace_back(detail::access::of(m)->asks, order.size());
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return in_order(a.first, b.first); });
    for (auto& [asks, number] : order) {
      asks.what = primitive::without_local_queue(*asks.what);
      all.push_back(std::move(asks));
      given_as.push_back(number);
    }
    check_members(all);
  }
  [[noreturn]] void fail(failure f) const { fail_about(all.front(), std::move(f)); }
  void require_usable() const {
    for (const auto& w : all) {
      auto can = w.session->usable();
      if (!can) fail_about(w, std::move(can.error()));
    }
  }
  std::vector<wanted> for_lease(lease_time lease) const {
    auto asked = all;
    if (!lease) return asked;
    for (auto& w : asked) {
      auto made = std::make_shared<engine::lock_config>(*w.what);
      auto possible = primitive::set_lease(*made, *lease, w.session->can());
      if (!possible) fail_about(w, std::move(possible.error()));
      made->renew = false;
      w.what = std::move(made);
    }
    return asked;
  }
};

multi_lock::multi_lock(std::initializer_list<multi_member> members)
    : multi_lock(std::vector<multi_member>(members)) {}

multi_lock::multi_lock(std::vector<multi_member> members) : state_(new state(std::move(members))) {}

multi_lock::~multi_lock() = default;

std::optional<multi_lease> multi_lock::acquire_within(wait_time wait, lease_time lease,
                                                      std::stop_token stop) {
  const auto asked = state_->for_lease(lease);
  auto got = engine::acquire_all(asked, wait, std::move(stop));
  if (got) return lease_of(std::move(*got), state_->given_as);
  if (engine::was_given_up(got.error().code)) return std::nullopt;
  throw_failure(std::move(got.error()));
}

pending<multi_lease> async_acquire(multi_lock& all, wait_limit limit, std::stop_token stop) {
  const auto& s = *detail::access::of(all);
  return engine::async_then<multi_lease>(engine::async_acquire_all(s.all, limit, std::move(stop)),
                                         [given_as = s.given_as](std::vector<lease> taken) {
                                           return lease_of(std::move(taken), given_as);
                                         });
}

multi_lease multi_lock::take(lease_time lease, std::stop_token stop) {
  auto got = acquire_within(no_limit, lease, std::move(stop));
  if (!got) state_->fail(engine::asked_to_stop());
  return std::move(*got);
}

bool multi_lock::lock_within(wait_time wait, lease_time lease, std::stop_token stop) {
  return primitive::lock_for_thread(state_->holds, *state_, wait,
                                    "this thread holds the lock already",
                                    [&] { return acquire_within(wait, lease, std::move(stop)); });
}

void multi_lock::unlock() noexcept {
  const multi_lease held = state_->holds.take();  // its destructor releases
  if (held) return;
  const wanted& first = state_->all.front();
  primitive::report_misuse(*first.session, first.what->name, {},
                           "unlock() of a multi_lock by a thread that does not hold it");
}

std::vector<std::uint64_t> multi_lock::fences() const {
  return state_->holds.with_mine([](const multi_lease& mine) { return mine.fences(); });
}
void multi_lock::check() const {
  state_->require_usable();
  state_->holds.with_mine([](const multi_lease& mine) { mine.check(); });
}
std::stop_token multi_lock::lost() const {
  return state_->holds.with_mine([](const multi_lease& mine) { return mine.lost(); });
}
clock& clock_of(const multi_lock& m) noexcept { return m.state_->all.front().session->clock(); }

}  // namespace holdfast
