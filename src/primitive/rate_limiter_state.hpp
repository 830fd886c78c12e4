#pragma once

#include <functional>
#include <holdfast/rate_limiter.hpp>
#include <mutex>
#include <unordered_map>

#include "primitive/common.hpp"
#include "primitive/rate_rules.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

namespace primitive {

/// Tokens of one key that the process has taken ahead; the store has counted them.
struct token_pool {
  std::uint64_t left = 0;
  boot_time until{};
  rate_decision last{};  ///< the store's decision for them
};

}  // namespace primitive

struct rate_limiter::state {
  primitive::subject of;
  rate_limiter_options options;
  mutable std::mutex mutex{};
  std::shared_ptr<const primitive::rate_rules> rules{};
  std::unordered_map<std::string, primitive::token_pool> pools{};

  std::shared_ptr<const primitive::rate_rules> current() const {
    const std::lock_guard guard{mutex};
    return rules;
  }

  /// A request to the store; contains everything that its commands point to. (The choices of a copy
  /// point to the buckets of the original.)
  struct request {
    std::shared_ptr<const primitive::rate_rules> rules;
    std::vector<std::string> buckets;
    std::vector<store::bucket_choice> choices;

    store::rate_command command(store::rate_verb verb, const store::owner_id& owner,
                                std::uint64_t n, std::chrono::microseconds ahead = {}) const {
      return {verb, owner, static_cast<std::int64_t>(n), ahead.count(), rules->version(), choices};
    }
  };
  /// A request for n tokens; throws if the rules can never give that many at once.
  request about(const rate_key& key, std::uint64_t n) const;
  /// A request that refunds the tokens of `taken`.
  request about_taken(const rate_key& key, const rate_decision& taken) const;
  /// Starts `how`. In a child of fork() the rules are the parent's: starts an operation that fails
  /// with errc::forked.
  template <class Begin>
  auto begin(Begin how) const {
    using value = typename std::invoke_result_t<Begin>::value_type;
    return of.session->forked() ? engine::async_do<value>(of.session, {}) : how();
  }
  rate_decision decide(request about, store::rate_verb verb, std::uint64_t n,
                       std::chrono::microseconds ahead, wait_time wait) const;
  /// Keeps the tokens taken for later calls. If it throws, they are refunded.
  using kept = std::function<void(const rate_decision&)>;
  result<rate_decision> ask(request about, store::rate_verb verb, std::uint64_t n,
                            std::chrono::microseconds ahead, wait_time wait,
                            const kept& keep = {}) const;
  rate_decision take_locally(request r, std::uint64_t n);
  void drop_old_pools(boot_time now);
  void replace_rules(std::vector<rate_rule> with, std::uint32_t version);
};

namespace primitive {

/// Translates the store's answer to a request for n tokens.
result<rate_decision> decision(const rate_limiter::state::request& r,
                               const store::rate_reply& reply, std::uint64_t n);

}  // namespace primitive
}  // namespace holdfast
