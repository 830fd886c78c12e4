#include "store/memcached/link.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/readiness.hpp"
#include "base/time_share.hpp"
#include "base/words.hpp"

namespace holdfast::store::memcached {

namespace {

constexpr std::size_t max_idle = 16;
constexpr std::size_t max_line = 64 * 1024;
constexpr std::size_t max_value = 1024 * 1024;
/// The greatest item size that a server can be configured to accept (-I).
constexpr std::int64_t largest_item = 1024LL * 1024 * 1024;

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Afterwards a call that waits is a single system call, and ends with EAGAIN after that time.
void block_for(int fd, std::chrono::milliseconds d) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  const timeval limit{d.count() / 1'000, d.count() % 1'000 * 1'000};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

struct freed {
  void operator()(addrinfo* a) const { ::freeaddrinfo(a); }
};

// Returns false also if `ends` is ready.
bool is_ready(int fd, short events, int ends, boot_time deadline) {
  pollfd both[] = {{fd, events, 0}, {ends, POLLIN, 0}};
  return base::wait_until_ready(both, deadline) && both[0].revents != 0;
}

// Returns 0 or an errno value.
int connect_to(const addrinfo& a, boot_time deadline, int ends, int& fd) {
  fd = ::socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  int wrong = ::connect(fd, a.ai_addr, a.ai_addrlen) == 0 ? 0 : errno;
  if (wrong == EINPROGRESS) {
    socklen_t size = sizeof wrong;
    if (!is_ready(fd, POLLOUT, ends, deadline))
      wrong = ETIMEDOUT;
    else
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &wrong, &size);
  }
  if (wrong != 0) ::close(fd), fd = -1;
  return wrong;
}

failure unreachable(const address& to, std::string_view why,
                    const char* next = "is memcached running, and is this its address?") {
  return {errc::unavailable,
          "no connection to " + to_string(to) + ": " + std::string(why) + "; " + next};
}

failure without_numbers(const address& to) {
  return {errc::unsupported,
          to_string(to) +
              " gives its items no unique numbers, so a release could remove the lock of another: "
              "start it without -C (--disable-cas)"};
}

}  // namespace

std::optional<std::int64_t> meta_reply::number(char flag) const {
  for (std::size_t at = 0; at < flags.size();
       at = std::min(flags.find(' ', at), flags.size()) + 1) {
    if (flags[at] == flag)
      return base::number_at_start<std::int64_t>(std::string_view(flags).substr(at + 1), -1);
  }
  return std::nullopt;
}

failure server_says(const meta_reply& error, const address& server) {
  const std::string said = to_string(server) + " said '" + error.code + "'";
  if (error.code.find("out of memory") != std::string::npos) {
    return {errc::no_space, said + ": give it more memory (-m), or let it evict"};
  }
  if (error.code.find("unauthenticated") != std::string::npos) {
    return {errc::not_permitted,
            said + ": it asks for a login, which this client does not support"};
  }
  return {errc::unavailable, said + ", which is not an answer to this request"};
}

link::link(int fd, const address& to, const memcached_options& o, int ends)
    : fd_(fd), to_(to), options_(o), id_(next_id()), ends_(ends) {}

link::~link() { ::close(fd_); }

result<std::unique_ptr<link>> link::connect(const address& to, const memcached_options& o,
                                            int ends) {
  const boot_time deadline = boot_clock::now() + o.connect_timeout;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto port = std::to_string(to.port);
  if (const int wrong = ::getaddrinfo(to.host.c_str(), port.c_str(), &hints, &found); wrong != 0) {
    return unreachable(to, ::gai_strerror(wrong), "check the name of the host");
  }
  const std::unique_ptr<addrinfo, freed> all(found);
  std::size_t left = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) ++left;
  int wrong = 0, fd = -1;
  for (const addrinfo* a = found; a != nullptr && fd < 0; a = a->ai_next) {
    wrong = connect_to(*a, base::share_until(deadline, left--), ends, fd);
  }
  if (fd < 0) return unreachable(to, std::strerror(wrong));
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  block_for(fd, o.command_timeout);
  std::unique_ptr<link> made(new link(fd, to, o, ends));
  if (auto ok = made->greet(); !ok) return std::move(ok.error());
  return made;
}

