#include "simulation/consensus.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "family/contender_family.hpp"

namespace simulation {

using holdfast::boot_time;
using holdfast::result;
using holdfast::store::contender;
using holdfast::store::contender_data;
using holdfast::store::contender_store;

/// The contender family's view of the store, in one process.
class consensus_client final : public contender_store, private requester {
 public:
  consensus_client(server& of, consensus& all, std::shared_ptr<connection> by)
      : requester(of, std::move(by)), all_(all) {
    can_.preferences = false;
    can_.expiring = false;
    can_.election = true;
    can_.try_takes_ms = 3 * static_cast<std::uint32_t>(of.is_.command_timeout / millisecond);
    by_->on_gap = [this] { alarm_all(); };
    learn(all_.heard_of(0), of_.world_.now());
    keeps_session_ = std::thread([this] { keep_session(); });
    calls_alarms_ = std::thread([this] { call_alarms(); });
  }

  ~consensus_client() override {
    {
      const std::lock_guard guard{mutex_};
      closing_ = true;
      changed_.notify_all();
    }
    keeps_session_.join();
    calls_alarms_.join();
    // A polite client says goodbye; if the message is lost, the session ends by itself.
    (void)ask<bool>("close the session", [&all = all_, number = session_]() -> result<bool> {
      all.end(number);
      return true;
    });
    by_->closed = true;
    by_->on_gap = nullptr;
  }

  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return of_.name(); }
  const std::string& peer() const noexcept override { return by_->peer; }

  boot_time safe_until(std::uint64_t number) const noexcept override {
    return number == session_ ? safe_until_ : boot_time{};
  }
  std::chrono::nanoseconds safe_span() const noexcept override {
    return std::chrono::nanoseconds(of_.is_.session_timeout * 2 / 5);
  }

  result<entered> enter(std::string_view name, const contender& who, const contender_data& says,
                        std::span<const std::string> leaving) override {
    auto in = enter_once(name, who, says, leaving);
    if (in || !of_.is_.repeats || !in.error().outcome_unknown) return in;
    auto again = enter_once(name, who, says, leaving);
    if (!again) again.error().outcome_unknown = true;
    if (again) again->repeated = true;
    return again;
  }

  result<entered> enter_once(std::string_view name, const contender& who,
                             const contender_data& says, std::span<const std::string> leaving) {
    return tell<entered>(
        "enter " + to_string(who.owner).substr(0, 4) + " w" + std::to_string(who.weight), name,
        [&all = all_, name = std::string(name), who, says,
         leaving = std::vector<std::string>(leaving.begin(), leaving.end()),
         shows = of_.is_.wall_only_grows,
         by_owner = of_.is_.repeats](std::uint64_t session) -> result<entered> {
          entered in;
          const auto* const there = by_owner ? all.same(name, who, session) : nullptr;
          if (there != nullptr) {
            in.replaced = !leaving.empty();
            in.node = there->who.node;
            in.fence = there->says.fence;
            in.session = session;
            return in;
          }
          in.replaced = all.take_out(name, leaving);
          auto& line = all.at(name);
          consensus::node p{who, says};
          p.says.fence = static_cast<std::uint64_t>(all.next_revision());
          p.who.node = all.name_of_node();
          p.says.session = session;
          in.node = p.who.node;
          in.fence = p.says.fence;
          in.session = session;
          line.nodes.push_back(std::move(p));
          consensus::ring(line.on_arrival);
          if (shows) in.line = all.all_of(name);
          return in;
        });
  }

  result<std::vector<contender>> contenders(std::string_view name, as_of when,
                                            alarm then) override {
    const bool settled = when != as_of::seen && when != as_of::latest;
    auto reply = tell<std::vector<contender>>(
        settled ? "contenders, settled" : "contenders", name,
        [&all = all_, by = by_, settled, name = std::string(name),
         then = remote(std::move(then))](std::uint64_t) -> result<std::vector<contender>> {
          if (settled) by->void_before = by->carried_out;
          if (then) all.at(name).on_arrival.push_back(then);
          return all.all_of(name);
        });
    if (!reply && !settled) reply.error().outcome_unknown = false;  // a read only
    return reply;
  }

