#pragma once

#include <array>
#include <string>
#include <string_view>

namespace holdfast::store::redis {

/// The keys of one name, all under one hash tag: `holdfast:{name}` and four with a suffix. In the
/// name
/// `}` and `%` are written %7D and %25: an early or an empty tag would scatter the keys of a
/// cluster.
class name_keys {
 public:
  name_keys(std::string_view prefix, std::string_view name);
  std::string_view operator[](std::size_t i) const noexcept { return keys_[i]; }
  static constexpr std::size_t count = 5;

 private:
  std::array<std::string, count> keys_;
};

/// The key of one bucket of a rate limiter, beside `record`: ended by what no record's key ends
/// with.
std::string bucket_key(std::string_view record, std::string_view id);

/// What the keys of all buckets of a name begin with, and what of such a key is the bucket's id.
std::string bucket_prefix(std::string_view prefix, std::string_view name);
std::string id_of_bucket(std::string_view key, std::string_view begins);

/// For the MATCH of a SCAN: as text, not as a pattern.
std::string escaped_for_match(std::string_view text);

/// What stands between the braces: of all that is in a key, this alone chooses the slot in a
/// cluster.
std::string hash_tag(std::string_view name);

/// Back from the first of them; empty if it is none.
std::string name_of_key(std::string_view key);

}  // namespace holdfast::store::redis
