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

/// What opening says at a server that refuses each login with that code and these words.
harness::failing refused_with(const std::string& code, const std::string& words) {
  const char end = '\0';
  const auto fields = std::string("SFATAL") + end + 'C' + code + end + 'M' + words + end + end;
  const harness::fake_server server([&](std::string& heard) {
    heard.clear();
    return std::optional("E" + std::string(3, end) + static_cast<char>(fields.size() + 4) + fields);
  });
  return harness::outcome_of_opening("postgres://user@127.0.0.1:" + std::to_string(server.port()) +
                                     "/db?sslmode=disable&connect_timeout=10s");
}

// PgBouncer says 08P01 whatever the server has said.
TEST(postgres_answers, of_a_pooler_are_judged_by_the_server_s_words) {
  for (const auto& [words, expected] :
       {std::pair{"role \"x\" does not exist", errc::not_permitted},
        {"role \"x\" is not permitted to log in", errc::not_permitted},
        {"no pg_hba.conf entry for host \"h\", user \"u\", database \"d\"", errc::not_permitted},
        {"permission denied for database \"d\"", errc::not_permitted},
        {"database \"d\" does not exist", errc::invalid_argument},
        {"remaining connection slots are reserved", errc::unavailable}}) {
    const auto refused = refused_with("08P01", words);
    EXPECT_EQ(refused.reason, expected) << refused.text;
    EXPECT_FALSE(contains(refused.text, "is that its address")) << refused.text;
  }
}

TEST(postgres_answers, have_a_code_that_counts_more_than_the_words) {
  const auto refused = refused_with("57P03", "this role \"certificate\" does not exist");
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "(57P03)")) << refused.text;
}

/// The URL with another database, or of another user.
std::string with(const std::string& part, const std::string& instead, std::string url) {
  std::string escaped;
  for (const char c : instead)
    escaped += c == ' ' ? "%20" : c == '"' ? "%22" : c == ':' ? "%3A" : std::string(1, c);
  return url.replace(url.rfind(part), part.size(), escaped);
}

TEST_F(postgres_errors, the_server_s_code_says_why_it_refuses_and_not_a_name) {
  for (const char* name :
       {"certificate", "too many clients", "authentication failed", "a\" certificate \"b",
        "session is read-only", "received invalid ", ":  53300: "}) {
    const auto no_such = harness::outcome_of_opening(with("postgres", name, base_));
    EXPECT_EQ(no_such.reason, errc::invalid_argument) << no_such.text;
    EXPECT_TRUE(contains(no_such.text, "(3D000)")) << no_such.text;
    if (std::string(name).starts_with(':')) continue;  // a URL has no such user
    const auto nobody =
        harness::outcome_of_opening(with("postgres@", std::string(name) + '@', base_));
    EXPECT_EQ(nobody.reason, errc::not_permitted) << nobody.text;
    EXPECT_TRUE(contains(nobody.text, "(28000)")) << nobody.text;
    EXPECT_FALSE(contains(nobody.text, "LOCATION")) << nobody.text;
  }
}

TEST_F(postgres_errors, a_database_without_the_right_to_connect_is_reported_as_that) {
  const std::string name = "invalid certificate " + fresh_name();
  ask("create database \"" + name + "\"");
  ask("revoke connect on database \"" + name + "\" from public");
  const auto refused =
      harness::outcome_of_opening(with("postgres@", user_ + '@', with("postgres", name, base_)));
  ask("drop database \"" + name + "\"");
  EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  EXPECT_TRUE(contains(refused.text, "(42501)")) << refused.text;
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
