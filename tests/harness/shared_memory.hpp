#pragma once

#include <cstddef>
#include <new>
#include <string>
#include <type_traits>

namespace harness {

/// A file mapped into every process that opens it; created with zeros, and kept by its users.
class shared_bytes {
 public:
  shared_bytes(const std::string& path, std::size_t size);
  ~shared_bytes();
  shared_bytes(const shared_bytes&) = delete;
  shared_bytes& operator=(const shared_bytes&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t size_;
};

/// One object, of a type that may start as zeros, in shared memory.
template <class T>
class shared {
  static_assert(std::is_trivially_destructible_v<T> && std::is_standard_layout_v<T>);

 public:
  explicit shared(const std::string& path) : bytes_(path, sizeof(T)) {}
  T* operator->() const { return std::launder(static_cast<T*>(bytes_.data())); }
  T& operator*() const { return *operator->(); }

 private:
  shared_bytes bytes_;
};

}  // namespace harness
