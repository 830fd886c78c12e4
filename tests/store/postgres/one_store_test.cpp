#include "fixture.hpp"
#include "store/sql/one_store_rules.hpp"

namespace postgres_test {
namespace {

TEST_F(postgres_store, of_two_urls_is_one_node_of_a_quorum) {
  sql_test::expect_one_store(open(), holdfast::open(sql_test::spelled_otherwise(url())));
}

TEST_F(postgres_store, whose_tables_were_made_without_an_id_is_known_by_its_url) {
  (void)open();
  ask("alter table " + table("holdfast_meta") + " drop column id");
  sql_test::expect_known_by_url(url());
}

TEST_F(postgres_store, does_not_read_a_record_that_is_far_too_long) {
  const auto s = open();
  ask("insert into " + table("holdfast_records") +
      " values ('long', 1, to_json(repeat('x', 17000000)))");
  sql_test::expect_it_is_not_read(s, "long");
}

TEST_F(postgres_store, takes_a_batch_of_many_names_that_many_use) {
  sql_test::expect_a_large_batch_is_carried_out(open("&command_timeout=1m"));
}

}  // namespace
}  // namespace postgres_test