// A server that is not memcached, or too old for the meta commands, must not be used as one.
status link::greet() {
  auto hello = ask("mn\r\n", 1);
  if (!hello) return std::move(hello.error());
  const auto& said = hello->front().code;
  if (said.starts_with("CLIENT_ERROR ") || said.starts_with("SERVER_ERROR ")) {
    return server_says(hello->front(), to_);
  }
  if (said.find("Too many open connections") != said.npos) {
    works_ = false;
    return failure{errc::unavailable, to_string(to_) + " said '" + said +
                                          "': raise its limit (memcached -c), or open fewer "
                                          "sessions"};
  }
  if (!hello->front().is("MN")) {
    return failure{errc::unsupported, to_string(to_) + " said '" + hello->front().code +
                                          "' to a greeting: it is not memcached 1.6 or later; "
                                          "is the port right?"};
  }
  const auto now = boot_clock::now();
  std::int64_t time = 0, uptime = 0;
  auto ok = list("stats\r\n", [&](std::string_view line) {
    const auto take = [&](std::string_view name, std::int64_t& to) {
      if (line.starts_with(name))
        to = base::number_at_start<std::int64_t>(line.substr(name.size()), -1);
    };
    take("STAT time ", time);
    take("STAT uptime ", uptime);
    take("STAT pid ", life_.pid);
  });
  wall_at_greeting_ = time * 1'000'000;
  life_.began_s = time - uptime;
  greeted_at_ = now;
  if (!ok) return ok;
  bool has_numbers = true;
  ok = list("stats settings\r\n", [&](std::string_view line) {
    if (line == "STAT cas_enabled no") has_numbers = false;
  });
  return ok && !has_numbers ? without_numbers(to_) : std::move(ok);
}

std::int64_t link::wall_at() const noexcept {
  const auto since = boot_clock::now() - greeted_at_;
  return wall_at_greeting_ + std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

failure link::broken(std::string_view why) {
  works_ = false;
  failure f{errc::unavailable, to_string(to_) + " " + std::string(why) +
                                   "; is the server running, and does the network work?"};
  f.outcome_unknown = true;
  return f;
}

failure link::hung(std::string_view why) {
  hangs_ = true;
  return broken(why);
}

// It is unknown which answer belongs to which request: no later request may get this one.
failure link::out_of_step() { return broken("sent more answers than it was sent requests"); }

// The kernel's time limit restarts with each portion sent, and with each signal.
status link::send(std::string_view bytes, boot_time deadline) {
  for (bool first = true; !bytes.empty(); first = false) {
    if (!first && boot_clock::now() >= deadline)
      return hung("accepted too few bytes within command_timeout");
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      return hung("accepted no bytes within command_timeout");
    } else if (errno != EINTR) {
      return broken("has ended the connection");
    }
  }
  return done{};
}

