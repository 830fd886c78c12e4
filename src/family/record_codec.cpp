#include "family/record_codec.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>

namespace holdfast::family {

using namespace store;

namespace {

// ---- writing

/// Appends to the text.
class writer {
 public:
  explicit writer(std::string& text) : text_(text) {}

  template <class... Fields>
  void put_array(const Fields&... fields) {
    char before = '[';
    ((text_ += before, put(fields), before = ','), ...);
    text_ += ']';
  }

 private:
  template <std::integral Number>
  void put(Number number) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }

  void put(std::string_view word) {
    text_ += '"';
    for (const char c : word) put_escaped(c);
    text_ += '"';
  }

  void put_escaped(char c) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      text_ += "\\u00";
      text_ += hex[byte >> 4];
      text_ += hex[byte & 15];
      return;
    }
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }

  void put(const std::string& word) { put(std::string_view(word)); }
  void put(const owner_id& id) { put(to_string(id)); }
  void put(const holder& h) {
    put_array(h.owner, h.weight, h.fence, h.expires_at, h.since_wall_at, h.peer, h.note,
              int{h.lingers});
  }
  void put(const waiter& w) {
    put_array(w.owner, w.weight, w.priority, w.lease_us, w.expires_at, w.since_wall_at, w.peer,
              w.note, int{w.lingers});
  }
  void put(const led& l) { put_array(l.fence, l.since_wall_at, l.note); }
  void put(const arrival& a) { put_array(a.owner, a.forget_at); }
  // The last number is written only if it is not zero: earlier builds can read all other buckets.
  void put(const bucket& b) {
    if (b.reserved_until > 0) {
      return put_array(b.id, b.version, b.rule.unit, b.rule.gain, b.rule.step_us, b.rule.capacity,
                       b.used, b.at, b.reserved_until);
    }
    put_array(b.id, b.version, b.rule.unit, b.rule.gain, b.rule.step_us, b.rule.capacity, b.used,
              b.at);
  }

  template <class Item>
  void put(const std::vector<Item>& list) {
    text_ += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text_ += ',';
      put(list[i]);
    }
    text_ += ']';
  }

  std::string& text_;
};

// ---- reading

/// Names, sessions and notes are much shorter. A longer text was not written by holdfast, and is
/// not copied at each query.
constexpr std::size_t most_word_bytes = store::max_bucket_id;

/// Microseconds, units and tokens of holdfast are much smaller. The kernels add two of them, and
/// the sum always fits.
constexpr std::int64_t greatest_number = std::int64_t{1} << 60;

/// A cursor over the text. After the first unexpected input it stays bad.
class reader {
 public:
  explicit reader(std::string_view text) : text_(text) {}
  bool good() const { return good_; }
  bool at_end() const { return good_ && text_.empty(); }
  void fail() { good_ = false; }

  bool skip(char c) {
    if (!good_ || text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!skip(c)) fail();
  }

  template <class Number>
  void get(Number& number) {
    if (!good_) return;
    const std::size_t sign = text_.starts_with('-') ? 1 : 0;
    const bool padded = text_.size() > sign + 1 && text_[sign] == '0' && is_digit(text_[sign + 1]);
    if (padded || (sign == 1 && text_.substr(1).starts_with('0'))) return fail();
    const char* const end = text_.data() + text_.size();
    const auto [after, wrong] = std::from_chars(text_.data(), end, number);
    if (wrong != std::errc{}) return fail();
    text_.remove_prefix(static_cast<std::size_t>(after - text_.data()));
  }

  void get(std::int64_t& number) {
    get<std::int64_t>(number);
    if (number > greatest_number || number < -greatest_number) fail();
  }

  void get(bool& flag) {
    const bool set = skip('1');
    if (!set) expect('0');
    flag = set;
  }

  void get(std::string& word) {
    expect('"');
    word.clear();
    while (good_ && !skip('"')) {
      if (text_.empty()) return fail();
      const auto plain = std::min(text_.find_first_of("\"\\"), text_.size());
      const auto raw_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
      if (std::any_of(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(plain),
                      raw_control)) {
        return fail();
      }
      if (word.size() + plain > most_word_bytes) return fail();
      word.append(text_.substr(0, plain));
      text_.remove_prefix(plain);
      if (skip('\\')) unescape(word);
    }
  }

  void get(owner_id& id) {
    if (text_.size() < 34 || !skip('"') || !parse_owner_id(text_.substr(0, 32), id)) return fail();
    text_.remove_prefix(32);
    expect('"');
  }

  void get(holder& h) {
    get_array(h.owner, h.weight, h.fence, h.expires_at, h.since_wall_at, h.peer, h.note, h.lingers);
  }
  void get(waiter& w) {
    get_array(w.owner, w.weight, w.priority, w.lease_us, w.expires_at, w.since_wall_at, w.peer,
              w.note, w.lingers);
  }
  void get(led& l) { get_array(l.fence, l.since_wall_at, l.note); }
  void get(arrival& a) { get_array(a.owner, a.forget_at); }
  void get(bucket& b) {
    expect('[');
    get_fields(b.id, b.version, b.rule.unit, b.rule.gain, b.rule.step_us, b.rule.capacity, b.used,
               b.at);
    if (skip(',')) {
      get(b.reserved_until);
      if (b.reserved_until <= 0) fail();
    }
    expect(']');
  }

  template <class Item>
  void get(std::vector<Item>& list) {
    expect('[');
    if (skip(']')) return;
    do {
      get(list.emplace_back());
    } while (good_ && skip(','));
    expect(']');
  }

