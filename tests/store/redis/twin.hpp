#pragma once

#include <holdfast/store/command.hpp>
#include <holdfast/store/rate.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/redis_server.hpp"
#include "harness/seed.hpp"
#include "store/redis/handshake.hpp"
#include "store/redis/scripts.hpp"

namespace twin {

/// Commands of one name, and when each is carried out.
template <class Command>
struct step {
  std::int64_t time;
  Command command;
};
using permits_history = std::vector<step<holdfast::store::permits_command>>;
using countdown_history = std::vector<step<holdfast::store::countdown_command>>;

/// A command of a rate limiter, with its buckets.
struct rate_step {
  std::int64_t time;
  holdfast::store::rate_command command;
  std::vector<holdfast::store::bucket_choice> buckets;
};
using rate_history = std::vector<rate_step>;

permits_history random_permits(harness::random& dice, int steps);
countdown_history random_countdown(harness::random& dice, int steps);
rate_history random_rate(harness::random& dice, int steps);

enum class which_script { permits, rate };

/// A change made to a script before it is loaded, to check that the comparison notices it.
struct seeded_bug {
  std::string text;
  std::string instead;
  which_script of = which_script::permits;
};

/// Plays histories to a script on a server and to the kernel, and compares.
class stage {
 public:
  explicit stage(const harness::redis_server& server, std::optional<seeded_bug> bug = {},
                 holdfast::store::redis::publication how = {});

  /// The first difference, or nothing.
  std::optional<std::string> play(const permits_history& history);
  std::optional<std::string> play(const countdown_history& history);
  std::optional<std::string> play(const rate_history& history);

 private:
  std::vector<holdfast::store::redis::resp_value> run(std::string bytes, std::size_t count);

  holdfast::store::redis::publication how_;
  holdfast::store::redis::redis_options options_;
  std::unique_ptr<holdfast::store::redis::connection> connection_;
  std::string true_sha_;
  std::string sha_;
  int names_ = 0;
};

}  // namespace twin
