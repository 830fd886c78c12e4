#pragma once

#include <dlfcn.h>
#include <cstdlib>

namespace simulation {

inline void* next_function(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return found;
}

}  // namespace simulation

/// The C library's function that one of this program's own functions replaces.
#define HOLDFAST_REAL(function)                                                        \
  [] {                                                                                 \
    static const auto known =                                                          \
        reinterpret_cast<decltype(&::function)>(simulation::next_function(#function)); \
    return known;                                                                      \
  }()
