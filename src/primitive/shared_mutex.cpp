#include <holdfast/shared_mutex.hpp>

#include "engine/core.hpp"
#include "engine/names.hpp"
#include "engine/reader_group.hpp"
#include "engine/trace.hpp"
#include "primitive/common.hpp"
#include "primitive/multi_member.hpp"

namespace holdfast {

using primitive::subject;
using primitive::thread_holds;

namespace {
// A writer takes all there is; a reader one.
constexpr std::uint32_t all = engine::max_permits;
}  // namespace

struct shared_mutex::state {
  subject of;
  preference prefers;
  std::shared_ptr<engine::reader_group> group;
  thread_holds writers;
  thread_holds readers;

  engine::claim claim(mode m) const {
    const bool first = (m == exclusive && prefers == preference::writer) ||
                       (m == shared && prefers == preference::reader);
    return {m == exclusive ? all : 1, first ? 1 : 0};
  }
  thread_holds& holds(mode m) { return m == exclusive ? writers : readers; }
  thread_holds& mine() { return writers.mine() ? writers : readers; }

  result<lease> acquire(mode m, wait_time wait, std::stop_token stop) const {
    const bool passes = prefers == preference::reader;
    // Readers who share a hold would not hear of a writer elsewhere, and go on joining it.
    const bool together = passes || of.core->can().notices;
    if (m == shared && together && of.spec->traced) {
      const engine::trace seen(of.core, *of.spec, claim(m), wait, std::move(stop));
      auto got = group->enter(of.core, of.spec, claim(m), passes, wait, seen.stop());
      if (got) engine::trace::got(*got);
      return got;
    }
    if (m == shared && together) {
      return group->enter(of.core, of.spec, claim(m), passes, wait, std::move(stop));
    }
    if (m == shared) return engine::acquire(of.core, of.spec, claim(m), wait, std::move(stop));
    const engine::reader_group::writer waits(*group);
    return engine::acquire(of.core, of.spec, claim(m), wait, std::move(stop));
  }

  engine::hold& behind(lease& held) const;
};

shared_mutex::shared_mutex(session s, std::string name, shared_mutex_options options)
    : state_(new state{subject(s, "shared_mutex", name, options, store::kind::shared_mutex, all,
                               &store::capabilities::shared),
                       options.preference,
                       {},
                       {},
                       {}}) {
  const auto& of = state_->of;
  if (options.preference != preference::fifo && !of.core->can().preferences) {
    of.fail({errc::unsupported, "the store " + of.core->url() +
                                    " serves readers and writers in order of arrival only: use "
                                    "preference::fifo"});
  }
  state_->group = of.core->reader_groups().at(of.spec->name, of.core->clock());
}

shared_mutex::~shared_mutex() = default;

bool shared_mutex::lock_within(mode m, wait_time wait, std::stop_token stop) {
  if (state_->writers.mine() || state_->readers.mine()) {
    if (wait != no_limit) return false;
    state_->of.fail(
        {errc::deadlock,
         "this thread holds it already; downgrade() and try_upgrade() change the mode"});
  }
  auto got = state_->of.in_time(state_->acquire(m, wait, std::move(stop)));
  if (!got) return false;
  state_->holds(m).put(std::move(*got));
  return true;
}

std::optional<lease> shared_mutex::acquire_within(mode m, wait_time wait, std::stop_token stop) {
  return state_->of.in_time(state_->acquire(m, wait, std::move(stop)));
}

lease shared_mutex::take(mode m, std::stop_token stop) {
  return state_->of.taken(state_->acquire(m, no_limit, std::move(stop)));
}

pending<lease> async_acquire(shared_mutex& lock, wait_limit limit, std::stop_token stop) {
  const auto& s = *lock.state_;
  return engine::async_acquire(s.of.order(limit, std::move(stop)),
                               s.claim(shared_mutex::exclusive));
}

pending<lease> async_acquire_shared(shared_mutex& lock, wait_limit limit, std::stop_token stop) {
  const auto& s = *lock.state_;
  return engine::async_acquire(s.of.order(limit, std::move(stop)), s.claim(shared_mutex::shared));
}

void shared_mutex::unlock() noexcept {
  const lease held = state_->writers.take();  // its end is the release
  if (!held) state_->of.report_misuse("unlock() by a thread that does not hold it");
}

void shared_mutex::unlock_shared() noexcept {
  const lease held = state_->readers.take();
  if (!held) state_->of.report_misuse("unlock_shared() by a thread that does not hold it");
}

engine::hold& shared_mutex::state::behind(lease& held) const {
  engine::hold* const hold = engine::hold::behind(held);
  if (hold == nullptr || !hold->belongs_to(*of.core, *of.spec)) {
    of.fail({errc::not_owner, "the lease is empty, or of another lock"});
  }
  return *hold;
}

void shared_mutex::downgrade(lease& held) {
  auto changed = state_->behind(held).resize(1);
  if (!changed) state_->of.fail(std::move(changed.error()));
}

bool shared_mutex::try_upgrade(lease& held) {
  engine::hold& hold = state_->behind(held);
  if (!state_->group->keep_alone(hold)) return false;
  auto changed = hold.resize(all);
  if (!changed) state_->of.fail(std::move(changed.error()));
  return *changed;
}

void shared_mutex::downgrade() {
  state_->writers.with_mine(state_->of, [&](lease& held) { downgrade(held); });
  state_->readers.put(state_->writers.take());
}

bool shared_mutex::try_upgrade() {
  const bool upgraded =
      state_->readers.with_mine(state_->of, [&](lease& held) { return try_upgrade(held); });
  if (upgraded) state_->writers.put(state_->readers.take());
  return upgraded;
}

multi_member::multi_member(shared_mutex& m, bool exclusive)
    : state_(new state{
          {m.state_->of.core, m.state_->of.spec,
           m.state_->claim(exclusive ? shared_mutex::exclusive : shared_mutex::shared)}}) {}
multi_member::multi_member(shared_mutex& m) : multi_member(m, true) {}
multi_member shared(shared_mutex& m) { return {m, false}; }

std::uint64_t shared_mutex::fence() const noexcept { return state_->mine().fence(); }
void shared_mutex::check() const { state_->mine().check(state_->of); }
std::stop_token shared_mutex::lost() const { return state_->mine().lost(); }
const std::string& shared_mutex::name() const noexcept { return state_->of.spec->name; }

}  // namespace holdfast
