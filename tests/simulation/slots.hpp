#pragma once

#include <cstdint>
#include <holdfast/store/slot_store.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulation/server.hpp"

namespace simulation {

/// What a store of slots keeps: entries that are compared and set in one step, and expire by
/// themselves. Its clients run the real family. Without notifications it behaves as memcached:
/// leases of whole seconds, no fences.
class slots final : public back_end {
 public:
  explicit slots(server& of) : of_(of) {}

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override;
  std::vector<std::string> names() override;
  std::string describe(std::string_view name) override;
  std::vector<user> users(std::string_view name) override;
  std::vector<std::string> peers_that_listen(std::string_view name) override;
  bool forget() override;

 private:
  friend class slot_client;
  using entry = holdfast::store::slot_entry;
  using reply = holdfast::store::slot_reply;
  using spot = std::pair<std::string, std::uint32_t>;

  struct item {
    entry what;
    std::int64_t ends_at = 0;
    std::int64_t gone_at = 0;
    int process = 0;
  };
  struct listener {
    std::string peer;
    holdfast::store::owner_id owner;
    auto operator<=>(const listener&) const = default;
  };

  reply add(const spot& at, const entry& who, std::int64_t lease_us, int process);
  reply extend(const spot& at, const entry& who, std::int64_t lease_us);
  reply remove(const spot& at, const holdfast::store::owner_id& owner);
  item* find(const spot& at);
  void put(item& into, std::int64_t lease_us, std::int64_t least = 0);
  void tell(const std::string& name);

  server& of_;
  std::map<spot, item> items_;
  std::map<std::string, std::set<listener>> listeners_;
  std::uint64_t last_fence_ = 0;
};

}  // namespace simulation
