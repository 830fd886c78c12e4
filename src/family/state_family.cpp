#include "family/state_family.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>

#include "family/record_codec.hpp"
#include "family/record_end.hpp"
#include "family/state_sweep.hpp"
#include "kernel/countdown.hpp"
#include "kernel/permits.hpp"
#include "kernel/rate.hpp"

namespace holdfast::family {

using namespace store;

namespace {

/// True while this thread carries out an admission by two calls: it may hold a permit when it takes
/// the tokens.
thread_local bool admits = false;

struct admission_by_two_calls {
  admission_by_two_calls() noexcept { admits = true; }
  ~admission_by_two_calls() { admits = false; }
  admission_by_two_calls(const admission_by_two_calls&) = delete;
  admission_by_two_calls& operator=(const admission_by_two_calls&) = delete;
};

/// A record is read and written as a whole, so it must not grow without bound.
constexpr std::size_t most_buckets = 10'000;

/// Decodes a record as the type that the command needs.
template <class Record>
class decoded {
 public:
  /// Returns false if it cannot be that type: `wrong` says why, or `other` holds a record of
  /// another kind.
  bool read(std::string_view text, const moment& now) {
    record = {};
    last_fence_ = 0;
    wrong.reset();
    other = {};
    if (text.empty()) return true;
    auto any = decode(text, last_fence_);
    if (!any) return wrong = std::move(any.error()), false;
    if (auto* const mine = std::get_if<Record>(&*any)) return record = std::move(*mine), true;
    expire(*any, now);
    if (in_use(*any)) return other = std::move(*any), false;
    if constexpr (std::is_same_v<Record, permits_record>) record.last_fence = last_fence_;
    return true;
  }

  /// The text of a latch or a limiter. If the name is not in use, the last fence of the lock that
  /// had it before is kept.
  void write_as(bool used, const moment& now, std::string& text) const {
    if (!used) return write_unused(last_fence_, now, text);
    text.clear();
    encode(record, text, last_fence_);
  }

  Record record;
  any_record other;
  std::optional<failure> wrong;

 private:
  std::uint64_t last_fence_ = 0;
};

/// A change of a record, and whether it created the record.
class record_change : public transition {
 public:
  bool made = false;

 protected:
  ~record_change() = default;
  const std::string* put(std::string_view before) {
    made = before.empty() && !text_.empty();
    return &text_;
  }
  std::string text_;
};

class permits_transition final : public record_change {
 public:
  permits_transition(const permits_command& command, std::span<const std::string> dead,
                     const kernel::promises& of)
      : command_(command), dead_(dead), promises_(of) {}

  const std::string* apply(std::string_view text, const moment& now) override {
    if (!in_.read(text, now)) return refuse(in_.wrong, in_.other), nullptr;
    if (!step(in_.record, now)) return nullptr;
    write(in_.record, now, text_);
    return put(text);
  }

  void may_have_been_stored() noexcept override {
    left_ =
        left_ || (command_.verb == permits_verb::release && reply.outcome == permits_outcome::done);
    replaced_ = replaced_ || reply.replaced;
    if (command_.verb == permits_verb::evict) evicted_ = std::max(evicted_, reply.position);
    came_ = came_ || reply.outcome == permits_outcome::granted ||
            reply.outcome == permits_outcome::queued;
  }

  bool only_asks() const noexcept override {
    const bool is_question = command_.verb == permits_verb::renew && command_.wait;
    return is_question || command_.verb == permits_verb::inspect;
  }

  /// Whether the owner may be in the record although this attempt was undone: an earlier attempt,
  /// whose answer was lost, may have been stored.
  bool may_stand() const noexcept { return came_; }

  /// Where the store does not notify: notifications for the other participants of this session, if
  /// a poll has found that its barrier has opened (or for the waiters that were woken together with
  /// this one). went_on_at() is the record's last fence at that moment.
  std::vector<notification>& others() noexcept { return others_; }
  std::uint64_t went_on_at() const noexcept { return went_on_at_; }

