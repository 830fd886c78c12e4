#pragma once

#include <holdfast/error.hpp>
#include <memory>
#include <utility>
#include <vector>

/// The C interface (holdfast/holdfast.h): keys for C++ objects, and the edge where exceptions end.
namespace holdfast::c_abi {

/// What a handle stands for.
class handle {
 public:
  handle() noexcept;
  virtual ~handle() = default;
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  /// holdfast_close() was called; calls under way may still use it.
  virtual void on_close() noexcept {}
  /// Made before a fork(), and this is the child: none of its mutexes can be trusted.
  bool of_the_parent() const noexcept;

 private:
  const unsigned born_;
};

/// What stands for an object of the C++ interface, and does no more than that.
template <class T>
struct handle_of final : handle {
  template <class... Args>
  explicit handle_of(Args&&... args) : itself(std::forward<Args>(args)...) {}
  T itself;
};

/// A key that no other handle has or had. The object stays until it is taken out.
void* enter(std::shared_ptr<handle> what);
/// Null if there is none. In a forked child it throws errc::forked for those of the parent.
std::shared_ptr<handle> look_up(const void* key);
/// The same, and the key is gone. Null if there is none.
std::shared_ptr<handle> take_out(const void* key);

/// Those of this process, not of its parent.
std::vector<std::shared_ptr<handle>> take_all_out();

[[noreturn]] void refuse(errc code, const std::string& what);
[[noreturn]] void refuse_handle(const char* what, const void* key);

/// The object; throws errc::invalid_argument if the key is NULL, closed, or of something else.
template <class T>
std::shared_ptr<T> get(const void* key, const char* what) {
  if (auto found = std::dynamic_pointer_cast<T>(look_up(key))) return found;
  refuse_handle(what, key);
}

/// What is returned through a pointer to a handle, after all else that may fail.
template <class T, class Made>
void give(T** to, Made what) {
  *to = static_cast<T*>(enter(std::move(what)));
}

}  // namespace holdfast::c_abi
