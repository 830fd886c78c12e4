#pragma once

#include <exception>

namespace holdfast::store::sql {

/// For as long as a question is asked and its answer read. If that ends by an exception (there is
/// no memory), the connection is broken: an answer that was left would be taken for the next one,
/// and nobody knows what was granted.
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
