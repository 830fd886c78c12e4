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
  const auto busy = explained(StatusCode::RESOURCE_EXHAUSTED, "etcdserver: too many requests");
  EXPECT_EQ(busy.code, errc::unavailable);
  EXPECT_TRUE(harness::contains(busy.what, "overloaded for now")) << busy.what;
}

TEST(etcd_errors, only_too_many_requests_are_an_overload) {
  const auto other = explained(StatusCode::RESOURCE_EXHAUSTED, "a quota");
  EXPECT_EQ(other.code, errc::unavailable);
  EXPECT_TRUE(harness::contains(other.what, "a quota")) << other.what;
  EXPECT_FALSE(harness::contains(other.what, "overloaded")) << other.what;
}

TEST(etcd_errors, an_unknown_error_is_unavailable) {
  EXPECT_EQ(reason_of(StatusCode::RESOURCE_EXHAUSTED, ""), errc::unavailable);
  EXPECT_EQ(reason_of(StatusCode::UNKNOWN, "something"), errc::unavailable);
}

struct answer {
  StatusCode code{};
  const char* said = "";
  errc reason{};
  const char* remedy = "";
};

TEST(etcd_errors, a_request_that_the_servers_refuse_was_answered_and_is_not_repeated) {
  // Where the server's gRPC refuses a message, no etcd has seen it; the client's own has no limit.
  const answer refused[]{
      {StatusCode::INVALID_ARGUMENT, "etcdserver: too many operations in txn request",
       errc::unsupported, "--max-txn-ops"},
      {StatusCode::INVALID_ARGUMENT, "etcdserver: request is too large", errc::unsupported,
       "--max-request-bytes"},
      {StatusCode::RESOURCE_EXHAUSTED, "grpc: received message larger than max (90 vs. 80)",
       errc::unsupported, "--max-request-bytes"},
      {StatusCode::OUT_OF_RANGE, "etcdserver: too large lease TTL", errc::unavailable, ""}};
  for (const auto& [code, said, reason, remedy] : refused) {
    const auto f = explained(code, said);
    EXPECT_EQ(f.code, reason) << f.what;
    for (const char* part : {said, remedy}) EXPECT_TRUE(harness::contains(f.what, part)) << f.what;
    for (const char* wrong : {"no answer", "overloaded"})
      EXPECT_FALSE(harness::contains(f.what, wrong)) << f.what;
  }
  EXPECT_TRUE(harness::contains(explained(StatusCode::UNAVAILABLE, "").what, "no answer"));
}

}  // namespace
