#include "simulation/server.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "family/record_codec.hpp"
#include "family/state_family.hpp"
#include "kernel/permits.hpp"
#include "simulation/connection_inbox.hpp"
#include "simulation/consensus.hpp"
#include "simulation/memcached_server.hpp"
#include "simulation/redisson_server.hpp"
#include "simulation/scripts.hpp"
#include "simulation/slots.hpp"
#include "simulation/sql_server.hpp"

namespace simulation {

using holdfast::boot_time;
using holdfast::errc;
using holdfast::failure;
using holdfast::result;
using holdfast::status;
using holdfast::store::named_command;
using holdfast::store::notification;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;

/// The state family's view of the server. The family runs at the server, so nothing fails.
class server::records final : public holdfast::store::state_store {
 public:
  explicit records(server& of) : of_(of) {
    can_.notifications = can_.secret_proves = of.is_.notifications;
    can_.sees_death = of.is_.sees_death;
    can_.try_takes_ms = static_cast<std::uint32_t>(of.is_.command_timeout / millisecond);
  }

  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return of_.name_; }

  status transact(std::string_view name, holdfast::store::transition& change) override {
    const auto at = of_.records_.find(name);
    const std::string before = at == of_.records_.end() ? std::string() : at->second;
    const auto* const next = change.apply(before, of_.time());
    if (next == nullptr) return holdfast::done{};
    if (auto no = of_.refused(next->size() > before.size())) return *no;
    put(name, *next);
    return holdfast::done{};
  }

  status transact_together(std::span<const step> steps, const judge& after) override {
    const auto before = of_.records_;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (auto ok = transact(steps[i].name, *steps[i].change); !ok) {
        of_.records_ = before;
        return ok;
      }
      const verdict so = after(i);
      if (so == verdict::go_on) continue;
      if (so == verdict::undo) of_.records_ = before;
      break;
    }
    return holdfast::done{};
  }

  result<std::vector<entry>> entries() override {
    std::vector<entry> all;
    for (const auto& [name, record] : of_.records_) all.push_back({name, record});
    return all;
  }
  result<holdfast::store::moment> time() override { return of_.time(); }
  bool departed(std::string_view peer) override { return of_.departed(peer); }
  bool tell(const notification& n) override { return of_.tell(n); }
  holdfast::store::inbox& inbox() noexcept override { return nobody_; }

 private:
  class no_inbox final : public holdfast::store::inbox {
   public:
    const std::string& peer() const noexcept override { return peer_; }
    std::optional<notification> receive(holdfast::boot_time) override { return {}; }
    void interrupt() noexcept override {}

   private:
    std::string peer_;
  };

  void put(std::string_view name, const std::string& record) {
    if (record.empty()) {
      if (const auto at = of_.records_.find(name); at != of_.records_.end()) {
        of_.records_.erase(at);
      }
    } else {
      of_.records_[std::string(name)] = record;
    }
  }

  server& of_;
  holdfast::store::capabilities can_;
  no_inbox nobody_;
};

/// The view of the engine of a process.
class client final : public holdfast::store::session_store, private requester {
 public:
  using requester::requester;

  ~client() override {
    by_->closed = true;
    by_->reader = nullptr;
  }

  const holdfast::store::capabilities& can() const noexcept override { return of_.family_->can(); }
  const std::string& url() const noexcept override { return of_.name_; }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

  result<permits_reply> permits(std::string_view name, const permits_command& c) override {
    if (asks(c)) of_.asked_[{by_->of->number, std::string(name)}] = of_.world_.now();
    return in_time([&] {
      return ask<permits_reply>(
          label(name, c),
          [&of = of_, sent = copy(name, c)] { return of.carry_out({sent.name, sent.command()}); },
          false, asks(c));
    });
  }

  bool permits_later(std::string_view name, const permits_command& c,
                     std::function<void(result<permits_reply>)> then) override {
    auto reply = std::make_shared<std::optional<result<permits_reply>>>();
    auto what = std::make_shared<exchange>();
    what->label = label(name, c);
    what->asks = asks(c);
    what->carry_out = [&of = of_, sent = copy(name, c), reply] {
      *reply = of.carry_out({sent.name, sent.command()});
    };
    what->then = [raw = what.get(), reply, then = std::move(then)] {
      then(raw->failed ? result<permits_reply>(*raw->failed) : std::move(**reply));
    };
    begin(what);
    if (!what->over) return true;
    call_back();
    return false;
  }

  void settle() override {
    for (;;) {
      call_back();
      const auto waits = std::find_if(by_->open.begin(), by_->open.end(),
                                      [](const auto& e) { return e->then != nullptr; });
      if (waits == by_->open.end()) return;
      const auto what = *waits;
      await(*what);
    }
  }

