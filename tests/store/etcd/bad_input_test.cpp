#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"
#include "harness/unreadable_records.hpp"
#include "store/etcd/fixture.hpp"

namespace etcd_test {
namespace {

using holdfast::errc;

errc reason_of(const std::string& url) {
  const auto e = thrown_by(
      [&] { (void)holdfast::open(url, {.store_timeout = std::chrono::milliseconds(0)}); });
  EXPECT_EQ(e.operation(), "open") << e.what();
  EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  return e.reason();
}

TEST(etcd_bad_input, servers_that_do_not_answer_are_unavailable) {
  const auto nobody = "127.0.0.1:" + std::to_string(harness::free_port());
  EXPECT_EQ(reason_of("etcd://" + nobody + "/a?connect_timeout=300ms"), errc::unavailable);
  harness::fake_server silent([](std::string& heard) {
    heard.clear();
    return std::optional<std::string>("");
  });
  const auto mute = "127.0.0.1:" + std::to_string(silent.port());
  EXPECT_EQ(reason_of("etcd://" + mute + "/a?connect_timeout=300ms"), errc::unavailable);
  harness::fake_server other([](std::string& heard) {
    heard.clear();
    return std::optional<std::string>("HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  const auto http = "127.0.0.1:" + std::to_string(other.port());
  EXPECT_EQ(reason_of("etcd://" + http + "/a?connect_timeout=300ms"), errc::unavailable);
  EXPECT_EQ(reason_of("etcd://no-such-host.invalid/a?connect_timeout=300ms"), errc::unavailable);
}

TEST(etcd_bad_input, one_of_three_that_answers_is_enough_to_find_them) {
  const auto nobody = "127.0.0.1:" + std::to_string(harness::free_port());
  const auto there = "127.0.0.1:" + std::to_string(calm_cluster().port(2));
  auto session = holdfast::open("etcd://" + nobody + "," + there + fresh_base());
  EXPECT_TRUE(holdfast::mutex(session, "n").try_acquire());
}

TEST(etcd_bad_input, a_password_for_servers_without_users_is_refused) {
  EXPECT_EQ(reason_of("etcd://owner:secret@" + calm_cluster().hosts() + "/a"),
            errc::invalid_argument);
}

TEST(etcd_bad_input, names_with_the_form_of_paths_are_names) {
  const auto base = fresh_base();
  auto session = holdfast::open(calm_cluster().url(base));
  const std::vector<std::string> names{".",   "..",      "/",      "a/b",
                                       "%2F", "../etcd", "record", "\xf0\x9f\x94\x92"};
  std::vector<holdfast::lease> held;
  for (const auto& name : names) held.push_back(holdfast::mutex(session, name).acquire());
  auto used = session.names();
  auto expected = names;
  std::sort(expected.begin(), expected.end());
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, expected);
  const auto e = thrown_by([&] { holdfast::mutex(session, std::string("a\0b", 3)); });
  EXPECT_EQ(e.reason(), errc::invalid_name);
}

TEST(etcd_bad_input, keys_of_other_programs_do_no_harm) {
  const auto base = fresh_base();
  auto session = holdfast::open(calm_cluster().url(base));
  (void)calm_cluster().ctl("put " + base + "/n/notes x");
  (void)calm_cluster().ctl("put " + base + "/n/4711 x");  // in the form of a lease, but without one
  (void)calm_cluster().ctl("put " + base + "/other/deep/key x");
  EXPECT_TRUE(session.names().empty());
  EXPECT_TRUE(holdfast::mutex(session, "n").try_acquire());
}

TEST(etcd_bad_input, a_record_of_another_program_is_reported_and_not_changed) {
  const auto base = fresh_base();
  auto session = holdfast::open(calm_cluster().url(base));
  (void)calm_cluster().ctl("put " + base + "/n/record something");
  EXPECT_EQ(thrown_by([&] { holdfast::latch(session, "n", 2).count_down(); }).reason(),
            errc::foreign_data);
  EXPECT_EQ(calm_cluster().ctl("get --print-value-only " + base + "/n/record"), "something\n");
}

TEST(etcd_bad_input, one_record_that_cannot_be_read_hides_no_other_name) {
  const auto base = fresh_base();
  auto session = holdfast::open(calm_cluster().url(base));
  harness::expect_unreadable_records_hide_no_name(
      session, [&](const std::string& name, const std::string& record) {
        (void)calm_cluster().ctl("put " + base + "/" + name + "/record '" + record + "'");
      });
}

}  // namespace
}  // namespace etcd_test
