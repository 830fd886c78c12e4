#include <cstring>
#include <iostream>

#include "conformance/cell.hpp"
#include "conformance/matrix.hpp"
#include "harness/process.hpp"
#include "harness/shared_servers.hpp"

namespace {

// Run by ctest before the tests that need them: --play-role share-servers KIND FOLDER.
const harness::role share_servers{"share-servers", [](const auto& args) {
                                    harness::share_servers(args.at(0), args.at(1));
                                    return 0;
                                  }};

// Added to the command line's filter; CTest's lists and runs have the same exclusions.
void leave_out_what_a_row_does_not_run() {
  std::string& filter = testing::GTEST_FLAG(filter);
  for (const auto& pattern : conformance::left_out()) {
    filter += (filter.find('-') == filter.npos ? '-' : ':') + pattern;
  }
}

}  // namespace

// --print-matrix writes docs/matrix.md; without it the tests run.
int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--print-matrix") == 0) {
    testing::InitGoogleTest(&argc, argv);
    std::cout << conformance::matrix();
    return 0;
  }
  return harness::run(argc, argv, leave_out_what_a_row_does_not_run);
}
