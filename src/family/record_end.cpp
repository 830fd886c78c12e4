#include "family/record_end.hpp"

#include "kernel/countdown.hpp"
#include "kernel/permits.hpp"
#include "kernel/rate.hpp"

namespace holdfast::family {

using namespace store;

namespace {

// The name is not in use, nothing is remembered, and the time alone makes the next fence greater.
bool forgettable(const permits_record& record, const moment& now) {
  return now.wall_only_grows && record.capacity == 0 && record.history.empty() &&
         record.last_fence < static_cast<std::uint64_t>(now.wall_at);
}

}  // namespace

bool in_use(const any_record& any) {
  if (const auto* const p = std::get_if<permits_record>(&any)) return p->capacity != 0;
  if (const auto* const r = std::get_if<rate_record>(&any)) return !r->buckets.empty();
  return std::get<countdown_record>(any).count != 0;
}

store::kind kind_of(const any_record& any) {
  if (const auto* const p = std::get_if<permits_record>(&any)) return p->kind;
  return std::holds_alternative<rate_record>(any) ? store::kind::rate_limiter : store::kind::latch;
}

void expire(any_record& any, const moment& now) {
  if (auto* const p = std::get_if<permits_record>(&any)) {
    (void)kernel::apply(*p, permits_command{}, now);
    if (p->holders.empty() && p->queue.empty()) p->capacity = 0;
  } else if (auto* const r = std::get_if<rate_record>(&any)) {
    kernel::expire(*r, now);
  } else {
    (void)kernel::apply(std::get<countdown_record>(any), countdown_command{}, now);
  }
}

void write(const permits_record& record, const moment& now, std::string& text) {
  text.clear();
  if (!forgettable(record, now)) encode(record, text);
}

void write_unused(std::uint64_t last_fence, const moment& now, std::string& text) {
  text.clear();
  if (last_fence != 0) write(permits_record{.last_fence = last_fence}, now, text);
}

}  // namespace holdfast::family
