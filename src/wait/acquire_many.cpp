#include "wait/acquire_many.hpp"

#include <algorithm>
#include <map>

namespace holdfast::engine {

using store::permits_outcome;

namespace {

constexpr std::string_view operation_name = "multi_lock";

/// The acquisition of all locks as one request. Each session asks for its names together, and the
/// sessions ask one after the other, up to the first name that is not free. A repeated request
/// renews the names it holds already, so when the request succeeds all of them were granted or
/// renewed a moment ago. Each session asks as an owner of its own: if two sessions turn out to use
/// one store, a name that both ask for is counted twice there.
class joint_acquisition final : public request {
 public:
  explicit joint_acquisition(std::span<const wanted> all)
      : all_(all), grants_(all.size()), owners_(all.size()) {
    draw_owners();
  }

  answer ask(bool last) override {
    if (auto ok = check_stores(); !ok) return std::move(ok.error());
    for (std::size_t from = 0; from < all_.size(); from = end_of_session(from)) {
      const auto together = all_.subspan(from, end_of_session(from) - from);
      asked_ = std::max(asked_, from + together.size());
      auto stopped = ask_one_session(together, from, last);
      if (!stopped || *stopped || refused_) return stopped;
    }
    return check_still_held();
  }

  /// The name that is not free.
  const wanted& in_the_way() const noexcept { return all_[stopped_at_]; }
  /// From now on the wait listens to the notifications of this name's session.
  void wait_there() noexcept { waits_at_ = all_[stopped_at_].session.get(); }
  bool moved_on() const noexcept { return waits_at_ != all_[stopped_at_].session.get(); }
  bool complete() const noexcept { return complete_; }
  /// Whether a name was lost while the request waited for a later one. Keeping the later names and
  /// waiting for the lost one would break the order in which all programs acquire. So everything is
  /// released and requested anew, as a new owner, because a release may arrive late.
  bool lost_one() const noexcept { return lost_one_; }
  void begin_anew() {
    leave_nothing_behind(failure{errc::lost, "a name was lost while another was waited for"});
    draw_owners();
    asked_ = has_up_to_ = stopped_at_ = 0;
    lost_one_ = false;
  }

  /// The owner that waits for the name that is not free.
  const store::owner_id& owner() const noexcept { return owners_[stopped_at_]; }
  const grant& granted(std::size_t i) const noexcept { return grants_[i]; }

  /// Releases everything that may be held, together for each session, as it was requested.
  void leave_nothing_behind(const failure& why) {
    if (!std::exchange(in_doubt_, false)) return;
    const call_limit until{saturated_add(all_.front().session->now(), last_answer_within)};
    for (std::size_t from = 0; from < asked_; from = end_of_session(from)) {
      const auto some = all_.subspan(from, end_of_session(from) - from);
      const bool away = left_to_keeper(why) || some.front().session->out_of_time();
      std::vector<store::named_command> releases;
      for (const auto& w : some) {
        releases.push_back({w.what->name, release_command(owners_[from])});
      }
      const auto replies = away ? std::vector<result<store::permits_reply>>{}
                                : some.front().session->permits(releases);
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (!away && replies[i]) continue;
        abandon(from + i);
      }
    }
  }

  /// The same when there is no memory for it: the keepers release.
  void abandon_all() noexcept {
    in_doubt_ = false;
    for (std::size_t i = 0; i < asked_; ++i) abandon(i);
  }

 private:
  void abandon(std::size_t i) const noexcept {
    const wanted& w = all_[i];
    w.session->keeper().abandon(w.what->name, owners_[i], w.what->lease);
  }

  // The names of one session share an owner, because they are requested in one call.
  void draw_owners() {
    for (std::size_t from = 0; from < all_.size(); from = end_of_session(from)) {
      const auto owner = all_[from].session->new_owner();
      std::fill(owners_.begin() + static_cast<std::ptrdiff_t>(from),
                owners_.begin() + static_cast<std::ptrdiff_t>(end_of_session(from)), owner);
    }
  }

  // Asks the stores for their ids, each once, and only if a name occurs twice. The answers have to
  // be of one moment, because a restarted server may report another id: if a store is away, the
  // next request asks all of them again.
  status check_stores() {
    if (stores_checked_) return done{};
    std::map<session_impl*, std::string> places;
    const auto asked = [&](session_impl& s) -> const std::string* {
      const auto known = places.find(&s);
      if (known != places.end()) return &known->second;
      auto said = s.place();
      return said ? &places.emplace(&s, std::move(*said)).first->second : nullptr;
    };
    for (std::size_t i = 0; i < all_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        auto& one = *all_[i].session;
        auto& other = *all_[j].session;
        if (&one == &other || all_[i].what->name != all_[j].what->name) continue;
        const auto* const place = asked(one);
        if (place == nullptr) return done{};
        if (place->empty()) continue;
        const auto* const others = asked(other);
        if (others == nullptr) return done{};
        if (*place != *others) continue;
        stopped_at_ = i;
        return failure{errc::invalid_argument,
                       other.url() + " is the same store: " + std::string(member_twice)};
      }
    }
    stores_checked_ = true;
    return done{};
  }

