#include <cstring>
#include <iostream>

#include "conformance/matrix.hpp"
#include "harness/process.hpp"

// --print-matrix writes docs/matrix.md; without it the tests run.
int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--print-matrix") == 0) {
    testing::InitGoogleTest(&argc, argv);
    std::cout << conformance::matrix();
    return 0;
  }
  return harness::run(argc, argv);
}
