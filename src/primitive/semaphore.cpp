#include <holdfast/semaphore.hpp>

#include "base/names.hpp"
#include "primitive/common.hpp"
#include "primitive/multi_member.hpp"
#include "wait/async_forms.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast {

using primitive::subject;

namespace {

void check_capacity(const subject& of) {
  const auto capacity = of.config->capacity;
  if (capacity >= 1 && capacity <= base::max_permits) return;
  of.fail({errc::invalid_argument,
           "a semaphore has from 1 to 2^30 permits, not " + std::to_string(capacity)});
}

subject make_subject(const session& s, std::string_view what, const std::string& name,
                     std::uint32_t capacity, const lock_options& options,
                     bool store::capabilities::* needs = &store::capabilities::semaphore) {
  return subject(s, what, name, options, store::kind::semaphore, capacity, needs);
}

// Rejects options that need a hold: no session keeps one for such a permit, and any program that
// knows its id extends or releases it.
void check_ends_by_itself(const subject& of, const lock_options& o) {
  const lock_options unset;
  const char* const set = o.lease != unset.lease         ? "lease"
                          : o.renew != unset.renew       ? "renew"
                          : o.max_hold != unset.max_hold ? "max_hold"
                          : o.unconfirmed_release != unset.unconfirmed_release
                              ? "unconfirmed_release"
                              : nullptr;
  if (set == nullptr) return;
  of.fail(primitive::without_effect(
      set, "each call states how long its permit lasts, and the library does not renew it"));
}

// Each permit may be a slot of its own, and a search for a free one reads all slots.
void check_slots(const subject& of) {
  const auto& can = of.session->can();
  if (can.semaphore || of.config->capacity <= can.max_slots) return;
  of.fail({errc::unsupported, "this store keeps each permit separately, " +
                                  std::to_string(can.max_slots) + " for a name at most, not " +
                                  std::to_string(of.config->capacity)});
}

void check_weight(const subject& of, std::uint32_t weight) {
  if (weight >= 1 && weight <= of.config->capacity) return;
  of.fail({errc::invalid_argument, "a request for " + std::to_string(weight) + " of " +
                                       std::to_string(of.config->capacity) +
                                       " permits can never succeed"});
}

result<std::uint32_t> free_permits(const engine::lock_config& of,
                                   const store::permits_reply& reply) {
  const bool other_kind = reply.outcome == store::permits_outcome::kind_mismatch;
  const auto& found = reply.found;
  const bool in_use = !found.holders.empty() || !found.queue.empty();
  if (other_kind || (in_use && found.kind != of.kind)) return primitive::in_use_as(found.kind);
  if (in_use && found.capacity != of.capacity) {
    return failure{errc::capacity_mismatch,
                   "the name is in use with " + std::to_string(found.capacity) + " permits, not " +
                       std::to_string(of.capacity) + ": use the same number everywhere"};
  }
  std::uint32_t held = 0;
  for (const auto& h : found.holders) held += h.weight;
  return of.capacity - std::min(held, of.capacity);
}

store::permits_command look_at(const engine::lock_config& what) {
  return {.kind = what.kind, .capacity = what.capacity};
}

// The meaning of a reply: how many permits are free, or whether the command was carried out.
auto free_of(const subject& of) {
  return [what = of.config](const auto& reply) { return free_permits(*what, reply); };
}
std::uint32_t available_of(const subject& of) { return of.ask(look_at(*of.config), free_of(of)); }
pending<std::uint32_t> async_available_of(const subject& of) {
  return of.ask_later<std::uint32_t>(look_at(*of.config), free_of(of));
}
auto whether(store::permits_outcome yes) {
  return [yes](const store::permits_reply& reply) -> result<bool> { return reply.outcome == yes; };
}

}  // namespace

struct semaphore::state {
  subject of;
};

semaphore::semaphore(session s, std::string name, std::uint32_t capacity, lock_options options)
    : state_(new state{make_subject(s, "semaphore", name, capacity, options)}) {
  check_capacity(state_->of);
}
semaphore::~semaphore() = default;

lease semaphore::acquire(std::uint32_t weight, std::stop_token stop) {
  check_weight(state_->of, weight);
  return state_->of.take({weight, 0}, no_limit, std::move(stop));
}

std::optional<lease> semaphore::acquire_within(std::uint32_t weight, wait_time wait,
                                               std::stop_token stop) {
  check_weight(state_->of, weight);
  return state_->of.acquire({weight, 0}, wait, std::move(stop));
}

pending<lease> async_acquire(semaphore& of, std::uint32_t weight, wait_limit limit,
                             std::stop_token stop) {
  const auto& subject = detail::access::of(of)->of;
  check_weight(subject, weight);
  return engine::async_acquire(subject.request(limit, std::move(stop), {weight, 0}));
}

multi_member::multi_member(semaphore& s, std::uint32_t weight) {
  const auto& of = detail::access::of(s)->of;
  check_weight(of, weight);
  state_.reset(new state{{of.session, of.config, {weight, 0}}});
}
multi_member::multi_member(semaphore& s) : multi_member(s, 1) {}
multi_member permits(semaphore& s, std::uint32_t weight) { return {s, weight}; }

std::uint32_t semaphore::available() const { return available_of(state_->of); }
pending<std::uint32_t> async_available(const semaphore& of) {
  return async_available_of(detail::access::of(of)->of);
}
std::uint32_t semaphore::capacity() const noexcept { return state_->of.config->capacity; }
const std::string& semaphore::name() const noexcept { return state_->of.config->name; }

// ---- counting_semaphore

