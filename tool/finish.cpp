#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <holdfast/error.hpp>
#include <string>

#include "tool/commands.hpp"
#include "tool/exit_code.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

int report(int code, std::string_view message, log& to) {
  to.write(level::error, "failed", unsigned_message(message),
           {{"exit_code", static_cast<std::int64_t>(code)}});
  return code;
}

}  // namespace

int reported(log& to, const std::function<int()>& command) {
  try {
    return command();
  } catch (const failure_exit& e) {
    return report(e.code(), e.what(), to);
  } catch (const error& e) {
    return report(exit_code::of(e.reason()), e.what(), to);
  } catch (const std::exception& e) {
    return report(exit_code::own_failure, e.what(), to);
  }
}

void leave_at_once(int code) noexcept { ::_exit(code); }

void print(std::string_view text) {
  if (write_all(1, text)) return;
  throw failure_exit(exit_code::own_failure,
                     std::string("cannot write to stdout: ") + std::strerror(errno));
}

}  // namespace holdfast::tool
