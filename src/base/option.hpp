#pragma once

#include <chrono>
#include <holdfast/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/store_url.hpp"

/// The options of a URL: each driver has a table of its own, and these functions read the values.
namespace holdfast::base {

/// A failure with errc::invalid_argument.
failure invalid(std::string what);

/// Reads `250ms`, `1.5s`, `2m`, `1h30m`; a bare number is in seconds. Limited to thirty thousand
/// years.
result<std::chrono::milliseconds> parse_duration(std::string_view text);

struct time_range {
  std::chrono::milliseconds least = std::chrono::milliseconds(1);
  std::chrono::milliseconds most = std::chrono::hours(24);
};
status read_time(std::chrono::milliseconds& to, std::string_view name, const std::string& text,
                 const time_range& range = {});
status read_number(std::size_t& to, std::string_view name, std::string_view text, std::size_t least,
                   std::size_t most);
/// `name` ends with _env (the text names an environment variable) or with _file (the text names a
/// file, whose first line is the password).
status read_password(std::string& to, std::string_view name, const std::string& text);
/// A file that a client library opens by itself.
status read_path(std::string& to, std::string_view name, const std::string& text);
status read_text(std::string& to, std::string_view name, const std::string& text);

/// Fails with errc::invalid_argument if an option contradicts the part of the URL before the ?,
/// because one of the two would be ignored. `what`, in the plural, is what both name; `in_place` is
/// empty if only the option names it. The message repeats nothing of the URL.
status said_alike(const store_url& u, std::string_view what, std::string_view in_place,
                  std::string_view option);
/// The same for the password, which several options can give.
status has_one_password(const store_url& u);

/// One option of a store whose options are stored in an `Options`.
template <class Options>
struct option {
  std::string_view name;
  status (*set)(Options& o, std::string_view name, const std::string& value);
};

template <class Options, auto member>
constexpr option<Options> time_option(std::string_view name) {
  return {name, [](Options& o, std::string_view n, const std::string& value) {
            return read_time(o.*member, n, value);
          }};
}
template <class Options, auto member>
constexpr option<Options> password_option(std::string_view name) {
  return {name, [](Options& o, std::string_view n, const std::string& value) {
            return read_password(o.*member, n, value);
          }};
}
template <class Options, auto member>
constexpr option<Options> path_option(std::string_view name) {
  return {name, [](Options& o, std::string_view n, const std::string& value) {
            return read_path(o.*member, n, value);
          }};
}
template <class Options, auto member>
constexpr option<Options> text_option(std::string_view name) {
  return {name, [](Options& o, std::string_view n, const std::string& value) {
            return read_text(o.*member, n, value);
          }};
}

/// The failure for an option that is not among these; it names the nearest one.
failure unknown_option(std::string_view scheme, std::string_view name,
                       std::span<const std::string_view> known);

/// Reads all options of the URL, in its order; fails with the first error.
template <class Options>
status read_options(const store_url& u, std::span<const option<Options>> known, Options& to) {
  if (auto ok = has_one_password(u); !ok) return ok;
  for (const auto& [name, value] : u.options) {
    const option<Options>* found = nullptr;
    for (const auto& o : known) found = o.name == name ? &o : found;
    if (found == nullptr) {
      std::vector<std::string_view> names;
      for (const auto& o : known) names.push_back(o.name);
      return unknown_option(u.scheme, name, names);
    }
    if (auto ok = found->set(to, name, value); !ok) return ok;
  }
  return done{};
}

}  // namespace holdfast::base
