#include <gtest/gtest.h>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/seed.hpp"

// The file of the store under load, with processes killed in the middle of any operation on it.
namespace {

using namespace fault_test;
using harness::child;
using harness::resource;

constexpr int names = 20;

// Arguments: URL PAGE SEED. Locks and unlocks names of all kinds until it is killed; each round is
// a tick.
const harness::role busy{"busy", [](const std::vector<std::string>& args) {
                           auto session = holdfast::open(args[0]);
                           resource at(args[1]);
                           harness::random random(std::stoull(args[2]), 0);
                           for (;;) {
                             const std::string name = std::to_string(random.between(0, names - 1));
                             switch (std::stoi(name) % 3) {
                               case 0:
                                 (void)holdfast::mutex(session, name, {.lease = a_month}).acquire();
                                 break;
                               case 1: {
                                 holdfast::shared_mutex m{session, name, {{.lease = a_month}, {}}};
                                 const auto held =
                                     random.one_in(3) ? m.acquire() : m.acquire_shared();
                                 break;
                               }
                               default: {
                                 holdfast::semaphore s{session, name, 3, {.lease = a_month}};
                                 const auto held = s.acquire(random.between(1U, 3U));
                               }
                             }
                             at.tick();
                           }
                           return 0;
                         }};

TEST(load, a_store_whose_users_are_killed_stays_sound_and_frees_their_locks) {
  ground g;
  resource at(g.page);
  harness::random random;
  std::uint64_t lives = 0;
  const auto start = [&] {
    return child("busy", {g.url, g.page, std::to_string(harness::seed() + ++lives)});
  };
  std::vector<child> crew;
  for (int i = 0; i < 6; ++i) crew.push_back(start());
  for (int kills = 0; kills < 60; ++kills) {
    const auto until = at.now() + random.between<std::uint64_t>(5, 300);
    harness::eventually("progress", [&] { return at.now() >= until; });
    auto& victim = random.pick(crew);
    victim.kill();
    victim = start();
  }
  for (auto& c : crew) c.kill();
  auto session = holdfast::open(g.url);
  for (int i = 0; i < names; ++i) {
    const std::string name = std::to_string(i);
    // Whatever the kind: the whole name can be acquired, so nobody holds anything.
    const auto all = i % 3 == 0   ? holdfast::mutex(session, name).try_acquire()
                     : i % 3 == 1 ? holdfast::shared_mutex(session, name).try_acquire()
                                  : holdfast::semaphore(session, name, 3).try_acquire(3);
    EXPECT_TRUE(all) << name;
  }
  EXPECT_TRUE(session.names().empty());
}

}  // namespace
