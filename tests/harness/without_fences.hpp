#pragma once

#include <memory>

#include "harness/passing_on.hpp"

namespace harness {

/// A store whose locks have no fences.
class no_fences final : public passing_on {
 public:
  explicit no_fences(std::unique_ptr<session_store> inner)
      : passing_on(std::move(inner)), can_(inner_->can()) {
    can_.fences = false;
  }
  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (reply) reply->fence = 0;
    return reply;
  }

 private:
  holdfast::store::capabilities can_;
};

inline std::unique_ptr<holdfast::store::session_store> without_fences(
    std::unique_ptr<holdfast::store::session_store> inner) {
  return std::make_unique<no_fences>(std::move(inner));
}

}  // namespace harness
