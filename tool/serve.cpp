#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/serve/dashboard.hpp"
#include "tool/serve/host_check.hpp"
#include "tool/signals.hpp"
#include "tool/store_metrics.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

constexpr std::size_t shortest_token = 16;
constexpr std::size_t longest_token = 1024;
constexpr http_limits page_limits{.connections = 64, .streams = 256};

/// 128 random bits.
std::string random_token() {
  std::random_device source;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string token;
  for (int i = 0; i < 32; ++i) token += digits[source() % digits.size()];
  return token;
}

std::string token_in(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw failure_exit(exit_code::config, "--token-file " + printable(path) + ": " + why);
  };
  // The checks apply to the file that is read: neither a link nor a pipe, and no other file that
  // has replaced it meanwhile.
  const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!file) {
    refuse(errno == ELOOP ? "is a symbolic link; name the file itself"
                          : std::string("cannot be read: ") + std::strerror(errno));
  }
  struct stat s{};
  if (::fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode)) refuse("is not an ordinary file");
  if (s.st_uid != ::geteuid() && s.st_uid != 0)
    refuse("belongs to another user, who knows the token; make it yours: chown");
  if ((s.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    refuse("others may read or change it; make it yours alone: chmod 600");
  std::array<char, longest_token + 1> bytes{};
  const ssize_t n = ::read(file.get(), bytes.data(), bytes.size());
  const std::string_view text{bytes.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  const std::string_view token = text.substr(0, text.find('\n'));
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    refuse(
        "the first line has a character that a browser cannot send (perhaps a carriage return "
        "at its end)");
  if (token.size() < shortest_token || token.size() > longest_token)
    refuse("the first line has to be a token of " + std::to_string(shortest_token) + " to " +
           std::to_string(longest_token) + " characters");
  return std::string(token);
}

std::string token_of(const serve_options& o) {
  if (!o.allow_unlock) return {};
  return o.token_file.empty() ? random_token() : token_in(o.token_file);
}

/// Wrong configuration is reported at once; a store that is away is shown as away.
watched_store watch(const common_options& how, log& to) {
  std::optional<session> first;
  std::string label;
  try {
    first = open_existing(how, to).session;
    label = first->url();
  } catch (const error& e) {
    if (!e.retryable()) throw;
    label = label_of(how, e);
    to.write(level::warning, "store_away", unsigned_message(e.what()));
  }
  auto waiting = std::make_shared<std::optional<session>>(std::move(first));
  const auto open = [waiting, how, &to] {
    if (*waiting) return *std::exchange(*waiting, std::nullopt);
    return open_existing(how, to).session;
  };
  return {shown_store(how), open, label};
}

std::vector<watched_store> watch_all(const common_options& common, const serve_options& o,
                                     log& to) {
  common_options how = common;
  if (o.stores.empty()) return {watch(how, to)};
  std::vector<watched_store> all;
  std::set<std::string> labels;
  for (const std::string& url : o.stores) {
    how.store = url;
    all.push_back(watch(how, to));
    // If two URLs name one store, their series need different labels.
    auto& label = all.back().label;
    const std::string of_both = label;
    for (int i = 2; !labels.insert(label).second; ++i) label = of_both + '#' + std::to_string(i);
  }
  return all;
}

std::string address_of(const serve_options& o, int port) {
  const auto host = o.listen.substr(0, o.listen.rfind(':'));
  return "http://" + (host.empty() ? "127.0.0.1" : host) + ':' + std::to_string(port) + '/';
}

std::string metrics_of(std::span<const snapshot> stores) {
  return store_metrics(stores, std::chrono::system_clock::now(), metrics_format::openmetrics);
}

void announce(const common_options& common, const serve_options& o, const std::string& url,
              const std::string& token) {
  const std::string shown = o.token_file.empty() ? token : "";
  if (common.json) return print(serve_json(url, shown));
  print("holdfast serve: " + url + "\n" +
        (shown.empty() ? "" : "token for unlocking, shown once: " + shown + "\n"));
}

void wait_for_signal(const signal_inbox& signals) {
  for (;;) {
    pollfd one{signals.fd(), POLLIN, 0};
    ::poll(&one, 1, -1);
    while (const auto s = signals.next())
      if (asks_to_stop(static_cast<int>(s->ssi_signo))) return;
  }
}

}  // namespace

int serve(const common_options& common, const serve_options& o, log& to) {
  const signal_inbox signals;
  const std::string token = token_of(o);
  dashboard_options d;
  d.listen = o.listen;
  d.host_option = "--host";
  d.hosts = o.hosts;
  d.token = token;
  d.plan.share = o.share;
  d.limits = page_limits;
  d.metrics = metrics_of;
  dashboard page{watch_all(common, o, to), std::move(d), to};
  if (!is_loopback(o.listen))
    to.write(level::warning, "open_to_others",
             "everybody who can reach " + printable(o.listen) +
                 " can read every name, holder and reason, without encryption; docs/serve.md says "
                 "how to put a proxy with a login before it");
  announce(common, o, address_of(o, page.port()), token);
  wait_for_signal(signals);
  return exit_code::ok;
}

}  // namespace holdfast::tool