  result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    return in_time([&] {
      return ask<holdfast::store::countdown_reply>(
          "countdown " + std::string(name),
          [&at = *of_.family_, c, name = std::string(name), peer = std::string(c.peer),
           note = std::string(c.note)] {
            auto sent = c;
            sent.peer = peer;
            sent.note = note;
            return at.countdown(name, sent);
          });
    });
  }

  result<holdfast::store::rate_reply> rate(std::string_view name,
                                           const holdfast::store::rate_command& c) override {
    return ask<holdfast::store::rate_reply>(
        label(name, c), [&at = *of_.family_, name = std::string(name), sent = tokens(c)] {
          return at.rate(name, sent.command());
        });
  }

  result<holdfast::store::bucket_list> buckets(std::string_view name) override {
    return ask<holdfast::store::bucket_list>(
        "buckets of " + std::string(name),
        [&at = *of_.family_, name = std::string(name)] { return at.buckets(name); });
  }

  // A late request has no effect: Redis refuses it (link.hpp), and elsewhere the client is in the
  // middle of it. Otherwise, for want of tokens, it would release what a later request of the same
  // owner was granted.
  result<holdfast::store::admission> admit(const named_command& permits, std::string_view limiter,
                                           const holdfast::store::rate_command& take) override {
    return in_time([&] {
      return ask<holdfast::store::admission>(
          "admit " + label(permits.name, permits.command) + " by " + std::string(limiter),
          [&at = *of_.family_, permits = copy(permits.name, permits.command),
           limiter = std::string(limiter), sent = tokens(take)] {
            return at.admit({permits.name, permits.command()}, limiter, sent.command());
          },
          true);
    });
  }

  // The driver sends those again that were too late.
  std::vector<result<permits_reply>> execute_batch(std::span<const named_command> batch) override {
    const nanos until = of_.world_.now() + of_.is_.command_timeout;
    auto replies = execute_once(batch);
    for (int more = 2; more > 0 && of_.world_.now() < until; --more) {
      std::vector<named_command> again;
      std::vector<std::size_t> whose;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (!came_late(replies[i])) continue;
        again.push_back(batch[i]);
        whose.push_back(i);
      }
      if (again.empty()) break;
      answer_by_ = until;
      auto second = execute_once(again);
      for (std::size_t i = 0; i < whose.size(); ++i) replies[whose[i]] = std::move(second[i]);
    }
    return replies;
  }

  std::vector<result<permits_reply>> execute_once(std::span<const named_command> batch) {
    std::string what = "renew";
    std::vector<owned> sent;
    for (const auto& r : batch) {
      sent.push_back(copy(r.name, r.command));
      if (of_.trace_.on()) what += " [" + label(r.name, r.command) + "]";
    }
    auto all = ask<std::vector<result<permits_reply>>>(
        std::move(what),
        [&of = of_, sent = std::move(sent)]() -> result<std::vector<result<permits_reply>>> {
          std::vector<named_command> batch_there;
          for (const auto& s : sent) batch_there.push_back({s.name, s.command()});
          auto replies = of.family_->execute_batch(batch_there);
          of.show(batch_there, replies);
          return replies;
        },
        false, std::any_of(batch.begin(), batch.end(), [](auto& r) { return asks(r.command); }));
    if (all) return std::move(*all);
    return std::vector<result<permits_reply>>(batch.size(), all.error());
  }

  result<std::vector<permits_reply>> acquire_together(std::span<const named_command> all) override {
    std::vector<owned> sent;
    for (const auto& r : all) sent.push_back(copy(r.name, r.command));
    return in_time([&] {
      return ask<std::vector<permits_reply>>("acquire together", [&at = *of_.family_, sent] {
        std::vector<named_command> there;
        for (const auto& s : sent) there.push_back({s.name, s.command()});
        return at.acquire_together(there);
      });
    });
  }

  result<std::vector<std::string>> names() override {
    return ask<std::vector<std::string>>("names", [&at = *of_.family_] { return at.names(); });
  }

 private:
  /// A copy of a command, which outlives its caller.
  struct owned {
    std::string name;
    permits_command c;
    std::string peer;
    std::string note;
    permits_command command() const {
      permits_command whole = c;
      whole.peer = peer;
      whole.note = note;
      return whole;
    }
  };
  static bool asks(const permits_command& c) noexcept {
    return c.verb == holdfast::store::permits_verb::acquire;
  }
  template <class Reply>
  static bool came_late(const result<Reply>& r) {
    return !r && r.error().what.find("HOLDFAST_LATE") != std::string::npos;
  }
  // A request that was too late by the server's clock gets another limit, and is sent again. All
  // of that takes no longer than one command may.
  template <class Ask>
  std::invoke_result_t<Ask> in_time(Ask ask_once) {
    const nanos until = of_.world_.now() + of_.is_.command_timeout;
    auto reply = ask_once();
    for (int more = 2; more > 0 && came_late(reply) && of_.world_.now() < until; --more) {
      answer_by_ = until;
      reply = ask_once();
    }
    return reply;
  }
  static owned copy(std::string_view name, const permits_command& c) {
    return {std::string(name), c, std::string(c.peer), std::string(c.note)};
  }

  /// A copy of a command about tokens, which outlives its caller.
  struct tokens {
    explicit tokens(const holdfast::store::rate_command& of) : c(of) {
      for (const auto& b : of.buckets) {
        ids.emplace_back(b.id);
        kept.push_back({{}, b.rule, b.due_at});
      }
    }
    holdfast::store::rate_command command() const {
      for (std::size_t i = 0; i < ids.size(); ++i) kept[i].id = ids[i];
      auto whole = c;
      whole.buckets = kept;
      return whole;
    }
    holdfast::store::rate_command c;
    std::vector<std::string> ids;
    mutable std::vector<holdfast::store::bucket_choice> kept{};
  };

  std::string label(std::string_view name, const holdfast::store::rate_command& c) const {
    if (!of_.trace_.on()) return {};
    return "rate " + std::string(name) + ' ' + std::to_string(static_cast<int>(c.verb)) + ' ' +
           std::to_string(c.tokens) + " of " + to_string(c.owner).substr(0, 4);
  }
  std::string label(std::string_view name, const permits_command& c) const {
    if (!of_.trace_.on()) return {};
    static constexpr const char* verbs[] = {"acquire", "renew",   "release", "resize",
                                            "evict",   "inspect", "notify"};
    return std::string(verbs[static_cast<int>(c.verb)]) + ' ' + std::string(name) + ' ' +
           to_string(c.owner).substr(0, 4) +
           (c.weight != 1 ? " w" + std::to_string(c.weight) : "") + (c.wait ? " wait" : "");
  }

  connection_inbox inbox_{of_, of_.world_, by_};
};

