#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include "store/sqlite/file_descriptor.hpp"

namespace holdfast::store::sqlite {

/// The name of a session, which no later process of this machine can have: the address of its
/// inbox, and the data that tells whether its process still exists.
struct peer {
  std::uint32_t boot = 0;       ///< from the boot id: a reboot ends every session
  std::uint64_t pid_space = 0;  ///< inode of the pid namespace; 0: pids cannot be compared
  std::int32_t pid = 0;
  std::uint64_t started = 0;  ///< clock ticks since boot: a reused pid is another process
  std::uint32_t session = 0;  ///< random
  bool operator==(const peer&) const = default;
  bool same_process(const peer& other) const noexcept;
};

/// "7e9a1fbb-effffffc-4711-3c7f2-5b1c09aa": hexadecimal but for the pid. Safe as a file name.
std::string to_string(const peer& p);
/// Accepts five numbers and nothing else: a record may contain any text, and this becomes a file
/// name.
std::optional<peer> parse_peer(std::string_view text) noexcept;

/// Names a new session of this process. Fails without /proc, and in a time namespace whose clock
/// differs from the machine's, because leases could not be compared.
result<peer> this_session();

/// True only if the process is certainly gone. Takes about 7 µs if it exists.
bool departed(const peer& who, const peer& self) noexcept;

/// Returns a descriptor that becomes readable when the process ends; none if the system gives none,
/// or if the process has departed already.
file_descriptor watch_process(const peer& who, const peer& self) noexcept;

/// The whole boot id, for the table that shows whether the machine was rebooted.
result<std::string> boot_id();

}  // namespace holdfast::store::sqlite
