#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "base/keepalive.hpp"
#include "base/option.hpp"

namespace holdfast::store::sql {

/// The connection options of every SQL store.
struct link_options {
  std::size_t connections = 4;                       ///< 1 to 100
  std::chrono::milliseconds connect_timeout{5'000};  ///< a millisecond to a day, as the next
  std::chrono::milliseconds command_timeout{5'000};
  /// Uses the server's own locks, which end with a connection, instead of rows with a lease.
  bool session_mode = false;
  /// In session mode: how long a connection may be silent before the server ends it; 3 s to a day.
  std::chrono::milliseconds silence{30'000};
};
/// How long a hold counts after the server was last heard: a third of the permitted silence.
inline std::chrono::milliseconds sure_for(const link_options& o) noexcept { return o.silence / 3; }

/// How long the server waits for a row's lock, and for the next statement of a transaction. The
/// client gives up later, so a statement that it has given up is not carried out.
inline std::chrono::milliseconds patience_of(const link_options& o) noexcept {
  return std::max(o.command_timeout * 3 / 4, std::chrono::milliseconds(1));  // 0 has no limit
}

/// Detects a vanished server as soon as the holds of the connection count no more: a waiter sends
/// nothing over its connection, so no error would show the loss.
base::keepalive keepalive_of(const link_options& o) noexcept;

/// Read `connections`, `mode` and `session`.
status set_connections(link_options& o, const std::string& text);
status set_mode(link_options& o, const std::string& text);
status set_silence(link_options& o, const std::string& text);

/// For the URL in messages; empty for the default mode.
inline std::string_view shown_mode(const link_options& o) noexcept {
  return o.session_mode ? "session" : "";
}

/// The options for a store's table of options.
template <class Options>
constexpr std::array<base::option<Options>, 5> link_option_table() {
  return {base::time_option<Options, &Options::connect_timeout>("connect_timeout"),
          base::time_option<Options, &Options::command_timeout>("command_timeout"),
          {"connections", [](Options& o, auto, auto& text) { return set_connections(o, text); }},
          {"mode", [](Options& o, auto, auto& text) { return set_mode(o, text); }},
          {"session", [](Options& o, auto, auto& text) { return set_silence(o, text); }}};
}

}  // namespace holdfast::store::sql
