#include "store/redis/cluster.hpp"

#include <algorithm>
#include <utility>

#include "base/at_once.hpp"
#include "base/random.hpp"
#include "store/redis/errors.hpp"

namespace holdfast::store::redis {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view asking = "*1\r\n$6\r\nASKING\r\n";
/// The map is not requested more often: many threads notice at the same time that it is outdated.
constexpr auto refresh_at_most_every = 50ms;
constexpr std::size_t longest_chase = 5;
/// Nothing reports a replica that was removed, as no slot moves.
constexpr auto look_around_every = 1min;

failure on_the_way(const address& from, std::string_view said) {
  return {errc::unavailable,
          to_string(from) + " answered '" + std::string(said.substr(0, 200)) +
              "': the cluster is moving slots, or does not serve all of them; try again soon"};
}

slot_number slot_of(const request& r) {
  return r.is_key ? slot_of_key(r.name) : redis::slot_of(r.name);
}

address address_of(const node& n) { return {n.options().host, n.options().port}; }

}  // namespace

cluster::cluster(const redis_options& options)
    : options_(options),
      clock_(*options.clock),
      notifications_from_(std::hash<std::string>()(base::random_id())) {}

status cluster::open() {
  status last = failure{errc::unavailable, "no node was named"};
  for (const auto& seed : options_.seeds) {
    last = node_at(seed)->open();
    if (last) last = adopt(seed);
    if (last) return check_the_others(seed);
    if (last.error().code != errc::unavailable) return last;
  }
  return last;
}

// Each node has a version and a configuration of its own. A node that is away may be replaced
// later.
status cluster::check_the_others(const address& checked) {
  std::unique_lock lock{mutex_};
  const auto primaries = map_.primaries();
  lock.unlock();
  for (const auto& a : primaries) {
    if (a == checked) continue;
    auto ok = node_at(a)->open();
    if (!ok && ok.error().code != errc::unavailable) return ok;
  }
  return done{};
}

// ---- asking

result<reply> cluster::ask(const request& r) {
  result<reply> answer = reply{};
  run({routed_part{&r, &answer, slot_of(r), {}}}, true);
  return answer;
}

std::vector<result<reply>> cluster::ask(std::span<const request> all) {
  std::vector<result<reply>> answers(all.size(), result<reply>(reply{}));
  routed_parts todo;
  for (std::size_t i = 0; i < all.size(); ++i)
    todo.push_back({&all[i], &answers[i], slot_of(all[i]), {}});
  run(std::move(todo), false);
  return answers;
}

// A posted request that gets MOVED or the like fails; its repetition is sent to the right node.
bool cluster::try_post(const request& r, link::listener& then) {
  const auto to = owner(slot_of(r));
  if (!to) return false;
  const auto first = std::make_shared<link::listener>(std::move(then));
  link::listener told = [first, from = address_of(*to)](result<link::answer> got) {
    const resp_value* const said = got && !got->replies.empty() ? &got->replies.front() : nullptr;
    const bool on_its_way = said != nullptr && said->is_error() &&
                            (read_redirection(said->text, from) || says_later(said->text));
    if (on_its_way) return (*first)(on_the_way(from, said->text));
    (*first)(std::move(got));
  };
  const bool posted = to->post(r.as_message(), told);
  if (!posted) then = std::move(*first);
  return posted;
}

void cluster::settle() {
  std::vector<std::shared_ptr<node>> all;
  std::unique_lock lock{mutex_};
  all.reserve(nodes_.size());
  for (const auto& [at, n] : nodes_) all.push_back(n);
  lock.unlock();
  for (const auto& n : all) n->settle();
}

