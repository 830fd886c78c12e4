#include <algorithm>
#include <filesystem>
#include <holdfast/session.hpp>
#include <string>
#include <system_error>

#include "base/files.hpp"
#include "base/option.hpp"
#include "base/store_url.hpp"
#include "base/warning.hpp"
#include "drivers/drivers.hpp"
#include "session/no_thread.hpp"
#include "session/sleeper.hpp"

// Where the two stacks meet: URL scheme → driver (src/drivers) → session.
namespace holdfast {

namespace {

using namespace std::chrono_literals;
using base::store_url;

drivers::opened try_to_open(const store::driver& d, std::string_view url, clock& on,
                            const session_options& options) {
  try {
    return d.open({url, on, options.observer});
  } catch (const error&) {
    throw;
  } catch (const std::system_error&) {
    return engine::no_thread("for the store's own work");
  }
}

std::string rounded(std::chrono::nanoseconds d) {
  const auto exact = std::chrono::ceil<std::chrono::milliseconds>(d);
  if (exact < 1s) return std::to_string(exact.count()) + " ms";
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(d).count()) + " s";
}

constexpr std::chrono::milliseconds first_pause{50};
constexpr std::chrono::milliseconds longest_pause{500};

/// Opens the store, and waits for a server that starts at the same time as this program (at boot,
/// in containers). Reports such a wait once, and not with each attempt.
drivers::opened open_in_time(const store::driver& d, std::string_view url, const std::string& shown,
                             clock& on, const session_options& options) {
  const boot_time until = saturated_add(on.now(), options.store_timeout);
  auto pause = first_pause;
  for (bool reported = false;; reported = true) {
    auto store = try_to_open(d, url, on, options);
    const boot_time now = on.now();
    if (store || store.error().code != errc::unavailable || now >= until) return store;
    if (!reported) {
      const std::string limit = until == forever ? "ever" : "up to " + rounded(until - now);
      const std::string& about = store.error().store;
      base::warn(options.observer.get(), about.empty() ? shown : about,
                 "waiting for the store for " + limit + ": " + store.error().what,
                 errc::unavailable);
    }
    engine::sleeper(on).sleep(std::min(until, saturated_add(now, pause)));
    pause = std::min(2 * pause, longest_pause);
  }
}

bool is_port(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The failure for an unknown scheme. In `localhost:6379` the text before the colon is a host.
failure no_driver(failure f, const store_url& u) {
  if (f.code == errc::invalid_argument && is_port(u.path.substr(0, u.path.find('/'))))
    f.what += "; before a host and its port write what listens there, as in redis://host:6379";
  return f;
}

/// The path in `file:PATH`.
result<std::string> path_of(const store_url& u) {
  if (!u.options.empty()) return base::unknown_option(u.scheme, u.options.front().first, {});
  std::string path = u.path.starts_with("///") ? u.path.substr(2) : u.path;
  if (auto ok = base::check_no_tilde(path); !ok) return std::move(ok.error());
  if (!path.empty() && !path.starts_with("//")) return path;
  return failure{errc::invalid_argument,
                 "file: needs the path of a file: file:/etc/holdfast/store"};
}

/// The URL in such a file: its first line.
result<std::string> url_in_file(const std::string& path) {
  auto line = base::first_line(path);
  if (!line) {
    return failure{line.error().code,
                   "cannot read the URL from " + path + ": " + line.error().what};
  }
  if (line->empty())
    return failure{errc::invalid_argument,
                   path + " is empty; its first line has to be the store's URL"};
  if (base::lower(line->substr(0, 5)) == "file:")
    return failure{errc::invalid_argument,
                   path + " names another file; its first line has to be the store's URL"};
  return line;
}

}  // namespace

session open(std::string_view text, session_options options) {
  auto& on = options.clock ? *options.clock : real_clock();
  std::string shown = without_secrets(text.substr(0, text.find('?')));
  const auto fail = [&](failure f) {
    f.operation = "open";
    f.name = std::move(shown);
    throw_failure(std::move(f));
  };
  auto u = base::parse_url(text);
  if (!u) {
    shown.clear();  // the message has it
    fail(std::move(u.error()));
  }
  if (u->scheme == "file") {
    const auto path = path_of(*u);
    if (!path) fail(path.error());
    auto line = url_in_file(*path);
    if (!line) fail(std::move(line.error()));
    return open(*line, std::move(options));
  }
  auto driver = drivers::find(u->scheme);
  if (!driver) fail(no_driver(std::move(driver.error()), *u));
  auto store = open_in_time(**driver, text, shown, on, options);
  if (!store) fail(std::move(store.error()));
  return session(std::move(*store), std::move(options));
}

std::string url_of_store(std::string_view url) {
  if (const auto u = base::parse_url(url); u && u->scheme == "file") {
    const auto path = path_of(*u);
    std::error_code not_there;
    if (path && std::filesystem::is_regular_file(*path, not_there)) {
      if (auto line = url_in_file(*path)) return std::move(*line);
    }
  }
  return std::string(url);
}

}  // namespace holdfast
