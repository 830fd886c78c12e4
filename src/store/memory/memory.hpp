#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/state_store.hpp>
#include <memory>
#include <string>

/// Records in this process's memory: for tests, and for programs that may move to a real store
/// later. Sessions that open the same name share the records; an empty name opens a separate space.
namespace holdfast::store::memory {

/// `on` is the clock of the leases; it must outlive the store.
std::unique_ptr<state_store> open_memory(const std::string& name, clock& on);

}  // namespace holdfast::store::memory
