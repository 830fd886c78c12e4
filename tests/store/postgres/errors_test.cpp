#include "fixture.hpp"
#include "harness/tcp.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/options.hpp"

// The server's errors in the library's terms.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;

class postgres_errors : public postgres_store {
 protected:
  /// The library's reason for a statement that fails with that code.
  errc reason_of(const std::string& state) const {
    const auto o = *holdfast::store::postgres::read_options(*holdfast::base::parse_url(url()));
    const auto deadline = boot_clock::now() + 60s;
    const auto over = std::move(*holdfast::store::postgres::connect(o.server, deadline));
    const std::string raise =
        "do $$ begin raise exception 'as in a test' using errcode = '" + state + "'; end $$";
    return over->ask({{raise}}, deadline).error().code;
  }
};

TEST_F(postgres_errors, a_failing_disk_is_unavailable_and_a_full_disk_is_no_space) {
  EXPECT_EQ(reason_of("58030"), errc::unavailable) << "an I/O error";
  EXPECT_EQ(reason_of("58P01"), errc::unavailable) << "a file is not there";
  EXPECT_EQ(reason_of("53100"), errc::no_space);
}

TEST_F(postgres_errors, a_server_short_of_something_is_unavailable) {
  for (const auto* state : {"53000", "53200", "53300", "53400"}) {
    EXPECT_EQ(reason_of(state), errc::unavailable) << state;
  }
}

// A load balancer without a server behind it, for example: waiters and leases must outlast it.
TEST(postgres_answers, of_a_server_of_another_kind_are_unavailable) {
  for (const char* said : {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "\xff\xff", "RR"}) {
    const harness::fake_server other([&](std::string& heard) -> std::optional<std::string> {
      heard.clear();
      return said;
    });
    const auto refused = outcome_of([&] {
      (void)holdfast::open("postgres://user:secret@127.0.0.1:" + std::to_string(other.port()) +
                               "/db?connect_timeout=10s",
                           {.store_timeout = 0ms});
    });
    EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
    EXPECT_FALSE(contains(refused.text, "secret")) << refused.text;
  }
}

TEST(postgres_addresses, are_no_reason_why_a_server_was_not_reached) {
  for (const char* name : {"certificate", "does not exist", "role \"", "invalid "}) {
    std::string escaped;
    for (const char c : std::string(name))
      escaped += c == ' ' ? "%20" : c == '"' ? "%22" : std::string(1, c);
    const auto refused = outcome_of([&] {
      (void)holdfast::open("postgres:///db?host=/no/such/" + escaped, {.store_timeout = 0ms});
    });
    EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  }
}

}  // namespace
}  // namespace postgres_test
