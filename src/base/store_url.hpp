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
/// `scheme:path?option=value` for stores in a file or in the process. The URL is split first, and
/// %XX is decoded in each part afterwards, so a user or a password may contain any character in
/// that form. In a password, / and @ may also be unescaped.
struct store_url {
  std::string scheme{};
  /// The scheme is followed by //, and the store has servers.
  bool has_servers = false;
  std::string user{};
  std::string password{};
  bool empty_password = false;  ///< and intentionally so: user:@host
  std::string hosts{};          ///< unchanged, as written
  std::string path{};  ///< what follows the hosts, with its first /; or everything after the scheme
  std::vector<std::pair<std::string, std::string>> options{};

  /// The last value given for an option, or null.
  const std::string* option(std::string_view name) const noexcept;
  /// Splits the hosts. Requires at least one.
  result<std::vector<address>> servers(std::uint16_t usual_port) const;
  /// For messages: `scheme://user@`.
  std::string shown_user() const;
  /// The path without its first and its last /.
  std::string_view inner_path() const noexcept;
};

/// For messages: `?option=value&option=value`, without options that have no value.
std::string shown_options(
    std::initializer_list<std::pair<std::string_view, std::string_view>> options);

/// For messages, for stores whose users may have no password: the place with these options.
/// Contains no secret, even if one was written into another part.
std::string shown(const store_url& place,
                  std::initializer_list<std::pair<std::string_view, std::string_view>> options);

/// Splits a list; an empty list has one empty part.
std::vector<std::string_view> between_commas(std::string_view list);

/// Fails with a message that shows no secret (holdfast::without_secrets).
result<store_url> parse_url(std::string_view text);
/// Fails with errc::invalid_argument unless the scheme is followed by //. The message proposes
/// `example`.
status needs_servers(const store_url& u, std::string_view example);

/// RFC 3986, 3.1. Any other text in front of the first colon may be a user, followed by a password.
bool is_scheme(std::string_view text) noexcept;
/// Whether that scheme is followed by a path, which may contain any character.
bool is_path(std::string_view scheme, std::string_view rest) noexcept;
/// Converts ASCII letters to lower case; schemes have no others (RFC 3986, 3.1).
std::string lower(std::string_view text);
/// Decodes %XX. The message of a failure repeats nothing of the text.
result<std::string> unescape(std::string_view text);

/// The candidate with the smallest edit distance; empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace holdfast::base
