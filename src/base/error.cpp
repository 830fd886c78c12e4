#include <algorithm>
#include <holdfast/error.hpp>
#include <stdexcept>
#include <utility>

#include "base/everlasting.hpp"
#include "base/names.hpp"
#include "base/utf8.hpp"

namespace holdfast {

namespace {

std::string_view describe(errc code) noexcept {
  switch (code) {
    case errc::busy:
      return "busy";
    case errc::timed_out:
      return "timed out";
    case errc::cancelled:
      return "cancelled";
    case errc::lost:
      return "the lock was lost";
    case errc::not_owner:
      return "not held by the caller";
    case errc::unavailable:
      return "the store is not available";
    case errc::overloaded:
      return "overloaded";
    case errc::deadlock:
      return "the wait would never end";
    case errc::kind_mismatch:
      return "the name is in use as another kind";
    case errc::capacity_mismatch:
      return "the name is in use with another capacity, count or rate";
    case errc::unsupported:
      return "not supported";
    case errc::invalid_name:
      return "invalid name";
    case errc::invalid_argument:
      return "invalid argument";
    case errc::foreign_data:
      return "not written by holdfast";
    case errc::newer_format:
      return "written by a newer holdfast";
    case errc::corrupt:
      return "damaged data";
    case errc::read_only:
      return "the store is read-only";
    case errc::no_space:
      return "the store is full";
    case errc::not_permitted:
      return "not permitted";
    case errc::forked:
      return "used in a forked child";
    case errc::internal:
      return "internal error";
  }
  return "unknown error";
}

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "holdfast"; }
  std::string message(int code) const override {
    return std::string(describe(static_cast<errc>(code)));
  }
  // Lets a caller compare with the standard's conditions where there is one.
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<errc>(code)) {
      case errc::timed_out:
        return std::errc::timed_out;
      case errc::cancelled:
        return std::errc::operation_canceled;
      case errc::deadlock:
        return std::errc::resource_deadlock_would_occur;
      case errc::busy:
        return std::errc::device_or_resource_busy;
      case errc::unsupported:
        return std::errc::not_supported;
      case errc::invalid_argument:
      case errc::invalid_name:
        return std::errc::invalid_argument;
      case errc::not_permitted:
        return std::errc::permission_denied;
      case errc::no_space:
        return std::errc::no_space_on_device;
      default:
        return {code, *this};
    }
  }
};

/// Replaces what could control a terminal, what a log would take for another line, and bytes that
/// are not UTF-8: the text may come from another program.
std::string printable(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string plain;
  while (!text.empty()) {
    const std::size_t length = base::character_length(text);
    const std::string_view one = text.substr(0, std::max<std::size_t>(length, 1));
    if (length > 0 && !base::has_control_characters(one)) {
      plain += one;
    } else {
      for (const char c : one) {
        const auto byte = static_cast<unsigned char>(c);
        plain += "\\x";
        plain += hex[byte >> 4];
        plain += hex[byte & 15];
      }
    }
    text.remove_prefix(one.size());
  }
  return plain;
}

/// A refused name may have any length; a name that a store allows is shown whole.
constexpr std::size_t longest_name = 512;

/// Whether `f.what` contains the meaning of the code, and more exactly: "the name is in use as a
/// mutex" needs no "the name is in use as another kind" before it.
bool says_its_code(const failure& f) {
  const bool mismatch = f.code == errc::kind_mismatch || f.code == errc::capacity_mismatch;
  return (mismatch && f.what.starts_with("the name is in use")) ||
         f.what.starts_with(describe(f.code));
}

/// Makes the message: `lock 'order:1' on sqlite:locks.db: busy: the server's message, and
/// what to do`. The name of an "open" is a URL. The advice comes last, where a reader looks for it.
std::string compose(const failure& f) {
  std::string text = "holdfast";
  if (!f.operation.empty()) text += ": " + f.operation;
  if (!f.name.empty()) text += " '" + base::shortened(f.name, longest_name) + "'";
  if (!f.store.empty() && f.operation != "open") text += " on " + f.store;
  if (!says_its_code(f)) text += ": " + std::string(describe(f.code));
  if (!f.what.empty()) text += ": " + f.what;
  return printable(text);
}

}  // namespace

const std::error_category& error_category() noexcept { return base::everlasting<category>(); }

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

error::error(failure f) : std::system_error(make_error_code(f.code)), failure_(std::move(f)) {
  // std::system_error appends the text of its code to every text. Its base class, which stores the
  // text, can be assigned another one unchanged.
  static_cast<std::runtime_error&>(*this) = std::runtime_error(compose(failure_));
}

std::string failure::message() const { return error(*this).what(); }

bool is_retryable(errc code) noexcept {
  return code == errc::busy || code == errc::timed_out || code == errc::unavailable ||
         code == errc::overloaded || code == errc::no_space;
}

bool error::retryable() const noexcept { return is_retryable(failure_.code); }

bool error::lease_gone() const noexcept {
  return failure_.code == errc::lost || failure_.code == errc::not_owner ||
         failure_.code == errc::forked;
}

void throw_failure(failure f) { throw error(std::move(f)); }

}  // namespace holdfast