// Goes on round by round until each request has its answer. A request that ends without one keeps
// its failure.
void cluster::run(routed_parts todo, bool patient) {
  const boot_time deadline = boot_clock::now() + options_.command_timeout;
  std::chrono::nanoseconds wait = 1ms;
  for (std::size_t rounds = 1; !todo.empty(); ++rounds) {
    for (auto& e : todo) {
      if (!e.to) e.to = owner(e.slot);
    }
    // In the order of the requests: a release stays behind the renewal.
    std::stable_sort(todo.begin(), todo.end(),
                     [](const routed_part& a, const routed_part& b) { return a.to < b.to; });
    if (rounds == 1 && todo.front().to) look_around(*todo.front().to);
    round r = rounds == 1 ? send_first(todo) : send_to_each(todo);
    if (r.again.empty() || boot_clock::now() >= deadline) return;
    std::vector<const node*> avoid = r.dead;
    for (const auto& n : r.cut_off) avoid.push_back(n.get());
    if (!r.dead.empty() || r.stale) (void)refresh(avoid);
    if (!r.dead.empty()) keep_what_has_hope(r);
    if (r.later || rounds > longest_chase) {
      if (!patient) return;
      pause(base::jittered(wait));
      wait = std::min<std::chrono::nanoseconds>(wait * 2, 50ms);
    }
    todo = std::move(r.again);
  }
}

// Another node may have taken over the slots of a silent one. A request that waits for the silent
// node has no time left to ask for the map, so another thread asks for it meanwhile.
cluster::round cluster::send_first(std::span<routed_part> todo) {
  std::vector<std::shared_ptr<node>> kept;
  std::vector<const node*> silent;
  for (const auto& e : todo) {
    if (!e.to || !e.to->is_silent()) continue;
    kept.push_back(e.to);
    silent.push_back(e.to.get());
  }
  if (silent.empty()) return send_to_each(todo);
  round r;
  base::all_at_once(2, [&](std::size_t i) {
    if (i == 1) return (void)refresh(silent);  // if no thread can be started, this runs afterwards
    r = send_to_each(todo);
  });
  return r;
}

// The requests are part of a batch that is soon repeated: waiting for this node as well could cost
// the leases at the other nodes.
void cluster::leave_unasked(std::span<routed_part> together) {
  const failure why{errc::unavailable, to_string(address_of(*together.front().to)) +
                                           " did not answer another request just now"};
  for (auto& e : together) {
    *e.answer = why;
    e.answer->error().outcome_unknown = e.repeated;
  }
}

// Sends to all nodes at the same time: several silent nodes delay the others by one time-out, not
// by one each; for a while after that by none.
cluster::round cluster::send_to_each(std::span<routed_part> todo) {
  if (todo.front().to == todo.back().to) {
    round only;
    send(todo, only);
    return only;
  }
  std::vector<std::span<routed_part>> groups;
  for (auto first = todo.begin(); first != todo.end();) {
    const auto last =
        std::find_if(first, todo.end(), [&](const routed_part& e) { return e.to != first->to; });
    groups.emplace_back(first, last);
    first = last;
  }
  std::vector<round> rounds(groups.size());
  base::all_at_once(groups.size(), [&](std::size_t i) {
    const auto& to = groups[i].front().to;
    if (to && to->fell_silent_just_now()) return leave_unasked(groups[i]);
    send(groups[i], rounds[i]);
  });
  round all = std::move(rounds.front());
  for (auto& r : std::span(rounds).subspan(1)) {
    all.again.insert(all.again.end(), r.again.begin(), r.again.end());
    all.dead.insert(all.dead.end(), r.dead.begin(), r.dead.end());
    all.cut_off.insert(all.cut_off.end(), r.cut_off.begin(), r.cut_off.end());
    all.later = all.later || r.later;
    all.stale = all.stale || r.stale;
  }
  return all;
}

