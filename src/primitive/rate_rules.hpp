#pragma once

#include <holdfast/rate_limiter.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/rate.hpp>
#include <memory>
#include <string>
#include <vector>

/// Converts rules as people write them into the kernel's units, and determines the buckets of a
/// key.
namespace holdfast::primitive {

/// Checked rules. Immutable: a change replaces the whole object.
class rate_rules {
 public:
  static result<std::shared_ptr<const rate_rules>> check(std::vector<rate_rule> rules,
                                                         std::uint32_t version);

  std::uint32_t version() const noexcept { return version_; }
  std::size_t size() const noexcept { return rules_.size(); }
  const std::string& name_of(std::size_t i) const noexcept { return rules_[i].name; }
  /// No request can ever get more than this at once.
  std::uint64_t smallest_burst() const noexcept { return smallest_burst_; }

  /// The bucket of each rule for this key.
  result<std::vector<std::string>> buckets_of(const rate_key& key) const;
  /// The reverse: the name of the bucket's rule, and the values of the key.
  static std::vector<std::string> parts_of(std::string_view bucket);
  /// The buckets with their rules, for a command; points into `buckets`.
  std::vector<store::bucket_choice> choices(const std::vector<std::string>& buckets) const;

 private:
  status add(rate_rule r);

  std::vector<rate_rule> rules_;
  std::vector<store::bucket_rule> counted_;
  std::uint64_t smallest_burst_ = 0;
  std::uint32_t version_ = 0;
};

}  // namespace holdfast::primitive
