#pragma once

#include <cstdint>
#include <functional>
#include <holdfast/store/command.hpp>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

namespace holdfast::engine {

/// A hold that a thread may have, of any session and at any time.
class owned {
 public:
  /// Another number in each thread's turn, and between the turns.
  virtual unsigned turn() const noexcept = 0;
  /// Whether it was released, or is known to be lost.
  virtual bool has_ended() const noexcept = 0;

 protected:
  ~owned() = default;
};

/// A hold of the calling thread, for the debug options of a session. A lease may move to another
/// thread unnoticed, so a lease belongs to the thread that acquired it only as far as is known; a
/// std-style hold belongs to its thread by contract. Another thread may release the hold at any
/// moment, so everything that is asked later is stored here.
struct own_hold {
  std::string url{};  ///< the store's URL
  std::string name{};
  store::owner_id owner{};
  bool in_std_style = false;
  bool ends_by_itself = false;                     ///< not renewed, or not for ever
  std::optional<std::source_location> taken_at{};  ///< if the program said so
  std::weak_ptr<const owned> what{};
  unsigned turn = 0;  ///< of the hold, when this thread got it

  /// Whether it was lost, or released by any thread.
  bool is_over() const;
};

/// Notes that this thread has acquired the hold: once for each lease of a shared hold. A hold that
/// was noted before, and turns out to be held in std style, is marked so.
void note_own(const std::shared_ptr<const owned>& what, own_hold it);
/// Notes that this thread has released a lease of the hold.
void forget_own(const owned& what) noexcept;

/// Visits the holds of this thread that were neither lost nor released. A release by another thread
/// is not noticed if other leases share the hold. The visitor must not note, forget or lock
/// anything.
void each_own_hold(const std::function<void(const own_hold&)>& visit);

/// The call site of this thread, if it set one (called_from).
std::optional<std::source_location> current_call_site() noexcept;

}  // namespace holdfast::engine
