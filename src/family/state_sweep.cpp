#include "family/state_sweep.hpp"

#include <algorithm>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "family/record_end.hpp"
#include "kernel/countdown.hpp"

namespace holdfast::family {

using store::moment;

namespace {

/// Limits the time of a look, because a caller waits for it and a record may be large.
constexpr std::size_t made_between_looks = 32;
constexpr std::size_t looked_at = 2 * made_between_looks;
/// Limits the size of a transaction, because other clients wait for it.
constexpr std::size_t ended_together = 32;
/// Without this time, a name that is used now and then would be swept and created again each time.
constexpr std::int64_t over_for_us = 60'000'000;

moment a_while_before(const moment& now) {
  return {now.now_at - over_for_us, now.wall_at - over_for_us, now.wall_only_grows};
}

// The leaders of an election are remembered for observers; an arrival or a refund as long as it may
// be repeated, so that it counts once.
bool remembers(const any_record& any) {
  if (const auto* const p = std::get_if<store::permits_record>(&any)) {
    return p->kind == store::kind::election || !p->history.empty();
  }
  if (const auto* const r = std::get_if<store::rate_record>(&any)) return !r->refunds.empty();
  return !std::get<store::countdown_record>(any).arrivals.empty();
}

/// Removes everything but the last fence, if the record was over a while ago. Judges the record as
/// it is in this transaction.
class ending final : public store::transition {
 public:
  const std::string* apply(std::string_view text, const moment& now) override {
    if (text.empty()) return nullptr;
    const moment before = a_while_before(now);
    std::uint64_t last_fence = 0;
    auto any = decode(text, last_fence);
    if (!any) return nullptr;
    const bool was_free = !in_use(*any);
    const bool is_fresh = last_fence >= static_cast<std::uint64_t>(before.wall_at);
    expire(*any, before);
    if (in_use(*any) || remembers(*any) || (was_free && is_fresh)) return nullptr;
    write_unused(last_fence, now, text_);
    return &text_;
  }

 private:
  std::string text_;
};

// Returns a point anywhere among the names, whatever they have in common: a prefix of `name`, and
// another character.
std::string somewhere(std::string_view name, std::size_t chance) {
  constexpr std::size_t letters = '~' - '!';
  std::size_t cut = chance / letters % (name.size() + 1);
  while (cut < name.size() && (name[cut] & 0xC0) == 0x80) ++cut;  // not within a UTF-8 character
  return std::string(name.substr(0, cut)) + static_cast<char>('!' + chance % letters);
}

}  // namespace

// Each session begins with another number, so that many short sessions that create few records each
// sweep as often together as one session that creates them all.
state_sweep::state_sweep(store::state_store& port)
    : port_(port), made_(std::hash<std::string>{}(port.inbox().peer()) % made_between_looks) {}

void state_sweep::look_if_due(std::string_view name) noexcept {
  if (made_.load(std::memory_order_relaxed) < made_between_looks) return;
  const std::unique_lock one_at_a_time{mutex_, std::try_to_lock};
  if (!one_at_a_time || made_.load(std::memory_order_relaxed) < made_between_looks) return;
  made_.fetch_sub(made_between_looks, std::memory_order_relaxed);
  try {
    look(name);
  } catch (...) {  // no memory
  }
}

void state_sweep::look(std::string_view name) {
  if (!looked_to_) looked_to_ = somewhere(name, std::hash<std::string>{}(port_.inbox().peer()));
  const auto some = port_.walk(*looked_to_, looked_at);
  if (!some) return;
  looked_to_ = some->size() < looked_at ? std::string() : some->back().name;
  if (some->empty()) return;
  const auto now = port_.time();
  if (!now) return;
  std::list<ending> endings;
  std::vector<store::state_store::step> steps;
  for (const auto& e : *some) {
    if (endings.emplace_back().apply(e.record, *now) == nullptr) continue;
    steps.push_back({e.name, &endings.back()});
  }
  for (std::span<const store::state_store::step> left{steps}; !left.empty();) {
    const auto these = left.first(std::min(left.size(), ended_together));
    (void)port_.transact(these);
    left = left.subspan(these.size());
  }
}

}  // namespace holdfast::family