  /// Changes a record that was decoded already. Returns false if nothing has to be written. An
  /// inspection leaves expired entries in the record, for a command that notifies of their end.
  bool step(permits_record& record, const moment& now) {
    if (command_.verb != permits_verb::inspect) return carry_out(record, now);
    permits_record looked_at = record;
    return carry_out(looked_at, now), false;
  }

  /// Makes the reply for a record that cannot be read, or is of another kind.
  void refuse(const std::optional<failure>& wrong, const any_record& other) {
    reply = {};
    wrong_ = wrong;
    if (wrong_) return;
    const bool asks = command_.verb == permits_verb::acquire ||
                      command_.verb == permits_verb::inspect ||
                      command_.verb == permits_verb::notify;
    reply.outcome = asks ? permits_outcome::kind_mismatch : permits_outcome::absent;
    reply.found.kind = kind_of(other);
    count_what_went();
  }

  const std::optional<failure>& wrong() const { return wrong_; }
  permits_reply reply;

 private:
  bool carry_out(permits_record& record, const moment& now) {
    wrong_.reset();
    const bool cleaned = kernel::forget(record, dead_);
    reply = kernel::apply(record, command_, now, promises_);
    const bool together = record.kind == kind::barrier || record.kind == kind::condition_variable;
    others_.clear();
    const bool goes_on = together && reply.outcome == permits_outcome::granted;
    if (goes_on && command_.wait) find_others(record);  // not for the keeper's renewals
    count_what_went();
    return cleaned || reply.changed;
  }

  void find_others(const permits_record& record) {
    const bool untold = !promises_.tells && reply.tell.empty();
    if (!untold || command_.peer.empty()) return;
    went_on_at_ = record.last_fence;
    for (const holder& h : record.holders) {
      if (h.peer != command_.peer || h.owner == command_.owner) continue;
      others_.push_back({notification_kind::opened, {}, h.owner, 0, 0, h.peer});
    }
  }

  // Counts what an attempt whose answer was lost has removed.
  void count_what_went() noexcept {
    reply.position = std::max(reply.position, evicted_);
    const bool went = left_ || evicted_ > 0;
    if (went && reply.outcome == permits_outcome::absent) reply.outcome = permits_outcome::done;
    reply.replaced = reply.replaced || replaced_;
    reply.repeated = came_;
  }

  const permits_command& command_;
  std::span<const std::string> dead_;
  kernel::promises promises_;
  std::vector<notification> others_;
  std::uint64_t went_on_at_ = 0;
  bool left_ = false;      ///< set if an attempt whose answer was lost may have released the lock
  bool replaced_ = false;  ///< the same for the owner to be replaced
  std::uint32_t evicted_ = 0;  ///< how many holders that attempt may have evicted
  bool came_ = false;
  std::optional<failure> wrong_;
  decoded<permits_record> in_;
};

/// Several commands for one name, one after the other: its record is read and written once.
/// Otherwise a thousand waiters of one name would read and write a thousand queue entries a
/// thousand times.
class permits_steps final : public record_change {
 public:
  void add(permits_transition& next) { all_.push_back(&next); }

  const std::string* apply(std::string_view text, const moment& now) override {
    if (all_.size() == 1) return all_.front()->apply(text, now);
    if (!in_.read(text, now)) {
      for (auto* const one : all_) one->refuse(in_.wrong, in_.other);
      return nullptr;
    }
    bool changed = false;
    for (auto* const one : all_) changed = one->step(in_.record, now) || changed;
    if (!changed) return nullptr;
    write(in_.record, now, text_);
    return put(text);
  }
  void may_have_been_stored() noexcept override {
    for (auto* const one : all_) one->may_have_been_stored();
  }
  bool only_asks() const noexcept override {
    return std::all_of(all_.begin(), all_.end(), [](const auto* one) { return one->only_asks(); });
  }

 private:
  std::vector<permits_transition*> all_;
  decoded<permits_record> in_;
};

class countdown_transition final : public record_change {
 public:
  countdown_transition(const countdown_command& command, bool tells)
      : command_(command), tells_(tells) {}