  result<bool> leave(std::string_view name, std::span<const std::string> nodes) override {
    std::string verb = "leave";
    for (const auto& p : nodes) verb += ' ' + p;
    return tell<bool>(verb, name,
                      [&all = all_, name = std::string(name),
                       nodes = std::vector<std::string>(nodes.begin(), nodes.end())](
                          std::uint64_t) -> result<bool> { return all.take_out(name, nodes); });
  }

  result<std::optional<contender_data>> read(std::string_view name, const std::string& node,
                                             alarm then) override {
    return look<std::optional<contender_data>>(
        "read " + node, name,
        [&all = all_, name = std::string(name), node,
         then = remote(std::move(then))](std::uint64_t) -> result<std::optional<contender_data>> {
          auto* const p = all.find(name, node);
          if (p == nullptr) return std::optional<contender_data>{};
          if (then) p->on_change.push_back(then);
          return std::optional(p->says);
        });
  }

  std::string address(std::string_view name, const std::string& node) const override {
    return std::string(name) + '/' + node;
  }

  result<std::vector<std::optional<contender_data>>> read(
      std::string_view name, std::span<const contender> line) override {
    using answer = std::vector<std::optional<contender_data>>;
    return look<answer>(
        "read", name,
        [&all = all_, name = std::string(name),
         line = std::vector<contender>(line.begin(), line.end())](std::uint64_t) -> result<answer> {
          answer said;
          for (const auto& c : line) {
            const auto* const p = all.find(name, c.node);
            said.push_back(p == nullptr ? std::nullopt : std::optional(p->says));
          }
          return said;
        });
  }

  result<bool> write(std::string_view name, const std::string& node,
                     const contender_data& says) override {
    return tell<bool>(
        "write " + node, name,
        [&all = all_, name = std::string(name), node, says](std::uint64_t) -> result<bool> {
          auto* const p = all.find(name, node);
          if (p == nullptr) return false;
          const auto session = p->says.session;
          const auto fence = p->says.fence;
          p->says = says;
          p->says.session = session;
          if (p->says.fence == 0) p->says.fence = fence;
          consensus::ring(p->on_change);
          return true;
        });
  }

  std::vector<result<bool>> confirm(std::span<const node_of> nodes) override {
    using answer = std::vector<result<bool>>;
    std::vector<std::pair<std::string, std::string>> asked;
    for (const auto& p : nodes) asked.emplace_back(p.name, p.node);
    auto there_are = look<answer>(
        "confirm", "", [&all = all_, asked = std::move(asked)](std::uint64_t) -> result<answer> {
          answer there;
          for (const auto& [name, node] : asked) {
            there.emplace_back(all.find(name, node) != nullptr);
          }
          return there;
        });
    if (there_are) return std::move(*there_are);
    return answer(nodes.size(), there_are.error());
  }

  result<versioned> record(std::string_view name, bool, alarm then) override {
    return look<versioned>("record", name,
                           [&all = all_, name = std::string(name),
                            then = remote(std::move(then))](std::uint64_t) -> result<versioned> {
                             auto& line = all.at(name);
                             if (then) line.on_record.push_back(then);
                             return versioned{line.record, line.record_version};
                           });
  }

  result<std::optional<revision>> replace(std::string_view name, std::string_view text,
                                          revision version, std::int64_t) override {
    using answer = std::optional<revision>;
    return tell<answer>("replace", name,
                        [&all = all_, name = std::string(name), text = std::string(text),
                         version](std::uint64_t) -> result<answer> {
                          auto& line = all.at(name);
                          if (line.record_version != version) return answer{};
                          line.record = text;
                          line.record_version = text.empty() ? -1 : all.next_revision();
                          consensus::ring(line.on_record);
                          return answer(line.record_version);
                        });
  }

  result<holdfast::store::moment> time() override { return of_.time(); }

  result<std::vector<used_name>> names() override {
    return look<std::vector<used_name>>(
        "names", "", [&all = all_](std::uint64_t) -> result<std::vector<used_name>> {
          std::vector<used_name> used;
          for (auto& name : all.names()) used.push_back({std::move(name)});
          return used;
        });
  }

 private:
  /// Carries the request out in this session, or in a new one if this one has ended. The answer
  /// proves that the session lives.
  template <class Reply, class F>
  result<Reply> tell(std::string_view verb, std::string_view name, F carry_out) {
    const nanos sent = of_.world_.now();
    const auto session_then = std::make_shared<std::uint64_t>();
    auto reply = ask<Reply>(
        std::string(verb) + ' ' + std::string(name),
        [&all = all_, number = session_, session_then, carry_out = std::move(carry_out)] {
          *session_then = all.heard_of(number);
          return carry_out(*session_then);
        });
    if (reply) learn(*session_then, sent);
    return reply;
  }

