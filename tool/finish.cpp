#include <unistd.h>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"

namespace holdfast::tool {

void leave_at_once(int code) noexcept { ::_exit(code); }

void print(std::string_view text) {
  if (!write_all(1, text)) throw failure_exit(exit_code::own_failure, "can not write to stdout");
}

}  // namespace holdfast::tool
