#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "store/etcd/members.hpp"
#include "store/etcd/options.hpp"

// The server's errors in the library's terms.
namespace {

using grpc::StatusCode;
using holdfast::errc;

errc reason_of(StatusCode code, const std::string& said) {
  const auto options =
      holdfast::store::etcd::read_options(*holdfast::base::parse_url("etcd://localhost/locks"));
  return holdfast::store::etcd::explain({code, said}, *options).code;
}

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

}  // namespace
