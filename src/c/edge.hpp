#pragma once

#include <holdfast/holdfast.h>

#include <cstddef>
#include <cstring>
#include <exception>
#include <holdfast/result.hpp>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "c/handles.hpp"

/// What each function of the C interface begins and ends with.
namespace holdfast::c_abi {

/// As much as fits, never half a character.
void put_text(char* to, std::size_t room, std::string_view text) noexcept;
template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) noexcept {
  put_text(to, N, text);
}

/// Writes all of it to `why`, if that is not null; returns the code.
int report(holdfast_error* why, const error& e) noexcept;
int report(holdfast_error* why, errc code, const char* text) noexcept;
int report_success(holdfast_error* why) noexcept;

/// Does `action`, which returns nothing or a status, and turns what it throws into a code.
template <class F>
int guarded(holdfast_error* why, F&& action) noexcept {
  if (why != nullptr && why->size < sizeof(holdfast_error)) return HOLDFAST_INVALID_ARGUMENT;
  try {
    if constexpr (std::is_void_v<decltype(action())>) {
      action();
    } else {
      status how = action();
      if (!how) return report(why, error(std::move(how.error())));
    }
    return report_success(why);
  } catch (const error& e) {
    return report(why, e);
  } catch (const std::bad_alloc&) {
    return report(why, errc::overloaded, "this process has no memory left");
  } catch (const std::exception& e) {
    return report(why, errc::internal, e.what());
  } catch (...) {
    return report(why, errc::internal, "an exception of an unknown type");
  }
}

/// A size that cannot be one: the field was never set.
inline constexpr std::size_t largest_struct = 1U << 16;

/// What the caller says; all defaults for NULL. A struct of a later version is fine as long as what
/// this library does not know is zero.
template <class T>
T read(const T* given, const char* what) {
  if (given == nullptr) return T{};
  if (given->size < sizeof(T) || given->size > largest_struct) {
    refuse(errc::invalid_argument, std::string(what) + ": size is not the size of the struct");
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < given->size; ++i) {
    if (bytes[i] != 0) {
      refuse(errc::unsupported,
             std::string(what) + " has a field that this library is too old for");
    }
  }
  return *given;
}

/// The same for an array, whose members have no size of their own.
template <class T>
void require_array(const T* first, std::size_t count, const char* what) {
  if (first == nullptr && count > 0) refuse(errc::invalid_argument, std::string(what) + " is NULL");
}

/// Where a result goes.
template <class T>
T& out(T* to, const char* what) {
  if (to == nullptr) refuse(errc::invalid_argument, std::string(what) + " is NULL");
  return *to;
}
template <class T>
T& out_struct(T* to, const char* what) {
  T& there = out(to, what);
  if (there.size < sizeof(T) || there.size > largest_struct) {
    refuse(errc::invalid_argument, std::string(what) + ": size is not the size of the struct");
  }
  const auto size = there.size;
  std::memset(&there, 0, sizeof(T));
  there.size = size;
  return there;
}

/// A text that has to be there.
std::string text_of(const char* given, const char* what);
/// Empty if it is not there.
inline std::string text_or_nothing(const char* given) { return given == nullptr ? "" : given; }

}  // namespace holdfast::c_abi
