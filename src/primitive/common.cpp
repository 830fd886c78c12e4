#include "primitive/common.hpp"

#include "base/names.hpp"
#include "base/words.hpp"
#include "diagnose/trace.hpp"
#include "lease/lease_timer.hpp"

namespace holdfast::primitive {

namespace {

status check_max_hold(std::chrono::milliseconds max_hold) {
  if (max_hold >= min_lease) return done{};
  return failure{errc::invalid_argument, "max_hold of " + std::to_string(max_hold.count()) +
                                             " ms is shorter than the shortest lease, " +
                                             std::to_string(min_lease.count()) + " ms"};
}

status check_linger(std::chrono::microseconds linger) {
  if (linger >= linger.zero() && linger <= max_lease) return done{};
  return failure{errc::invalid_argument,
                 "linger of " + std::to_string(linger.count()) +
                     " us is not possible; choose from 0 (off) to 31 days (max_lease)"};
}

status check_supported(bool supported, std::string_view what, const engine::session_impl& session) {
  if (supported) return done{};
  const std::string_view why = session.can().refusal;
  return failure{errc::unsupported, "this store has no " + std::string(what) +
                                        (why.empty() ? "" : " (" + std::string(why) + ")") +
                                        "; docs/matrix.md says which stores have it"};
}

/// Rejects options of the local queue for the other kinds (fair_mutex, semaphore, …), whose threads
/// queue at the store.
status check_local_queue_options(const lock_options& o, store::kind of) {
  const lock_options unset;
  const char* const set = o.linger != unset.linger             ? "linger"
                          : o.local_time != unset.local_time   ? "local_time"
                          : o.max_bypass != unset.max_bypass   ? "max_bypass"
                          : o.max_waiters != unset.max_waiters ? "max_waiters"
                                                               : nullptr;
  if (set == nullptr) return done{};
  const bool of_readers = set == std::string_view("max_waiters");
  if (of_readers && of == store::kind::shared_mutex) return done{};
  return without_effect(set,
                        "only mutex and recursive_mutex queue the threads of a process locally");
}

/// An unknown word is written as "-". Other programs may write words of any content and length.
std::string known(std::string_view word) {
  return word == "-" ? std::string{} : base::shortened(word, base::max_reason_bytes);
}

// A time that this machine's clock cannot represent is shown as unknown.
std::chrono::system_clock::time_point shown_time(std::int64_t wall_at) noexcept {
  using std::chrono::system_clock, std::chrono::microseconds;
  constexpr auto last = std::chrono::duration_cast<microseconds>(system_clock::duration::max());
  if (wall_at > last.count() || wall_at < -last.count()) return {};
  return system_clock::time_point(microseconds(wall_at));
}

}  // namespace

failure in_use_as(store::kind other, std::string_view then) {
  return {errc::kind_mismatch,
          "the name is in use as a " + std::string(to_string(other)) + ": " + std::string(then)};
}

failure without_effect(std::string_view option, std::string_view why) {
  return {errc::invalid_argument,
          std::string(option) + " would have no effect: " + std::string(why) + "; leave it out"};
}

std::string short_id_of(const store::owner_id& owner) { return to_string(owner).substr(0, 8); }

participant describe(const store::owner_id& owner, std::uint32_t weight, std::string_view note,
                     std::int64_t since_wall_at, std::int64_t expires_at, std::int64_t now_at) {
  participant p;
  if (owner) p.short_id = short_id_of(owner);
  p.weight = weight;
  p.host = known(base::take_word(note));
  p.pid = base::number_at_start(base::take_word(note), p.pid);
  p.program = known(base::take_word(note));
  p.reason = base::shortened(note, base::max_reason_bytes);
  p.since = shown_time(since_wall_at);
  if (expires_at != 0) {
    p.expires_in =
        std::chrono::milliseconds(expires_at > now_at ? (expires_at - now_at) / 1000 : 0);
  }
  return p;
}

status set_lease(engine::lock_config& of, std::chrono::milliseconds lease,
                 const store::capabilities& can) {
  if (auto ok = base::check_lease(lease, can); !ok) return ok;
  const std::chrono::milliseconds step{can.lease_step_ms};
  of.lease =
      std::min(lease, engine::lease_timer::lasting(saturated_nanoseconds(of.max_hold), step));
  return done{};
}

subject::subject(const holdfast::session& s, std::string_view what, const std::string& name,
                 const lock_options& options, store::kind kind, std::uint32_t capacity,
                 bool store::capabilities::* needs, bool through_local_queue)
    : session(s.impl()), operation(what) {
  const auto& c = *session;
  const auto made = std::make_shared<engine::lock_config>(engine::lock_config{options});
  config = made;
  made->name = c.full_name(name);
  const auto require = [this](status ok) {
    if (!ok) fail(std::move(ok.error()));
  };
  require(c.usable());
  require(base::check_name(name, c.can().max_name_bytes));
  require(base::check_name(made->name, c.can().max_name_bytes));
  require(base::check_reason(options.reason));
  require(check_max_hold(options.max_hold));
  const bool given = options.lease != options.lease.zero();
  require(set_lease(*made, given ? options.lease : c.options().lease, c.can()));
  require(check_linger(options.linger));
  require(check_supported(c.can().*needs, what, c));
  // Without these notifications a holder that keeps the lock idle would not hear that it is wanted.
  const bool told = c.can().notifications && c.can().tells_holders;
  const bool lingers_untold = options.linger > options.linger.zero() && !told;
  require(check_supported(!lingers_untold, "notifications to a holder, which linger needs", c));
  made->traced = c.options().lock_order || c.options().detect_deadlocks;
  made->kind = kind;
  made->capacity = capacity;
  made->note = c.note(options.reason);
  made->in_order = needs == &store::capabilities::fair;
  if (!through_local_queue) {
    require(check_local_queue_options(options, kind));
    return;
  }
  made->local_queue = session->local_queue_of(made->name);
  if (options.linger > options.linger.zero()) made->local_queue->expect_one();
}

subject::~subject() {
  if (config->linger == config->linger.zero() || session->forked()) return;
  if (const auto unused = config->local_queue->expect_one_less()) {
    unused->give_back();
  }
}

void subject::require_usable() const {
  if (auto can = session->usable(); !can) fail(std::move(can.error()));
}

std::optional<lease> subject::acquire(const engine::acquire_params& c, wait_time wait,
                                      std::stop_token stop) const {
  return in_time(engine::acquire(session, config, c, wait, std::move(stop)));
}

lease subject::take(const engine::acquire_params& c, wait_time wait, std::stop_token stop) const {
  return taken(engine::acquire(session, config, c, wait, std::move(stop)));
}

std::optional<lease> subject::in_time(result<lease> got) const {
  if (got) return std::move(*got);
  (void)settled(std::move(got.error()));
  return std::nullopt;
}

bool subject::settled(status ended) const {
  if (ended) return true;
  if (engine::was_given_up(ended.error().code)) return false;
  fail(std::move(ended.error()));
}

lease subject::taken(result<lease> got) const {
  if (!got) fail(std::move(got.error()));
  return std::move(*got);
}

engine::async_request subject::request(wait_limit limit, std::stop_token stop,
                                       const engine::acquire_params& how) const {
  return {session, config, operation, {session->now(), limit.wait()}, std::move(stop), how};
}

void subject::fail(failure f) const {
  throw_failure(session->located(std::move(f), operation, config->name));
}

void subject::report_misuse(std::string_view detail) const noexcept {
  primitive::report_misuse(*session, config->name, to_string(config->kind), detail);
}

void report_misuse(engine::session_impl& session, std::string_view name, std::string_view lock_kind,
                   std::string_view detail) noexcept {
  if (session.forked()) return;
  session.tell({.kind = event_kind::misuse,
                .name = name,
                .lock_kind = lock_kind,
                .code = errc::not_owner,
                .detail = detail});
}

void thread_holds::put(lease held) {
  if (engine::hold::behind(held)->traced()) engine::trace::got_in_std_style(held);
  by_thread::put(std::move(held));
}

std::uint64_t thread_holds::fence() const noexcept {
  const lease* const held = find();
  return held == nullptr ? 0 : held->fence();
}

std::stop_token thread_holds::lost() const {
  const lease* const held = find();
  return held == nullptr ? std::stop_token{} : held->lost();
}

thread_hold& thread_holds::require(const subject& of) const {
  of.require_usable();
  thread_hold* const held = find();
  if (held == nullptr) of.fail({errc::not_owner, "this thread does not hold the lock"});
  return *held;
}

void thread_holds::check(const subject& of) const { require(of).check(); }

}  // namespace holdfast::primitive