namespace {

/// The family uses the clock of the process.
class process_clock final : public holdfast::clock {
 public:
  boot_time now() const noexcept override { return holdfast::real_clock().now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override {
    holdfast::real_clock().wait_until(lock, cv, until);
  }
  std::chrono::nanoseconds sleep_for(boot_time until) const noexcept override {
    return holdfast::real_clock().sleep_for(until);
  }
  int on_advance(std::function<void()>) override { return 0; }
  void forget(int) noexcept override {}
};

}  // namespace

holdfast::clock& clock_of_processes() {
  static process_clock clock;
  return clock;
}

std::optional<notification> connection_inbox::receive(holdfast::boot_time until) {
  const nanos end =
      until == holdfast::forever ? never : until.time_since_epoch().count() - by_->of->boot;
  while (by_->inbox.empty() && !by_->interrupted && world_.now() < end) {
    by_->reader = world::self();
    (void)world_.block(end, by_.get());
    by_->reader = nullptr;
  }
  by_->interrupted = false;
  if (by_->inbox.empty()) return std::nullopt;
  notification first = std::move(by_->inbox.front());
  by_->inbox.pop_front();
  return first;
}

void requester::begin(const std::shared_ptr<exchange>& what) {
  world& w = of_.world_;
  if (w.now() < by_->away_until) {
    w.sleep(w.random().between(50 * microsecond, millisecond));
    if (traced()) of_.trace_.add("no connection for: " + what->label);
    what->failed = failure{errc::unavailable, "simulated: connection refused", false};
    what->over = true;
    if (what->then) by_->later.push_back(what);
    return;
  }
  by_->open.push_back(what);
  if (fiber* const me = world::self()) ++me->commands;
  ++by_->of->commands;
  of_.send(by_, what);
}

// Several threads may wait for an answer that another thread began to wait for.
void requester::await(exchange& what) {
  const nanos until = std::min(of_.world_.now() + of_.is_.command_timeout, what.answer_by);
  while (!what.over) {
    what.waiting = world::self();
    (void)of_.world_.block(what.then == nullptr ? until : of_.world_.now() + millisecond);
    if (what.over || of_.world_.now() < until) continue;
    of_.disturbed(*by_);
    of_.fail(*by_, "simulated: no answer within the command timeout", 0);
  }
  what.waiting = nullptr;
}

void requester::call_back() {
  while (!by_->later.empty()) {
    const auto what = by_->later.front();
    by_->later.erase(by_->later.begin());
    what->then();
  }
}

/// Records under the real state family.
class server::state_back_end : public back_end {
 public:
  explicit state_back_end(server& of) : of_(of) {}

  std::unique_ptr<holdfast::store::session_store> connect(process& of) override {
    return std::make_unique<client>(of_, of_.connect_to(of));
  }
  std::vector<std::string> names() override {
    auto all = of_.family_->names();
    return all ? std::move(*all) : std::vector<std::string>{"(" + all.error().what + ")"};
  }
  std::string describe(std::string_view name) override {
    const auto r = of_.family_->permits(name, {});
    if (!r) return r.error().what;
    std::string text = std::string(name) + ":";
    for (const auto& h : r->found.holders) {
      text += " holder " + to_string(h.owner).substr(0, 4) + " of " + h.peer + " weight " +
              std::to_string(h.weight) + " fence " + std::to_string(h.fence) + " for " +
              std::to_string((h.expires_at - r->now_at) / 1000) + " ms;";
    }
    for (const auto& q : r->found.queue) {
      text += " waiter " + to_string(q.owner).substr(0, 4) + " of " + q.peer + ";";
    }
    return text;
  }
  std::vector<user> users(std::string_view name) override { return users_in(of_.record_of(name)); }
  bool lets_one_wait_for_what_is_free(std::string_view name) override {
    return first_one_fits(of_.record_of(name));
  }
  std::optional<std::uint32_t> left_at_latch(std::string_view name) override {
    return of_.latch_of(name);
  }
  std::vector<std::string> peers_at_latch(std::string_view name) override {
    return of_.peers_in_latch(name);
  }
  bool forget() override {
    of_.records_.clear();
    return true;
  }
  std::string lose(std::uint64_t which) override {
    if (of_.records_.empty()) return "nothing";
    const auto at =
        std::next(of_.records_.begin(), static_cast<std::ptrdiff_t>(which % of_.records_.size()));
    auto name = at->first;
    of_.records_.erase(at);
    return name;
  }

