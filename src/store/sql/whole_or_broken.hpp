#pragma once

#include <exception>

namespace holdfast::store::sql {

/// Lives while a request is sent and its answer read. If that ends by an exception (no memory), the
/// connection counts as broken: an answer left over would be taken for the next one, and it is
/// unknown what was granted.
class whole_or_broken {
 public:
  explicit whole_or_broken(bool& broken) noexcept : broken_(broken) {}
  ~whole_or_broken() { broken_ = broken_ || std::uncaught_exceptions() > before_; }
  whole_or_broken(const whole_or_broken&) = delete;
  whole_or_broken& operator=(const whole_or_broken&) = delete;

 private:
  bool& broken_;
  const int before_ = std::uncaught_exceptions();
};

}  // namespace holdfast::store::sql
