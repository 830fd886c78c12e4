#include <thread>

#include "base/store_url.hpp"
#include "harness/authority.hpp"
#include "harness/eventually.hpp"
#include "harness/least_rights.hpp"
#include "harness/tcp.hpp"
#include "store/etcd/etcd.hpp"
#include "store/etcd/fixture.hpp"

// Users and TLS, each with a server of its own.
namespace etcd_test {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
namespace etcd = holdfast::store::etcd;

errc reason_of(const std::string& url) {
  const auto e = thrown_by(
      [&] { (void)holdfast::open(url, {.store_timeout = std::chrono::milliseconds(0)}); });
  EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  return e.reason();
}

class etcd_login : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new harness::etcd_cluster(1, {"--bcrypt-cost=4"});
    for (const char* words :
         {"user add root:secret", "user grant-role root root", "role add locks",
          "role grant-permission locks --prefix=true readwrite /locks/", "user add owner:secret",
          "user grant-role owner locks", "user add stranger:secret", "role add looks",
          "role grant-permission looks --prefix=true read /locks/", "user add reader:secret",
          "user grant-role reader looks", "role add writes",
          "role grant-permission writes --prefix=true write /locks/", "user add writer:secret",
          "user grant-role writer writes", "auth enable"}) {
      (void)server_->ctl(words);
    }
  }
  static void TearDownTestSuite() { delete server_; }
  static std::string url(const std::string& login) {
    return "etcd://" + login + server_->hosts() + "/locks?session=10s";
  }
  static inline harness::etcd_cluster* server_ = nullptr;
};

TEST_F(etcd_login, a_user_with_its_password_can_lock) {
  auto here = holdfast::open(url("owner:secret@"));
  auto there = holdfast::open(url("owner:secret@"));
  EXPECT_EQ(here.url().find("secret"), std::string::npos) << here.url();
  holdfast::mutex one{here, "m"}, two{there, "m"};
  auto held = one.acquire();
  std::thread waiter([&] { EXPECT_TRUE(two.acquire()); });
  harness::eventually("a waiter", [&] { return here.show("m").waiters.size() == 1; });
  held = {};
  waiter.join();
}

TEST_F(etcd_login, a_session_without_rights_is_refused_when_it_opens) {
  for (const char* login : {"", "owner:wrong@", "nobody:secret@", "stranger:secret@"}) {
    EXPECT_EQ(reason_of(url(login)), errc::not_permitted) << login;
  }
}

TEST_F(etcd_login, a_read_only_user_leaves_no_lease_behind) {
  auto here = holdfast::open(url("reader:secret@"), {.store_timeout = 0ms});
  const auto leases = [] { return server_->ctl("--user root:secret lease list"); };
  const auto before = leases();
  holdfast::latch nobody_s{here, "l", 1};
  EXPECT_EQ(thrown_by([&] { nobody_s.count_down(); }).reason(), errc::not_permitted);
  EXPECT_EQ(leases(), before);
}

TEST_F(etcd_login, each_documented_right_is_needed_and_its_lack_is_reported) {
  EXPECT_EQ(harness::etcd_rights_on_page(),
            (std::vector<std::string>{"role add locks",
                                      "role grant-permission locks --prefix=true readwrite /locks/",
                                      "user add app:SECRET", "user grant-role app locks"}));
  EXPECT_NO_THROW(harness::use_everything(url("owner:secret@"), "each-right"));
  for (const std::string half : {"reader", "writer"}) {
    const auto e =
        thrown_by([&] { harness::use_everything(url(half + ":secret@"), "each-right"); });
    EXPECT_EQ(e.reason(), errc::not_permitted) << half << ": " << e.what();
  }
}

// The server forgets a user's tokens when the user's password is set, even to the same one.
TEST_F(etcd_login, a_forgotten_login_token_is_renewed) {
  auto here = holdfast::open(url("owner:secret@"));
  holdfast::mutex lock{here, "m"};
  (void)lock.acquire();
  (void)server_->ctl("--user root:secret user passwd owner --interactive=false", "secret");
  EXPECT_TRUE(lock.acquire());
}

