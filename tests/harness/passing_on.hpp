#pragma once

#include <holdfast/store/store.hpp>
#include <memory>

namespace harness {

/// A store before another, for tests that change one thing.
class passing_on : public holdfast::store::session_store {
 public:
  explicit passing_on(std::unique_ptr<session_store> inner) : inner_(std::move(inner)) {}
  const holdfast::store::capabilities& can() const noexcept override { return inner_->can(); }
  const std::string& url() const noexcept override { return inner_->url(); }
  holdfast::store::inbox& inbox() noexcept override { return inner_->inbox(); }
  holdfast::result<std::vector<std::string>> names() override { return inner_->names(); }
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    return inner_->permits(name, c);
  }
  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    return inner_->countdown(name, c);
  }

 protected:
  const std::unique_ptr<session_store> inner_;
};

}  // namespace harness
