#pragma once

#include <functional>
#include <holdfast/result.hpp>
#include <holdfast/store/capabilities.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/identity.hpp>
#include <holdfast/store/inbox.hpp>
#include <holdfast/store/rate.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::store {

struct named_command {
  std::string_view name;
  permits_command command;
};

/// The answer to a request for permits and tokens (rate.hpp) in one step.
struct admission {
  permits_reply permits{};
  std::optional<rate_reply> tokens{};  ///< of the take; empty if the permits were not granted
};

/// The interface of every store to the engine: commands by name, each one atomic step at the store.
/// A family (state, contender, slot) implements it over the port of its kind.
/// Thread-safe. A call costs one round trip unless it says otherwise.
class session_store {
 public:
  virtual ~session_store() = default;

  virtual const capabilities& can() const noexcept = 0;
  /// For messages: the URL without passwords. It contains only the options that choose the place,
  /// because two stores with one URL are taken for one.
  virtual const std::string& url() const noexcept = 0;

  /// Carries out one permits command. After a failure with `outcome_unknown` the command may have
  /// been carried out; repeating it is safe, because the store recognizes it by the owner id.
  virtual result<permits_reply> permits(std::string_view name, const permits_command& command) = 0;
  virtual result<countdown_reply> countdown(std::string_view name,
                                            const countdown_command& command) = 0;

  /// As permits(), for a release. It may return when the command is sent; later requests of this
  /// session for the name come after it. `then` is called once with the answer, by the thread that
  /// reads it, with no mutex held, and before settle() returns. Returns true if the answer is still
  /// to come. The default waits for the answer.
  virtual bool permits_later(std::string_view name, const permits_command& command,
                             std::function<void(result<permits_reply>)> then);
  /// Returns when each answer to permits_later() so far has arrived, or failed.
  virtual void settle() {}

  /// Carries out one command about token buckets. A take that is repeated is counted again, a
  /// refund is not. The default returns errc::unsupported, as capabilities::rate_limiter = false
  /// requires.
  virtual result<rate_reply> rate(std::string_view name, const rate_command& command);

  /// The stored buckets of a name; none if the name is in use as another kind. One round trip where
  /// a name is one record; on Redis a scan of the keys, and one round trip for each page of them.
  /// The default returns errc::unsupported.
  virtual result<bucket_list> buckets(std::string_view name);

  /// Many commands together, such as the renewals of many names; answers in the same order. The
  /// default sends one after the other.
  virtual std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch);

  /// Acquisitions of different names, in this order. Stops at the first refusal; its reply is the
  /// last element. If that acquisition does not wait, those before it are not held either. One step
  /// and one round trip where the store can; the default asks one by one, and releases.
  virtual result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all);

  /// An acquisition, and a take from the buckets of another name: either both are granted, or
  /// nothing is held and nothing taken. A request that may wait is queued if there are no permits.
  /// If a queued request finds no tokens, it leaves the queue. One step and one round trip where
  /// the store can; the default asks for the permits, then for the tokens, and releases.
  virtual result<admission> admit(const named_command& permits, std::string_view limiter,
                                  const rate_command& take);

  /// The key that represents that owner, which holds the name. No round trip. The default returns
  /// errc::unsupported.
  virtual result<standing> standing_of(std::string_view name, const owner_id& owner);

  /// The default returns the URL only.
  virtual result<store::identity> identify();

  /// Version, settings and state of the servers, as far as they matter for locks and this user may
  /// ask for them: holdfast doctor judges them. One or two round trips for each server. The default
  /// returns none.
  virtual result<store::facts> facts() { return store::facts{}; }

  /// For how long the store is known to have kept its grants: since the last restart, failover or
  /// flush that can be noticed. Empty if the store does not forget. It may leave a mark at the
  /// store. The default returns identify()'s up_for.
  virtual result<std::optional<std::chrono::microseconds>> remembers_for();

  /// All names in use. A record that cannot be read (damaged, newer, foreign) is in use: its name
  /// is included, and only a request for that name reports why. No single entry makes this fail.
  /// Costs a scan.
  virtual result<std::vector<std::string>> names() = 0;

  /// The inbox of this session's notifications.
  virtual store::inbox& inbox() noexcept = 0;
};

}  // namespace holdfast::store
