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

/// What a thread may have, of any session and at any time.
class owned {
 public:
  /// Each turn has its own.
  virtual std::uint64_t fence() const noexcept = 0;
  /// Given back, or known to be lost.
  virtual bool has_ended() const noexcept = 0;

 protected:
  ~owned() = default;
};

/// What the calling thread has, for the debug options of a session. A lease may go to another
/// thread unseen, so what was acquired as one is the thread's only to the best of our knowledge; a
/// std-style hold is its own by contract. Another thread may give it back at any moment: all that
/// is asked later is kept here.
struct own_hold {
  std::string url{};  ///< of the store
  std::string name{};
  store::owner_id owner{};
  bool in_std_style = false;
  bool ends_by_itself = false;                     ///< nobody renews it, or not for ever
  std::optional<std::source_location> taken_at{};  ///< if the program said
  std::weak_ptr<const owned> what{};
  std::uint64_t fence = 0;  ///< each turn at a local queue has its own

  /// Lost, or given back. By any thread.
  bool is_over() const;
};

/// This thread acquired it, and has it: once for each lease of a shared hold.
/// What was noted before, and turns out to be held in std style, is noted as such.
void note_own(const std::shared_ptr<const owned>& what, own_hold it);
/// It gives a lease of that back.
void forget_own(const owned& what) noexcept;

/// What was neither lost nor given back. Of what another thread gave back only that is seen which
/// ended the hold or its turn: not a lease beside others on a shared hold, or of one that lingers.
/// The visitor must not note, forget or lock anything.
void each_own_hold(const std::function<void(const own_hold&)>& visit);

/// Where this thread is, if it said so (called_from).
std::optional<std::source_location> current_call_site() noexcept;

}  // namespace holdfast::engine
