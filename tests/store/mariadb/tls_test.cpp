#include <cstdlib>
#include <fstream>

#include "fixture.hpp"
#include "harness/authority.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/temp_dir.hpp"
#include "store/mariadb/errors.hpp"
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

TEST_F(mariadb_tls, a_server_without_tls_is_refused_if_tls_is_required) {
  const harness::mariadb_server plain{{"--skip-ssl"}};
  for (const std::string which : {"require", "verify"}) {
    const auto refused = harness::outcome_of_opening(plain.url() + "locks?tls=" + which);
    EXPECT_EQ(refused.reason, holdfast::errc::not_permitted) << which << ": " << refused.text;
    EXPECT_TRUE(contains(refused.text, "TLS")) << refused.text;
  }
}

// OpenSSL would ask for it at the terminal, and wait there without a limit.
TEST_F(mariadb_tls, a_key_with_a_passphrase_is_refused_without_a_question) {
  const auto key = signed_.file("client.key"), locked = signed_.file("locked.key");
  ASSERT_EQ(std::system(("openssl ec -aes128 -passout pass:secret -in " + key + " -out " + locked +
                         " 2> " + signed_.file("log"))
                            .c_str()),
            0);
  testing::internal::CaptureStderr();
  const auto o = harness::outcome_of_opening(server_.url() + "locks?tls=require&ssl_cert=" +
                                             signed_.file("client.pem") + "&ssl_key=" + locked);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(o.reason, holdfast::errc::not_permitted) << o.text;
}

// The client library reads it after all calls that set options.
TEST_F(mariadb_tls, an_option_file_does_not_weaken_what_the_url_demands) {
  const harness::mariadb_server elsewhere{{"--ssl-ca=" + given("ca.pem"),
                                           "--ssl-cert=" + given("elsewhere.pem"),
                                           "--ssl-key=" + given("elsewhere.key")}};
  const harness::temp_dir dir;
  const auto with = [&](const std::string& line) {
    std::ofstream(dir.file("my.cnf")) << "[client]\n" << line << '\n';
    return "&defaults_file=" + dir.file("my.cnf");
  };
  const auto ca = signed_.file("ca.pem"), stranger = signed_.file("stranger.pem");
  const auto other_host = harness::outcome_of_opening(elsewhere.url() + trusting(ca) +
                                                      with("ssl-verify-server-cert=0"));
  EXPECT_EQ(other_host.reason, holdfast::errc::invalid_argument) << other_host.text;
  const auto other_authority =
      harness::outcome_of_opening(server_.url() + trusting(stranger) + with("ssl-ca=" + ca));
  EXPECT_EQ(other_authority.reason, holdfast::errc::invalid_argument) << other_authority.text;
  EXPECT_TRUE(contains(other_authority.text, "ssl-ca")) << other_authority.text;
}

// A server that is restarted, or a bad network: a call that waits must not take it for a refusal.
TEST_F(mariadb_tls, a_connection_that_breaks_during_the_handshake_is_unavailable) {
  harness::fault_proxy proxy{server_.port()};
  proxy.with([](harness::relay& r) { r.cut_after(harness::way::down, 200); });
  const auto cut = harness::outcome_of_opening(harness::mariadb_server::url_of(proxy.port()) +
                                               "locks?tls=require");
  EXPECT_EQ(cut.reason, holdfast::errc::unavailable) << cut.text;
  EXPECT_EQ(server_says(2026, "TLS/SSL error: Connection timed out (110)").code,
            holdfast::errc::unavailable);
}

}  // namespace
}  // namespace mariadb_test
