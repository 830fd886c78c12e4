#include "store/sqlite/writer_queue.hpp"

#include <filesystem>
#include <thread>

#include "fixture.hpp"
#include "harness/process.hpp"

namespace sqlite_test {
namespace {

using holdfast::store::sqlite::sidecar;
using holdfast::store::sqlite::writer_queue;
using namespace std::chrono_literals;

writer_queue open_door(const std::string& file) {
  auto beside = sidecar::open(file);
  if (!beside) throw std::runtime_error(beside.error().what);
  auto door = writer_queue::open(*beside, "draft");
  if (!door) throw std::runtime_error(door.error().what);
  return std::move(*door);
}

class writer_queues : public sqlite_store {
 protected:
  writer_queues() { write_bytes(path(), ""); }
};

TEST_F(writer_queues, one_is_inside_at_a_time) {
  writer_queue one = open_door(path());
  writer_queue other = open_door(path());
  {
    const auto inside = one.enter(1h);
    EXPECT_TRUE(inside.entered());
    EXPECT_FALSE(other.enter(0ns).entered());
    EXPECT_FALSE(other.enter(1ms).entered());
  }
  EXPECT_TRUE(other.enter(0ns).entered());
}

TEST_F(writer_queues, a_waiter_enters_when_the_other_process_leaves) {
  writer_queue one = open_door(path());
  writer_queue other = open_door(path());
  std::jthread waiting;
  const auto inside = one.enter(1h);  // leaves before `waiting` is joined
  EXPECT_TRUE(inside.entered());
  waiting = std::jthread{[&] { EXPECT_TRUE(other.enter(1h).entered()); }};
}

const harness::role intruder{"intruder", [](const auto& args) {
                               writer_queue door = open_door(args.at(0));
                               const auto inside = door.enter(1h);
                               harness::say(inside.entered() ? "inside" : "outside");
                               harness::hear();
                               return 0;
                             }};

TEST_F(writer_queues, a_process_that_dies_inside_has_left) {
  harness::child other{"intruder", {path()}};
  EXPECT_EQ(other.expect_line(), "inside");
  writer_queue door = open_door(path());
  EXPECT_FALSE(door.enter(0ns).entered());
  other.kill();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(door.enter(1h).entered());
}

TEST_F(writer_queues, a_process_stopped_inside_costs_the_others_time_and_nothing_else) {
  const session store = open(path());
  sqlite_options impatient;
  impatient.path = path();
  impatient.busy_timeout = 20ms;
  const session other = open(impatient);
  harness::child inside{"intruder", {path()}};
  EXPECT_EQ(inside.expect_line(), "inside");
  inside.stop();
  rule change = increments();
  EXPECT_TRUE(other->transact("name", change).ok());
  EXPECT_EQ(number_of(*other, "name"), 1);
}

TEST_F(writer_queues, a_damaged_file_is_refused_and_made_again_once_it_is_removed) {
  (void)open(path());
  const std::string folder = path() + "-holdfast";
  const std::string file = std::filesystem::directory_iterator { folder } -> path().string();
  for (const std::string& junk : {std::string{}, std::string(100, 'x'), std::string(4096, 'x')}) {
    write_bytes(file, junk);
    const failure f = refusal(path());
    EXPECT_EQ(f.code, errc::corrupt);
    EXPECT_NE(f.what.find(file), std::string::npos) << f.what;
  }
  std::filesystem::remove(file);
  (void)open(path());
}

}  // namespace
}  // namespace sqlite_test