 protected:
  std::vector<user> users_in(const holdfast::store::permits_record& r) const {
    std::vector<user> all;
    for (const auto& h : r.holders)
      all.push_back({h.owner, of_.number_of(h.peer), false, of_.lasts(h.expires_at),
                     (of_.time().wall_at - h.since_wall_at) * microsecond});
    for (const auto& w : r.queue) all.push_back({w.owner, of_.number_of(w.peer), true});
    return all;
  }

  server& of_;
};

#ifdef HOLDFAST_WITH_REDIS
/// The library's scripts, in place of the family.
class server::script_back_end final : public state_back_end {
 public:
  explicit script_back_end(server& of) : state_back_end(of) {
    auto made =
        make_scripted({[&of] { return of.time(); }, [&of](const auto& n) { return of.tell(n); },
                       [&of] { return of.world_.random().one_in(8); },
                       [&of](bool needs_room) { return of.refused(needs_room); },
                       [&of] { return stamp_of(of.carried_out_); },
                       [&of](std::int64_t after) {
                         if (of.carried_out_ != nullptr) of.carried_out_->late = after;
                       },
                       std::chrono::milliseconds(of.is_.command_timeout / millisecond)});
    scripts_ = made.get();
    of.family_ = std::move(made);
  }
  std::vector<user> users(std::string_view name) override {
    const auto record = scripts_->look(name);
    auto all = users_in(record);
    for (std::size_t i = 0; i < record.holders.size(); ++i) {
      all[i].lasts = (record.holders[i].expires_at - of_.time().wall_at) * microsecond;
    }
    return all;
  }
  bool lets_one_wait_for_what_is_free(std::string_view name) override {
    return first_one_fits(scripts_->look(name));
  }
  std::optional<std::uint32_t> left_at_latch(std::string_view name) override {
    return scripts_->left_at_latch(name);
  }
  std::map<std::string, std::int64_t> wait_at_latch(std::string_view name) override {
    return scripts_->wait_at_latch(name);
  }
  std::vector<std::string> peers_at_latch(std::string_view name) override {
    return scripts_->peers_at_latch(name);
  }
  bool forget() override {
    scripts_->forget(of_.world_.random().one_in(2));
    return true;
  }
  std::string lose(std::uint64_t which) override { return scripts_->lose(which); }
  std::string for_ever() override { return scripts_->for_ever(); }
  std::string ends_too_early() override { return scripts_->ends_too_early(); }
  std::string left_of_queues() override { return scripts_->left_of_queues(); }

 private:
  static std::string stamp_of(const exchange* e) {
    if (e == nullptr || e->until == 0) return {};
    return std::to_string(e->until) +
           (e->none_before == 0 ? "" : ' ' + std::to_string(e->none_before));
  }

