#include <atomic>
#include <condition_variable>
#include <holdfast/testing.hpp>
#include <mutex>
#include <random>

namespace holdfast::testing {

namespace {

failure lost_on_the_way(bool carried_out) {
  return {errc::unavailable,
          carried_out ? "injected fault: the reply was dropped" : "injected fault: not delivered",
          carried_out};
}

class faulty_inbox final : public store::inbox {
 public:
  explicit faulty_inbox(store::inbox& inner) : inner_(inner) {}

  const std::string& peer() const noexcept override { return inner_.peer(); }
  void interrupt() noexcept override { inner_.interrupt(); }
  std::optional<std::uint64_t> gaps() const noexcept override {
    const auto inner = inner_.gaps();
    return inner ? std::optional(*inner + lost_) : std::nullopt;
  }
  void watch(std::string_view peer) override { inner_.watch(peer); }
  void unwatch(std::string_view peer) noexcept override { inner_.unwatch(peer); }

  std::optional<store::notice> receive(boot_time until) override {
    auto notice = inner_.receive(until);
    if (!notice || !drop_next_.exchange(false)) return notice;
    ++lost_;
    return std::nullopt;
  }

  void drop_next() noexcept { drop_next_ = true; }

 private:
  store::inbox& inner_;
  std::atomic<bool> drop_next_{false};
  std::atomic<std::uint64_t> lost_{0};
};

class faulty_store final : public store::session_store {
 public:
  faulty_store(std::unique_ptr<store::session_store> inner, fault_plan plan,
               std::shared_ptr<clock> on)
      : inner_(std::move(inner)),
        plan_(std::move(plan)),
        clock_(std::move(on)),
        inbox_(inner_->inbox()) {}

  const store::capabilities& can() const noexcept override { return inner_->can(); }
  const std::string& url() const noexcept override { return inner_->url(); }
  store::inbox& inbox() noexcept override { return inbox_; }
  result<std::vector<std::string>> names() override { return inner_->names(); }
  result<store::identity> identify() override { return inner_->identify(); }

  result<store::permits_reply> permits(std::string_view name,
                                       const store::permits_command& c) override {
    // A notification that is doubled wakes two.
    const bool repeatable = c.verb != store::permits_verb::notify;
    return with_fault(name, c.verb, [&] { return inner_->permits(name, c); }, repeatable);
  }

  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c) override {
    // The plan knows the verbs of permits; what changes nothing there changes nothing here.
    const auto verb = c.verb == store::countdown_verb::inspect ? store::permits_verb::inspect
                                                               : store::permits_verb::acquire;
    return with_fault(name, verb, [&] { return inner_->countdown(name, c); });
  }

  // A take is counted as often as it is carried out, and nothing here sends it twice by itself:
  // only refunds may be doubled unnoticed.
  result<store::rate_reply> rate(std::string_view name, const store::rate_command& c) override {
    const auto verb = c.verb == store::rate_verb::take     ? store::permits_verb::acquire
                      : c.verb == store::rate_verb::refund ? store::permits_verb::release
                                                           : store::permits_verb::inspect;
    return with_fault(
        name, verb, [&] { return inner_->rate(name, c); }, c.verb != store::rate_verb::take);
  }

 private:
  // The first answer to what can be done once only; to an acquire the second: it tells where that
  // one ended up.
  static result<store::permits_reply> latest(store::permits_verb verb,
                                             result<store::permits_reply> first,
                                             result<store::permits_reply> second) {
    if (verb != store::permits_verb::acquire || !first || !second) return first;
    second->replaced |= first->replaced;
    return second;
  }
  template <class Reply>
  static result<Reply> latest(store::permits_verb, result<Reply> first, const result<Reply>&) {
    return first;
  }

  template <class Call>
  auto with_fault(std::string_view name, store::permits_verb verb, Call call,
                  bool repeatable = true) -> decltype(call()) {
    switch (plan_.choose ? plan_.choose(++number_, name, verb) : fault::none) {
      case fault::drop_request:
        return lost_on_the_way(false);
      case fault::drop_reply:
        (void)call();
        return lost_on_the_way(true);
      case fault::duplicate: {
        auto first = call();
        if (!repeatable) return first;
        return latest(verb, std::move(first), call());
      }
      case fault::delay:
        wait();
        return call();
      case fault::drop_notice:
        inbox_.drop_next();
        return call();
      case fault::none:
        break;
    }
    return call();
  }

  void wait() {
    auto& on = clock_ ? *clock_ : real_clock();
    const boot_time until = saturated_add(on.now(), plan_.delay);
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock{mutex};
    while (on.now() < until) on.wait_until(lock, never, until);
  }

  std::unique_ptr<store::session_store> inner_;
  fault_plan plan_;
  std::shared_ptr<clock> clock_;
  faulty_inbox inbox_;
  std::atomic<std::uint64_t> number_{0};
};

}  // namespace

fault_plan random_faults(fault_rates rates) {
  struct dice {
    explicit dice(std::uint64_t seed) : random(seed) {}
    std::mutex mutex;
    std::mt19937_64 random;
  };
  const auto shared = std::make_shared<dice>(rates.seed);
  fault_plan plan;
  plan.choose = [=](std::uint64_t, std::string_view, store::permits_verb) {
    const std::lock_guard guard{shared->mutex};
    auto roll = static_cast<unsigned>(shared->random() % 1000);
    const auto falls = [&](unsigned rate) {
      const bool hit = roll < rate;
      roll -= hit ? 0 : rate;
      return hit;
    };
    if (falls(rates.drop_request)) return fault::drop_request;
    if (falls(rates.drop_reply)) return fault::drop_reply;
    if (falls(rates.duplicate)) return fault::duplicate;
    if (falls(rates.drop_notice)) return fault::drop_notice;
    return fault::none;
  };
  return plan;
}

std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)> faulty(
    fault_plan plan, std::shared_ptr<clock> on) {
  return [plan = std::move(plan), on = std::move(on)](std::unique_ptr<store::session_store> inner) {
    return std::make_unique<faulty_store>(std::move(inner), plan, on);
  };
}

}  // namespace holdfast::testing
