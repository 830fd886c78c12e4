#pragma once

#include <functional>
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
  /// To be called when the object was taken out. Calls under way may still use the object, but
  /// afterwards no visit of another thread is its last owner.
  void close() noexcept;
  /// Whether holdfast_close_all() closes it before it ends the calls under way.
  virtual bool closes_first() const noexcept { return false; }
  /// Whether this process is a forked child, and the object was made before the fork(): none of its
  /// mutexes can be used.
  bool of_the_parent() const noexcept;

 private:
  friend class visit;
  virtual void on_close() noexcept {}
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
/// Null if the key is unknown, or the object does not fit. In a forked child it throws errc::forked
/// for keys of the parent. `fits` may throw, too. A call that gets no object never is the last
/// owner of one: it asks no store, and another thread may be closing the handle.
std::shared_ptr<handle> look_up(const void* key, const std::function<bool(handle&)>& fits);
/// Removes the key. Null if the key is unknown.
std::shared_ptr<handle> take_out(const void* key);

/// The use of an object by a call that asks no store. A thread that closes the handle meanwhile
/// waits for the end of the visit, and then destroys the object, which may ask the store.
class visit {
 public:
  /// Of no object if the key is NULL or unknown.
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

/// The object; throws errc::invalid_argument if the key is NULL, closed, or of another type, and
/// what `check` throws.
template <class T, class Check>
std::shared_ptr<T> get(const void* key, const char* what, const Check& check) {
  const auto fits = [&check](handle& one) {
    auto* const found = dynamic_cast<T*>(&one);
    if (found != nullptr) check(*found);
    return found != nullptr;
  };
  if (auto found = look_up(key, fits)) return std::static_pointer_cast<T>(std::move(found));
  refuse_handle(what, key);
}
template <class T>
std::shared_ptr<T> get(const void* key, const char* what) {
  return get<T>(key, what, [](const T&) {});
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
