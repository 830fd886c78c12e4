#include <gtest/gtest.h>

#include <poll.h>

#include <stop_token>
#include <thread>

#include "exhaustion/forms.hpp"
#include "harness/failing.hpp"
#include "harness/failing_threads.hpp"

// The n-th thread that a session wants to start cannot be started, for n = 0, 1, 2, … until a form
// needs no more; or none from it on. Each time the call continues without it or reports the lack,
// nothing stays acquired, and the session works as soon as threads can be started again.
namespace exhaustion {
namespace {

using harness::no_thread_after;
using how = no_thread_after::how;

/// Forms that start a thread of their own, in the form's world.
const std::vector<form>& forms_with_more_threads() {
  static const auto* const all = new std::vector<form>{
      {"lock_lingering",
       [](world& w) {
         holdfast::lock_options o;
         o.linger = 1h;
         holdfast::mutex lingers{w.session, "plain", o};
         lingers.lock();
         lingers.unlock();
         EXPECT_TRUE(lingers.try_lock());
         lingers.unlock();
       }},
      {"watch_for_rings",
       [](world&) {
         holdfast::session_options o;
         o.detect_deadlocks = true;
         const auto watched = holdfast::open("memory:", o);
         holdfast::mutex a{watched, "a"}, b{watched, "b"};
         const std::lock_guard first{a};
         const std::lock_guard second{b};
       }},
      // The last reference to a session is released on one of its own threads, which cannot wait
      // for itself.
      {"end_on_its_own_thread",
       [](world&) {
         auto ended = std::make_shared<std::promise<void>>();
         auto told = ended->get_future();
         {
           auto brief = std::make_shared<holdfast::session>(holdfast::open("memory:"));
           auto lock = std::make_shared<holdfast::mutex>(*brief, "brief");
           auto taken = async_acquire(*lock);
           std::move(taken).start([brief, lock, ended](auto&&) mutable {
             lock.reset();
             brief.reset();
             ended->set_value();
           });
         }
         told.get();
       }},
  };
  return *all;
}

using trial = std::tuple<form, how>;

struct each_form_with_few_threads : testing::TestWithParam<trial> {};

std::string name_of(const testing::TestParamInfo<trial>& info) {
  const auto& [f, often] = info.param;
  return std::string(f.name) + (often == how::once ? "_without_one" : "_without_more");
}

/// Some forms end with another error anyway, and a node of a majority may answer too late: the
/// clock advances whether or not its thread has run.
void expect_it_says_so(const holdfast::error& e) {
  if (e.reason() == holdfast::errc::timed_out || e.reason() == holdfast::errc::cancelled) return;
  if (harness::contains(e.what(), "(silent)")) return;
  EXPECT_EQ(e.reason(), holdfast::errc::unavailable) << e.what();
  EXPECT_TRUE(harness::contains(e.what(), "limit of threads")) << e.what();
}

TEST_P(each_form_with_few_threads, succeeds_or_reports_the_missing_thread) {
  const auto& [f, often] = GetParam();
  for (int n = 0; !HasFailure(); ++n) {
    SCOPED_TRACE(std::to_string(n) + " threads");
    world w{"memory:"};
    {
      const std::jthread time([&w](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ::poll(nullptr, 0, 1)) w.go_on();
      });
      const no_thread_after now(n, often);
      try {
        f.run(w);
      } catch (const holdfast::error& e) {
        expect_it_says_so(e);
      }
    }
    w.expect_all_free();
    if (!no_thread_after::failed()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(with_a_thread, each_form_with_few_threads,
                         testing::Combine(testing::ValuesIn(blocking_forms()),
                                          testing::Values(how::once, how::for_good)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(without_a_thread, each_form_with_few_threads,
                         testing::Combine(testing::ValuesIn(forms_without_thread()),
                                          testing::Values(how::once, how::for_good)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(more, each_form_with_few_threads,
                         testing::Combine(testing::ValuesIn(forms_with_more_threads()),
                                          testing::Values(how::once, how::for_good)),
                         name_of);

}  // namespace
}  // namespace exhaustion
