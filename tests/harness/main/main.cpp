#include "harness/process.hpp"

// For the test folders without a main() of their own.
int main(int argc, char** argv) { return harness::run(argc, argv); }