  const std::string* apply(std::string_view text, const moment& now) override {
    if (!in_.read(text, now)) return other_kind();
    reply = kernel::apply(in_.record, command_, now, tells_);
    if (!reply.changed) return nullptr;
    in_.write_as(in_.record.count != 0 || !in_.record.arrivals.empty(), now, text_);
    return put(text);
  }

  bool only_asks() const noexcept override { return command_.verb == countdown_verb::inspect; }

  const std::optional<failure>& wrong() const { return in_.wrong; }
  countdown_reply reply;

 private:
  const std::string* other_kind() {
    reply = {};
    if (in_.wrong) return nullptr;
    reply.outcome = countdown_outcome::kind_mismatch;
    reply.found_kind = kind_of(in_.other);
    return nullptr;
  }

  const countdown_command& command_;
  const bool tells_;
  decoded<countdown_record> in_;
};

class rate_transition final : public record_change {
 public:
  explicit rate_transition(const rate_command& command) : command_(command) {}

  const std::string* apply(std::string_view text, const moment& now) override {
    if (!in_.read(text, now)) return other_kind();
    reply = kernel::apply(in_.record, command_, now);
    if (!reply.changed) return nullptr;
    kernel::expire(in_.record, now);
    if (in_.record.buckets.size() > most_buckets) return too_many_buckets();
    in_.write_as(!in_.record.buckets.empty() || !in_.record.refunds.empty(), now, text_);
    return put(text);
  }

  // Buckets do not say who took their tokens, and two clients may write the same.
  bool is_recognizable() const noexcept override { return command_.verb != rate_verb::take; }

  const std::optional<failure>& wrong() const { return in_.wrong; }
  rate_reply reply;

 private:
  const std::string* other_kind() {
    reply = {};
    if (in_.wrong) return nullptr;
    reply.outcome = rate_outcome::kind_mismatch;
    reply.found_kind = kind_of(in_.other);
    return nullptr;
  }

  const std::string* too_many_buckets() {
    in_.wrong =
        failure{errc::overloaded,
                std::to_string(most_buckets) +
                    " keys of this limiter are not full, which is all that this store keeps "
                    "of one name: nothing was taken; use several names, or Redis"};
    return nullptr;
  }

  const rate_command& command_;
  decoded<rate_record> in_;
};

/// Reads the buckets, and changes nothing.
class buckets_transition final : public transition {
 public:
  const std::string* apply(std::string_view text, const moment& now) override {
    (void)in_.read(text, now);
    found = {now.now_at, in_.record.buckets};
    return nullptr;
  }
  bool only_asks() const noexcept override { return true; }
  const std::optional<failure>& wrong() const { return in_.wrong; }
  bucket_list found;

 private:
  decoded<rate_record> in_;
};

/// Which sessions were found dead in one call: each is looked up once.
using looks = std::map<std::string, bool>;

class state_family final : public session_store {
 public:
  explicit state_family(std::unique_ptr<state_store> port)
      : port_(std::move(port)), capabilities_(port_->can()), sweep_(*port_) {
    capabilities_.election = capabilities_.fair;
    capabilities_.barrier = true;
    capabilities_.rate_limiter = true;  // on any store that keeps a record
    capabilities_.learns_fences = true;
    capabilities_.shared_queue_leases = true;
    capabilities_.finds_deadlocks = capabilities_.lists_waiters;
    capabilities_.claim_us = promises().claim;
  }

  const capabilities& can() const noexcept override { return capabilities_; }
  const std::string& url() const noexcept override { return port_->url(); }
  store::inbox& inbox() noexcept override { return port_->inbox(); }

  result<permits_reply> permits(std::string_view name, const permits_command& command) override {
    looks known;
    auto reply = pass_over_dead(name, command, step(name, command, {}), known);
    if (reply && command.verb == permits_verb::release) sweep_.look_if_due(name);
    return reply;
  }

