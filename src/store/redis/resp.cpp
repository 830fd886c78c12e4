#include "store/redis/resp.hpp"

#include <algorithm>
#include <charconv>

#include "base/words.hpp"

namespace holdfast::store::redis {

namespace {

// Accepts only the servers' own way to write a number: no plus, no leading zero.
bool parse_integer(std::string_view text, std::int64_t& number) noexcept {
  if (!base::parse_number(text, number)) return false;
  return text == "0" || (text.front() != '0' && !text.starts_with("-0"));
}

resp_type aggregate(char mark) noexcept {
  switch (mark) {
    case '~':
      return resp_type::set;
    case '%':
      return resp_type::map;
    case '>':
      return resp_type::push;
    case '|':
      return resp_type::attribute;
    default:
      return resp_type::array;
  }
}

// For messages: the beginning of the bytes, without control characters that a terminal would obey.
std::string excerpt(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes.substr(0, 40)) shown += c >= ' ' && c < 0x7F ? c : '.';
  return shown;
}

}  // namespace

void resp_reader::put(std::string_view bytes) {
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
  } else if (at_ > 64 * 1024 && at_ > buffer_.size() / 2) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  buffer_.append(bytes);
}

resp_reader::progress resp_reader::next(resp_value& out) {
  while (problem_.empty()) {
    resp_value v;
    switch (read_piece(v)) {
      case piece::need_more:
        return progress::need_more;
      case piece::broken:
        return progress::broken;
      case piece::opened:
        continue;
      case piece::whole:
        break;
    }
    if (!close_full(v)) continue;
    items_ = 0;
    out = std::move(v);
    return progress::ready;
  }
  return progress::broken;
}

// A value is complete: moves it into the enclosing aggregate, which may be complete as well then.
// Returns true when there is no enclosing aggregate. Drops attributes, which only describe a reply.
bool resp_reader::close_full(resp_value& v) {
  while (true) {
    if (v.type == resp_type::attribute) return false;
    if (open_.empty()) return true;
    frame& around = open_.back();
    around.value.items.push_back(std::move(v));
    if (--around.missing > 0) return false;
    v = std::move(around.value);
    open_.pop_back();
  }
}

resp_reader::piece resp_reader::read_piece(resp_value& v) {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.empty()) return piece::need_more;
  const char mark = rest.front();
  if (std::string_view("+-:$*_#,(!=%~>|").find(mark) == std::string_view::npos) {
    return fail("this is not the Redis protocol: '" + excerpt(rest) +
                "'; is there a Redis server at this address?");
  }
  const auto end = rest.find("\r\n");
  // Only the first of the two bytes that end a line may have arrived.
  if (std::min(end, rest.size() - 1) > limits_.line_bytes) return fail("a line without an end");
  if (end == rest.npos) return piece::need_more;
  if (++items_ > limits_.items) return fail("a reply of too many items");
  const auto line = rest.substr(1, end - 1);
  piece got = piece::broken;
  if (mark == '$' || mark == '!' || mark == '=') {
    got = read_bulk(mark, line, end + 2, v);
    if (got == piece::need_more) --items_;
    return got;
  }
  got = std::string_view("*~%>|").find(mark) != std::string_view::npos
            ? open_aggregate(mark, line, v)
            : read_scalar(mark, line, v);
  at_ += end + 2;
  return got;
}

resp_reader::piece resp_reader::read_scalar(char mark, std::string_view line, resp_value& v) {
  switch (mark) {
    case '+':
      v.type = resp_type::simple;
      break;
    case '-':
      v.type = resp_type::error;
      break;
    case ',':
      v.type = resp_type::real;
      break;
    case '(':
      v.type = resp_type::bulk;
      break;  // a number too large for 64 bits stays text
    case '_':
      return line.empty() ? piece::whole : fail("a null with something in it");
    case '#':
      if (line != "t" && line != "f") return fail("a boolean that is neither true nor false");
      v.type = resp_type::boolean;
      v.integer = line == "t";
      return piece::whole;
    default:
      if (!parse_integer(line, v.integer)) return fail("an invalid number: " + excerpt(line));
      v.type = resp_type::integer;
      return piece::whole;
  }
  v.text = line;
  return piece::whole;
}

resp_reader::piece resp_reader::read_bulk(char mark, std::string_view line, std::size_t line_end,
                                          resp_value& v) {
  std::int64_t length = 0;
  if (!parse_integer(line, length) || length < -1)
    return fail("an invalid length: " + excerpt(line));
  if (length == -1) {
    at_ += line_end;
    return mark == '$' ? piece::whole : fail("a length below zero");
  }
  const auto size = static_cast<std::size_t>(length);
  if (size > limits_.bulk_bytes) return fail("a string of " + std::to_string(size) + " bytes");
  const std::string_view rest = std::string_view(buffer_).substr(at_ + line_end);
  if (rest.size() < size + 2) return piece::need_more;
  if (rest.substr(size, 2) != "\r\n") return fail("a string that does not end where it should");
  v.type = mark == '!' ? resp_type::error : resp_type::bulk;
  v.text = rest.substr(0, size);
  if (mark == '=') v.text.erase(0, 4);  // "txt:", the format of the text
  at_ += line_end + size + 2;
  return piece::whole;
}

resp_reader::piece resp_reader::open_aggregate(char mark, std::string_view line, resp_value& v) {
  std::int64_t count = 0;
  if (!parse_integer(line, count) || count < -1) return fail("an invalid count: " + excerpt(line));
  if (count == -1) return mark == '*' ? piece::whole : fail("a count below zero");
  if (static_cast<std::size_t>(count) > limits_.items) return fail("a reply of too many items");
  const bool pairs = mark == '%' || mark == '|';
  v.type = aggregate(mark);
  if (count == 0) return piece::whole;
  if (open_.size() >= limits_.depth) return fail("a reply nested too deeply");
  open_.push_back({std::move(v), static_cast<std::size_t>(count) * (pairs ? 2 : 1)});
  return piece::opened;
}

resp_reader::piece resp_reader::fail(std::string what) {
  problem_ = std::move(what);
  return piece::broken;
}

void append_command(std::string& to, std::span<const std::string_view> words, std::size_t more) {
  const auto count = [&](char mark, std::size_t n) {
    char digits[24];
    to += mark;
    to.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
    to += "\r\n";
  };
  count('*', words.size() + more);
  for (const auto word : words) {
    count('$', word.size());
    to += word;
    to += "\r\n";
  }
}

// The answer has seconds and microseconds.
std::optional<std::int64_t> read_server_time(const resp_value& answer) noexcept {
  if (answer.items.size() != 2) return std::nullopt;
  std::int64_t parts[2] = {0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const bool good = base::parse_number(answer.items[i].text, parts[i]) && parts[i] >= 0;
    if (!good) return std::nullopt;
  }
  if (parts[0] > INT64_MAX / 1'000'000 - 1 || parts[1] >= 1'000'000) return std::nullopt;
  return parts[0] * 1'000'000 + parts[1];
}

}  // namespace holdfast::store::redis
