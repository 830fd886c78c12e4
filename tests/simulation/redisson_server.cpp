#include "simulation/redisson_server.hpp"
#ifdef HOLDFAST_WITH_REDIS

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "family/slot_family.hpp"
#include "simulation/connection_inbox.hpp"
#include "store/redis/redisson.hpp"
#include "store/redis/scripts.hpp"

namespace simulation {

namespace redis = holdfast::store::redis;
using holdfast::errc;
using holdfast::failure;
using holdfast::result;
using holdfast::store::countdown_command;
using holdfast::store::countdown_reply;
using holdfast::store::kind;
using holdfast::store::owner_id;
using holdfast::store::slot;
using holdfast::store::slot_entry;
using holdfast::store::slot_outcome;
using holdfast::store::slot_reply;

/// The slot family's view, in one process.
class redisson_client final : public holdfast::store::slot_store, private requester {
 public:
  redisson_client(server& of, redisson_server& at, std::shared_ptr<connection> by)
      : requester(of, std::move(by)), at_(at) {
    can_.preferences = can_.fences = can_.lists_waiters = can_.survives_failover = false;
    can_.fair = can_.tells_holders = can_.rate_limiter = false;
    can_.semaphore = can_.unit_permits = can_.shared = can_.latch = can_.expiring = true;
    can_.notifications = can_.beside_others = true;
    can_.try_takes_ms = static_cast<std::uint32_t>(of.is_.command_timeout / millisecond);
  }
  ~redisson_client() override {
    by_->closed = true;
    by_->reader = nullptr;
  }

  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  const std::string& url() const noexcept override { return of_.name(); }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }

  result<slot_reply> add(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "add", who, lease);
  }
  result<slot_reply> extend(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "extend", who, lease);
  }
  result<slot_reply> resize(const slot& where, const slot_entry& who, std::int64_t lease) override {
    return change(where, "resize", who, lease);
  }
  result<slot_reply> remove(const slot& where, const owner_id& owner) override {
    return change(where, "remove", {.owner = owner}, 0);
  }
  result<std::vector<std::optional<slot_entry>>> look(std::span<const slot> at) override {
    std::vector<std::optional<slot_entry>> found;
    for (const auto& one : at) {
      const slot_entry any{.capacity = one.kind == kind::semaphore ? 1U : 0U};
      auto reply = change(one, "look", any, 0);
      // A release does not know of which kind what it searches for is.
      if (!reply && reply.error().code == errc::kind_mismatch)
        reply = change({one.name, one.part, kind::shared_mutex}, "look", any, 0);
      if (!reply) return std::move(reply.error());
      const bool there = reply->outcome == slot_outcome::taken;
      found.push_back(there ? std::optional(std::move(reply->other)) : std::nullopt);
    }
    return found;
  }
  result<std::vector<std::string>> names() override {
    return failure{errc::unsupported, "these keys look like any others"};
  }
  result<countdown_reply> countdown(std::string_view name, const countdown_command& c) override {
    const std::string key(name);
    auto answer = call(redis::redisson_call({key, key}, c), "latch " + key, c.owner, false);
    if (!answer) return std::move(answer.error());
    return redis::read_latch(key, *answer);
  }

  // The server confirms each subscription, as releases before it were missed.
  void wait_for(const slot& where, const owner_id& owner) override {
    const redisson_server::listener mine{by_->peer, std::string(where.name), owner};
    at_.listeners_[redis::redisson_channel(where.kind, where.name)].insert(mine);
    at_.tell(mine);
  }
  void done_waiting(const slot& where, const owner_id& owner) override {
    const auto channel = redis::redisson_channel(where.kind, where.name);
    at_.listeners_[channel].erase({by_->peer, std::string(where.name), owner});
    if (!listens(channel)) at_.heard_.erase({by_->peer, channel});
  }
  std::uint64_t heard(const slot& where) override {
    const auto channel = redis::redisson_channel(where.kind, where.name);
    const auto at = at_.heard_.find({by_->peer, channel});
    return at == at_.heard_.end() ? 0 : at->second;
  }

 private:
  using value = holdfast::store::redis::resp_value;

  bool listens(const std::string& channel) const {
    const auto& all = at_.listeners_[channel];
    return std::any_of(all.begin(), all.end(), [&](const auto& l) { return l.peer == by_->peer; });
  }

  result<value> call(std::string bytes, std::string label, const owner_id& owner, bool outlives) {
    return ask<value>(traced() ? std::move(label) : std::string(),
                      [&at = at_, bytes = std::move(bytes), owner, outlives,
                       process = by_->of->number]() -> result<value> {
                        at.owners_[owner] = process;
                        auto answer = at.answer_to(bytes);
                        if (outlives) at.of_.given_[owner] = at.of_.world_.now();
                        return answer;
                      });
  }

  result<slot_reply> change(const slot& where, const std::string& verb, const slot_entry& who,
                            std::int64_t lease_us) {
    const std::string key(where.name);
    const auto bytes = redis::redisson_call({key, key}, where, verb, who, lease_us, false);
    const auto answer = call(bytes, verb + ' ' + key + ' ' + to_string(who.owner).substr(0, 4),
                             who.owner, verb == "add" && who.outlives_session);
    if (!answer) return answer.error();
    if (answer->is_error() || answer->items.size() < 3) return failure{errc::corrupt, answer->text};
    const auto& items = answer->items;
    const auto state = items[0].integer;
    if (where.kind == kind::semaphore && verb == "look" && state == 1)
      return slot_reply{slot_outcome::taken, 0, redis::read_semaphore(items)};
    if (state == 0) {
      slot_reply reply;
      const auto told = verb == "remove" ? std::max<std::int64_t>(items[2].integer, 0) : 0;
      const bool ours = told > 0 && listens(redis::redisson_channel(where.kind, key));
      reply.others_listen = static_cast<std::uint32_t>(told - (ours ? 1 : 0));
      return reply;
    }
    if (state == 1) {
      slot_reply taken{slot_outcome::taken, 0, holder(where, who, items[1].text, items[2].integer)};
      for (std::size_t i = 3; i < items.size(); ++i) {
        taken.other.beside.push_back(holder(where, who, items[i].text, items[2].integer));
      }
      return taken;
    }
    if (state == 2) return slot_reply{slot_outcome::empty, 0, {}};
    return failure{state == 3 ? errc::kind_mismatch : errc::capacity_mismatch, items[1].text};
  }

  static slot_entry holder(const slot& where, const slot_entry& who, const std::string& text,
                           std::int64_t left_ms) {
    owner_id owner;
    (void)redis::parse_redisson_owner(text, owner);
    return {.owner = owner,
            .kind = where.kind,
            .capacity = who.capacity,
            .left_us = redis::us_of(left_ms),
            .alone = where.kind != kind::shared_mutex || redis::writes(text)};
  }

  redisson_server& at_;
  holdfast::store::capabilities can_;
  connection_inbox inbox_{of_, of_.world_, by_};
};