  /// A read has changed nothing, even if its answer is lost.
  template <class Reply, class F>
  result<Reply> look(std::string_view verb, std::string_view name, F carry_out) {
    auto reply = tell<Reply>(verb, name, std::move(carry_out));
    if (!reply) reply.error().outcome_unknown = false;
    return reply;
  }

  // A late answer may arrive after the answer of a later session.
  void learn(std::uint64_t number, nanos sent) {
    if (number < session_) return;
    if (number > session_) {
      session_ = number;
      safe_until_ = {};
      alarm_all();
    }
    const boot_time safe = boot_time(std::chrono::nanoseconds(sent + by_->of->boot)) + safe_span();
    safe_until_ = std::max(safe_until_, safe);
  }

  // Wraps an alarm: the server triggers it, and it runs on this client's own thread, once, or after
  // a gap.
  alarm remote(alarm then) {
    if (!then) return {};
    const auto number = ++last_alarm_;
    alarms_.emplace(number, std::move(then));
    return [this, number, by = by_, &of = of_] { of.post(by, [this, number] { due(number); }); };
  }
  void due(std::uint64_t number) {
    due_.push_back(number);
    if (alarm_waits_ != nullptr) of_.world_.wake(*alarm_waits_);
  }
  void alarm_all() {
    for (const auto& [number, then] : alarms_) due(number);
  }

  void call_alarms() {
    world::self()->name = "alarms";
    for (;;) {
      while (due_.empty()) {
        if (closing_) return;
        alarm_waits_ = world::self();
        (void)of_.world_.block(of_.world_.now() + 20 * millisecond);
        alarm_waits_ = nullptr;
      }
      const auto found = alarms_.find(due_.front());
      due_.pop_front();
      if (found == alarms_.end()) continue;
      const auto then = std::move(found->second);
      alarms_.erase(found);
      then();
    }
  }

  void keep_session() {
    world::self()->name = "session";
    std::unique_lock lock{mutex_};
    while (!closing_) {
      lock.unlock();
      (void)tell<bool>("ping", "", [](std::uint64_t) -> result<bool> { return true; });
      lock.lock();
      if (closing_) return;
      changed_.wait_for(lock, std::chrono::nanoseconds(of_.is_.session_timeout / 6));
    }
  }

  consensus& all_;
  holdfast::store::capabilities can_;
  std::uint64_t session_ = 0;
  boot_time safe_until_{};
  std::map<std::uint64_t, alarm> alarms_;
  std::deque<std::uint64_t> due_;
  std::uint64_t last_alarm_ = 0;
  fiber* alarm_waits_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread keeps_session_;
  std::thread calls_alarms_;
};

std::unique_ptr<holdfast::store::session_store> consensus::connect(process& of) {
  return holdfast::family::over(std::make_unique<consensus_client>(of_, *this, of_.connect_to(of)),
                                clock_of_processes());
}

std::uint64_t consensus::heard_of(std::uint64_t number) {
  end_sessions();
  while (!sessions_.contains(number) || number <= sessions_before_) {
    auto& next = next_[number];
    // Several requests of one client may find that the session ended; all get the same new one.
    if (next == 0 || number == 0) sessions_[next = ++last_session_] = {};
    number = next;
  }
  const nanos ends = of_.world_.now() + of_.is_.session_timeout;
  sessions_[number].ends = ends;
  of_.world_.at(ends, [this] { end_sessions(); });
  return number;
}

std::int64_t consensus::next_revision() {
  if (revision_ % 8 == 7) {
    backup_ = {lines_, sessions_, revision_};
    for (auto& [name, line] : backup_.lines) {
      line.on_arrival.clear();
      line.on_record.clear();
      for (auto& n : line.nodes) n.on_change.clear();
    }
  }
  return ++revision_;
}

// The path of a node has its owner's or its session's number, so none is ever used again.
std::string consensus::name_of_node() const {
  const auto number = "p" + std::to_string(revision_);
  return restores_ == 0 ? number : number + "." + std::to_string(restores_);
}

