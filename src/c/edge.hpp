#pragma once

#include <holdfast/holdfast.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <holdfast/result.hpp>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "c/handles.hpp"

/// The beginning and the end of each function of the C interface.
namespace holdfast::c_abi {

/// Copies as much as fits, and never half a character. Bytes that are not UTF-8 become U+FFFD,
/// which is longer. Returns whether everything has fitted.
bool put_text(char* to, std::size_t room, std::string_view text) noexcept;
template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) noexcept {
  (void)put_text(to, N, text);
}

/// Writes the whole error to `why`, if that is not null; returns the code.
int report(holdfast_error* why, const error& e) noexcept;
int report(holdfast_error* why, errc code, const char* text) noexcept;
int report_success(holdfast_error* why) noexcept;

/// The size of each struct in interface 0. Fields that are added later follow it; a program that
/// was compiled earlier has none of them.
template <class T>
inline constexpr std::size_t first_size = 0;
template <>
inline constexpr std::size_t first_size<holdfast_error> = 5712;
template <>
inline constexpr std::size_t first_size<holdfast_wait> = 40;
template <>
inline constexpr std::size_t first_size<holdfast_event> = 48;
template <>
inline constexpr std::size_t first_size<holdfast_session_options> = 32;
template <>
inline constexpr std::size_t first_size<holdfast_name_info> = 80;
template <>
inline constexpr std::size_t first_size<holdfast_lease_info> = 552;
template <>
inline constexpr std::size_t first_size<holdfast_lock_options> = 56;
template <>
inline constexpr std::size_t first_size<holdfast_election_options> = 24;
template <>
inline constexpr std::size_t first_size<holdfast_leader> = 792;
template <>
inline constexpr std::size_t first_size<holdfast_redlock_options> = 40;
template <>
inline constexpr std::size_t first_size<holdfast_decision> = 296;

/// A size above this means that the field was never set.
inline constexpr std::size_t largest_struct = 1U << 16;

/// Calls `action`, which returns nothing or a status, and turns its exceptions into a code.
template <class F>
int guarded(holdfast_error* why, F&& action) noexcept {
  if (why != nullptr && (why->size < first_size<holdfast_error> || why->size > largest_struct)) {
    return HOLDFAST_INVALID_ARGUMENT;
  }
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

template <class T>
void require_size(const T& given, const char* what) {
  static_assert(first_size<T> != 0 && first_size<T> <= sizeof(T));
  if (given.size < first_size<T> || given.size > largest_struct) {
    refuse(errc::invalid_argument,
           std::string(what) + ": size is not the size of the struct; set it to sizeof");
  }
}

/// For a field that this library does not know, or that has no meaning yet.
inline void require_zero(const void* from, std::size_t count, const char* what) {
  const auto* const bytes = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != 0) {
      refuse(errc::unsupported,
             std::string(what) +
                 " has a field that this library is too old for: leave it 0, or use a newer one");
    }
  }
}

/// Copies the caller's struct; NULL means all defaults. A struct of an earlier version gets the
/// defaults in the fields that it lacks; a struct of a later version must have zeros in the fields
/// that this library lacks.
template <class T>
T read(const T* given, const char* what) {
  T known{};
  if (given == nullptr) return known;
  require_size(*given, what);
  const std::size_t both = std::min<std::size_t>(given->size, sizeof(T));
  std::memcpy(&known, given, both);
  require_zero(reinterpret_cast<const unsigned char*>(given) + both, given->size - both, what);
  if constexpr (requires { known.unused; }) {
    require_zero(&known.unused, sizeof known.unused, what);
  }
  return known;
}

/// The same for an array, whose elements have no size field.
template <class T>
void require_array(const T* first, std::size_t count, const char* what) {
  if (first == nullptr && count > 0) refuse(errc::invalid_argument, std::string(what) + " is NULL");
}

/// Checks the pointer to a result.
template <class T>
T& out(T* to, const char* what) {
  if (to == nullptr) refuse(errc::invalid_argument, std::string(what) + " is NULL");
  return *to;
}
/// The same for a struct. It has as many bytes as its size field says; they are written at the end
/// of the call. Fields that the call does not set become zero.
template <class T>
class out_struct {
 public:
  out_struct(T* to, const char* what) : to_(&out(to, what)) {
    require_size(*to_, what);
    known_.size = to_->size;
  }
  out_struct(const out_struct&) = delete;
  out_struct& operator=(const out_struct&) = delete;
  ~out_struct() {
    const std::size_t size = known_.size;
    const std::size_t both = std::min(size, sizeof(T));
    std::memcpy(to_, &known_, both);
    std::memset(reinterpret_cast<unsigned char*>(to_) + both, 0, size - both);
  }
  T& operator*() noexcept { return known_; }
  T* operator->() noexcept { return &known_; }

 private:
  T* const to_;
  T known_{};
};

/// A text that must not be NULL.
std::string text_of(const char* given, const char* what);
/// Empty for NULL.
inline std::string text_or_nothing(const char* given) { return given == nullptr ? "" : given; }

}  // namespace holdfast::c_abi
