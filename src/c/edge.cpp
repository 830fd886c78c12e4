#include "c/edge.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/utf8.hpp"

namespace holdfast::c_abi {

static_assert(HOLDFAST_BUSY == static_cast<int>(errc::busy));
static_assert(HOLDFAST_OVERLOADED == static_cast<int>(errc::overloaded));
static_assert(HOLDFAST_INTERNAL == static_cast<int>(errc::internal));

bool put_text(char* to, std::size_t room, std::string_view text) noexcept {
  constexpr std::string_view no_character = "\xEF\xBF\xBD";  // U+FFFD
  std::size_t at = 0;
  while (!text.empty()) {
    const std::size_t length = base::character_length(text);
    const std::string_view one = length > 0 ? text.substr(0, length) : no_character;
    if (one.size() >= room - at) break;
    at += one.copy(to + at, one.size());
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  to[at] = 0;
  return text.empty();
}

namespace {

void put_flags(holdfast_error& why, int code, bool retryable, bool unknown, bool gone) noexcept {
  static_assert(first_size<holdfast_error> == sizeof why, "a shorter one is given");
  std::memset(reinterpret_cast<unsigned char*>(&why) + sizeof why, 0, why.size - sizeof why);
  std::memset(why.unused, 0, sizeof why.unused);
  why.code = code;
  why.retryable = retryable ? 1 : 0;
  why.outcome_unknown = unknown ? 1 : 0;
  why.lease_gone = gone ? 1 : 0;
  why.operation[0] = why.name[0] = why.store[0] = why.message[0] = 0;
}

}  // namespace

int report(holdfast_error* why, const error& e) noexcept {
  const int code = static_cast<int>(e.reason());
  if (why != nullptr) {
    put_flags(*why, code, e.retryable(), e.outcome_unknown(), e.lease_gone());
    put_text(why->operation, e.operation());
    put_text(why->name, e.name());
    put_text(why->store, e.store());
    put_text(why->message, e.what());
  }
  return code;
}

int report(holdfast_error* why, errc code, const char* text) noexcept {
  if (why != nullptr) {
    put_flags(*why, static_cast<int>(code), is_retryable(code), false, false);
    put_text(why->message, text);
  }
  return static_cast<int>(code);
}

int report_success(holdfast_error* why) noexcept {
  if (why != nullptr) put_flags(*why, HOLDFAST_OK, false, false, false);
  return HOLDFAST_OK;
}

std::string text_of(const char* given, const char* what) {
  if (given == nullptr) refuse(errc::invalid_argument, std::string(what) + " is NULL");
  return given;
}

}  // namespace holdfast::c_abi

using namespace holdfast::c_abi;

extern "C" {

uint32_t holdfast_abi(void) { return 0; }

const char* holdfast_version(void) { return HOLDFAST_VERSION; }

const char* holdfast_words(int code) {
  // The category makes its texts anew each time; these stay. Never destroyed, because exit handlers
  // may call this function.
  using texts = std::vector<std::string>;
  static const texts* const all = []() noexcept -> const texts* {
    try {
      auto made = std::make_unique<texts>(1, "success");
      for (int i = 1; i <= HOLDFAST_INTERNAL; ++i)
        made->push_back(holdfast::error_category().message(i));
      return made.release();
    } catch (...) {
      return nullptr;  // no memory
    }
  }();
  const bool known = all != nullptr && code >= 0 && code <= HOLDFAST_INTERNAL;
  return known ? (*all)[static_cast<std::size_t>(code)].c_str() : "unknown error";
}

int holdfast_close(const void* handle, holdfast_error* why) {
  return guarded(why, [&] {
    const call_under_way here(call_under_way::in::a_release);  // it may be a lease
    const auto closed = take_out(handle);
    if (!closed) refuse_handle("handle", handle);
    closed->close();
  });
}

void holdfast_close_all(void) {
  const auto close_handles = [](closing which) {
    (void)guarded(nullptr, [&] {
      for (const auto& closed : take_out(which)) closed->close();
    });
  };
  close_handles(closing::first);
  // Before the leases: otherwise a waiter would be granted the lock of a lease that is closed here.
  std::optional<end_of_calls> calls;
  (void)guarded(nullptr, [&] { calls.emplace(); });
  close_handles(closing::all);
  if (calls) calls->await();
}

}  // extern "C"
