#include <holdfast/holdfast.hpp>
#include <memory>
#include <thread>

#include "simulation/meeting_actor.hpp"
#include "simulation/scene.hpp"

namespace simulation {

namespace {

class listener final : public holdfast::observer {
 public:
  listener(scene& of, process& p) : of_(of), process_(p) {}
  void on_event(const holdfast::event& e) override {
    using kind = holdfast::event_kind;
    const bool good =
        e.kind == kind::acquired || e.kind == kind::released || e.kind == kind::gave_up;
    if (of_.log.on() && !good) {
      of_.log.add("(" + std::string(to_string(e.kind)) + " " + std::string(e.name) + " " +
                  std::string(e.detail) + ")");
    }
    const bool due = e.kind == kind::lost && of_.loses;
    if (!good && !due && of_.whole.calm()) {
      of_.rules.violated("where nothing goes wrong nobody is told that it did",
                         std::string(to_string(e.kind)) + " " + std::string(e.name) + ": " +
                             std::string(e.detail));
    }
  }

 private:
  scene& of_;
  process& process_;
};

locks make_locks(const scene& of, const holdfast::session& s, std::size_t i,
                 const process_plan& does) {
  holdfast::lock_options o;
  o.renew = does.renew;
  if (does.max_hold != never) o.max_hold = in_ms(does.max_hold);
  o.local_time = std::chrono::microseconds(does.local_time / microsecond);
  o.max_bypass = does.max_bypass;
  o.unconfirmed_release = does.unconfirmed;
  const auto& n = of.whole.names[i];
  if (n.kind == lock_kind::mutex || n.kind == lock_kind::recursive) {
    if (does.max_hold == never) o.linger = std::chrono::microseconds(does.linger / microsecond);
  }
  locks all;
  switch (n.kind) {
    case lock_kind::mutex:
      all.mutex = std::make_unique<holdfast::mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::fair:
      all.mutex = std::make_unique<holdfast::fair_mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::recursive:
      all.recursive = std::make_unique<holdfast::recursive_mutex>(s, scene::name_of(i), o);
      break;
    case lock_kind::shared: {
      holdfast::shared_mutex_options so;
      static_cast<holdfast::lock_options&>(so) = o;
      all.shared = std::make_unique<holdfast::shared_mutex>(s, scene::name_of(i), so);
      break;
    }
    case lock_kind::semaphore:
      all.semaphore = std::make_unique<holdfast::semaphore>(s, scene::name_of(i), n.capacity, o);
      break;
    case lock_kind::counting:
      all.counting =
          std::make_unique<holdfast::counting_semaphore>(s, scene::name_of(i), n.capacity, o);
      break;
    default:
      break;
  }
  return all;
}

}  // namespace

void scene::live(process& p, const process_plan& does) {
  if (!does.renew || does.max_hold != never) loses = true;
  holdfast::session_options o;
  o.lease = in_ms(does.lease);
  o.observer = std::make_shared<listener>(*this, p);
  std::vector<holdfast::session> sessions;
  for (const auto& s : stores) sessions.emplace_back(s->connect(p), o);
  belongings all;
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    all.of_locks.push_back(make_locks(*this, sessions[whole.names[i].store], i, does));
    all.of_meetings.push_back(make_meeting(*this, sessions, i, all));
  }
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < does.threads.size(); ++t) {
    threads.emplace_back([this, &p, &all, &does, t] {
      world::self()->name = "t" + std::to_string(t + 1);
      for (const auto& one : does.threads[t].steps) {
        here.sleep(one.think);
        const actor who{*this, p, does, one, name_of(one.name), here.now()};
        if (whole.names[one.name].kind < lock_kind::latch) {
          act_on_locks(who, all.of_locks);
        } else {
          act_at_meeting(who, all);
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  for (std::size_t i = 0; i < all.of_meetings.size(); ++i) {
    // What they arrived for does not end without them.
    if (!all.of_meetings[i].arrivals.empty()) notes.barriers.at(i).takes_out();
  }
  all = {};
  log.add("closes its session");
}

}  // namespace simulation
