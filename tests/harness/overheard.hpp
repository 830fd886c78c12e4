#pragma once

#include <holdfast/options.hpp>
#include <holdfast/store/forwarding_store.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace harness {

/// The notifications of one session, as another listener on its channel would know them.
class overheard : public std::enable_shared_from_this<overheard> {
 public:
  holdfast::session_options options() {
    holdfast::session_options o;
    o.decorate = [self = shared_from_this()](auto inner) {
      return std::make_unique<store>(std::move(inner), self);
    };
    return o;
  }
  holdfast::store::notification last() {
    const std::lock_guard guard{mutex_};
    return all_.back();
  }

 private:
  class inbox final : public holdfast::store::inbox {
   public:
    inbox(holdfast::store::inbox& true_one, std::shared_ptr<overheard> by)
        : true_one_(true_one), by_(std::move(by)) {}
    const std::string& peer() const noexcept override { return true_one_.peer(); }
    std::optional<holdfast::store::notification> receive(holdfast::boot_time until) override {
      auto n = true_one_.receive(until);
      const std::lock_guard guard{by_->mutex_};
      if (n) by_->all_.push_back(*n);
      return n;
    }
    void interrupt() noexcept override { true_one_.interrupt(); }
    std::optional<std::uint64_t> gaps() const noexcept override { return true_one_.gaps(); }

   private:
    holdfast::store::inbox& true_one_;
    const std::shared_ptr<overheard> by_;
  };
  class store final : public holdfast::store::forwarding_store {
   public:
    store(std::unique_ptr<session_store> inner, std::shared_ptr<overheard> by)
        : forwarding_store(std::move(inner)), inbox_(this->inner().inbox(), std::move(by)) {}
    holdfast::store::inbox& inbox() noexcept override { return inbox_; }

   private:
    overheard::inbox inbox_;
  };

  std::mutex mutex_;
  std::vector<holdfast::store::notification> all_;
};

}  // namespace harness