redisson_server::redisson_server(server& of)
    : of_(of),
      model_([&of] { return of.time().wall_at; },
             [this](const auto& channel, const auto& text) { return publish(channel, text); },
             [](bool) { return std::string(); }) {
  for (const auto& s : redis::scripts_of(redis::dialect::redisson)) model_.load(s.sha, s.text);
}

std::unique_ptr<holdfast::store::session_store> redisson_server::connect(process& of) {
  return holdfast::family::over(std::make_unique<redisson_client>(of_, *this, of_.connect_to(of)),
                                clock_of_processes());
}

redisson_server::value redisson_server::answer_to(const std::string& bytes) {
  // The connection adds the last argument: the time until which the command may be carried out.
  constexpr std::int64_t carried_out_within = 3'600'000'000;
  const auto until = std::to_string(of_.time().wall_at + carried_out_within);
  redis::resp_reader reader;
  reader.put(bytes + "$" + std::to_string(until.size()) + "\r\n" + until + "\r\n");
  value command;
  if (reader.next(command) != redis::resp_reader::progress::ready) {
    throw std::logic_error("half a command");
  }
  std::vector<std::string> words;
  for (auto& item : command.items) words.push_back(std::move(item.text));
  return run(std::move(words));
}

// A message counts for each connection that has subscribed.
int redisson_server::publish(const std::string& channel, const std::string&) {
  std::set<std::string> peers;
  for (const auto& l : listeners_[channel]) {
    if (peers.insert(l.peer).second) ++heard_[{l.peer, channel}];
    tell(l);
  }
  return static_cast<int>(peers.size());
}

void redisson_server::tell(const listener& who) {
  const auto to = of_.connections_.find(who.peer);
  if (to == of_.connections_.end()) return;
  holdfast::store::notification n;
  n.what = holdfast::store::notification_kind::granted;
  n.name = who.name;
  n.owner = who.owner;
  of_.post(to->second, [&w = of_.world_, to = to->second, n] {
    to->inbox.push_back(n);
    to->wake_reader(w);
  });
}

nanos redisson_server::left_of(const std::string& key) {
  return run({"PTTL", key}).integer * millisecond;
}

// A reader's entry ends by itself, and all readers end with the hash.
std::vector<back_end::user> redisson_server::users(std::string_view name) {
  const std::string key(name);
  std::vector<user> all;
  const auto add = [&](const owner_id& owner, nanos lasts) {
    const auto at = owners_.find(owner);
    if (lasts > 0) all.push_back({owner, at == owners_.end() ? 0 : at->second, false, lasts});
  };
  if (run({"TYPE", key}).text == "hash") {
    for (const auto& field : run({"HKEYS", key}).items) {
      owner_id owner;
      if (!redis::parse_redisson_owner(field.text, owner)) continue;
      const auto entry = redis::redisson_beside(key) + field.text + ":rwlock_timeout:1";
      const bool reads = run({"EXISTS", entry}).integer > 0;
      const bool shared = run({"HEXISTS", key, "mode"}).integer > 0;
      if (shared && !reads && !redis::writes(field.text)) continue;
      add(owner, reads ? std::min(left_of(entry), left_of(key)) : left_of(key));
    }
  }
  return all;
}

std::string redisson_server::describe(std::string_view name) {
  std::string text = std::string(name) + " " + run({"TYPE", std::string(name)}).text + ":";
  for (const auto& u : users(name)) {
    text += " [" + to_string(u.owner).substr(0, 4) + " of P" + std::to_string(u.process) + " for " +
            std::to_string(u.lasts / millisecond) + " ms]";
  }
  return text;
}

std::optional<std::uint32_t> redisson_server::left_at_latch(std::string_view name) {
  const std::string key(name);
  const auto left = run({"GET", key});
  if (!left.text.empty()) return static_cast<std::uint32_t>(std::stoul(left.text));
  const bool made = run({"EXISTS", redis::redisson_beside(key) + "holdfast"}).integer > 0;
  return made ? std::optional<std::uint32_t>(0) : std::nullopt;
}

bool redisson_server::forget() {
  model_.flush();
  return true;
}

}  // namespace simulation
#endif
