#include "store/redis/commands.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/keys.hpp"

namespace holdfast::store::redis {

namespace {

constexpr std::array<std::string_view, 7> permits_verbs{"acquire", "renew",   "release", "resize",
                                                        "evict",   "inspect", "notify"};
constexpr std::array<std::string_view, 5> countdown_verbs{"arrive", "wait", "leave", "remove",
                                                          "inspect"};
constexpr std::array<std::string_view, 3> rate_verbs{"take", "refund", "inspect"};

/// A number as text, without a string on the heap.
class digits {
 public:
  template <class Number>
  explicit digits(Number n)
      : size_(static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, n).ptr - text_)) {
  }
  operator std::string_view() const noexcept { return {text_, size_}; }

 private:
  char text_[24];
  std::size_t size_;
};

/// An owner as text; with `or_empty`, no owner is the empty text.
std::string text_of(const owner_id& id, bool or_empty = false) {
  return or_empty && !id ? std::string() : to_string(id);
}

// The scripts separate words by spaces, so an empty word needs a stand-in.
std::string_view word_or_dash(std::string_view text) {
  return text.empty() ? std::string_view("-") : text;
}

std::string flags_of(const permits_command& c) {
  std::string flags;
  if (c.wait) flags += 'w';
  if (c.outlives_session) flags += 'd';
  if (c.lingers) flags += 'l';
  return flags;
}

/// True if permits.lua has its short form "lock" for the command.
bool is_plain_lock(const permits_command& c) {
  return c.verb == permits_verb::acquire && c.kind == kind::mutex && c.capacity == 1 &&
         c.weight == 1 && !c.outlives_session && !c.replaces && c.fence_at_least == 0;
}

/// True if mutex.lua can turn the time into milliseconds, which it does by removing the last three
/// digits.
bool in_milliseconds(std::int64_t us) { return us >= 1'000 && us % 1'000 == 0; }

/// EVALSHA with the keys of a name and the arguments. The time, if any, is an additional key, so
/// its position does not depend on the number of arguments.
class call {
 public:
  call(const script_frame& frame, const script& what, std::string_view name)
      : keys_(frame.prefix, name), time_(frame.time.value_or(0)) {
    add("EVALSHA");
    add(what.sha);
    add(frame.time ? "6" : "5");
    for (std::size_t i = 0; i < name_keys::count; ++i) add(keys_[i]);
    if (frame.time) add(time_);
  }
  void add(std::string_view word) { words_[size_++] = word; }
  /// A command with a test's own time is not stamped: it cannot be late.
  void append(std::string& to, bool stamped) const {
    append_command(to, std::span(words_).first(size_), stamped ? 1 : 0);
  }

 private:
  name_keys keys_;
  const digits time_;
  std::array<std::string_view, 24> words_;
  std::size_t size_ = 0;
};

/// Calls `say` with the ARGV for permits.lua. The words are valid only during that call.
template <class Say>
void with_words(const permits_command& c, Say say) {
  const auto owner = text_of(c.owner), leaving = text_of(c.replaces, true),
             secret = text_of(c.secret, true);
  const digits lease(c.lease_us), place(c.queue_lease_us), capacity(c.capacity), weight(c.weight),
      priority(c.priority), at_least(c.fence_at_least);
  const auto flags = flags_of(c);
  const auto peer = word_or_dash(c.peer);
  if (is_plain_lock(c) && in_milliseconds(c.lease_us)) {
    const auto who = (c.lingers ? "1 " : "0 ") + std::string(peer) + ' ' + std::string(c.note);
    const auto terms =
        flags + ' ' + std::string(std::string_view(place)) + ' ' + std::to_string(c.priority);
    return say(std::array<std::string_view, 5>{"lock", owner, lease, who, terms});
  }
  std::vector<std::string_view> words{permits_verbs[static_cast<std::size_t>(c.verb)], owner};
  const bool acquires = c.verb == permits_verb::acquire || c.replaces;
  if (acquires || c.verb == permits_verb::renew || c.verb == permits_verb::resize ||
      c.verb == permits_verb::notify) {
    words.insert(words.end(), {lease, place, flags});
    if (c.verb != permits_verb::renew || acquires) {
      words.insert(words.end(), {to_string(c.kind), capacity, weight});
    }
    if (acquires) words.insert(words.end(), {peer, c.note, priority, leaving});
    if (acquires) words.push_back(at_least);
  }
  if (c.secret && (c.verb == permits_verb::release || c.replaces)) words.push_back(secret);
  say(words);
}

