#pragma once
#ifdef HOLDFAST_WITH_REDIS

#include <holdfast/store/slot_store.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/redis_model.hpp"
#include "simulation/server.hpp"

namespace simulation {

/// A Redis server with the locks of Redisson's layout: the real scripts of dialect=redisson, on a
/// real Lua. Its clients run the real slot family; the driver in between is a stand-in.
class redisson_server final : public back_end {
 public:
  explicit redisson_server(server& of);

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override;
  /// Nothing tells these keys from those of other programs.
  std::vector<std::string> names() override { return {}; }
  std::string describe(std::string_view name) override;
  std::vector<user> users(std::string_view name) override;
  std::optional<std::uint32_t> left_at_latch(std::string_view name) override;
  bool forget() override;

 private:
  friend class redisson_client;
  using value = holdfast::store::redis::resp_value;

  /// The command as the library encodes it.
  value answer_to(const std::string& bytes);
  value run(std::vector<std::string> words) { return model_.run(words); }
  nanos left_of(const std::string& key);
  int publish(const std::string& channel, const std::string& text);

  struct listener {
    std::string peer;
    std::string name;
    holdfast::store::owner_id owner;
    auto operator<=>(const listener&) const = default;
  };
  void tell(const listener& who);

  server& of_;
  redis_model model_;
  std::map<std::string, std::set<listener>> listeners_;                 ///< by channel
  std::map<std::pair<std::string, std::string>, std::uint64_t> heard_;  ///< by peer and channel
  std::map<holdfast::store::owner_id, int> owners_;
};

}  // namespace simulation
#endif
