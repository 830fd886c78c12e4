#include <holdfast/session.hpp>
#include <string>

#include "base/files.hpp"
#include "base/option.hpp"
#include "base/store_url.hpp"
#include "drivers/drivers.hpp"
#include "session/no_thread.hpp"

// Where the two stacks meet: URL scheme → driver (src/drivers) → session.
namespace holdfast {

namespace {

using base::store_url;

/// What `file:PATH` says: the URL is the first line of that file.
result<std::string> url_in_file(const store_url& u) {
  if (!u.options.empty()) return base::unknown_option(u.scheme, u.options.front().first, {});
  const std::string path = u.path.starts_with("///") ? u.path.substr(2) : u.path;
  if (path.empty() || path.starts_with("//"))
    return failure{errc::invalid_argument,
                   "file: needs the path of a file: file:/etc/holdfast/store"};
  auto line = base::first_line(path);
  if (!line) {
    return failure{line.error().code,
                   "cannot read the URL from " + path + ": " + line.error().what};
  }
  if (line->empty()) return failure{errc::invalid_argument, path + " is empty; it needs a URL"};
  if (base::lower(line->substr(0, 5)) == "file:")
    return failure{errc::invalid_argument, path + " names another file; it needs the store's URL"};
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
    auto line = url_in_file(*u);
    if (!line) fail(std::move(line.error()));
    return open(*line, std::move(options));
  }
  auto store = [&] {
    try {
      const auto driver = drivers::find(u->scheme);
      if (!driver) return drivers::opened(std::move(driver.error()));
      return (*driver)->open({text, on, options.observer});
    } catch (const error&) {
      throw;
    } catch (const std::system_error&) {
      return drivers::opened(engine::no_thread("for the store's own work"));
    }
  }();
  if (!store) fail(std::move(store.error()));
  return session(std::move(*store), std::move(options));
}

}  // namespace holdfast
