#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <holdfast/store/forwarding_store.hpp>
#include <holdfast/testing.hpp>
#include <mutex>
#include <random>
#include <span>
#include <utility>

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

  std::optional<store::notification> receive(boot_time until) override {
    auto notification = inner_.receive(until);
    if (!notification || !drop_next_.exchange(false)) return notification;
    ++lost_;
    return std::nullopt;
  }

  void drop_next() noexcept { drop_next_ = true; }

 private:
  store::inbox& inner_;
  std::atomic<bool> drop_next_{false};
  std::atomic<std::uint64_t> lost_{0};
};

class faulty_store final : public store::forwarding_store {
 public:
  faulty_store(std::unique_ptr<store::session_store> from, fault_plan plan,
               std::shared_ptr<clock> on)
      : forwarding_store(std::move(from)),
        plan_(std::move(plan)),
        clock_(std::move(on)),
        inbox_(inner().inbox()) {}

  store::inbox& inbox() noexcept override { return inbox_; }

  result<store::permits_reply> permits(std::string_view name,
                                       const store::permits_command& c) override {
    return with_fault(
        choose(name, c.verb), [&] { return inner().permits(name, c); },
        [&](auto first) {
          return again(c, std::move(first), [&] { return inner().permits(name, c); });
        });
  }

  result<store::countdown_reply> countdown(std::string_view name,
                                           const store::countdown_command& c) override {
    // The plan knows the verbs of permits only: an inspection stays one, and the others are planned
    // like an acquire.
    const auto verb = c.verb == store::countdown_verb::inspect ? store::permits_verb::inspect
                                                               : store::permits_verb::acquire;
    const auto call = [&] { return inner().countdown(name, c); };
    return with_fault(choose(name, verb), call, [&](auto first) { return (void)call(), first; });
  }

  // Each execution of a take counts, and no client sends a take twice by itself: so only the other
  // verbs are repeated.
  result<store::rate_reply> rate(std::string_view name, const store::rate_command& c) override {
    const auto call = [&] { return inner().rate(name, c); };
    return with_fault(choose(name, verb_of(c)), call, [&](auto first) {
      if (c.verb != store::rate_verb::take) (void)call();
      return first;
    });
  }

  std::vector<result<store::permits_reply>> execute_batch(
      std::span<const store::named_command> batch) override {
    std::vector<fault> faults;
    for (const auto& one : batch) faults.push_back(choose(one.name, one.command.verb));
    if (has(faults, fault::delay)) wait_until(after_delay());
    if (has(faults, fault::drop_notification)) inbox_.drop_next();
    const boot_time reply_comes = after_delay();
    auto replies = carry_out(batch, faults);
    if (has(faults, fault::delay_reply)) wait_until(reply_comes);
    return replies;
  }

  result<std::vector<store::permits_reply>> acquire_together(
      std::span<const store::named_command> all) override {
    std::vector<fault> faults;
    for (const auto& one : all) faults.push_back(choose(one.name, one.command.verb));
    const auto call = [&] { return inner().acquire_together(all); };
    return with_fault(worst(faults), call, [&](auto) { return call(); });
  }

  // Not repeated, because it takes tokens.
  result<store::admission> admit(const store::named_command& asks, std::string_view limiter,
                                 const store::rate_command& take) override {
    const std::array faults{choose(asks.name, asks.command.verb), choose(limiter, verb_of(take))};
    return with_fault(
        worst(faults), [&] { return inner().admit(asks, limiter, take); },
        [](auto first) { return first; });
  }

  bool permits_later(std::string_view name, const store::permits_command& c,
                     std::function<void(result<store::permits_reply>)> then) override {
    const fault what = choose(name, c.verb);
    if (what == fault::drop_request) return then(lost_on_the_way(false)), false;
    before(what);
    const bool to_come = inner().permits_later(name, c, on_its_way_back(what, std::move(then)));
    if (what != fault::duplicate) return to_come;
    return inner().permits_later(name, c, [](const auto&) {}) || to_come;
  }

  bool post(std::string_view name, const store::permits_command& c, listener& then) override {
    if (!posts()) return false;
    const fault what = choose(name, c.verb);
    if (what == fault::drop_request) return then(lost_on_the_way(false)), true;
    before(what);
    const bool twice = what == fault::duplicate;
    const bool second_is_seen = c.verb == store::permits_verb::acquire;
    listener nobody = [](const auto&) {};
    if (twice && second_is_seen) (void)forwarding_store::post(name, c, nobody);
    listener faulty = on_its_way_back(what, then);
    const bool posted = forwarding_store::post(name, c, faulty);
    if (posted && twice && !second_is_seen) (void)forwarding_store::post(name, c, nobody);
    return posted;
  }