/// The number of watches on the server.
long watchers(const harness::etcd_cluster& server) {
  const std::string hosts = server.hosts();
  harness::tcp_client metrics(std::stoi(hosts.substr(hosts.rfind(':') + 1)));
  metrics.say("GET /metrics HTTP/1.0\r\n\r\n");
  const std::string all = metrics.hear_all();
  const std::string name = "\netcd_debugging_mvcc_watcher_total ";
  const auto at = all.find(name);
  return at == all.npos ? -1 : std::stol(all.substr(at + name.size()));
}

// The stream of the watches has a token, too, from when it was opened.
TEST_F(etcd_login, waiters_watch_although_the_token_of_their_stream_was_forgotten) {
  auto here = holdfast::open(url("owner:secret@"));
  auto there = holdfast::open(url("owner:secret@"));
  holdfast::mutex one{here, "w"}, two{there, "w"};
  for (const bool known : {true, false}) {
    auto held = one.acquire();
    std::thread waiter([&] { EXPECT_TRUE(two.acquire()); });
    harness::eventually("a watch", [&] { return watchers(*server_) == 1; });
    held = {};
    waiter.join();
    harness::eventually("no watch any more", [&] { return watchers(*server_) == 0; });
    if (known)
      (void)server_->ctl("--user root:secret user passwd owner --interactive=false", "secret");
  }
}

TEST_F(etcd_login, a_refused_question_leaves_no_watch) {
  auto o = etcd::read_options(*holdfast::base::parse_url(url("reader:secret@"))).value();
  o.clock = &holdfast::real_clock();
  const auto store = etcd::open_etcd(o).value();
  using as_of = holdfast::store::contender_store::as_of;
  const auto settled = store->contenders("quiet", as_of::settled, [] {});
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, errc::not_permitted) << settled.error().what;
  harness::eventually("no watch any more", [&] { return watchers(*server_) == 0; });
  ASSERT_TRUE(store->contenders("quiet", as_of::seen, [] {}));
  harness::eventually("a watch", [&] { return watchers(*server_) == 1; });
}

TEST(etcd_tls, only_clients_with_a_trusted_certificate_are_admitted) {
  const harness::authority ca;
  const harness::etcd_cluster server(
      1, {"--cert-file=" + ca.file("good.pem"), "--key-file=" + ca.file("good.key"),
          "--trusted-ca-file=" + ca.file("ca.pem"), "--client-cert-auth"});
  const std::string there = server.hosts() + "/locks?connect_timeout=2s";
  const std::string trusts = "&ca=" + ca.file("ca.pem");
  const std::string shows = "&cert=" + ca.file("client.pem") + "&key=" + ca.file("client.key");
  auto here = holdfast::open("etcds://" + there + trusts + shows);
  EXPECT_TRUE(holdfast::mutex(here, "m").try_acquire());
  EXPECT_EQ(reason_of("etcds://" + there + trusts), errc::unavailable) << "shows none";
  EXPECT_EQ(reason_of("etcds://" + there + shows), errc::unavailable) << "trusts another authority";
  EXPECT_EQ(reason_of("etcds://" + there + trusts + shows + "&server_name=elsewhere"),
            errc::unavailable);
  EXPECT_EQ(reason_of("etcds://" + there + "&ca=/no/such/file"), errc::invalid_argument);
  // gRPC would take an empty text for no text, and trust the machine's own authorities.
  EXPECT_EQ(reason_of("etcds://" + there + shows + "&ca=/dev/null"), errc::invalid_argument);
  EXPECT_EQ(reason_of("etcds://" + there + shows + "&ca=" + ca.folder().path().string()),
            errc::invalid_argument);
}

}  // namespace
}  // namespace etcd_test