void append_double(std::string& bytes, std::int64_t n) {
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(n));
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(bits >> shift);
}

/// A rule as rate.lua reads and compares it: four doubles, least significant byte first. A fifth
/// double is the time of the refunded request.
std::string bytes_of(const bucket_choice& choice, rate_verb verb) {
  const bucket_rule& r = choice.rule;
  std::string bytes;
  bytes.reserve(40);
  for (const std::int64_t n : {r.unit, r.gain, r.step_us, r.capacity}) append_double(bytes, n);
  if (verb == rate_verb::refund && choice.due_at) append_double(bytes, *choice.due_at);
  return bytes;
}

/// The KEYS and ARGV for rate.lua.
class rate_words {
 public:
  rate_words(const script_frame& frame, const rate_question& asked)
      : names_(frame.prefix, asked.name),
        tokens_(asked.command.tokens),
        ahead_(asked.command.ahead_us),
        version_(asked.command.version),
        time_(frame.time.value_or(0)),
        owner_(text_of(asked.command.owner, true)) {
    const rate_command& c = asked.command;
    made_.reserve(2 * c.buckets.size());
    keys_ = {names_[4], names_[0]};
    for (const auto& b : c.buckets)
      keys_.push_back(made_.emplace_back(bucket_key(names_[0], b.id)));
    arguments_ = {rate_verbs[static_cast<std::size_t>(c.verb)], tokens_, ahead_, version_};
    for (const auto& b : c.buckets) arguments_.push_back(made_.emplace_back(bytes_of(b, c.verb)));
    // A take sends no owner: a shorter command costs less.
    if (c.verb == rate_verb::refund || frame.time) arguments_.push_back(owner_);
    if (frame.time) arguments_.push_back(time_);
  }
  rate_words(const rate_words&) = delete;

  const std::vector<std::string_view>& keys() const noexcept { return keys_; }
  const std::vector<std::string_view>& arguments() const noexcept { return arguments_; }

 private:
  const name_keys names_;
  const digits tokens_, ahead_, version_, time_;
  const std::string owner_;
  std::vector<std::string> made_;  // the words point into it
  std::vector<std::string_view> keys_, arguments_;
};

// ---- reading

/// A cursor over the items of an array. A missing item, or one of another type, makes it bad.
class items {
 public:
  explicit items(const resp_value& array) : list_(array.items) {}
  bool good() const noexcept { return good_; }
  bool more() const noexcept { return at_ < list_.size(); }
  bool more_text() const noexcept { return more() && list_[at_].type == resp_type::bulk; }

  template <class Number>
  void get(Number& number) {
    const resp_value* const v = next();
    if (v == nullptr) return;
    if (v->type == resp_type::integer) {
      number = static_cast<Number>(v->integer);
    } else {
      // A number that is too great was not written by holdfast. It is shown as nothing, and must
      // not hide the other items.
      const char* const end = v->text.data() + v->text.size();
      good_ = good_ && std::from_chars(v->text.data(), end, number).ptr == end && !v->text.empty();
    }
  }
  void get(bool& flag) {
    int number = 0;
    get(number);
    flag = number != 0;
  }
  void get(std::string& text) {
    if (const resp_value* const v = next()) text = v->text;
  }
  void get(owner_id& id) {
    if (const resp_value* const v = next()) good_ = good_ && parse_owner_id(v->text, id);
  }
  void get(kind& k) {
    if (const resp_value* const v = next()) good_ = good_ && parse_kind(v->text, k);
  }
  template <class Item, class Read>
  void get_list(std::vector<Item>& list, Read read) {
    const resp_value* const v = next();
    if (v == nullptr) return;
    for (const auto& one : v->items) {
      items in(one);
      read(in, list.emplace_back());
      good_ = good_ && in.good();
    }
  }
  template <class... Fields>
  void get_all(Fields&... fields) {
    (get(fields), ...);
  }