  scripted* scripts_;
};
#endif

server::server(world& w, trace& to, std::string name, const server_traits& is,
               const network_traits& net)
    : world_(w),
      trace_(to),
      name_(std::move(name)),
      is_(is),
      net_(net),
      family_(holdfast::family::over(std::make_unique<records>(*this))) {
  switch (is.keeps) {
    case server_traits::what::records:
      back_ = std::make_unique<state_back_end>(*this);
      break;
    case server_traits::what::scripts:
#ifdef HOLDFAST_WITH_REDIS
      back_ = std::make_unique<script_back_end>(*this);
#endif
      break;
    case server_traits::what::redisson:
#ifdef HOLDFAST_WITH_REDIS
      back_ = std::make_unique<redisson_server>(*this);
#endif
      break;
    case server_traits::what::lines:
      back_ = std::make_unique<consensus>(*this);
      break;
    case server_traits::what::slots:
      back_ = std::make_unique<slots>(*this);
      break;
    case server_traits::what::postgres_rows:
    case server_traits::what::mariadb_rows:
    case server_traits::what::advisory:
#ifdef HOLDFAST_WITH_SQL
      back_ = std::make_unique<sql_server>(*this);
#endif
      break;
    case server_traits::what::items:
#ifdef HOLDFAST_WITH_MEMCACHED
      back_ = std::make_unique<memcached_server>(*this);
#endif
      break;
  }
}

server::~server() = default;

std::shared_ptr<connection> server::connect_to(process& of) {
  auto by = std::make_shared<connection>();
  by->of = &of;
  by->peer = "s" + std::to_string(++sessions_);
  connections_.emplace(by->peer, by);
  return by;
}

std::unique_ptr<holdfast::store::session_store> server::connect(process& of) {
  return back_->connect(of);
}

holdfast::store::moment server::time() const noexcept {
  const nanos here =
      world_.now() + world_.now() / 1000 * is_.drift_per_mille + clock_is_ahead_ + is_.ahead;
  const auto wall = (1'700'000'000 * second + here) / 1000;
  if (is_.keeps >= server_traits::what::postgres_rows) return {wall, wall};
  return {(77'000 * second + here) / 1000, wall, is_.wall_only_grows};
}

nanos server::way() { return world_.random().between(net_.fastest, net_.slowest); }

// Trouble that lasts longer does not end because something else went wrong meanwhile.
void server::disturbed(connection& at, nanos takes) noexcept {
  at.disturbed_at = std::max(at.disturbed_at, world_.now() + takes);
}

nanos server::disturbed_at(const process& of) const noexcept {
  nanos last = disturbed_at_;
  for (const auto& [peer, c] : connections_) {
    if (c->of == &of) last = std::max(last, c->disturbed_at);
  }
  return last;
}

std::ptrdiff_t server::sessions_of(const process& of) const noexcept {
  return std::count_if(connections_.begin(), connections_.end(),
                       [&](const auto& c) { return c.second->of == &of && !c.second->closed; });
}

bool server::keeps_waiting(const process& of) const noexcept {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& c) {
    const auto& open = c.second->open;
    return c.second->of == &of &&
           std::any_of(open.begin(), open.end(), [](const auto& e) { return e->lost; });
  });
}

nanos server::late_at(const process& of) const noexcept {
  nanos last = -1;
  for (const auto& [peer, c] : connections_) {
    if (c->of == &of) last = std::max(last, c->late_at);
  }
  return last;
}

void server::send(const std::shared_ptr<connection>& by, std::shared_ptr<exchange> what) {
  auto& random = world_.random();
  what->sequence = ++by->sent;
  stamp(*by, *what);
  if (happens(net_.lose_request)) {
    disturbed(*by);
    what->lost = true;
    by->of->meets(trouble::lost_request);
    trace_.add("(request lost) " + what->label);
    if (random.one_in(2)) {
      world_.at(world_.now() + way(), [this, by, number = by->number] {
        if (by->number == number) fail(*by, "simulated: connection reset", 0);
      });
    }
    return;
  }
  nanos takes = way();
  if (happens(net_.slow_request)) {
    takes += random.between(millisecond, net_.slowest_late);
    disturbed(*by, takes);
    by->of->meets(trouble::slow_request);
    trace_.add("(request is slow) " + what->label);
  }
  const bool lose_reply = happens(net_.lose_reply);
  const nanos arrives = world_.now() + takes;
  by->last_arrival = std::max(by->last_arrival, arrives);
  const auto number = by->number;
  world_.at(net_.unordered ? arrives : by->last_arrival,
            [this, by, what = std::move(what), lose_reply, number] {
              if (number != by->number && !net_.delivers_late) return;
              arrive(by, what, lose_reply);
            });
}

// As link.cpp does it.
void server::stamp(const connection& by, exchange& what) const {
  if (!net_.refuses_late || !by.server_ahead) return;
  const std::int64_t now = world_.now() / microsecond + *by.server_ahead;
  const std::int64_t due = now + is_.command_timeout / microsecond;
  what.until = std::max({due, by.on_their_way_until + 1, by.known_after + 1});
  what.none_before = by.on_their_way_until >= now ? by.on_their_way_until : 0;
}

// False if the server refused it as too late.
bool server::carry_out_in_time(const std::shared_ptr<connection>& by, exchange& what) {
  what.arrived_at = time().wall_at;
  what.late.reset();
  carried_out_ = &what;
  what.carry_out();
  carried_out_ = nullptr;
  if (!what.late) return true;
  trace_.add("server", "(too late) " + what.label);
  by->known_after = std::max(by->known_after, what.over ? 0 : *what.late);
  return false;
}

void server::arrive(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what,
                    bool lose_reply) {
  if (world_.now() < down_until_) {
    if (!what->over) fail(*by, "simulated: the server is away", down_until_);
    return;
  }
  if (world_.now() < frozen_until_) {  // in order, when the server continues
    world_.at(frozen_until_, [=, this] { arrive(by, what, lose_reply); });
    return;
  }
  const bool is_void = what->sequence < by->void_before && (what->over || !is_.repeats);
  if (is_void || (what->never_late && what->over)) return;
  what->lose_reply = lose_reply;
  by->carried_out = std::max(by->carried_out, what->sequence);
  const nanos late_before = by->late_at;
  if (what->over) {
    if (what->asks) by->late_at = world_.now();
    for (auto& [name, book] : looked_at_) book->late_request(by->of->number);
  }
  ++commands_;
  if (trace_.on()) {
    trace_.add("server", "carries out for P" + std::to_string(by->of->number) + ' ' + by->peer +
                             ": " + what->label);
  }
  if (!answers_with_an_error(*by, *what) && !carry_out_in_time(by, *what))
    by->late_at = late_before;
  if (!what->takes_time) reply(by, what);
}

void server::reply(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what) {
  if (what->over) return disturbed(*by);  // nobody waits for it any more
  if (what->lose_reply) {
    disturbed(*by);
    what->lost = true;
    by->of->meets(trouble::lost_reply);
    trace_.add("server", "(reply lost) " + what->label);
    if (world_.random().one_in(2)) fail(*by, "simulated: connection reset", 0);
    return;
  }
  nanos takes = way();
  if (happens(net_.slow_reply)) {
    takes += world_.random().between(millisecond, net_.slowest_late);
    disturbed(*by, takes);
    by->of->meets(trouble::slow_reply);
    trace_.add("server", "(reply is slow) " + what->label);
  }
  const nanos arrives = world_.now() + takes;
  by->last_reply = std::max(by->last_reply, arrives);
  world_.at(net_.unordered ? arrives : by->last_reply, [this, by, what, number = by->number] {
    if (number == by->number) answer(by, what);
  });
}

void server::answer(const std::shared_ptr<connection>& by, const std::shared_ptr<exchange>& what) {
  if (what->over) return;
  what->over = true;
  by->server_ahead = what->arrived_at - world_.now() / microsecond;
  std::erase(by->open, what);
  if (what->then) by->later.push_back(what);
  if (what->waiting != nullptr) world_.wake(*what->waiting);
  if (what->tells) what->tells();
}

// The connection is gone: the threads that wait on it get an error.
void server::fail(connection& at, std::string why, nanos away_until) {
  ++at.number;
  // The next connection has no earlier messages to wait for.
  at.disturbed_at = at.last_arrival = at.last_reply = world_.now();
  at.away_until = std::max(at.away_until, away_until);
  for (const auto& what : std::exchange(at.open, {})) {
    what->failed = failure{errc::unavailable, why, true};
    what->over = true;
    at.on_their_way_until = std::max(at.on_their_way_until, what->until);
    if (what->then) at.later.push_back(what);
    if (what->waiting != nullptr) world_.wake(*what->waiting);
  }
  if (at.on_fail) at.on_fail();
}

result<permits_reply> server::carry_out(const named_command& c) {
  auto reply = family_->permits(c.name, c.command);
  show({&c, 1}, {&reply, 1});
  return reply;
}

// Reads the record with the kernel, as a command would, so that dead participants are seen. The
// record need not show yet what has expired.
holdfast::store::permits_record server::barrier_of(std::string_view name) {
  if (is_.keeps == server_traits::what::scripts) {
    auto now = family_->permits(name, {});
    return now ? std::move(now->found) : holdfast::store::permits_record{};
  }
  return record_of(name);
}

holdfast::store::permits_record server::record_of(std::string_view name) const {
  const auto at = records_.find(name);
  if (at == records_.end()) return {};
  auto record = holdfast::family::decode(at->second);
  auto* const mine = record ? std::get_if<holdfast::store::permits_record>(&*record) : nullptr;
  if (mine == nullptr) return {};
  return holdfast::kernel::apply(*mine, permits_command{}, time()).found;
}

bool server::first_one_fits(const holdfast::store::permits_record& r) {
  if (r.queue.empty()) return false;
  std::uint64_t used = r.queue.front().weight;
  for (const auto& h : r.holders) used += h.weight;
  return used <= r.capacity;
}

holdfast::store::countdown_record server::countdown_of(std::string_view name) const {
  const auto at = records_.find(name);
  if (at == records_.end()) return {};
  auto record = holdfast::family::decode(at->second);
  auto* const mine = record ? std::get_if<holdfast::store::countdown_record>(&*record) : nullptr;
  return mine == nullptr ? holdfast::store::countdown_record{} : std::move(*mine);
}

std::optional<std::uint32_t> server::latch_of(std::string_view name) const {
  const auto latch = countdown_of(name);
  if (latch.count == 0) return {};
  return latch.remaining;
}

// The record need not show yet what has expired.
std::vector<std::string> server::peers_in_latch(std::string_view name) const {
  std::vector<std::string> all;
  for (const auto& w : countdown_of(name).waiting) {
    if (w.expires_at > time().now_at) all.push_back(w.peer);
  }
  return all;
}

std::map<int, std::size_t> server::waiters_at_latch(std::string_view name) {
  std::map<int, std::size_t> all;
  for (const auto& peer : back_->peers_at_latch(name)) ++all[number_of(peer)];
  return all;
}

std::map<int, std::size_t> server::listeners(std::string_view name) {
  std::map<int, std::size_t> all;
  for (const auto& peer : back_->peers_that_listen(name)) {
    const auto at = connections_.find(peer);
    if (at != connections_.end() && !at->second->closed) ++all[at->second->of->number];
  }
  return all;
}

void server::show(std::span<const named_command> carried_out,
                  std::span<const result<permits_reply>> replies) {
  using verb = holdfast::store::permits_verb;
  for (std::size_t i = 0; i < carried_out.size(); ++i) {
    const auto& c = carried_out[i].command;
    const bool acquires = c.verb == verb::acquire && c.outlives_session && replies[i];
    if (acquires && replies[i]->outcome == holdfast::store::permits_outcome::granted) {
      given_[c.owner] = world_.now();
    }
  }
  if (looked_at_.empty()) return;
  for (std::size_t i = 0; i < carried_out.size(); ++i) {
    const auto& c = carried_out[i];
    const auto at = looked_at_.find(c.name);
    if (at == looked_at_.end() || !replies[i]) continue;
    using outcome = holdfast::store::permits_outcome;
    const bool done = replies[i]->outcome == outcome::done;
    if (replies[i]->outcome == outcome::granted && replies[i]->position == 0) {
      at->second->goes_on(c.command.owner, number_of(c.command.peer));
    }
    if (c.command.verb == verb::acquire) {
      at->second->arrives(c.command.owner, number_of(c.command.peer));
      if (done) at->second->all_are_out();
    }
    if (c.command.verb == verb::release && done) at->second->leaves(c.command.owner);
    if (!c.command.replaces || !replies[i]->replaced) continue;
    at->second->leaves(c.command.replaces);
    const bool broke = c.command.verb == verb::acquire && replies[i]->outcome == outcome::absent;
    if (broke) at->second->arrives_where_it_breaks(number_of(c.command.peer));
  }
  const auto now = time();
  const auto clock = is_.keeps == server_traits::what::scripts ? now.wall_at : now.now_at;
  for (const auto& [name, book] : looked_at_) {
    book->stands(
        barrier_of(name), world_.now(), [this](std::string_view peer) { return number_of(peer); },
        clock);
  }
}

nanos server::given_at(const holdfast::store::owner_id& to) const noexcept {
  const auto at = given_.find(to);
  return at == given_.end() ? -1 : at->second;
}

int server::number_of(std::string_view peer) const {
  const auto at = connections_.find(peer);
  return at == connections_.end() ? 0 : at->second->of->number;
}

void server::evict(std::string_view name) {
  if (world_.now() < down_until_) return;
  disturbed_at_ = world_.now();
  for (const auto& [peer, c] : connections_) c->of->meets(trouble::evicted);
  trace_.add("world", "an operator takes out all of " + std::string(name));
  permits_command all;
  all.verb = holdfast::store::permits_verb::evict;
  const auto barrier = looked_at_.find(name);
  const auto waited = [&] { return record_of(name).queue.size(); };
  const auto before = barrier == looked_at_.end() ? 0 : waited();
  (void)carry_out({name, all});
  if (before > 0) barrier->second->cleared(before, waited());
}

bool server::departed(std::string_view peer) const {
  if (!is_.sees_death) return false;
  const auto at = connections_.find(peer);
  return at == connections_.end() || at->second->closed || at->second->of->dead;
}

bool server::tell(const notification& n) {
  if (!is_.notifications) return true;
  if (departed(n.peer)) return false;
  const auto at = connections_.find(n.peer);
  if (at == connections_.end()) return true;
  const auto to = at->second;
  if (on_news && n.what == holdfast::store::notification_kind::granted) on_news(n);
  post(to, [this, to, n] {
    if (trace_.on()) {
      trace_.add("P" + std::to_string(to->of->number) + ".notice",
                 std::string(to_string(n.what)) + ' ' + n.name + ' ' +
                     to_string(n.owner).substr(0, 4) + " fence " + std::to_string(n.fence));
    }
    to->inbox.push_back(n);
    to->wake_reader(world_);
  });
  return true;
}

void server::post(const std::shared_ptr<connection>& to, std::function<void()> arrives) {
  if (!to->notification_up || to->closed) return;
  nanos takes = way();
  if (happens(net_.slow_notification)) {
    takes += world_.random().between(millisecond, net_.slowest_late);
    disturbed(*to);
    to->of->meets(trouble::slow_notification);
  }
  to->last_notification = std::max(to->last_notification, world_.now() + takes);
  world_.at(to->last_notification,
            [to, arrives = std::move(arrives), number = to->notification_number] {
              if (!to->closed && number == to->notification_number) arrives();
            });
}

void server::stop(nanos until, bool forgets) {
  down_until_ = std::max(down_until_, until);
  disturbed_at_ = until;
  trace_.add("world", "the server stops until " + std::to_string(until / millisecond) + " ms" +
                          (forgets ? " and forgets everything" : ""));
  back_->stopped();
  if (forgets && back_->forget()) forgot_at_ = forgot_all_at_ = until;
  for (auto& [peer, c] : connections_) {
    c->of->meets(forgot_at_ == until ? trouble::data_lost : trouble::restart);
    fail(*c, "simulated: the server has gone", until);
    ++c->notification_number;
    c->notification_up = false;
    world_.at(until + way() + world_.random().between(0, 50 * millisecond), [to = c] {
      to->notification_up = true;
      ++to->gaps;
      if (to->on_gap && !to->closed) to->on_gap();
    });
  }
}

void server::all_meet(trouble t, nanos until) {
  disturbed_at_ = std::max(disturbed_at_, until);
  for (const auto& [peer, c] : connections_) c->of->meets(t);
}

std::optional<failure> server::refused(bool needs_room) const {
  if (world_.now() < read_only_until_) return failure{errc::read_only, "simulated: read only"};
  if (!needs_room || world_.now() >= full_until_) return std::nullopt;
  return failure{errc::no_space, "simulated: no room"};
}

void server::refuse_writes(nanos until, bool full) {
  nanos& so_long = full ? full_until_ : read_only_until_;
  so_long = std::max(so_long, until);
  all_meet(full ? trouble::full : trouble::read_only, until);
  trace_.add("world", std::string("the server ") + (full ? "is full" : "takes no writes") +
                          " until " + std::to_string(until / millisecond) + " ms");
}

void server::refuse_row(std::string name, nanos until) {
  trace_.add("world", "the server lets nobody change " + name + " until " +
                          std::to_string(until / millisecond) + " ms");
  refused_row_ = std::move(name);
  row_refused_until_ = until;
  all_meet(trouble::read_only, until);
}

void server::lose_a_key(nanos until) {
  trace_.add("world", "the server drops " + back_->lose(world_.random().next()));
  forgot_at_ = world_.now();
  all_meet(trouble::key_lost, until);
}

void server::step_clock(nanos by, nanos until) {
  set_clock(by);
  all_meet(trouble::clock_step, until);
}

void server::set_clock(nanos by) {
  clock_is_ahead_ += by;
  trace_.add("world", "the server's clock jumps by " + std::to_string(by / millisecond) + " ms");
}

void server::freeze(nanos until) {
  frozen_until_ = std::max(frozen_until_, until);
  disturbed_at_ = until;
  for (const auto& [peer, c] : connections_) c->of->meets(trouble::freeze);
  trace_.add("world", "the server freezes until " + std::to_string(until / millisecond) + " ms");
}

void server::cut(const process& of, nanos until) {
  trace_.add("world", "P" + std::to_string(of.number) + " is cut off until " +
                          std::to_string(until / millisecond) + " ms");
  const bool both = world_.random().one_in(2);
  for (auto& [peer, c] : connections_) {
    if (c->of != &of) continue;
    c->of->meets(trouble::cut);
    if (both || world_.random().one_in(2)) fail(*c, "simulated: cut off", until);
    disturbed(*c, until - world_.now());
    if (!both && world_.random().one_in(2)) continue;
    ++c->notification_number;
    c->notification_up = false;
    world_.at(until + way(), [to = c] {
      to->notification_up = true;
      ++to->gaps;
      if (to->on_gap && !to->closed) to->on_gap();
    });
  }
}

void server::process_died(const process& of) {
  back_->process_died(of);
  for (auto& [peer, c] : connections_) {
    if (c->of != &of || c->closed) continue;
    c->closed = true;
    for (auto& [other, to] : connections_) {
      if (to->watched.contains(peer)) tell_departed(to, peer);
    }
  }
}

void server::tell_departed(const std::shared_ptr<connection>& to, std::string_view peer) {
  if (!is_.sees_death || to->closed) return;
  world_.at(world_.now() + way(), [this, to, gone = std::string(peer)] {
    if (to->closed) return;
    notification n;
    n.what = holdfast::store::notification_kind::departed;
    n.peer = gone;
    to->inbox.push_back(std::move(n));
    to->wake_reader(world_);
  });
}

void server::watch(const std::shared_ptr<connection>& by, std::string_view peer) {
  ++by->watched[std::string(peer)];
  const auto at = connections_.find(peer);
  if (at != connections_.end() && at->second->of->dead) tell_departed(by, peer);
}

bool server::watches_others(const process& of) const noexcept {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& one) {
    const connection& c = *one.second;
    return c.of == &of && !c.closed && !c.watched.empty();
  });
}

