#include "simulation/slots.hpp"

#include <algorithm>

#include "family/slot_family.hpp"
#include "simulation/connection_inbox.hpp"

namespace simulation {

using holdfast::result;
using holdfast::store::owner_id;
using holdfast::store::slot;
using holdfast::store::slot_entry;
using holdfast::store::slot_outcome;
using holdfast::store::slot_reply;

/// The slot family's view, in one process.
class slot_client final : public holdfast::store::slot_store, private requester {
 public:
  slot_client(server& of, slots& all, std::shared_ptr<connection> by)
      : requester(of, std::move(by)), all_(all) {
    can_.fair = can_.shared = can_.semaphore = can_.latch = false;
    can_.preferences = can_.expiring = can_.lists_waiters = false;
    can_.notifications = can_.fences = of.is_.notifications;
    can_.tells_holders = false;
    can_.try_takes_ms = static_cast<std::uint32_t>(of.is_.command_timeout / millisecond);
    can_.lease_step_ms = of.is_.notifications ? 1 : 1'000;
  }
  ~slot_client() override {
    by_->closed = true;
    by_->reader = nullptr;
  }

  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return of_.name(); }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

  result<slot_reply> add(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return tell("add", where, who.owner,
                [&all = all_, at = spot_of(where), who, lease, p = by_->of->number] {
                  return all.add(at, who, lease, p);
                });
  }
  result<slot_reply> extend(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return tell("extend", where, who.owner, [&all = all_, at = spot_of(where), who, lease] {
      return all.extend(at, who, lease);
    });
  }
  result<slot_reply> remove(const slot& where, const owner_id& owner) override {
    return tell("remove", where, owner,
                [&all = all_, at = spot_of(where), owner] { return all.remove(at, owner); });
  }

  result<std::vector<std::optional<slot_entry>>> look(std::span<const slot> at) override {
    using answer = std::vector<std::optional<slot_entry>>;
    std::vector<slots::spot> spots;
    for (const auto& one : at) spots.push_back(spot_of(one));
    return ask<answer>("look", [&all = all_, &of = of_, spots = std::move(spots)] {
      answer found;
      for (const auto& one : spots) {
        const auto* const there = all.find(one);
        found.push_back(there == nullptr ? std::nullopt : std::optional(there->what));
        if (there == nullptr) continue;
        found.back()->left_us = std::max<std::int64_t>(there->ends_at - of.time().now_at, 0);
      }
      return result<answer>(std::move(found));
    });
  }

  result<std::vector<std::string>> names() override {
    return ask<std::vector<std::string>>(
        "names", [&all = all_] { return result<std::vector<std::string>>(all.names()); });
  }

  void wait_for(const slot& where, const owner_id& owner) override {
    all_.listeners_[std::string(where.name)].insert({by_->peer, owner});
  }
  void done_waiting(const slot& where, const owner_id& owner) override {
    all_.listeners_[std::string(where.name)].erase({by_->peer, owner});
  }

 private:
  static slots::spot spot_of(const slot& s) { return {std::string(s.name), s.part}; }

  template <class F>
  result<slot_reply> tell(const char* verb, const slot& where, const owner_id& owner, F carry_out) {
    std::string label;
    if (traced()) {
      label = std::string(verb) + ' ' + std::string(where.name) + '/' + std::to_string(where.part) +
              ' ' + to_string(owner).substr(0, 4);
    }
    return ask<slot_reply>(std::move(label), [carry_out = std::move(carry_out)] {
      return result<slot_reply>(carry_out());
    });
  }

  slots& all_;
  holdfast::store::capabilities can_;
  connection_inbox inbox_{of_, of_.world_, by_};
};

std::unique_ptr<holdfast::store::session_store> slots::connect(process& of) {
  return holdfast::family::over(std::make_unique<slot_client>(of_, *this, of_.connect_to(of)),
                                clock_of_processes());
}

bool slots::forget() {
  items_.clear();
  return true;
}

