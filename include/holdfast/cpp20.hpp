#pragma once

// After an #error the compiler goes on, with hundreds of errors that follow from it; a missing file
// ends it.
#if __cplusplus < 202002L
#error "holdfast needs C++20: compile with -std=c++20"
#include <holdfast/no_such_file>
#endif
