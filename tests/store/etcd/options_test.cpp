#include "store/etcd/fixture.hpp"

namespace etcd_test {
namespace {

using holdfast::errc;

TEST(etcd_options, addresses_and_options_that_can_not_be_are_refused) {
  for (const char* url : {"etcd:",
                          "etcd://",
                          "etcd://,h2",
                          "etcd://h:0",
                          "etcd://h:port",
                          "etcd://h:65536",
                          "etcd://::1",
                          "etcd://user@h/a",
                          "etcd://:secret@h/a",
                          "etcd://h/a?session=999ms",
                          "etcd://h/a?session=25h",
                          "etcd://h/a?session=soon",
                          "etcd://h/a?sesion=20s",
                          "etcd://h/a?command_timeout=0ms",
                          "etcd://h/a?command_timeout=10000000000h",
                          "etcd://h/a?connect_timeout=25h",
                          "etcd://h/a?ca=/ca.pem",
                          "etcds://h/a?cert=/client.pem",
                          "etcds://h/a?ca=/no/such/file",
                          "etcds://h/a?server_name=",
                          "etcd://user@h/a?password_env=NO_SUCH_VARIABLE_IS_SET",
                          "etcd://user@h/a?password_file=/no/such/file"}) {
    const auto e = thrown_by([&] { (void)holdfast::open(url); });
    EXPECT_EQ(e.reason(), errc::invalid_argument) << url;
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace etcd_test
