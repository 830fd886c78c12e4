#include <cstdlib>

#include "fixture.hpp"
#include "harness/authority.hpp"

namespace postgres_test {
namespace {

using holdfast::errc;

class postgres_tls : public testing::Test {
 protected:
  /// A server with this certificate. The server's user must own the key.
  harness::postgres_server server(const std::string& shows) {
    for (const auto& name : {"", "/good.key", "/elsewhere.key", "/good.pem", "/elsewhere.pem"}) {
      harness::give_to(signed_.folder().path().string() + name, harness::postgres_user());
    }
    return harness::postgres_server({"ssl = on", "ssl_cert_file = '" + file(shows + ".pem") + "'",
                                     "ssl_key_file = '" + file(shows + ".key") + "'"});
  }
  std::string file(const std::string& name) const { return signed_.file(name); }
  std::string trusting(const std::string& who) const {
    return "?sslmode=verify-full&sslrootcert=" + file(who + ".pem");
  }

 private:
  harness::authority signed_;
};

TEST_F(postgres_tls, all_connections_of_a_session_are_encrypted_in_both_modes) {
  const auto s = server("good");
  const client plain(s.url());
  for (const std::string mode : {"lease", "session"}) {
    auto a = holdfast::open(s.url(trusting("ca") + "&mode=" + mode));
    holdfast::mutex m{a, "m"};
    m.lock();
    EXPECT_EQ(plain.ask("select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) "
                        "where application_name = 'holdfast'"),
              "t");
  }
}

TEST_F(postgres_tls, a_server_that_is_not_trusted_or_another_s_is_refused) {
  const auto good = server("good"), other = server("elsewhere");
  for (const auto& url : {good.url(trusting("stranger")), other.url(trusting("ca"))}) {
    const auto refused = harness::outcome_of_opening(url);
    EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
    EXPECT_TRUE(contains(refused.text, "certificate")) << refused.text;
  }
}

// libpq would ask for it at the terminal, and wait there without a limit.
TEST_F(postgres_tls, a_key_with_a_passphrase_is_refused_without_a_question) {
  const auto good = server("good");
  ASSERT_EQ(std::system(("openssl ec -aes128 -passout pass:secret -in " + file("client.key") +
                         " -out " + file("locked.key") + " 2> " + file("log"))
                            .c_str()),
            0);
  testing::internal::CaptureStderr();
  const auto o = harness::outcome_of_opening(good.url(
      trusting("ca") + "&sslcert=" + file("client.pem") + "&sslkey=" + file("locked.key")));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(o.failed);
  EXPECT_TRUE(contains(o.text, "locked.key")) << o.text;
}

// The session logs in there as well.
TEST_F(postgres_tls, the_server_to_listen_at_is_checked_as_well) {
  const auto good = server("good"), other = server("elsewhere");
  const auto listening_at = [&](const harness::postgres_server& there) {
    std::string url = there.url();
    url.replace(url.find('@'), 1, "%40");
    return harness::outcome_of_opening(good.url(trusting("ca") + "&listen=" + url));
  };
  const auto refused = listening_at(other);
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  EXPECT_TRUE(contains(refused.text, "certificate")) << refused.text;
  const auto fine = listening_at(good);
  EXPECT_FALSE(fine.failed) << fine.text;
}

}  // namespace
}  // namespace postgres_test
