#include <holdfast/condition_variable.hpp>

#include "engine/names.hpp"
#include "primitive/common.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::subject;
using store::permits_outcome;
using store::permits_verb;

namespace {

constexpr std::chrono::microseconds place_lasts = 4s;

/// A place in line, from before the mutex is given up until one is woken.
class turn final : public engine::question {
 public:
  explicit turn(const subject& of) : of_(of) {
    command_.verb = permits_verb::acquire;
    command_.owner = of.core->ids().next();
    command_.kind = of.spec->kind;
    command_.capacity = of.spec->capacity;
    command_.wait = true;
    command_.lease_us = command_.place_us = place_lasts.count();
    command_.peer = of.core->peer();
    command_.note = of.spec->note;
  }
  const store::owner_id& owner() const noexcept { return command_.owner; }

  /// First it stands in line, and that is all; from then on it asks whether it was woken.
  result<std::optional<engine::wait_hint>> ask(bool) override {
    auto reply = of_.core->permits(of_.spec->name, command_);
    if (!reply) return std::move(reply.error());
    if (mismatches(*reply)) return mismatch(*reply);
    const bool stands = reply->outcome == permits_outcome::queued;
    const bool first = command_.verb == permits_verb::acquire;
    command_.verb = permits_verb::renew;
    if (first || !stands) return std::optional<engine::wait_hint>{};
    engine::wait_hint hint{std::chrono::microseconds(reply->look_again_us), {}};
    if (reply->position == 1 && of_.core->can().sees_death) hint.watch = std::move(reply->blockers);
    return std::optional<engine::wait_hint>{std::move(hint)};
  }

  // To be woken has to be answered, or another one is woken instead: by asking again.
  bool take(const store::notice&) override { return false; }

  // A place that stays behind ends by itself in seconds.
  void leave() const {
    store::permits_command c;
    c.verb = permits_verb::release;
    c.owner = command_.owner;
    if (!of_.core->permits(of_.spec->name, c)) {
      of_.core->keeper().abandon(of_.spec->name, c.owner, place_lasts);
    }
  }

  static bool mismatches(const store::permits_reply& reply) {
    return reply.outcome == permits_outcome::kind_mismatch ||
           reply.outcome == permits_outcome::capacity_mismatch;
  }
  static failure mismatch(const store::permits_reply& reply) {
    return {errc::kind_mismatch,
            "the name is in use as a " + std::string(to_string(reply.found.kind)) +
                ": a condition_variable has a name of its own, beside that of its mutex"};
  }

 private:
  const subject& of_;
  store::permits_command command_;
};

}  // namespace

struct condition_variable::state {
  subject of;
};

condition_variable::condition_variable(session s, const std::string& name)
    : state_(new state{subject(s, "condition_variable", name, {}, store::kind::condition_variable,
                               engine::max_permits, &store::capabilities::barrier)}) {}
condition_variable::~condition_variable() = default;

const std::string& condition_variable::name() const noexcept { return state_->of.spec->name; }

boot_time condition_variable::deadline(wait_time wait) const {
  return engine::deadline_of(*state_->of.core, wait);
}

std::uint32_t condition_variable::notify_all() { return notify(engine::max_permits); }

std::uint32_t condition_variable::notify(std::uint32_t most) {
  const subject& of = state_->of;
  store::permits_command c;
  c.verb = permits_verb::notify;
  c.kind = of.spec->kind;
  c.capacity = of.spec->capacity;
  c.weight = most;
  auto reply = of.core->permits(of.spec->name, c);
  if (!reply) of.fail(std::move(reply.error()));
  if (turn::mismatches(*reply)) of.fail(turn::mismatch(*reply));
  return reply->position;
}

std::cv_status condition_variable::wait_once(const any_lock& lock, boot_time until,
                                             std::stop_token stop) {
  const subject& of = state_->of;
  auto& core = *of.core;
  if (lock.of == nullptr) {
    of.fail({errc::not_owner, "waiting needs the mutex held: lock it, and check before you wait"});
  }
  lock.of->check();
  if (auto can = engine::ready(core, *of.spec, {}); !can) of.fail(std::move(can.error()));
  turn mine(of);
  engine::mailroom::slot slot(core.mailroom(), mine.owner());
  if (auto in = engine::wait_until_settled(core, slot, mine, forever, {}); !in) {
    mine.leave();
    of.fail(std::move(in.error()));
  }
  lock.unlock();
  auto woken = engine::wait_until_settled(core, slot, mine, until, std::move(stop));
  if (!woken) mine.leave();
  lock.lock();
  if (woken) return std::cv_status::no_timeout;
  const errc why = woken.error().code;
  if (why == errc::timed_out) return std::cv_status::timeout;
  if (why == errc::cancelled) return std::cv_status::no_timeout;
  of.fail(std::move(woken.error()));
}

}  // namespace holdfast
