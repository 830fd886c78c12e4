#include <holdfast/shared_mutex.hpp>

#include "base/names.hpp"
#include "diagnose/trace.hpp"
#include "local/reader_group.hpp"
#include "primitive/common.hpp"
#include "primitive/multi_member.hpp"
#include "session/session_impl.hpp"
#include "wait/async_forms.hpp"
#include "wait/readers.hpp"
#include "wait/resizing.hpp"

namespace holdfast {

using primitive::subject;
using primitive::thread_holds;

namespace {
// A writer takes all permits; a reader takes one.
constexpr std::uint32_t all = base::max_permits;
}  // namespace

struct shared_mutex::state {
  static constexpr mode writes = exclusive, reads = shared;
  subject of;
  preference prefers;
  std::shared_ptr<engine::reader_group> group;
  thread_holds writers;
  thread_holds readers;

  engine::acquire_params params(mode m) const {
    const bool first = (m == exclusive && prefers == preference::writer) ||
                       (m == shared && prefers == preference::reader);
    return {m == exclusive ? all : 1, first ? 1 : 0};
  }
  thread_holds& holds(mode m) { return m == exclusive ? writers : readers; }
  thread_holds& mine() { return writers.mine() ? writers : readers; }

  bool readers_pass() const noexcept { return prefers == preference::reader; }
  // Readers that share a hold would not hear of a writer elsewhere without notifications, and would
  // go on joining the hold.
  bool readers_share() const noexcept {
    return readers_pass() || (of.session->can().notifications && of.session->can().tells_holders);
  }

  result<lease> acquire(mode m, wait_time wait, std::stop_token stop) const {
    if (auto can = of.session->usable(); !can) return std::move(can.error());
    if (m == shared && readers_share()) {
      return engine::read(of.session, of.config, params(m), group, readers_pass(), wait,
                          std::move(stop));
    }
    if (m == shared)
      return engine::acquire(of.session, of.config, params(m), wait, std::move(stop));
    const engine::reader_group::writer waits(*group);
    return engine::acquire(of.session, of.config, params(m), wait, std::move(stop));
  }

