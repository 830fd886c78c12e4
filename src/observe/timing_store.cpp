#include "observe/timing_store.hpp"

#include <chrono>
#include <holdfast/store/forwarding_store.hpp>
#include <type_traits>

namespace holdfast::observe {

namespace {

using store::permits_command;
using store::permits_reply;

operation of(store::permits_verb verb) noexcept { return static_cast<operation>(verb); }
static_assert(static_cast<int>(store::permits_verb::notify) == static_cast<int>(operation::notify));

class timing_store final : public store::forwarding_store {
 public:
  timing_store(std::unique_ptr<session_store> inner, std::shared_ptr<store_series> to)
      : forwarding_store(std::move(inner)), to_(std::move(to)) {}

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    return timed(of(c.verb), [&] { return forwarding_store::permits(name, c); });
  }
  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c) override {
    return timed(operation::countdown, [&] { return forwarding_store::countdown(name, c); });
  }
  result<store::rate_reply> rate(std::string_view name, const store::rate_command& c) override {
    return timed(operation::rate, [&] { return forwarding_store::rate(name, c); });
  }
  result<store::admission> admit(const store::named_command& permits, std::string_view limiter,
                                 const store::rate_command& take) override {
    return timed(operation::admit, [&] { return forwarding_store::admit(permits, limiter, take); });
  }
  result<std::vector<std::string>> names() override {
    return timed(operation::names, [&] { return forwarding_store::names(); });
  }
  result<std::vector<permits_reply>> acquire_together(
      std::span<const store::named_command> all) override {
    return timed(operation::batch, [&] { return forwarding_store::acquire_together(all); });
  }

  // One time for the whole batch, and the failures of each command.
  std::vector<result<permits_reply>> execute_batch(
      std::span<const store::named_command> batch) override {
    const bool one = batch.size() == 1;
    const operation op = one ? of(batch.front().command.verb) : operation::batch;
    const auto began = std::chrono::steady_clock::now();
    auto replies = forwarding_store::execute_batch(batch);
    took(op, began);
    for (const auto& r : replies) note(op, r);
    return replies;
  }

  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    return forwarding_store::permits_later(name, c, ending(of(c.verb), std::move(then)));
  }
  bool post(std::string_view name, const permits_command& c, listener& then) override {
    if (!posts()) return false;
    const auto kept = std::make_shared<listener>(std::move(then));
    listener told = ending(of(c.verb), [kept](result<permits_reply> r) { (*kept)(std::move(r)); });
    if (forwarding_store::post(name, c, told)) return true;
    then = std::move(*kept);
    return false;
  }

 private:
  template <class Ask>
  std::invoke_result_t<Ask> timed(operation op, Ask ask) {
    const auto began = std::chrono::steady_clock::now();
    auto reply = ask();
    took(op, began);
    note(op, reply);
    return reply;
  }
  void took(operation op, std::chrono::steady_clock::time_point began) noexcept {
    to_->took[static_cast<std::size_t>(op)].add(std::chrono::steady_clock::now() - began);
  }
  template <class Reply>
  void note(operation op, const Reply& reply) {
    if (!reply) to_->failed(op, reply.error().code);
  }
  // The reply may arrive after this object was destroyed.
  listener ending(operation op, listener then) {
    return [to = to_, op, began = std::chrono::steady_clock::now(),
            then = std::move(then)](result<permits_reply> reply) {
      to->took[static_cast<std::size_t>(op)].add(std::chrono::steady_clock::now() - began);
      if (!reply) to->failed(op, reply.error().code);
      then(std::move(reply));
    };
  }

  const std::shared_ptr<store_series> to_;
};

}  // namespace

std::unique_ptr<store::session_store> timing(std::unique_ptr<store::session_store> inner,
                                             std::shared_ptr<store_series> to) {
  return std::make_unique<timing_store>(std::move(inner), std::move(to));
}

}  // namespace holdfast::observe
