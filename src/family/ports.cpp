#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>

// What the ports do by default for stores that know nothing better.
namespace holdfast::store {

result<rate_reply> session_store::rate(std::string_view, const rate_command&) {
  return failure{
      errc::unsupported,
      "the store " + url() + " has no rate_limiter; docs/matrix.md says which stores have"};
}

std::vector<result<permits_reply>> session_store::renew(std::span<const renewal> batch) {
  std::vector<result<permits_reply>> replies;
  replies.reserve(batch.size());
  for (const auto& r : batch) replies.push_back(permits(r.name, r.command));
  return replies;
}

bool session_store::permits_later(std::string_view name, const permits_command& command,
                                  std::function<void(result<permits_reply>)> then) {
  then(permits(name, command));
  return false;
}

std::vector<status> state_store::transact(std::span<const step> steps) {
  std::vector<status> statuses;
  statuses.reserve(steps.size());
  for (const auto& s : steps) statuses.push_back(transact(s.name, *s.change));
  return statuses;
}

}  // namespace holdfast::store