  // A waiter behind dead processes asks once more, without them. An inspection reports them.
  result<permits_reply> pass_over_dead(std::string_view name, const permits_command& command,
                                       result<permits_reply> reply, looks& known) {
    if (!reply || !port_->can().sees_death) return reply;
    if (command.verb == permits_verb::inspect)
      reply->blockers = departed(peers_of(reply->found), known);
    if (command.verb == permits_verb::inspect || reply->blockers.empty()) return reply;
    const auto dead = departed(reply->blockers, known);
    if (dead.empty()) return reply;
    auto again = step(name, command, dead);
    if (!again && !again.error().outcome_unknown) return reply;  // which was carried out
    if (!again) return again;
    again->replaced |= reply->replaced;
    again->fresh |= reply->fresh;
    again->repeated |= reply->repeated;
    return again;
  }

  result<countdown_reply> countdown(std::string_view name,
                                    const countdown_command& command) override {
    countdown_transition change(command, port_->can().notifications);
    if (auto s = port_->transact(name, change); !s) return std::move(s.error());
    count(change);
    if (change.wrong()) return *change.wrong();
    (void)tell(name, change.reply.tell);
    if (command.verb == countdown_verb::arrive) sweep_.look_if_due(name);
    return std::move(change.reply);
  }

  result<rate_reply> rate(std::string_view name, const rate_command& command) override {
    rate_transition change(command);
    if (auto s = port_->transact(name, change); !s) return std::move(s.error());
    count(change);
    if (change.wrong()) return *change.wrong();
    // This thread may have been granted the admission's permit just before: then it must not sweep.
    if (command.verb == rate_verb::take && !admits) sweep_.look_if_due(name);
    return std::move(change.reply);
  }

  result<bucket_list> buckets(std::string_view name) override {
    buckets_transition look;
    if (auto s = port_->transact(name, look); !s) return std::move(s.error());
    if (look.wrong()) return *look.wrong();
    return std::move(look.found);
  }

  // A record may be kept only for its fence: then the name is free. A name whose record cannot be
  // read counts as in use.
  result<std::vector<std::string>> names() override {
    auto all = port_->entries();
    if (!all) return std::move(all.error());
    const auto now = port_->time();
    if (!now) return now.error();
    std::vector<std::string> used;
    for (auto& e : *all) {
      auto record = decode(e.record);
      if (record) expire(*record, *now);
      if (!record || in_use(*record)) used.push_back(std::move(e.name));
    }
    return used;
  }

  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    std::vector<permits_transition> changes;
    std::vector<std::size_t> step_of;
    std::map<std::string_view, std::size_t> known;
    std::deque<permits_steps> together;
    std::vector<state_store::step> steps;
    changes.reserve(batch.size());
    for (const auto& r : batch) {
      changes.emplace_back(r.command, std::span<const std::string>{}, promises());
      const auto [at, fresh] = known.emplace(r.name, steps.size());
      if (fresh) steps.push_back({r.name, &together.emplace_back()});
      together[at->second].add(changes.back());
      step_of.push_back(at->second);
    }
    const auto statuses = port_->transact(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (statuses[i]) count(together[i]);
    }
    std::vector<result<permits_reply>> replies;
    replies.reserve(batch.size());
    looks looked_up;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      replies.push_back(pass_over_dead(batch[i].name, batch[i].command,
                                       finish(batch[i].name, statuses[step_of[i]], changes[i]),
                                       looked_up));
    }
    const bool given_back = are_given_back(batch) && replies.front().ok();
    if (given_back) sweep_.look_if_due(batch.front().name);
    return replies;
  }