// Sends all requests for one node in one write.
void cluster::send(std::span<routed_part> together, round& r) {
  const auto to = together.front().to;
  if (!to) {
    for (auto& e : together)
      *e.answer = failure{errc::unavailable, "no node of the cluster has the slot of this name"};
    r.again.insert(r.again.end(), together.begin(), together.end());
    r.stale = r.later = true;
    return;
  }
  std::vector<message> messages;
  messages.reserve(together.size());
  std::vector<std::string> behind_asking(together.size());
  bool durable = false;
  for (std::size_t i = 0; i < together.size(); ++i) {
    const auto& e = together[i];
    auto& m = messages.emplace_back(e.what->as_message());
    durable = durable || e.what->durable;
    if (!e.asking) continue;
    behind_asking[i].append(asking).append(e.what->commands);
    m.bytes = behind_asking[i];
    m.replies = 2;
  }
  auto got = to->ask(messages, durable);
  std::size_t at = 0;
  for (auto& e : together) {
    if (got) {
      at += e.asking ? 1 : 0;
      judge(e, {std::move(got->replies[at++]), got->repeated, got->replicas, {}}, r);
      continue;
    }
    e.repeated = e.repeated || got.error().outcome_unknown;
    e.asking = false;
    *e.answer = got.error();
    e.answer->error().outcome_unknown = e.repeated;
    if (r.dead.empty()) r.dead.push_back(to.get());
    if (!e.what->once || !e.repeated) r.again.push_back(e);
  }
}

// Another node that was asked before may have carried the request out.
void cluster::judge(routed_part& e, reply got, round& r) {
  e.repeated = e.repeated || got.repeated;
  const std::string& text = got.value.text;
  const address from = address_of(*e.to);
  const auto elsewhere = got.value.is_error() ? read_redirection(text, from) : std::nullopt;
  const bool later = got.value.is_error() && says_later(text);
  if (!elsewhere && !later) {
    got.repeated = e.repeated;
    got.from = from;
    *e.answer = judged(std::move(got), *e.what);
    return;
  }
  *e.answer = on_the_way(from, text);
  e.answer->error().outcome_unknown = e.repeated;
  if (text.starts_with("CLUSTERDOWN")) r.cut_off.push_back(e.to);
  e.asking = elsewhere && elsewhere->only_this_time;
  e.to = e.asking ? node_at(elsewhere->to) : nullptr;
  if (elsewhere && !e.asking) {
    const std::lock_guard guard{mutex_};
    map_.move(elsewhere->slot, elsewhere->to);
  }
  r.stale = r.stale || !e.asking;
  r.later = r.later || later;
  r.again.push_back(e);
}

// Drops the requests whose only node did not answer: their callers decide when to ask it again.
void cluster::keep_what_has_hope(round& r) {
  const auto is_dead = [&](const std::shared_ptr<node>& n) {
    return n && std::find(r.dead.begin(), r.dead.end(), n.get()) != r.dead.end();
  };
  std::erase_if(r.again, [&](routed_part& e) {
    if (is_dead(e.to)) e.to = nullptr;
    return !e.to && is_dead(owner(e.slot));
  });
}

void cluster::pause(std::chrono::nanoseconds d) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, d);
}

// ---- the map

std::shared_ptr<node> cluster::node_at(const address& a) {
  const std::lock_guard guard{mutex_};
  auto& found = nodes_[a];
  if (!found) {
    redis_options o = options_;
    o.host = a.host;
    o.port = a.port;
    found = std::make_shared<node>(std::move(o));
  }
  return found;
}

std::shared_ptr<node> cluster::owner(slot_number slot) {
  std::unique_lock lock{mutex_};
  const address* const found = map_.owner(slot);
  if (found == nullptr) return nullptr;
  const address copy = *found;
  lock.unlock();
  return node_at(copy);
}

// The nodes that may know the map: first the one that answered last, silent ones at the end.
std::vector<address> cluster::candidates() const {
  const std::lock_guard guard{mutex_};
  std::vector<address> all{answered_last_};
  all.insert(all.end(), map_.nodes().begin(), map_.nodes().end());
  all.insert(all.end(), options_.seeds.begin(), options_.seeds.end());
  std::vector<address> once;
  for (const auto& a : all) {
    if (!a.host.empty() && std::find(once.begin(), once.end(), a) == once.end()) once.push_back(a);
  }
  std::stable_partition(once.begin(), once.end(), [&](const address& a) {
    const auto at = nodes_.find(a);
    return at == nodes_.end() || !at->second->is_silent();
  });
  return once;
}

