#include "store/memcached/value.hpp"

#include "base/words.hpp"

namespace holdfast::store::memcached {

namespace {

constexpr std::string_view format = "hf1";

}  // namespace

std::string write_value(const slot_entry& e) {
  std::string text;
  text.reserve(128 + e.note.size());
  text += format;
  const auto add = [&](std::string_view word) { (text += ' ') += word; };
  add(to_string(e.owner));
  add(to_string(e.kind));
  add(std::to_string(e.capacity));
  add(std::to_string(e.fence));
  add(std::to_string(e.since_wall_at));
  add(e.note);
  return text;
}

std::optional<slot_entry> read_value(std::string_view text) {
  slot_entry e;
  const bool good = base::take_word(text) == format &&
                    parse_owner_id(base::take_word(text), e.owner) && e.owner &&
                    parse_kind(base::take_word(text), e.kind) &&
                    base::take_number(text, e.capacity) && e.capacity > 0 &&
                    base::take_number(text, e.fence) && base::take_number(text, e.since_wall_at);
  if (!good) return std::nullopt;
  e.note = text;
  return e;
}

std::optional<unsigned> version_of(std::string_view text) {
  auto word = base::take_word(text);
  unsigned version = 0;
  if (!word.starts_with("hf") || !base::parse_number(word.substr(2), version)) return std::nullopt;
  return version;
}

}  // namespace holdfast::store::memcached
