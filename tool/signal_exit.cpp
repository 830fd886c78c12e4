#include "tool/signal_exit.hpp"

#include <poll.h>

#include <array>

#include "tool/commands.hpp"
#include "tool/exit_code.hpp"

namespace holdfast::tool {

exit_on_signal::exit_on_signal(const signal_inbox& signals, std::optional<int> code)
    : signals_(signals), code_(code), thread_([this] { serve(); }) {}

exit_on_signal::~exit_on_signal() {
  over_.ring();
  thread_.join();
}

void exit_on_signal::serve() const {
  for (;;) {
    std::array<pollfd, 2> wait{{{over_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), -1);
    if (wait[0].revents != 0) return;
    while (const auto s = signals_.next()) {
      const int signal = static_cast<int>(s->ssi_signo);
      if (asks_to_stop(signal)) leave_at_once(code_.value_or(exit_code::of_signal(signal)));
    }
  }
}

}  // namespace holdfast::tool
