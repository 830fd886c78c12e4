#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The Redis serialization protocol, versions 2 and 3, without any I/O: it takes bytes in the
/// pieces that the network delivers, and returns complete values.
namespace holdfast::store::redis {

enum class resp_type : std::uint8_t {
  null,
  simple,
  error,
  integer,
  bulk,
  boolean,
  real,
  array,
  set,
  map,
  push,
  attribute,
};

/// One reply. Aggregates have `items` (a map: key, value, key, value …), all other types `text` or
/// `integer`.
struct resp_value {
  resp_type type = resp_type::null;
  std::int64_t integer = 0;  ///< for a boolean 0 or 1
  std::string text;
  std::vector<resp_value> items;
  bool is_error() const noexcept { return type == resp_type::error; }
  bool operator==(const resp_value&) const = default;
};

/// The greatest sizes that a server may send. Larger values are refused before memory is allocated
/// for them.
struct resp_limits {
  std::size_t line_bytes = 64 * 1024;
  std::size_t bulk_bytes = 64 * 1024 * 1024;
  std::size_t items = 4'000'000;  ///< in one reply, over all levels
  std::size_t depth = 16;
};

/// A state machine: put() bytes, then call next() until it needs more. Once broken, it stays
/// broken.
class resp_reader {
 public:
  enum class progress { ready, need_more, broken };

  explicit resp_reader(resp_limits limits = {}) : limits_(limits) {}

  void put(std::string_view bytes);
  progress next(resp_value& out);
  /// Why it is broken: the bytes that came instead of a reply.
  const std::string& problem() const noexcept { return problem_; }
  /// True between two replies, when no byte of the next one has arrived.
  bool at_rest() const noexcept { return open_.empty() && at_ == buffer_.size(); }

 private:
  struct frame {
    resp_value value;
    std::size_t missing;
  };
  enum class piece { whole, opened, need_more, broken };

  piece read_piece(resp_value& v);
  piece read_scalar(char mark, std::string_view line, resp_value& v);
  piece read_bulk(char mark, std::string_view line, std::size_t line_end, resp_value& v);
  piece open_aggregate(char mark, std::string_view line, resp_value& v);
  bool close_full(resp_value& v);
  piece fail(std::string what);

  resp_limits limits_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::vector<frame> open_;
  std::size_t items_ = 0;
  std::string problem_;
};

/// Appends one command in the server's format: an array of bulk strings. The caller appends `more`
/// further words.
void append_command(std::string& to, std::span<const std::string_view> words, std::size_t more = 0);
inline void append_command(std::string& to, std::initializer_list<std::string_view> words,
                           std::size_t more = 0) {
  append_command(to, std::span(words.begin(), words.size()), more);
}

/// Reads the answer to TIME, in microseconds.
std::optional<std::int64_t> read_server_time(const resp_value& answer) noexcept;

}  // namespace holdfast::store::redis
