#include "tool/faultproxy/command.hpp"

#include <array>
#include <charconv>
#include <functional>
#include <stdexcept>
#include <vector>

namespace holdfast::faultproxy {

namespace {

using words = std::vector<std::string_view>;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string quoted(std::string_view word) { return "'" + std::string(word) + "'"; }

words split(std::string_view line) {
  words all;
  while (true) {
    const auto from = line.find_first_not_of(" \t\r");
    if (from == line.npos) return all;
    line.remove_prefix(from);
    const auto end = std::min(line.find_first_of(" \t\r"), line.size());
    all.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

/// A number and the unit after it.
std::pair<double, std::string_view> measure(std::string_view text, const char* example) {
  double number = 0;
  const auto [after, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{} || !(number >= 0 && number < 1e12)) {
    refuse(quoted(text) + " is not a number; write for example " + example);
  }
  return {number, text.substr(static_cast<std::size_t>(after - text.data()))};
}

std::chrono::microseconds duration(std::string_view text) {
  const auto [number, unit] = measure(text, "50ms");
  const double us = unit == "ms" ? 1e3 : unit == "us" ? 1 : unit == "s" ? 1e6 : -1;
  if (us < 0) refuse(quoted(text) + " has no unit; write 50ms, 300us or 1.5s");
  return std::chrono::microseconds(static_cast<std::int64_t>(number * us));
}

std::size_t size(std::string_view text) {
  const auto [number, unit] = measure(text, "100k");
  const double bytes = unit.empty() ? 1 : unit == "k" ? 1e3 : unit == "m" ? 1e6 : -1;
  if (bytes < 0) refuse(quoted(text) + " is not a number of bytes; write 1500, 100k or 2m");
  return static_cast<std::size_t>(number * bytes);
}

way direction(std::string_view word) {
  if (word == "up") return way::up;
  if (word == "down") return way::down;
  refuse(quoted(word) + " is no direction; up is from client to server, down the other way");
}

template <class Do>
void each_way(const words& w, Do act) {
  if (w.size() == 2) return act(direction(w[1]));
  for (const way one : both_ways) act(one);
}

std::string told(const relay& of) {
  const auto c = of.count();
  return "accepted=" + std::to_string(c.accepted) + " open=" + std::to_string(c.open) +
         " cut=" + std::to_string(c.cut) + " up=" + std::to_string(c.up) +
         " down=" + std::to_string(c.down);
}

struct command {
  std::string_view name;
  std::size_t fewest;  ///< words, including the name
  std::size_t most;
  std::function<void(relay&, const words&)> act;
};

const std::array<command, 11>& all_commands() {
  static const std::array<command, 11> all{{
      {"latency", 2, 2, [](relay& r, const words& w) { r.set_latency(duration(w[1])); }},
      {"rate", 2, 2, [](relay& r, const words& w) { r.set_rate(size(w[1])); }},
      {"stall", 1, 2,
       [](relay& r, const words& w) { each_way(w, [&](way one) { r.stall(one); }); }},
      {"swallow", 1, 2,
       [](relay& r, const words& w) { each_way(w, [&](way one) { r.swallow(one); }); }},
      {"refuse", 1, 1, [](relay& r, const words&) { r.refuse(); }},
      {"heal", 1, 1, [](relay& r, const words&) { r.heal(); }},
      {"cut", 1, 1, [](relay& r, const words&) { r.cut(); }},
      {"reset", 1, 1, [](relay& r, const words&) { r.reset(); }},
      {"half-open", 1, 1, [](relay& r, const words&) { r.half_open(); }},
      {"cut-after", 3, 3,
       [](relay& r, const words& w) { r.cut_after(direction(w[1]), size(w[2])); }},
      {"drop-reply", 1, 1, [](relay& r, const words&) { r.cut_after(way::down, 0); }},
  }};
  return all;
}

}  // namespace

std::string_view commands() noexcept {
  return "  latency DURATION         delays every byte by this time, each way: 50ms, 300us, 1.5s\n"
         "  rate BYTES               this many bytes a second, each way of each connection: 1500,\n"
         "                           100k, 2m; 0 is no limit\n"
         "  stall [up|down]          bytes wait; up is from client to server; without it both "
         "ways\n"
         "  swallow [up|down]        bytes are lost silently\n"
         "  refuse                   new connections are reset at once\n"
         "  heal                     ends all of the above; connections that lost bytes are reset\n"
         "  cut                      closes all connections\n"
         "  reset                    the same, with RST\n"
         "  half-open                present connections lose all bytes silently; new ones work\n"
         "  cut-after up|down BYTES  cuts a connection after this many more bytes that way\n"
         "  drop-reply               the server's next answer is lost, and the connection is cut\n"
         "  status                   counts: accepted=3 open=2 cut=1 up=512 down=1024\n";
}

std::string obey(relay& to, std::string_view line) {
  const words w = split(line);
  if (w.empty()) return "ok";
  if (w.front() == "status") return told(to);
  for (const auto& c : all_commands()) {
    if (c.name != w.front()) continue;
    if (w.size() < c.fewest) refuse(std::string(c.name) + " needs more words; see --help");
    if (w.size() > c.most) refuse(quoted(w[c.most]) + " is one word too many; see --help");
    c.act(to, w);
    return "ok";
  }
  refuse(quoted(w.front()) +
         " is not a command; the commands are latency, rate, stall, swallow, refuse, heal, cut, "
         "reset, half-open, cut-after, drop-reply and status");
}

}  // namespace holdfast::faultproxy
