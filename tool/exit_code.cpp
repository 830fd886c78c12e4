#include "tool/exit_code.hpp"

#include <sys/wait.h>

#include <cerrno>

namespace holdfast::tool::exit_code {

int of(errc code) noexcept {
  switch (code) {
    case errc::busy:
    case errc::timed_out:
    case errc::overloaded:
      return busy;
    case errc::lost:
      return lost;
    case errc::unavailable:
    case errc::no_space:
    case errc::corrupt:
      return unavailable;
    case errc::not_permitted:
    case errc::read_only:
      return not_permitted;
    case errc::kind_mismatch:
    case errc::capacity_mismatch:
    case errc::unsupported:
    case errc::foreign_data:
    case errc::newer_format:
      return config;
    case errc::invalid_name:
    case errc::invalid_argument:
      return usage;
    case errc::cancelled:
    case errc::not_owner:
    case errc::deadlock:
    case errc::forked:
    case errc::internal:
      return own_failure;
  }
  return own_failure;
}

int of_child(int wait_status) noexcept {
  if (WIFSIGNALED(wait_status)) return of_signal(WTERMSIG(wait_status));
  return WEXITSTATUS(wait_status);
}

int of_exec(int error_number) noexcept {
  return error_number == ENOENT ? not_found : not_executable;
}

}  // namespace holdfast::tool::exit_code
