#pragma once

#include <functional>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <memory>
#include <string_view>

namespace holdfast::store {

/// What a session_store may be besides: one whose answers come in on a descriptor. Then one thread
/// can ask several of them at the same time, and read all of the answers by itself. Thread-safe.
class posting_store {
 public:
  using listener = std::function<void(result<permits_reply>)>;

  /// Puts the command on its way, behind whatever this session has asked so far, and waits for
  /// nothing: false, and `then` is left alone, if that cannot be done now. `then` is called once,
  /// with no mutex held, by whoever reads the answer: collect(), or who asks something later. It
  /// is not asked a second time if the connection breaks: a failure may be worth another try.
  virtual bool post(std::string_view name, const permits_command& command, listener& then) = 0;

  /// Readable when answers may be there; below 0 if somebody else reads them just now.
  struct source {
    int descriptor = -1;
    std::shared_ptr<const void> keeps{};  ///< the descriptor is not another's as long as it lives
  };
  virtual source answers() = 0;
  /// Takes the answers that are there. Does not wait.
  virtual void collect() = 0;

 protected:
  ~posting_store() = default;
};

}  // namespace holdfast::store
