#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <holdfast/async.hpp>
#include <thread>
#include <vector>

#include "fixture.hpp"
#include "harness/authority.hpp"
#include "store/redis/handshake.hpp"

namespace {

using harness::authority;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_tls : public testing::Test {
 protected:
  static void SetUpTestSuite() { authority_ = new authority; }
  static void TearDownTestSuite() { delete authority_; }
  static std::string file(const std::string& name) { return authority_->file(name); }

  /// A server with this certificate; it may require one from its clients.
  struct server {
    explicit server(const std::string& shows, const std::string& wants = "no")
        : port(harness::free_port()),
          redis({"--tls-port", std::to_string(port), "--tls-cert-file", file(shows + ".pem"),
                 "--tls-key-file", file(shows + ".key"), "--tls-ca-cert-file", file("ca.pem"),
                 "--tls-auth-clients", wants}) {}
    std::string url(const std::string& options) const {
      return "rediss://127.0.0.1:" + std::to_string(port) + options;
    }
    int port;
    harness::redis_server redis;
  };
  static std::string trusting() { return "?ca=" + file("ca.pem"); }

  static inline authority* authority_ = nullptr;
};

TEST_F(redis_tls, locks_work_over_an_encrypted_connection) {
  const server s("good");
  auto a = holdfast::open(s.url(trusting())), b = holdfast::open(s.url(trusting()));
  holdfast::mutex first{a, "m"}, second{b, "m"};
  first.lock();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  first.unlock();
  waiter.join();
}

// One write of TLS takes at most 16 KiB. Few long names: each waiter costs the server more than its
// bytes do.
TEST_F(redis_tls, a_session_whose_connection_broke_listens_to_all_its_channels_again) {
  const server s("good");
  auto holder = holdfast::open(s.url(trusting() + "&dialect=redisson"));
  auto waiter = holdfast::open(s.url(trusting() + "&dialect=redisson"));
  constexpr std::size_t names = 150;
  const std::string long_name(200, 'n');
  static_assert(names * 200 > std::size_t{16} * 1024);
  std::vector<holdfast::lease> held;
  std::atomic<std::size_t> served{0};
  for (std::size_t i = 0; i < names; ++i) {
    const auto name = long_name + std::to_string(i);
    held.push_back(holdfast::mutex(holder, name).acquire());
    holdfast::mutex lock{waiter, name};
    async_acquire(lock).start([&](auto got) { served += got ? 1 : 0; });
  }
  const auto channels = [&] {
    return std::stoul(s.redis.field({"INFO", "stats"}, "pubsub_channels"));
  };
  harness::eventually("it listens", [&] { return channels() >= names; });
  s.redis.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  harness::eventually("it listens again", [&] { return channels() >= names; });
  held.clear();
  harness::eventually("all have been served", [&] { return served == names; });
}

TEST_F(redis_tls, an_unknown_authority_is_refused_with_the_reason) {
  const server s("good");
  for (const auto& options : {std::string(), "?ca=" + file("stranger.pem")}) {
    const auto o = harness::outcome_of_opening(s.url(options));
    EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
    EXPECT_TRUE(contains(o.text, "certificate")) << o.text;
  }
}

TEST_F(redis_tls, a_certificate_for_another_host_is_refused_unless_that_host_is_named) {
  const server s("elsewhere");
  const auto o = harness::outcome_of_opening(s.url(trusting()));
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(contains(o.text, "server_name")) << o.text;
  EXPECT_NO_THROW((void)holdfast::open(s.url(trusting() + "&server_name=elsewhere.example")));
}

TEST_F(redis_tls, a_certificate_that_has_expired_is_refused_with_the_reason) {
  const server s("yesterday");
  const auto o = harness::outcome_of_opening(s.url(trusting()));
  EXPECT_EQ(o.reason, errc::not_permitted) << o.text;
  EXPECT_TRUE(contains(o.text, "expired")) << o.text;
}

TEST_F(redis_tls, a_server_that_wants_a_client_certificate_gets_it) {
  const server s("good", "yes");
  EXPECT_TRUE(harness::outcome_of_opening(s.url(trusting())).failed);
  EXPECT_NO_THROW((void)holdfast::open(
      s.url(trusting() + "&cert=" + file("client.pem") + "&key=" + file("client.key"))));
}

TEST_F(redis_tls, tls_to_a_plain_port_and_plain_to_a_tls_port_are_named) {
  const server s("good");
  const auto tls_to_plain = harness::outcome_of_opening(
      "rediss://127.0.0.1:" + std::to_string(s.redis.port()) + trusting());
  EXPECT_EQ(tls_to_plain.reason, errc::unavailable) << tls_to_plain.text;
  EXPECT_TRUE(contains(tls_to_plain.text, "redis://")) << tls_to_plain.text;
  const auto plain_to_tls =
      harness::outcome_of_opening("redis://127.0.0.1:" + std::to_string(s.port));
  EXPECT_EQ(plain_to_tls.reason, errc::unavailable) << plain_to_tls.text;
  EXPECT_TRUE(contains(plain_to_tls.text, "rediss://")) << plain_to_tls.text;
}

/// The server's end of a TLS connection, for a test that decides how many bytes of a record arrive.
class tls_peer {
 public:
  tls_peer(int fd, const std::string& cert, const std::string& key)
      : fd_(fd), context_(SSL_CTX_new(TLS_server_method())) {
    SSL_CTX_use_certificate_chain_file(context_, cert.c_str());
    SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_set_num_tickets(context_, 0);  // so that it says nothing after the handshake
    stream_ = SSL_new(context_);
    SSL_set_fd(stream_, fd);
  }
  ~tls_peer() {
    SSL_free(stream_);
    SSL_CTX_free(context_);
    ::close(fd_);
  }
  tls_peer(const tls_peer&) = delete;
  bool accept() { return SSL_accept(stream_) == 1; }
  /// The record that contains this text.
  std::string encrypted(const std::string& text) {
    BIO* const memory = BIO_new(BIO_s_mem());
    SSL_set0_wbio(stream_, memory);
    SSL_write(stream_, text.data(), static_cast<int>(text.size()));
    std::string record(static_cast<std::size_t>(BIO_pending(memory)), '\0');
    BIO_read(memory, record.data(), static_cast<int>(record.size()));
    return record;
  }
  void send(const std::string& bytes) const {
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  int fd_;
  SSL_CTX* context_;
  SSL* stream_ = nullptr;
};

// The network was cut in the middle of an answer: what OpenSSL has kept cannot be read yet.
TEST_F(redis_tls, a_part_of_a_record_is_waited_for_no_longer_than_the_limit) {
  namespace redis = holdfast::store::redis;
  using holdfast::boot_clock;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  tls_peer server(ends[0], file("good.pem"), file("good.key"));
  std::thread greets([&] { EXPECT_TRUE(server.accept()); });
  redis::redis_options o;
  o.ca = file("ca.pem");
  redis::connection c;
  c.wire = std::move(*redis::start_tls(ends[1], o, {}));
  greets.join();
  const std::string record = server.encrypted("+PONG\r\n");
  server.send(record.substr(0, record.size() / 2));
  char buffer[64];
  EXPECT_EQ(c.wire->read(buffer, true).status, redis::io::again);
  ASSERT_FALSE(c.wire->pending());
  EXPECT_FALSE(redis::exchange(c, "", 1, {boot_clock::now()}));
  server.send(record.substr(record.size() / 2));
  const auto whole = redis::exchange(c, "", 1, {});
  EXPECT_EQ(whole->front().text, "PONG");
}

// OpenSSL would ask for it at the terminal, and wait there without a limit.
TEST_F(redis_tls, a_key_with_a_passphrase_is_refused_without_a_question) {
  const server s("good", "yes");
  const auto key = file("client.key"), locked = file("locked.key");
  ASSERT_EQ(std::system(("openssl ec -aes128 -passout pass:secret -in " + key + " -out " + locked +
                         " 2> " + file("log"))
                            .c_str()),
            0);
  testing::internal::CaptureStderr();
  const auto o = harness::outcome_of_opening(
      s.url(trusting() + "&cert=" + file("client.pem") + "&key=" + locked));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(o.reason, errc::invalid_argument) << o.text;
  EXPECT_TRUE(contains(o.text, "passphrase")) << o.text;
}

TEST_F(redis_tls, files_that_cannot_be_read_are_named) {
  const server s("good");
  const auto o = harness::outcome_of_opening(s.url("?ca=/does/not/exist.pem"));
  EXPECT_EQ(o.reason, errc::invalid_argument);
  EXPECT_TRUE(contains(o.text, "/does/not/exist.pem")) << o.text;
  EXPECT_EQ(harness::outcome_of_opening(s.url(trusting() + "&cert=x.pem")).reason,
            errc::invalid_argument);
}

}  // namespace