slots::item* slots::find(const spot& at) {
  const auto found = items_.find(at);
  if (found == items_.end()) return nullptr;
  if (found->second.gone_at > of_.time().now_at) return &found->second;
  items_.erase(found);
  return nullptr;
}

// On a server that counts in ticks, an expiry may come late, but never early.
void slots::put(item& into, std::int64_t lease_us, std::int64_t least) {
  into.ends_at = std::max(least, of_.time().now_at + lease_us);
  into.gone_at = into.ends_at + of_.world_.random().between(0, of_.is_.outlasts) / microsecond;
}

slots::reply slots::add(const spot& at, const entry& who, std::int64_t lease_us, int process) {
  item* there = find(at);
  if (there != nullptr && there->what.owner != who.owner) {
    reply taken{slot_outcome::taken, 0, there->what};
    taken.other.left_us = std::max<std::int64_t>(there->ends_at - of_.time().now_at, 0);
    return taken;
  }
  if (there == nullptr) {
    there = &items_[at];
    there->what = who;
    there->process = process;
    there->what.since_wall_at = of_.time().wall_at;
    there->what.fence = last_fence_ =
        std::max(last_fence_ + 1, static_cast<std::uint64_t>(of_.time().wall_at));
  }
  put(*there, lease_us, there->ends_at);
  return {slot_outcome::done, there->what.fence, {}};
}

slots::reply slots::extend(const spot& at, const entry& who, std::int64_t lease_us) {
  item* const there = find(at);
  if (there == nullptr) return {slot_outcome::empty, 0, {}};
  if (there->what.owner != who.owner) return {slot_outcome::taken, 0, there->what};
  put(*there, lease_us);
  return {slot_outcome::done, there->what.fence, {}};
}

slots::reply slots::remove(const spot& at, const owner_id& owner) {
  const item* const there = find(at);
  if (there == nullptr) return {slot_outcome::empty, 0, {}};
  if (there->what.owner != owner) return {slot_outcome::taken, 0, there->what};
  items_.erase(at);
  tell(at.first);
  return {};
}

void slots::tell(const std::string& name) {
  if (!of_.is_.notifications) return;
  for (const auto& l : listeners_[name]) {
    const auto to = of_.connections_.find(l.peer);
    if (to == of_.connections_.end()) continue;
    holdfast::store::notification n;
    n.what = holdfast::store::notification_kind::granted;
    n.name = name;
    n.owner = l.owner;
    of_.post(to->second, [&w = of_.world_, to = to->second, n] {
      to->inbox.push_back(n);
      to->wake_reader(w);
    });
  }
}

std::vector<std::string> slots::names() {
  std::vector<std::string> all;
  const auto now = of_.time().now_at;
  for (const auto& [at, item] : items_) {
    if (item.gone_at > now && (all.empty() || all.back() != at.first)) all.push_back(at.first);
  }
  return all;
}

// Only the unexpired ones: the store keeps an expired slot for a moment.
std::vector<back_end::user> slots::users(std::string_view name) {
  std::vector<user> all;
  for (const auto& [at, item] : items_) {
    const bool there = at.first == name && item.ends_at > of_.time().now_at;
    if (there) all.push_back({item.what.owner, item.process, false, of_.lasts(item.ends_at)});
  }
  return all;
}

std::vector<std::string> slots::peers_that_listen(std::string_view name) {
  std::vector<std::string> all;
  const auto here = listeners_.find(std::string(name));
  if (here == listeners_.end()) return all;
  for (const auto& l : here->second) all.push_back(l.peer);
  return all;
}

std::string slots::describe(std::string_view name) {
  std::string text = std::string(name) + ":";
  for (const auto& [at, item] : items_) {
    if (at.first != name || item.gone_at <= of_.time().now_at) continue;
    text += " [" + std::to_string(at.second) + " " + to_string(item.what.owner).substr(0, 4) +
            " for " + std::to_string((item.gone_at - of_.time().now_at) / 1000) + " ms]";
  }
  return text;
}

}  // namespace simulation
