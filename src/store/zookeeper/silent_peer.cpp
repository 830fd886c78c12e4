#include "store/zookeeper/silent_peer.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace holdfast::store::zookeeper {

namespace {

bool is_socket(int fd, struct stat& what) noexcept {
  return ::fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode);
}

bool is_socket(int fd) noexcept {
  struct stat what{};
  return is_socket(fd, what);
}

/// A duplicate of a socket's descriptor: the number may mean something else at any moment. If the
/// duplicate turns out to be a file, it stays open, because closing it would release this process's
/// locks on that file.
class same_socket {
 public:
  explicit same_socket(int fd) : fd_(is_socket(fd) ? ::fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1) {}
  ~same_socket() {
    if (is_socket(fd_)) ::close(fd_);
  }
  same_socket(const same_socket&) = delete;

  bool is_one_of(std::span<const ino_t> others) const noexcept {
    struct stat what{};
    return is_socket(fd_, what) && std::binary_search(others.begin(), others.end(), what.st_ino);
  }

  bool leads_to(const peer_address& peer) const noexcept {
    sockaddr_storage there{};
    socklen_t size = sizeof there;
    return ::getpeername(fd_, reinterpret_cast<sockaddr*>(&there), &size) == 0 &&
           size == peer.size && std::memcmp(&there, &peer.bytes, size) == 0;
  }

  // Data was sent after the last data arrived. On an idle connection, the last request was
  // answered.
  bool waits_in_vain(std::chrono::milliseconds silent_for) const noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    int unread = 0;
    if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
    if (::ioctl(fd_, FIONREAD, &unread) != 0 || unread > 0) return false;
    return info.tcpi_state == TCP_ESTABLISHED &&  // and not shut down before
           std::chrono::milliseconds(info.tcpi_last_data_recv) >= silent_for &&
           info.tcpi_last_data_sent < info.tcpi_last_data_recv;
  }

  bool shut_down() const noexcept { return ::shutdown(fd_, SHUT_RDWR) == 0; }

 private:
  const int fd_;
};

int number_in(const std::string& text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

constexpr const char* descriptors = "/proc/self/fd";

}  // namespace

std::vector<ino_t> sockets_of_others() noexcept try {
  std::vector<ino_t> all;
  for (const auto& entry : std::filesystem::directory_iterator(descriptors)) {
    struct stat what{};
    if (is_socket(number_in(entry.path().filename().string()), what)) all.push_back(what.st_ino);
  }
  std::sort(all.begin(), all.end());
  return all;
} catch (...) {
  return {};  // no memory, or no /proc: then no socket is shut down, or one of a parent, too
}

int shut_down_silent(const peer_address& peer, std::chrono::milliseconds silent_for,
                     std::span<const ino_t> others) noexcept try {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(descriptors)) {
    const same_socket one(number_in(entry.path().filename().string()));
    if (!one.leads_to(peer) || one.is_one_of(others)) continue;
    if (one.waits_in_vain(silent_for) && one.shut_down()) ++count;
  }
  return count;
} catch (...) {
  return 0;  // no memory, or no /proc: the client itself leaves the peer later
}

}  // namespace holdfast::store::zookeeper
