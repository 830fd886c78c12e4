#ifdef HOLDFAST_WITH_MEMCACHED
#include "simulation/memcached_server.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include "family/slot_family.hpp"
#include "store/memcached/keys.hpp"
#include "store/memcached/memcached.hpp"

namespace simulation {

namespace memcached = holdfast::store::memcached;

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::int64_t micros = 1'000'000;

std::map<std::string, memcached_server*>& all_servers() {
  static std::map<std::string, memcached_server*> all;
  return all;
}

std::string_view next_word(std::string_view& text) {
  const auto space = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  return n;
}

std::string_view next_line(std::string_view& bytes) {
  const auto end = bytes.find(line_end);
  if (end == bytes.npos) throw std::logic_error("the simulated server got half a line");
  const auto line = bytes.substr(0, end);
  bytes.remove_prefix(end + line_end.size());
  return line;
}

// A person needs only the first lines.
std::string label_of(std::string_view bytes) {
  std::string label(bytes.substr(0, bytes.find("\r\n")));
  const auto more = bytes.find("\r\nma ");
  return more == bytes.npos ? label : label + "; ma";
}

}  // namespace

/// The server's end of a connection.
struct memcached_server::talk {
  int number = 0;
  std::shared_ptr<connection> way{};
  std::deque<std::shared_ptr<bytes_exchange>> queue{};
  std::size_t done = 0;     ///< bytes of the first exchange that are processed
  std::uint64_t steps = 0;  ///< the current step; alarms of older steps are ignored
  bool working = false;
  bool leaves = false;
  bool ended = false;
};

/// The words of a meta command, such as "ms key 5 T30 c".
struct memcached_server::meta {
  std::string_view verb;
  std::string_view key;
  std::size_t bytes = 0;
  std::vector<std::string_view> flags{};

