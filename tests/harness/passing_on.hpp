#pragma once

#include <holdfast/store/forwarding_store.hpp>
#include <memory>

namespace harness {

/// A layer before a store, for tests that change one thing: it sees each command by itself.
class passing_on : public holdfast::store::one_by_one {
 public:
  explicit passing_on(std::unique_ptr<session_store> inner)
      : one_by_one(std::move(inner)), inner_(&this->inner()) {}

 protected:
  session_store* const inner_;
};

}  // namespace harness