  std::size_t end_of_session(std::size_t from) const noexcept {
    std::size_t end = from;
    while (end < all_.size() && all_[end].session == all_[from].session) ++end;
    return end;
  }

  answer ask_one_session(std::span<const wanted> some, std::size_t from, bool last) {
    session_impl& session = *some.front().session;
    std::vector<store::named_command> batch;
    for (const auto& w : some) {
      batch.push_back(
          {w.what->name, acquire_command(session, *w.what, w.how, owners_[from], !last)});
    }
    const boot_time sent = session.now();
    const bool was_in_doubt = std::exchange(in_doubt_, true);
    auto replies = session.acquire_together(batch);
    stopped_at_ = from;
    refused_ = false;
    // Only a definite refusal of the very first request leaves nothing behind.
    in_doubt_ = was_in_doubt || !last || !replies || from > 0;
    if (!replies) return replies.error();
    for (auto& reply : *replies) {
      if (reply.outcome != permits_outcome::granted) return on_refusal(reply, last);
      grants_[stopped_at_] = granted_to(owners_[stopped_at_], reply, sent);
      ++stopped_at_;
      has_up_to_ = std::max(has_up_to_, stopped_at_);
    }
    in_doubt_ = true;
    stopped_at_ = std::min(stopped_at_, all_.size() - 1);
    return settled();
  }

  answer on_refusal(store::permits_reply& reply, bool last) {
    refused_ = true;
    const wanted& w = in_the_way();
    if (reply.outcome != permits_outcome::queued && reply.outcome != permits_outcome::busy) {
      return mismatch_of(reply, *w.what);
    }
    lost_one_ = stopped_at_ < has_up_to_;
    if ((moved_on() || lost_one_) && !last) return settled();  // to wait there, or to begin anew
    auto hint = hint_of(*w.session, reply);
    hint.retry_after = std::min<std::chrono::microseconds>(hint.retry_after, w.what->lease / 3);
    return ask_again(std::move(hint));
  }

  // The lease of the first name may have ended while the last name was requested.
  answer check_still_held() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (grants_[i].valid_until > all_[i].session->now()) continue;
      stopped_at_ = i;
      return failure{errc::unavailable, "the stores' answers came later than the lease lasts",
                     true};
    }
    complete_ = true;
    return settled();
  }

  const std::span<const wanted> all_;
  std::vector<grant> grants_;
  std::vector<store::owner_id> owners_;
  const session_impl* waits_at_ = nullptr;
  std::size_t stopped_at_ = 0;
  std::size_t asked_ = 0;
  /// The number of names from the front that were granted at some time.
  std::size_t has_up_to_ = 0;
  bool in_doubt_ = false;
  bool refused_ = false;  ///< by the last request, so that no later name was requested
  bool complete_ = false;
  bool lost_one_ = false;
  bool stores_checked_ = false;  ///< no two sessions use one store, as far as the stores' ids show
};

// Waits for each name that is not free in turn, until all are granted.
status win_all(joint_acquisition& q, const timed_call& call, const std::stop_token& stop) {
  while (true) {
    const auto session = q.in_the_way().session;
    q.wait_there();
    const auto settled = wait_until_settled(*session, q.owner(), q, call, stop);
    if (!settled || q.complete()) return settled;
    if (q.lost_one()) q.begin_anew();
  }
}

// The members of one session hold a non-owning pointer to it; `session` owns it.
const std::shared_ptr<session_impl>& that_owns(const wanted& w,
                                               const std::shared_ptr<session_impl>& session) {
  return w.session == session ? session : w.session;
}

std::vector<lease> begin_leases(std::span<const wanted> all, const joint_acquisition& q,
                                const std::shared_ptr<session_impl>& session, const waits& waited) {
  std::vector<lease> leases;
  leases.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    leases.push_back(
        begin_lease(that_owns(all[i], session), all[i].what, all[i].how, q.granted(i), waited));
  }
  return leases;
}

