#include <atomic>

#include "harness/failing.hpp"
#include "harness/least_rights.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"
#include "harness/unreadable_records.hpp"
#include "store/zookeeper/fixture.hpp"
#include "store/zookeeper/options.hpp"
#include "store/zookeeper/zookeeper_store.hpp"

namespace zookeeper_test {
namespace {

using holdfast::errc;

std::string hosts() { return calm_ensemble().hosts(); }

errc reason_of(const std::string& url) {
  const auto e = thrown_by(
      [&] { (void)holdfast::open(url, {.store_timeout = std::chrono::milliseconds(0)}); });
  EXPECT_EQ(e.operation(), "open") << e.what();
  EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  return e.reason();
}

TEST(zookeeper_bad_input, addresses_and_options_that_can_not_be_are_refused) {
  for (const char* url : {"zookeeper:",
                          "zookeeper://",
                          "zookeeper://,h2",
                          "zookeeper://h:0",
                          "zookeeper://h:port",
                          "zookeeper://h:65536",
                          "zookeeper://::1",
                          "zookeeper://h/a//b",
                          "zookeeper://h/a/../b",
                          "zookeeper://h/zookeeper",
                          "zookeeper://h/zookeeper/config",
                          "zookeeper://user@h/a",
                          "zookeeper://:secret@h/a",
                          "zookeeper://h/a?session=99ms",
                          "zookeeper://h/a?session=25h",
                          "zookeeper://h/a?session=soon",
                          "zookeeper://h/a?acl=mine",
                          "zookeeper://h/a?acl=creator",
                          "zookeeper://h/a?sesion=20s",
                          "zookeeper://h/a?command_timeout=0ms",
                          "zookeeper://h/a?command_timeout=10000000000h",
                          "zookeeper://h/a?connect_timeout=25h",
                          "zookeeper://user@h/a?password_env=NO_SUCH_VARIABLE_IS_SET",
                          "zookeeper://user@h/a?password_file=/no/such/file"}) {
    EXPECT_EQ(reason_of(url), errc::invalid_argument) << url;
  }
}

TEST(zookeeper_bad_input, servers_that_do_not_answer_are_unavailable) {
  const auto nobody = "127.0.0.1:" + std::to_string(harness::free_port());
  EXPECT_EQ(reason_of("zookeeper://" + nobody + "/a?connect_timeout=300ms"), errc::unavailable);
  harness::fake_server silent([](std::string& heard) {
    heard.clear();
    return std::optional<std::string>("");
  });
  const auto mute = "127.0.0.1:" + std::to_string(silent.port());
  EXPECT_EQ(reason_of("zookeeper://" + mute + "/a?connect_timeout=300ms"), errc::unavailable);
  harness::fake_server other([](std::string& heard) {
    heard.clear();
    return std::optional<std::string>("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const auto http = "127.0.0.1:" + std::to_string(other.port());
  EXPECT_EQ(reason_of("zookeeper://" + http + "/a?connect_timeout=300ms"), errc::unavailable);
  EXPECT_EQ(reason_of("zookeeper://no-such-host.invalid/a?connect_timeout=300ms"),
            errc::unavailable);
}

/// Counts what arrives while a session is opened with what answers like that: each attempt sends
/// one to three pieces.
int attempts_at(const std::string& answer) {
  std::atomic<int> asked{0};
  const harness::fake_server other([&](std::string& heard) {
    heard.clear();
    ++asked;
    return std::optional<std::string>(answer);
  });
  const auto refused = harness::outcome_of_opening(
      "zookeeper://127.0.0.1:" + std::to_string(other.port()) + "/a?connect_timeout=30s");
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(harness::contains(refused.text, "no ZooKeeper")) << refused.text;
  EXPECT_TRUE(harness::contains(refused.text, "at 127.0.0.1:" + std::to_string(other.port()) + " "))
      << refused.text;
  return asked;
}

// The client itself would try again at once for as long as the session exists, thousands of times.
TEST(zookeeper_bad_input, a_server_of_another_kind_is_not_asked_again_and_again) {
  constexpr int few = 50;
  const std::string version(4, '\0'), id(8, 'i'),
      password = std::string("\0\0\0\x10", 4) + std::string(16, 'p');
  for (const auto& time :
       {std::string("\xff\xff\xff\xff"), std::string(4, '\0'), std::string("\0\0\0\x1", 4)}) {
    const std::string session =
        std::string("\0\0\0\x25", 4) + version + time + id + password + '\0';
    EXPECT_LE(attempts_at(session + "garbage that is no answer to anything"), few)
        << "a time-out of no time";
  }
  EXPECT_LE(attempts_at("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: "
                        "close\r\n\r\n400 Bad Request"),
            few);
  EXPECT_LE(attempts_at(std::string(200, '\0')), few);
  EXPECT_LE(attempts_at(std::string(200, '\xff')), few);
  EXPECT_LE(
      attempts_at(
          "-ERR unknown command, with args beginning with: and this and that and so on and on\r\n"),
      few);
}

// Waiters and the keeper go on asking.
TEST(zookeeper_bad_input, calls_at_a_server_of_another_kind_make_a_session_only_after_a_pause) {
  std::atomic<int> asked{0};
  const harness::fake_server other([&](std::string& heard) {
    heard.clear();
    ++asked;
    return std::optional(std::string(200, '\0'));
  });
  const auto url =
      "zookeeper://127.0.0.1:" + std::to_string(other.port()) + "/a?connect_timeout=30s";
  holdfast::store::zookeeper::zookeeper_store store(
      *holdfast::store::zookeeper::read_options(*holdfast::base::parse_url(url)));
  ASSERT_FALSE(store.open());
  for (int call = 0; call < 100; ++call) ASSERT_FALSE(store.names());
  EXPECT_LT(asked, 50);
}

TEST(zookeeper_bad_input, a_base_path_that_is_not_there_is_made) {
  const std::string base = fresh_base() + "/deep/er";
  (void)holdfast::mutex(holdfast::open("zookeeper://" + hosts() + base), "n").acquire();
  EXPECT_TRUE(tree(hosts()).has(base));
}

TEST(zookeeper_bad_input, a_base_path_that_can_not_be_made_is_not_permitted) {
  const std::string base = fresh_base();
  const tree owner(hosts(), "owner:secret");
  owner.make(base, true);
  const auto e =
      thrown_by([&] { (void)holdfast::open("zookeeper://" + hosts() + base + "/locks"); });
  EXPECT_EQ(e.reason(), errc::not_permitted);
  EXPECT_NE(std::string(e.what()).find(base), std::string::npos) << e.what();
}

TEST(zookeeper_bad_input, a_refusal_by_the_acl_is_not_permitted_and_leaves_no_node) {
  const std::string base = fresh_base();
  const tree owner(hosts(), "owner:secret");
  owner.make(base, true);
  for (const std::string login : {"", "other:secret@", "owner:wrong@"}) {
    auto e = thrown_by([&] {
      auto session = holdfast::open("zookeeper://" + login + hosts() + base);
      (void)holdfast::mutex(session, "n").acquire();
    });
    EXPECT_EQ(e.reason(), errc::not_permitted) << e.what();
    EXPECT_FALSE(e.outcome_unknown());
  }
  EXPECT_TRUE(owner.children(base).empty());
}

TEST(zookeeper_bad_input, each_documented_right_is_needed_and_its_lack_is_reported) {
  const auto use_everything = [](const std::string& url) {
    auto session = holdfast::open(url);
    const auto held = holdfast::mutex(session, "n").acquire();
    holdfast::latch l{session, "l", 1};
    l.count_down();
    l.remove();
    (void)session.names();
    (void)session.show("n");
  };
  const auto url = "zookeeper://" + hosts();
  const auto all = harness::code_on_page("zookeeper", "On the base path: `");
  EXPECT_NO_THROW(use_everything(harness::zookeeper_base(url, fresh_base().substr(1), all)));
  for (const char missing : all) {
    auto others = all;
    std::erase(others, missing);
    const auto base = harness::zookeeper_base(url, fresh_base().substr(1), others);
    if (missing == 'd') {  // only the nodes of unused names stay
      EXPECT_NO_THROW(use_everything(base));
      continue;
    }
    const auto e = thrown_by([&] { use_everything(base); });
    EXPECT_EQ(e.reason(), errc::not_permitted) << "without " << missing << ": " << e.what();
  }
}

TEST(zookeeper_bad_input, with_its_password_the_nodes_of_a_user_are_its_own) {
  const std::string base = fresh_base();
  auto session = holdfast::open("zookeeper://owner:secret@" + hosts() + base);
  EXPECT_EQ(session.url().find("secret"), std::string::npos) << session.url();
  const auto held = holdfast::mutex(session, "n").acquire();
  const tree stranger(hosts());
  EXPECT_ANY_THROW((void)stranger.children(base + "/n"));
  const tree same(hosts(), "owner:secret");
  EXPECT_EQ(same.children(base + "/n").size(), 1U);
}

TEST(zookeeper_bad_input, names_with_the_form_of_paths_are_names) {
  auto session = holdfast::open("zookeeper://" + hosts() + fresh_base());
  const std::vector<std::string> names{".",         "..",           "a/b", "/",
                                       "zookeeper", "../zookeeper", "%2F", "\xf0\x9f\x94\x92"};
  std::vector<holdfast::lease> held;
  for (const auto& name : names) held.push_back(holdfast::mutex(session, name).acquire());
  auto used = session.names();
  auto expected = names;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(used, expected);
  const auto e = thrown_by([&] { holdfast::mutex(session, std::string("a\0b", 3)); });
  EXPECT_EQ(e.reason(), errc::invalid_name);
}

TEST(zookeeper_bad_input, names_work_at_the_root_too) {
  auto session = holdfast::open("zookeeper://" + hosts());
  const auto held = holdfast::mutex(session, "zookeeper").acquire();
  EXPECT_EQ(session.show("zookeeper").holders.size(), 1U);
}

TEST(zookeeper_bad_input, nodes_of_other_programs_do_no_harm) {
  const std::string base = fresh_base();
  auto session = holdfast::open("zookeeper://" + hosts() + base);
  const tree other(hosts());
  other.make(base + "/n");
  other.make(base + "/n/notes");
  other.make(base + "/n/lock-0000000001");
  EXPECT_TRUE(session.names().empty());
  EXPECT_TRUE(holdfast::mutex(session, "n").try_acquire());
}

TEST(zookeeper_bad_input, a_record_of_another_program_is_reported_and_not_changed) {
  const std::string base = fresh_base();
  auto session = holdfast::open("zookeeper://" + hosts() + base);
  const tree other(hosts());
  other.make(base + "/n");
  other.make(base + "/n/record");
  EXPECT_EQ(thrown_by([&] { holdfast::latch(session, "n", 2).count_down(); }).reason(),
            errc::foreign_data);
  EXPECT_EQ(other.data(base + "/n/record"), "");
}

TEST(zookeeper_bad_input, one_record_that_cannot_be_read_hides_no_other_name) {
  const std::string base = fresh_base();
  auto session = holdfast::open("zookeeper://" + hosts() + base);
  const tree other(hosts());
  harness::expect_unreadable_records_hide_no_name(
      session, [&](const std::string& name, const std::string& record) {
        const std::string node = base + "/" + name;
        other.make(node);
        other.make(node + "/record");
        EXPECT_TRUE(other.write_if(node, node + "/record", record));
      });
}

}  // namespace
}  // namespace zookeeper_test