 private:
  const resp_value* next() {
    if (at_ < list_.size()) return &list_[at_++];
    good_ = false;
    return nullptr;
  }

  const std::vector<resp_value>& list_;
  std::size_t at_ = 0;
  bool good_ = true;
};

void drop_dash(std::string& peer) {
  if (peer == "-") peer.clear();
}

void read_holder(items& in, holder& h) {
  in.get_all(h.owner, h.weight, h.fence, h.expires_at, h.since_wall_at, h.peer, h.note, h.lingers);
  drop_dash(h.peer);
}

void read_waiter(items& in, waiter& w) {
  in.get_all(w.owner, w.weight, w.priority, w.lease_us, w.expires_at, w.since_wall_at, w.peer,
             w.note, w.lingers);
  drop_dash(w.peer);
}

void read_waiting(items& in, waiter& w) {
  in.get_all(w.owner, w.expires_at, w.since_wall_at, w.peer, w.note);
  drop_dash(w.peer);
}

constexpr int done_in_short = static_cast<int>(permits_outcome::done);

/// Reads "fence now", the short form of a grant of the requested lease.
result<permits_reply> read_short_grant(std::string_view text, std::int64_t lease_us) {
  permits_reply r;
  r.outcome = permits_outcome::granted;
  const bool good = base::take_number(text, r.fence) && base::parse_number(text, r.now_at);
  if (!good) return strange_answer("permits.lua");
  r.expires_at = r.now_at + lease_us;
  r.wall_at = r.now_at;
  return r;
}

bool is_mismatch(permits_outcome o) {
  return o == permits_outcome::kind_mismatch || o == permits_outcome::capacity_mismatch;
}

}  // namespace

void append_permits(std::string& to, const script_frame& frame, std::string_view name,
                    const permits_command& c) {
  call words(frame, permits_script(frame.how), name);
  with_words(c, [&](std::span<const std::string_view> said) {
    for (const auto word : said) words.add(word);
    words.append(to, !frame.time);
  });
}

