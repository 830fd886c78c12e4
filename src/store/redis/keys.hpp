#pragma once

#include <array>
#include <string>
#include <string_view>

namespace holdfast::store::redis {

/// The keys of one name, all under one hash tag: `holdfast:{name}` and four keys with a suffix. `}`
/// and `%` in the name are written %7D and %25: a tag that ends early or is empty would scatter the
/// keys over the slots of a cluster.
class name_keys {
 public:
  name_keys(std::string_view prefix, std::string_view name);
  std::string_view operator[](std::size_t i) const noexcept { return keys_[i]; }
  static constexpr std::size_t count = 5;

 private:
  std::array<std::string, count> keys_;
};

/// The key of one bucket of a rate limiter, beside `record`. It ends with a character that no
/// record's key ends with.
std::string bucket_key(std::string_view record, std::string_view id);

/// The prefix of the keys of all buckets of a name, and the bucket id in such a key.
std::string bucket_prefix(std::string_view prefix, std::string_view name);
std::string id_of_bucket(std::string_view key, std::string_view begins);

/// Escapes text for the MATCH of a SCAN: matches it literally, not as a pattern.
std::string escaped_for_match(std::string_view text);

/// The text between the braces: the only part of a key that decides its slot in a cluster.
std::string hash_tag(std::string_view name);

/// The name in the first key of name_keys; empty for any other key.
std::string name_of_key(std::string_view key);

}  // namespace holdfast::store::redis