// The deadline is for a server that answers byte by byte. When it is over, the answer may have
// arrived all the same, if this process was stopped: looks for it once more in each command.
status link::receive(boot_time deadline) {
  if (ends_ >= 0 && !is_ready(fd_, POLLIN, ends_, deadline))
    return hung("did not answer in command_timeout");
  std::array<char, 16 * 1024> buffer;
  for (bool silent = false; !silent;) {
    const bool over = boot_clock::now() >= deadline;
    if (over && std::exchange(late_, true)) break;
    const auto got = ::recv(fd_, buffer.data(), buffer.size(), over ? MSG_DONTWAIT : 0);
    if (got > 0) {
      heard_.erase(0, std::exchange(at_, 0));
      heard_.append(buffer.data(), static_cast<std::size_t>(got));
      return done{};
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return broken("has ended the connection");
    silent = over || errno == EAGAIN;
  }
  return hung("did not answer in command_timeout");
}

result<std::string> link::line(boot_time deadline) {
  while (true) {
    const auto end = heard_.find('\n', at_);  // a list of keys has no carriage returns
    if (end != heard_.npos) {
      std::string text = heard_.substr(at_, end - at_);
      at_ = end + 1;
      if (text.ends_with('\r')) text.pop_back();
      return text;
    }
    if (heard_.size() - at_ > max_line) return broken("sent a line without an end");
    if (auto ok = receive(deadline); !ok) return std::move(ok.error());
  }
}

result<meta_reply> link::reply(boot_time deadline) {
  auto text = line(deadline);
  if (!text) return std::move(text.error());
  meta_reply r;
  const auto space = std::min(text->find(' '), text->size());
  if (space > 2) {  // not one of the two-letter codes
    r.code = std::move(*text);
    return r;
  }
  r.code = text->substr(0, space);
  r.flags = text->substr(std::min(space + 1, text->size()));
  if (!r.is("VA")) return r;
  const auto size = base::number_at_start<std::int64_t>(r.flags, -1);
  if (size < 0 || size > largest_item) return broken("sent no value");
  if (size > static_cast<std::int64_t>(max_value)) {
    works_ = false;  // the rest is not read
    return failure{errc::kind_mismatch, "the key holds " + std::to_string(size) +
                                            " bytes, which holdfast did not write: choose another "
                                            "name or ?prefix="};
  }
  r.flags.erase(0, std::min(r.flags.find(' '), r.flags.size() - 1) + 1);
  const auto bytes = static_cast<std::size_t>(size);
  while (heard_.size() - at_ < bytes + 2) {
    if (auto ok = receive(deadline); !ok) return std::move(ok.error());
  }
  r.value = heard_.substr(at_, bytes);
  at_ += bytes + 2;
  return r;
}

result<std::vector<meta_reply>> link::ask(std::string_view commands, std::size_t replies) {
  const boot_time deadline = boot_clock::now() + options_.command_timeout;
  late_ = false;
  if (auto ok = send(commands, deadline); !ok) return std::move(ok.error());
  std::vector<meta_reply> all;
  all.reserve(replies);
  while (all.size() < replies) {
    auto one = reply(deadline);
    if (!one) return std::move(one.error());
    all.push_back(std::move(*one));
  }
  if (at_ != heard_.size()) return out_of_step();
  return all;
}

status link::list(std::string_view command, const std::function<void(std::string_view)>& take) {
  const boot_time deadline = boot_clock::now() + options_.command_timeout;
  late_ = false;
  if (auto ok = send(command, deadline); !ok) return ok;
  while (true) {
    auto text = line(deadline);
    if (!text) return std::move(text.error());
    if (*text == "END") return at_ == heard_.size() ? status(done{}) : out_of_step();
    if (text->starts_with("BUSY") && boot_clock::now() < deadline) {  // with another client's list
      pollfd quiet{fd_, POLLIN, 0};
      (void)::poll(&quiet, 1, 5);
      if (auto ok = send(command, deadline); !ok) return ok;
      continue;
    }
    if (text->starts_with("ERROR") || text->starts_with("CLIENT_ERROR") ||
        text->starts_with("SERVER_ERROR") || text->starts_with("BUSY")) {
      works_ = false;
      return server_says({*text, {}, {}}, to_);
    }
    take(*text);
  }
}

server::~server() {
  if (!asks_.joinable()) return;
  ends_->set();
  asks_.join();
}

bool server::is_silent() noexcept {
  if (!silent_) return false;
  const std::lock_guard guard{mutex_};
  if (!silent_ || asking_) return silent_;
  try {
    if (asks_.joinable()) asks_.join();  // the thread has nothing more to do
    if (!ends_) ends_.emplace();
    asks_ = std::thread([this] { ask_again(); });
    asking_ = true;
  } catch (...) {
    return false;  // no thread: the caller waits for the server, as the first time
  }
  return true;
}

void server::ask_again() noexcept {
  std::unique_ptr<link> made;
  try {
    if (auto greeted = link::connect(to_, options_, ends_->fd())) made = std::move(*greeted);
  } catch (...) {
    made = nullptr;  // no memory: as if the server had not answered
  }
  const std::lock_guard guard{mutex_};
  if (made) silent_ = false;
  asking_ = false;
}

std::unique_ptr<link> server::take(std::uint64_t preferred) {
  const std::lock_guard guard{mutex_};
  if (idle_.empty()) return nullptr;
  auto at =
      std::find_if(idle_.begin(), idle_.end(), [&](const auto& l) { return l->id() == preferred; });
  if (at == idle_.end()) --at;
  auto taken = std::move(*at);
  idle_.erase(at);
  return taken;
}

void server::give_back(std::unique_ptr<link> used) {
  const std::lock_guard guard{mutex_};
  if (used->works() && idle_.size() < max_idle) idle_.push_back(std::move(used));
}

status server::talk(std::uint64_t preferred, const conversation& what) {
  auto used = take(preferred);
  bool sent = false;  // and the outcome is unknown
  if (used) {
    auto ok = what(*used);
    const bool hangs = used->hangs(), ended = !used->works() && !hangs;
    if (used->works()) give_back(std::move(used));
    if (ok) return ok;
    {
      const std::lock_guard guard{mutex_};
      if (ended || hangs) idle_.clear();  // the other connections have the same problem
    }
    if (!ended) return ok;
    sent = ok.error().outcome_unknown;
  }
  auto made = link::connect(to_, options_);
  if (!made) made.error().outcome_unknown = false;  // a greeting changes nothing
  auto ok = made ? what(**made) : status(std::move(made.error()));
  if (made) give_back(std::move(*made));
  if (!ok) ok.error().outcome_unknown = ok.error().outcome_unknown || sent;
  return ok;
}

}  // namespace holdfast::store::memcached