/// A joint acquisition without a thread, carried out by the runners of its sessions one after the
/// other.
struct joint {
  // A pending wait does not keep its session alive, if all members are of one session. Otherwise it
  // has to.
  explicit joint(std::vector<wanted> w) : all(std::move(w)), q(all) {
    const auto* const first = all.front().session.get();
    for (const auto& one : all) {
      if (one.session.get() != first) return;
    }
    for (auto& one : all) one.session = {std::shared_ptr<void>{}, one.session.get()};
  }
  std::vector<wanted> all;
  joint_acquisition q;
};

/// Waits for the name that is not free; a new pending_joint waits for the next one.
class pending_joint final : public telling_wait<pending_wait, std::vector<lease>> {
 public:
  pending_joint(async_request o, std::shared_ptr<joint> what)
      : telling_wait(std::move(o)), what_(std::move(what)), owner_(what_->q.owner()) {
    what_->q.wait_there();
  }
  const store::owner_id& owner() const noexcept override { return owner_; }

 private:
  request& asked() override { return what_->q; }

  std::uint32_t commands_of_a_try() const override {
    return static_cast<std::uint32_t>(what_->all.size());
  }
  next come_in() override {
    for (const auto& w : what_->all) {
      if (auto can = ready(*w.session, *w.what, w.how); !can) return end(std::move(can.error()));
    }
    return at_store();
  }
  void won(std::shared_ptr<session_impl> session) override {
    if (what_->q.complete()) return tell(begin_leases(what_->all, what_->q, session, waited_));
    if (what_->q.lost_one()) what_->q.begin_anew();
    const wanted& w = what_->q.in_the_way();
    async_request o{that_owns(w, session), w.what, tried(), time_, stop_};
    std::make_shared<pending_joint>(std::move(o), what_)->start(*receiver_);
    receiver_ = nullptr;
  }
  std::optional<store::named_command> leaving(const failure& why) override {
    what_->q.leave_nothing_behind(why);
    return std::nullopt;
  }
  void leave_to_keeper() noexcept override { what_->q.abandon_all(); }
  failure observed(failure f) override {
    const wanted& w = what_->q.in_the_way();
    return gave_up(*w.session, *w.what, time_, std::move(f));
  }
  // Also called if the wait at this session never began: earlier sessions may have granted names.
  void fail(failure f) override {
    what_->q.leave_nothing_behind(f);
    const wanted& w = what_->q.in_the_way();
    tell(w.session->located(std::move(f), tried(), w.what->name));
  }

  const std::shared_ptr<joint> what_;
  /// The runner's key, constant while the request may begin anew with other owners.
  const store::owner_id owner_;
};

}  // namespace

std::string store_in_order(std::string_view url) {
  const auto start = url.find("://");
  if (start == url.npos) return std::string(url);
  const auto scheme = url.substr(0, start + 3);
  auto hosts = url.substr(scheme.size());
  const auto rest = hosts.substr(std::min(hosts.find_first_of("/?"), hosts.size()));
  hosts.remove_suffix(rest.size());
  if (const auto at = hosts.rfind('@'); at != hosts.npos) hosts.remove_prefix(at + 1);
  std::vector<std::string_view> all;
  while (!hosts.empty()) {
    const auto comma = std::min(hosts.find(','), hosts.size());
    all.push_back(hosts.substr(0, comma));
    hosts.remove_prefix(std::min(comma + 1, hosts.size()));
  }
  std::sort(all.begin(), all.end());
  std::string ordered(scheme);
  for (const auto& host : all) (ordered += host) += ',';
  return ordered += rest;
}

pending<std::vector<lease>> async_acquire_all(std::vector<wanted> all, wait_limit limit,
                                              std::stop_token stop) {
  const wanted first = all.front();
  async_request o{first.session,
                  first.what,
                  operation_name,
                  {first.session->now(), limit.wait()},
                  std::move(stop)};
  return pending<std::vector<lease>>(
      std::make_shared<pending_joint>(std::move(o), std::make_shared<joint>(std::move(all))));
}

result<std::vector<lease>> acquire_all(std::span<const wanted> all, wait_time wait,
                                       std::stop_token stop) {
  for (const auto& w : all) {
    if (auto can = ready(*w.session, *w.what, w.how); !can) {
      return w.session->located(std::move(can.error()), operation_name, w.what->name);
    }
  }
  const timed_call call(all.front().session->now(), wait);
  joint_acquisition q(all);
  try {
    if (auto won = win_all(q, call, stop); !won) {
      q.leave_nothing_behind(won.error());
      const wanted& w = q.in_the_way();
      auto why = gave_up(*w.session, *w.what, call, std::move(won.error()));
      return w.session->located(std::move(why), operation_name, w.what->name);
    }
    return begin_leases(all, q, all.front().session, {call.began(), call.began()});
  } catch (...) {
    q.abandon_all();
    throw;
  }
}

}  // namespace holdfast::engine