struct counting_semaphore::state {
  subject of;
  std::mutex mutex;
  std::vector<lease> held;

  void put(lease permit) {
    const std::lock_guard guard{mutex};
    held.push_back(std::move(permit));
  }
};

counting_semaphore::counting_semaphore(session s, std::string name, std::uint32_t capacity,
                                       lock_options options)
    : state_(new state{make_subject(s, "counting_semaphore", name, capacity, options,
                                    &store::capabilities::unit_permits),
                       {},
                       {}}) {
  check_capacity(state_->of);
  check_slots(state_->of);
}
counting_semaphore::~counting_semaphore() = default;

void counting_semaphore::acquire() { state_->put(state_->of.take({}, no_limit, {})); }

bool counting_semaphore::acquire_within(wait_time wait) {
  auto got = state_->of.acquire({}, wait, {});
  if (got) state_->put(std::move(*got));
  return got.has_value();
}

void counting_semaphore::release(std::uint32_t permits) {
  state_->of.require_usable();
  std::vector<lease> given_back;
  {
    const std::lock_guard guard{state_->mutex};
    auto& held = state_->held;
    if (permits > held.size()) {
      state_->of.fail({errc::not_owner, "release(" + std::to_string(permits) +
                                            "), and this object has acquired " +
                                            std::to_string(held.size()) + " permits"});
    }
    const auto first = held.end() - static_cast<std::ptrdiff_t>(permits);
    given_back.assign(std::move_iterator(first), std::move_iterator(held.end()));
    held.erase(first, held.end());
  }
}

std::uint32_t counting_semaphore::max() const noexcept { return state_->of.config->capacity; }

// ---- expiring_semaphore

struct expiring_semaphore::state {
  subject of;

  engine::lock_config config_for(std::chrono::milliseconds lease) const {
    if (auto ok = base::check_lease(lease, of.session->can()); !ok) of.fail(std::move(ok.error()));
    auto s = *of.config;
    s.lease = lease;
    s.outlives_session = true;
    return s;
  }

  store::permits_command about(store::permits_verb verb, std::string_view id,
                               std::chrono::milliseconds lease) const {
    auto c = look_at(*of.config);
    c.verb = verb;
    c.outlives_session = true;
    c.lease_us = std::chrono::microseconds(lease).count();
    if (!store::parse_owner_id(id, c.owner)) {
      of.fail({errc::invalid_argument, "a permit's id has 32 hexadecimal digits"});
    }
    return c;
  }
  store::permits_command extension(std::string_view id, std::chrono::milliseconds lease) const {
    (void)config_for(lease);
    return about(store::permits_verb::renew, id, lease);
  }
};

expiring_semaphore::expiring_semaphore(session s, std::string name, std::uint32_t capacity,
                                       lock_options options)
    : state_(new state{make_subject(s, "expiring_semaphore", name, capacity, options,
                                    &store::capabilities::expiring)}) {
  check_capacity(state_->of);
  check_ends_by_itself(state_->of, options);
}
expiring_semaphore::~expiring_semaphore() = default;

permit expiring_semaphore::acquire(std::chrono::milliseconds lease, std::stop_token stop) {
  auto got = acquire_within(lease, no_limit, std::move(stop));
  if (!got) state_->of.fail(engine::asked_to_stop());
  return std::move(*got);
}

std::optional<permit> expiring_semaphore::acquire_within(std::chrono::milliseconds lease,
                                                         wait_time wait, std::stop_token stop) {
  const auto config = state_->config_for(lease);
  auto got = engine::acquire_permit(*state_->of.session, config, wait, std::move(stop));
  if (got) {
    try {
      return permit{to_string(got->owner), engine::public_fence(got->fence), lease};
    } catch (...) {  // no memory
      state_->of.session->keeper().abandon(config.name, got->owner, lease);
      throw;
    }
  }
  (void)state_->of.settled(std::move(got.error()));
  return std::nullopt;
}

pending<permit> async_acquire(expiring_semaphore& of, std::chrono::milliseconds lease,
                              wait_limit limit, std::stop_token stop) {
  const auto& s = *detail::access::of(of);
  auto request = s.of.request(limit, std::move(stop));
  request.what = std::make_shared<engine::lock_config>(s.config_for(lease));
  return engine::async_acquire_permit(std::move(request));
}

bool expiring_semaphore::try_extend(std::string_view id, std::chrono::milliseconds lease) {
  return state_->of.ask(state_->extension(id, lease), whether(store::permits_outcome::granted));
}
pending<bool> async_extend(expiring_semaphore& of, std::string_view id,
                           std::chrono::milliseconds lease) {
  const auto& s = *detail::access::of(of);
  return s.of.ask_later<bool>(s.extension(id, lease), whether(store::permits_outcome::granted));
}

bool expiring_semaphore::release(std::string_view id) {
  return state_->of.ask(state_->about(store::permits_verb::release, id, {}),
                        whether(store::permits_outcome::done));
}
pending<bool> async_release(expiring_semaphore& of, std::string_view id) {
  const auto& s = *detail::access::of(of);
  return s.of.ask_later<bool>(s.about(store::permits_verb::release, id, {}),
                              whether(store::permits_outcome::done));
}

std::uint32_t expiring_semaphore::available() const { return available_of(state_->of); }
pending<std::uint32_t> async_available(const expiring_semaphore& of) {
  return async_available_of(detail::access::of(of)->of);
}
std::uint32_t expiring_semaphore::capacity() const noexcept { return state_->of.config->capacity; }
const std::string& expiring_semaphore::name() const noexcept { return state_->of.config->name; }

}  // namespace holdfast
