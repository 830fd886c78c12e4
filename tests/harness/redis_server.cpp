#include "harness/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "harness/eventually.hpp"
#include "harness/server_process.hpp"
#include "paths.hpp"

namespace harness {

namespace {

/// A blocking connection to a socket; closed with the object.
class stream {
 public:
  /// Connects to a socket's path, or to a port of this machine.
  explicit stream(const std::string& where) : fd_(-1) {
    if (where.starts_with('/')) {
      fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, where.c_str(), sizeof address.sun_path - 1);
      ok_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    } else {
      fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(where)));
      ok_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
  }
  ~stream() { ::close(fd_); }
  stream(const stream&) = delete;

  bool ok() const { return ok_; }
  // send() returns after a part if this process is stopped meanwhile.
  void put(std::string_view bytes) {
    while (ok_ && !bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ok_ = n > 0;
      if (ok_) bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  std::string line() {
    std::string text;
    for (char c = 0; c != '\n' && filled();) {
      c = buffer_[used_++];
      if (c != '\r' && c != '\n') text += c;
    }
    return text;
  }
  std::string bytes(std::size_t count) {
    std::string text;
    while (text.size() < count && filled()) {
      const auto n = std::min(count - text.size(), got_ - used_);
      text.append(buffer_.data() + used_, n);
      used_ += n;
    }
    return text;
  }

 private:
  /// Waits for bytes if all that came have been used.
  bool filled() {
    if (!ok_ || used_ < got_) return ok_;
    const auto n = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    ok_ = n > 0;
    used_ = 0;
    got_ = ok_ ? static_cast<std::size_t>(n) : 0;
    return ok_;
  }

  int fd_;
  bool ok_ = false;
  std::array<char, 16'384> buffer_;
  std::size_t used_ = 0, got_ = 0;
};

std::string read_reply(stream& in) {
  const std::string line = in.line();
  if (line.empty()) return {};
  const long size = line.front() == '$' || line.front() == '*' ? std::stol(line.substr(1)) : 0;
  if (size < 0) return "nil";
  if (line.front() == '-') return line;
  if (line.front() == '$') {
    std::string text = in.bytes(static_cast<std::size_t>(size));
    in.bytes(2);
    return text;
  }
  if (line.front() != '*') return line.substr(1);
  std::string all;
  for (long i = 0; i < size; ++i) all += (i > 0 ? " " : "") + read_reply(in);
  return all;
}

/// Appends the texts of a reply, nested ones too.
void read_items(stream& in, std::vector<std::string>& items) {
  const std::string line = in.line();
  const bool several = line.starts_with('*'), text = line.starts_with('$');
  const long size = several || text ? std::stol(line.substr(1)) : 0;
  for (long i = 0; several && i < size; ++i) read_items(in, items);
  if (several) return;
  if (!text || size < 0) return items.push_back(line.starts_with(':') ? line.substr(1) : line);
  items.push_back(in.bytes(static_cast<std::size_t>(size)));
  in.bytes(2);
}

std::string encoded(const std::vector<std::string>& words) {
  std::string bytes = "*" + std::to_string(words.size()) + "\r\n";
  for (const auto& w : words) bytes += "$" + std::to_string(w.size()) + "\r\n" + w + "\r\n";
  return bytes;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

/// The environment of this process, for a server whose clock can be set.
std::vector<std::string> with_shifted_clock(const std::string& file) {
  std::vector<std::string> all{"LD_PRELOAD=" HOLDFAST_SHIFTED_CLOCK,
                               "HOLDFAST_CLOCK_SHIFT=" + file};
  for (char** e = environ; *e != nullptr; ++e) {
    if (!std::string_view(*e).starts_with("LD_PRELOAD=")) all.emplace_back(*e);
  }
  return all;
}

}  // namespace

namespace {

/// Commands by which tests write keys without an expiry.
bool writes_its_key(const std::string& command) {
  static const std::set<std::string> all{"SET",  "SETNX", "GETSET", "HSET",   "RPUSH",
                                         "ZADD", "INCR",  "INCRBY", "DECRBY", "DECR"};
  return all.contains(command);
}

bool is_bound(int fd, const void* address, std::size_t size) {
  return ::bind(fd, static_cast<const sockaddr*>(address), static_cast<socklen_t>(size)) == 0;
}

bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool bound = is_bound(fd, &address, sizeof address);
  ::close(fd);
  return bound;
}

// Reserves the port among the tests of this machine until this process ends, by an abstract socket
// of that name.
bool is_ours(int port) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "holdfast test port " + std::to_string(port);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  if (is_bound(fd, &address, offsetof(sockaddr_un, sun_path) + 1 + name.size())) return true;
  ::close(fd);
  return false;
}

}  // namespace

