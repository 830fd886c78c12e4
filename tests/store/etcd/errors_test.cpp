#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "harness/failing.hpp"
#include "store/etcd/members.hpp"
#include "store/etcd/options.hpp"

// The server's errors in the library's terms.
namespace {

using grpc::StatusCode;
using holdfast::errc;

holdfast::failure explained(StatusCode code, const std::string& said) {
  const auto options =
      holdfast::store::etcd::read_options(*holdfast::base::parse_url("etcd://localhost/locks"));
  return holdfast::store::etcd::explain({code, said}, *options);
}

errc reason_of(StatusCode code, const std::string& said) { return explained(code, said).code; }

TEST(etcd_errors, a_full_database_is_no_space_and_too_many_requests_pass) {
  EXPECT_EQ(reason_of(StatusCode::RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"),
            errc::no_space);
  EXPECT_EQ(reason_of(StatusCode::RESOURCE_EXHAUSTED, "etcdserver: too many requests"),
            errc::unavailable);
}

TEST(etcd_errors, an_unknown_error_is_unavailable) {
  EXPECT_EQ(reason_of(StatusCode::RESOURCE_EXHAUSTED, ""), errc::unavailable);
  EXPECT_EQ(reason_of(StatusCode::UNKNOWN, "something"), errc::unavailable);
}

TEST(etcd_errors, a_request_that_the_servers_refuse_was_answered_and_is_not_repeated) {
  const std::string said = "etcdserver: too many operations in txn request";
  const auto refused = explained(StatusCode::INVALID_ARGUMENT, said);
  EXPECT_EQ(refused.code, errc::unsupported);
  EXPECT_TRUE(harness::contains(refused.what, said)) << refused.what;
  EXPECT_TRUE(harness::contains(refused.what, "--max-txn-ops")) << refused.what;
  EXPECT_FALSE(harness::contains(refused.what, "no answer")) << refused.what;
}

TEST(etcd_errors, no_answer_is_only_what_may_be_none) {
  const std::string said = "etcdserver: too large lease TTL";
  const auto answered = explained(StatusCode::OUT_OF_RANGE, said);
  EXPECT_EQ(answered.code, errc::unavailable);
  EXPECT_TRUE(harness::contains(answered.what, said)) << answered.what;
  EXPECT_FALSE(harness::contains(answered.what, "no answer")) << answered.what;
  EXPECT_TRUE(harness::contains(explained(StatusCode::UNAVAILABLE, "").what, "no answer"));
}

}  // namespace