void server::end_of_faults() noexcept {
  network_traits calm;
  calm.delivers_late = net_.delivers_late;
  calm.unordered = net_.unordered;
  calm.refuses_late = net_.refuses_late;
  net_ = calm;
}

std::vector<std::string> server::names() { return back_->names(); }
std::string server::describe(std::string_view name) { return back_->describe(name); }

void server::has_old_places(std::string_view name) {
  for (const auto& u : back_->users(name)) {
    if (u.waits) old_places_.insert(u.owner);
  }
}

// A holder that asks for more under its lease appears twice.
std::optional<nanos> server::counts_until(std::string_view name, int process) {
  std::optional<nanos> last;
  for (const auto& u : back_->users(name)) {
    if (u.waits || (u.process != process && u.process != 0)) continue;
    const bool known = u.lasts != never;
    const nanos until =
        known ? world_.now() + u.lasts / (1000 + is_.drift_per_mille) * 1000 + millisecond : never;
    last = std::max(last.value_or(0), until);
  }
  return last;
}

// The server's clock may be slow by half a percent. What the queue entry of an answered request got
// later, when somebody else left, lasts for the claim time only: no answer to the call was lost.
bool server::has_granted_since(std::string_view name, int process, nanos since) {
  const auto all = back_->users(name);
  return std::any_of(all.begin(), all.end(), [&](const auto& u) {
    constexpr nanos longer_than_a_claim = 3 * second;
    const bool its = !u.waits && u.process == process && u.held_for >= 0 && u.lasts > 0 &&
                     u.held_for + u.lasts > longer_than_a_claim;
    return its && u.held_for + u.held_for / 100 + millisecond < world_.now() - since;
  });
}

std::map<holdfast::store::owner_id, nanos> server::held_until(std::string_view name) {
  std::map<holdfast::store::owner_id, nanos> all;
  for (const auto& u : back_->users(name)) {
    if (!u.waits && u.process > 0 && u.lasts != never) all[u.owner] = world_.now() + u.lasts;
  }
  return all;
}

bool server::has(std::string_view name, const holdfast::store::owner_id& owner) {
  const auto all = back_->users(name);
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& u) { return !u.waits && u.owner == owner; });
}

bool server::has_user(std::string_view name) {
  const auto all = back_->users(name);
  return std::any_of(all.begin(), all.end(), [](const auto& u) { return !u.waits; });
}

std::map<int, std::size_t> server::users(std::string_view name) {
  std::map<int, std::set<holdfast::store::owner_id>> owners;
  for (const auto& u : back_->users(name)) {
    if (!u.waits || !old_places_.contains(u.owner)) owners[u.process].insert(u.owner);
  }
  std::map<int, std::size_t> all;
  for (const auto& [process, those] : owners) all[process] = those.size();
  return all;
}

}  // namespace simulation