// Below the ports that the system gives to clients, also with the 10,000 that a Redis cluster adds:
// otherwise a server that a test kills and restarts may find its port taken by a client's
// connection.
int free_port() {
  thread_local std::mt19937 dice{std::random_device{}()};
  while (true) {
    const int port = std::uniform_int_distribution<int>(11'000, 22'000)(dice);
    if (is_ours(port) && is_free(port)) return port;
  }
}

redis_server::redis_server(std::vector<std::string> arguments, const std::string& config) {
  const auto password = std::find(arguments.begin(), arguments.end(), "--requirepass");
  if (password != arguments.end()) password_ = *(password + 1);
  if (!config.empty()) {
    config_ = dir_.file("redis.conf");
    std::ofstream(config_) << config;
  }
  // Another process may take a port before the server does.
  for (int attempt = 0; attempt < 5 && pid_ < 0; ++attempt) {
    choose_ports(arguments);
    start_once();
  }
  if (pid_ < 0)
    throw std::runtime_error("redis-server does not start; is it installed? " +
                             last_words(file("log")));
}

redis_server::~redis_server() {
  if (pid_ >= 0) {
    if (stopped_) resume();
    EXPECT_EQ(keys_for_ever(), "") << "keys without an expiry, at " << url();
  }
  kill();
}

namespace {

/// Part of each key that a dialect needs and that no other program has.
constexpr std::string_view beside_others = ":holdfast";

}  // namespace

std::string redis_server::keys_for_ever() const {
  // A sentinel has no keys.
  if (std::find(arguments_.begin(), arguments_.end(), "--sentinel") != arguments_.end()) return {};
  const std::lock_guard guard{asking_};
  return redis_keys_for_ever_at(socket(), password_, [&](const std::string& key) {
    const auto is_like = [&](const auto& one) {
      const bool meant =
          key.find(beside_others) == key.npos || one.first.find(beside_others) != key.npos;
      return meant && ::fnmatch(one.first.c_str(), key.c_str(), FNM_NOESCAPE) == 0;
    };
    return !of_the_test_.contains(key) && std::none_of(may_stay_.begin(), may_stay_.end(), is_like);
  });
}

void redis_server::may_stay(const std::string& pattern, const std::string& reason) const {
  const std::lock_guard guard{asking_};
  may_stay_.emplace(pattern, reason);
}

std::string redis_server::tcp_url(const std::string& options) const {
  return "redis://127.0.0.1:" + std::to_string(port_) + options;
}

void redis_server::choose_ports(const std::vector<std::string>& arguments) {
  port_ = free_port();
  arguments_ = arguments;
  for (auto& word : arguments_) {
    if (word == "a free port") word = std::to_string(free_port());
  }
}

void redis_server::start_once(bool loading_is_fine) {
  std::vector<std::string> words{"redis-server"};
  if (!config_.empty()) words.push_back(config_);
  const std::vector<std::string> usual{"--port",
                                       std::to_string(port_),
                                       "--bind",
                                       "127.0.0.1",
                                       "--unixsocket",
                                       socket(),
                                       "--dir",
                                       dir_.path().string(),
                                       "--logfile",
                                       file("log"),
                                       "--save",
                                       "",
                                       "--daemonize",
                                       "no",
                                       "--enable-debug-command",
                                       "yes"};
  words.insert(words.end(), usual.begin(), usual.end());
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  const auto argv = pointers(words);
  auto environment = with_shifted_clock(dir_.file("clock-shift"));
  const auto envp = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) ::dup2(nowhere, fd);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  pid_ = child;
  eventually("redis-server to answer", [&] {
    if (::waitpid(child, nullptr, WNOHANG) == child) pid_ = -1;
    return pid_ < 0 || answers(loading_is_fine);
  });
}

