#pragma once

#include <holdfast/session.hpp>

#include "c/queue.hpp"

namespace holdfast::c_abi {

struct session_handle final : handle {
  explicit session_handle(session s) : itself(std::move(s)) {}
  const session itself;
};

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

/// A session, for a call that makes something with it, or asks for what is known.
class session_visit {
 public:
  explicit session_visit(const void* key) : at_(key) {}
  const session& itself() const { return at_.as<session_handle>("session").itself; }

 private:
  const visit at_;
};

/// For a call that asks the store.
inline session session_of(const void* key) { return get<session_handle>(key, "session")->itself; }

}  // namespace holdfast::c_abi
