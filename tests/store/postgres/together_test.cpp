#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/several_names.hpp"
#include "store/postgres/postgres.hpp"
#include "store/sql/combined_rules.hpp"

// A multi_lock, and changes of several threads: several rows in one transaction.
namespace postgres_test {
namespace {

TEST_F(postgres_store, several_names_are_taken_in_one_transaction_or_not_at_all) {
  harness::take_all_or_none(
      [&] { return open(); },
      [&] {
        EXPECT_EQ(ask("select count(distinct xmin::text) from " + table("holdfast_records")), "1");
      });
}

TEST_F(postgres_store, names_that_overlap_are_taken_by_one_after_the_other) {
  harness::take_overlapping_names([&] { return open(); });
}

// The trigger refuses a name's change for the reason that the table `refusals` has for it.
TEST_F(postgres_store, changes_that_are_sent_together_have_each_its_own_outcome) {
  (void)open("&listen=never");
  const auto refusals = table("refusals");
  (void)ask(
      "create table " + refusals + " (name text, state text); create function " +
      table("refuse()") +
      " returns trigger language plpgsql as $$ declare s text; begin select state into s from " +
      refusals +
      " r where r.name = new.name; if found then raise exception 'refused' using errcode = s; "
      "end if; return new; end $$; create trigger refuse after update on " +
      table("holdfast_records") + " for each row execute function " + table("refuse()"));
  harness::fault_proxy network(std::stoi(base_.substr(base_.find(':', base_.find('@')) + 1)));
  namespace pg = holdfast::store::postgres;
  auto through = base_;
  const auto port = through.rfind(':');
  through.replace(port + 1, through.find('/', port) - port - 1, std::to_string(network.port()));
  auto o = pg::read_options(*holdfast::base::parse_url(
                                through + "?schema=" + schema_ + "&listen=never&connections=2" +
                                "&command_timeout=2s&application_name=" + schema_))
               .value();
  o.clock = &holdfast::real_clock();
  const auto store = pg::open_postgres(std::move(o)).value();
  const client other{base_};
  const auto end = [&](const std::string& how) {
    return "select count(pg_" + how +
           "_backend(pid)) from pg_stat_activity where application_name = '" + schema_ + "'";
  };
  sql_test::expect_each_thread_learns_its_own_outcome(
      *store, {.ask = [&](const std::string& sql) { return ask(sql); },
               .other = [&](const std::string& sql) { (void)other.ask(sql); },
               .network = network,
               .records = table("holdfast_records"),
               .refusals = refusals,
               .errors = {"'40001'", "'40P01'", "'23514'", "'25006'", "'57014'", "'42501'",
                          "'53200'", "'XX000'"},
               .kills = {end("terminate"), end("cancel")}});
}

}  // namespace
}  // namespace postgres_test
