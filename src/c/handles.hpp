#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

/// The C interface (holdfast/holdfast.h): keys for C++ objects, and the edge that no exception
/// crosses.
namespace holdfast::c_abi {

/// The object behind a handle.
class handle {
 public:
  handle() noexcept;
  virtual ~handle() = default;
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  /// holdfast_close() was called; calls under way may still use the object.
  virtual void on_close() noexcept {}
  /// Whether holdfast_close_all() closes it before it ends the calls under way.
  virtual bool closes_first() const noexcept { return false; }
  /// Whether this process is a forked child, and the object was made before the fork(): none of its
  /// mutexes can be used.
  bool of_the_parent() const noexcept;

 protected:
  /// For on_close(): waits for the other threads' visits. Afterwards none of them is the last
  /// owner.
  void await_visits() noexcept;

 private:
  friend class visit;
  const unsigned born_;
  unsigned visits_ = 0;
};

/// A handle that only contains an object of the C++ interface.
template <class T>
struct handle_of final : handle {
  template <class... Args>
  explicit handle_of(Args&&... args) : itself(std::forward<Args>(args)...) {}
  T itself;
};

/// Registers the object, and returns a key that no other handle has or had. The object stays
/// registered until it is taken out.
void* enter(std::shared_ptr<handle> what);
/// Null if the key is unknown. In a forked child it throws errc::forked for keys of the parent.
std::shared_ptr<handle> look_up(const void* key);
/// The same, and removes the key. Null if the key is unknown.
std::shared_ptr<handle> take_out(const void* key);

/// The use of an object by a call that asks no store. A thread that closes the handle meanwhile
/// waits for the end of the visit, and then destroys the object, which may ask the store.
class visit {
 public:
  explicit visit(const void* key);
  ~visit();
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  /// The object; throws errc::invalid_argument if the key is NULL, closed, or of another type.
  template <class T>
  T& as(const char* what) const;

 private:
  const void* const key_;
  std::shared_ptr<handle> at_;
};

/// Takes out all objects of this process, or those that close first, but not those of its parent.
enum class closing { first, all };
std::vector<std::shared_ptr<handle>> take_out(closing which);

/// The calls under way in this process that began since the last holdfast_close_all().
struct calls;

/// A call that blocks, or whose outcome goes to a queue, for as long as this object lives.
class call_under_way {
 public:
  /// `a_release` blocks, too, but is never stopped, and needs no memory.
  enum class in { this_thread, a_queue, a_release };
  explicit call_under_way(in where);
  ~call_under_way();
  call_under_way(const call_under_way&) = delete;
  /// Stop is requested when all handles are closed.
  std::stop_token closed() const;

 private:
  const in where_;
  std::shared_ptr<calls> all_;
  bool counts_ = false;  ///< not if it ends at once, because all handles are being closed
};

/// Ends the waits of all calls under way, and waits for the calls, except those that block this
/// thread: what they are granted at that moment has a handle then, or was released. Calls that
/// begin before the last objects are taken out end at once, except releases: await() waits for
/// those. Together they wait for ten seconds at most.
class end_of_calls {
 public:
  end_of_calls();
  void await() const;

 private:
  const std::shared_ptr<calls> all_;
  const boot_time until_;
};

[[noreturn]] void refuse(errc code, const std::string& what);
[[noreturn]] void refuse_handle(const char* what, const void* key);

/// The object; throws errc::invalid_argument if the key is NULL, closed, or of another type.
template <class T>
std::shared_ptr<T> get(const void* key, const char* what) {
  if (auto found = std::dynamic_pointer_cast<T>(look_up(key))) return found;
  refuse_handle(what, key);
}

template <class T>
T& visit::as(const char* what) const {
  if (auto* const found = dynamic_cast<T*>(at_.get())) return *found;
  refuse_handle(what, key_);
}

/// Returns a new object through a pointer to a handle. To be called last, after everything else
/// that may fail.
template <class T, class Made>
void give(T** to, Made what) {
  *to = static_cast<T*>(enter(std::move(what)));
}

}  // namespace holdfast::c_abi