 private:
  using permits_replies = std::vector<result<store::permits_reply>>;

  fault choose(std::string_view name, store::permits_verb verb) {
    return plan_.choose ? plan_.choose(++number_, name, verb) : fault::none;
  }
  static store::permits_verb verb_of(const store::rate_command& c) {
    return c.verb == store::rate_verb::take     ? store::permits_verb::acquire
           : c.verb == store::rate_verb::refund ? store::permits_verb::release
                                                : store::permits_verb::inspect;
  }
  static bool has(std::span<const fault> all, fault one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }
  static fault worst(std::span<const fault> all) {
    for (const fault f : {fault::drop_request, fault::drop_reply, fault::delay_reply, fault::delay,
                          fault::duplicate, fault::drop_notification}) {
      if (has(all, f)) return f;
    }
    return fault::none;
  }
  // A notification that is repeated wakes two waiters.
  static bool repeatable(const store::permits_command& c) {
    return c.verb != store::permits_verb::notify;
  }

  // Returns the reply that the client would see. For an acquire that is the second one, which tells
  // the state after both; for other commands, which take effect once, the first one.
  static result<store::permits_reply> latest(const store::permits_command& c,
                                             result<store::permits_reply> first,
                                             result<store::permits_reply> second) {
    if (c.verb != store::permits_verb::acquire || !first || !second) return first;
    second->replaced |= first->replaced;
    return second;
  }
  template <class Call>
  static result<store::permits_reply> again(const store::permits_command& c,
                                            result<store::permits_reply> first, Call call) {
    return repeatable(c) ? latest(c, std::move(first), call()) : std::move(first);
  }

  template <class Call, class Repeat>
  auto with_fault(fault what, Call call, Repeat repeat) -> decltype(call()) {
    if (what == fault::drop_request) return lost_on_the_way(false);
    before(what);
    const boot_time reply_comes = after_delay();
    auto reply = call();
    if (what == fault::drop_reply) return lost_on_the_way(true);
    if (what == fault::duplicate) return repeat(std::move(reply));
    if (what == fault::delay_reply) wait_until(reply_comes);
    return reply;
  }
  void before(fault what) {
    if (what == fault::delay) wait_until(after_delay());
    if (what == fault::drop_notification) inbox_.drop_next();
  }
  std::function<void(result<store::permits_reply>)> on_its_way_back(
      fault what, std::function<void(result<store::permits_reply>)> then) {
    if (what == fault::drop_reply) {
      return [then = std::move(then)](const auto&) { then(lost_on_the_way(true)); };
    }
    if (what != fault::delay_reply) return then;
    return [this, then = std::move(then), until = after_delay()](auto reply) {
      wait_until(until);
      then(std::move(reply));
    };
  }

  // Carries out the commands that are delivered as one batch, and those that are delivered twice as
  // another one.
  permits_replies carry_out(std::span<const store::named_command> batch,
                            std::span<const fault> faults) {
    std::vector<store::named_command> once, twice;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (faults[i] != fault::drop_request) once.push_back(batch[i]);
      if (is_twice(batch[i], faults[i])) twice.push_back(batch[i]);
    }
    auto first = once.empty() ? permits_replies{} : inner().execute_batch(once);
    auto second = twice.empty() ? permits_replies{} : inner().execute_batch(twice);
    permits_replies all;
    auto from_first = first.begin(), from_second = second.begin();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (faults[i] == fault::drop_request) {
        all.push_back(lost_on_the_way(false));
        continue;
      }
      auto reply = std::move(*from_first++);
      if (is_twice(batch[i], faults[i])) {
        reply = latest(batch[i].command, std::move(reply), std::move(*from_second++));
      }
      if (faults[i] == fault::drop_reply) reply = lost_on_the_way(true);
      all.push_back(std::move(reply));
    }
    return all;
  }
  static bool is_twice(const store::named_command& one, fault what) {
    return what == fault::duplicate && repeatable(one.command);
  }

  holdfast::clock& time() const { return clock_ ? *clock_ : real_clock(); }
  boot_time after_delay() const { return saturated_add(time().now(), plan_.delay); }
  void wait_until(boot_time until) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock{mutex};
    while (time().now() < until) time().wait_until(lock, never, until);
  }

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
    if (falls(rates.drop_notification)) return fault::drop_notification;
    if (falls(rates.delay_reply)) return fault::delay_reply;
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