  result<store::identity> identify() override { return port_->identify(); }
  result<store::facts> facts() override { return port_->facts(); }

  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    auto replies = step_together(all, {});
    if (!replies && replies.error().code == errc::unsupported) {
      return session_store::acquire_together(all);
    }
    if (!replies || !port_->can().sees_death) return replies;
    looks known;
    const auto dead = departed(replies->back().blockers, known);
    return dead.empty() ? std::move(replies) : step_together(all, dead);
  }

  result<store::admission> admit(const named_command& asks, std::string_view limiter,
                                 const rate_command& take) override {
    auto both = admit_without(asks, limiter, take, {});
    if (!both && both.error().code == errc::unsupported) {
      const admission_by_two_calls this_thread;
      return session_store::admit(asks, limiter, take);
    }
    if (!both || !port_->can().sees_death) return both;
    looks known;
    const auto dead = departed(both->permits.blockers, known);
    return dead.empty() ? std::move(both) : admit_without(asks, limiter, take, dead);
  }

 private:
  result<store::admission> admit_without(const named_command& asks, std::string_view limiter,
                                         const rate_command& take,
                                         std::span<const std::string> dead) {
    permits_transition permits(asks.command, dead, promises());
    rate_transition tokens(take);
    const state_store::step steps[] = {{asks.name, &permits}, {limiter, &tokens}};
    auto last = store::state_store::verdict::go_on;
    bool asked_both = false;
    const auto done = port_->transact_together(steps, [&](std::size_t step) {
      asked_both = step == 1;
      return last = asked_both ? judge(tokens) : judge(permits);
    });
    if (!done) return done.error();
    const bool undone = last == store::state_store::verdict::undo;
    if (undone) {
      keep_only_wanted(permits.reply.tell);
    } else {
      count(permits);
      if (asked_both) count(tokens);
    }
    auto reply = finish(asks.name, done, permits);
    if (!reply) return std::move(reply.error());
    store::admission both{std::move(*reply), {}};
    if (!asked_both) return both;
    // The undone step may have contained a grant that the waiter had been given earlier.
    if (undone && permits.may_stand()) {
      if (auto left = leave(asks); !left) return in_doubt(std::move(left.error()));
    } else if (undone && asks.command.wait) {
      (void)leave(asks);  // if this fails, the queue entry expires within seconds
    }
    if (tokens.wrong()) return *tokens.wrong();
    both.tokens = std::move(tokens.reply);
    return both;
  }

  result<permits_reply> leave(const named_command& asks) {
    const permits_command c{.verb = permits_verb::release, .owner = asks.command.owner};
    return step(asks.name, c, {});
  }

  // The owner may still hold what it was to release.
  static failure in_doubt(failure f) {
    f.outcome_unknown = true;
    return f;
  }

  // Notifies only of changes that were written. An exception is a holder that keeps idle what this
  // command wants: it is always notified.
  result<std::vector<permits_reply>> step_together(std::span<const named_command> all,
                                                   std::span<const std::string> dead) {
    using verdict = state_store::verdict;
    std::vector<permits_transition> changes;
    std::vector<state_store::step> steps;
    changes.reserve(all.size());
    for (const auto& one : all) {
      changes.emplace_back(one.command, dead, promises());
      steps.push_back({one.name, &changes.back()});
    }
    std::size_t asked = 0;
    verdict last = verdict::go_on;
    const auto done = port_->transact_together(steps, [&](std::size_t step) {
      asked = step + 1;
      return last = judge(changes[step]);
    });
    if (!done) return done.error();
    for (std::size_t i = 0; i < all.size() && last == verdict::undo; ++i) {
      if (!changes[i].may_stand()) continue;
      if (auto left = leave(all[i]); !left) return in_doubt(std::move(left.error()));
    }
    std::vector<permits_reply> replies;
    for (std::size_t i = 0; i < asked; ++i) {
      if (last == verdict::undo) {
        keep_only_wanted(changes[i].reply.tell);
      } else {
        count(changes[i]);
      }
      auto reply = finish(all[i].name, done, changes[i]);
      if (!reply) return std::move(reply.error());
      replies.push_back(std::move(*reply));
    }
    return replies;
  }

  static state_store::verdict judge(const permits_transition& change) {
    using verdict = state_store::verdict;
    if (change.wrong()) return verdict::undo;
    if (change.reply.outcome == permits_outcome::granted) return verdict::go_on;
    return change.reply.outcome == permits_outcome::queued ? verdict::keep : verdict::undo;
  }

  static state_store::verdict judge(const rate_transition& change) {
    using verdict = state_store::verdict;
    const bool granted = !change.wrong() && change.reply.outcome == rate_outcome::granted;
    return granted ? verdict::go_on : verdict::undo;
  }

  static void keep_only_wanted(std::vector<notification>& tell) {
    std::erase_if(tell, [](const notification& n) { return n.what != notification_kind::wanted; });
  }

  void count(const record_change& change) noexcept {
    if (change.made) sweep_.made_one();
  }

  // Whether a holder releases these: then the command names its session. The thread that renews all
  // leases names only an owner; it must not be held up by a look at other records.
  static bool are_given_back(std::span<const named_command> batch) {
    return !batch.empty() && std::all_of(batch.begin(), batch.end(), [](const auto& one) {
      return one.command.verb == permits_verb::release && !one.command.peer.empty();
    });
  }

  // A waiter that is not notified notices the grant at its next poll.
  kernel::promises promises() const noexcept {
    const auto& can = port_->can();
    if (!can.notifications) return {kernel::claim_where_nobody_is_told_us, false, true};
    return {can.sees_death ? kernel::claim_where_death_is_seen_us : kernel::claim_us, true, true};
  }

  result<permits_reply> step(std::string_view name, const permits_command& command,
                             std::span<const std::string> dead) {
    permits_transition change(command, dead, promises());
    const auto done = port_->transact(name, change);
    if (done) count(change);
    return finish(name, done, change);
  }

  result<permits_reply> finish(std::string_view name, const status& done,
                               permits_transition& change) {
    if (!done) return done.error();
    if (change.wrong()) return *change.wrong();
    deliver(name, change.reply.tell);
    if (!change.others().empty()) pass_on(name, change);
    return std::move(change.reply);
  }

  // The first waiter of this session whose poll finds that all may go on tells the others: they
  // need not wait for their own polls. Each of them asks the store, as after any notification.
  // Without memory for that they poll.
  void pass_on(std::string_view name, permits_transition& change) noexcept try {
    {
      const std::lock_guard guard{passed_on_mutex_};
      std::pair<std::string, std::uint64_t> now(name, change.went_on_at());
      if (passed_on_ == now) return;
      passed_on_ = std::move(now);
    }
    (void)tell(name, change.others());
  } catch (const std::bad_alloc&) {
    return;
  }

  // Each session once: it may hold or wait many times.
  static std::vector<std::string> peers_of(const permits_record& record) {
    std::vector<std::string> all;
    all.reserve(record.holders.size() + record.queue.size());
    for (const auto& h : record.holders) all.push_back(h.peer);
    for (const auto& w : record.queue) all.push_back(w.peer);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::erase(all, std::string{});
    return all;
  }

  std::vector<std::string> departed(const std::vector<std::string>& peers, looks& known) {
    std::vector<std::string> dead;
    for (const auto& peer : peers) {
      const auto [at, fresh] = known.emplace(peer, false);
      if (fresh) at->second = port_->departed(peer);
      if (at->second) dead.push_back(peer);
    }
    return dead;
  }

  // Returns the sessions that have ended.
  std::vector<std::string> tell(std::string_view name, std::vector<notification>& all) {
    if (all.empty()) return {};
    for (notification& to : all) to.name = name;
    return port_->tell_all(all);
  }

  // Notifies of grants. A grant to a session that is known to be dead is passed on at once, which
  // may grant to others. A session that could not be notified but may be alive keeps its grant,
  // which ends with the claim time.
  void deliver(std::string_view name, std::vector<notification>& grants) {
    auto dead = tell(name, grants);
    std::erase_if(dead, [this](const std::string& peer) { return !port_->departed(peer); });
    if (dead.empty()) return;
    // For no owner: only the hand-over takes effect.
    (void)step(name, {.verb = permits_verb::renew}, dead);
  }

  std::unique_ptr<state_store> port_;
  capabilities capabilities_;
  state_sweep sweep_;
  std::mutex passed_on_mutex_;
  std::pair<std::string, std::uint64_t> passed_on_;  ///< by name, the last that was told
};

}  // namespace

std::unique_ptr<session_store> over(std::unique_ptr<state_store> port) {
  return std::make_unique<state_family>(std::move(port));
}

}  // namespace holdfast::family