// The sessions of the backup last for as long as if their clients had been heard of now. But the
// clients have noticed that the store knows less than they do, and begin new ones.
bool consensus::restore() {
  copy from = of_.world_.random().one_in(2) ? backup_ : copy{};
  lines_ = std::move(from.lines);
  sessions_ = std::move(from.sessions);
  revision_ = from.revision;
  sessions_before_ = last_session_;
  ++restores_;
  const nanos ends = of_.world_.now() + of_.is_.session_timeout;
  for (auto& [number, s] : sessions_) s.ends = ends;
  of_.world_.at(ends, [this] { end_sessions(); });
  return true;
}

void consensus::end_sessions() {
  std::vector<std::uint64_t> over;
  for (const auto& [number, s] : sessions_) {
    if (s.ends <= of_.world_.now()) over.push_back(number);
  }
  for (const auto number : over) {
    of_.trace_.add("server", "session " + std::to_string(number) + " has ended");
    end(number);
  }
}

void consensus::end(std::uint64_t number) {
  sessions_.erase(number);
  for (auto& [name, line] : lines_) {
    std::vector<std::string> gone;
    for (const auto& p : line.nodes) {
      if (p.says.session == number) gone.push_back(p.who.node);
    }
    (void)take_out(name, gone);
  }
}

consensus::node* consensus::find(std::string_view name, const std::string& called) {
  for (auto& p : at(name).nodes) {
    if (p.who.node == called) return &p;
  }
  return nullptr;
}

// The node of an earlier request for the same place.
const consensus::node* consensus::same(std::string_view name, const contender& who,
                                       std::uint64_t session) {
  for (const auto& n : at(name).nodes) {
    const bool it = n.who.owner == who.owner && n.who.weight == who.weight;
    if (it && n.who.raises == who.raises && n.says.session == session) return &n;
  }
  return nullptr;
}

bool consensus::take_out(std::string_view name, std::span<const std::string> nodes) {
  auto& line = at(name);
  std::vector<alarm> calls;
  bool any = false;
  std::erase_if(line.nodes, [&](node& p) {
    const bool goes = std::find(nodes.begin(), nodes.end(), p.who.node) != nodes.end();
    if (goes) calls.insert(calls.end(), p.on_change.begin(), p.on_change.end());
    any |= goes;
    return goes;
  });
  ring(calls);
  if (any) ring(line.on_arrival);
  return any;
}

std::vector<consensus::contender> consensus::all_of(std::string_view name) {
  std::vector<contender> all;
  if (const auto& line = at(name); line.record_version >= 0) {
    contender record;
    record.kind = holdfast::store::kind::latch;
    all.push_back(record);
  }
  for (const auto& p : at(name).nodes) all.push_back(p.who);
  return all;
}

void consensus::ring(std::vector<alarm>& alarms) {
  for (const auto& call : std::exchange(alarms, {})) call();
}

std::vector<std::string> consensus::names() {
  end_sessions();
  std::vector<std::string> used;
  for (const auto& [name, line] : lines_) {
    if (!line.nodes.empty() || line.record_version >= 0) used.push_back(name);
  }
  return used;
}

std::vector<back_end::user> consensus::users(std::string_view name) {
  std::vector<user> all;
  const auto line = lines_.find(name);
  if (line == lines_.end()) return all;
  for (const auto& n : line->second.nodes) {
    const auto session = sessions_.find(n.says.session);
    const bool lives = session != sessions_.end() && session->second.ends > of_.world_.now();
    if (lives) all.push_back({n.who.owner, of_.number_of(n.says.peer)});
  }
  return all;
}

std::vector<std::string> consensus::peers_at_latch(std::string_view name) {
  std::vector<std::string> all;
  const auto line = lines_.find(name);
  if (line == lines_.end()) return all;
  for (const auto& n : line->second.nodes) all.push_back(n.says.peer);
  return all;
}

std::string consensus::describe(std::string_view name) {
  std::string text = std::string(name) + ":";
  for (const auto& p : at(name).nodes) {
    text += " [" + p.who.node + " " + to_string(p.who.owner).substr(0, 4) + " weight " +
            std::to_string(p.who.weight) + (p.who.raises ? " raises" : "") + " session " +
            std::to_string(p.says.session) + " of " + p.says.peer + "]";
  }
  return text;
}

}  // namespace simulation
