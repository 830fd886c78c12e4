#pragma once

#include <holdfast/session.hpp>

#include "c/queue.hpp"

namespace holdfast::c_abi {

using session_handle = handle_of<session>;

/// A handle that contains an object of the C++ interface. Errors name it and its store.
template <class T, class Base = named_handle>
struct named : Base {
  template <class... Args>
  explicit named(const session& s, Args&&... args)
      : store(s.url()), itself(s, std::forward<Args>(args)...) {}
  about what() const override { return {itself.name(), store}; }

  const std::string store;
  T itself;
};

inline session session_of(const void* key) { return get<session_handle>(key, "session")->itself; }

}  // namespace holdfast::c_abi
