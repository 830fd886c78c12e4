#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "harness/redis_server.hpp"
#include "tool/fixture.hpp"
#include "tool/loss_story.hpp"

// Exit code 79 comes with a reason: on stderr, and in the status file.
namespace tool_test {

namespace {

class loss_reason : public holdfast_tool {
 protected:
  /// Held for three seconds at a time by a command that has begun.
  program start(words more = {}) const {
    words all{"run", "l", "--ttl", "3s", "--kill-after", "50ms", "--status-file", status()};
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {"--", "cat"});
    return {command(all), around};
  }
  static void begin(program& p) {
    p.tell("up\n");
    EXPECT_EQ(p.out.line(), "up");
  }
  void expect_reason(program& p, const std::string& part) const {
    EXPECT_EQ(p.wait(), 79);
    const std::string err = p.err.rest();
    EXPECT_NE(err.find("the lock was lost while the command ran: "), err.npos) << err;
    EXPECT_NE(err.find(part), err.npos) << err;
    EXPECT_NE(err.find("; exit code 79: the command may be half done"), err.npos)
        << "and what to do: " << err;
    std::ifstream file(status());
    const std::string message = nlohmann::json::parse(file)["message"];
    EXPECT_NE(message.find(part), message.npos) << message;
  }
  std::string status() const { return folder.file("status"); }
};

}  // namespace

TEST_F(loss_reason, is_the_force_release) {
  program p = start();
  begin(p);
  EXPECT_EQ(tool({"force-unlock", "l", "--yes"}).code, 0);
  expect_reason(p, "it was taken away (force-unlock), or the store lost its data");
}

TEST_F(loss_reason, is_that_the_store_lost_its_data) {
  const harness::redis_server server;
  program p = start({"--store", server.url()});
  begin(p);
  EXPECT_EQ(server.ask({"FLUSHALL"}), "OK");
  expect_reason(p, "it was taken away (force-unlock), or the store lost its data");
}

TEST_F(loss_reason, is_that_the_store_did_not_answer) {
  program p = start();
  begin(p);
  const write_blocker away(folder.file("locks.db"), around);
  expect_reason(p, "no renewal succeeded since ");
}

TEST_F(loss_reason, is_the_last_answer_of_the_store) {
  harness::redis_server server;
  program p = start({"--store", server.url()});
  begin(p);
  server.kill();
  expect_reason(p, "the last one failed: ");
}

TEST_F(loss_reason, is_a_pause) {
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  words all{"run", "l", "--ttl", "3s", "--status-file", status(), "--"};
  const auto child = role("keep_open", {fifo});
  all.insert(all.end(), child.begin(), child.end());
  program p(command(all), around);
  reader from_child(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(from_child.line(), "up");
  p.stop();
  EXPECT_EQ(from_child.rest(), "");  // the dead man killed it
  p.signal(SIGCONT);
  expect_reason(p, "this process was paused for ");
}

namespace {

using namespace std::chrono_literals;
using holdfast::event_kind;

std::string story_of(std::vector<holdfast::event> events, std::chrono::nanoseconds paused = {}) {
  holdfast::tool::loss_story story;
  for (const auto& e : events) story.on_event(e);
  return story.why(paused);
}

holdfast::event happened(event_kind kind, std::string_view detail = {}) {
  holdfast::event e;
  e.kind = kind;
  e.detail = detail;
  return e;
}

bool in_story(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST(loss_story, does_not_include_a_failure_before_a_successful_renewal) {
  const auto failed = happened(event_kind::renew_failed, "refused");
  EXPECT_TRUE(in_story(story_of({failed, happened(event_kind::lost, "gone")}), "refused"));
  EXPECT_EQ(story_of({failed, happened(event_kind::renewed), happened(event_kind::lost, "gone")}),
            "gone");
  const auto of_a_silent_store =
      story_of({failed, happened(event_kind::renewed), happened(event_kind::suspect),
                happened(event_kind::lost, "gone")});
  EXPECT_TRUE(in_story(of_a_silent_store, "none was answered")) << of_a_silent_store;
}

// With etcd and ZooKeeper a refusal is no reason to end a lease at once.
TEST(loss_story, does_not_say_that_a_store_did_not_answer_that_refused) {
  const auto refused =
      story_of({happened(event_kind::renew_failed, "refused"), happened(event_kind::suspect)});
  EXPECT_TRUE(in_story(refused, "the last one failed: refused")) << refused;
  EXPECT_FALSE(in_story(refused, "did not answer")) << refused;
}

TEST(loss_story, control_characters_of_other_programs_are_escaped) {
  EXPECT_FALSE(in_story(story_of({happened(event_kind::renew_failed, "a\x1b[2J")}), "\x1b"));
}

TEST(loss_story, a_pause_does_not_hide_the_answer_of_the_store) {
  const auto failed = happened(event_kind::renew_failed, "refused");
  const auto both = story_of({failed, happened(event_kind::lost, "gone")}, 600ms);
  EXPECT_TRUE(in_story(both, "the last one failed: refused")) << both;
  EXPECT_TRUE(in_story(both, "this process was paused for 600ms")) << both;
}

TEST(loss_story, a_pause_is_reported_with_its_length_and_the_library_message) {
  EXPECT_EQ(story_of({happened(event_kind::lost, "the lease ended")}, 7s),
            "the lease ended: this process was paused for 7s");
  EXPECT_TRUE(in_story(story_of({}, 7s), "paused for 7s"));
}

}  // namespace tool_test
