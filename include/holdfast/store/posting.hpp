#pragma once

#include <functional>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <memory>
#include <string_view>

namespace holdfast::store {

/// An additional interface of a session_store whose answers arrive at a file descriptor. With it,
/// one thread can send requests to several stores at the same time, and read all answers itself.
/// Thread-safe.
class posting_store {
 public:
  using listener = std::function<void(result<permits_reply>)>;

  /// Sends the command, after all earlier requests of this session, and does not wait. False if
  /// that is not possible now; then `then` is not called. Otherwise `then` is called once, with no
  /// mutex held, by the thread that reads the answer: in collect(), or in a later call. If the
  /// connection breaks, the command is not sent again: the caller may retry after a failure.
  virtual bool post(std::string_view name, const permits_command& command, listener& then) = 0;

  /// Readable when there may be answers; negative while another thread is reading them.
  struct source {
    int descriptor = -1;
    std::shared_ptr<const void> keeps{};  ///< the descriptor is not reused as long as this lives
  };
  virtual source answers() = 0;
  /// Reads the answers that have arrived. Does not wait.
  virtual void collect() = 0;

 protected:
  ~posting_store() = default;
};

}  // namespace holdfast::store