void redis_server::start() {
  start_once();
  if (pid_ < 0)
    throw std::runtime_error("redis-server does not start again: " + last_words(file("log")));
}

void redis_server::start_loading() {
  start_once(true);
  if (pid_ < 0)
    throw std::runtime_error("redis-server does not start again: " + last_words(file("log")));
}

void redis_server::save_and_end() {
  stream s(socket());
  s.put("SHUTDOWN SAVE\r\n");
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool redis_server::answers(bool loading_is_fine) const {
  stream s(socket());
  s.put("PING\r\n");
  const std::string line = s.line();
  return s.ok() && (loading_is_fine || line.find("LOADING") == line.npos);
}

std::string redis_server::ask(const std::vector<std::string>& words) const {
  if (words.size() > 1 && writes_its_key(words[0])) {
    const std::lock_guard guard{asking_};
    of_the_test_.insert(words[1]);
  }
  return ask_redis(socket(), words);
}

std::string ask_redis(const std::string& where, const std::vector<std::string>& words) {
  stream s(where);
  s.put(encoded(words));
  return read_reply(s);
}

namespace {

/// A connection for several requests.
class asker {
 public:
  explicit asker(const std::string& where) : stream_(where) {}
  /// The texts of the reply; an error, also of the connection, is one that begins with "-".
  std::vector<std::string> ask(const std::vector<std::string>& words) {
    stream_.put(encoded(words));
    std::vector<std::string> items;
    read_items(stream_, items);
    if (!stream_.ok()) return {"-it does not answer"};
    return items;
  }

 private:
  stream stream_;
};

bool is_error(const std::vector<std::string>& items) {
  return !items.empty() && items.front().starts_with("-");
}

/// The keys of the selected database.
std::string keys_without_an_end(asker& of, const std::function<bool(const std::string&)>& counts) {
  std::string found, cursor = "0";
  do {
    const auto page = of.ask({"SCAN", cursor, "COUNT", "1000"});
    if (is_error(page)) return found + page.front();
    cursor = page.front();
    for (std::size_t i = 1; i < page.size(); ++i) {
      if (!counts(page[i])) continue;
      const auto left = of.ask({"PTTL", page[i]}).front();
      // A key that has moved is checked at its new node, too.
      const bool elsewhere = left.starts_with("-MOVED") || left.starts_with("-ASK");
      if (left == "-1" || (left.starts_with("-") && left != "-2" && !elsewhere))
        found += page[i] + (left == "-1" ? " " : ": " + left + " ");
    }
  } while (cursor != "0");
  return found;
}

std::string in_all_databases(const std::string& where, const std::string& password,
                             const std::function<bool(const std::string&)>& counts) {
  asker of(where);
  if (!password.empty()) (void)of.ask({"AUTH", password});
  const auto info = of.ask({"INFO", "keyspace"});
  if (is_error(info)) return "the server does not say which keys it has: " + info.front();
  std::istringstream lines(info.front());
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    int database = 0;
    long keys = 0, expire = 0;
    if (std::sscanf(line.c_str(), "db%d:keys=%ld,expires=%ld", &database, &keys, &expire) != 3)
      continue;
    if (keys == expire) continue;
    const auto chosen =
        database == 0 ? std::vector<std::string>{} : of.ask({"SELECT", std::to_string(database)});
    found += is_error(chosen) ? chosen.front() : keys_without_an_end(of, counts);
  }
  return found;
}

}  // namespace

std::string redis_keys_for_ever_at(const std::string& where, const std::string& password,
                                   const std::function<bool(const std::string&)>& counts) {
  std::string said;
  eventually("a connection to a server with few clients", [&] {
    said = in_all_databases(where, password, counts);
    return said.find("max number of clients") == said.npos;
  });
  return said;
}

std::string redis_server::field(const std::vector<std::string>& words,
                                const std::string& name) const {
  const std::string text = "\n" + ask(words);
  const auto at = text.find("\n" + name + ":");
  if (at == text.npos) return {};
  const auto from = at + name.size() + 2;
  return text.substr(from, text.find_first_of("\r\n", from) - from);
}

void redis_server::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void redis_server::stop() {
  ::kill(pid_, SIGSTOP);
  stopped_ = true;
}

void redis_server::resume() {
  ::kill(pid_, SIGCONT);
  stopped_ = false;
}

}  // namespace harness