  std::optional<std::string_view> flag(char which) const {
    for (const auto f : flags) {
      if (f.front() == which) return f.substr(1);
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> number(char which) const {
    const auto text = flag(which);
    if (!text) return std::nullopt;
    return number_in(*text);
  }
};

// ---- the client's end

memcached_client::memcached_client(dialled_server& to, server& of, std::shared_ptr<connection> way)
    : dialled(to, of, std::move(way)),
      to_(static_cast<memcached_server&>(to)),
      in_use_since_(now()) {}

// The first pieces belong to a greeting, which says nothing about other connections.
memcached_client::~memcached_client() {
  constexpr std::uint64_t of_a_greeting = 3;
  const bool silent = !broken() && !sent_.empty() && !sent_.front()->over &&
                      now() - sent_at_ >= to_.command_timeout();
  if (silent && pieces_ > of_a_greeting) to_.fell_silent(user(), in_use_since_);
}

void memcached_client::send(std::string bytes) {
  to_.is_used(user(), used_at());
  constexpr nanos pause = 300 * millisecond;
  if (now() > used_at() + pause) in_use_since_ = now();
  sent_at_ = now();
  ++pieces_;
  auto e = std::make_shared<bytes_exchange>();
  if (traced()) e->label = label_of(bytes);
  e->bytes = std::move(bytes);
  e->takes_time = true;
  e->carry_out = [&to = to_, n = number(), weak = std::weak_ptr(e)] {
    if (const auto here = weak.lock()) to.take(n, here);
  };
  sent_.push_back(e);
  begin(e);
}

bool memcached_client::has_input() const noexcept {
  return broken() || !incoming_.empty() || (!sent_.empty() && sent_.front()->over);
}

std::string memcached_client::take(std::size_t most) {
  while (!sent_.empty() && sent_.front()->over) {
    const auto& first = *sent_.front();
    incoming_ += first.failed ? first.arrived : first.reply;
    sent_.pop_front();
  }
  auto some = incoming_.substr(0, most);
  incoming_.erase(0, some.size());
  return some;
}

// ---- the server

memcached_server::memcached_server(server& of)
    : dialled_server(of),
      phase_(of.world_.random().between(0, micros - 1)),
      same_pid_(of.world_.random().one_in(2)) {
  all_servers()[of.name()] = this;
}

memcached_server::~memcached_server() { all_servers().erase(of_.name()); }

memcached_server* memcached_server::named(const std::string& host) {
  const auto at = all_servers().find(host);
  return at == all_servers().end() ? nullptr : at->second;
}

void memcached_server::is_used(const process& by, nanos before) const {
  const auto at = silent_since_.find(&by);
  if (at == silent_since_.end() || !long_before(before, at->second.since, by)) return;
  violated("no idle connection is used after one has fallen silent",
           "P" + std::to_string(by.number) + ": idle since " +
               std::to_string(before / millisecond) + " ms, and one fell silent at " +
               std::to_string(at->second.noticed / millisecond) + " ms");
}

std::unique_ptr<holdfast::store::session_store> memcached_server::connect(process& of) {
  auto made = open_until_it_works(of, [&] {
    memcached::memcached_options o;
    o.connect_timeout = o.command_timeout =
        std::chrono::milliseconds(of_.is_.command_timeout / millisecond);
    o.servers = {{of_.name(), 11211}};
    o.url = of_.name();
    o.clock = &clock_of_processes();
    return memcached::open_memcached(std::move(o));
  });
  return holdfast::family::over(std::move(made), clock_of_processes());
}

std::vector<std::string> memcached_server::names() {
  std::vector<std::string> all;
  for (const auto& [key, item] : std::map(items_)) {
    const auto name = memcached::name_of_key("holdfast", key);
    if (name && find(key) != nullptr) all.push_back(*name);
  }
  return all;
}

std::string memcached_server::describe(std::string_view name) {
  std::string text = std::string(name) + ":";
  for (const auto& [key, item] : items_) {
    if (memcached::name_of_key("holdfast", key) != name || item.ends_at <= tick()) continue;
    text += " [" + item.value.substr(4, 4) + " for " + std::to_string(item.ends_at - tick()) +
            " ticks]";
  }
  return text;
}

std::vector<back_end::user> memcached_server::users(std::string_view name) {
  std::vector<user> all;
  for (const auto& [key, item] : items_) {
    if (memcached::name_of_key("holdfast", key) != name || item.ends_at <= tick()) continue;
    all.push_back({{all.size() + 1, 0}, 0});
  }
  return all;
}

// No item outlives the server, and its numbers restart.
void memcached_server::stopped() {
  for (const auto& [number, t] : std::map(talks_)) end(t);
  items_.clear();
  last_unique_ = 0;
  began_ = 0;
  ++lives_;
}

void memcached_server::process_died(const process& of) {
  for (const auto& [number, t] : talks_) {
    if (t->way->of != &of) continue;
    of_.world_.at(of_.world_.now() + of_.way(), [this, n = number] { leave(n); });
  }
}

std::string memcached_server::lose(std::uint64_t which) {
  if (items_.empty()) return "nothing";
  const auto at = std::next(items_.begin(), static_cast<std::ptrdiff_t>(which % items_.size()));
  auto key = at->first;
  items_.erase(at);
  return key;
}

void memcached_server::greet(const std::shared_ptr<dialled>& c) {
  auto t = std::make_shared<talk>();
  t->number = c->number();
  t->way = way_of(*c);
  talks_.emplace(t->number, t);
}

void memcached_server::leave(int number) {
  const auto at = talks_.find(number);
  if (at == talks_.end()) return;
  const auto t = at->second;
  t->leaves = true;
  if (!t->working) end(t);
}

void memcached_server::take(int number, const std::shared_ptr<bytes_exchange>& e) {
  const auto at = talks_.find(number);
  if (at == talks_.end()) return;
  at->second->queue.push_back(e);
  if (!at->second->working) go_on(at->second);
}

void memcached_server::go_on_later(const std::shared_ptr<talk>& t, nanos after) {
  of_.world_.at(of_.world_.now() + after, [this, t, step = t->steps] {
    if (!t->ended && step == t->steps) go_on(t);
  });
}

// Processes one command after the other; commands of other connections come in between.
void memcached_server::go_on(const std::shared_ptr<talk>& t) {
  auto& random = of_.world_.random();
  t->working = true;
  ++t->steps;
  if (of_.world_.now() < of_.frozen_until_) {
    return go_on_later(t, of_.frozen_until_ - of_.world_.now());
  }
  while (!t->ended && !t->queue.empty()) {
    if (of_.happens(of_.net_.lose_reply / 8)) return cut_off(t);
    do_next(t);
    if (t->queue.empty()) break;
    if (of_.happens(of_.net_.slow_request)) {
      of_.disturbed(*t->way);
      return go_on_later(t, random.between(0, of_.net_.slowest_late / 4));
    }
    if (random.one_in(3)) return go_on_later(t, random.between(0, 100 * microsecond));
  }
  t->working = false;
  if (!t->ended && t->leaves) end(t);
}

void memcached_server::do_next(const std::shared_ptr<talk>& t) {
  const auto e = t->queue.front();
  auto rest = std::string_view(e->bytes).substr(t->done);
  e->reply += carry_out(rest);
  t->done = e->bytes.size() - rest.size();
  if (!rest.empty()) return;
  t->queue.pop_front();
  t->done = 0;
  of_.reply(t->way, e);
}

// Some bytes of the reply may have arrived before.
void memcached_server::cut_off(const std::shared_ptr<talk>& t) {
  of_.trace_.add("server", "ends a connection in the middle of its work");
  of_.disturbed(*t->way);
  const auto& first = *t->queue.front();
  t->queue.front()->arrived =
      first.reply.substr(0, of_.world_.random().below(first.reply.size() + 1));
  if (!t->way->closed) of_.fail(*t->way, "simulated: the connection ended", 0);
  end(t);
}

void memcached_server::end(const std::shared_ptr<talk>& t) {
  t->ended = true;
  t->queue.clear();
  talks_.erase(t->number);
}

// ---- stored items

// The server's clock counts whole seconds, and sometimes counts one too late; the next count is two
// then.
std::int64_t memcached_server::tick() {
  const auto now = of_.time().wall_at + phase_;
  const auto second_now = now / micros;
  if (second_now == tick_) return tick_;
  if (late_ != second_now) {
    auto& random = of_.world_.random();
    late_ = second_now;
    late_until_ = random.one_in(8) ? second_now * micros + random.between(0, micros - 1) : 0;
    tick_ = std::max(tick_, second_now - 1);
  }
  if (now >= late_until_) tick_ = std::max(tick_, second_now);
  return tick_;
}

memcached_server::item* memcached_server::find(std::string_view key) {
  const auto at = items_.find(key);
  if (at == items_.end()) return nullptr;
  if (at->second.ends_at > tick()) return &at->second;
  items_.erase(at);
  return nullptr;
}

void memcached_server::put(item& into, std::string value, const meta& m) {
  into.value = std::move(value);
  into.unique = ++last_unique_;
  into.ends_at = tick() + static_cast<std::int64_t>(m.number('T').value_or(0));
}

std::string memcached_server::carry_out(std::string_view& bytes) {
  if (began_ == 0) began_ = tick();
  auto line = next_line(bytes);
  meta m;
  m.verb = next_word(line);
  if (m.verb == "mn") return "MN\r\n";
  if (m.verb == "stats") return stats();
  m.key = next_word(line);
  if (m.verb == "add" || m.verb == "cas") return write(m, line, bytes);
  std::string value;
  if (m.verb == "ms") {
    m.bytes = number_in(next_word(line));
    value = bytes.substr(0, m.bytes);
    bytes.remove_prefix(m.bytes + line_end.size());
  }
  while (!line.empty()) m.flags.push_back(next_word(line));
  if (m.verb == "ms") return set(m, std::move(value));
  if (m.verb == "mg") return get(m);
  if (m.verb == "md") return remove(m);
  if (m.verb == "ma") return count(m);
  throw std::logic_error("the simulated server does not know " + std::string(m.verb));
}

std::string memcached_server::stats() {
  const auto pid = same_pid_ ? std::uint64_t{1} : 100 + lives_;
  return "STAT pid " + std::to_string(pid) + "\r\nSTAT uptime " + std::to_string(tick() - began_) +
         "\r\nSTAT time " + std::to_string(tick()) + "\r\nEND\r\n";
}

// Commands such as "add key 0 30 5" and "cas key 0 30 5 17", with the value.
std::string memcached_server::write(meta& m, std::string_view line, std::string_view& bytes) {
  (void)next_word(line);
  const std::string ends = "T" + std::string(next_word(line));
  m.flags = {ends};
  m.bytes = number_in(next_word(line));
  auto value = std::string(bytes.substr(0, m.bytes));
  bytes.remove_prefix(m.bytes + line_end.size());
  item* there = find(m.key);
  if (of_.refused(true)) return "SERVER_ERROR out of memory storing object\r\n";
  const bool adds = m.verb == "add";
  if (adds && there != nullptr) return "NOT_STORED\r\n";
  if (!adds && there == nullptr) return "NOT_FOUND\r\n";
  if (!adds && there->unique != number_in(line)) return "EXISTS\r\n";
  if (there == nullptr) there = &items_[std::string(m.key)];
  put(*there, std::move(value), m);
  return "STORED\r\n";
}

// A store by a meta command. Without room for it, the server drops the old item, which would be out
// of date.
std::string memcached_server::set(const meta& m, std::string value) {
  item* there = find(m.key);
  if (of_.refused(true)) {
    if (there != nullptr) items_.erase(items_.find(m.key));
    return "SERVER_ERROR out of memory storing object\r\n";
  }
  if (const auto unique = m.number('C')) {
    if (there == nullptr) return "NF\r\n";
    if (there->unique != *unique) return "EX\r\n";
  } else if (m.flag('M') == "E" && there != nullptr) {
    return "NS\r\n";
  }
  if (there == nullptr) there = &items_[std::string(m.key)];
  put(*there, std::move(value), m);
  return "HD c" + std::to_string(there->unique) + "\r\n";
}

std::string memcached_server::get(const meta& m) {
  const item* const there = find(m.key);
  if (there == nullptr) return "EN\r\n";
  std::string flags;
  for (const auto f : m.flags) {
    if (f == "t") flags += " t" + std::to_string(there->ends_at - tick());
    if (f == "c") flags += " c" + std::to_string(there->unique);
  }
  if (!m.flag('v')) return "HD" + flags + "\r\n";
  return "VA " + std::to_string(there->value.size()) + flags + "\r\n" + there->value + "\r\n";
}

std::string memcached_server::remove(const meta& m) {
  const item* const there = find(m.key);
  if (there == nullptr) return "NF\r\n";
  if (m.number('C') != there->unique) return "EX\r\n";
  items_.erase(items_.find(m.key));
  return "HD\r\n";
}

std::string memcached_server::count(const meta& m) {
  item* there = find(m.key);
  if (there == nullptr && of_.refused(true)) {
    return "SERVER_ERROR Out of memory allocating new item\r\n";
  }
  std::uint64_t n = m.number('J').value_or(0);
  if (there != nullptr) {
    n = number_in(there->value) + 1;
  } else {
    there = &items_[std::string(m.key)];
  }
  put(*there, std::to_string(n), m);
  return "VA " + std::to_string(there->value.size()) + "\r\n" + there->value + "\r\n";
}

}  // namespace simulation
#endif
