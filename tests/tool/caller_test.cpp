#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "harness/process.hpp"
#include "tool/fixture.hpp"

// Settings that the person who runs the tests has made for other servers do not reach the tests.
namespace tool_test {

namespace {

int say_what_is_set(const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (std::getenv(name.c_str()) != nullptr) harness::say(name);
  const mode_t mask = ::umask(0);
  harness::say(mask == 022 ? "umask 022" : "another umask");
  return 0;
}

const harness::role says{"say_what_is_set", say_what_is_set};

const words all{"PGSERVICE", "MYSQL_PWD",     "ETCD_NAME",      "ETCDCTL_ENDPOINTS",
                "ZOOCFGDIR", "http_proxy",    "HOLDFAST_STORE", "ETCD_UNSUPPORTED_ARCH",
                "PATH",      "HOLDFAST_SEED", "OTHER_PG"};

std::string said(const words& also) {
  surroundings around;
  for (const auto& name : all)
    if (name != "PATH") around.environment.push_back(name + "=mine");
  around.environment.insert(around.environment.end(), also.begin(), also.end());
  words command{"sh", "-c", "umask 077; exec \"$@\"", "sh"};
  const words program = role("say_what_is_set", all);
  command.insert(command.end(), program.begin(), program.end());
  const auto r = run_to_end(command, around);
  EXPECT_EQ(r.code, 0) << r.err;
  return r.out;
}

}  // namespace

TEST(caller, settings_for_other_servers_and_a_private_umask_take_no_part) {
  EXPECT_EQ(said({"HOLDFAST_TEST_ROLE"}),
            "ETCD_UNSUPPORTED_ARCH\nPATH\nHOLDFAST_SEED\nOTHER_PG\numask 022\n");
}

TEST(caller, settings_of_a_test_reach_its_roles) {
  std::string everything;
  for (const auto& name : all) everything += name + '\n';
  EXPECT_EQ(said({}), everything + "another umask\n");
}

}  // namespace tool_test
