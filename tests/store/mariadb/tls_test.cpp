#include "fixture.hpp"
#include "harness/authority.hpp"
#include "harness/fault_proxy.hpp"
#include "store/mariadb/link.hpp"

namespace mariadb_test {
namespace {

class mariadb_tls : public testing::Test {
 protected:
  static std::string trusting(const std::string& file) { return "locks?tls=verify&ssl_ca=" + file; }
  /// The server's user must own the files that the server reads.
  std::string given(const std::string& name) const {
    harness::give_to(signed_.file(name), "mysql");
    return signed_.file(name);
  }
  std::string folder_given() const {
    harness::give_to(signed_.folder().path().string(), "mysql");
    return given("ca.pem");
  }

  const harness::authority signed_;
  /// A server that refuses connections without TLS.
  const harness::mariadb_server server_{
      {"--ssl-ca=" + folder_given(), "--ssl-cert=" + given("good.pem"),
       "--ssl-key=" + given("good.key"), "--require-secure-transport=ON"}};
};

TEST_F(mariadb_tls, all_connections_of_a_session_are_encrypted_in_both_modes) {
  for (const std::string mode : {"lease", "session"}) {
    auto a = holdfast::open(server_.url() + trusting(signed_.file("ca.pem")) + "&mode=" + mode);
    holdfast::mutex m{a, "m"};
    EXPECT_TRUE(m.try_lock());
  }
}

// The client library reads from such a connection in another way.
TEST_F(mariadb_tls, an_answer_is_awaited_until_the_deadline_of_its_request) {
  namespace my = holdfast::store::mariadb;
  using namespace std::chrono_literals;
  const auto in = [](auto time) { return holdfast::boot_clock::now() + time; };
  harness::fault_proxy proxy{server_.port()};
  const auto o = *my::read_options(*holdfast::base::parse_url(
      harness::mariadb_server::url_of(proxy.port()) + "locks?tls=require&command_timeout=3600s"));
  const my::tables names{"locks"};
  const auto over = std::move(*my::link::open(o, names));
  EXPECT_TRUE(over->ask("select repeat('x', 1000000); select 1", in(1h)));
  proxy.with([](harness::relay& r) { r.stall(harness::way::down); });
  const auto late = over->ask("select 1", in(100ms));
  ASSERT_FALSE(late);
  EXPECT_TRUE(contains(late.error().what, "did not answer")) << late.error().what;
  EXPECT_FALSE(over->usable());
}

TEST_F(mariadb_tls, a_server_that_is_not_trusted_is_refused) {
  const auto refused =
      harness::outcome_of_opening(server_.url() + trusting(signed_.file("stranger.pem")));
  EXPECT_TRUE(refused.failed);
  EXPECT_TRUE(contains(refused.text, "ertificate")) << refused.text;
}

}  // namespace
}  // namespace mariadb_test