void append_together(std::string& to, const script_frame& frame, std::span<const named_command> all,
                     const rate_question* tokens) {
  std::vector<std::string> arguments{std::to_string(all.size())};
  std::vector<name_keys> keys;
  keys.reserve(all.size());
  for (const auto& one : all) {
    keys.emplace_back(frame.prefix, one.name);
    with_words(one.command, [&](std::span<const std::string_view> said) {
      arguments.push_back(std::to_string(said.size()));
      arguments.insert(arguments.end(), said.begin(), said.end());
    });
  }
  std::optional<rate_words> more;
  if (tokens != nullptr) more.emplace(frame, *tokens);
  const digits count(all.size() * name_keys::count + (more ? more->keys().size() : 0));
  std::vector<std::string_view> words{"EVALSHA", together_script(frame.how).sha, count};
  for (const auto& k : keys) {
    for (std::size_t i = 0; i < name_keys::count; ++i) words.push_back(k[i]);
  }
  if (more) words.insert(words.end(), more->keys().begin(), more->keys().end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (more) words.insert(words.end(), more->arguments().begin(), more->arguments().end());
  append_command(to, words, 1);
}

void append_countdown(std::string& to, const script_frame& frame, std::string_view name,
                      const countdown_command& c) {
  call words(frame, countdown_script(frame.how), name);
  const auto owner = text_of(c.owner);
  const digits count(c.count), drop(c.drop), place(c.queue_lease_us), keep(c.keep_us),
      repeats(c.repeats_us);
  for (const std::string_view word :
       {countdown_verbs[static_cast<std::size_t>(c.verb)], std::string_view(owner),
        std::string_view(count), std::string_view(drop), std::string_view(place),
        std::string_view(keep), word_or_dash(c.peer), c.note, std::string_view(repeats)}) {
    words.add(word);
  }
  words.append(to, !frame.time);
}

void append_rate(std::string& to, const script_frame& frame, std::string_view name,
                 const rate_command& c) {
  const rate_words said(frame, {name, c});
  const digits count(said.keys().size());
  std::vector<std::string_view> words{"EVALSHA", rate_script().sha, count};
  words.insert(words.end(), said.keys().begin(), said.keys().end());
  words.insert(words.end(), said.arguments().begin(), said.arguments().end());
  append_command(to, words);
}

std::optional<std::int64_t> server_time_in(const resp_value& answer) noexcept {
  if (answer.type == resp_type::bulk) {
    std::string_view fence_and_now = answer.text;
    (void)base::take_word(fence_and_now);
    std::int64_t now = 0;
    return base::parse_number(fence_and_now, now) ? std::optional(now) : std::nullopt;
  }
  // permits.lua returns it in the fourth of at least seven items, which are all numbers.
  const auto& all = answer.items;
  if (all.size() < 7 || !std::all_of(all.begin(), all.begin() + 7, [](const resp_value& v) {
        return v.type == resp_type::integer;
      })) {
    return std::nullopt;
  }
  constexpr std::int64_t year_2001 = 1'000'000'000'000'000;
  if (all[3].integer < year_2001) return std::nullopt;
  return all[3].integer;
}

result<permits_reply> read_permits(const resp_value& answer, permits_verb verb,
                                   std::int64_t lease_us) {
  if (answer.is_error()) return server_says(answer.text);
  permits_reply r;
  if (answer.type == resp_type::integer && answer.integer == done_in_short) return r;
  if (answer.type == resp_type::bulk) return read_short_grant(answer.text, lease_us);
  items in(answer);
  int outcome = -1, marks = 0;
  in.get_all(outcome, r.fence, r.expires_at, r.now_at, r.retry_after_us, r.position, marks);
  r.replaced = (marks & 1) != 0;
  r.fresh = (marks & 2) != 0;
  if (!in.good() || outcome < 0 || outcome > 6) return strange_answer("permits.lua");
  r.outcome = static_cast<permits_outcome>(outcome);
  r.wall_at = r.now_at;
  if (is_mismatch(r.outcome)) in.get_all(r.found.kind, r.found.capacity);
  if (r.outcome == permits_outcome::queued && in.more_text()) in.get(r.behind);
  if (verb == permits_verb::inspect && r.outcome == permits_outcome::done) {
    std::string word;
    in.get_all(word, r.found.capacity, r.found.last_fence);
    if (!parse_kind(word, r.found.kind)) return strange_answer("permits.lua");
    in.get_list(r.found.holders, read_holder);
    in.get_list(r.found.queue, read_waiter);
    if (in.more()) {
      in.get_list(r.found.history,
                  [](items& one, led& l) { one.get_all(l.fence, l.since_wall_at, l.note); });
    }
  }
  if (!in.good()) return strange_answer("permits.lua");
  return r;
}

result<std::vector<permits_reply>> read_together(const resp_value& answer,
                                                 std::span<const named_command> all) {
  if (answer.is_error()) return server_says(answer.text);
  const bool fits = !answer.items.empty() && answer.items.size() <= all.size();
  if (!fits) return strange_answer("acquire_many.lua");
  std::vector<permits_reply> replies;
  for (std::size_t i = 0; i < answer.items.size(); ++i) {
    auto one = read_permits(answer.items[i], permits_verb::acquire, all[i].command.lease_us);
    if (!one) return std::move(one.error());
    replies.push_back(std::move(*one));
  }
  return replies;
}

result<admission> read_admission(const resp_value& answer, const named_command& asks,
                                 std::size_t buckets) {
  if (answer.is_error()) return server_says(answer.text);
  const std::size_t count = answer.items.size();
  if (count < 1 || count > 2) return strange_answer("acquire_many.lua");
  auto permits = read_permits(answer.items[0], permits_verb::acquire, asks.command.lease_us);
  if (!permits) return std::move(permits.error());
  admission both{std::move(*permits), {}};
  if (count == 1) return both;
  auto tokens = read_rate(answer.items[1], buckets);
  if (!tokens) return std::move(tokens.error());
  both.tokens = std::move(*tokens);
  return both;
}

result<countdown_reply> read_countdown(const resp_value& answer, countdown_verb verb) {
  if (answer.is_error()) return server_says(answer.text);
  countdown_reply r;
  items in(answer);
  int outcome = -1;
  in.get_all(outcome, r.remaining, r.now_at, r.retry_after_us);
  if (!in.good() || outcome < 0 || outcome > 5) return strange_answer("countdown.lua");
  r.outcome = static_cast<countdown_outcome>(outcome);
  if (r.outcome == countdown_outcome::kind_mismatch) in.get(r.found_kind);
  if (r.outcome == countdown_outcome::capacity_mismatch) in.get(r.found.count);
  if (verb == countdown_verb::inspect && in.more()) {
    in.get_all(r.found.count, r.found.remaining, r.found.expires_at);
    in.get_list(r.found.arrivals,
                [](items& one, arrival& a) { one.get_all(a.owner, a.forget_at); });
    in.get_list(r.found.waiting, read_waiting);
  }
  if (!in.good()) return strange_answer("countdown.lua");
  return r;
}

result<rate_reply> read_rate(const resp_value& answer, std::size_t buckets) {
  if (answer.is_error()) return server_says(answer.text);
  rate_reply r;
  items in(answer);
  int outcome = -1;
  in.get_all(outcome, r.now_at, r.wait_us, r.which);
  if (!in.good() || outcome < 0 || outcome > 5) return strange_answer("rate.lua");
  r.outcome = static_cast<rate_outcome>(outcome);
  if (r.outcome == rate_outcome::kind_mismatch) {
    in.get(r.found_kind);
  } else if (in.more()) {
    r.buckets.resize(buckets);
    for (auto& b : r.buckets) in.get_all(b.limit, b.remaining, b.wait_us, b.full_us);
  }
  if (!in.good()) return strange_answer("rate.lua");
  return r;
}

namespace {

/// Reads a bucket as rate.lua writes it: version used at unit gain step capacity, and optionally
/// reserved_until; whole numbers as doubles, least significant byte first. Returns false if it is
/// damaged.
bool parse_bucket(std::string_view text, bucket& b) {
  constexpr std::size_t least_count = 7;
  std::array<std::int64_t, least_count + 1> numbers{};
  const std::size_t count = text.size() / sizeof(double);
  if (text.size() % sizeof(double) != 0 || count < least_count || count > numbers.size())
    return false;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t byte = sizeof bits; byte-- > 0;)
      bits = (bits << 8) | static_cast<unsigned char>(text[i * sizeof bits + byte]);
    const auto number = std::bit_cast<double>(bits);
    const double least = i < 3 || i == least_count ? 0 : 1;
    if (!(number >= least && number <= 2.0 * most_units && number == std::floor(number)))
      return false;
    numbers[i] = static_cast<std::int64_t>(number);
  }
  b.version = static_cast<std::uint32_t>(numbers[0]);
  b.used = numbers[1];
  b.at = numbers[2];
  b.rule = {numbers[3], numbers[4], numbers[5], numbers[6]};
  b.reserved_until = numbers[7];
  return b.rule.unit <= b.rule.capacity;
}

}  // namespace

result<bucket_list> read_buckets(std::span<const resp_value> answers) {
  const auto now = read_server_time(answers.front());
  if (!now) return strange_answer("TIME");
  bucket_list found;
  found.now_at = *now;
  for (const resp_value& one : answers.subspan(1)) {
    const bool of_another_type = one.is_error() && one.text.starts_with("WRONGTYPE");
    if (one.is_error() && !of_another_type) return server_says(one.text);
    bucket& b = found.buckets.emplace_back();
    b.damaged = of_another_type || (!one.text.empty() && !parse_bucket(one.text, b));
  }
  return found;
}

}  // namespace holdfast::store::redis