  const std::shared_ptr<engine::hold>& behind(const lease& held) const;
  bool upgrade(const lease& held);
};

shared_mutex::shared_mutex(session s, std::string name, shared_mutex_options options)
    : state_(new state{subject(s, "shared_mutex", name, options, store::kind::shared_mutex, all,
                               &store::capabilities::shared),
                       options.preference,
                       {},
                       {},
                       {}}) {
  const auto& of = state_->of;
  if (options.preference != preference::fifo && !of.session->can().preferences) {
    of.fail({errc::unsupported,
             "this store serves readers and writers in order of arrival only: use "
             "preference::fifo"});
  }
  state_->group = of.session->reader_groups().at(of.config->name);
}

shared_mutex::~shared_mutex() = default;

bool shared_mutex::lock_within(mode m, wait_time wait, std::stop_token stop) {
  return primitive::lock_for_thread(
      state_->holds(m), state_->of, wait,
      "this thread holds the lock already; downgrade() and try_upgrade() change the mode",
      [&] { return acquire_within(m, wait, std::move(stop)); },
      &state_->holds(m == shared ? exclusive : shared));
}

std::optional<lease> shared_mutex::acquire_within(mode m, wait_time wait, std::stop_token stop) {
  return state_->of.in_time(state_->acquire(m, wait, std::move(stop)));
}

lease shared_mutex::take(mode m, std::stop_token stop) {
  return state_->of.taken(state_->acquire(m, no_limit, std::move(stop)));
}

pending<lease> async_acquire(shared_mutex& lock, wait_limit limit, std::stop_token stop) {
  const auto& s = *detail::access::of(lock);
  return engine::async_write(s.of.request(limit, std::move(stop), s.params(s.writes)), s.group);
}

pending<lease> async_acquire_shared(shared_mutex& lock, wait_limit limit, std::stop_token stop) {
  const auto& s = *detail::access::of(lock);
  auto request = s.of.request(limit, std::move(stop), s.params(s.reads));
  if (!s.readers_share()) return engine::async_acquire(std::move(request));
  return engine::async_read(std::move(request), s.group, s.readers_pass());
}

void shared_mutex::unlock() noexcept {
  const auto held = state_->writers.take();  // the destructor releases the lock
  if (!held) state_->of.report_misuse("unlock() by a thread that does not hold it");
}

void shared_mutex::unlock_shared() noexcept {
  const auto held = state_->readers.take();
  if (!held) state_->of.report_misuse("unlock_shared() by a thread that does not hold it");
}

const std::shared_ptr<engine::hold>& shared_mutex::state::behind(const lease& held) const {
  const auto& hold = engine::hold::shared_behind(held);
  if (hold == nullptr || !hold->belongs_to(*of.session, *of.config)) {
    of.fail({errc::not_owner, "the lease is empty, or of another lock"});
  }
  return hold;
}

namespace {
// The debug options identify a turn by its fence, so they need the new one. Without memory they
// forget the turn.
void note_new_fence(const lease& held, void (*note)(const lease&)) noexcept try {
  const auto hold = engine::hold::shared_behind(held);
  if (hold && hold->traced() && hold->session()) note(held);
} catch (...) {
  return;
}
}  // namespace

bool shared_mutex::state::upgrade(const lease& held) {
  auto changed = engine::resizing(*of.session, behind(held), all, group).run();
  if (!changed) of.fail(std::move(changed.error()));
  return *changed;
}

// Here and below: a callback for the loss may release the lease, and destroy the lock object.
void shared_mutex::downgrade(lease& held) {
  const auto kept = state_;
  auto changed = engine::resizing(*kept->of.session, kept->behind(held), 1).run();
  if (!changed) kept->of.fail(std::move(changed.error()));
}

bool shared_mutex::try_upgrade(lease& held) {
  const auto kept = state_;
  const bool upgraded = kept->upgrade(held);
  if (upgraded) note_new_fence(held, engine::trace::got);
  return upgraded;
}

namespace {

/// Changes the weight of a held lease, without a thread.
class pending_resize final
    : public engine::pending_request<bool, std::unique_ptr<engine::resizing>> {
 public:
  using pending_request::pending_request;

 private:
  void leave_to_keeper() noexcept override { request_->give_up(); }
  void let_go() override {}  // observed() needs the request
  failure observed(failure f) override { return request_->end(std::move(f)).error(); }
};

/// The result says whether there was room.
pending<bool> resize_later(const subject& of, std::shared_ptr<engine::hold> held,
                           std::uint32_t weight, std::shared_ptr<engine::reader_group> group) {
  return pending<bool>(std::make_shared<pending_resize>(
      of.request({}, {}), of.session->new_owner(),
      std::make_unique<engine::resizing>(*of.session, std::move(held), weight, std::move(group)),
      [](auto q) { return q->end(done{}); }));
}

}  // namespace

pending<done> async_downgrade(shared_mutex& lock, const lease& held) {
  const auto& s = *detail::access::of(lock);
  return engine::async_then<done>(resize_later(s.of, s.behind(held), 1, nullptr),
                                  [](bool) { return done{}; });
}

pending<bool> async_upgrade(shared_mutex& lock, const lease& held) {
  const auto& s = *detail::access::of(lock);
  return resize_later(s.of, s.behind(held), all, s.group);
}

// Memory is reserved first: without a place for it, the lease that was just changed would end.
void shared_mutex::downgrade() {
  const auto kept = state_;
  lease& mine = kept->writers.require(kept->of);
  thread_holds::place among_readers;
  downgrade(mine);
  kept->readers.put(std::move(among_readers), kept->writers.take());
}

bool shared_mutex::try_upgrade() {
  const auto kept = state_;
  lease& mine = kept->readers.require(kept->of);
  thread_holds::place among_writers;
  if (!kept->upgrade(mine)) return false;
  kept->writers.put(std::move(among_writers), kept->readers.take());
  if (const lease* const now = kept->writers.find()) {
    note_new_fence(*now, engine::trace::got_in_std_style);
  }
  return true;
}

multi_member::multi_member(shared_mutex& m, bool exclusive) {
  const auto& s = *detail::access::of(m);
  state_.reset(new state{{s.of.session, s.of.config, s.params(exclusive ? s.writes : s.reads)}});
}
multi_member::multi_member(shared_mutex& m) : multi_member(m, true) {}
multi_member shared(shared_mutex& m) { return {m, false}; }

std::uint64_t shared_mutex::fence() const noexcept { return state_->mine().fence(); }
void shared_mutex::check() const { state_->mine().check(state_->of); }
std::stop_token shared_mutex::lost() const { return state_->mine().lost(); }
const std::string& shared_mutex::name() const noexcept { return state_->of.config->name; }
clock& clock_of(const shared_mutex& m) noexcept { return m.state_->of.session->clock(); }

}  // namespace holdfast
