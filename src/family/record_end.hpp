#pragma once

#include <string>

#include "family/record_codec.hpp"

/// Removes expired parts of a record, and writes what is left of a name that is not in use.
namespace holdfast::family {

bool in_use(const any_record& any);
store::kind kind_of(const any_record& any);

/// Removes what has expired, also when the name is wanted for another kind.
void expire(any_record& any, const store::moment& now);

/// The text of a lock's record: empty if nothing of it has to be kept.
void write(const store::permits_record& record, const store::moment& now, std::string& text);

/// The text for a name that is not in use, with the last fence of the lock that had it.
void write_unused(std::uint64_t last_fence, const store::moment& now, std::string& text);

}  // namespace holdfast::family
