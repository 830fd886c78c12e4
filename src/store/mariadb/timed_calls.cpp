#include "store/mariadb/timed_calls.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <new>

#include "base/readiness.hpp"

namespace holdfast::store::mariadb {

// With TLS, the library blocks or not as its socket does.
timed_calls::timed_calls(MYSQL* over) : over_(over) {
  if (mysql_optionsv(over, MYSQL_OPT_NONBLOCK, nullptr) != 0) throw std::bad_alloc();
  const int socket = static_cast<int>(mysql_get_socket(over));
  (void)::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

// With TLS the library ignores a time-out, but not the end of the connection.
int timed_calls::wait(int wanted) noexcept {
  const int socket = static_cast<int>(mysql_get_socket(over_));
  const int events = ((wanted & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                     ((wanted & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0);
  if (!base::wait_until_ready(socket, static_cast<short>(events), deadline_)) {
    late_ = true;
    ::shutdown(socket, SHUT_RDWR);
  }
  return wanted & ~MYSQL_WAIT_TIMEOUT;
}

}  // namespace holdfast::store::mariadb