  template <class First, class... Rest>
  void get_fields(First& first, Rest&... rest) {
    get(first);
    ((expect(','), get(rest)), ...);
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  template <class... Fields>
  void get_array(Fields&... fields) {
    expect('[');
    get_fields(fields...);
    expect(']');
  }

  void unescape(std::string& word) {
    if (skip('"')) {
      word += '"';
    } else if (skip('\\')) {
      word += '\\';
    } else if (text_.size() >= 5 && text_.substr(0, 3) == "u00") {
      unsigned byte = 0;
      const auto end = text_.data() + 5;
      const bool lower =
          std::none_of(text_.data() + 3, end, [](char c) { return c >= 'A' && c <= 'F'; });
      if (!lower || std::from_chars(text_.data() + 3, end, byte, 16).ptr != end || byte >= 0x20) {
        return fail();
      }
      word += static_cast<char>(byte);
      text_.remove_prefix(5);
    } else {
      fail();
    }
  }

  std::string_view text_;
  bool good_ = true;
};

failure corrupt() {
  return {
      errc::corrupt,
      "the record in the store is damaged; look at it with the store's own tools, and remove it "
      "if nobody holds the lock"};
}

bool sound(const permits_record& r) {
  std::uint64_t held = 0;
  for (const holder& h : r.holders) held += h.weight;
  return held <= r.capacity && r.history.size() <= most_led;
}

result<any_record> decode_permits(reader& in, store::kind kind, std::uint64_t& last_fence) {
  permits_record r;
  r.kind = kind;
  in.get_fields(r.capacity, r.last_fence, r.holders, r.queue);
  if (kind == store::kind::election && in.skip(',')) in.get_fields(r.history);
  in.expect(']');
  if (!in.at_end() || !sound(r)) return corrupt();
  last_fence = r.last_fence;
  return any_record{std::move(r)};
}

result<any_record> decode_countdown(reader& in, std::uint64_t& last_fence) {
  countdown_record r;
  in.get_fields(r.count, r.remaining, r.expires_at, r.arrivals, r.waiting);
  if (in.skip(',')) {
    in.get(last_fence);
    if (last_fence == 0) in.fail();
  }
  in.expect(']');
  if (!in.at_end() || r.remaining > r.count) return corrupt();
  return any_record{std::move(r)};
}

// Whether the numbers by which the kernel divides and multiplies are in range.
bool sound(const bucket& b) {
  const auto& r = b.rule;
  const auto within = [](std::int64_t n) { return n >= 1 && n <= store::most_units; };
  return within(r.unit) && within(r.gain) && within(r.step_us) && within(r.capacity) &&
         r.unit <= r.capacity && b.used >= 0 && b.used <= store::most_units &&
         b.reserved_until <= store::most_units &&
         std::max(b.used, r.capacity) / r.gain < store::most_units / r.step_us;
}

result<any_record> decode_rate(reader& in, std::uint64_t& last_fence) {
  rate_record r;
  std::size_t count = 0;
  std::vector<holder> no_holders;
  std::vector<waiter> no_waiters;
  in.get_fields(count, last_fence, no_holders, no_waiters, r.buckets, r.refunds);
  in.expect(']');
  if (!in.at_end() || count != r.buckets.size() ||
      !std::all_of(r.buckets.begin(), r.buckets.end(), [](const bucket& b) { return sound(b); })) {
    return corrupt();
  }
  return any_record{std::move(r)};
}

}  // namespace

void encode(const permits_record& r, std::string& text) {
  if (!r.history.empty()) {
    return writer(text).put_array(record_version, to_string(r.kind), r.capacity, r.last_fence,
                                  r.holders, r.queue, r.history);
  }
  writer(text).put_array(record_version, to_string(r.kind), r.capacity, r.last_fence, r.holders,
                         r.queue);
}

void encode(const countdown_record& r, std::string& text, std::uint64_t last_fence) {
  if (last_fence != 0) {
    return writer(text).put_array(record_version, to_string(store::kind::latch), r.count,
                                  r.remaining, r.expires_at, r.arrivals, r.waiting, last_fence);
  }
  writer(text).put_array(record_version, to_string(store::kind::latch), r.count, r.remaining,
                         r.expires_at, r.arrivals, r.waiting);
}

// The fields where other kinds have holders and waiters stay empty, for programs that read them
// there.
void encode(const rate_record& r, std::string& text, std::uint64_t last_fence) {
  const std::vector<holder> nobody;
  writer(text).put_array(record_version, to_string(store::kind::rate_limiter), r.buckets.size(),
                         last_fence, nobody, nobody, r.buckets, r.refunds);
}

result<any_record> decode(std::string_view text) {
  std::uint64_t last_fence = 0;
  return decode(text, last_fence);
}

result<any_record> decode(std::string_view text, std::uint64_t& last_fence) {
  last_fence = 0;
  reader in(text);
  int version = 0;
  in.expect('[');
  in.get(version);
  if (!in.good() || version < 1) {
    return failure{errc::foreign_data,
                   "the record under this name was not written by holdfast; choose another name "
                   "or another store"};
  }
  if (version > record_version) {
    return failure{errc::newer_format, "the record was written by a newer holdfast (format " +
                                           std::to_string(version) + ", this program knows " +
                                           std::to_string(record_version) +
                                           "): update this program"};
  }
  std::string word;
  store::kind kind{};
  in.expect(',');
  in.get(word);
  in.expect(',');
  if (!in.good() || !store::parse_kind(word, kind)) return corrupt();
  if (kind == store::kind::latch) return decode_countdown(in, last_fence);
  if (kind == store::kind::rate_limiter) return decode_rate(in, last_fence);
  return decode_permits(in, kind, last_fence);
}

}  // namespace holdfast::family
