#include <unistd.h>

#include <optional>
#include <thread>

#include "conformance/cell.hpp"
#include "harness/process.hpp"

// Static objects of a program: they end after main(), and after anything the library made later.
namespace conformance {
namespace {

using namespace std::chrono_literals;

std::optional<holdfast::session> global_session;
std::optional<holdfast::mutex> global_lock;
holdfast::lease global_lease;

/// Ends the process if the store did not get the release, or refused it as a senseless request.
class strict final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& what) override {
    if (what.kind == holdfast::event_kind::release_failed) ::_exit(70);
  }
};

// Arguments: URL NAME.
const harness::role static_holder{"static-holder", [](const std::vector<std::string>& args) {
                                    holdfast::session_options o;
                                    o.observer = std::make_shared<strict>();
                                    global_session = holdfast::open(args[0], o);
                                    global_lock.emplace(*global_session, args[1],
                                                        holdfast::lock_options{.lease = 1h});
                                    global_lease = global_lock->acquire();
                                    harness::say("in");
                                    (void)harness::hear();
                                    return 0;
                                  }};

class globals : public suite {};

INSTANTIATE_TEST_SUITE_P(stores, globals, testing::ValuesIn(cells({"mutex"})), cell_name);

TEST_P(globals, are_released_in_order_when_the_program_ends) {
  harness::child program("static-holder", {store_.url(), name_});
  ASSERT_EQ(program.expect_line(), "in");
  std::thread waiter;
  if (GetParam().store.several_processes) {
    waiter = std::thread([&] { EXPECT_FALSE(holdfast::mutex(here_, name_).acquire().release()); });
    until_waiting(1);
  }
  program.tell("end");
  EXPECT_EQ(program.wait(), 0);
  if (waiter.joinable()) waiter.join();
}

}  // namespace
}  // namespace conformance
