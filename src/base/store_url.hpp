#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/result.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::base {

/// A server that a URL names.
struct address {
  std::string host{};
  std::uint16_t port = 0;
  auto operator<=>(const address&) const = default;
};
std::string to_string(const address& a);  ///< host:port, [host]:port

/// `scheme://user:password@host:port,host:port/path?option=value&option=value`, or
/// `scheme:path?option=value` for stores in a file or in the process. It is taken apart first, and
/// %XX is taken out of each part after that: so a user or a password may hold any sign that is
/// written so. A / and an @ may also stand in a password as they are.
struct store_url {
  std::string scheme{};
  bool has_servers = false;  ///< there is a // behind the scheme, and the store has servers
  std::string user{};
  std::string password{};
  bool empty_password = false;  ///< and meant to be: user:@host
  std::string hosts{};          ///< as they are written
  std::string path{};           ///< behind the hosts, with its first /; or all there is
  std::vector<std::pair<std::string, std::string>> options{};

  /// The last value given for an option, or null.
  const std::string* option(std::string_view name) const noexcept;
  /// The hosts one by one. Needs one at least.
  result<std::vector<address>> servers(std::uint16_t usual_port) const;
  /// For messages: `scheme://user@`.
  std::string shown_user() const;
  /// The path without its first /, and without one at its end.
  std::string_view inner_path() const noexcept;
};

/// For messages: `?option=value&option=value`, of those that have a value.
std::string shown_options(
    std::initializer_list<std::pair<std::string_view, std::string_view>> options);

/// For messages, of stores at which a user may come without a password: the place with these
/// options. No secret, also where one was written into the name of something.
std::string shown(const store_url& place,
                  std::initializer_list<std::pair<std::string_view, std::string_view>> options);

/// The parts of a list, of which an empty list has one.
std::vector<std::string_view> between_commas(std::string_view list);

/// Fails with a message that shows no secret (holdfast::without_secrets).
result<store_url> parse_url(std::string_view text);
/// errc::invalid_argument unless there is a // behind the scheme; `example` is what the message
/// proposes.
status needs_servers(const store_url& u, std::string_view example);

/// RFC 3986, 3.1. Something else in front of the first colon may be a user, and a password follows.
bool is_scheme(std::string_view text) noexcept;
/// Whether a path follows that scheme, which may hold any sign.
bool is_path(std::string_view scheme, std::string_view rest) noexcept;
/// ASCII letters in lower case: schemes have none (RFC 3986, 3.1).
std::string lower(std::string_view text);
/// %XX taken out. The message of a failure repeats nothing of the text.
result<std::string> unescape(std::string_view text);

/// The candidate that takes the fewest changes to get to; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace holdfast::base
