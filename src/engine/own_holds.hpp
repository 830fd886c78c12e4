#pragma once

#include <holdfast/lease.hpp>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

namespace holdfast::engine {

class hold;

/// What the calling thread has, for the debug options of a session. A lease may go to another
/// thread unseen, so what was acquired as one is the thread's only to the best of our knowledge; a
/// std-style hold is its own by contract.
struct own_hold {
  std::shared_ptr<hold> what;
  bool in_std_style = false;
  std::optional<std::source_location> taken_at{};  ///< if somebody said
};

/// This thread acquired it.
void note_own(const lease& l);
/// … and has to unlock it itself.
void note_own_in_std_style(const lease& l);
void forget_own(const lease& l) noexcept;

/// What was neither lost nor given back, whoever did that.
std::vector<own_hold> own_holds();

/// Where this thread is, if it said so (called_from).
std::optional<std::source_location> current_call_site() noexcept;

}  // namespace holdfast::engine
