#pragma once

#include <chrono>
#include <functional>
#include <holdfast/store/posting.hpp>
#include <holdfast/store/store.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::store {

/// The base class of a store that wraps another one, for session_options::decorate. It forwards
/// every call; a subclass overrides the calls that it wants to see or change. Other calls go to the
/// inner store unchanged, with its batches, single steps and round trips. A subclass that must see
/// every permits command derives from one_by_one.
class forwarding_store : public session_store, public posting_store {
 public:
  explicit forwarding_store(std::unique_ptr<session_store> inner)
      : inner_(std::move(inner)), posting_(dynamic_cast<posting_store*>(inner_.get())) {}

  const capabilities& can() const noexcept override { return inner_->can(); }
  const std::string& url() const noexcept override { return inner_->url(); }
  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    return inner_->permits(name, c);
  }
  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    return inner_->countdown(name, c);
  }
  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    return inner_->permits_later(name, c, std::move(then));
  }
  void settle() override { inner_->settle(); }
  result<rate_reply> rate(std::string_view name, const rate_command& c) override {
    return inner_->rate(name, c);
  }
  result<bucket_list> buckets(std::string_view name) override { return inner_->buckets(name); }
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    return inner_->execute_batch(batch);
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    return inner_->acquire_together(all);
  }
  result<admission> admit(const named_command& permits, std::string_view limiter,
                          const rate_command& take) override {
    return inner_->admit(permits, limiter, take);
  }
  result<standing> standing_of(std::string_view name, const owner_id& owner) override {
    return inner_->standing_of(name, owner);
  }
  result<store::identity> identify() override { return inner_->identify(); }
  result<store::facts> facts() override { return inner_->facts(); }
  result<std::optional<std::chrono::microseconds>> remembers_for() override {
    return inner_->remembers_for();
  }
  result<std::vector<std::string>> names() override { return inner_->names(); }
  store::inbox& inbox() noexcept override { return inner_->inbox(); }

  /// False if the inner store cannot do that.
  bool post(std::string_view name, const permits_command& c, listener& then) override {
    return posting_ != nullptr && posting_->post(name, c, then);
  }
  source answers() override { return posting_ != nullptr ? posting_->answers() : source{}; }
  void collect() override {
    if (posting_ != nullptr) posting_->collect();
  }

 protected:
  session_store& inner() noexcept { return *inner_; }
  const session_store& inner() const noexcept { return *inner_; }
  /// Whether post() may work.
  bool posts() const noexcept { return posting_ != nullptr; }

 private:
  const std::unique_ptr<session_store> inner_;
  posting_store* const posting_;  ///< inner_, null if it is none
};

/// The same, but a call for several commands is split into single calls of this store's own
/// permits() and rate(): a subclass that overrides these two sees every command.
class one_by_one : public forwarding_store {
 public:
  using forwarding_store::forwarding_store;
  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    return session_store::permits_later(name, c, std::move(then));
  }
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    return session_store::execute_batch(batch);
  }
  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    return session_store::acquire_together(all);
  }
  result<admission> admit(const named_command& permits, std::string_view limiter,
                          const rate_command& take) override {
    return session_store::admit(permits, limiter, take);
  }
  bool post(std::string_view, const permits_command&, listener&) override { return false; }
  source answers() override { return {}; }
  void collect() override {}
};

}  // namespace holdfast::store
