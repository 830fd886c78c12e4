#include "store/memcached/value.hpp"

#include <charconv>

namespace holdfast::store::memcached {

namespace {

constexpr std::string_view format = "hf1";

std::string_view next_word(std::string_view& text) {
  const auto space = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

template <class Number>
bool read_number(std::string_view word, Number& number) {
  const char* const end = word.data() + word.size();
  const auto [after, wrong] = std::from_chars(word.data(), end, number);
  return wrong == std::errc{} && after == end;
}

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
  const bool good = next_word(text) == format && parse_owner_id(next_word(text), e.owner) &&
                    e.owner && parse_kind(next_word(text), e.kind) &&
                    read_number(next_word(text), e.capacity) && e.capacity > 0 &&
                    read_number(next_word(text), e.fence) &&
                    read_number(next_word(text), e.since_wall_at);
  if (!good) return std::nullopt;
  e.note = text;
  return e;
}

std::optional<unsigned> version_of(std::string_view text) {
  auto word = next_word(text);
  unsigned version = 0;
  if (!word.starts_with("hf") || !read_number(word.substr(2), version)) return std::nullopt;
  return version;
}

}  // namespace holdfast::store::memcached
