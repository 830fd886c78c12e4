#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tool/faultproxy/command.hpp"

namespace holdfast::faultproxy {

namespace {

constexpr int usage = 64;        // EX_USAGE
constexpr int unavailable = 69;  // EX_UNAVAILABLE
constexpr int own_failure = 125;

struct settings {
  endpoint listen;
  std::optional<endpoint> to;
  std::vector<std::string> first;  ///< commands executed at the start
};

void print(int fd, const std::string& text) { (void)!::write(fd, text.data(), text.size()); }

constexpr std::string_view synopsis =
    "holdfast-faultproxy --to HOST:PORT [--listen [HOST:]PORT] [COMMAND]…\n";

std::string description() {
  return "Forwards TCP connections, and simulates a bad network. Executes the given commands, and\n"
         "prints where it listens (a free port of 127.0.0.1 unless --listen names one). Then\n"
         "executes the commands on stdin, one a line, and answers each by a line on stdout.\n\n" +
         std::string(commands()) +
         "\nExample:\n"
         "  holdfast-faultproxy --to 127.0.0.1:6379 --listen 7000 'latency 20ms' 'rate 100k'\n\n"
         "Ends when stdin is closed (/dev/null and files do not count) or by a signal.\n"
         "Exit code: 0 stdin was closed, 64 usage, 69 cannot listen or find the host, 125 an\n"
         "internal failure.\n";
}

std::string help() { return std::string(synopsis) + '\n' + description(); }

/// The manual page in the source form of scdoc(5).
std::string manual() {
  const auto literally = [](std::string_view text) {
    return "```\n" + std::string(text) + "```\n";
  };
  return "holdfast-faultproxy(1) \"holdfast " HOLDFAST_VERSION
         "\" \"holdfast\"\n\n"
         "# NAME\n\nholdfast-faultproxy - forwards TCP connections, and simulates a bad "
         "network\n\n# SYNOPSIS\n\n" +
         literally(synopsis) + "\n# DESCRIPTION\n\n" + literally(description());
}

/// `--name=value`, or `--name value`, which consumes the next word, too.
std::optional<std::string> value_of(std::string_view name, std::span<char*>& rest) {
  const std::string_view word = rest.front();
  if (!word.starts_with(name)) return std::nullopt;
  if (word.size() > name.size() && word[name.size()] == '=') {
    return std::string(word.substr(name.size() + 1));
  }
  if (word != name) return std::nullopt;
  if (rest.size() < 2) throw std::invalid_argument(std::string(name) + " needs an address");
  rest = rest.subspan(1);
  return std::string(rest.front());
}

settings parse(std::span<char*> rest) {
  settings s;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    if (auto to = value_of("--to", rest)) {
      s.to = parse_endpoint(*to);
    } else if (auto listen = value_of("--listen", rest)) {
      s.listen = parse_endpoint(*listen);
    } else if (rest.front()[0] == '-') {
      throw std::invalid_argument(
          std::string("'") + rest.front() +
          "' is not an option; there are --to, --listen, --help, --manual, --version");
    } else {
      s.first.emplace_back(rest.front());
    }
  }
  if (!s.to || s.to->port == 0) {
    throw std::invalid_argument("--to HOST:PORT is missing; --help shows how it is written");
  }
  return s;
}

/// The end of a pipe or a terminal ends the program; the end of a file means nothing.
bool end_matters(int fd) {
  struct stat is{};
  return ::isatty(fd) == 1 ||
         (::fstat(fd, &is) == 0 && (S_ISFIFO(is.st_mode) || S_ISSOCK(is.st_mode)));
}

std::string answer(relay& r, const std::string& line) {
  try {
    return obey(r, line) + '\n';
  } catch (const std::invalid_argument& e) {
    return std::string("error: ") + e.what() + '\n';
  }
}

/// Reads from stdin, and executes whole lines. False if stdin has ended.
bool listen_to_stdin(relay& r, std::string& heard) {
  std::array<char, 4096> buffer;
  const auto n = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (n <= 0) return false;
  heard.append(buffer.data(), static_cast<std::size_t>(n));
  for (auto end = heard.find('\n'); end != heard.npos; end = heard.find('\n')) {
    print(STDOUT_FILENO, answer(r, heard.substr(0, end)));
    heard.erase(0, end + 1);
  }
  return true;
}

void work(relay& r) {
  std::string heard;
  for (int from = STDIN_FILENO;;) {
    if (!r.turn(from)) continue;
    if (listen_to_stdin(r, heard)) continue;
    if (end_matters(from)) return;
    from = -1;
  }
}

int run(std::span<char*> arguments) {
  const settings s = parse(arguments);
  relay r(s.listen, *s.to);
  for (const auto& line : s.first) obey(r, line);
  const endpoint here{s.listen.host, r.port()};
  print(STDOUT_FILENO, "listening on " + to_string(here) + ", to " + to_string(*s.to) + '\n');
  work(r);
  return 0;
}

int fail(int code, const char* why) {
  print(STDERR_FILENO, std::string("holdfast-faultproxy: ") + why + '\n');
  return code;
}

}  // namespace

}  // namespace holdfast::faultproxy

int main(int argc, char** argv) {
  using namespace holdfast::faultproxy;
  const auto arguments = std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  std::signal(SIGPIPE, SIG_IGN);
  for (const std::string_view word : arguments) {
    if (word == "--help" || word == "-h") return print(STDOUT_FILENO, help()), 0;
    if (word == "--manual") return print(STDOUT_FILENO, manual()), 0;
    if (word == "--version")
      return print(STDOUT_FILENO, "holdfast-faultproxy " HOLDFAST_VERSION "\n"), 0;
  }
  try {
    return run(arguments);
  } catch (const std::invalid_argument& e) {
    return fail(usage, e.what());
  } catch (const std::runtime_error& e) {
    return fail(unavailable, e.what());
  } catch (const std::exception& e) {
    return fail(own_failure, e.what());
  }
}
