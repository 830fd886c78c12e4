#pragma once

// After an #error the compiler goes on, and reports hundreds of further errors; a missing file
// stops it.
#if __cplusplus < 202002L
#error "holdfast needs C++20: compile with -std=c++20"
#include <holdfast/no_such_file>
#endif