status cluster::refresh(std::span<const node* const> avoid) {
  const std::lock_guard one_at_a_time{refreshing_};
  if (boot_clock::now() < refreshed_at_ + refresh_at_most_every) return done{};
  const boot_time deadline = boot_clock::now() + options_.command_timeout;
  status last = done{};
  for (const auto& a : candidates()) {
    const bool avoided =
        std::any_of(avoid.begin(), avoid.end(), [&](const node* n) { return a == address_of(*n); });
    if (avoided) continue;
    last = adopt(a);
    if (last || boot_clock::now() >= deadline) break;
  }
  refreshed_at_ = boot_clock::now();
  return last;
}

status cluster::adopt(const address& from) {
  std::string question;
  const std::array<std::string_view, 2> words{"CLUSTER", "SLOTS"};
  append_command(question, words);
  const auto got = node_at(from)->ask(question);
  if (!got) return got.error();
  return adopt(got->replies.front(), from);
}

status cluster::adopt(const resp_value& slots, const address& from) {
  auto map = slot_map::read(slots, from);
  if (!map) return std::move(map.error());
  if (map->nodes().empty())
    return failure{errc::unavailable, "the cluster has given no slots to its nodes yet"};
  std::vector<std::shared_ptr<node>> gone;  // destroyed without the mutex: calls listeners
  const std::lock_guard guard{mutex_};
  map_ = std::move(*map);
  answered_last_ = from;
  ++adopted_;
  look_at_ = saturated_add(clock_.now(), look_around_every);
  std::erase_if(nodes_, [&](auto& n) {
    if (is_known(n.first)) return false;
    gone.push_back(std::move(n.second));
    return true;
  });
  changed_.notify_all();
  return done{};
}

// No thread waits for the answer: a later request takes it, unless another map was adopted
// meanwhile, which may be newer.
void cluster::look_around(node& at) {
  std::unique_lock news{news_->mutex};
  const auto came = std::exchange(news_->answer, {});
  const auto [from, after] = std::pair(news_->from, news_->after);
  news.unlock();
  std::unique_lock lock{mutex_};
  if (came && after == adopted_) {
    lock.unlock();
    (void)adopt(*came, from);
    lock.lock();
  }
  const boot_time now = clock_.now();
  if (now < look_at_) return;
  look_at_ = saturated_add(now, look_around_every);
  const std::uint64_t before = adopted_;
  lock.unlock();
  std::string question;
  append_command(question, {"CLUSTER", "SLOTS"});
  link::listener then = [to = news_, from = address_of(at), before](result<link::answer> got) {
    if (!got || got->replies.empty()) return;
    const std::lock_guard guard{to->mutex};
    to->answer = std::move(got->replies.front());
    to->from = from;
    to->after = before;
  };
  (void)at.post({question, 1}, then);
}

status cluster::for_each(const std::function<void()>& begin,
                         const std::function<status(node&)>& look) {
  for (int attempt = 1;; ++attempt) {
    std::unique_lock lock{mutex_};
    const auto primaries = map_.primaries();
    lock.unlock();
    begin();
    status ok = done{};
    for (auto a = primaries.begin(); ok && a != primaries.end(); ++a) {
      const auto at = node_at(*a);
      ok = look(*at);
      const node* const dead = at.get();
      if (!ok) (void)refresh({&dead, 1});
    }
    if (ok || attempt == 2) return ok;
  }
}

// PUBLISH reaches all nodes of a cluster. So one node is enough for all messages that have no
// subscriber at their own node. If that node goes away, or is removed from the cluster, the session
// subscribes at another one.
redis_options cluster::for_notifications() {
  redis_options o = options_;
  o.locate = [this](boot_time, int) -> result<address> { return next_for_notifications(); };
  o.told_at = [this](const address& a) {
    const std::lock_guard guard{mutex_};
    return is_known(a);
  };
  return o;
}

address cluster::next_for_notifications() {
  const std::lock_guard guard{mutex_};
  const auto& all = map_.nodes();  // a session without a map could not have been opened
  return all[notifications_from_++ % all.size()];
}

bool cluster::is_known(const address& a) const {
  const auto& all = map_.nodes();
  return std::find(all.begin(), all.end(), a) != all.end();
}

}  // namespace holdfast::store::redis
