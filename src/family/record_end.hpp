#pragma once

#include <string>

#include "family/record_codec.hpp"

/// What has run out, and what is left of a name that nobody uses.
namespace holdfast::family {

bool in_use(const any_record& any);
store::kind kind_of(const any_record& any);

/// What has run out is gone, also if the name is wanted for something else.
void expire(any_record& any, const store::moment& now);

/// The text of a lock's record: empty if nothing of it need be kept.
void write(const store::permits_record& record, const store::moment& now, std::string& text);

/// The same of a name that nobody uses, with the last fence of the lock that had it.
void write_unused(std::uint64_t last_fence, const store::moment& now, std::string& text);

}  // namespace holdfast::family
