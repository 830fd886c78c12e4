#include "simulation/descriptors.hpp"
#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"

// What is still open when nobody uses it: transactions, registrations for notifications, files.
namespace simulation {

// Whatever a driver does in a transaction takes a few requests, one right after the other. A client
// whose answer is lost notices that after the command timeout.
void scene::watch_what_is_left_open() {
  if (whole.seed < refusing_seeds) return;
  const nanos late = whole.machine.stall_per_100k == 0 ? second : 5 * second;
  const bool slow = whole.network.slow_request + whole.network.slow_reply > 0;
  const nanos longest = whole.command_timeout + late + (slow ? whole.network.slowest_late : 0);
  for (const auto& s : stores) {
    const auto idle = s->idle_in_transaction(longest);
    if (!idle.empty())
      rules.violated("no connection stays in a transaction while it is idle", idle);
  }
}

// An owner listens only while it waits.
void scene::watch_listeners(std::size_t i) {
  if (whole.seed < refusing_seeds || whole.store != store_kind::told_slots || !whole.calm()) return;
  if (whole.about == theme::endings) return;
  auto there = stores.front()->listeners(name_of(i));
  for (const auto* const p : processes) {
    const auto many = static_cast<int>(there[p->number]);
    auto& since = listens_since[{i, p->number}];
    if (many <= users[{i, p->number}] || p->dead || p->running == 0) since = here.now();
    if (here.now() - since <= bound_of_waits()) continue;
    rules.violated("a wait that has ended listens no more",
                   "P" + std::to_string(p->number) + " with " + std::to_string(many) + " at " +
                       name_of(i) + " and " + std::to_string(users[{i, p->number}]) + " threads");
  }
}

// All sessions have ended by now.
void scene::judge_open_files() {
  if (whole.seed < refusing_seeds) return;
  for (const auto* const p : processes) {
    const auto open = p->dead ? 0 : open_descriptors_of(*p);
    if (open == 0) continue;
    rules.violated("a process whose sessions have ended has closed their files",
                   "P" + std::to_string(p->number) + ": " + std::to_string(open) + " are open");
  }
}

}  // namespace simulation
